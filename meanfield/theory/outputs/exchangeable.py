"""Functions of two points of a batch whose points are all alike: four numbers in place of matrices.

On a circular grid the default input makes all points alike, whatever the stencil: it is white over sites, so that the
covariance at a displacement is made of that at the same displacement in the layer below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array


@dataclass(frozen=True)
class Exchangeable:
    """Points of samples and sites that are all alike: pairs are arrays (4,), values (1,).

    The four are A of a point with itself, with another site of its sample, with its own site in another sample, and
    with another site of another sample. Such matrices share their eigenvectors: products of what sums to zero over
    samples, or is the same in all, with what sums to zero over sites, or is the same at all.
    """

    inputs: int
    sites: int

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return pairs[:1], pairs[:1]

    def product(self, left: Array, right: Array) -> Array:
        return self._pairs(self._eigenvalues(left) * self._eigenvalues(right))

    def quotient(self, left: Array, right: Array) -> Array:
        """The left matrix times the inverse of the right one."""
        return self._pairs(self._eigenvalues(left) / self._eigenvalues(right))

    def contracted(self, left: Array, right: Array) -> Array:
        return np.asarray(self.counts @ (left * right))[None]

    def diagonal(self, pairs: Array) -> Array:
        return pairs

    pulled_back = moved = moved_back = second = transpose = by_site = diagonal

    def constant(self, value: float) -> Array:
        return np.array([value])

    def within_samples(self) -> Array:
        return np.array([1.0, 1.0, 0.0, 0.0])

    def labels(self, covariance: Array, everywhere: bool) -> Array:
        own, other = covariance[0, 0, 0], covariance[0, -1, 0]
        return np.array([own, own * everywhere, other, other * everywhere])

    @property
    def counts(self) -> Array:
        """How many points each of the four numbers stands for."""
        return np.array(np.outer([1.0, self.inputs - 1.0], [1.0, self.sites - 1.0]).ravel())

    def _eigenvalues(self, pairs: Array) -> Array:
        return np.asarray(_to_modes(self.inputs) @ pairs.reshape(2, 2) @ _to_modes(self.sites).T)

    def _pairs(self, eigenvalues: Array) -> Array:
        return np.asarray((_from_modes(self.inputs) @ eigenvalues @ _from_modes(self.sites).T).ravel())


def _to_modes(count: int) -> Array:
    """From the numbers on and off the diagonal to the eigenvalues of vectors that sum to zero, and of constants."""
    return np.array([[1.0, -1.0], [1.0, count - 1.0]])


def _from_modes(count: int) -> Array:
    return np.array([[1 - 1 / count, 1 / count], [-1 / count, 1 / count]])
