"""Grids of sites, stencils of offsets, and what padding does at the edge.

A grid is a tuple of lengths, its sites numbered row by row; the empty grid ``()`` has one site and makes a
convolution a fully-connected layer. A stencil of k_d taps along an axis visits the offsets

    Delta = -((k_d - 1) // 2), ..., k_d // 2

so odd stencils are centred and even ones reach one site further forward.
"""

from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from meanfield.common.validation import require_choice, require_counts

PADDINGS = ("circular", "zero")
OUTSIDE = -1

Table = NDArray[np.int64]


def offsets(kernel: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The stencil's offsets, in the row-major order of the kernel's taps."""
    return list(product(*map(axis_offsets, kernel)))


def axis_offsets(taps: int) -> range:
    """The offsets along one axis."""
    return range(-((taps - 1) // 2), taps // 2 + 1)


@lru_cache(maxsize=64)
def neighbours(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1) -> Table:
    """Site reached from every site by every offset: shape (k, S), with ``OUTSIDE`` for zero padding.

    Row Delta of the table is the site-shift matrix S_Delta: (S_Delta f)(p) = f(p + Delta); offsets are ``dilation``
    times those of the kernel's taps.
    """
    return _shifted(grid, kernel, padding, dilation)


@lru_cache(maxsize=64)
def reversed_neighbours(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, dilation: int = 1) -> Table:
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


def _shifted(grid: tuple[int, ...], kernel: tuple[int, ...], padding: str, factor: int) -> Table:
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
