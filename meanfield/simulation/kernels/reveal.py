"""Queries to a lazily revealed Gaussian matrix: project on what is known, draw the rest.

In the precision of the queries; lengths, and dot products of few columns, are summed in double precision.
"""

import numpy as np
from numba import njit

# A direction's part outside the known ones, relative to the query, below which it is rounding: the precision to this
# power, 2e-12 in double precision and 6e-6 in single.
ROUNDING_POWER = 0.75

# A projection that leaves this part of a vector's length or more has cancelled one digit at most, and need not be
# repeated: so directions stay orthogonal to rounding however long the sequence of queries.
ENOUGH = 0.1

# Elements of a vector that stay in the first cache while every known row passes by.
TILE = 1024

# So many queries meet known rows in one matrix product, two to three times as fast as one by one; among themselves they
# are orthogonalised one by one. Fewer are served by loops, which start at once.
TOGETHER = 4


@njit(cache=True, nogil=True)
def reveal(queries, basis, images, known, other_known, other_basis, other_images, stock, start, deviation, answers):
    """Answer queries (D, r, size) in ``answers`` (D, r, image size), adding their new directions to basis and images.

    The first ``known`` rows of basis (D, room, size) and images (D, room, image size) are given, and the next r are
    filled; ``other_*`` are those of the other side, whose known directions fix part of every answer; ``stock`` (D, any)
    holds independent N(0, 1), used from ``start`` on, ``deviation`` is that of the matrix.
    """
    draws, count, _ = queries.shape
    width = images.shape[2]
    after = known + count
    for d in range(draws):
        parts, fixed = np.zeros((count, after), basis.dtype), np.zeros((count, other_known), basis.dtype)
        _extend(queries[d], basis[d, :after], known, parts)
        normals = stock[d, start : start + count * width].reshape(count, width)
        _add_dots(other_images[d, :other_known], basis[d, known:after], 1.0, fixed)
        _add_dots(other_basis[d, :other_known], normals, -deviation, fixed)
        image = images[d, known:after]
        _combine(image, deviation, normals, fixed, other_basis[d, :other_known])
        for k in range(count):
            if parts[k, known + k] == 0.0:
                image[k] = 0.0
        _combine(answers[d], 0.0, image, parts, images[d, :after])


@njit(cache=True, nogil=True)
def _extend(queries, basis, known, parts):
    """Fill the basis behind its first ``known`` rows with the queries' new directions, and their parts (r, rows).

    A query that depends on the rows before it has no part along its own, and 0 stands there.
    """
    count = len(queries)
    rounding = np.finfo(basis.dtype).eps ** ROUNDING_POWER
    basis[known:] = queries
    _subtract(basis[known:], basis[:known], parts[:, :known])
    for first in range(0, count, TOGETHER):
        last, before = min(first + TOGETHER, count), known + first
        _subtract(basis[before : known + last], basis[known:before], parts[first:last, known:before])
        for k in range(first, last):
            own = known + k
            direction, part = basis[own : own + 1], parts[k : k + 1]
            length = np.sqrt(_dot(queries[k], queries[k]))
            _subtract(direction, basis[before:own], part[:, before:own])
            left = np.sqrt(_dot(basis[own], basis[own]))
            if left < ENOUGH * length:
                _subtract(direction, basis[:own], part[:, :own])
                left = np.sqrt(_dot(basis[own], basis[own]))
            if left > rounding * length:
                parts[k, own] = left
                _scale(basis[own], 1 / left, basis[own])
            else:
                basis[own] = 0.0


@njit(cache=True, nogil=True)
def _subtract(vectors, rows, parts):
    """Take from the vectors their components along orthonormal rows, and add these to their ``parts``."""
    if len(rows) == 0:
        return
    lacking = np.zeros((len(vectors), len(rows)), vectors.dtype)
    _add_dots(rows, vectors, -1.0, lacking)
    _combine(vectors, 1.0, vectors, lacking, rows)
    parts -= lacking


# Reassociation lets the dot products use vector registers: a query takes half the time, and differs in rounding only.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(first, second):
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _scale(out, factor, vector):
    for i in range(out.size):
        out[i] = factor * vector[i]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_dots(rows, vectors, factor, out):
    """out_kb <- out_kb + factor rows_b . vectors_k."""
    if len(vectors) >= TOGETHER and len(rows) > 0:
        out += factor * np.dot(vectors, rows.T)
        return
    for k in range(len(vectors)):
        for start in range(0, vectors.shape[1], TILE):
            tile = vectors[k, start : start + TILE]
            for b in range(len(rows)):
                out[k, b] += factor * _dot(rows[b, start : start + TILE], tile)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _combine(out, factor, vectors, coefficients, rows):
    """out_k <- factor vectors_k + sum_b coefficients_kb rows_b; ``out`` may be ``vectors``."""
    if len(out) >= TOGETHER and len(rows) > 0:
        sums = np.dot(coefficients, rows)
        for k in range(len(out)):
            for i in range(out.shape[1]):
                out[k, i] = factor * vectors[k, i] + sums[k, i]
        return
    for k in range(len(out)):
        for start in range(0, out.shape[1], TILE):
            target, given = out[k, start : start + TILE], vectors[k, start : start + TILE]
            for i in range(target.size):
                target[i] = factor * given[i]
            for b in range(len(rows)):
                row, coefficient = rows[b, start : start + TILE], coefficients[k, b]
                for i in range(target.size):
                    target[i] += coefficient * row[i]
