"""Exact finite-width recursions, derived by the machine.

For one input and up to the signs of weight rows, the gates of a ReLU layer are independent fair coins, so moments of
the tangent kernel Theta, the pre-activations z and any tangent vectors close exactly at finite width (docs/theory.md
section 3). A moment is a product of factors whose indices are all summed, a small graph: indices are vertices,
Theta_ij is an edge, z_i a mark on a vertex. One layer maps a graph to a combination of graphs:

    gate  Theta -> D Theta D, z -> D z with D a diagonal of fair coins: sum over set partitions of the vertices, each
          block merged into one vertex and weighted by a cumulant of the coin
    mix   Theta'_ab = sum_ij W_ai X_ij W_bj + delta_ab sum_k x_k x_k,  z'_a = sum_i W_ai x_i: average over the weights
          (`meanfield.theory.exact.weight_average`)

Going down instead, S = D W' S' W D carries a Gram matrix of Jacobians from the outputs: the same two steps in the other
order, without own parameters. Linear nets have no gates, and their residual blocks a map of their own
(`meanfield.theory.exact.block_closure`). Following the graphs that appear until none is new gives a linear map whose
coefficients are polynomials in the new layer's width n and weight variance s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from math import prod

from meanfield.common.validation import require_choice, require_count, settle
from meanfield.theory.exact.block_closure import through_block
from meanfield.theory.exact.moments import Moment, canonical, parse_moment, set_partitions
from meanfield.theory.exact.recursion import Polynomial, Recursion
from meanfield.theory.exact.weight_average import Averaged, average_over_weights, legs_of

# Cumulants of a fair coin by order; a block of so many indices merges with this weight.
COIN_CUMULANTS = [Fraction(c) for c in ("0", "1/2", "1/4", "0", "-1/8", "0", "1/4", "0", "-17/16")]
GATES = ("relu", "linear")
DIRECTIONS = ("up", "down")

Combination = dict[Moment, Polynomial]


def derive(*moments: str, activation: str = "relu", direction: str = "up", block_depth: int = 0) -> Recursion:
    """Derive the exact recursion of moments through one depth unit, with every further moment that it needs.

    Args:
        moments: factors with indices, all summed: "Theta_ij Theta_ij" is |Theta|_F^2, "z_i Theta_ij Theta_jk z_k" is
            z' Theta^2 z; other names are tangent vectors of parameters below, e.g. "u_i v_i u_j v_j" is `<u, v>^2`.
        activation: "relu" (gates are fair coins) or "linear".
        direction: "up" for the tangent kernel before its gate, from one layer to the next; "down" for the Gram matrix
            of the Jacobians to the outputs (written Theta too), after its gate, from one layer to the one below.
        block_depth: 0 for a plain layer z' = W sigma(z); k for a residual block z' = z + a W_k .. W_1 z, linear alone.

    Returns:
        Recursion: moments, and coefficients polynomial in the new width n and the weight variance s, for blocks also
        in beta = a^2; ``print`` shows formulas. Exact for fully-connected layers, one input, Gaussian weights, at any
        width and depth.

    Raises:
        TypeError: a moment that is no text, a block_depth that is no whole number.
        ValueError: an unreadable moment, one with an odd number of vectors, or another activation: gates that know more
            of z than its sign leave no closed set of moments, and on a stream even signs are remembered.

    Source: docs/theory.md section 3.
    """
    for given in moments:
        if not isinstance(given, str):
            raise TypeError(f"moment is of type {type(given).__name__}; a moment is words such as 'Theta_ij Theta_ij'")
    return derive_together(moments, DepthUnit(activation, direction, block_depth))[0]


@dataclass(frozen=True)
class DepthUnit:
    """A kind of depth unit, and what it does to a moment; the arguments are those of `derive`."""

    activation: str = "relu"
    direction: str = "up"
    block_depth: int = 0

    def __post_init__(self) -> None:
        require_choice("activation of an exact recursion", self.activation, GATES)
        require_choice("direction", self.direction, DIRECTIONS)
        why = "layers of a residual branch, 0 for a plain layer"
        settle(self, block_depth=require_count("block_depth", self.block_depth, minimum=0, why=why))
        if self.block_depth and self.activation != "linear":
            raise ValueError(
                f"activation of a residual block is {self.activation!r}; derive it for 'linear' alone: a unit of the "
                "stream keeps its sign from block to block, so that its gates are no independent coins"
            )

    def through(self, moment: Moment) -> Combination:
        """E[moment of the new layer] as a combination of moments of the old one."""
        total: defaultdict[Moment, defaultdict[tuple[int, ...], Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        for below, powers, coefficient in self._terms(moment):
            total[below][powers] += coefficient
        kept = {m: {powers: c for powers, c in polynomial.items() if c} for m, polynomial in total.items()}
        return {m: polynomial for m, polynomial in kept.items() if polynomial}

    def _terms(self, moment: Moment) -> Iterator[tuple[Moment, tuple[int, ...], Fraction]]:
        """The summands: moment, powers of the variables, coefficient."""
        if self.block_depth:
            for (below, powers), count in through_block(moment, self.block_depth, self.direction == "up").items():
                yield below, powers, Fraction(count)
        elif self.direction == "up":
            for (mixed, of_weights), count in _mix(moment, own_layer=True).items():
                for gated, weight in gate_average(mixed, self.activation).items():
                    yield gated, of_weights, count * weight
        else:
            for gated, weight in gate_average(moment, self.activation).items():
                for (mixed, of_weights), count in _mix(gated, own_layer=False).items():
                    yield mixed, of_weights, count * weight


@lru_cache(maxsize=64)
def derive_together(moments: tuple[str, ...], *units: DepthUnit) -> tuple[Recursion, ...]:
    """The recursions of several kinds of depth unit on ONE closed set of moments, so that they can follow each other.

    Raises:
        ValueError: as for `derive`.
    """
    closed = _parsed(moments)
    rows: list[list[dict[int, Polynomial]]] = [[] for _ in units]
    for current in closed:
        for unit, unit_rows in zip(units, rows, strict=True):
            row = unit.through(current)
            closed += [moment for moment in row if moment not in closed]
            unit_rows.append({closed.index(moment): polynomial for moment, polynomial in row.items()})
    return tuple(
        Recursion(tuple(closed), tuple(unit_rows), unit.activation, unit.direction, unit.block_depth)
        for unit, unit_rows in zip(units, rows, strict=True)
    )


def _parsed(moments: tuple[str, ...]) -> list[Moment]:
    if not moments:
        raise ValueError("name at least one moment to derive, such as 'Theta_ij Theta_ij'")
    parsed = [parse_moment(moment) for moment in moments]
    for text, moment in zip(moments, parsed, strict=True):
        if sum(map(len, moment.marks)) % 2:
            raise ValueError(f"{text!r} has an odd number of vectors, so its mean vanishes; use an even number")
    return parsed


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


def _mix(moment: Moment, own_layer: bool) -> Averaged:
    """Average over the new weights, through which every leg goes."""
    return average_over_weights(*legs_of(moment, repeat(True)), own_layer)
