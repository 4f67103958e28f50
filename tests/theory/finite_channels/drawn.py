"""Overlap energies of small convolutional nets, drawn by dense kernels: a road of its own, as slow as it is plain."""

from itertools import pairwise, product

import numpy as np

from meanfield.nets.lattice import OUTSIDE, neighbours


class Nodes:
    """Every combination of the 3 nodes of a Gauss-Hermite rule, dealt like normals: exact up to their fifth powers."""

    def __init__(self, normals):
        self.nodes = np.array(list(product([-(3**0.5), 0.0, 3**0.5], repeat=normals)))
        self.weights = np.prod(np.where(self.nodes == 0, 2 / 3, 1 / 6), axis=1)
        self.dealt = 0

    def standard_normal(self, shape):
        """The next ones."""
        start, self.dealt = self.dealt, self.dealt + np.prod(shape[1:], dtype=int)
        return self.nodes[:, start : self.dealt].reshape(shape)


def mean_overlap_energies(net):
    """E F_l of a linear net exactly, as F_l has fourth powers of every normal: (L,)."""
    below, above = np.array(net.channels_by_layer[:-1]), np.array(net.channels_by_layer[1:])
    rule = Nodes(below[0] * net.sites + net.taps * (below @ above))
    values = overlap_energies(net, len(rule.nodes), rule)[0]
    assert rule.dealt == rule.nodes.shape[1]
    return rule.weights @ values


def overlap_energies(net, draws, rng):
    """F_l of every draw and, beside it, |z|^2 and tr Theta over their means: (draws, L) each."""
    size = net.sites
    table = neighbours(net.grid, net.kernel, net.padding)
    z = rng.standard_normal((draws, net.channels_by_layer[0] * size))
    theta = np.zeros((1, z.shape[1], z.shape[1]))
    layers, energy = [], 0.0
    for below, above in pairwise(net.channels_by_layer):
        gate = (z > 0) if net.activation == "relu" else np.ones_like(z)
        energy = energy + below * net.taps * net.sigma.gain
        x = (gate * z).reshape(draws, below, size)[:, :, table] * (table != OUTSIDE)  # (draws, below, taps, S)
        own = np.einsum("dikp,dikr->dpr", x, x)
        scale = (net.sigma.gain * below * net.taps) ** -0.5
        weights = scale * rng.standard_normal((draws, above, below, net.taps))
        jacobian = np.zeros((draws, above, size, below, size))
        for tap, places in enumerate(table):
            inside = np.flatnonzero(places != OUTSIDE)
            jacobian[:, :, inside, :, places[inside]] += weights[:, :, :, tap]
        jacobian = jacobian.reshape(draws, above * size, below * size)
        z = np.einsum("dab,db->da", jacobian, gate * z)
        jacobian *= gate[:, None]
        theta = jacobian @ theta @ jacobian.transpose(0, 2, 1)
        theta += np.einsum("ac,dpr->dapcr", np.eye(above), own).reshape(theta.shape)
        trace = np.einsum("daa->d", theta)
        square = np.einsum("dab,dab->d", theta, theta)
        count = above * size
        layers.append((square / count**2, (z**2).mean(axis=1), trace / (count * energy)))
    return np.array(layers).transpose(1, 2, 0)
