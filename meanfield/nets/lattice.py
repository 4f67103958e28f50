"""Grids of sites, stencils of offsets, and what padding does at the edge.

A grid is a tuple of lengths, its sites numbered row by row; the empty grid ``()`` has one site and makes a
convolution a fully-connected layer. A stencil of k_d taps along an axis visits the offsets

    Delta = -((k_d - 1) // 2), ..., k_d // 2

so odd stencils are centred and even ones reach one site further forward. A stencil of stride s stands at every s-th
site, 0, s, 2 s, ..., which are the sites of a coarser grid.

Zero padding makes a sum over stencils miss terms, by Lemma 3 of Zhang et al. 2026. It holds for any set, stencil and
function f. The sum sum_p sum_Delta f(p + Delta) visits the site u once for every offset Delta with u - Delta inside:
k times, less the visits m(u) that are missing. So

    (1/S) sum_p sum_Delta f(p + Delta) - (k/S) sum_u f(u) = -(1/S) sum_u m(u) f(u),

of which Lemma 3 bounds the size by k bdry sup|f|. The identity says when the bound is met: sum_u m(u) counts the
pairs (p, Delta) that leave the set, at most k for every boundary site, or k - 1 if the stencil holds the offset 0.
Under circular padding nothing is missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.common.validation import require_choice, require_counts

PADDINGS = ("circular", "zero")
OUTSIDE = -1

SiteTable = NDArray[np.int64]


def offsets(kernel: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The stencil's offsets, in the row-major order of the kernel's taps."""
    return list(product(*map(axis_offsets, kernel)))


def axis_offsets(taps: int) -> range:
    """The offsets along one axis."""
    return range(-((taps - 1) // 2), taps // 2 + 1)


@lru_cache(maxsize=64)
def neighbours(
    grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1, stride: tuple[int, ...] = ()
) -> SiteTable:
    """Site reached from every site by every offset: shape (k, S), with ``OUTSIDE`` for zero padding.

    Row Delta of the table is the site-shift matrix S_Delta: (S_Delta f)(p) = f(p + Delta); offsets are ``dilation``
    times those of the kernel's taps. With a ``stride`` there is an entry for every site p' of `strided_grid` alone,
    which stands at p = stride p'.
    """
    above, steps = strided_grid(grid, stride, padding), stride or (1,) * len(grid)
    stands = _coordinates(above) * np.array(steps, dtype=np.int64).reshape(-1, 1)
    return _table(padding, [_reached(stands + offset, grid, padding) for offset in _steps(kernel, dilation)])


@lru_cache(maxsize=64)
def reversed_neighbours(
    grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1, stride: tuple[int, ...] = ()
) -> SiteTable:
    """The transposed shifts: the site p' that reaches every site by every offset, shape (k, S), or ``OUTSIDE``."""
    above, steps = strided_grid(grid, stride, padding), stride or (1,) * len(grid)
    strides, sites, rows = np.array(steps, dtype=np.int64).reshape(-1, 1), _coordinates(grid), []
    for offset in _steps(kernel, dilation):
        givers = sites - offset
        if padding == "circular":
            givers = givers % np.array(grid, dtype=np.int64).reshape(-1, 1)
        standing = (givers % strides == 0).all(axis=0)
        rows.append(np.where(standing, _reached(givers // strides, above, "zero"), OUTSIDE))
    return _table(padding, rows)


def strided_grid(grid: tuple[int, ...], stride: tuple[int, ...], padding: str = "zero") -> tuple[int, ...]:
    """Lengths of the grid of every ``stride``-th site, an empty stride being 1: N / s, and rounded up if zero-padded.

    Raises:
        ValueError: a stride of another dimension, one that does not divide a circular grid.
    """
    if not stride:
        return grid
    if len(stride) != len(grid):
        raise ValueError(f"stride {stride} has {len(stride)} axes, grid {grid} has {len(grid)}; give one per axis")
    if padding == "circular" and any(length % step for length, step in zip(grid, stride, strict=True)):
        raise ValueError(
            f"stride {stride} does not divide the circular grid {grid}: where it closes, two sites would stand closer "
            "than others; give a grid of multiples of the stride, or padding 'zero'"
        )
    return tuple(-(-length // step) for length, step in zip(grid, stride, strict=True))


def boundary_fraction(grid: int | tuple[int, ...], kernel: int | tuple[int, ...]) -> float:
    """Fraction of sites whose stencil leaves the grid: bdry = |{p : p + Delta outside}| / S.

    Dimensionless, between 0 and 1; for an odd stencil of half-span s on N sites it is 2 s / N, clipped at 1;
    in two dimensions 1 - (1 - 2 s_h / H)(1 - 2 s_w / W). Found by enumeration, so every stencil is served.

    Args:
        grid: lengths of the axes.
        kernel: taps along each axis.

    Raises:
        ValueError: a length below 1, or grid and kernel of different dimension.

    Source: Zhang et al. 2026, section 3.3, Lemma 3.

    Examples:
        >>> import meanfield as mf
        >>> mf.boundary_fraction((8, 8), (3, 3))
        0.4375
    """
    grid = require_counts("grid", grid)
    kernel = require_counts("kernel", kernel)
    require_same_dimension(grid, kernel)
    leaves = (neighbours(grid, kernel, "zero") == OUTSIDE).any(axis=0)
    return float(leaves.mean())


def rectangle_boundary_fraction(grid: int | tuple[int, ...], kernel: int | tuple[int, ...]) -> float:
    """The boundary fraction in closed form: 1 - prod_d max(0, N_d - k_d + 1) / N_d, for odd and even stencils.

    Sites inside have k_d - 1 taps beside them along each axis. For odd stencils k_d - 1 = 2 s_d, the papers' O(s/N); an
    even one, whose half-span is k_d / 2, has a boundary smaller than 2 s_d / N_d.

    Raises:
        TypeError, ValueError: as `boundary_fraction`.

    Source: Zhang et al. 2026, section 3.3.
    """
    grid, kernel = require_counts("grid", grid), require_counts("kernel", kernel)
    require_same_dimension(grid, kernel)
    return 1.0 - prod(max(0, sites - taps + 1) / sites for sites, taps in zip(grid, kernel, strict=True))


def require_same_dimension(grid: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    """Raise ValueError unless the stencil has one length for every axis of the grid."""
    if len(grid) != len(kernel):
        raise ValueError(
            f"kernel {kernel} has {len(kernel)} axes, grid {grid} has {len(grid)}; give one kernel length per grid axis"
        )


def _coordinates(grid: tuple[int, ...]) -> SiteTable:
    """Of every site, row by row: (axes, S)."""
    return np.indices(grid).reshape(len(grid), prod(grid))


def _steps(kernel: tuple[int, ...], dilation: int) -> list[SiteTable]:
    """The offsets as columns (axes, 1)."""
    return [dilation * np.array(offset, dtype=np.int64).reshape(-1, 1) for offset in offsets(kernel)]


def _reached(targets: SiteTable, grid: tuple[int, ...], padding: str) -> SiteTable:
    """Numbers of the sites with these coordinates (axes, sites), ``OUTSIDE`` beyond a zero-padded grid."""
    lengths = np.array(grid, dtype=np.int64).reshape(-1, 1)
    places = np.ravel_multi_index(tuple(targets % lengths), grid) if grid else np.zeros(targets.shape[1], dtype=int)
    inside = ((targets >= 0) & (targets < lengths)).all(axis=0) | (padding == "circular")
    return np.where(inside, places, OUTSIDE)


def _table(padding: str, rows: list[SiteTable]) -> SiteTable:
    require_choice("padding", padding, PADDINGS)
    table = np.array(rows, dtype=np.int64)
    table.flags.writeable = False
    return table


Point = tuple[int, ...]


@dataclass(frozen=True)
class MissingTerms:
    """Both sides of the bound for one function, and the largest left side among functions of its size.

    Attributes:
        discrepancy: |(1/S) sum_p sum_Delta f(p + Delta) - (k/S) sum_u f(u)|.
        largest: (missing visits / S) sup|f|, reached by constant functions.
        bound: k bdry sup|f|.
    """

    discrepancy: float
    largest: float
    bound: float


def missing_terms(sites: Iterable[Point], stencil: Iterable[Point], values: ArrayLike) -> MissingTerms:
    """The discrepancy that zero padding makes in a sum over stencils, and its bound k bdry sup|f|.

    Dimensionless; at one layer, of the order of the boundary fraction, s/N for a stencil of half-span s on N sites.

    Args:
        sites: the points of a finite set of Z^d, in any order, none twice.
        stencil: offsets, none twice.
        values: f at each of the sites, in their order: (S,).

    Raises:
        ValueError: an empty set or stencil, points of different dimension, a point given twice, or values of the wrong
            shape.

    Source: Zhang et al. 2026, Lemma 3, eq. 24.
    """
    points, offsets = _points("sites", sites), _points("stencil", stencil)
    if len(points[0]) != len(offsets[0]):
        raise ValueError(f"sites have {len(points[0])} axes, the stencil has {len(offsets[0])}; give both the same")
    function = np.asarray(values, dtype=float)
    if function.shape != (len(points),) or not np.isfinite(function).all():
        raise ValueError(f"values have shape {function.shape}; give one finite number for each of {len(points)} sites")
    value_at = dict(zip(points, function.tolist(), strict=True))
    reached = [[tuple(map(sum, zip(point, step, strict=True))) for step in offsets] for point in points]
    summed = sum(value_at.get(target, 0.0) for row in reached for target in row)
    missed = [sum(target not in value_at for target in row) for row in reached]
    size, count = float(np.abs(function).max()), len(points)
    return MissingTerms(
        discrepancy=abs(summed - len(offsets) * float(function.sum())) / count,
        largest=sum(missed) / count * size,
        bound=len(offsets) * sum(map(bool, missed)) / count * size,
    )


def _points(name: str, given: Iterable[Point]) -> list[Point]:
    points = [tuple(point) for point in given]
    if not points:
        raise ValueError(f"{name} is empty; a boundary fraction needs at least one point")
    if len({len(point) for point in points}) > 1:
        raise ValueError(f"{name} mixes points of {sorted({len(point) for point in points})} axes; give all the same")
    if len(set(points)) < len(points):
        raise ValueError(f"{name} holds a point twice; it is a set")
    return points
