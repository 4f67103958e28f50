"""The average of a moment over one Gaussian weight matrix.

The ends of kernel factors and the vectors of a moment are its legs. Upwards, a leg that goes through the matrix becomes
W_ai times a leg with the index i below; a leg on the stream of a residual block passes by and keeps its index. A kernel
factor whose two legs both go through the matrix also holds the matrix's own parameters, delta_ab sum_k x_k x_k. Wick's
theorem sums over all perfect matchings of the weights: a matching of W_ai with W_bj merges a with b and i with j and
gives the variance s. A class of merged rows that nothing on the stream holds is summed over and gives the width n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, product

from meanfield.theory.exact.moments import Moment, canonical, perfect_matchings

SOURCE = "z"
# Tags a vertex whose legs are on the stream, between two matrices of a block; no vector can be named so.
STREAM = ""

# A vertex of the moment above, and whether the leg goes through the matrix.
Leg = tuple[int, bool]
# An index below: a row that the stream still holds, or a column.
Index = tuple[str, int]

Averaged = Counter[tuple[Moment, tuple[int, int]]]


def average_over_weights(
    edges: Sequence[tuple[Leg, Leg]], marks: Sequence[tuple[Leg, str]], own_layer: bool, carried: bool = True
) -> Averaged:
    """E[moment] as moments below with (power of n, power of s), counted; tags what is on the stream.

    Args:
        edges: the legs of every kernel factor.
        marks: the leg and the name of every vector.
        own_layer: whether the matrix's parameters belong to the kernel.
        carried: whether the kernel has any from below; if not, every factor is the matrix's own.
    """
    average: Averaged = Counter()
    vertices = {vertex for edge in edges for vertex, _ in edge} | {vertex for (vertex, _), _ in marks}
    choices = [[False] * carried + [True] * (own_layer and a[1] and b[1]) for a, b in edges]
    for own in product(*choices):
        below = _Below(edges, marks, own)
        for matching in perfect_matchings(len(below.weights)):
            average[below.matched(matching, vertices)] += 1
    return average


def legs_of(moment: Moment, through: Iterator[bool]) -> tuple[list[tuple[Leg, Leg]], list[tuple[Leg, str]]]:
    """The legs of a moment's kernel factors and vectors, in order, and which of them go through the matrix."""
    edges = [((a, next(through)), (b, next(through))) for a, b in moment.edges]
    marks = [((vertex, next(through)), name) for vertex, names in enumerate(moment.marks) for name in names]
    return edges, marks


class _Below:
    """The factors below for one choice of ``own`` kernel factors, before the weights are matched."""

    def __init__(self, edges: Sequence[tuple[Leg, Leg]], marks: Sequence[tuple[Leg, str]], own: Sequence[bool]) -> None:
        self._columns = count()
        self.weights: list[tuple[Index, Index]] = []
        self.passing: list[Index] = []
        self.joined: list[tuple[Index, Index]] = []
        self.edges: list[tuple[Index, Index]] = []
        self.marks: list[tuple[Index, str]] = []
        for (a, b), is_own in zip(edges, own, strict=True):
            if is_own:
                self.joined.append((("row", a[0]), ("row", b[0])))
                self.marks += [(("column", next(self._columns)), SOURCE)] * 2
            else:
                self.edges.append((self._descend(a), self._descend(b)))
        self.marks += [(self._descend(leg), name) for leg, name in marks]

    def _descend(self, leg: Leg) -> Index:
        vertex, goes_through = leg
        if not goes_through:
            self.passing.append(("row", vertex))
            return self.passing[-1]
        column = ("column", next(self._columns))
        self.weights.append((("row", vertex), column))
        return column

    def matched(self, matching: Sequence[tuple[int, int]], vertices: set[int]) -> tuple[Moment, tuple[int, int]]:
        """The moment below and its powers of n and s, for one matching of the weights."""
        classes = _Classes()
        for first, second in self.joined:
            classes.join(first, second)
        for left, right in matching:
            for first, second in zip(self.weights[left], self.weights[right], strict=True):
                classes.join(first, second)
        edges = [(classes.root(a), classes.root(b)) for a, b in self.edges]
        marks = [(classes.root(index), name) for index, name in self.marks]
        held = {classes.root(row) for row in self.passing}
        free = {classes.root(("row", vertex)) for vertex in vertices} - held
        return canonical(edges, [*marks, *((index, STREAM) for index in held)]), (len(free), len(matching))


class _Classes:
    """Union-find."""

    def __init__(self) -> None:
        self._parent: dict[Index, Index] = {}

    def root(self, member: Index) -> Index:
        while member in self._parent:
            member = self._parent[member]
        return member

    def join(self, first: Index, second: Index) -> None:
        first, second = self.root(first), self.root(second)
        if first != second:
            self._parent[second] = first
