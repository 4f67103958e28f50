"""Exact finite-width recursions, derived by the machine.

For one input and up to the signs of weight rows, the gates of a ReLU layer are independent fair coins, so moments of
the tangent kernel Theta, the pre-activations z and any tangent vectors close exactly at finite width (docs/theory.md
section 3). A moment is a product of factors whose indices are all summed, a small graph: indices are vertices,
Theta_ij is an edge, z_i a mark on a vertex. One layer maps a graph to a combination of graphs:

    gate  Theta -> D Theta D, z -> D z with D a diagonal of fair coins: sum over set partitions of the vertices, each
          block merged into one vertex and weighted by a cumulant of the coin
    mix   Theta'_ab = sum_ij W_ai X_ij W_bj + delta_ab sum_k x_k x_k,  z'_a = sum_i W_ai x_i: average over the weights
          (`meanfield.theory.moments`)

Going down instead, S = D W' S' W D carries a Gram matrix of Jacobians from the outputs: the same two steps in the
other order, without own parameters. Linear nets have no gates, and their residual blocks a map of their own.
Following the graphs that appear until none is new gives a linear map whose coefficients are polynomials in the new
layer's width n and weight variance s.

It is iterated over a million layers without overflow, as numbers between 0 and 1 and a running log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from math import prod

import numpy as np
from numpy.typing import NDArray

from meanfield.common.compiled import compiled
from meanfield.common.validation import Array, require_choice, require_count, settle
from meanfield.theory.moments import (
    SOURCE,
    Averaged,
    Moment,
    average_over_weights,
    gate_average,
    legs_of,
    parse_moment,
    through_block,
)

GATES = ("relu", "linear")
DIRECTIONS = ("up", "down")
VARIABLES = {
    "n": "width of the new layer",
    "s": "variance of its weights",
    "beta": "squared multiplier of the branch",
}

# A polynomial in named variables: the power of each -> coefficient.
Polynomial = dict[tuple[int, ...], Fraction]
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

    Examples:
        >>> import meanfield as mf
        >>> print(str(mf.derive("Theta_ij Theta_ij", activation="linear")).splitlines()[0])
        linear layer, up, 5 moments; n: width of the new layer; s: variance of its weights
    """
    for given in moments:
        if not isinstance(given, str):
            raise TypeError(f"moment is of type {type(given).__name__}; a moment is words such as 'Theta_ij Theta_ij'")
    return derive_together(moments, DepthUnit(activation, direction, block_depth))[0]


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


def _mix(moment: Moment, own_layer: bool) -> Averaged:
    """Average over the new weights, through which every leg goes."""
    return average_over_weights(*legs_of(moment, repeat(True)), own_layer)


@dataclass(frozen=True)
class Recursion:
    """One depth unit's exact map of a closed set of moments: new[i] = sum_j coefficients[i][j](n, s[, beta]) old[j].

    Attributes:
        moments: the closed set; those that were asked for come first.
        coefficients: per moment, the polynomials in the variables by the index of the old moment.
        activation: whose gates were averaged.
        direction: "up" from layer to layer, or "down" from the outputs.
        block_depth: matrices of a residual block, or 0 for a plain layer.
    """

    moments: tuple[Moment, ...]
    coefficients: tuple[dict[int, Polynomial], ...]
    activation: str
    direction: str
    block_depth: int = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the polynomials' variables: n and s; for a block beta too."""
        return tuple(VARIABLES)[: 3 if self.block_depth else 2]

    def matrix(self, *values: float) -> Array:
        """The map as numbers, for values of the variables in their order: (moments, moments)."""
        if len(values) != len(self.variables):
            raise ValueError(
                f"got {len(values)} values for the variables {', '.join(self.variables)}; give one for each"
            )
        matrix = np.zeros((len(self.moments), len(self.moments)))
        for i, row in enumerate(self.coefficients):
            for j, polynomial in row.items():
                matrix[i, j] = sum(float(c) * prod(map(pow, values, powers)) for powers, c in polynomial.items())
        return matrix

    def log_moments(self, start: Array, widths: Array, variances: Array, rows: int | None = None) -> Array:
        """Logs of the first ``rows`` moments (or all) at the start and after every layer: (layers + 1, rows).

        ``widths`` and ``variances`` are those of the layers above the start, and of their weights. Layers that share
        both share one matrix, so that a deep net costs one step a layer.
        """
        layers, size = widths + 1j * variances, len(self.moments)
        changes = np.flatnonzero(np.diff(layers, prepend=np.nan))
        distinct, kind = np.unique(layers[changes], return_inverse=True)
        which = np.repeat(kind, np.diff(changes, append=len(layers))).astype(np.int64)
        matrices = np.array([self.matrix(layer.real, layer.imag) for layer in distinct]).reshape(-1, size, size)
        return np.asarray(iterate(matrices, which, start, np.arange(size if rows is None else rows)))

    def first_layer(self, width: float, variance: float, energy: float) -> Array:
        """The moments of layer 1, Theta = |sigma(x)|^2 I and z = W sigma(x) Gaussian, from energy = |sigma(x)|^2.

        The same average over weights, over a layer below without a kernel.
        """
        moments = np.zeros(len(self.moments))
        for i, moment in enumerate(self.moments):
            legs = legs_of(moment, repeat(True))
            for (below, (n, s)), count in average_over_weights(*legs, own_layer=True, carried=False).items():
                moments[i] += count * width**n * variance**s * _of_source(below, energy)
        return moments

    def of_input(self, energy: float) -> Array:
        """The moments of a given vector z = x with |x|^2 = energy under a vanishing kernel: where a stream starts.

        Of moments whose indices all occur twice, as they do without gates; others depend on more than the energy.
        """
        return np.array([_of_source(moment, energy) for moment in self.moments])

    def __str__(self) -> str:
        kind = f"block of {self.block_depth}" if self.block_depth else "layer"
        meaning = "; ".join(f"{name}: {VARIABLES[name]}" for name in self.variables)
        lines = [f"{self.activation} {kind}, {self.direction}, {len(self.moments)} moments; {meaning}"]
        for moment, row in zip(self.moments, self.coefficients, strict=True):
            terms = [f"({_formula(polynomial, self.variables)}) [{self.moments[j]}]" for j, polynomial in row.items()]
            lines.append(f"[{moment}] <- " + " + ".join(terms))
        return "\n".join(lines)


def _of_source(moment: Moment, energy: float) -> float:
    """A moment without kernel factors, every index of which meets two factors x and sums to the energy; else 0."""
    is_source = not moment.edges and all(names == (SOURCE, SOURCE) for names in moment.marks)
    return energy ** len(moment.marks) if is_source else 0.0


def _formula(polynomial: Polynomial, variables: Sequence[str]) -> str:
    """A polynomial as text, highest powers first."""

    def factor(name: str, power: int) -> str:
        return "" if power == 0 else name if power == 1 else f"{name}^{power}"

    terms = []
    for powers, coefficient in sorted(polynomial.items(), reverse=True):
        symbols = " ".join(filter(None, map(factor, variables, powers)))
        factor_shown = "" if coefficient == 1 and symbols else str(coefficient)
        terms.append(" ".join(filter(None, (factor_shown, symbols))))
    return " + ".join(terms)


def iterate(matrices: Array, which: NDArray[np.int64], start: Array, rows: NDArray[np.int64]) -> Array:
    """Logs of the chosen rows of state_1, state_2, ...: (len(which) + 1, len(rows)).

    state_{l+1} = matrices[which[l]] state_l. The state is divided by its largest entry after every step and the
    logarithm of that entry summed, so that growth like exp(3 l / n) never leaves the range of a float. Recursions are
    sparse: only the non-zero coefficients of each matrix are listed and visited.
    """
    place = np.argsort(matrices == 0.0, axis=2, kind="stable")
    value = np.take_along_axis(matrices, place, axis=2)
    logs, state = np.empty((len(which) + 1, len(rows))), start.copy()
    _iterate(place, value, np.count_nonzero(matrices, axis=2), which, state, np.empty_like(state), rows, logs)
    return logs


@compiled()
def _iterate(
    place: Array, value: Array, count: Array, which: Array, state: Array, moved: Array, rows: Array, logs: Array
) -> None:
    """Fill ``logs``; row i of a matrix has ``count`` coefficients ``value``, in the columns ``place``.

    ``moved`` is room for a state.
    """
    size = state.size
    log_scale = 0.0
    for step in range(which.size + 1):
        largest = 0.0
        for i in range(size):
            if abs(state[i]) > largest:
                largest = abs(state[i])
        log_scale += np.log(largest)
        for i in range(size):
            state[i] /= largest
        for k in range(rows.size):
            logs[step, k] = np.log(state[rows[k]]) + log_scale
        if step < which.size:
            m = which[step]
            for i in range(size):
                total = 0.0
                for k in range(count[m, i]):
                    total += value[m, i, k] * state[place[m, i, k]]
                moved[i] = total
            state, moved = moved, state
