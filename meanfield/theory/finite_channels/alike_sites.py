"""Averages over several sites of one channel, any two of which have the same correlation.

A pre-activation is z_p = sqrt(rho) x + sqrt(1 - rho) y_p, all standard Gaussians. Given x sites are independent, so
that an average of products over any number of sites is an integral over x alone.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from meanfield.common.arrays import Array

# Beyond this many standard deviations an average of fourth powers has nothing left.
REACH = 10.0
# Panels of the integral double in length away from 0, where gates open; nodes and weights of each.
PANEL = leggauss(24)


class AlikeSites:
    """One channel at sites of variance 1 and this correlation, through "relu" or "linear" units."""

    def __init__(self, correlation: float, activation: str) -> None:
        shared, alone = np.sqrt(correlation), np.sqrt(1 - correlation)
        nodes, self._weights = _nodes(alone / shared if shared else np.inf)
        on, density = ndtr(nodes * shared / alone), np.exp(-np.square(nodes * shared / alone) / 2) / np.sqrt(2 * np.pi)
        if activation == "linear":
            on, density = np.ones_like(nodes), np.zeros_like(nodes)
        mean = shared * nodes
        moments = [on, mean * on + alone * density]
        for power in (1, 2, 3):
            moments.append(mean * moments[power] + power * alone**2 * moments[power - 1])
        self._given_shared = moments
        self._known: dict[tuple[int, ...], float] = {}

    def average(self, *factors: tuple[int, ...]) -> float:
        """E of a product of factors (power, *sites): the power of sigma times the gate, at each of these sites."""
        powers: dict[int, int] = {}
        for power, *sites in factors:
            for site in sites:
                powers[site] = powers.get(site, 0) + power
        kind = tuple(sorted(powers.values()))
        if kind not in self._known:
            self._known[kind] = float(np.prod([self._given_shared[power] for power in kind], axis=0) @ self._weights)
        return self._known[kind]

    def covariance(self, left: tuple[int, ...], right: tuple[int, ...]) -> float:
        """Of two such factors."""
        return self.average(left, right) - self.average(left) * self.average(right)


def _nodes(scale: float) -> tuple[Array, Array]:
    """Nodes and weights of an average over x ~ N(0, 1) of what changes on this scale near 0."""
    ends = [0.0, min(scale, 1.0)]
    while ends[-1] < REACH:
        ends.append(min(2 * ends[-1], REACH))
    half = np.diff(ends)[:, None] / 2
    nodes, weights = PANEL
    positive = ((np.array(ends[:-1])[:, None] + half) + half * nodes).ravel()
    density = (half * weights).ravel() * np.exp(-np.square(positive) / 2) / np.sqrt(2 * np.pi)
    return np.concatenate([-positive, positive]), np.concatenate([density, density])
