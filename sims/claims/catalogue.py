"""Every claim that a study decides, by its id: claims that rest on runs of several studies, and an index over the
others, which stand in their studies beside their judges.
"""

from meanfield.verification import Check, Claim, Kind, checks, of_rival
from sims import (
    NAMES,
    coordinate_check,
    mlp_depth,
    overlap_recursion,
    simulation,
    spectral_condition,
    table_cells,
    update_orders,
)
from sims import cnn_finite_channels as finite_channels
from sims.cnn_overlap import claims as cnn_overlap
from sims.common.study import Study
from sims.learning_rate_scale import claims as scales

OF_SEVERAL_STUDIES = (
    Claim(
        id="A1",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 1, eq. 14",
        statement="overlaps are invariant: E[T_h given layer l] = T_l for every pair of parameters of layers up to l",
        brief="overlaps are invariant from layer to layer, for every pair of parameters below",
        printed='"For any parameter directions mu_1, mu_2 that belong to layers at most l, E[T_h(mu_1, mu_2) | '
        'z^(l)] = T_l(mu_1, mu_2)" (lemma 1, eq. 14)',
        hypotheses="ReLU, stride 1, circular padding, independent fan-in weights of mean 0, parameters of layers <= l. "
        "Zhang et al. 2025 have it at infinite width, where the step found here vanishes, or with gates taken for "
        "independent of directions, which they are not",
        checks=(
            *checks(
                overlap_recursion.NAME, of_rival(overlap_recursion.judge_mean), overlap_recursion.judge_conditional_mean
            ),
            *checks(finite_channels.NAME, finite_channels.judge_conditional_mean),
        ),
        replaced_by="E T is conserved for directions of one layer, and steps from 0 to 1/(2 pi q n) for those of two; "
        "given z^(l) it is the gated overlap over q that is conserved",
        premise="the proof averages over gates that z^(l) leaves free, l < h - 1 (its step 2), and counts layer h = l "
        "+ 1, whose gates z^(l) fixes, among them (step 3)",
    ),
    Claim(
        id="A4",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 21",
        statement="A_l = O(l^2), negligible beside B_l",
        printed='"it grows at most quadratically in l under standard weak-correlation/diagonal-dominance bounds ... '
        'under homogeneity and finite-moment assumptions at initialization, A = O(eta^2 l^2)" (appendix B.3, eq. 21)',
        hypotheses="homogeneous layers, finite moments; the bounds on correlations that appendix B.3 invokes for them "
        "are what fails",
        checks=(
            *checks(mlp_depth.NAME, mlp_depth.judge_output_term_growth, mlp_depth.judge_negligible_output_term),
            *checks(cnn_overlap.NAME, cnn_overlap.judge_output_term),
        ),
        replaced_by="A_l = B_l (1 + O(M L / n)): l^3 with few outputs, a factor L above B_l with as many as the width, "
        "where eta* ~ L^-2; a head of variance 1/n^2 alone suppresses it",
        premise="the outputs, through which A_l is driven, are taken for independent of the overlaps below",
    ),
    Claim(
        id="A5a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 3.3, appendix B.3; Zhang et al. 2025, theorem 1",
        statement="at leading order in depth eta* = kappa L^(-3/2) (1 + o(1)), with one exponent for any kernel and "
        "grid (judged: the label term, which decides where outputs are few)",
        brief="eta* = kappa L^(-3/2) at leading order in depth, for any kernel and grid",
        printed='"the leading depth exponent is -3/2, and the listed terms only affect the prefactor" (proposition '
        "3.3)",
        hypotheses="stride 1, fan-in initialization, pointwise activation, homogeneous layers, many channels",
        checks=(
            *checks("learning_rate_scale", scales.judge_asymptote),
            *checks(finite_channels.NAME, finite_channels.judge_one_exponent),
        ),
    ),
    Claim(
        id="A5b",
        kind=Kind.READING,
        source="Zhang et al. 2026, footnote 1 and section 5: used as a transfer rule",
        statement="eta* ~ L^(-3/2) carries the scale over depths of 3 .. 30 (judged: one-step eta*, whose slope is "
        "granted 0.03)",
        brief="eta* ~ L^(-3/2) carries the scale over depths of 3 .. 30",
        printed='"calibrate the learning rate at a reference effective depth L_0 and rescale it to a new effective '
        'depth by eta(L) = eta(L_0) (L / L_0)^(-3/2)" (section 5)',
        hypotheses="those of A5a, with depth taken for large; 3 .. 30 is assumed for the experiments, whose depths are "
        "printed for table 5, 6 .. 20 blocks, whose scaled rates take depths of 7 .. 21, and for table 6, 6 .. 18. The "
        "0.03 is our reading: the paper calls the rule first-order, and has slopes within 20 % of -3/2 for "
        "fluctuations, which -1.39 is. Over 3 .. 30 the rule misses by a factor of 1.34, at the depths of table 5, "
        "from 13 to 7 and 21, by 6 and 3 %",
        checks=(
            *checks("learning_rate_scale", scales.judge_power_law_in_use),
            *checks(finite_channels.NAME, of_rival(finite_channels.judge_slopes)),
        ),
        replaced_by="the finite-depth law sqrt(24 / ((L+1)(L^2+L+1))) of one site, of slope -1.39 over 3 .. 30; other "
        "stencils and grids have slopes within 0.01 of it in mean field, and prefactors that fall as 1/taps",
        premise="the limit of many layers is taken at depths of ten",
    ),
    Claim(
        id="A6",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 3.3; Zhang et al. 2025, theorem 2",
        statement="finite channels correct eta* by O(1/C), uniformly in depth (judged: the label term, and overlap "
        "energies)",
        brief="finite channels correct eta* by O(1/C), uniformly in depth",
        printed='"Lemma 5 yields the max_l 1/C_l correction from finite-channel averaging" (Zhang et al. 2026, proof '
        'of proposition 3.3); "admits a uniform correction" (Zhang et al. 2025, theorem 2)',
        hypotheses="homogeneous layers; lemma 5 takes a bound on a channel's second moment for one of all depths, "
        "which fails by itself (A11b)",
        checks=(
            *checks(mlp_depth.NAME, mlp_depth.judge_uniform_correction),
            *checks(
                finite_channels.NAME,
                finite_channels.judge_uniform_in_depth,
                of_rival(finite_channels.judge_function_of_ratio),
            ),
        ),
        replaced_by="at a fixed depth it is O(1/C); over depths the relative correction is a function of L / C alone: "
        "0.39 at L / C = 1/8, 28 at 1",
        premise="corrections of order 1/C are made in every layer, and add up",
    ),
    Claim(
        id="A11a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 5, eq. 27",
        statement="given the layers below, Var(T_h) falls as C_0 / C_h with the channels of layer h",
        printed='"Var(T_h | F_(h-1)) = (1/C_h) Var(X_1 | F_(h-1)) <= (1/C_h) E[X_1^2 | F_(h-1)] <= C_0/C_h" (lemma '
        "5, proof)",
        hypotheses="weights of layer h independent over channels and of mean 0; directions outside layer h",
        checks=(
            *checks(overlap_recursion.NAME, overlap_recursion.judge_added_variance),
            *checks(finite_channels.NAME, finite_channels.judge_added_variance),
        ),
        identity=True,
    ),
    Claim(
        id="S3a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 3 obeys the rule of k = 2: weights, updates and their products after one step, and, as at k = "
        "2, all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        brief="k = 3 obeys the rule of k = 2, in norms and in all orders of a block's update",
        printed='"extending residual blocks from two layers to a general fixed depth k >= 2 does not change the '
        'algorithmic realization of the muP principle" (appendix B.2.2)',
        hypotheses=f"linear nets; products of all nine optimizers, {spectral_condition.RUN}; orders "
        f"{update_orders.NETS}",
        checks=(
            *spectral_condition.conditions((*spectral_condition.PRODUCTS, "C2.3"), "--block-depth", "3", times=10),
            *update_orders.all_orders(2, 3),
        ),
    ),
    Claim(
        id="S5c",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, takeaway 1",
        statement="block depth decides the rule for depth: 1/sqrt(L) serves k = 1; at k = 2 second-order terms of Muon "
        "keep their size over ten steps under 1/L and not under 1/sqrt(L) (at the first step they fall under either: "
        "S9)",
        brief="block depth decides the rule for depth: 1/sqrt(L) serves k = 1, 1/L k = 2",
        printed='"k = 1 gives the Depth-muP-style scaling, whereas k >= 2 introduces high-order update terms and '
        'requires the stricter CompleteP-style scaling" (takeaway 1)',
        hypotheses=f"k = 1: all nine optimizers, ten steps (SSO: five), {coordinate_check.SIZES} (Lion and SOAP: 4 .. "
        "64; SOAP with an epsilon of 0.002, S5a). Second "
        "order: Muon without momentum, k = 2, ten steps on two samples and one output, 4 .. 32 blocks; under "
        "1/sqrt(L) it falls as about L^(-0.8), faster than the L^(-1/2) of norms, as the first step's overlaps (S9) "
        "still show",
        checks=(
            *coordinate_check.OF_ONE_LAYER,
            Check(update_orders.NAME, update_orders.judge_second_order, ("--optimizers", update_orders.SETTLED)),
        ),
    ),
    Claim(
        id="S5d",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, takeaway 2",
        statement="for every optimizer but SGD the learning rates and weight decays of width alone, with the "
        "multiplier 1/L, keep nets flat in depth",
        brief="for all but SGD the rates of width alone, with 1/L, keep nets flat in depth",
        printed='"For the modern optimizers considered in this paper, except SGD, ... taking the corresponding '
        'width-scaling muP implementation and adding the hidden residual multiplier" (section 4.3)',
        hypotheses="epsilons are as tables 4 and 6 have them: hidden ones scale with the depth, too (S5f). Linear "
        "blocks of k = 2 layers, eight optimizers, ten steps (SSO: five; SOAP with an epsilon of 0.002, S5a), "
        f"{coordinate_check.SIZES}; SGD's cells as in S5e",
        checks=(
            *coordinate_check.OF_MANY_LAYERS,
            Check(table_cells.NAME, table_cells.judge_rates_in_depth),
        ),
    ),
)


# What gathers claims is no study.
_STUDIES = [study for name in NAMES if name != "claims" and isinstance(study := simulation(name), Study)]


def _place(claim: Claim) -> tuple[str, int, str]:
    """Subject, number and part: A20a is part a of A20."""
    subject, behind = claim.id[0], claim.id[1:]
    number = behind.rstrip("abcdefghijklmnopqrstuvwxyz")
    return subject, int(number), behind.removeprefix(number)


_ALL = [*OF_SEVERAL_STUDIES, *(claim for study in _STUDIES for claim in study.claims)]
CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=_place)}
