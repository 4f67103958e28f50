"""The largest singular value of a matrix."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from meanfield.common.arrays import Array
from meanfield.optimizers.linear_algebra.factored import Factored

# Up to this size LAPACK is cheaper than Lanczos, whose steps each visit the whole matrix twice.
DIRECT = 112


def spectral_norm(matrix: Array | Factored, tolerance: float = 1e-7) -> float:
    """Largest singular value of a matrix, to the relative tolerance; of a factored one, to rounding.

    From the Gram matrix of the smaller side: all its eigenvalues by LAPACK, whose search for the largest alone may come
    back with none where several are as large, or, of large matrices, the largest by Lanczos iterations.
    """
    if isinstance(matrix, Factored):
        return matrix.spectral_norm()
    tall = (matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T).astype(float, copy=False)
    size = tall.shape[1]
    if size <= DIRECT:
        square = np.linalg.eigvalsh(tall.T @ tall)[-1]
    else:
        gram = LinearOperator((size, size), matvec=lambda x: tall.T @ (tall @ x), dtype=float)
        # A fixed start without symmetry: signs may add up to exactly zero against a vector of ones.
        start = np.cos(np.arange(size) ** 2 + 1.0)
        (square,) = eigsh(gram, k=1, which="LA", v0=start, tol=tolerance, return_eigenvectors=False)
    return float(np.sqrt(max(square, 0.0)))


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
