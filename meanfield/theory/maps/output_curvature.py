"""The largest curvature of a loss at initialisation, at leading order in 1/channels, for given inputs.

Between output channels the tangent kernel is smaller than within one, where it is t(p, p') over pairs of samples and
output sites (`meanfield.theory.maps.value_kernels`). So J J^T H is t x 1 times H. Under squared loss H is 1 / (M B T),
and lambda_max = eig_max(t) / (M B T). Under cross-entropy H = (diag(p) - p p^T) / (B T) at every sample and site, p the
softmax of outputs that are Gaussian of a known covariance between points, alike and independent over channels: the
average over them is taken by drawing them, from one fixed seed. Where outputs are small, p is 1/M and
lambda_max = eig_max(t) / (M B T) again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import softmax

from meanfield.common.arrays import Array
from meanfield.common.seeds import stream
from meanfield.nets.chain import Chain
from meanfield.nets.net import Net
from meanfield.theory.maps.value_kernels import value_kernels

# Outputs that are drawn for the average under cross-entropy; one draw spreads by some 10 to 30 %.
OUTPUT_DRAWS = 256
# Modes of the kernel below this share of its largest are left out; what they hold of lambda_max is less.
SMALLEST_MODE = 1e-9
# Relative residual of an eigenvalue.
TOLERANCE = 1e-6


def mean_field_curvatures(net: Net, inputs: ArrayLike, loss: str) -> Array:
    """lambda_max of J^T H J on a given batch (samples, channels, *grid), for every draw of the outputs.

    One number under squared loss, for which the outputs do not matter.

    Raises:
        NoTransport: nets whose covariance and tangent kernel do not close; a ValueError.
        ValueError: inputs of another shape.
        MemoryError: more pairs of samples and sites than there is room for.
        OverflowError: they leave the range of floats.

    Source: docs/theory.md section 21.
    """
    batch = np.asarray(inputs, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # an error is raised instead
        *_, top = value_kernels(Chain.of(net, inputs=len(batch)), batch)
    points = top.kernel.shape[0] * top.kernel.shape[1]
    kernel, covariance = (pairs.reshape(points, points) for pairs in (top.kernel, top.covariance))
    if not (np.isfinite(kernel).all() and np.isfinite(covariance).all()):
        raise OverflowError("covariance or tangent kernel leave the range of floats; give inputs of the size of 1")
    if loss == "squared":
        largest = eigh(kernel, eigvals_only=True, subset_by_index=[points - 1, points - 1])
        return np.asarray(largest / (net.output_shape[1] * points))
    root = _modes(kernel)
    outputs = _modes(covariance)
    drawn = [
        outputs @ stream(0, "mean-field outputs", draw).standard_normal((outputs.shape[1], net.output_shape[1]))
        for draw in range(OUTPUT_DRAWS)
    ]
    return np.array([_largest(root, softmax(values, axis=1)) for values in drawn]) / points


def _modes(matrix: Array) -> Array:
    """R with R R^T = the matrix, one column for every mode that matters."""
    sizes, vectors = np.linalg.eigh(matrix)
    kept = sizes > SMALLEST_MODE * sizes[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(sizes[kept]))


def _largest(root: Array, shares: Array) -> float:
    """The largest eigenvalue of R^T (diag(p) - p p^T) R over modes and channels, p (points, channels)."""
    modes, channels = root.shape[1], shares.shape[1]

    def product(flat: Array) -> Array:
        weighted = shares * (root @ flat.reshape(modes, channels))
        return np.asarray(root.T @ (weighted - shares * weighted.sum(axis=1, keepdims=True))).ravel()

    size = modes * channels
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    # A fixed start without symmetry: the vector of ones is of no curvature.
    start = np.cos(np.arange(size) ** 2.0 + 1)
    if not product(start).any():  # a softmax of 0 and 1 alone, or a kernel of 0
        return 0.0
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0])
