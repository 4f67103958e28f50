"""Linear nets at any number of channels, exactly: second moments close over four points (docs/theory.md section 20).

Of one layer, at points (samples and sites) p, p', q, q', with means over its rows a and b, these are

    cc = E C(p, p') C(q, q'),   ct = E C(p, p') T(q, q'),   tt = E T(p, p') T(q, q'),   C = mean z_a z_a,
    crossed = E mean Theta_ab(p, p') Theta_ab(q, q'),   T = mean Theta_aa,
    driven = E mean z_a(p) Theta_ab(q, q') z_b(p'), held by p, q, q', p'.

Let Tr(.)/k be the mean over the stencil's k offsets, n the number of rows below, 1/(k n) the variance of weights,
G = Tr(C)/k and K = Tr(T)/k + k n G. The n' rows above have E C C' = E G G' + 2 exchanges / n' and so on: exchanges
are the other ways to pair the four weights of one row.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.finite_channels.every_pair import Pairs


def exact_overlap_energies(net: Sequential) -> Array:
    """E F_l for l = 1 .. L of a linear net by the fan-in rule, with white inputs and circular or no stencils: (L,)."""
    pairs = Pairs(net)
    size = pairs.count
    cc = np.multiply.outer(np.eye(size), np.eye(size))
    cc = cc + _exchanged(cc) / net.channels_by_layer[0]
    ct = tt = crossed = driven = np.zeros_like(cc)

    def carried(moment: Array) -> Array:
        """The first two points step together, and so do the last two."""
        return pairs.carried(moment.reshape(size**2, size**2)).reshape(moment.shape)

    energies = []
    for below, above in pairwise(net.channels_by_layer):
        own = below * net.taps
        gg, gt, kk = carried(cc), carried(ct), carried(tt)
        gk, kk = own * gg + gt, own**2 * gg + own * (gt + gt.transpose(2, 3, 0, 1)) + kk
        apart = carried(crossed.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        swapped = apart.transpose(0, 1, 3, 2)
        driven = carried(driven)
        between = driven.transpose(0, 3, 1, 2)
        cc = gg + _exchanged(gg) / above
        ct = gk + (between + between.transpose(1, 0, 2, 3)) / above
        tt = kk + (apart + swapped) / above
        crossed = apart + (kk + swapped) / above
        driven = driven + (gk + between.transpose(1, 0, 2, 3)).transpose(0, 2, 3, 1) / above
        energies.append(np.einsum("prpr->", crossed) / size**2)
    return np.array(energies)


def _exchanged(covariance: Array) -> Array:
    """What two pairs of points make of one row's second moments: both ways to pair points of one with the other's."""
    return covariance.transpose(0, 2, 1, 3) + covariance.transpose(0, 2, 3, 1)
