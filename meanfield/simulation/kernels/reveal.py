"""Queries to a lazily revealed Gaussian matrix: project on what is known, draw the rest.

In the precision of the queries; lengths, and dot products of few columns, are summed in double precision.

Arrays are written element by element: where one array is assigned to a part of another, Numba compiles the words of the
error that shapes which differ would raise, which takes longer than all these loops.
"""

import numpy as np

from meanfield.common.compiled import compiled
from meanfield.simulation.kernels.normals import fill

# A direction's part outside the known ones, relative to the query, below which it is rounding: the precision to this
# power, 2e-12 in double precision and 6e-6 in single.
ROUNDING_POWER = 0.75

# A projection that leaves this share of a vector's length or more has cancelled at most one digit and need not be
# repeated, so that directions stay orthogonal to rounding in any sequence of queries.
ENOUGH = 0.1

# The first of all rows: not a literal, for which Numba would compile everything once more.
ALL = np.int64(0)

# Elements of a vector that stay in the first cache while every known row passes by.
TILE = 1024

# So many queries meet the known rows in one matrix product, two to three times as fast as one by one; they are
# orthogonalised against each other one by one. Fewer queries are served by loops, which need no start-up time.
TOGETHER = 4


@compiled()
def reveal(queries, basis, images, known, other_known, other_basis, other_images, states, deviation, answers):
    """Answer queries (D, r, size) in ``answers`` (D, r, image size), adding their new directions to basis and images.

    The first ``known`` rows of basis (D, room, size) and images (D, room, image size) are given, and the next r are
    filled; ``other_*`` are those of the other side, whose known directions fix part of every answer; ``states`` (D, 4)
    are those of the draws' generators, ``deviation`` is that of the matrix.
    """
    draws, count, _ = queries.shape
    after = known + count
    parts, fixed = np.empty((count, after), basis.dtype), np.empty((count, other_known), basis.dtype)
    projections = np.empty_like(fixed)
    for d in range(draws):
        normals = answers[d]  # until the answers are known
        fill(states[d], normals.reshape(-1), deviation)
        new, theirs = images[d, known:after], other_basis[d, :other_known]
        _extend(queries[d], basis[d, :after], known, parts)
        _dots(other_images[d, :other_known], basis[d, known:after], fixed)
        _dots(theirs, normals, projections)
        for k in range(count):
            for b in range(other_known):
                fixed[k, b] -= projections[k, b]
        _blend(new, normals, fixed, theirs)
        for k in range(count):
            if parts[k, known + k] == 0.0:
                new[k] = 0.0
        _mix(answers[d], parts, images[d, :after])


@compiled()
def _extend(queries, basis, known, parts):
    """Fill the basis behind its first ``known`` rows with the queries' new directions, and their parts (r, rows).

    A query that depends on the rows before it has no part along its own, and 0 stands there.
    """
    count = len(queries)
    parts[:] = 0.0
    if count < TOGETHER:
        for k in range(count):
            _append(queries[k], _length(queries[k]), basis[: known + k + 1], ALL, parts[k])
        return
    outside = _outside(queries, basis[:known], parts[:, :known])
    for first in range(0, count, TOGETHER):
        last, before = min(first + TOGETHER, count), known + first
        block = _outside(outside[first:last], basis[known:before], parts[first:last, known:before])
        for k in range(first, last):
            _append(block[k - first], _length(queries[k]), basis[: known + k + 1], before, parts[k])


@compiled()
def _outside(vectors, rows, parts):
    """The vectors without their components along orthonormal rows, which are written to ``parts``."""
    if len(rows) == 0:
        return vectors
    components, outside = np.empty(parts.shape, parts.dtype), np.empty_like(vectors)
    _dots(rows, vectors, components)
    for k in range(len(vectors)):
        for b in range(len(rows)):
            parts[k, b] = components[k, b]
            components[k, b] = -components[k, b]
    _blend(outside, vectors, components, rows)
    return outside


@compiled()
def _append(vector, length, basis, first, part):
    """Make the last row the direction of a vector without its components along the rows from ``first`` on.

    These are added to ``part``. Along earlier rows the vector has rounding errors only; ``length`` is that of the query
    that it is the rest of.
    """
    own = len(basis) - 1
    left = _project(vector, basis, first, part)
    if left < ENOUGH * length:
        left = _project(basis[own].copy(), basis, ALL, part)
    if left > np.finfo(basis.dtype).eps ** ROUNDING_POWER * length:
        part[own] = left
        _scale(basis[own], 1 / left)
    else:
        basis[own] = 0.0


@compiled()
def _project(vector, basis, first, part):
    """Write the vector without its components along the rows from ``first`` on to the last; its length."""
    own = len(basis) - 1
    rows, components = basis[first:own], np.empty((1, own - first), basis.dtype)
    _dots(rows, vector.reshape(1, -1), components)
    for b in range(own - first):
        part[first + b] += components[0, b]
        components[0, b] = -components[0, b]
    _blend(basis[own : own + 1], vector.reshape(1, -1), components, rows)
    return _length(basis[own])


# Reassociation lets the dot products use vector registers: a query takes half the time, and differs in rounding only.
@compiled(fastmath={"reassoc", "contract"})
def _length(vector):
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * vector[i]
    return np.sqrt(total)


@compiled(fastmath={"reassoc", "contract"})
def _scale(vector, factor):
    for i in range(vector.size):
        vector[i] *= factor


# Loops over tiles run over unsigned numbers: Numba then asks for no element from the end, and needs no slices, which
# would cost a query of a thousand elements a fifth of its time.
@compiled(fastmath={"reassoc", "contract"})
def _dots(rows, vectors, out):
    """out_kb <- rows_b . vectors_k."""
    if len(vectors) >= TOGETHER and len(rows) > 0:
        np.dot(vectors, rows.T, out)
        return
    out[:] = 0.0
    size, tile = np.uint64(vectors.shape[1]), np.uint64(TILE)
    for k in range(len(vectors)):
        for start in range(np.uint64(0), size, tile):
            stop = min(start + tile, size)
            for b in range(len(rows)):
                total = 0.0
                for i in range(start, stop):
                    total += rows[b, i] * vectors[k, i]
                out[k, b] += total


@compiled()
def _mix(out, coefficients, rows):
    """out_k <- sum_b coefficients_kb rows_b."""
    if len(out) >= TOGETHER:
        np.dot(coefficients, rows, out)
        return
    size, tile = np.uint64(out.shape[1]), np.uint64(TILE)
    for k in range(len(out)):
        first = coefficients[k, 0]
        for start in range(np.uint64(0), size, tile):
            stop = min(start + tile, size)
            for i in range(start, stop):
                out[k, i] = first * rows[0, i]
            _add(out[k], start, stop, coefficients[k, 1:], rows[1:])


@compiled(fastmath={"reassoc", "contract"})
def _blend(out, vectors, coefficients, rows):
    """out_k <- vectors_k + sum_b coefficients_kb rows_b; ``out`` has memory of its own."""
    if len(out) >= TOGETHER and len(rows) > 0:
        np.dot(coefficients, rows, out)
        for k in range(len(out)):
            for i in range(out.shape[1]):
                out[k, i] += vectors[k, i]
        return
    size, tile = np.uint64(out.shape[1]), np.uint64(TILE)
    for k in range(len(out)):
        for start in range(np.uint64(0), size, tile):
            stop = min(start + tile, size)
            for i in range(start, stop):
                out[k, i] = vectors[k, i]
            _add(out[k], start, stop, coefficients[k], rows)


@compiled(fastmath={"reassoc", "contract"}, inline="always")
def _add(out, start, stop, coefficients, rows):
    """Between two places, out <- out + sum_b coefficients_b rows_b."""
    for b in range(len(rows)):
        weight = coefficients[b]
        for i in range(start, stop):
            out[i] += weight * rows[b, i]
