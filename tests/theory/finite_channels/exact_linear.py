"""Linear nets with several sites at any number of channels, exactly: second moments close over quadruples of sites.

Over channels, C = mean z_a z_a and T = mean Theta_aa. With G = Tr(C)/k and K = Tr(T)/k + n_0 k G, a layer of n channels
above n_0 maps

    E C C' = E G G' + 2 exchanges / n,   E C T' = E G K' + 2 exchanges / n,   E T T' = E K K' + 2 exchanges / n,

and so on for mean Theta_ab Theta_ab' and mean z_a Theta_ab' z_b.
"""

from itertools import pairwise

import numpy as np

from meanfield.nets.lattice import neighbours


def overlap_energies(net):
    """E F_l for l = 1 .. L."""
    size, table, taps = net.sites, neighbours(net.grid, net.kernel, "circular"), net.taps
    eye, channels = np.eye(size), net.channels_by_layer

    def both_step(moment, groups):
        """Mean over offsets, one for every group of axes that steps together."""
        for group in groups:
            total = 0.0
            for places in table:
                shifted = moment
                for axis in group:
                    shifted = shifted.take(places, axis)
                total = total + shifted
            moment = total / taps
        return moment

    def exchange(covariance):
        """covariance[p, q, p', q'] + covariance[p, q', p', q], by [p, p', q, q']."""
        return covariance.transpose(0, 2, 1, 3) + covariance.transpose(0, 2, 3, 1)

    white = np.einsum("pr,qs->prqs", eye, eye)
    cc = white + exchange(white) / channels[0]  # of [p, p', q, q']
    ct = tt = theta2 = ztz = np.zeros_like(white)
    energies = []
    for below, above in pairwise(channels):
        own, pairs = below * taps, ((0, 1), (2, 3))
        gg, g_t, t_t = (both_step(moment, pairs) for moment in (cc, ct, tt))
        gk = own * gg + g_t
        kk = own**2 * gg + own * (g_t + g_t.transpose(2, 3, 0, 1)) + t_t
        crossed = both_step(theta2, ((0, 2), (1, 3)))
        swapped = crossed.transpose(0, 1, 3, 2)
        driven = both_step(ztz, ((0, 1), (2, 3)))  # z(p) Theta(q, q') z(p') by [p, q, q', p']
        along = driven.transpose(0, 3, 1, 2)  # by [p, p', q, q']
        cc = gg + exchange(gg) / above
        ct = gk + (along + along.transpose(1, 0, 2, 3)) / above
        tt = kk + (crossed + swapped) / above
        theta2 = crossed + (kk + swapped) / above
        rest = (gk + along.transpose(1, 0, 2, 3)).transpose(0, 2, 3, 1)
        ztz = driven + rest / above
        energies.append(np.einsum("prpr->", theta2) / size**2)
    return np.array(energies)
