"""Exact finite-width recursions, derived by the machine.

For one input and up to the signs of weight rows, the gates of a ReLU layer are independent fair coins, so moments of
the tangent kernel Theta, the pre-activations z and any tangent vectors close exactly at finite width (THEORY section
3b). A moment is a product of factors whose indices are all summed, a small graph: indices are vertices, Theta_ij is an
edge, z_i a mark on a vertex. One layer maps a graph to a combination of graphs:

    gate  Theta -> D Theta D, z -> D z with D a diagonal of fair coins: sum over set partitions of the vertices, each
          block merged into one vertex and weighted by a cumulant of the coin
    mix   Theta'_ab = sum_ij W_ai X_ij W_bj + delta_ab sum_k x_k x_k,  z'_a = sum_i W_ai x_i: choose a branch for every
          Theta', then sum over all perfect matchings of the legs W_ai (Wick); a matching of (a, i) with (b, j) merges
          a with b and i with j and gives s, and every class of rows that remains gives n

Going down instead, S = D W' S' W D carries a Gram matrix of Jacobians from the outputs: the same two steps in the other
order, without own parameters. Following the graphs that appear until none is new gives a linear map whose coefficients
are polynomials in the new layer's width n and weight variance s.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from meanfield.theory.moments import Moment, canonical, parse_moment, perfect_matchings, set_partitions
from meanfield.validation import require_choice

Array = NDArray[np.float64]

# Cumulants of a fair coin by order; a block of so many indices merges with this weight.
COIN_CUMULANTS = [Fraction(c) for c in ("0", "1/2", "1/4", "0", "-1/8", "0", "1/4", "0", "-17/16")]
SOURCE = "z"
GATES = ("relu", "linear")
DIRECTIONS = ("up", "down")

# Branches of a kernel factor: carried from below through two weights, or the new layer's own parameters.
CARRIED, OWN = False, True


# A polynomial in the width n and the weight variance s: (power of n, power of s) -> coefficient.
Polynomial = dict[tuple[int, int], Fraction]
Combination = dict[Moment, Polynomial]


@dataclass(frozen=True)
class Recursion:
    """One layer's exact map of a closed set of moments: new[i] = sum_j coefficients[i][j](n, s) old[j].

    Attributes:
        moments: the closed set; those that were asked for come first.
        coefficients: per moment, the polynomials in the new layer's n and s by the index of the old moment.
        activation: whose gates were averaged.
        direction: "up" from layer to layer, or "down" from the outputs.
    """

    moments: tuple[Moment, ...]
    coefficients: tuple[dict[int, Polynomial], ...]
    activation: str
    direction: str

    def matrix(self, width: float, variance: float) -> Array:
        """The map as numbers, for a new layer of this width and weight variance: (moments, moments)."""
        found = np.zeros((len(self.moments), len(self.moments)))
        for i, row in enumerate(self.coefficients):
            for j, polynomial in row.items():
                found[i, j] = sum(float(c) * width**n * variance**s for (n, s), c in polynomial.items())
        return found

    def first_layer(self, width: float, variance: float, energy: float) -> Array:
        """The moments of layer 1, Theta = |sigma(x)|^2 I and z = W sigma(x) Gaussian, from energy = |sigma(x)|^2.

        The same average over weights, with every kernel's own branch alone: nothing was carried from below. Every index
        below is then met by two factors sigma(x) and sums to the energy.
        """
        found = np.zeros(len(self.moments))
        for i, moment in enumerate(self.moments):
            for (below, (n, s)), count in _mix(moment, branches=(OWN,)).items():
                if all(names == (SOURCE, SOURCE) for names in below.marks):
                    found[i] += count * width**n * variance**s * energy ** len(below.marks)
        return found

    def __str__(self) -> str:
        lines = [f"{self.activation}, {len(self.moments)} moments; n, s: width and weight variance of the new layer"]
        for moment, row in zip(self.moments, self.coefficients, strict=True):
            terms = [f"({_formula(polynomial)}) [{self.moments[j]}]" for j, polynomial in row.items()]
            lines.append(f"[{moment}] <- " + " + ".join(terms))
        return "\n".join(lines)


@lru_cache(maxsize=64)
def derive(*moments: str, activation: str = "relu", direction: str = "up") -> Recursion:
    """Derive the exact recursion of moments through one layer, with every further moment that it needs.

    Args:
        moments: factors with indices, all summed: "Theta_ij Theta_ij" is |Theta|_F^2, "z_i Theta_ij Theta_jk z_k" is
            z' Theta^2 z; other names are tangent vectors of parameters below, e.g. "u_i v_i u_j v_j" = <u, v>^2.
        activation: "relu" (gates are fair coins) or "linear".
        direction: "up" for the tangent kernel before its gate, from one layer to the next; "down" for the Gram matrix
            of the Jacobians to the outputs (written Theta too), after its gate, from one layer to the one below.

    Returns:
        Recursion: moments, and coefficients polynomial in the new width n and the weight variance s; ``print`` shows
        formulas. Exact for fully-connected layers, one input, Gaussian weights, at any width and depth.

    Raises:
        ValueError: an unreadable moment, one with an odd number of weights, or another activation: gates that know more
            of z than its sign leave no closed set of moments.

    Source: THEORY sections 3, 3b.
    """
    require_choice("activation of an exact recursion", activation, GATES)
    require_choice("direction", direction, DIRECTIONS)
    if not moments:
        raise ValueError("name at least one moment to derive, such as 'Theta_ij Theta_ij'")
    known = [parse_moment(moment) for moment in moments]
    for text, moment in zip(moments, known, strict=True):
        if sum(map(len, moment.marks)) % 2:
            raise ValueError(f"{text!r} has an odd number of vectors, so its mean vanishes; use an even number")
    rows = []
    for current in known:
        row = _one_layer(current, activation, direction)
        known += [found for found in row if found not in known]
        rows.append({known.index(found): polynomial for found, polynomial in row.items()})
    return Recursion(tuple(known), tuple(rows), activation, direction)


def _one_layer(moment: Moment, activation: str, direction: str) -> Combination:
    """E[moment of the new layer] as a combination of moments of the old one."""
    total: defaultdict[Moment, defaultdict[tuple[int, int], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    if direction == "up":
        for (mixed, powers), count in _mix(moment, branches=(CARRIED, OWN)).items():
            for gated, weight in gate_average(mixed, activation).items():
                total[gated][powers] += count * weight
    else:
        for gated, weight in gate_average(moment, activation).items():
            for (mixed, powers), count in _mix(gated, branches=(CARRIED,)).items():
                total[mixed][powers] += count * weight
    kept = {m: {powers: c for powers, c in polynomial.items() if c} for m, polynomial in total.items()}
    return {m: polynomial for m, polynomial in kept.items() if polynomial}


def gate_average(moment: Moment, activation: str) -> dict[Moment, Fraction]:
    """Average over the gates: sum over set partitions of the vertices, merged block by block."""
    if activation == "linear":
        return {moment: Fraction(1)}
    found: defaultdict[Moment, Fraction] = defaultdict(Fraction)
    for partition in set_partitions(len(moment.marks)):
        weight = Fraction(1)
        for block in partition:
            weight *= COIN_CUMULANTS[len(block)]
        if weight:
            home = {vertex: block[0] for block in partition for vertex in block}
            edges = [(home[a], home[b]) for a, b in moment.edges]
            marks = [(home[v], name) for v, names in enumerate(moment.marks) for name in names]
            found[canonical(edges, marks)] += weight
    return dict(found)


def _mix(moment: Moment, branches: tuple[bool, ...]) -> Counter[tuple[Moment, tuple[int, int]]]:
    """Average over the new weights: these branches of every kernel factor, then all matchings of the legs."""
    found: Counter[tuple[Moment, tuple[int, int]]] = Counter()
    for own in product(branches, repeat=len(moment.edges)):
        rows, legs, edges, marks = _expand(moment, own)
        for matching in perfect_matchings(len(legs)):
            row_of, column_of = _Classes(), _Classes()
            for a, b in rows:
                row_of.join(a, b)
            for first, second in matching:
                row_of.join(legs[first][0], legs[second][0])
                column_of.join(legs[first][1], legs[second][1])
            free = {row_of.root(vertex) for vertex in range(len(moment.marks))}
            below = canonical(
                [(column_of.root(i), column_of.root(j)) for i, j in edges],
                [(column_of.root(i), name) for i, name in marks],
            )
            found[below, (len(free), len(matching))] += 1
    return found


def _expand(
    moment: Moment, own: tuple[bool, ...]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, str]]]:
    """Row identities, legs (row, column), edges and marks below, for one choice of branches.

    A kernel factor either passes through two weights or is delta_ab times |x|^2 (its ``own`` branch).
    """
    rows, legs, edges, marks = [], [], [], []
    fresh = iter(range(1000))
    for (a, b), is_own in zip(moment.edges, own, strict=True):
        if is_own:
            k = next(fresh)
            rows.append((a, b))
            marks += [(k, SOURCE), (k, SOURCE)]
        else:
            i, j = next(fresh), next(fresh)
            legs += [(a, i), (b, j)]
            edges.append((i, j))
    for vertex, names in enumerate(moment.marks):
        for name in names:
            i = next(fresh)
            legs.append((vertex, i))
            marks.append((i, name))
    return rows, legs, edges, marks


class _Classes:
    """Union-find over hashable members."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def root(self, member: int) -> int:
        while member in self._parent:
            member = self._parent[member]
        return member

    def join(self, first: int, second: int) -> None:
        first, second = self.root(first), self.root(second)
        if first != second:
            self._parent[second] = first


def _formula(polynomial: Polynomial) -> str:
    """A polynomial as text, highest powers first."""

    def factor(name: str, power: int) -> str:
        return "" if power == 0 else name if power == 1 else f"{name}^{power}"

    terms = []
    for (of_n, of_s), coefficient in sorted(polynomial.items(), reverse=True):
        symbols = " ".join(filter(None, (factor("n", of_n), factor("s", of_s))))
        shown = "" if coefficient == 1 and symbols else str(coefficient)
        terms.append(" ".join(filter(None, (shown, symbols))))
    return " + ".join(terms)
