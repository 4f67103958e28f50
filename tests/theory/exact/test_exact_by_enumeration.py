"""The exact level of ReLU nets of one to three units, against their averages written out: no draw, no allowance.

Under one input the gates of a ReLU net are fair coins, independent of everything else (docs/theory.md section 3). For
given coins an update is a polynomial in the weights, so that Gauss-Hermite quadrature averages its square exactly.
"""

from itertools import pairwise, product

import numpy as np
import pytest

import meanfield as mf

# Nodes that are exact for the degrees of one weight in an update energy: 6 below the readout, 4 in it.
HIDDEN_NODES, READOUT_NODES = 4, 3
NETS = {
    "one unit": mf.MLP(depth=2, width=1, outputs=1, input_width=3),
    "two units": mf.MLP(depth=2, width=2, outputs=1),
    "three units, then one, two outputs": mf.MLP(depth=2, width=(3, 1), outputs=2, head="fan_in"),
    "three layers": mf.MLP(depth=3, width=(1, 2, 1), outputs=1, head="mup"),
}


def _quadrature(counts):
    """All combinations of nodes for so many weights of each kind, (weights, points), and how much each counts."""
    nodes, shares = [], []
    for number, count in counts:
        node, share = np.polynomial.hermite_e.hermegauss(number)
        nodes += [node] * count
        shares += [share / share.sum()] * count
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")])
    weight = np.prod([axis.ravel() for axis in np.meshgrid(*shares, indexing="ij")], axis=0)
    return grid, weight


def _energies(features, weights, readout, coins, error):
    """|Delta z_l|^2 / n_l of every layer after one step, at every point; every array ends in (.., points)."""
    forward = [features]
    for weight, coin in zip(weights, coins, strict=True):
        forward.append(coin[:, None] * np.einsum("ijp,jp->ip", weight, forward[-1]))
    outputs = np.einsum("ijp,jp->ip", readout, forward[-1])
    backward = coins[-1][:, None] * np.einsum("ijp,ip->jp", readout, error(outputs))
    errors = [backward]
    for weight, coin in zip(weights[:0:-1], coins[-2::-1], strict=True):
        errors.insert(0, coin[:, None] * np.einsum("ijp,ip->jp", weight, errors[0]))
    energies, moved = [], np.zeros_like(features)
    for weight, coin, below, arriving in zip(weights, coins, forward[:-1], errors, strict=True):
        change = np.einsum("ijp,jp->ip", weight, moved) - arriving * np.square(below).sum(axis=0)
        energies.append(np.square(change).mean(axis=0))
        moved = coin[:, None] * change
    return np.array(energies)


def _averages(net):
    """Output term and label term of every layer, with the first layer's values as its weights: z_1 is N(0, 1)."""
    sizes, outputs = net.channels_by_layer[1:], net.outputs
    shapes = [(sizes[0], 1), *((above, below) for below, above in pairwise(sizes))]
    counts = [(HIDDEN_NODES, sum(a * b for a, b in shapes)), (READOUT_NODES, outputs * sizes[-1])]
    grid, share = _quadrature(counts)
    energy = net.sigma.gain * net.channels_by_layer[0]
    scales = [energy**-0.5, *((net.sigma.gain * below) ** -0.5 for below in sizes[:-1])]
    cuts = np.cumsum([a * b for a, b in shapes])
    *blocks, last = np.split(grid, cuts)
    weights = [scale * block.reshape(*shape, -1) for block, shape, scale in zip(blocks, shapes, scales, strict=True)]
    readout = net.head_variance**0.5 * last.reshape(outputs, sizes[-1], -1)
    features = np.full((1, grid.shape[1]), energy**0.5)
    patterns = list(product((0.0, 1.0), repeat=sum(sizes)))
    terms = np.zeros((2, net.depth))
    for pattern in patterns:
        coins = np.split(np.array(pattern), np.cumsum(sizes)[:-1])

        def mean(error, coins=coins):
            return _energies(features, weights, readout, coins, error) @ share

        terms[0] += mean(lambda z: z / outputs)
        for label in np.eye(outputs):
            terms[1] += mean(lambda z, label=label: np.broadcast_to(label[:, None] / outputs, z.shape))
    return terms / len(patterns)


@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_output_and_label_terms_are_the_averages(net):
    output_term, label_term = _averages(net)
    predicted = mf.predict(net, level="exact")
    np.testing.assert_allclose(predicted.output_term, output_term, rtol=1e-10)
    np.testing.assert_allclose(predicted.label_term, label_term, rtol=1e-10)
