"""The largest singular value of a matrix, and the vectors that go with it."""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from meanfield.common.arrays import Array
from meanfield.optimizers.linear_algebra.factored import Factored

# Up to this size LAPACK is cheaper than Lanczos, whose steps each visit the whole matrix twice.
DIRECT = 192


def top_singular(matrix: Array, tolerance: float = 1e-10) -> tuple[Array, float, Array]:
    """(u, s, v) of the largest singular value of a matrix (n_out, n_in), s to the relative tolerance.

    By LAPACK or, in large matrices, by Lanczos iterations on the Gram matrix of the smaller side.
    """
    if matrix.shape[0] < matrix.shape[1]:
        v, s, u = _top_of_tall(matrix.T, tolerance)
        return u, s, v
    return _top_of_tall(matrix, tolerance)


def spectral_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """Largest singular value of a matrix, to the relative tolerance; of a factored one, to rounding."""
    return matrix.spectral_norm() if isinstance(matrix, Factored) else top_singular(matrix, tolerance)[1]


def rms_operator_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """sqrt(n_in / n_out) times the spectral norm: by how much a root mean square over units can grow at most.

    Source: Zheng et al. 2026, section 2.1.
    """
    outputs, inputs = matrix.shape
    return float(np.sqrt(inputs / outputs)) * spectral_norm(matrix, tolerance)


def stable_rank(matrix: Array | Factored, tolerance: float = 1e-4) -> float:
    """|A|_F^2 / |A|_2^2, to the relative tolerance: at most the rank; nan of a matrix that is zero or not finite."""
    if isinstance(matrix, Factored):
        squares = float(np.sum((matrix.left.T @ matrix.left) * (matrix.right.T @ matrix.right)))
    else:
        squares = float(np.sum(np.square(matrix)))
    if not 0 < squares < np.inf:
        return np.nan
    return squares / spectral_norm(matrix, tolerance) ** 2


def _top_of_tall(matrix: Array, tolerance: float) -> tuple[Array, float, Array]:
    size = matrix.shape[1]
    if size <= DIRECT:
        _, vectors = eigh(matrix.T @ matrix, subset_by_index=[size - 1, size - 1])
    else:
        gram = LinearOperator((size, size), matvec=lambda x: matrix.T @ (matrix @ x), dtype=float)
        # A fixed start without symmetry: signs may add up to exactly zero against a vector of ones.
        _, vectors = eigsh(gram, k=1, which="LA", v0=np.cos(np.arange(size) ** 2 + 1.0), tol=tolerance)
    v = vectors[:, 0]
    image = matrix @ v
    s = float(np.linalg.norm(image))
    return image / max(s, float(np.finfo(float).tiny)), s, v
