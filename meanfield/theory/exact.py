"""Exact expectations of fully-connected nets with one input, at any width and depth, in O(depth) operations.

Plain nets come first, then overlaps of two parameter directions, linear residual nets, and scans over depths to 10^5
and more. Their recursions are those of `meanfield.theory.recursions`.

Notation (docs/theory.md sections 3, 4, 8): F = |Theta|_F^2, P1 = z' Theta^2 z, P2 = sum_a z_a^2 (Theta^2)_aa and P3 =
|z|^2 tr Theta^2 from below; a1 = (tr S)^2 and a2 = tr S^2 from above, S = J'J being the Gram matrix of the Jacobian
to the outputs. All are carried as natural logarithms, as they leave the range of a float where depth is many times
the width.

Overlaps (section 5; Zhang et al. 2026, eq. 13): u, v are the tangents of z^(h) along two directions of
`meanfield.nets.directions`, T_h = <u, v> / n_h, and x = sigma(z) the features below a direction's own layer. It is
born as u = |x| e_a. The lower of two is carried up to the upper one's layer by moments of |u|^2 |z|^2; from there the
derived recursion of <u, v>^2 carries both. All that a new direction adds is second moments of fresh Gaussian weights.

Linear residual nets: plain layers and blocks share one set of moments. From above S, J now being from a depth unit to
the outputs, is independent of what is below and has no preferred direction, so that for all orthonormal u, v

    E S_ij S_kl = alpha d_ij d_kl + gamma (d_ik d_jl + d_il d_jk),   alpha = E |Ju|^2 |Jv|^2,   gamma = E <Ju, Jv>^2,
    M^2 n A_l = (alpha + gamma) E P1 + gamma E P3,   M^2 n B_l = E |Ju|^2 E F.

What J does to two vectors is what the depth units above do to two tangents: their derived recursions, read from the
top (one row of a product of matrices, built from the left). All terms are positive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from meanfield.common.validation import Array, takes
from meanfield.nets.directions import DirectionPair
from meanfield.nets.layered import Sequential
from meanfield.nets.residual import Residual
from meanfield.theory.laws import single_site_overlap, sum_of_minima
from meanfield.theory.moments import Moment, gate_average, parse_moment
from meanfield.theory.recursions import DepthUnit, Recursion, derive, derive_together, iterate

OVERLAP = "Theta_ij Theta_ij"
OUTPUT_MOMENTS = ("z_i Theta_ij Theta_jk z_k", "z_i z_i Theta_ij Theta_ji", "Theta_ij Theta_ij z_k z_k")
GRAM_MOMENTS = ("Theta_ii Theta_jj", "Theta_ij Theta_ij")
# |Theta|_F^4, tr Theta^4 and the sum of (Theta^2)_aa^2, which close together; spreads share this one derivation.
SPREAD_MOMENTS = (
    "Theta_ij Theta_ij Theta_kl Theta_kl",
    "Theta_ij Theta_jk Theta_kl Theta_li",
    "Theta_ij Theta_ji Theta_ik Theta_ki",
)


@dataclass(frozen=True)
class ExactTerms:
    """Natural logarithms of E F_l, E B_l and E A_l for l = 1 .. L."""

    overlap_energy: Array
    label_term: Array
    output_term: Array


def exact_terms(net: Sequential) -> ExactTerms:
    """Overlap energy, label term and output term of every layer, for labels of variance 1."""
    return next(exact_terms_by_depth(net, [net.depth]))


def exact_terms_by_depth(net: Sequential, depths: Iterable[int]) -> Iterator[ExactTerms]:
    """The terms of the nets cut from this one at these depths, from one recursion up and one down.

    Moments from below do not depend on the layers above them, Gram moments only on the distance to the outputs.

    Raises:
        ValueError: a depth that this net does not reach, or hidden layers of several widths (a cut net would then end
            in other layers).
    """
    full_depth = net.depth
    chain = PlainChain(net)
    overlap, below = _from_below(net.replace(head="he", outputs=1))
    above = chain.gram_from_above()
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    label = overlap + np.log(gamma / net.outputs)
    for depth in depths:
        if depth != full_depth and (not 1 <= depth < full_depth or len(set(net.channels_by_layer[1:])) > 1):
            raise ValueError(
                f"depth {depth} cannot be cut from this net of {full_depth} layers; its layers must be equal"
            )
        yield ExactTerms(overlap[:depth], label[:depth], chain.output_term(below[:depth], above[full_depth - depth :]))


@lru_cache(maxsize=1)
def _from_below(net: Sequential) -> tuple[Array, Array]:
    """log E F_l, and logs of P1, P2, P3: kept for the next head or number of outputs, which change nothing here."""
    return overlap_energies(net), _rows(PlainChain(net), *OUTPUT_MOMENTS)


def _rows(chain: PlainChain, *moments: str) -> Array:
    """Logs of the named moments at layers 1 .. L: (L, moments)."""
    return np.stack([*chain.from_below(*moments, rows=len(moments)).values()], axis=1)


def overlap_energies(net: Sequential) -> Array:
    """log E F_l for l = 1 .. L.

    By a recursion of its own: carried along with moments that grow faster, F would underflow beside them.
    """
    chain = PlainChain(net)
    return np.asarray(_rows(chain, OVERLAP)[:, 0] - 2 * np.log(chain.channels[1:]))


@takes(Sequential)
def relative_spread(net: Sequential) -> Array:
    """Standard deviation of one draw of F_l over its mean, for l = 1 .. L.

    The number of draws for a relative error e is (spread / e)^2; far above 1, rare draws make the mean.
    """
    chain = PlainChain(net)
    square = _rows(chain, *SPREAD_MOMENTS)[:, 0] - 4 * np.log(chain.channels[1:])
    return _spread(square - 2 * overlap_energies(net))


@takes(Sequential)
def label_spread(net: Sequential) -> Array:
    """Standard deviation of one draw of B_l over its mean, for l = 1 .. L; a draw has its own weights and labels.

    B_l = y' G y / (M^2 n) with G = J Theta^2 J', so that E_y B_l^2 is (tr G)^2 + 2 tr G^2. Averaged over the matrix
    just above layer l, that is s^2 (a1 + 2 a2)(E (tr X)^2 + 2 E tr X^2), X being Theta^2 between the gates of layer l.
    It exceeds the spread of F_l by what the layers above add: even layer 1 of a deep net spreads widely.
    """
    chain = PlainChain(net)
    square, quartic, diagonal = _rows(chain, *SPREAD_MOMENTS).T
    if net.activation == "relu":
        square, quartic = (np.logaddexp(moment, diagonal) - np.log(4.0) for moment in (square, quartic))
    a1, a2 = chain.gram_from_above().T
    mean_square = np.logaddexp(a1, np.log(2) + a2) + np.logaddexp(square, np.log(2) + quartic)
    scale = 2 * np.log(chain.variances[1:] / (net.outputs**2 * chain.channels[1:]))
    return _spread(mean_square + scale - 2 * exact_terms(net).label_term)


def _spread(log_ratio: Array) -> Array:
    """The relative spread that follows from the logarithm of E x^2 / (E x)^2."""
    return np.asarray(np.sqrt(np.maximum(np.expm1(log_ratio), 0.0)))


class PlainChain:
    """The numbers that the recursions of a plain net run on, and moments carried along them, as logarithms.

    Attributes:
        activation: whose gates are averaged.
        energy: |sigma(x)|^2 of the normalised input.
        channels: of z^(0) .. z^(L).
        variances: of W^(1) .. W^(L) and the readout.
    """

    def __init__(self, net: Sequential) -> None:
        self.activation, self.channels = net.activation, np.array(net.channels_by_layer, dtype=float)
        self.energy = net.sigma.gain * self.channels[0]
        self.variances = np.append(1.0 / (net.sigma.gain * self.channels[:-1]), net.head_variance)
        self._outputs = float(net.outputs)

    def from_below(self, *moments: str, last: int | None = None, rows: int | None = None) -> dict[Moment, Array]:
        """The named moments, and further ones that they need, at layers 1 .. ``last`` (or L); the first ``rows`` alone.

        All of one degree: others grow so much faster or slower with depth that one float cannot scale them together.
        """
        recursion = derive(*moments, activation=self.activation)
        start = recursion.first_layer(self.channels[1], self.variances[0], self.energy)
        return self.carried(recursion, start, 1, len(self.channels) - 1 if last is None else last, rows)

    def carried(
        self, recursion: Recursion, start: Array, first: int, last: int, rows: int | None = None
    ) -> dict[Moment, Array]:
        """The recursion's first ``rows`` moments (or all) from layer ``first`` to layer ``last``, both included."""
        logs = recursion.log_moments(start, self.channels[first + 1 : last + 1], self.variances[first:last], rows)
        return dict(zip(recursion.moments[:rows], logs.T, strict=True))

    def gram_from_above(self) -> Array:
        """a1, a2 of the layer above each of 1 .. L (the outputs for L), after that layer's gate: (L, 2)."""
        recursion = derive(*GRAM_MOMENTS, activation=self.activation, direction="down")
        # (tr I)^2, the first moment, is the square of tr I^2 and of the sum of squared diagonal elements.
        start = np.array([self._outputs ** (2 if place == 0 else 1) for place in range(len(recursion.moments))])
        widths, variances = self.channels[:1:-1], self.variances[:1:-1]
        return recursion.log_moments(start, widths, variances, len(GRAM_MOMENTS))[::-1]

    def output_term(self, below: Array, above: Array) -> Array:
        """log E A_l = log E z' S Theta^2 S z / (M^2 n) from P1, P2, P3 and a1, a2.

        S is averaged over the matrix just above layer l and, for ReLU, over the gate there (docs/theory.md section 4).
        """
        p1, p2, p3 = below.T
        a1, a2 = above.T
        if self.activation == "relu":
            both = np.logaddexp(a1, a2) + np.logaddexp(p1, p2)
            total = np.logaddexp(both, a2 + np.logaddexp(p3, p2)) - np.log(4.0)
        else:
            total = np.logaddexp(np.logaddexp(a1, a2) + p1, a2 + p3)
        top = len(self.channels) - len(below)
        return np.asarray(total + np.log(self.variances[top:] ** 2 / (self._outputs**2 * self.channels[top:])))


FEATURES = "z_i z_i z_j z_j"
CARRIED = "u_i u_i z_j z_j"
SQUARED = "u_i v_i u_j v_j"
LENGTHS = "u_i u_i v_j v_j"
LENGTH = "u_i u_i"


@dataclass(frozen=True)
class OverlapMoments:
    """E T_h, and logarithms of E T_h^2 and of E Var(T_h | layers below h), for h = 1 .. L.

    NaN below the upper direction's layer, and the variance also at it, where the overlap begins.
    """

    mean: Array
    log_square: Array
    log_variance: Array


def pair_moments(net: Sequential, pair: DirectionPair) -> OverlapMoments:
    """The moments of one pair's overlap at every layer.

    Given the layers below, T_h averages n_h independent products, so Var(T_h | below) = s^2 (e + b) / n_h with
    b = <Du, Dv>^2, e = |Du|^2 |Dv|^2 of the gated tangents below and s the weights' variance: Lemma 5, exactly.
    """
    chain, ((low, unit), (high, unit_above)) = _PairChain(net), sorted(pair)
    is_same = (low, unit) == (high, unit_above)
    start = chain.born(low, is_same) if low == high else chain.met(low, high)
    moments = chain.from_state(SQUARED, start, high, net.depth)
    widths, result = chain.channels, OverlapMoments(*np.full((3, net.depth), np.nan))
    result.mean[high - 1 :] = net.sigma.gain * widths[low - 1] / widths[low] if is_same else 0.0
    if low < high:
        result.mean[high:] = _mean_across_layers(net, low, high)
    result.log_square[high - 1 :] = moments[parse_moment(SQUARED)] - 2 * np.log(widths[high:])
    both = np.logaddexp(chain.gated(moments, SQUARED), chain.gated(moments, LENGTHS))[:-1]
    result.log_variance[high:] = both + 2 * np.log(chain.variances[high:-1]) - np.log(widths[high + 1 :])
    return result


def _mean_across_layers(net: Sequential, low: int, high: int) -> float:
    """E T_h above the layer of the upper direction, for two of different layers: 1/(pi n) for ReLU, and not 0.

    The upper direction's tangent v = |x| e_a has no random sign, so <u, v> = u_a |x| has mean zero only until the gate
    of unit a opens where z_a > 0. Given the layer below, u_a and z_a are Gaussian with covariance s <Du, x>, so that
    E[D u_a |x|] = sqrt(s / 2 pi) <Du, x>; and E<Du, x>, in turn sqrt(s / 2 pi) E|x|^2 at the lower direction's layer,
    is conserved in between.
    """
    if net.activation == "linear":
        return 0.0
    widths = net.channels_by_layer
    fan_ins = widths[low - 1] * widths[high - 1]
    return float(np.sqrt(fan_ins) / (2 * np.pi * net.sigma.gain * widths[low] * widths[high]))


class _PairChain(PlainChain):
    """States of two directions along one net: the logarithm of each moment, at one layer or at several."""

    def born(self, layer: int, is_same: bool) -> dict[Moment, Array]:
        """Two directions of one layer: |u|^2 |v|^2 = |x|^4; so is <u, v>^2 for one unit, and 0 for two."""
        log_energy = self._fourth_moment_of_features(layer)
        overlap = log_energy if is_same else np.array(-np.inf)
        return _named({SQUARED: overlap, LENGTHS: log_energy, "u_i u_i v_i v_i": overlap})

    def met(self, low: int, high: int) -> dict[Moment, Array]:
        """The lower direction where the upper one begins: there u is Gaussian given the layer below, and v = |x| e_a.

        At its own layer u = |x| e_a, and the pre-activations z are Gaussian of variance s |x|^2.
        """
        log_energy, variance = self._fourth_moment_of_features(low), np.log(self.variances[low - 1])
        own = {"u_i z_i u_j z_j": variance, "u_i u_i z_i z_i": variance, CARRIED: variance + np.log(self.channels[low])}
        start = {moment: log + log_energy for moment, log in _named(own).items()}
        state = self.from_state(CARRIED, start, low, high - 1)
        square = self.gated(state, CARRIED)[-1] + np.log(self.variances[high - 1])
        return _named({SQUARED: square, LENGTHS: square + np.log(self.channels[high]), "u_i u_i v_i v_i": square})

    def from_state(self, moment: str, start: Mapping[Moment, Array], first: int, last: int) -> dict[Moment, Array]:
        """A state at layer ``first`` carried to the layers ``first`` .. ``last``."""
        recursion = derive(moment, activation=self.activation)
        logs = np.array([float(start[m]) for m in recursion.moments])
        carried = self.carried(recursion, np.exp(logs - logs.max()), first, last)
        return {moment: log + logs.max() for moment, log in carried.items()}

    def gated(self, state: Mapping[Moment, Array], moment: str) -> Array:
        """The moment after the gates."""
        average = gate_average(parse_moment(moment), self.activation)
        return np.asarray(logsumexp([state[m] + np.log(float(weight)) for m, weight in average.items()], axis=0))

    def _fourth_moment_of_features(self, layer: int) -> Array:
        """log E |x|^4 below a layer."""
        if layer == 1:
            return np.array(2 * np.log(self.energy))
        return np.asarray(self.gated(self.from_below(FEATURES, last=layer - 1), FEATURES)[-1])


def _named(values: Mapping[str, Array]) -> dict[Moment, Array]:
    return {parse_moment(text): value for text, value in values.items()}


def exact_residual_terms(net: Residual) -> ExactTerms:
    """Overlap energy, label term and output term at the end of every depth unit, for labels of variance 1."""
    backbone = _Backbone(net)
    overlap = backbone.moments_from_below(OVERLAP)[:, 0] - 2 * np.log(backbone.width)
    length = backbone.to_outputs((LENGTH,), LENGTH)
    label = length + overlap + np.log(backbone.width / backbone.outputs**2)
    return ExactTerms(overlap, label, backbone.output_term())


class _Backbone:
    """The recursions along one net: runs of equal depth units from below, each with the values of its variables.

    Those are n, s of a plain layer and n, s, beta of a block.
    """

    def __init__(self, net: Residual) -> None:
        *variances, _ = net.weight_variances
        self.width, self.outputs = float(net.channels_by_layer[-1]), float(net.outputs)
        self._input_width = float(net.channels_by_layer[0])
        self._block_depth = net.block_depth
        above_blocks = len(variances) - net.tail
        block = (self.width, variances[net.stem], net.multiplier**2)
        units: list[tuple[float, ...]] = [(self.width, s) for s in variances[: net.stem]]
        units += [block] * net.blocks + [(self.width, s) for s in variances[above_blocks:]]
        self._kinds, lengths = zip(*((values, len(list(run))) for values, run in groupby(units)), strict=True)
        self._which = np.repeat(np.arange(len(lengths)), lengths)
        self._head = (self.outputs, net.head_variance)

    def moments_from_below(self, *moments: str) -> Array:
        """Logs of moments of one degree (`PlainChain.from_below`) at the end of every depth unit: (units, moments).

        The input is a given vector under a vanishing kernel; |x|^2 is its width.
        """
        plain, block = self._recursions(moments)
        start = plain.of_input(self._input_width)
        return np.asarray(iterate(self._matrices(plain, block), self._which, start, np.arange(len(moments)))[1:])

    def to_outputs(self, moments: tuple[str, ...], wanted: str) -> Array:
        """Log of a moment at the outputs, from every depth unit where the last of ``moments`` is 1 and others 0."""
        plain, block = self._recursions(moments)
        steps = np.concatenate([self._matrices(plain, block), plain.matrix(*self._head)[None]]).transpose(0, 2, 1)
        which = np.append(self._which, len(steps) - 1)[:0:-1]
        start = np.eye(len(moments))[moments.index(wanted)]
        return np.asarray(iterate(np.ascontiguousarray(steps), which, start, np.array([len(moments) - 1]))[:0:-1, 0])

    def output_term(self) -> Array:
        """log E A_l, of M^2 n A_l = E z' S Theta^2 S z."""
        through_gram, _, beside_gram = OUTPUT_MOMENTS
        p1, p3 = self.moments_from_below(through_gram, beside_gram).T
        alpha, gamma = (self.to_outputs((SQUARED, LENGTHS), wanted) for wanted in (LENGTHS, SQUARED))
        total = np.logaddexp(np.logaddexp(alpha, gamma) + p1, gamma + p3)
        return np.asarray(total - np.log(self.outputs**2 * self.width))

    def _recursions(self, moments: tuple[str, ...]) -> tuple[Recursion, Recursion]:
        """The recursions of plain layers and of blocks, on one set of moments."""
        plain, block = derive_together(moments, DepthUnit("linear"), DepthUnit("linear", block_depth=self._block_depth))
        return plain, block

    def _matrices(self, plain: Recursion, block: Recursion) -> Array:
        kinds = [(plain if len(values) == len(plain.variables) else block).matrix(*values) for values in self._kinds]
        return np.array(kinds)


ENERGIES = ("update_energy", "label_term", "output_term", "overlap_energy")
# A scan has these at finite width alone; of one net, `predict` has them in the limit of many channels, too.
EXACT_ALONE = ("update_energy", "output_term")
LAYERS = ("last", "mean")

# Ratio of the two depths between which a local slope is taken.
STEP = 1.1


@takes(Sequential)
def energies_by_depth(net: Sequential, depths: Sequence[int]) -> xr.Dataset:
    """Energies of the last layer and their mean over layers, for nets of these depths, exact and in two limits.

    Returns:
        ``log_energy`` (energy, layers, net_depth): exact; energy names a registry quantity, layers is "last" or "mean".
        ``log_energy_mean_field`` and ``log_energy_law``: the same of the limit of many channels and of the papers' sum
        of minima set at layer 1; missing for the energies of ``EXACT_ALONE``.

    Source: docs/theory.md sections 3, 4, 6; Zhang et al. 2026, eqs. 9, 22, 23.
    """
    deepest = net.replace(depth=max(depths))
    layer, first = np.arange(1, deepest.depth + 1), single_site_overlap(1, net.activation)
    columns = {
        "exact at finite width": [_energy_rows(terms) for terms in exact_terms_by_depth(deepest, depths)],
        "mean field": _rows_of_overlap(net, depths, single_site_overlap(layer, net.activation)),
        "law of the papers": _rows_of_overlap(net, depths, first * sum_of_minima(np.ones(deepest.depth))),
    }
    dims, names = ("net_depth", "energy", "layers"), ("log_energy", "log_energy_mean_field", "log_energy_law")
    variables = {
        name: (dims, rows, {"long_name": f"natural logarithm of an energy, {level}", "units": "1"})
        for name, (level, rows) in zip(names, columns.items(), strict=True)
    }
    return xr.Dataset(variables, {"net_depth": list(depths), "energy": list(ENERGIES), "layers": list(LAYERS)})


def _rows_of_overlap(net: Sequential, depths: Sequence[int], overlap_over_width: Array) -> list[Array]:
    """(energy, last and mean) by depth where the label term is the overlap energy times a constant."""
    overlap = np.log(overlap_over_width * net.channels_by_layer[-1])
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    label, left_out = overlap + np.log(gamma / net.outputs), np.full_like(overlap, np.nan)
    by_layer = np.array([left_out, label, left_out, overlap])
    return [_last_and_mean(by_layer[:, :depth]) for depth in depths]


def _energy_rows(terms: ExactTerms) -> Array:
    """(energy, last and mean) of one net."""
    update = np.logaddexp(terms.label_term, terms.output_term)
    return _last_and_mean(np.array([update, terms.label_term, terms.output_term, terms.overlap_energy]))


def _last_and_mean(by_layer: Array) -> Array:
    return np.stack([by_layer[:, -1], logsumexp(by_layer, axis=1) - np.log(by_layer.shape[1])], axis=1)


@takes(Sequential)
def finite_width_excess(
    net: Sequential, widths: Sequence[int], shares: Sequence[float], layers: Sequence[int]
) -> xr.Dataset:
    """F_l over its leading order, less 1: at l/n (``excess_at_share``) and at fixed l (``excess_at_layer``), by width.

    Source: docs/theory.md section 3.
    """
    at_share, at_layer = [], []
    for width in widths:
        places = np.array([round(width * share) for share in shares])
        depth = max(places.max(), *layers)
        overlap = overlap_energies(net.replace(depth=int(depth), width=width))
        leading = np.log(width * single_site_overlap(np.arange(1, depth + 1), net.activation))
        excess = np.expm1(overlap - leading)
        at_share.append(excess[places - 1])
        at_layer.append(excess[np.array(layers) - 1])
    label = {"long_name": "relative excess of the overlap energy over its leading order in 1/n", "units": "1"}
    return xr.Dataset(
        {
            "excess_at_share": (("width", "depth_over_width"), at_share, label),
            "excess_at_layer": (("width", "fixed_layer"), at_layer, label),
        },
        {"width": list(widths), "depth_over_width": list(shares), "fixed_layer": list(layers)},
    )


@takes(Sequential)
def output_share(net: Sequential, heads: Sequence[str], outputs: Sequence[int], depths: Sequence[int]) -> xr.Dataset:
    """The output term over the label term at the last layer, and the local slope of eta*, by head, outputs, depth.

    Returns:
        ``log_output_over_label`` and ``scale_slope`` = d ln eta* / d ln L, both (head, outputs, share_depth).

    Source: docs/theory.md section 4, against Zhang et al. 2026, eq. 21.
    """
    steps = [round(STEP * depth) for depth in depths]
    grown = np.log(np.array(steps) / np.array(depths))
    ratio, slope = (np.empty((len(heads), len(outputs), len(depths))) for _ in range(2))
    for place in np.ndindex(ratio.shape[:2]):
        cut = net.replace(depth=max(steps), head=heads[place[0]], outputs=outputs[place[1]])
        rows = np.array([_energy_rows(terms) for terms in exact_terms_by_depth(cut, [*depths, *steps])])
        last, scale = rows[: len(depths), :, 0], -0.5 * rows[:, 0, 1]
        ratio[place] = last[:, ENERGIES.index("output_term")] - last[:, ENERGIES.index("label_term")]
        slope[place] = (scale[len(depths) :] - scale[: len(depths)]) / grown
    dims = ("head", "outputs", "share_depth")
    return xr.Dataset(
        {
            "log_output_over_label": (
                dims,
                ratio,
                {"long_name": "natural logarithm of output over label term at the last layer", "units": "1"},
            ),
            "scale_slope": (
                dims,
                slope,
                {"long_name": "local slope of the learning-rate scale in depth", "units": "1"},
            ),
        },
        {"head": list(heads), "outputs": list(outputs), "share_depth": list(depths)},
    )
