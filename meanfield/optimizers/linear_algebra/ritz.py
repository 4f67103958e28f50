"""Largest singular values of W + L C R^T for one matrix W and many small C, out of one growing space of vectors."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dsyevd

from meanfield.common.arrays import Array
from meanfield.optimizers.linear_algebra.factored import thin_qr

# Vectors that a space starts from and passes on: near the edge of a wide matrix several may take turns as the largest.
KEPT = 6
# Ritz vectors whose residuals join the space at a time, the largest and its nearest rival: of
# the largest alone the space could stop short of a singular value that a step has lifted above it.
JOINING = 2
# What is left of a vector once the space is taken out of it, relative to it, that is rounding.
DEPENDENT = 1e-10
# Vectors that a space has room for at first.
ROOM = 24
SMALLEST = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Top:
    """The largest singular value of W + L C R^T, its vectors u and v, and what L and R see of them, L^T u and R^T v."""

    value: float
    u: Array
    v: Array
    left: Array
    right: Array


class RitzSpace:
    """Right vectors V with W V, in which the top of W + L C R^T is sought for one small C after another.

    L C R^T adds algebra of small matrices only. The residual of a candidate takes a product with W; it joins the space
    as long as the top is not known to the tolerance. The next C, near the last, needs few vectors more. A guess must
    come close to every vector that may become the top: directions orthogonal to it, to L and to R are not searched.

    Attributes:
        left, right: L (n_out, a) and R (n_in, b), orthonormal columns; `admit` adds to them.
    """

    def __init__(self, matrix: Array, left: Array, right: Array, guess: Array | None = None) -> None:
        self.left, self.right, self._matrix = left, right, matrix
        outputs, inputs = matrix.shape
        # Rows of V^T and (W V)^T, with room for more; of small ones (W V)^T W V, L^T W V and R^T V.
        self._known, self._basis, self._images = 0, np.empty((ROOM, inputs)), np.empty((ROOM, outputs))
        self._squares = np.empty((0, 0))
        self._seen_left, self._seen_right = np.empty((left.shape[1], 0)), np.empty((right.shape[1], 0))
        # Without a guess, vectors without symmetry: signs may add up to exactly zero against a vector of ones.
        self._grow(np.cos(np.arange(inputs * KEPT) ** 2.0 + 1).reshape(inputs, KEPT).T if guess is None else guess)
        self._vectors = np.eye(self._known)[:, -KEPT:]

    @property
    def guess(self) -> Array:
        """What a space for a neighbouring matrix may start from: the Ritz vectors that were found last, as rows."""
        return self._vectors.T @ self._basis[: len(self._vectors)]

    def top(self, core: Array, tolerance: float) -> Top:
        """The largest singular triple for C = core, its square to the relative tolerance."""
        while True:
            turned = core @ self._seen_right
            cross = self._seen_left.T @ turned
            squares, vectors = eigen(self._squares + cross + cross.T + turned.T @ turned)
            top, residual = self._found(vectors[:, -1], squares[-1], turned, core)
            settled = _settled(squares, _length(residual), tolerance)
            if not settled:
                others = range(2, 1 + min(JOINING, len(squares)))
                rest = [self._found(vectors[:, -i], squares[-i], turned, core)[1] for i in others]
                settled = not self._grow(np.stack([residual, *rest]))
            if settled:
                self._vectors = vectors[:, -KEPT:]
                return top

    def _found(self, chosen: Array, square: float, turned: Array, core: Array) -> tuple[Top, Array]:
        """One Ritz vector, and its residual: (W + L C R^T)^T of its image minus the eigenvalue times the vector."""
        moved, known = turned @ chosen, slice(self._known)
        image, v = chosen @ self._images[known] + self.left @ moved, chosen @ self._basis[known]
        seen = self._seen_left @ chosen + moved
        residual = image @ self._matrix + self.right @ (seen @ core) - square * v
        value = _length(image)
        size = max(value, SMALLEST)
        return Top(value, image / size, v, seen / size, self._seen_right @ chosen), residual

    def admit(self, u: Array, v: Array, least: float) -> None:
        """Add to L and R what of these vectors is outside of them, as a column each, unless it is below ``least``."""
        new, known = (_outside(self.left.T, u), _outside(self.right.T, v)), slice(self._known)
        if _length(new[0]) > least:
            column = _unit(self.left.T, new[0])
            self.left = np.column_stack([self.left, column])
            self._seen_left = np.vstack([self._seen_left, self._images[known] @ column])
        if _length(new[1]) > least:
            column = _unit(self.right.T, new[1])
            self.right = np.column_stack([self.right, column])
            self._seen_right = np.vstack([self._seen_right, self._basis[known] @ column])

    def _grow(self, vectors: Array) -> bool:
        """Add vectors, as rows, the most important first, to the space; False if it holds them already."""
        vectors = vectors / np.maximum(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)), SMALLEST)[:, None]
        held = self._basis[: self._known]
        columns, lengths = thin_qr(_outside(held, _outside(held, vectors)).T)
        rows = columns.T[np.abs(np.diagonal(lengths)) > DEPENDENT]
        if len(rows):
            self._keep(rows, rows @ self._matrix.T)
        return bool(len(rows))

    def _keep(self, rows: Array, images: Array) -> None:
        """Keep new vectors, their images and their products with what is known."""
        before, self._known = self._known, self._known + len(rows)
        if self._known > len(self._basis):
            self._basis, self._images = (np.vstack([rows, np.empty_like(rows)]) for rows in (self._basis, self._images))
        self._basis[before : self._known], self._images[before : self._known] = rows, images
        squares = np.empty((self._known, self._known))
        squares[:before, :before] = self._squares
        squares[before:] = images @ self._images[: self._known].T
        squares[:before, before:] = squares[before:, :before].T
        self._squares = squares
        self._seen_left = np.hstack([self._seen_left, self.left.T @ images.T])
        self._seen_right = np.hstack([self._seen_right, self.right.T @ rows.T])


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a small symmetric matrix."""
    values, vectors, failed = dsyevd(matrix)
    if failed:
        raise np.linalg.LinAlgError("eigenvalues of a small symmetric matrix did not converge")
    return values, vectors


def _settled(squares: Array, residual: float, tolerance: float) -> bool:
    """Whether the largest of these Ritz values is an eigenvalue to the relative tolerance.

    Its error is below the residual, and below the residual's square over the distance to the next eigenvalue (Kato and
    Temple); a quarter of the distance is granted, as the next Ritz value may still rise.
    """
    granted = tolerance * squares[-1]
    gap = squares[-1] - squares[-2] if len(squares) > 1 else 0.0
    return bool(residual <= max(granted, np.sqrt(granted * gap / 4)))


def _length(vector: Array) -> float:
    return float(np.sqrt(vector @ vector))


def _outside(basis: Array, vectors: Array) -> Array:
    """What of vectors, or of rows of them, is orthogonal to the rows of a basis."""
    return vectors - (vectors @ basis.T) @ basis


def _unit(basis: Array, vector: Array) -> Array:
    """A vector outside the basis to rounding, of length one."""
    again = _outside(basis, vector / _length(vector))
    return again / _length(again)
