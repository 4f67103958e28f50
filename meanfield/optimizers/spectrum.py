"""The largest singular value of a matrix, and the vectors that go with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from meanfield.optimizers.factored import Factored

Array = NDArray[np.float64]

# Up to this size LAPACK is cheaper than Lanczos, whose steps each visit the whole matrix twice.
DIRECT = 192


def top_singular(
    matrix: Array, tolerance: float = 1e-10, start: Array | None = None, moved: Factored | None = None
) -> tuple[Array, float, Array]:
    """(u, s, v) of the largest singular value of a matrix (n_out, n_in), s to the relative tolerance.

    By LAPACK or, in large matrices, by Lanczos iterations on the Gram matrix of the smaller side. ``start`` is a guess
    of v, and ``moved`` is added to the matrix.
    """
    if matrix.shape[0] < matrix.shape[1]:
        turned = None if moved is None else Factored(moved.right, moved.left)
        v, s, u = _top_of_tall(matrix.T, tolerance, None, turned)
        return u, s, v
    return _top_of_tall(matrix, tolerance, start, moved)


def spectral_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """Largest singular value of a matrix, to the relative tolerance; of a factored one, to rounding."""
    return matrix.spectral_norm() if isinstance(matrix, Factored) else top_singular(matrix, tolerance)[1]


def rms_operator_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """sqrt(n_in / n_out) times the spectral norm: the most that a root mean square over units can grow by (P1 2.1)."""
    outputs, inputs = matrix.shape
    return float(np.sqrt(inputs / outputs)) * spectral_norm(matrix, tolerance)


def _top_of_tall(
    matrix: Array, tolerance: float, start: Array | None, moved: Factored | None
) -> tuple[Array, float, Array]:
    size = matrix.shape[1]
    if size <= DIRECT:
        matrix, moved = (matrix if moved is None else matrix + moved.dense()), None
        _, vectors = eigh(matrix.T @ matrix, subset_by_index=[size - 1, size - 1])
    else:
        back = None if moved is None else Factored(moved.right, moved.left)

        def gram_times(x: Array) -> Array:
            return _times(matrix.T, back, _times(matrix, moved, x))

        gram = LinearOperator((size, size), matvec=gram_times, dtype=float)
        # A fixed start without symmetry: signs may add up to exactly zero against a vector of ones.
        guess = np.cos(np.arange(size) ** 2 + 1.0) if start is None else start
        _, vectors = eigsh(gram, k=1, which="LA", v0=guess, tol=tolerance)
    v = vectors[:, 0]
    image = _times(matrix, moved, v)
    s = float(np.linalg.norm(image))
    return image / max(s, float(np.finfo(float).tiny)), s, v


def _times(matrix: Array, moved: Factored | None, x: Array) -> Array:
    """(matrix + moved) x."""
    return matrix @ x if moved is None else matrix @ x + moved.left @ (moved.right.T @ x)
