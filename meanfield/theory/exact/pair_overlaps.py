"""Exact second moments of the overlap of two parameter directions, at any width and depth, for one input.

Notation (docs/theory.md section 5; Zhang et al. 2026, eq. 13): u, v are the tangents of z^(h) along two directions of
`meanfield.nets.directions`, T_h = <u, v> / n_h, and x = sigma(z) the features below a direction's own layer. It is
born as u = |x| e_a. The lower of two is carried up to the upper one's layer by moments of |u|^2 |z|^2; from there the
derived recursion of <u, v>^2 carries both. All that a new direction adds is second moments of fresh Gaussian weights.
Everything is kept as a logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from meanfield.common.arrays import Array
from meanfield.nets.directions import Pair
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.closure import derive, gate_average
from meanfield.theory.exact.moments import Moment, parse_moment
from meanfield.theory.exact.plain import PlainChain

FEATURES = "z_i z_i z_j z_j"
CARRIED = "u_i u_i z_j z_j"
SQUARED = "u_i v_i u_j v_j"
LENGTHS = "u_i u_i v_j v_j"


@dataclass(frozen=True)
class PairMoments:
    """E T_h, and logarithms of E T_h^2 and of E Var(T_h | layers below h), for h = 1 .. L.

    NaN below the upper direction's layer, and the variance also at it, where the overlap begins.
    """

    mean: Array
    log_square: Array
    log_variance: Array


def pair_moments(net: Sequential, pair: Pair) -> PairMoments:
    """The moments of one pair's overlap at every layer.

    Given the layers below, T_h averages n_h independent products, so Var(T_h | below) = s^2 (e + b) / n_h with
    b = <Du, Dv>^2, e = |Du|^2 |Dv|^2 of the gated tangents below and s the weights' variance: Lemma 5, exactly.
    """
    chain, ((low, unit), (high, unit_above)) = _PairChain(net), sorted(pair)
    is_same = (low, unit) == (high, unit_above)
    start = chain.born(low, is_same) if low == high else chain.met(low, high)
    moments = chain.from_state(SQUARED, start, high, net.depth)
    widths, result = chain.channels, PairMoments(*np.full((3, net.depth), np.nan))
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
