"""The gates that one unit of a stream passes, block by block, and averages over them.

Over the blocks a unit's values z_0 .. z_K are a Gaussian walk: increments are independent, E z_l z_m = c_min(l,m). Its
gates are 1 where z is positive (all are 1 without gates), and neighbouring ones mostly agree. Two ways to average over
them share one interface, in which a variable is an array that may be added to another and multiplied by a number:

    `PairGates`   variables linear in gates, as their coefficients of (1, gate_0 .. gate_K): exact, from the
                  probabilities 1/4 + arcsin(rho) / (2 pi) that two gates are open
    `GatePaths`   any functions of all gates, as their values on evenly spread walks, each with its mirror image
"""

from functools import cached_property
from math import pi
from typing import Protocol

import numpy as np

from meanfield.common.gaussian_averages import even_normals
from meanfield.common.validation import Array


class GateWalk:
    """The walk z_0 .. z_K of one unit over the values of a stream, of these variances, and whether it meets gates."""

    def __init__(self, variances: Array, *, gated: bool) -> None:
        self.variances, self.gated = variances, gated

    @cached_property
    def axes(self) -> Array:
        """A root of the covariance, (values, axes), the widest axis first; it takes K^3 and serves all scramblings."""
        strengths, directions = np.linalg.eigh(np.minimum.outer(self.variances, self.variances))
        return np.asarray(directions[:, ::-1] * np.sqrt(np.maximum(strengths[::-1], 0.0)))


class StreamGates(Protocol):
    """Averages over the gates of one unit."""

    def constant(self, value: float) -> Array:
        """A variable that does not depend on gates."""

    def gate(self, place: int) -> Array:
        """The gate at this place as a variable."""

    def mean(self, variable: Array) -> float:
        """Its expectation."""

    def mean_open(self, place: int, variable: Array) -> float:
        """The expectation of its product with the gate at this place."""


class PairGates:
    """Variables that are linear in gates; averages are exact."""

    def __init__(self, walk: GateWalk) -> None:
        variances = walk.variances
        both = np.ones((len(variances),) * 2)
        if walk.gated:
            ratio = np.minimum.outer(variances, variances) / np.maximum.outer(variances, variances)
            both = 1 / 4 + np.arcsin(np.sqrt(ratio)) / (2 * pi)
        open_ = np.diag(both)
        self._means = np.concatenate([[1.0], open_])
        self._with_gate = np.concatenate([open_[:, None], both], axis=1)

    def constant(self, value: float) -> Array:
        return self._unit(0) * value

    def gate(self, place: int) -> Array:
        return self._unit(place + 1)

    def mean(self, variable: Array) -> float:
        return float(self._means @ variable)

    def mean_open(self, place: int, variable: Array) -> float:
        return float(self._with_gate[place] @ variable)

    def _unit(self, entry: int) -> Array:
        unit = np.zeros(len(self._means))
        unit[entry] = 1.0
        return unit


class GatePaths:
    """Variables on so many pairs of walks; two walks hold all that one gate can do, and one all that none can."""

    def __init__(self, walk: GateWalk, paths: int, replicate: int) -> None:
        places = len(walk.variances)
        if not walk.gated or places == 1:
            self._gates = np.array([[1.0, 0.0]] if walk.gated else [[1.0]]).repeat(places, axis=0)
            return
        normals = even_normals(places, replicate).random(paths)  # the first coordinates are the most even
        is_open = walk.axes @ normals.T > 0
        self._gates = np.concatenate([is_open, ~is_open], axis=1).astype(np.float64)

    def constant(self, value: float) -> Array:
        return np.full(self._gates.shape[1], value)

    def gate(self, place: int) -> Array:
        return self._gates[place]

    def mean(self, variable: Array) -> float:
        return float(variable.mean())

    def mean_open(self, place: int, variable: Array) -> float:
        return float((self._gates[place] * variable).mean())
