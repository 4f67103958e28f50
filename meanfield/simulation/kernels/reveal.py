"""One query to a lazily revealed Gaussian matrix: project on what is known, draw the rest."""

import numpy as np
from numba import njit

# A direction's part outside the known ones, relative to the query, below which it is rounding.
ROUNDING = 1e-12

# A projection that leaves this part of a vector's length or more has not cancelled digits, and need not be repeated: so
# directions stay orthogonal to rounding however long the sequence of queries.
ENOUGH = 0.5


# Reassociation lets the dot products use vector registers: a query is 2.6 times faster, and differs in rounding only.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def reveal(queries, basis, images, known, other_basis, other_images, normals, deviation):
    """Answer queries (D, size, r), writing their new directions into basis and images (D, known + r, ...).

    The first ``known`` rows of basis (D, known + r, size) and images (D, known + r, image size) are given; ``other_*``
    are those of the other side, whose known directions fix part of every answer; ``normals`` (D, r, image size) are
    independent N(0, 1), ``deviation`` that of the matrix. Returns the answers (D, image size, r).
    """
    draws, _, count = queries.shape
    answers = np.empty((draws, normals.shape[2], count))
    answer = np.empty(normals.shape[2])
    for d in range(draws):
        for k in range(count):
            answer[:] = 0.0
            rest = basis[d, known + k]
            rest[:] = queries[d, :, k]
            length = np.sqrt(_dot(rest, rest))
            left = length
            for _ in range(2):
                before = left
                for b in range(known + k):
                    part = _dot(basis[d, b], rest)
                    _add(rest, -part, basis[d, b])
                    _add(answer, part, images[d, b])
                left = np.sqrt(_dot(rest, rest))
                if left > ENOUGH * before:
                    break
            image = images[d, known + k]
            image[:] = 0.0
            if left > ROUNDING * length:
                rest /= left
                _scale(image, deviation, normals[d, k])
                for b in range(other_basis.shape[1]):
                    fixed = _dot(other_images[d, b], rest)
                    _add(image, fixed - _dot(other_basis[d, b], image), other_basis[d, b])
                _add(answer, left, image)
            else:
                rest[:] = 0.0
            answers[d, :, k] = answer
    return answers


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(first, second):
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@njit(cache=True, nogil=True)
def _scale(target, factor, source):
    for i in range(target.size):
        target[i] = factor * source[i]


@njit(cache=True, nogil=True)
def _add(target, factor, source):
    for i in range(target.size):
        target[i] += factor * source[i]
