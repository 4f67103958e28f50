"""Largest singular values of W + L C R^T for one matrix W and many small C, out of one growing space of vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Vectors that a space starts from and hands on: near the edge of a wide matrix several may take turns as the largest.
KEPT = 6
# Ritz vectors whose residuals join the space at a time, the largest and its nearest rival: of
# the largest alone the space could stop short of a singular value that a step has lifted above it.
JOINING = 2
# What is left of a vector once the space is taken out of it, relative to it, that is rounding.
DEPENDENT = 1e-10
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
    """Right vectors V with W V and W^T W V, in which the top of W + L C R^T is sought for one small C after another.

    What L C R^T adds is small algebra, also in the residual of what is found, which is therefore exact: the matrix is
    visited only where the space does not hold the top to the tolerance. The next C, near the last, needs hardly more.
    A guess must come close to all that may be the top: what is orthogonal to it and to L and R is not looked for.

    Attributes:
        left, right: L (n_out, a) and R (n_in, b), orthonormal columns; `admit` adds to them.
    """

    def __init__(self, matrix: Array, left: Array, right: Array, guess: Array | None = None) -> None:
        self.left, self.right = left, right
        self._matrix, self._pulled = matrix, matrix.T @ left
        outputs, inputs = matrix.shape
        self._basis, self._images, self._grams = np.empty((inputs, 0)), np.empty((outputs, 0)), np.empty((inputs, 0))
        # Without a guess, vectors without symmetry: signs may add up to exactly zero against a vector of ones.
        self._grow(np.cos(np.arange(inputs * KEPT) ** 2.0 + 1).reshape(inputs, KEPT) if guess is None else guess)
        self._ritz = self._basis[:, -KEPT:]

    @property
    def guess(self) -> Array:
        """What a space for a neighbouring matrix may start from: the Ritz vectors that were found last."""
        return self._ritz

    def top(self, core: Array, tolerance: float) -> Top:
        """The largest singular triple for C = core, its square to the relative tolerance."""
        while True:
            turned = core @ (self.right.T @ self._basis)
            images = self._images + self.left @ turned
            squares, vectors = np.linalg.eigh(images.T @ images)
            chosen = vectors[:, -JOINING:]
            image, v = images @ chosen, self._basis @ chosen
            seen = self.left.T @ image
            # (W + L C R^T)^T of the image, less what the eigenvalue makes of v.
            residual = self._grams @ chosen + self._pulled @ (turned @ chosen) + self.right @ (core.T @ seen)
            residual -= v * squares[-JOINING:]
            if _settled(squares, _length(residual[:, -1]), tolerance) or not self._grow(residual[:, ::-1]):
                self._ritz = self._basis @ vectors[:, -KEPT:]
                value = _length(image[:, -1])
                size = max(value, SMALLEST)
                return Top(value, image[:, -1] / size, v[:, -1], seen[:, -1] / size, self.right.T @ v[:, -1])

    def admit(self, u: Array, v: Array, least: float) -> None:
        """Let L and R see these vectors: what of each is outside of them becomes a column, unless below ``least``."""
        new = _outside(self.left, u), _outside(self.right, v)
        if _length(new[0]) > least:
            column = _unit(self.left, new[0])
            self.left = np.column_stack([self.left, column])
            self._pulled = np.column_stack([self._pulled, self._matrix.T @ column])
        if _length(new[1]) > least:
            self.right = np.column_stack([self.right, _unit(self.right, new[1])])

    def _grow(self, vectors: Array) -> bool:
        """Take vectors, the most wanted first, into the space; False if it holds them already."""
        vectors = vectors / np.maximum(np.sqrt(np.einsum("ij,ij->j", vectors, vectors)), SMALLEST)
        columns, lengths = np.linalg.qr(_outside(self._basis, _outside(self._basis, vectors)))
        columns = columns[:, np.abs(np.diagonal(lengths)) > DEPENDENT]
        if not columns.shape[1]:
            return False
        images = self._matrix @ columns
        self._basis = np.hstack([self._basis, columns])
        self._images = np.hstack([self._images, images])
        self._grams = np.hstack([self._grams, self._matrix.T @ images])
        return True


def _settled(squares: Array, residual: float, tolerance: float) -> bool:
    """Whether the largest of these Ritz values is an eigenvalue to the relative tolerance.

    Its error is below the residual, and below the residual's square over the distance to the next (Kato and Temple),
    of which a quarter is granted, as the next Ritz value may still rise.
    """
    granted = tolerance * squares[-1]
    gap = squares[-1] - squares[-2] if len(squares) > 1 else 0.0
    return bool(residual <= max(granted, np.sqrt(granted * gap / 4)))


def _length(vector: Array) -> float:
    return float(np.sqrt(vector @ vector))


def _outside(basis: Array, vectors: Array) -> Array:
    return vectors - basis @ (basis.T @ vectors)


def _unit(basis: Array, vector: Array) -> Array:
    """A vector outside the basis to rounding, of length one."""
    again = _outside(basis, vector / _length(vector))
    return again / _length(again)
