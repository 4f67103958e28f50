"""Loops that move values between sites: gather a stencil, its transpose, and its effect on a Gram matrix.

Arrays carry a leading axis of draws. ``table`` is a neighbour table of `meanfield.nets.lattice`; -1 stands for the
zero outside the grid. Of a strided stencil the sites of the result are those of another grid, S'.

A tap shifts whole runs of sites by the same step. Run by run, values pass through vector registers; site by site, each
is looked up in the table. On a grid of 32 x 32 runs take two thirds of the time; on small grids they are too short.

What comes in is laid in one piece, as arrays mostly are: each layout would be compiled by itself. Compiled loops
allocate nothing, which would double the time of their compilation.

Convolutions and the gradients of their weights without patches: tiles of sums that stay in registers.

`DirectConvolution` serves whole groups of draws on the host. Its arrays are those of the passes: weights (D, n', n
k), values and errors (D, n, R, S), in any memory order. Results are in Fortran order, draws innermost. Arguments in
that order, of as many draws as fit side by side, are not copied. Sites S' of the result are those of the table: of a
strided stencil they are those of another grid.

In the tiles values lie with draws innermost, then channels, samples and sites, (S, R, n, D): what NumPy calls Fortran
order of (D, n, R, S), and keeps through operations element by element. A tile is some rows of up to four vectors
each, a vector being neighbours along the channels and draws:

    c[m, v] = sum over the sites that a list reaches, sum_k, of a[site, m, k] b[place in the list, k, v]

In a convolution rows are samples, k runs over the channels below, and the list is that of a site's taps. In the
gradient of a weight rows are channels below, k runs over the samples, and the list is that of one tap over a block of
sites. Every k loads the vectors of b and one number of a per row, and multiplies each with each: 8 x 2 or 4 x 4 run
at the rate of the arithmetic. Where several draws lie side by side, their numbers are repeated along the vector.
Widths that are no multiple of whole vectors take narrower ones, which is right but slower.
"""

from collections.abc import Callable
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from meanfield.common.compiled import compiled
from meanfield.common.validation import Array
from meanfield.nets.lattice import SiteTable

# Gathering goes run by run from so many sites on, if runs have so many sites on average.
MANY_SITES, LONG_RUN = 256, 8


def gather(values: Array, table: SiteTable) -> Array:
    """patches: (D, n, R, S) -> (D, n k, R S'), row (i, Delta) being channel i shifted by Delta."""
    draws, channels, rows, _ = values.shape
    taps, sites = table.shape
    out = np.empty((draws, channels * taps, rows * sites), values.dtype)
    _gather(np.ascontiguousarray(values), table, *_runs(table), out)
    return out


def gather_transpose(patches: Array, reversed_table: SiteTable, rows: int) -> Array:
    """patches^T: (D, n k, R S') -> (D, n, R, S), every site collecting what it gave to its neighbours."""
    taps, sites = reversed_table.shape
    out = np.zeros((len(patches), patches.shape[1] // taps, rows, sites), patches.dtype)
    _gather_transpose(np.ascontiguousarray(patches), reversed_table, *_runs(reversed_table), out)
    return out


def sum_over_shifts(gram: Array, table: SiteTable, samples: int) -> Array:
    """X^T X from sigma^T sigma: sum_Delta A(p + Delta, p' + Delta) for (D, B S, B S) site pairs."""
    out = np.zeros(gram.shape, gram.dtype)
    _sum_over_shifts(np.ascontiguousarray(gram), table, *_runs(table), samples, out)
    return out


def _runs(table: SiteTable) -> tuple[Array, Array]:
    return _runs_of(table.shape, table.tobytes())


@lru_cache(maxsize=256)
def _runs_of(shape: tuple[int, int], numbers: bytes) -> tuple[Array, Array]:
    """Stretches of sites that a tap shifts alike: (first site, where it reaches or -1, length); where each tap's end.

    Places in them are made unsigned where they are used: else every one could count from the end.
    """
    table = np.frombuffer(numbers, np.int64).reshape(shape)
    begins = np.ones(shape, bool)
    begins[:, 1:] = np.diff(table) != (table[:, :-1] >= 0)
    taps, first = np.nonzero(begins)
    lengths = np.diff(taps * shape[1] + first, append=table.size)
    return np.stack([first, table[begins], lengths], axis=1), np.append(0, np.cumsum(begins.sum(axis=1)))


@compiled()
def _gather(values, table, runs, ends, out):
    draws, channels, rows, _ = values.shape
    taps, sites = table.shape
    by_runs = _are_long(runs, table)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                target = out[d, i * taps + t]
                for r in range(rows):
                    source = values[d, i, r]
                    if by_runs:
                        _copy_runs(target, r * sites, source, runs[ends[t] : ends[t + 1]])
                        continue
                    for p in range(sites):
                        reached = table[t, p]
                        target[r * sites + p] = source[reached] if reached >= 0 else 0.0


@compiled()
def _gather_transpose(patches, reversed_table, runs, ends, out):
    draws, channels, rows, sites = out.shape
    taps, givers = reversed_table.shape[0], patches.shape[2] // rows
    by_runs = _are_long(runs, reversed_table)
    for d in range(draws):
        for i in range(channels):
            for t in range(taps):
                source = patches[d, i * taps + t]
                for r in range(rows):
                    target = out[d, i, r]
                    if by_runs:
                        _add_runs(target, source, r * givers, runs[ends[t] : ends[t + 1]])
                        continue
                    for p in range(sites):
                        giver = reversed_table[t, p]
                        if giver >= 0:
                            target[p] += source[r * givers + giver]


@compiled()
def _sum_over_shifts(gram, table, runs, ends, samples, out):
    draws = gram.shape[0]
    taps, sites = table.shape
    for d in range(draws):
        for b in range(samples):
            for p in range(sites):
                target = out[d, b * sites + p]
                for t in range(taps):
                    if table[t, p] < 0:
                        continue
                    source = gram[d, b * sites + table[t, p]]
                    for start in range(np.uint64(0), np.uint64(samples * sites), np.uint64(sites)):
                        for k in range(ends[t], ends[t + 1]):
                            if runs[k, 1] < 0:
                                continue
                            to, off = start + np.uint64(runs[k, 0]), start + np.uint64(runs[k, 1])
                            for i in range(np.uint64(runs[k, 2])):
                                target[to + i] += source[off + i]


@compiled()
def _are_long(runs, table):
    return table.shape[1] >= MANY_SITES and table.size >= LONG_RUN * len(runs)


@compiled()
def _copy_runs(target, offset, source, runs):
    """target(offset + p) <- source(p + Delta), or 0 where that is outside."""
    for k in range(len(runs)):
        to, off = np.uint64(offset + runs[k, 0]), np.uint64(runs[k, 1])
        if runs[k, 1] < 0:
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] = 0.0
        else:
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] = source[off + i]


@compiled()
def _add_runs(target, source, offset, runs):
    """target(p) += source(offset + p + Delta), where that is inside."""
    for k in range(len(runs)):
        if runs[k, 1] >= 0:
            to, off = np.uint64(runs[k, 0]), np.uint64(offset + runs[k, 1])
            for i in range(np.uint64(runs[k, 2])):
                target[to + i] += source[off + i]


class DirectConvolution:
    """W patches(X), its transpose and the gradient of W, without patches; results differ from theirs by rounding.

    ``rectified`` takes max(X, 0) in place of X, as ReLU gives it.
    """

    def convolve(self, weights: Array, values: Array, table: SiteTable, rectified: bool = False) -> Array:
        """W patches(X): (D, n', n k), (D, n, R, S) -> (D, n', R, S'); a single X serves all draws."""
        return _by_groups(_convolved, weights, values, table, rectified)

    def convolve_transpose(self, weights: Array, errors: Array, table: SiteTable, gate: Array | None = None) -> Array:
        """patches^T(W^T U): (D, n', n k), (D, n', R, S') -> (D, n, R, S), 0 where the gate is not positive.

        It is a convolution: ``table`` has the reversed offsets.
        """
        draws, above, _ = weights.shape
        by_tap = weights.T.reshape(-1, len(table), above, draws)
        turned = np.ascontiguousarray(by_tap.transpose(2, 1, 0, 3)).reshape(above * len(table), -1, draws)
        return _by_groups(_convolved, turned.T, errors, table, False, gate)

    def weight_gradient(self, errors: Array, values: Array, table: SiteTable, rectified: bool = False) -> Array:
        """U patches(X)^T: (D, n', R, S'), (D, n, R, S) -> (D, n', n k); a single X serves all draws."""
        return _by_groups(_gradient, errors, values, table, rectified)


def draws_side_by_side(channels: int, itemsize: int) -> int:
    """The fewest draws that fill the vectors of a tile with so many channels, at most as many as fit into a vector."""
    numbers = MOST_VECTORS * VECTOR // itemsize
    return min(most_draws(itemsize), numbers // gcd(channels, numbers))


def _by_groups(
    work: Callable[..., Array],
    first: Array,
    values: Array,
    table: SiteTable,
    rectified: bool,
    gate: Array | None = None,
) -> Array:
    """The work on all draws at once where they fit side by side, else on groups of as many as divide them."""
    draws, most = len(first), most_draws(values.itemsize)
    if len(values) != draws:
        values = np.broadcast_to(values, (draws, *values.shape[1:]))
    if gate is not None and len(gate) != draws:
        gate = np.broadcast_to(gate, (draws, *gate.shape[1:]))
    if gcd(draws, most) == draws:
        return work(first, values, table, rectified, gate)
    size = gcd(draws, draws_side_by_side(first.shape[1], values.itemsize))
    groups = [slice(d, d + size) for d in range(0, draws, size)]
    parts = [
        work(first[group], values[group], table, rectified, None if gate is None else gate[group]) for group in groups
    ]
    return np.concatenate(parts)


def _convolved(weights: Array, values: Array, table: SiteTable, rectified: bool, gate: Array | None) -> Array:
    where = None if gate is None else _draws_innermost(gate)
    return convolve(_draws_innermost(weights), _draws_innermost(values), table, rectified, where).T


def _gradient(errors: Array, values: Array, table: SiteTable, rectified: bool, gate: None) -> Array:
    return weight_gradient(_draws_innermost(errors), _draws_innermost(values), table, rectified).T


def _draws_innermost(array: Array) -> Array:
    """Axes in reverse, in one piece."""
    turned = array.T
    return turned if turned.flags.c_contiguous else np.ascontiguousarray(turned)


# Vectors side by side in a tile, and draws within one of them, at most.
MOST_VECTORS, MOST_DRAWS = 4, 8

# Sites over which a tile of a gradient is summed before it is stored: what they hold stays in the nearest caches.
BLOCK = 64

LONG = ir.IntType(64)


def _vector_registers() -> tuple[int, int]:
    """Bytes of a vector register of this machine, and how many there are."""
    features = get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    return (32, 16) if features.get("avx2") else (16, 32 if features.get("neon") else 16)


VECTOR, REGISTERS = _vector_registers()


class TileShape(NamedTuple):
    """A tile's rows, its vectors in a row, numbers in a vector, and draws that lie side by side."""

    rows: int
    vectors: int
    lanes: int
    draws: int


def most_draws(itemsize: int) -> int:
    """Draws, a power of two, that lie side by side in one vector."""
    return min(MOST_DRAWS, VECTOR // itemsize)


def tile_shape(rows: int, columns: int, draws: int, itemsize: int) -> TileShape:
    """The widest tile that divides the rows and the columns of channels and draws, in half of the registers.

    Vectors side by side come first: each is loaded once for all rows.
    """
    full = VECTOR // itemsize
    vectors = gcd(columns // full, MOST_VECTORS) if columns % full == 0 else 1
    return TileShape(gcd(rows, REGISTERS // 2 // vectors), vectors, gcd(columns, full), draws)


def convolve(
    weights: Array, values: Array, table: SiteTable, rectified: bool = False, gate: Array | None = None
) -> Array:
    """W patches(X), or of max(X, 0) if ``rectified``: (n k, n', D), (S, R, n, D) -> (S', R, n', D).

    ``table`` says which site every tap reaches from every site, -1 standing for the zero outside the grid; where
    ``gate``, laid out as the result, is not positive, 0 is given instead. Arrays lie in one piece; D is a power of two
    up to `most_draws`.
    """
    _, above, draws = weights.shape
    rows = values.shape[1]
    out = np.empty((table.shape[1], rows, above, draws), values.dtype)
    tile = _tile(tile_shape(rows, above * draws, draws, values.itemsize), values.itemsize, rectified, adds=False)
    gated, gate = gate is not None, out if gate is None else gate
    sizes = tile.width, rows, above, len(values)
    _over_sites(tile.address, weights.ravel(), values.ravel(), gated, gate.ravel(), out.ravel(), table, *sizes)
    return out


def weight_gradient(errors: Array, values: Array, table: SiteTable, rectified: bool = False) -> Array:
    """U patches(X)^T, or of max(X, 0): (S', R, n', D), (S, R, n, D) -> (n k, n', D), as for `convolve`."""
    _, rows, above, draws = errors.shape
    below = values.shape[2]
    out = np.zeros((below * len(table), above, draws), values.dtype)
    tile = _tile(tile_shape(below, above * draws, draws, values.itemsize), values.itemsize, rectified, adds=True)
    sizes = tile.width, rows, above, len(values)
    _over_taps(tile.address, errors.ravel(), values.ravel(), out.ravel(), table, *sizes)
    return out


@compiled()
def _over_sites(tile, weights, values, gated, gate, out, table, width, rows, above, below):
    """The loop of `convolve`: ``tile`` is the address of one, ``width`` the numbers in its rows, ``below`` S."""
    taps, sites = table.shape
    x, z = len(values) // below // rows, len(out) // sites // rows
    draws = z // above
    sums = (sites, taps, rows * x, draws, z, taps * z, x // draws)
    lead = 2 * max(table[taps - 1, 0], 1)  # sites ahead of the farthest that any tap reaches
    _fetch(values, 0, min(lead, below) * rows * x)
    for p in range(sites):
        if p + lead < below:
            _fetch(values, (p + lead) * rows * x, rows * x)
        if p + 1 < sites:
            _fetch(out, (p + 1) * rows * z, rows * z)
            if gated:
                _fetch(gate, (p + 1) * rows * z, rows * z)
        for column in range(0, z, width):
            starts = (p, 0, column, p * rows * z + column)
            _call(tile, (table.ravel(), values, weights, out, gate), gated, starts, sums, (rows, x, z))


@compiled()
def _over_taps(tile, errors, values, out, table, width, rows, above, below):
    """The loop of `weight_gradient`, as `_over_sites` is that of `convolve`."""
    taps, sites = table.shape
    x, z = len(values) // below // rows, len(errors) // sites // rows
    draws = z // above
    for p in range(0, sites, BLOCK):
        sums = (1, min(BLOCK, sites - p), rows * x, x, rows * z, z, rows)
        for t in range(taps):
            for column in range(0, z, width):
                starts = (t * sites + p, 0, p * rows * z + column, t * z + column)
                extent = (x // draws, draws, taps * z)
                _call(tile, (table.ravel(), values, errors, out, out), False, starts, sums, extent)


@intrinsic
def _fetch(typing, array, start, count):
    """Prefetch so many numbers of a flat array, which are needed soon."""

    def generate(context, builder, signature, arguments):
        kind, (array, start, count) = signature.args[0], arguments
        base = builder.gep(context.make_array(kind)(context, builder, array).data, [start])
        bytes_ = ir.IntType(8).as_pointer()
        flags = [ir.IntType(32)] * 3
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [bytes_, *flags]), "llvm.prefetch.p0"
        )
        line = LONG(64 // (kind.dtype.bitwidth // 8))
        with cgutils.for_range_slice(builder, LONG(0), count, line, LONG) as (at, _):
            place = builder.bitcast(builder.gep(base, [at]), bytes_)
            builder.call(function, [place, flags[0](0), flags[0](2), flags[0](1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def _call(typing, tile, arrays, gated, starts, sums, extent):
    """The tile at this address, on flat arrays: the table, a, b, c and the gate; the other arguments as for `_tile`."""

    def generate(context, builder, signature, arguments):
        given = zip(signature.args[1], cgutils.unpack_tuple(builder, arguments[1]), strict=True)
        bases = [context.make_array(kind)(context, builder, array).data for kind, array in given]
        numbers = [number for group in arguments[3:] for number in cgutils.unpack_tuple(builder, group)]
        function = builder.inttoptr(arguments[0], _signature(bases[1].type).as_pointer())
        builder.call(function, [*bases, arguments[2], *numbers])
        return context.get_dummy_value()

    numbers = [types.UniTuple(types.int64, len(group)) for group in (starts, sums, extent)]
    return types.void(types.int64, arrays, types.boolean, *numbers), generate


def _signature(base):
    """A tile takes the bases of five arrays, whether it is gated, and fourteen numbers."""
    return ir.FunctionType(ir.VoidType(), [LONG.as_pointer(), *[base] * 4, ir.IntType(1), *[LONG] * 14])


class _Tile(NamedTuple):
    """A compiled tile: its address, which holds as long as the library does, and the numbers in one of its rows."""

    address: int
    width: int
    library: Any


@lru_cache(maxsize=256)
def _tile(shape, itemsize, rectifies, adds):
    """All tiles of a shape below each other, compiled in some 30 ms; a rectified or not, sums added to c or not.

    The function takes its arrays, and then:

    gated: whether sums are 0 where the gate, which lies as c does, is not positive.
    starts: where the list begins in the table, and the first number in a, b and c.
    sums: step along the list and its length; steps of a per site and per k, of b per entry of the list and per k; k's.
    extent: rows; steps of a and of c from row to row.
    """
    # One engine holds all of them, and looks them up by their names.
    name = "_".join(map(str, ("meanfield_tile", *shape, itemsize, int(rectifies), int(adds))))
    with global_compiler_lock:
        library = cpu_target.target_context.codegen().create_library(name)
        module = library.create_ir_module(name)
        base = (ir.FloatType() if itemsize == 4 else ir.DoubleType()).as_pointer()
        function = ir.Function(module, _signature(base), name)
        builder = ir.IRBuilder(function.append_basic_block())
        bases, gated, numbers = function.args[:5], function.args[5], function.args[6:]
        starts, sums, extent = numbers[:4], numbers[4:11], numbers[11:]
        with cgutils.for_range_slice(builder, LONG(0), extent[0], LONG(shape.rows), LONG) as (row, _):
            a, c = (_along(builder, starts[at], row, extent[step]) for at, step in ((1, 1), (3, 2)))
            places = (starts[0], a, starts[2], c, c)
            pointers = [builder.gep(base, [at]) for base, at in zip(bases, places, strict=True)]
            _emit(builder, shape, (rectifies, adds), pointers, gated, sums, extent)
        builder.ret_void()
        library.add_ir_module(module)
        library.finalize()
        return _Tile(library.get_pointer_to_function(name), shape.vectors * shape.lanes, library)


def _emit(builder, shape, kinds, pointers, gated, sums, extent):
    """One tile: its sums are variables, which the compiler keeps in registers."""
    (rectifies, adds), (table, a, b, c, gate) = kinds, pointers
    kind = ir.VectorType(c.type.pointee, shape.lanes)
    places = [(m, v) for m in range(shape.rows) for v in range(shape.vectors)]
    targets, gates = ([_at(builder, base, extent[2], m, v * shape.lanes) for m, v in places] for base in (c, gate))
    totals = [cgutils.alloca_once(builder, kind) for _ in places]
    for total, target in zip(totals, targets, strict=True):
        builder.store(_load(builder, target, kind) if adds else kind(None), total)
    list_step, length, a_site, a_k, b_entry, b_k, count = sums
    with cgutils.for_range(builder, length) as entry:
        site = builder.load(_moved(builder, table, entry.index, list_step))
        with builder.if_then(builder.icmp_signed(">=", site, LONG(0))):
            x, y = _moved(builder, a, site, a_site), _moved(builder, b, entry.index, b_entry)
            with cgutils.for_range(builder, count) as k:
                step = _moved(builder, x, k.index, a_k), _moved(builder, y, k.index, b_k), extent[1]
                _add_products(builder, shape, rectifies, kind, step, totals)
    with builder.if_then(gated):
        for total, open_ in zip(totals, gates, strict=True):
            builder.store(_where_positive(builder, _load(builder, open_, kind), builder.load(total)), total)
    for total, target in zip(totals, targets, strict=True):
        builder.store(builder.load(total), builder.bitcast(target, kind.as_pointer())).align = _bytes(kind)


def _add_products(builder, shape, rectifies, kind, step, totals):
    """One k of all sums of a tile."""
    left, right, a_row = step
    columns = [_load(builder, _at(builder, right, LONG(0), 0, v * shape.lanes), kind) for v in range(shape.vectors)]
    for m in range(shape.rows):
        number = _repeated(builder, _at(builder, left, a_row, m, 0), kind, shape.draws)
        if rectifies:
            negative = builder.fcmp_ordered(">", kind(None), number)
            number = builder.select(negative, kind(None), number)
        for column, total in zip(columns, totals[m * shape.vectors :], strict=False):
            builder.store(_fused(builder, number, column, builder.load(total)), total)


def _where_positive(builder, condition, value):
    return builder.select(builder.fcmp_ordered(">", condition, value.type(None)), value, value.type(None))


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
