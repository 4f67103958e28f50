"""Grids of sites, stencils of offsets, and what padding does at the edge.

A grid is a tuple of lengths, its sites numbered row by row; the empty grid ``()`` has one site and makes a
convolution a fully-connected layer. A stencil of k_d taps along an axis visits the offsets

    Delta = -((k_d - 1) // 2), ..., k_d // 2

so odd stencils are centred and even ones reach one site further forward.

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
def neighbours(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1) -> SiteTable:
    """Site reached from every site by every offset: shape (k, S), with ``OUTSIDE`` for zero padding.

    Row Delta of the table is the site-shift matrix S_Delta: (S_Delta f)(p) = f(p + Delta); offsets are ``dilation``
    times those of the kernel's taps.
    """
    return _shifted(grid, kernel, padding, dilation)


@lru_cache(maxsize=64)
def reversed_neighbours(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1) -> SiteTable:
    """The transposed shifts: site p - Delta for every offset and site, shape (k, S)."""
    return _shifted(grid, kernel, padding, -dilation)


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


def _shifted(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, factor: int) -> SiteTable:
    require_choice("padding", padding, PADDINGS)
    steps = [tuple(factor * step for step in offset) for offset in offsets(kernel)]
    sites = np.indices(grid).reshape(len(grid), prod(grid))
    lengths = np.array(grid, dtype=np.int64).reshape(-1, 1)
    table = np.empty((len(steps), prod(grid)), dtype=np.int64)
    for row, step in zip(table, steps, strict=True):
        target = sites + np.array(step, dtype=np.int64).reshape(-1, 1)
        inside = ((target >= 0) & (target < lengths)).all(axis=0)
        wrapped = target % lengths
        row[:] = np.ravel_multi_index(tuple(wrapped), grid) if grid else 0
        if padding == "zero":
            row[~inside] = OUTSIDE
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
