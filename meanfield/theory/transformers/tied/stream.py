"""The stream of tokens of a Transformer with tied blocks: its covariance between all pairs of steps, at infinite width.

Step p adds a r_p to the stream, r_p = W x_p with W the last matrix of its branch. With g_u the product of the divisors
of the normalisations behind the joins up to step u (post-norm; 1 in pre-norm nets)

    g_u z_u = z_0 + a sum_{p<=u} g_{p-1} r_p,      E r_p r_q' = s E x_p x_q'  if p and q share W, 0 if they do not.

The features x_p are functions of the value below, so that row u of the covariance of r needs row u - 1 of that of z
alone. L steps take O(L^2) work and O(L) memory, times the numbers that a pair of steps has over tokens (`TokenPairs`).

Source: docs/theory.md section 22.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.kernels.stream_rows import cumulated
from meanfield.theory.transformers.tied.branches import branch_of
from meanfield.theory.transformers.tied.tokens import TokenPairs


@dataclass(frozen=True)
class TiedStep:
    """Step u = 1 .. L. E is the shape of what two steps have over tokens.

    Attributes:
        covariance: of the stream behind the step with itself, E.
        together: the steps 1 .. u that share the weights of step u, counted from 0; the last is step u itself.
        increments: E r_u r_q' of these steps q, (k, *E).
    """

    covariance: Array
    together: slice
    increments: Array


def tied_steps(net: TokenStream, pairs: TokenPairs) -> Iterator[TiedStep]:
    """Yield steps 1 .. L = 2 depth; a step of untied blocks shares its weights with none."""
    period, count = len(net.block), len(net.block) * net.depth
    rows = StreamRows(pairs, count, bool(net.block[0].after))
    branches = [branch_of(unit, pairs, net.depth**2 / 2 if net.is_tied else net.depth) for unit in net.block]
    for step in range(count):
        place = step % period
        together = slice(place if net.is_tied else step, step + 1, period)
        increments = branches[place].features(rows.below[together], rows.own[together])
        covariance = rows.add(step, together, net.block[place].multiplier ** 2 * increments)
        yield TiedStep(covariance, together, increments)


class StreamRows:
    """The covariance of the values that branches take, row by row.

    Attributes:
        below: of the latest value u with values 0 .. u, (u + 1, *E), divided by the sizes of both: normalised.
        own: of values 0 .. u with themselves, likewise.
    """

    def __init__(self, pairs: TokenPairs, count: int, divides: bool) -> None:
        self._pairs, self._divides, self._start = pairs, divides, pairs.start
        # sum_{p<=u} (g_{p-1} / g_u) a^2 E r_p r_q' by q, and g_{p-1} / g_u by p.
        self._sums, self._weights = np.zeros((count, *pairs.start.shape)), np.ones((count, pairs.sizes))
        self._divisors, self._sizes = (np.ones((count + 1, pairs.sizes)) for _ in range(2))
        self.own = np.empty((count + 1, *pairs.start.shape))
        self.below = self._normalised(0, pairs.start[None])

    def add(self, step: int, together: slice, increments: Array) -> Array:
        """Go from value ``step`` to the next, by a^2 E r r' of the steps ``together``: the next one's covariance."""
        pairs, sums, weights = self._pairs, self._sums[: step + 1], self._weights[: step + 1]
        sums[together] += increments
        earlier = pairs.first(weights[together][:-1]) * pairs.turned(increments[:-1])
        sums[step] += earlier.sum(axis=0)
        row = cumulated(self._start, sums, self._divisors[1 : step + 1])
        if self._divides:
            size = np.sqrt(pairs.same(row[-1]))
            for held in (row, sums):
                held /= pairs.first(size)
            row[-1] /= pairs.second(size)
            weights /= size
            self._start = self._start / pairs.first(size)
            self._divisors[step + 1] = size
        self.below = self._normalised(step + 1, row)
        return np.asarray(row[-1])

    def _normalised(self, value: int, row: Array) -> Array:
        if not self._divides:
            self._sizes[value] = np.sqrt(self._pairs.same(row[-1]))
            row = row / self._pairs.first(self._sizes[value]) / self._pairs.second(self._sizes[: value + 1])
        self.own[value] = row[-1]
        return row
