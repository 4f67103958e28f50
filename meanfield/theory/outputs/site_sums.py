"""Averages of polynomials in sums over the sites of one sample, for ReLU units that are all alike.

A polynomial is a sum of a coefficient times factors: gate, feature or z itself at the point OWN, at another point
SIBLING of its sample, or summed over all its sites ("sum"). Sites are independent given x; a product of sums is one
over all ways in which its indices coincide, and where they do a site has the moment of all factors that meet there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache, reduce
from itertools import product
from math import prod
from operator import mul

import numpy as np
from scipy.special import ndtr

from meanfield.common.arrays import Array

OWN, SIBLING, SUM = "own", "sibling", "sum"
Factor = tuple[str, str]
Polynomial = tuple[tuple[float, tuple[Factor, ...]], ...]
# What meets at a site: whether a gate or feature is among it, and the power of z.
Meeting = tuple[bool, int]
# Largest x followed, in standard deviations; beyond is less than a float resolves.
REACH = 9.0
STEP = 0.1
# Smallest variance that a site has of its own, of its whole variance.
CLOSEST = 1e-14


class SiteSums:
    """Averages at one layer's covariance: of a point with itself, and with any other."""

    def __init__(self, covariance: Array, sites: int) -> None:
        self.sites = sites
        self._products: dict[tuple[Meeting, ...], Array] = {}
        same, across = covariance[0], covariance[1]
        steepness = np.sqrt(1 + across / max(same - across, CLOSEST * same))
        # The trapezoidal rule in u, x = sinh(u) / steepness: some 100 points to rounding, however steep the gates in x.
        end = np.arcsinh(REACH * steepness)
        u = np.linspace(-end, end, 2 * int(np.ceil(end / STEP)) + 1)
        self._x = np.sinh(u) / steepness
        weights = np.cosh(u) * np.exp(-(self._x**2) / 2)
        self.weights = weights / weights.sum()
        self._centre, self._spread = np.sqrt(across) * self._x, np.sqrt(max(same - across, CLOSEST * same))

    def mean(self, *polynomials: Polynomial) -> float:
        return float(self.weights @ self.given(*polynomials))

    def given(self, *polynomials: Polynomial) -> Array:
        """The mean of the product of polynomials at every x."""
        weights: defaultdict[tuple[Meeting, ...], float] = defaultdict(float)
        for terms in product(*polynomials):
            coefficient = prod(scale for scale, _ in terms)
            factors = tuple(factor for _, group in terms for factor in group)
            for meetings, count in _coincidences(factors, self.sites):
                weights[meetings] += coefficient * count
        return sum((weight * self._product(meetings) for meetings, weight in weights.items()), np.zeros_like(self._x))

    def _product(self, meetings: tuple[Meeting, ...]) -> Array:
        if meetings not in self._products:
            self._products[meetings] = reduce(
                mul, (self._moments[meeting] for meeting in meetings), np.ones_like(self._x)
            )
        return self._products[meetings]

    @cached_property
    def _moments(self) -> dict[Meeting, Array]:
        """E[z^k] and E[z^k 1(z > 0)] of one site at every x."""
        centre, spread = self._centre, self._spread
        ratio = centre / spread
        on = ndtr(ratio)
        edge = spread * np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
        square = centre**2 + spread**2
        return {
            (False, 1): centre,
            (False, 2): square,
            (True, 0): on,
            (True, 1): centre * on + edge,
            (True, 2): square * on + centre * edge,
        }


@lru_cache(maxsize=4096)
def _coincidences(factors: tuple[Factor, ...], sites: int) -> tuple[tuple[tuple[Meeting, ...], int], ...]:
    """What meets at the sites of a product, and in how many ways: the sum over all values of the summed indices."""
    ways: Counter[tuple[Meeting, ...]] = Counter()
    fixed = [place for place in (OWN, SIBLING) if any(where == place for _, where in factors)]
    start = {place: [kind for kind, where in factors if where == place] for place in fixed}
    free = [kind for kind, where in factors if where == SUM]
    for groups, count in _placed(free, list(start.values()), sites):
        ways[tuple(sorted(map(_meeting, groups)))] += count
    return tuple(ways.items())


def _placed(kinds: list[str], groups: list[list[str]], sites: int) -> Iterator[tuple[list[list[str]], int]]:
    """Every way to put factors on the sites of these groups or on new ones, and how many choices of sites it has."""
    if not kinds:
        yield groups, 1
        return
    first, *remaining = kinds
    for place, group in enumerate(groups):
        yield from _placed(remaining, [*groups[:place], [*group, first], *groups[place + 1 :]], sites)
    for placed, count in _placed(remaining, [*groups, [first]], sites):
        yield placed, count * (sites - len(groups))


def _meeting(kinds: list[str]) -> Meeting:
    return any(kind != "z" for kind in kinds), sum(kind != "gate" for kind in kinds)
