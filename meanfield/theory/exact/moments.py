"""Moments as small graphs, and the combinatorics of averaging them.

A moment is a product of factors Theta_ij and z_i whose indices are all summed: indices are vertices, a kernel factor is
an edge, a vector factor a mark on a vertex. Two products that differ in the names of their indices are one moment.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TypeVar

KERNEL = "Theta"

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
