"""Norms and leading singular values, against those of dense matrices."""

import numpy as np
import pytest

from meanfield.optimizers.linear_algebra import DIRECT, Factored, RitzSpace, rms_operator_norm, spectral_norm


def orthonormal(rng, size, columns):
    return np.linalg.qr(rng.normal(size=(size, columns)))[0]


@pytest.mark.parametrize("shape", [(300, 300), (40, 250), (250, 40), (1, 60), (60, 1), (5, 3)])
def test_tops_are_lapacks(shape):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=shape)
    rank = min(3, *shape)
    space = RitzSpace(matrix, orthonormal(rng, shape[0], rank), orthonormal(rng, shape[1], rank))
    space.admit(rng.normal(size=shape[0]), rng.normal(size=shape[1]), 1e-5)
    for size in (0.0, 1.0, 30.0):
        core = size * rng.normal(size=(space.left.shape[1], space.right.shape[1]))
        whole = matrix + space.left @ core @ space.right.T
        top = space.top(core, 1e-9)
        assert top.value == pytest.approx(np.linalg.norm(whole, 2), rel=1e-9)
        np.testing.assert_allclose(whole @ top.v, top.value * top.u, atol=1e-9 * top.value)
        np.testing.assert_allclose(whole.T @ top.u, top.value * top.v, atol=1e-4 * top.value)
        np.testing.assert_allclose(space.left.T @ top.u, top.left, atol=1e-12)
        np.testing.assert_allclose(space.right.T @ top.v, top.right, atol=1e-12)


def test_a_guess_serves_when_the_order_changes():
    """The top of the old matrix is a singular pair of the new one, but another has been lifted above it."""
    rng = np.random.default_rng(1)
    u, s, vt = np.linalg.svd(rng.normal(size=(200, 200)))
    matrix = u @ np.diag(s) @ vt
    old = RitzSpace(matrix, u[:, 3:4], vt[3:4].T)
    old.top(np.zeros((1, 1)), 1e-9)
    space = RitzSpace(matrix, u[:, 3:4], vt[3:4].T, old.guess)
    lifted = np.full((1, 1), 0.2 * s[0])
    assert space.top(lifted, 1e-6).value == pytest.approx(s[3] + 0.2 * s[0], rel=1e-6)
    assert space.top(0 * lifted, 1e-6).value == pytest.approx(s[0], rel=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (1, 7), (DIRECT + 60, DIRECT + 60), (DIRECT + 20, 2 * DIRECT), (400, 16)])
def test_spectral_norm_is_lapacks(shape):
    rng = np.random.default_rng(0)
    matrix, moved = rng.normal(size=shape), Factored(*(rng.normal(size=(size, 2)) for size in shape))
    largest = np.linalg.svd(matrix, compute_uv=False)[0]
    assert spectral_norm(matrix, tolerance=1e-10) == pytest.approx(largest, rel=1e-10)
    assert spectral_norm(matrix.astype(np.float32)) == pytest.approx(largest, rel=1e-6)
    signs = np.outer(np.ones(shape[0]), np.resize([1.0, -1.0], shape[1]))
    assert spectral_norm(signs) == pytest.approx(np.sqrt(signs.size))
    assert spectral_norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-6)
    assert spectral_norm(moved) == pytest.approx(np.linalg.norm(moved.dense(), 2), rel=1e-12)
    expected = np.sqrt(shape[1] / shape[0]) * np.linalg.norm(matrix, 2)
    assert rms_operator_norm(matrix) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [12, DIRECT, DIRECT + 60])
def test_equal_singular_values_are_no_obstacle(size):
    """As those of polar factors are, to rounding."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        turned, _ = np.linalg.qr(rng.normal(size=(size, size)))
        assert spectral_norm(0.05 * turned) == pytest.approx(0.05, rel=1e-6)
