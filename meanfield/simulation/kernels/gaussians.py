"""Gaussian numbers faster than their generator hands them out, and lazily revealed Gaussian matrices made of them.

The numbers are those of NumPy's own stream, made in one loop. The words come from SFC64 and become normals by the
ziggurat of 256 layers (Marsaglia and Tsang 2000), both as in NumPy. What is gained, almost half of the time, is a
call through a pointer for every word.

Queries to a lazily revealed matrix are projected on what is known, and the rest is drawn. This is done in the
precision of the queries; lengths, and dot products of few columns, are summed in double precision. Arrays are written
element by element: where one array is assigned to a part of another, Numba compiles the words of the error that
shapes which differ would raise, which takes longer than all these loops.
"""

import numpy as np
from numba.np.random._constants import fi_double, ki_double, wi_double, ziggurat_nor_inv_r, ziggurat_nor_r

from meanfield.common.compiled import compiled
from meanfield.common.seeds import Streams
from meanfield.common.validation import Array

# Of the ziggurat's layers: where a word is in the rectangle, what it is multiplied by, and the density at the edge.
INSIDE, STEP, DENSITY = ki_double.astype(np.int64), wi_double.copy(), fi_double.copy()
TAIL, TAIL_STEP = ziggurat_nor_r, ziggurat_nor_inv_r

LAYER = np.uint64(0xFF)
POSITION = np.uint64((1 << 52) - 1)
ONE, SIGN_AT, POSITION_AT, DOUBLE_AT = np.uint64(1), np.uint64(8), np.uint64(9), np.uint64(11)
UNIT = 2.0**-53
# Words that are drawn and dropped before the first.
ROUNDS = 12


class NormalSource:
    """Normals of several draws, each from its own stream, whose ``states`` (D, 4) move on as they are used.

    The numbers of a draw do not depend on other draws: they are those of NumPy's generator of its stream. In single
    precision they are those of double precision, rounded.
    """

    def __init__(self, streams: Streams, precision: str = "float64") -> None:
        self.draws, self.precision = len(streams), precision
        self.states = np.empty((len(streams), 4), np.uint64)
        begin_each(streams.words, self.states)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An uninitialised array of the numbers' precision."""
        return np.empty(shape, self.precision)

    def drawn(self, shape: tuple[int, ...], scale: float = 1.0) -> Array:
        """The next ``scale`` * N(0, 1) of every draw, (D, *shape)."""
        numbers = self.empty((self.draws, *shape))
        fill_each(self.states, numbers.reshape(self.draws, -1), scale)
        return numbers


@compiled()
def begin_each(words, states):
    """Write the states (D, 4) of generators that begin with these words, (D, 3), as NumPy mixes them."""
    for d in range(len(words)):
        a, b, c, counter = words[d, 0], words[d, 1], words[d, 2], ONE
        for _ in range(ROUNDS):
            _, a, b, c, counter = _next(a, b, c, counter)
        states[d, 0], states[d, 1], states[d, 2], states[d, 3] = a, b, c, counter


@compiled()
def fill(state, out, scale):
    """Write scale * N(0, 1) into the flat array ``out``, from the state of a generator, (4,), which is moved on.

    They are the very numbers that NumPy's own fill would give; in single precision, rounded.
    """
    a, b, c, counter = state
    i = 0
    while i < out.size:
        word, a, b, c, counter = _next(a, b, c, counter)
        layer, signed, position = _split(word)
        value = signed * STEP[layer]
        accepted = position < INSIDE[layer]
        if not accepted:
            if layer == 0:
                value, a, b, c, counter = _tail(position, a, b, c, counter)
                accepted = True
            else:
                word, a, b, c, counter = _next(a, b, c, counter)
                height = (DENSITY[layer - 1] - DENSITY[layer]) * _uniform(word) + DENSITY[layer]
                accepted = height < np.exp(-0.5 * value * value)
        if accepted:
            out[i] = scale * value
            i += 1
    state[0], state[1], state[2], state[3] = a, b, c, counter


@compiled()
def fill_each(states, out, scale):
    """`fill` of every row of ``out`` (D, size) from the state of its own draw, states (D, 4), in one call for all."""
    for d in range(len(states)):
        fill(states[d], out[d], scale)


@compiled(inline="always")
def _next(a, b, c, counter):
    """One word of SFC64, and the state after it."""
    word = a + b + counter
    turned = (c << np.uint64(24)) | (c >> np.uint64(40))
    return word, b ^ (b >> np.uint64(11)), c + (c << np.uint64(3)), turned + word, counter + ONE


@compiled(inline="always")
def _split(word):
    """Layer, signed and unsigned position within it."""
    position = np.int64((word >> POSITION_AT) & POSITION)
    sign = np.int64((word >> SIGN_AT) & ONE)
    return np.int64(word & LAYER), np.float64((position ^ -sign) + sign), position


@compiled(inline="always")
def _uniform(word):
    return np.float64(word >> DOUBLE_AT) * UNIT


@compiled()
def _tail(position, a, b, c, counter):
    """A value beyond the outermost layer by Marsaglia's method, with the sign that the position's eighth bit gives."""
    while True:
        word, a, b, c, counter = _next(a, b, c, counter)
        beyond = -TAIL_STEP * np.log1p(-_uniform(word))
        word, a, b, c, counter = _next(a, b, c, counter)
        height = -np.log1p(-_uniform(word))
        if height + height > beyond * beyond:
            value = TAIL + beyond
            return -value if (position >> 8) & 1 else value, a, b, c, counter


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
    """Add between two places: out <- out + sum_b coefficients_b rows_b."""
    for b in range(len(rows)):
        weight = coefficients[b]
        for i in range(start, stop):
            out[i] += weight * rows[b, i]
