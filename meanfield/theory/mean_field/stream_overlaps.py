"""Mean overlap of two parameter directions at leading order in 1/width, with skip connections or without.

Where gates are independent of tangents the mean overlap grows by a fixed factor per depth unit (Zhang et al. 2026, eq.
35; equations below are of that paper). They are not, quite: a tangent u that was moved by a row W_b shares it with z_b,
and so with the gate of unit b. A second direction v that still sits at unit b, where it began, meets u there behind
that very gate, so that for ReLU

    epsilon = E T~ - q E T = |v| E[sigma'(z_b) u_b] / n = |v| Cov(u_b, z_b) / (n sqrt(2 pi Var z_b)).

Units at which neither began add nothing: there (z, u, v) is as likely as (-z, -u, -v). In plain nets v leaves after
one layer, and the mean of two directions of different layers steps once, from 0 to 1/(2 pi q n). On a stream both stay
where they began for ever. Two directions of one unit then overlap like a direction with itself, in whatever blocks they
begin; for two units epsilon grows block by block, even if both begin in one block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.common.validation import Array, require_choice, takes
from meanfield.nets.directions import DirectionPair, UnitShares, unit_shares
from meanfield.nets.layered import Sequential

# Activations whose gates, on a stream, have mean square q whatever its size, and of which epsilon is known.
FOLLOWED = ("relu", "linear")


@dataclass(frozen=True)
class MeanOverlap:
    """The mean overlap by depth unit, NaN below the upper direction's: E T, epsilon = E T~ - q E T, and the scale that
    both have.

    ``scale`` is the overlap of the two directions were they one, with the growth by gates that average to q; epsilon is
    of order scale / n. ``on_one_unit``: E T is the scale, at leading order, and epsilon is not computed (NaN).
    """

    mean: Array
    deviation: Array
    scale: Array
    on_one_unit: bool


@takes(Sequential)
def mean_overlap(net: Sequential, pair: DirectionPair) -> MeanOverlap:
    """Eqs. 34, 35 with epsilon filled in, E T' = (kept + carried) E T + (carried / q) epsilon, for one input.

    Raises:
        ValueError: an activation other than relu and linear.
    """
    require_choice("activation of a net whose overlaps are followed", net.activation, FOLLOWED)
    (low, unit), (high, unit_above) = sorted(pair)
    shares = unit_shares(net)
    on_one_unit = unit == unit_above and all(share.kept for share in shares[low:high])
    widths = np.array(net.channels_by_layer)[[*net.unit_ends]]
    begun = np.sqrt(_energy_at_birth(net, low) * _energy_at_birth(net, high)) / widths[high - 1 :]
    (mean, deviation), scale = np.full((2, len(shares)), np.nan), begun[0] * growth_since_birth(net, pair)
    if on_one_unit:
        return MeanOverlap(scale, deviation, scale, on_one_unit)
    (first, first_stays), (second, second_stays) = (_met_gates(net, layer) for layer in (low, high))
    deviation[high - 1 :] = begun * (first * second_stays + second * first_stays)[high - 1 :]
    mean[high - 1] = 0.0
    for place, (kept, carried) in enumerate(shares[high:], start=high):
        mean[place] = (kept + carried) * mean[place - 1] + carried / net.sigma.gain * deviation[place - 1]
    return MeanOverlap(mean, deviation, scale, on_one_unit)


def growth_since_birth(net: Sequential, pair: DirectionPair, gate_average: float = 1.0) -> Array:
    """The factor r that the mean overlap has grown by (eq. 35), by depth unit; NaN below the pair's upper direction.

    ``gate_average`` is the mean of a squared gate over q: 1 as the paper has it, 1/q if gates were always open.
    """
    return _grown(net, pair, lambda share: np.log(share.kept + gate_average * share.carried))


def growth_bound(net: Sequential, pair: DirectionPair) -> Array:
    """The bound e^(c q blocks / K) on r (appendix C.1), by depth unit; NaN below the pair's upper direction."""
    return _grown(net, pair, lambda share: share.kept * share.carried)


def _grown(net: Sequential, pair: DirectionPair, log_growth: Callable[[UnitShares], float]) -> Array:
    start, shares = max(layer for layer, _ in pair), unit_shares(net)
    return np.concatenate(
        [np.full(start - 1, np.nan), np.exp(np.cumsum([0.0, *(log_growth(share) for share in shares[start:])]))]
    )


def _variances(net: Sequential) -> Array:
    """Var z of a unit's input, then at the end of every depth unit: a normalised input has 1."""
    return np.asarray(np.cumprod([1.0, *(share.kept + share.carried for share in unit_shares(net))]))


def _energy_at_birth(net: Sequential, layer: int) -> float:
    """E|u|^2 where a direction begins, a^2 E|x|^2, x the features of the last matrix behind the others of its unit."""
    end = net.unit_ends[layer - 1]
    features = net.sigma.gain * net.channels_by_layer[end - 1] * _variances(net)[layer - 1]
    return features * unit_shares(net)[layer - 1].carried / net.layers[end - 1].variance_factor


def _met_gates(net: Sequential, layer: int) -> tuple[Array, Array]:
    """By depth unit, of a tangent u of length 1 that begins at ``layer``: E[sigma'(z_b)^2 u_b] at a unit b that it did
    not begin at, and whether it still sits where it began (1 or 0).

    With C = E[z_b u_b], one for all b, and P = E<sigma(z), u> = q n C + stays sqrt(Var z / 2 pi), a depth unit maps
    C to kept C + carried P / (q n). E[sigma'(z_b) u_b] = C / sqrt(2 pi Var z); without gates it is E u_b = 0.
    """
    shares, variances = unit_shares(net), _variances(net)[1:]
    widths, gain = np.array(net.channels_by_layer)[[*net.unit_ends]], net.sigma.gain
    met, stays = np.zeros((2, len(shares)))
    stays[layer - 1], shared = 1.0, 0.0
    if net.activation == "linear":
        return met, stays
    for place in range(layer, len(shares)):
        kept, carried = shares[place]
        count = gain * widths[place - 1]
        passed = count * shared + stays[place - 1] * np.sqrt(variances[place - 1] / (2 * np.pi))
        shared = kept * shared + carried * passed / count
        stays[place] = kept * stays[place - 1]
        met[place] = shared / np.sqrt(2 * np.pi * variances[place])
    return met, stays
