"""Convolutions and the gradients of their weights without patches: tiles of sums that stay in registers.

Values lie with draws innermost, then channels, samples and sites, (S, R, n, D): what NumPy calls Fortran order of
(D, n, R, S), and keeps through operations element by element. A tile is some rows of one or two vectors each, a vector
being neighbours along the channels and draws:

    c[m, v] = sum over the sites that a list reaches, sum_k, of a[site, m, k] b[place in the list, k, v]

A convolution has rows of samples, k the channels below, and the list of a site's taps. The gradient of a weight has
rows of channels below, k the samples, and the list of one tap over a block of sites. Every k loads ``vectors`` vectors
and ``rows`` numbers for rows x vectors multiply-adds: with 8 x 2 they run at the rate of the arithmetic. The number is
one of every draw, where several lie side by side, repeated along the vector.

(A cached kernel and everything it calls stay in this one file: Numba does not notice an edited callee elsewhere.)
"""

from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Sites over which a tile of a gradient is summed before it is stored: what they hold stays in the nearest caches.
BLOCK = 16

LONG = ir.IntType(64)


def _vector_registers() -> tuple[int, int]:
    """Bytes of a vector register of this machine, and how many there are."""
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    return (32, 16) if features.get("avx2") else (16, 32 if features.get("neon") else 16)


VECTOR, REGISTERS = _vector_registers()


class Shape(NamedTuple):
    """A tile's rows, its vectors in a row, numbers in a vector, and draws that lie side by side."""

    rows: int
    vectors: int
    lanes: int
    draws: int


def tile_shape(rows, columns, draws, itemsize):
    """The tile for so many rows, and columns of channels and draws: the widest vectors that divide, in half the
    registers; twice as many rows of one vector as of two.
    """
    full = VECTOR // itemsize
    vectors = 2 if columns % (2 * full) == 0 else 1
    most = REGISTERS // 2 // vectors
    return Shape(most if rows % most == 0 else REGISTERS // 4, vectors, gcd(columns, full), draws)


def convolve(weights, values, table):
    """W patches(X): (k, n, n', D), (S, R, n, D) -> (S, R, n', D), all in one piece; D a power of two up to 8.

    ``table`` says which site every tap reaches from every site, -1 standing for the zero outside the grid.
    """
    _, below, above, draws = weights.shape
    sites, rows = values.shape[:2]
    out = np.empty((sites, rows, above, draws), values.dtype)
    run, _ = _loops(tile_shape(rows, above * draws, draws, values.itemsize))
    run(weights.reshape(-1), values.reshape(-1), out.reshape(-1), table, rows, below, above)
    return out


def weight_gradient(errors, values, table):
    """U patches(X)^T: (S, R, n', D), (S, R, n, D) -> (k, n, n', D), as for `convolve`."""
    _, rows, above, draws = errors.shape
    below = values.shape[2]
    out = np.zeros((len(table), below, above, draws), values.dtype)
    _, run = _loops(tile_shape(below, above * draws, draws, values.itemsize))
    run(errors.reshape(-1), values.reshape(-1), out.reshape(-1), table, rows, below, above)
    return out


@lru_cache(maxsize=64)
def _loops(shape):
    """Compiled for tiles of this shape: the loop of `convolve` and that of `weight_gradient`."""
    height, vectors, lanes, draws = shape

    @njit(cache=True, nogil=True)
    def over_sites(weights, values, out, table, rows, below, above):
        taps, sites = table.shape
        x, z = draws * below, draws * above
        sums = (sites, taps, rows * x, draws, below * z, z, below)
        for p in range(sites):
            for column in range(0, z, vectors * lanes):
                starts = (p, 0, column, p * rows * z + column)
                shape = (height, vectors, lanes, draws, 0)
                _tiles(shape, table.ravel(), values, weights, out, starts, sums, (rows, x, z))

    @njit(cache=True, nogil=True)
    def over_taps(errors, values, out, table, rows, below, above):
        taps, sites = table.shape
        x, z = draws * below, draws * above
        for p in range(0, sites, BLOCK):
            sums = (1, min(BLOCK, sites - p), rows * x, x, rows * z, z, rows)
            for t in range(taps):
                for column in range(0, z, vectors * lanes):
                    starts = (t * sites + p, 0, p * rows * z + column, t * below * z + column)
                    shape = (height, vectors, lanes, draws, 1)
                    _tiles(shape, table.ravel(), values, errors, out, starts, sums, (below, draws, z))

    return over_sites, over_taps


@intrinsic(prefer_literal=True)
def _tiles(typing, shape, table, a, b, c, starts, sums, extent):
    """All tiles below each other, and one by one the rows that are left.

    shape: literal (rows, vectors, lanes, draws, whether sums are added to what ``c`` holds).
    starts: where the list begins in ``table``, and the first number in ``a``, ``b`` and ``c``.
    sums: step along the list and its length; steps of a per site and per k, of b per entry of the list and per k; k's.
    extent: rows; steps of a and of c from row to row.
    """
    height, *rest = (one.literal_value for one in shape)

    def generate(context, builder, signature, arguments):
        named = zip(signature.args[1:5], arguments[1:5], strict=True)
        arrays = [context.make_array(kind)(context, builder, one).data for kind, one in named]
        starts, sums, extent = (cgutils.unpack_tuple(builder, one) for one in arguments[5:])
        whole = builder.sub(extent[0], builder.srem(extent[0], LONG(height)))
        for first, last, step in ((LONG(0), whole, height), (whole, extent[0], 1)):
            with cgutils.for_range_slice(builder, first, last, LONG(step), LONG) as (row, _):
                at = [starts[0], _along(builder, starts[1], row, extent[1]), starts[2]]
                target = _along(builder, starts[3], row, extent[2])
                _tile(builder, (step, *rest), arrays, (*at, target), sums, extent)
        return context.get_dummy_value()

    numbers = [types.UniTuple(types.int64, len(one)) for one in (starts, sums, extent)]
    return types.void(shape, table, a, b, c, *numbers), generate


def _tile(builder, shape, arrays, starts, sums, extent):
    """One tile: its sums are variables, which the compiler keeps in registers."""
    rows, vectors, lanes, draws, adds = shape
    table, a, b, c = (builder.gep(base, [at]) for base, at in zip(arrays, starts, strict=True))
    kind = ir.VectorType(c.type.pointee, lanes)
    places = [(m, v) for m in range(rows) for v in range(vectors)]
    targets = [_at(builder, c, extent[2], m, v * lanes) for m, v in places]
    totals = [cgutils.alloca_once(builder, kind) for _ in places]
    for total, target in zip(totals, targets, strict=True):
        builder.store(_load(builder, target, kind) if adds else kind(None), total)
    list_step, length, a_site, a_k, b_entry, b_k, count = sums
    with cgutils.for_range(builder, length) as entry:
        site = builder.load(builder.gep(table, [builder.mul(entry.index, list_step)]))
        with builder.if_then(builder.icmp_signed(">=", site, LONG(0))):
            x, y = _moved(builder, a, site, a_site), _moved(builder, b, entry.index, b_entry)
            with cgutils.for_range(builder, count) as k:
                left, right = _moved(builder, x, k.index, a_k), _moved(builder, y, k.index, b_k)
                columns = [_load(builder, _at(builder, right, LONG(0), 0, v * lanes), kind) for v in range(vectors)]
                numbers = [_repeated(builder, _at(builder, left, extent[1], m, 0), kind, draws) for m in range(rows)]
                for (m, v), total in zip(places, totals, strict=True):
                    builder.store(_fused(builder, numbers[m], columns[v], builder.load(total)), total)
    for total, target in zip(totals, targets, strict=True):
        stored = builder.store(builder.load(total), builder.bitcast(target, kind.as_pointer()))
        stored.align = _bytes(kind)


def _along(builder, start, count, step):
    return builder.add(start, builder.mul(count, step))


def _moved(builder, pointer, count, step):
    return builder.gep(pointer, [builder.mul(count, step)])


def _at(builder, pointer, step, row, column):
    return builder.gep(pointer, [_along(builder, LONG(column), LONG(row), step)])


def _bytes(kind):
    return 4 if isinstance(kind.element, ir.FloatType) else 8


def _load(builder, pointer, kind):
    """A vector from a place that need not be a multiple of its length."""
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=_bytes(kind))


def _repeated(builder, pointer, kind, draws):
    """The numbers of all draws, again and again along a vector."""
    few = ir.VectorType(kind.element, draws)
    order = ir.VectorType(ir.IntType(32), kind.count)([lane % draws for lane in range(kind.count)])
    return builder.shuffle_vector(_load(builder, pointer, few), few(ir.Undefined), order)


def _fused(builder, number, column, total):
    """number * column + total, rounded once."""
    kind = total.type
    name = f"llvm.fma.v{kind.count}f{8 * _bytes(kind)}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [number, column, total])
