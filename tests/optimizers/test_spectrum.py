"""Largest singular values against LAPACK's, on both sides of the switch to Lanczos iterations."""

import numpy as np
import pytest

from meanfield.optimizers.linear_algebra import DIRECT, Factored, rms_operator_norm, spectral_norm


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
