"""The terms that a sum over stencils misses at the edge of a set of sites: Lemma 3 of Zhang et al. 2026.

It holds for any set, stencil and function f. With zero padding sum_p sum_Delta f(p + Delta) visits the site u once for
every offset Delta with u - Delta inside: k times, less the visits m(u) that are missing. So

    (1/S) sum_p sum_Delta f(p + Delta) - (k/S) sum_u f(u) = -(1/S) sum_u m(u) f(u),

of which Lemma 3 bounds the size by k bdry sup|f|. The identity says when the bound is met: sum_u m(u) counts the pairs
(p, Delta) that leave the set, at most k for every boundary site, or k - 1 if the stencil holds the offset 0. Under
circular padding nothing is missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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
