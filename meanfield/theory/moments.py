"""Moments as small graphs, and their averages over gates and Gaussian weights.

A moment is a product of factors Theta_ij and z_i whose indices are all summed: indices are vertices, a kernel factor
is an edge, a vector factor a mark on a vertex. Two products that differ in the names of their indices are one moment.

The average over one weight matrix: the ends of kernel factors and the vectors of a moment are its legs. Upwards, a
leg that goes through the matrix becomes W_ai times a leg with the index i below; a leg on the stream of a residual
block passes by and keeps its index. A kernel factor whose two legs both go through the matrix also holds the matrix's
own parameters, delta_ab sum_k x_k x_k. Wick's theorem sums over all perfect matchings of the weights: a matching of
W_ai with W_bj merges a with b and i with j and gives the variance s. A class of merged rows that nothing on the
stream holds is summed over and gives the width n.

The average over one residual block of a linear net: a block of k matrices maps z <- z + a W_k .. W_1 z. Inside it
there are two spaces, stream s and branch b, which begin alike; a matrix moves the branch alone and adds its own
parameters to Theta^bb; at the end

    z = z^s + a z^b,   Theta = Theta^ss + a (Theta^sb + Theta^bs) + a^2 Theta^bb.

So from the top: every leg of the moment chooses stream or branch, a for the branch; the legs on the branch are
averaged over the matrices, last one first, while those on the stream pass by; below the first matrix both are one
again. Odd powers of a vanish with odd numbers of weights, so that beta = a^2 is the variable.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, permutations, product
from math import prod
from typing import TypeVar

KERNEL, SOURCE = "Theta", "z"

Index = TypeVar("Index", bound=Hashable)


@dataclass(frozen=True, order=True)
class Moment:
    """A product of kernel and vector factors with all indices summed, in canonical form.

    Attributes:
        marks: per vertex, the sorted names of the vectors that carry its index.
        edges: sorted pairs of vertices, one per kernel factor; a pair (v, v) is a diagonal element.
    """

    marks: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        letters = "ijklmnop"
        factors = [f"{KERNEL}_{letters[a]}{letters[b]}" for a, b in self.edges]
        factors += [f"{name}_{letters[v]}" for v, names in enumerate(self.marks) for name in names]
        return " ".join(factors)


def parse_moment(text: str) -> Moment:
    """The moment written as factors with indices, e.g. "Theta_ij Theta_ij" or "z_i Theta_ij Theta_jk z_k".

    Raises:
        ValueError: a factor that is neither Theta with two indices nor a named vector with one.
    """
    edges, marks = [], []
    for factor in text.split():
        name, _, indices = factor.partition("_")
        if name == KERNEL and len(indices) == 2:
            edges.append((indices[0], indices[1]))
        elif name and name != KERNEL and len(indices) == 1:
            marks.append((indices, name))
        else:
            raise ValueError(f"{factor!r} is no factor of a moment; write Theta_ij, or a vector such as z_i")
    if not (edges or marks):
        raise ValueError("a moment needs at least one factor, such as Theta_ij Theta_ij")
    return canonical(edges, marks)


def canonical(edges: Sequence[tuple[Index, Index]], marks: Sequence[tuple[Index, str]]) -> Moment:
    """The representative of a graph up to renaming its vertices: the smallest over all orders of its vertices.

    Graphs here have at most four or five vertices (every index meets two legs or more), so all orders can be tried.
    """
    names = dict.fromkeys([v for edge in edges for v in edge] + [v for v, _ in marks])
    number = {name: place for place, name in enumerate(names)}
    numbered = tuple((number[a], number[b]) for a, b in edges)
    return _smallest(len(number), numbered, tuple((number[v], name) for v, name in marks))


# Thousands of products that a derivation meets are hundreds once their indices are numbered as they come.
@lru_cache(maxsize=1 << 14)
def _smallest(vertices: int, edges: tuple[tuple[int, int], ...], marks: tuple[tuple[int, str], ...]) -> Moment:
    return min(_renamed(order, edges, marks) for order in permutations(range(vertices)))


def _renamed(position: Sequence[int], edges: Sequence[tuple[int, int]], marks: Sequence[tuple[int, str]]) -> Moment:
    ends = [(position[a], position[b]) for a, b in edges]
    at: list[list[str]] = [[] for _ in position]
    for vertex, name in marks:
        at[position[vertex]].append(name)
    return Moment(tuple(tuple(sorted(here)) for here in at), tuple(sorted((min(pair), max(pair)) for pair in ends)))


# Cumulants of a fair coin by order; a block of so many indices merges with this weight.
COIN_CUMULANTS = [Fraction(c) for c in ("0", "1/2", "1/4", "0", "-1/8", "0", "1/4", "0", "-17/16")]


def gate_average(moment: Moment, activation: str) -> dict[Moment, Fraction]:
    """Average over the gates: sum over set partitions of the vertices, merged block by block."""
    if activation == "linear":
        return {moment: Fraction(1)}
    average: defaultdict[Moment, Fraction] = defaultdict(Fraction)
    for partition in set_partitions(len(moment.marks)):
        weight = prod(COIN_CUMULANTS[len(block)] for block in partition)
        if weight:
            home = {vertex: block[0] for block in partition for vertex in block}
            edges = [(home[a], home[b]) for a, b in moment.edges]
            marks = [(home[v], name) for v, names in enumerate(moment.marks) for name in names]
            average[canonical(edges, marks)] += weight
    return dict(average)


def set_partitions(size: int) -> Iterator[list[list[int]]]:
    """All partitions of 0 .. size - 1 into blocks."""
    if size == 0:
        yield []
        return
    last = size - 1
    for partition in set_partitions(last):
        for index, block in enumerate(partition):
            yield [*partition[:index], [*block, last], *partition[index + 1 :]]
        yield [*partition, [last]]


# Tags a vertex whose legs are on the stream, between two matrices of a block; no vector can be named so.
STREAM = ""

# A vertex of the moment above, and whether the leg goes through the matrix.
Leg = tuple[int, bool]
# An index below: a row that the stream still holds, or a column.
IndexBelow = tuple[str, int]

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


def perfect_matchings(size: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to pair 0 .. size - 1 (none if size is odd; the empty pairing if it is 0)."""

    def pair(remaining: list[int]) -> Iterator[list[tuple[int, int]]]:
        if not remaining:
            yield []
            return
        first, partners = remaining[0], remaining[1:]
        for index, partner in enumerate(partners):
            for pairs in pair(partners[:index] + partners[index + 1 :]):
                yield [(first, partner), *pairs]

    if size % 2 == 0:
        yield from pair(list(range(size)))


class _Below:
    """The factors below for one choice of ``own`` kernel factors, before the weights are matched."""

    def __init__(self, edges: Sequence[tuple[Leg, Leg]], marks: Sequence[tuple[Leg, str]], own: Sequence[bool]) -> None:
        self._columns = count()
        self.weights: list[tuple[IndexBelow, IndexBelow]] = []
        self.passing: list[IndexBelow] = []
        self.joined: list[tuple[IndexBelow, IndexBelow]] = []
        self.edges: list[tuple[IndexBelow, IndexBelow]] = []
        self.marks: list[tuple[IndexBelow, str]] = []
        for (a, b), is_own in zip(edges, own, strict=True):
            if is_own:
                self.joined.append((("row", a[0]), ("row", b[0])))
                self.marks += [(("column", next(self._columns)), SOURCE)] * 2
            else:
                self.edges.append((self._descend(a), self._descend(b)))
        self.marks += [(self._descend(leg), name) for leg, name in marks]

    def _descend(self, leg: Leg) -> IndexBelow:
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
        self._parent: dict[IndexBelow, IndexBelow] = {}

    def root(self, member: IndexBelow) -> IndexBelow:
        while member in self._parent:
            member = self._parent[member]
        return member

    def join(self, first: IndexBelow, second: IndexBelow) -> None:
        first, second = self.root(first), self.root(second)
        if first != second:
            self._parent[second] = first


# Moments with their powers of (n, s, beta), counted.
BlockTerms = Counter[tuple[Moment, tuple[int, int, int]]]


def through_block(moment: Moment, block_depth: int, own_layer: bool) -> BlockTerms:
    """E[moment after a block] as moments before it; ``own_layer`` as for `average_over_weights`."""
    terms = _through_joint(moment, own_layer)
    for _ in range(block_depth - 1):
        terms = _through_inner(terms, own_layer)
    untagged: BlockTerms = Counter()
    for (inside, powers), ways in terms.items():
        marks = [(v, name) for v, names in enumerate(inside.marks) for name in names if name != STREAM]
        untagged[canonical(inside.edges, marks), powers] += ways
    return untagged


def _through_joint(moment: Moment, own_layer: bool) -> BlockTerms:
    """The end of a block and its last matrix."""
    terms: BlockTerms = Counter()
    legs = 2 * len(moment.edges) + sum(map(len, moment.marks))
    for on_branch in product((False, True), repeat=legs):
        if sum(on_branch) % 2 == 0:
            edges, marks = legs_of(moment, iter(on_branch))
            for (below, (n, s)), ways in average_over_weights(edges, marks, own_layer).items():
                terms[below, (n, s, sum(on_branch) // 2)] += ways
    return terms


def _through_inner(terms: BlockTerms, own_layer: bool) -> BlockTerms:
    """A matrix further down: every vertex lies wholly on the stream, and is tagged, or on the branch."""
    averaged: BlockTerms = Counter()
    for (moment, (n, s, beta)), ways in terms.items():
        for (below, (more_n, more_s)), ways_below in _average_branch(moment, own_layer).items():
            averaged[below, (n + more_n, s + more_s, beta)] += ways * ways_below
    return averaged


@lru_cache(maxsize=4096)
def _average_branch(moment: Moment, own_layer: bool) -> Averaged:
    branch = [STREAM not in names for names in moment.marks]
    edges = [((a, branch[a]), (b, branch[b])) for a, b in moment.edges]
    marks = [((v, branch[v]), name) for v, names in enumerate(moment.marks) for name in names if name != STREAM]
    return average_over_weights(edges, marks, own_layer)
