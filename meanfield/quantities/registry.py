"""The registry: every quantity that a dataset may hold, defined once.

All quantities are dimensionless and reported at learning rate 1. ``scaling`` says how a quantity grows with the
channels n, the depth L and the layer l in nets with a "he" head, at leading order.
"""

from __future__ import annotations

from dataclasses import replace

from meanfield.quantities.block_nets import BLOCK_QUANTITIES
from meanfield.quantities.quantity import Quantity
from meanfield.quantities.spread import SPREAD_QUANTITIES

_ALL = (
    Quantity(
        name="update_energy",
        symbol="S_l",
        dims=("layer",),
        definition="mean square over channels and sites of the one-step change of z^(l), averaged over labels",
        scaling="label term plus output term",
        source="P0 eq. 8, 18",
    ),
    Quantity(
        name="label_term",
        symbol="B_l",
        dims=("layer",),
        definition="part of the update energy that the labels drive: the change under the error column y",
        scaling="n l^3 for one site; sigma_y^2 gamma F_l / M under a convolutional readout",
        source="P0 eq. 19 (with its missing factor 1/M)",
    ),
    Quantity(
        name="output_term",
        symbol="A_l",
        dims=("layer",),
        definition="part of the update energy that the outputs drive: the change under the error column z_out",
        scaling="as the label term, times 1 + O(M L / n)",
        source="P0 eq. 20",
    ),
    Quantity(
        name="overlap_energy",
        symbol="F_l",
        dims=("layer",),
        definition="|Theta^(l)|_F^2 / n_l^2, the sum over parameter pairs of squared overlaps",
        scaling="n l (2 l^2 + 1) / 12 for one site and ReLU",
        source="P0 eq. 13; docs/theory.md section 2",
    ),
    Quantity(
        name="update_energy_by_site",
        symbol="S_l(p)",
        dims=("layer", "site"),
        definition="update energy at each site of the grid, sites row by row; its mean over sites is the update energy",
        scaling="as the update energy; under zero padding less within l^(1/2) sites of an edge",
        source="P0 eq. 8, before its average over sites; docs/theory.md section 6",
        unpredicted="the mean field gives the label term by site alone",
    ),
    Quantity(
        name="label_term_by_site",
        symbol="B_l(p)",
        dims=("layer", "site"),
        definition="label term at each site of the grid, sites row by row; its mean over sites is the label term",
        scaling="as the label term; under zero padding less within l^(1/2) sites of an edge",
        source="P0 eq. 19, before its average over sites; docs/theory.md section 6",
    ),
    Quantity(
        name="output_term_by_site",
        symbol="A_l(p)",
        dims=("layer", "site"),
        definition="output term at each site of the grid, sites row by row; its mean over sites is the output term",
        scaling="as the output term; under zero padding less within l^(1/2) sites of an edge",
        source="P0 eq. 20, before its average over sites; docs/theory.md section 6",
        unpredicted="the mean field gives the label term by site alone",
    ),
    Quantity(
        name="overlap_energy_relative_spread",
        symbol="sd(F_l) / E F_l",
        dims=("layer",),
        definition="standard deviation of one draw of the overlap energy over its mean; (spread/e)^2 draws give e",
        scaling="(l / n)^(1/2) for l much below n; far above 1 rare draws make the mean",
        source="docs/theory.md section 3",
    ),
    Quantity(
        name="label_term_relative_spread",
        symbol="sd(B_l) / E B_l",
        dims=("layer",),
        definition="standard deviation of one draw of the label term over its mean, a draw having its own labels",
        scaling="at least (2 / M)^(1/2), and more in deep nets, at every layer",
        source="docs/theory.md sections 3, 4",
    ),
    Quantity(
        name="finite_width_allowance",
        symbol="exp(3 l / n + Var log B) - 1",
        dims=("layer",),
        definition="relative deviation from the mean field that verdicts grant to a net of finite width",
        scaling="3 l / n for ReLU and l much below n",
        source="docs/theory.md section 3",
        unpredicted="is itself computed, for verdicts alone",
    ),
    Quantity(
        name="finite_channel_correction",
        symbol="B_L / B_L(mean field) - 1",
        dims=("channels", "depth_over_channels"),
        definition="label term of the last layer over its leading order in 1/channels, less 1",
        scaling="3 L / C for L much below C: a function of L / C",
        source="P0 section 3.3, P3 Theorem 2",
        unpredicted="of a sweep; for one site it is exact by `theory.depth_scan.finite_width_excess`",
    ),
    Quantity(
        name="mean_update_energy",
        symbol="Sbar",
        dims=(),
        definition="average of the update energy over the layers",
        scaling="n L^3 when the label term dominates",
        source="P0 eq. 9",
    ),
    Quantity(
        name="learning_rate_scale",
        symbol="eta*",
        dims=(),
        definition="learning rate at which the mean update energy is 1: Sbar^(-1/2)",
        scaling="n^(-1/2) L^(-3/2) when the label term dominates",
        source="P0 eq. 9",
    ),
    Quantity(
        name="label_learning_rate_scale",
        symbol="eta*_B",
        dims=(),
        definition="learning rate at which the layers' mean label term is 1: (mean_l B_l)^(-1/2)",
        scaling="n^(-1/2) L^(-3/2) asymptotically",
        source="P0 appendix B.3",
    ),
    Quantity(
        name="pre_activation_energy",
        symbol="c_l",
        dims=("layer",),
        definition="mean square over channels and sites of z^(l) itself",
        scaling="1 at every layer for homogeneous activations under the fan-in rule; else it drifts, exponentially "
        "towards or away from a fixed point",
        source="P0 appendix F; docs/theory.md section 6",
        unpredicted="predicted beside its correction of order 1/width, by `theory.mean_field.energy_fluctuation`",
    ),
    Quantity(
        name="gate_energy",
        symbol="q_l",
        dims=("layer",),
        definition="mean square over channels and sites of sigma'(z^(l)); times sigma_W^2, what a layer keeps of the "
        "energy of tangents and errors",
        scaling="q where pre-activations have variance 1, and at any variance for homogeneous activations",
        source="P0 eq. 1, appendix F",
        unpredicted="predicted beside its correction of order 1/width, by `theory.mean_field.energy_fluctuation`",
    ),
    Quantity(
        name="output_error",
        symbol="|dL/dz_out|^2",
        dims=(),
        definition="squared error at the outputs, z_out - y or softmax(z_out) - y, summed over channels, mean over "
        "samples and sites, averaged over labels",
        scaling="M (1 + z^2) under squared loss; 1 - 1/C under cross-entropy where the softmax over C is uniform",
        source="P0 section G",
    ),
    Quantity(
        name="overlap",
        symbol="T_l(mu1, mu2)",
        dims=("pair", "layer"),
        definition="mean over units of the product of two tangents of z^(l), along two parameter directions",
        scaling="mean q for a direction with itself, 0 for two of a layer, 1 / (2 pi q n) for two of different layers; "
        "in residual nets for two of one unit, too, that of one with itself, growing as (1 + c q / K)^l",
        source="P0 eq. 13",
    ),
    Quantity(
        name="squared_overlap",
        symbol="T_l(mu1, mu2)^2",
        dims=("pair", "layer"),
        definition="square of the overlap of two parameter directions, whose sum over all pairs is the overlap energy",
        scaling="q^2 for a direction with itself; for two of different units (l - l_mu) / n at leading order in l / n",
        source="P0 eq. 13; docs/theory.md section 5",
    ),
    Quantity(
        name="gated_overlap",
        symbol="E[T_{l+1} | layers up to l]",
        dims=("pair", "layer"),
        definition="overlap of the gated tangents over the gain: the mean of the next layer's overlap, given this one",
        scaling="as the overlap",
        source="P0 eq. 15",
        unpredicted="its mean is that of the next layer's overlap",
    ),
    Quantity(
        name="overlap_innovation",
        symbol="T_l - E[T_l | layers below l]",
        dims=("pair", "layer"),
        definition="what an overlap has beyond its mean given the layers below",
        scaling="mean 0; n^(-1/2) in a draw",
        source="P0 Lemma 1, Lemma 6",
        unpredicted="its mean is 0",
    ),
    Quantity(
        name="gate_deviation",
        symbol="T~_l - q T_l",
        dims=("pair", "layer"),
        definition="overlap of the gated tangents, less that of the tangents times the gain",
        scaling="mean 1 / n, 0 in linear nets; n^(-1/2) in a draw, 1 for a direction with itself",
        source="P0 section C.1, epsilon",
        unpredicted="its law in residual streams is `theory.stream_overlaps`",
    ),
    Quantity(
        name="overlap_excess",
        symbol="T_l - r T_l0",
        dims=("pair", "layer"),
        definition="overlap, less that where it began times its growth under gates that average to the gain",
        scaling="mean 1 / n, 0 in linear nets and in plain nets for directions of one layer",
        source="P0 eqs. 14, 35",
        unpredicted="its mean is at most of order 1/n, which no recursion here resolves",
    ),
    Quantity(
        name="overlap_variance",
        symbol="Var(T_l | layers below l)",
        dims=("pair", "layer"),
        definition="mean of the squared difference between an overlap and its mean given the layers below",
        scaling="1 / n",
        source="P0 Lemma 5, eq. 27",
    ),
    Quantity(
        name="residual_energy",
        symbol="H_l",
        dims=("step",),
        definition="|h_l|^2 / N of the stream after l steps: initial energy plus cross term plus correlation term",
        scaling="O(1) for alpha >= 1 in tied loops and alpha >= 1/2 in independent stacks",
        source="P2 section 2, eq. 2",
    ),
    Quantity(
        name="initial_energy",
        symbol="H_0",
        dims=(),
        definition="|h_0|^2 / N of the stream before the first step",
        scaling="1",
        source="P2 eq. 2",
    ),
    Quantity(
        name="cross_term",
        symbol="B_l",
        dims=("step",),
        definition="(2 eps / N) sum_{s<l} <h_0, r_s>, r_s = W phi(h_s): what the start and the increments share",
        scaling="N^(-1/2), of mean 0 at infinite width",
        source="P2 eq. 2",
    ),
    Quantity(
        name="correlation_term",
        symbol="C_l",
        dims=("step",),
        definition="(eps^2 / N) sum_{s,t<l} <r_s, r_t>: squared length of the sum of the increments",
        scaling="eps^2 l^2 in tied loops and eps^2 l in independent stacks while H is O(1)",
        source="P2 eq. 2",
    ),
    Quantity(
        name="increment_correlation",
        symbol="<r_s, r_t> / N",
        dims=("step", "step_other"),
        definition="overlap of the increments of two steps; step s is the increment that makes h_s of h_{s-1}",
        scaling="O(1) at all distances in tied loops, on the diagonal alone in independent stacks",
        source="P2 figure 2, appendix C.1",
    ),
    Quantity(
        name="feature_overlap",
        symbol="C_{s,t}",
        dims=("step", "step_other"),
        definition="<phi(h_{s-1}), phi(h_{t-1})> / N, the features that the increments are made of",
        scaling="O(1)",
        source="P2 appendix C.1",
    ),
    Quantity(
        name="stream_update_energy",
        symbol="|dh_l|^2 / N",
        dims=("step",),
        definition="mean square over units of the first-order change of the stream under one update of the weights",
        scaling="(eta eps L)^2 for isotropic updates of a tied loop while H is O(1)",
        source="P2 Theorem 2, appendix D",
        unpredicted="depends on the update as well as on the loop; `theory.loop_update` has isotropic ones",
    ),
    Quantity(
        name="stream_learning_rate_scale",
        symbol="(|dh_L|^2 / N)^(-1/2)",
        dims=(),
        definition="learning rate at which one update of a loop's weights moves the stream's last step by 1",
        scaling="L^(alpha - 1) for isotropic updates of tied loops of alpha >= 1",
        source="P2 eq. 4",
        unpredicted="depends on the update, too; `theory.learning_rate.log_scale` has it for isotropic ones",
    ),
)


def _logarithm(quantity: Quantity) -> Quantity:
    """The natural logarithm of a quantity, for depths at which the quantity itself leaves the range of a float."""
    name, symbol, definition = f"log_{quantity.name}", f"ln {quantity.symbol}", f"logarithm of: {quantity.definition}"
    scaling = f"logarithm of: {quantity.scaling}"
    return replace(quantity, name=name, symbol=symbol, definition=definition, scaling=scaling, unpredicted="")


QUANTITIES = {one.name: one for one in (*_ALL, *map(_logarithm, _ALL), *BLOCK_QUANTITIES, *SPREAD_QUANTITIES)}
