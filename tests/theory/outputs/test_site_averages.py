"""Averages over several sites, against drawn Gaussians."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.activations import RELU
from meanfield.theory.mean_field.label_term import LayerAverages
from meanfield.theory.mean_field.output_term import OWN, SIBLING, ConvolutionDrive, PooledDrive, SiteSums
from meanfield.theory.two_points import EveryPair, Exchangeable
from tests.statistics import consistent
from tests.theory.outputs.naive import three_sites

SAMPLES = 400_000


def _gaussians(covariance, seed):
    root = np.linalg.cholesky(covariance)
    return np.random.default_rng(seed).normal(size=(SAMPLES, len(root))) @ root.T


def _agrees(samples, predicted, allowance=0.0):
    stderr = samples.std(axis=0) / len(samples) ** 0.5
    return consistent(samples.mean(axis=0) - predicted, stderr + 1e-12, len(samples), allowance)


COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 2.0, 0.5], [-0.3, 0.5, 0.7]])


def test_three_sites():
    z = _gaussians(COVARIANCE, 1)
    on, feature = z > 0, np.maximum(z, 0)
    first, both, all_on = three_sites(COVARIANCE, "relu")
    a, b, c = 0, 1, 2
    for drawn, predicted in (
        (on[:, a] * z[:, b] * feature[:, c], first[a, b, c]),
        (on[:, a] * feature[:, b] * feature[:, c], both[a, b, c]),
        (on[:, b] * feature[:, b] * feature[:, c], both[b, b, c]),
        (on[:, a] * feature[:, b] ** 2, both[a, b, b]),
        (on[:, a] * on[:, b] * on[:, c], all_on[a, b, c]),
    ):
        assert _agrees(drawn, predicted)
        assert not _agrees(drawn, 1.1 * predicted)


def test_sums_over_three_sites_are_products_of_matrices():
    """Also where sites are the same, or opposite, where conditional Gaussians divide zero by zero."""
    covariance = np.array(
        [[1.0, 0.6, 2.0, -1.0], [0.6, 2.0, 1.2, -0.6], [2.0, 1.2, 4.0, -2.0], [-1.0, -0.6, -2.0, 1.0]]
    )
    net = mf.ConvNet(depth=1, channels=1, grid=(4,), padding="zero")
    points = EveryPair(net)
    layer = LayerAverages.at(net, points, covariance)
    rng = np.random.default_rng(0)
    kernel, slope, along = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), rng.normal(size=(4, 1))
    change = ConvolutionDrive(net, points).change(layer, along, kernel, slope @ covariance)
    first, both, _ = three_sites(covariance, "relu")
    weight = kernel * along.T
    pairs = np.einsum("pr,prs->ps", slope, first) + np.einsum("pr,prs->ps", weight, both)
    np.testing.assert_allclose(change.gated_with_features, pairs, atol=1e-7)
    energy = 2 * np.einsum("pr,ps,prs->p", slope, weight, first) + np.einsum("pr,ps,prs->p", weight, weight, both)
    np.testing.assert_allclose(change.gated_energy[:, 0], energy, atol=1e-7)


# Two samples of three sites, with numbers of the size that layers have.
NET, POINTS = mf.ConvNet(depth=1, channels=1, grid=(3,), inputs=2), Exchangeable(2, 3)
ALIKE, ALONG = np.array([1.0, 0.3, 0.3, 0.3]), np.array([1.0, 0.6, 0.0, 0.0])
KERNEL, WITH_Z = np.array([1.0, 0.4, 0.3, 0.3]), np.array([0.9, 0.5, 0.2, 0.2])
DRIVE, LAYER = PooledDrive(NET, POINTS), LayerAverages.at(NET, POINTS, ALIKE)


def _full(pairs, inputs=2, sites=3):
    own, other = (first * np.eye(sites) + second * (1 - np.eye(sites)) for first, second in pairs.reshape(2, 2))
    return np.kron(np.eye(inputs), own) + np.kron(1 - np.eye(inputs), other)


@pytest.fixture(scope="module")
def drawn():
    """z, s' H, m + w and m under a pooled readout."""
    z = _gaussians(_full(ALIKE), 2)
    driven = (z > 0) * (np.maximum(z, 0) @ _full(ALONG))
    along_z = z @ np.linalg.solve(_full(ALIKE), _full(WITH_Z))
    return z, driven, along_z + driven @ _full(KERNEL), along_z


# A point, another of its sample, its own site in the other sample, another one there.
CLASSES = [0, 1, 3, 4]


def test_what_is_driven_under_pooling(drawn):
    driven = drawn[1]
    square = DRIVE.square(LAYER, ALONG)
    assert _agrees(driven[:, [0]] * driven[:, CLASSES], square)
    assert not _agrees(driven[:, [0]] * driven[:, CLASSES], square * 1.05)


def test_its_response_under_pooling(drawn):
    """E[s' H z] = E[d(s' H)/dz] c, the gates' opening included."""
    z, driven, *_ = drawn
    assert _agrees(driven[:, [0]] * z[:, CLASSES], POINTS.product(DRIVE.below(LAYER, ALONG), ALIKE))
    assert not _agrees(driven[:, [0]] * z[:, CLASSES], POINTS.product(ALONG * LAYER.gate, ALIKE))


def test_change_under_pooling(drawn):
    z, _, whole, along_z = drawn
    change = DRIVE.change(LAYER, ALONG, KERNEL, WITH_Z)
    on, feature = z > 0, np.maximum(z, 0)
    assert _agrees(whole[:, 0] ** 2 - along_z[:, 0] ** 2, change.energy)
    assert _agrees(on[:, 0] * whole[:, 0] ** 2 - along_z[:, 0] ** 2 / 2, change.gated_energy)
    assert _agrees((on * whole)[:, [0]] * feature[:, CLASSES], change.gated_with_features)
    assert not _agrees(whole[:, 0] ** 2 - along_z[:, 0] ** 2, 1.05 * change.energy)


def test_sites_that_are_nearly_one():
    """The integral over what sites share, where it is steepest."""
    near = LayerAverages.at(NET, POINTS, np.array([1.0, *[1 - 1e-6] * 3]))
    square, fused = DRIVE.square(near, ALONG), (1 + 2 * 0.6) ** 2 / 2
    np.testing.assert_allclose(square[:2], fused, rtol=3e-3)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.99, 1 - 1e-5, 1 - 1e-9])
def test_averages_over_two_sites_are_the_closed_forms(correlation):
    sums, covariance = SiteSums(np.array([2.0, 2 * correlation]), 3), np.array(2 * correlation)
    size = np.array(2.0)
    for kind, closed in (("gate", RELU.gate_product), ("feature", RELU.product)):
        own, sibling = (((1.0, ((kind, place),)),) for place in (OWN, SIBLING))
        np.testing.assert_allclose(sums.mean(own, sibling), closed(size, size, covariance), rtol=1e-9)
        np.testing.assert_allclose(sums.mean(own, own), closed(size, size, size), rtol=1e-12)


def test_exchangeable_pairs_are_matrices():
    points, rng = Exchangeable(3, 4), np.random.default_rng(0)
    left, right = rng.normal(size=(2, 4))
    first, second = (_full(pairs, 3, 4) for pairs in (left, right))
    np.testing.assert_allclose(_full(points.product(left, right), 3, 4), first @ second, atol=1e-12)
    np.testing.assert_allclose(_full(points.quotient(left, right), 3, 4), first @ np.linalg.inv(second), atol=1e-12)
    np.testing.assert_allclose(points.contracted(left, right), np.sum(first * second, axis=1)[:1])
