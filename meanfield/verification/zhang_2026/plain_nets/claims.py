"""Claims of P0 and P3 on fully-connected and convolutional nets."""

from __future__ import annotations

from functools import partial

from meanfield.verification.claims import Check, Claim, of_rival
from meanfield.verification.zhang_2026.batches import cross_entropies
from meanfield.verification.zhang_2026.plain_nets import (
    activation_drift,
    channel_corrections,
    depth_growth,
    depth_laws,
    overlap_conservation,
    padding,
    stencil_slopes,
)

CLAIMS = (
    Claim(
        id="A1",
        source="P0 lemma 1, eq. 14; P3",
        statement="overlaps are invariant: E[T_h given layer l] = T_l for every pair of parameters",
        checks=(
            Check("overlap_recursion", of_rival(overlap_conservation.judge_mean)),
            Check("overlap_recursion", overlap_conservation.judge_conditional_mean),
            Check(
                "cnn_finite_channels",
                channel_corrections.judge_conditional_mean,
            ),
        ),
        replaced_by="E T is conserved for directions of one layer, and steps from 0 to 1/(2 pi q n) for those of two; "
        "given z^(l) it is the gated overlap over q that is conserved",
        premise="gates are taken for independent of the tangents that pass them",
    ),
    Claim(
        id="A3",
        source="P0 eq. 22-23",
        statement="B_l is proportional to the sum of minima, l(l+1)(2l+1)/6, with one prefactor",
        checks=(
            Check("cnn_overlap", depth_growth.judge_label_minima),
            Check("cnn_finite_channels", stencil_slopes.judge_one_prefactor),
        ),
        replaced_by="the mean field, l(2l^2+1)/12 for ReLU nets of one site; its prefactor goes as 1/taps",
        premise="a gate passes two tangents at one unit with chance 1/2 and at two units with 1/4; one factor is taken "
        "for both",
    ),
    Claim(
        id="A4",
        source="P0 eq. 21",
        statement="A_l = O(l^2), negligible beside B_l",
        checks=(
            Check("mlp_depth", depth_laws.judge_output_term_growth),
            Check("mlp_depth", depth_laws.judge_negligible_output_term),
            Check("cnn_overlap", depth_growth.judge_deepest_output_term),
        ),
        replaced_by="A_l = B_l (1 + O(M L / n)): l^3 with few outputs, a factor L above B_l with as many as the width, "
        "where eta* ~ L^-2; a head of variance 1/n^2 alone suppresses it",
        premise="the outputs, through which A_l is driven, are taken for independent of the overlaps below",
    ),
    Claim(
        id="A5",
        source="P0 section 3.3; P3 theorem 1",
        statement="eta* = kappa L^(-3/2), for any kernel, grid and width",
        checks=(
            Check("learning_rate_scale", depth_laws.judge_asymptote),
            Check("learning_rate_scale", depth_laws.judge_power_law_in_use),
            Check("cnn_finite_channels", of_rival(stencil_slopes.judge_slopes)),
            Check("cnn_finite_channels", stencil_slopes.judge_one_exponent),
        ),
        replaced_by="the finite-depth law sqrt(24 / ((L+1)(L^2+L+1))), of slope -1.39 over 3 .. 30; -3/2 is its limit, "
        "for every stencil and grid; kappa is 1/taps times a function of the number of sites",
        premise="the limit of many layers is taken at depths of ten",
    ),
    Claim(
        id="A6",
        source="P0 section 3.3; P3 theorem 2",
        statement="finite channels correct by O(1/C), uniformly in depth",
        checks=(
            Check("mlp_depth", depth_laws.judge_uniform_correction),
            Check("cnn_finite_channels", channel_corrections.judge_uniform_in_depth),
            Check("cnn_finite_channels", of_rival(channel_corrections.judge_function_of_ratio)),
        ),
        replaced_by="a function of L / C alone: 0.39 at 1/8, 28 at 1",
        premise="corrections of order 1/C are made in every layer, and add up",
    ),
    Claim(
        id="A7",
        source="P0 remark B, section E.2",
        statement="zero padding corrects eta* by O(boundary fraction) and leaves its exponent",
        checks=(
            Check("cnn_padding", partial(padding.judge_exponent, place=0)),
            Check("cnn_padding", padding.judge_uniform_correction),
        ),
        replaced_by="a correction of the boundary fraction times about l^(1/2), as the boundary layer grows inwards; "
        "at a depth of the order of N^2 growth turns into the decay lambda^(2 l) of overlap energies",
        premise="the error of one layer is taken for that of all; what leaves the grid is lost at every layer",
    ),
    Claim(
        id="A8",
        source="P0 lemma 3, eq. 24",
        statement="sums over stencils miss at most k bdry sup|f| under zero padding, and nothing on a torus",
        checks=(Check("cnn_padding", padding.judge_missing_terms),),
    ),
    Claim(
        id="A11",
        source="P0 lemma 5, eq. 27",
        statement="Var(T_h given layer h - 1) is at most C_0 / C_h",
        checks=(
            Check("overlap_recursion", overlap_conservation.judge_added_variance),
            Check(
                "cnn_finite_channels",
                channel_corrections.judge_added_variance,
            ),
        ),
    ),
    Claim(
        id="A17",
        source="P0 appendix F",
        statement="GELU: E phi'^2 = 0.456, gain 0.912 per layer under He's variance, which makes eta* slightly steeper "
        "over finite depths than ReLU's",
        checks=(
            Check("activation_drift", activation_drift.judge_gain),
            Check("activation_drift", activation_drift.judge_constant_gain),
            Check("activation_drift", activation_drift.judge_stationary),
            Check("activation_drift", activation_drift.judge_attenuation),
            Check("activation_drift", activation_drift.judge_asymptote),
        ),
        replaced_by="0.912 is the gain at variance 1 alone. Under He's variance and the fan-in rule pre-activations "
        "decay at infinite width too, the gain falls to sigma_W^2/4, and eta* rises as gain^(-L/2); where sigma_W^2 = "
        "1/E phi^2 keeps the variance, the gain is 1.072 and eta* falls as 1.072^-L",
        premise="the gain of unit variance is taken for that of every layer, and attenuation for a smaller eta*",
    ),
    Claim(
        id="A18",
        source="P0 section G",
        statement="cross-entropy instead of squared error changes the prefactor of eta* alone; |p - y|^2 = 1 - 1/C",
        checks=(
            Check("cross_entropy", cross_entropies.judge_exponent),
            Check("cross_entropy", cross_entropies.judge_exponent_with_outputs),
            Check("cross_entropy", partial(cross_entropies.judge_error, head="mup")),
            Check("cross_entropy", partial(cross_entropies.judge_error, head="he")),
        ),
        replaced_by="holds where outputs vanish (muP head); with outputs of order one |p - y|^2 exceeds 1 - 1/C, and "
        "the squared loss alone has its slope steepened by them. The label term's prefactor is C - 1, exactly",
        premise="the softmax is taken at vanishing outputs",
    ),
    Claim(
        id="A21",
        source="P0 table 1, figure 3",
        statement="measured slopes of -1.18 .. -1.57, mean -1.38, deviate from -1.5 because depth is finite",
        checks=(Check("learning_rate_scale", depth_laws.judge_table_1),),
    ),
)
