"""One query to a lazily revealed Gaussian matrix: project on what is known, draw the rest."""

import numpy as np
from numba import njit

# A direction's part outside the known ones, relative to the query, below which it is rounding.
ROUNDING = 1e-12

# A projection that leaves this part of a vector's length or more has not cancelled digits, and need not be repeated: so
# directions stay orthogonal to rounding however long the sequence of queries.
ENOUGH = 0.5

# Elements of a vector that stay in the first cache while every known row passes by.
TILE = 1024


@njit(cache=True, nogil=True)
def reveal(queries, basis, images, known, other_known, other_basis, other_images, stock, start, deviation, answers):
    """Answer queries (D, r, size) in ``answers`` (D, r, image size), adding their new directions to basis and images.

    The first ``known`` rows of basis (D, room, size) and images (D, room, image size) are given, and the next r are
    filled; ``other_*`` are those of the other side, whose known directions fix part of every answer; ``stock`` (D, any)
    holds independent N(0, 1), used from ``start`` on, ``deviation`` is that of the matrix.
    """
    draws, count, _ = queries.shape
    fixed = np.empty(other_known)
    width = images.shape[2]
    for d in range(draws):
        for k in range(count):
            direction, image = basis[d, known + k], images[d, known + k]
            parts = np.zeros(known + k)
            length = np.sqrt(_dot(queries[d, k], queries[d, k]))
            left = _orthogonal_part(queries[d, k], length, basis[d], parts, direction)
            if left > ROUNDING * length:
                _add_rows(direction, 1 / left, direction, parts[:0], basis[d])
                normals = stock[d, start + k * width : start + (k + 1) * width]
                fixed[:] = 0.0
                _add_dots(other_images[d], direction, 1.0, fixed)
                _add_dots(other_basis[d], normals, -deviation, fixed)
                _add_rows(image, deviation, normals, fixed, other_basis[d])
            else:
                left = 0.0
                direction[:] = 0.0
                image[:] = 0.0
            _add_rows(answers[d, k], left, image, parts, images[d])


@njit(cache=True, nogil=True)
def _orthogonal_part(query, length, basis, parts, rest):
    """Write into ``rest`` the query less its ``parts`` along the known rows; return its length."""
    if parts.size == 0:
        rest[:] = query
        return length
    found = np.empty(parts.size)
    source, left = query, length
    for _ in range(2):
        before = left
        found[:] = 0.0
        _add_dots(basis, source, -1.0, found)
        _add_rows(rest, 1.0, source, found, basis)
        parts -= found
        source, left = rest, np.sqrt(_dot(rest, rest))
        if left > ENOUGH * before:
            break
    return left


# Reassociation lets the dot products use vector registers: a query takes half the time, and differs in rounding only.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(first, second):
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_dots(rows, vector, factor, out):
    """out_b <- out_b + factor rows_b . vector, for as many rows as ``out`` has elements."""
    for start in range(0, vector.size, TILE):
        tile = vector[start : start + TILE]
        for b in range(out.size):
            out[b] += factor * _dot(rows[b, start : start + TILE], tile)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _add_rows(out, factor, vector, coefficients, rows):
    """out <- factor vector + sum_b coefficients_b rows_b; ``out`` may be ``vector``."""
    for start in range(0, out.size, TILE):
        target, source = out[start : start + TILE], vector[start : start + TILE]
        for i in range(target.size):
            target[i] = factor * source[i]
        for b in range(coefficients.size):
            row, coefficient = rows[b, start : start + TILE], coefficients[b]
            for i in range(target.size):
                target[i] += coefficient * row[i]
