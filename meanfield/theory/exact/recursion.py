"""A derived recursion: a linear map of moments whose coefficients are polynomials, as numbers and as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from math import prod

import numpy as np

from meanfield.common.arrays import Array
from meanfield.theory.exact.moments import Moment
from meanfield.theory.exact.weight_average import SOURCE, average_over_weights, legs_of
from meanfield.theory.kernels.iteration import iterate

# A polynomial in named variables: the power of each -> coefficient.
Polynomial = dict[tuple[int, ...], Fraction]

VARIABLES = {
    "n": "width of the new layer",
    "s": "variance of its weights",
    "beta": "squared multiplier of the branch",
}


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
