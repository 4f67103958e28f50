"""Weights that are drawn when they are first looked up, for nets whose weights need not all be at hand at once."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.random import Generator

from meanfield.nets.maps import Weight
from meanfield.nets.net import Net
from meanfield.simulation.weights.matrices import Grouped, Lazy, NormalSource, WeightMatrix, draw_dense
from meanfield.simulation.weights.slabs import Slabs


class DrawnInTurn(dict[str, WeightMatrix]):
    """The weights of a net's units by name, one draw per generator, "dense" or "lazy"; what is popped is gone for good.

    ``right`` and ``left`` are the columns, for every sample and site, that each use of a weight will multiply by it
    from either side: a lazily revealed matrix has its room for all of them from the start.
    """

    def __init__(self, net: Net, generators: list[Generator], kind: str, right: int, left: int) -> None:
        super().__init__()
        self._generators, self._kind = generators, kind
        self._asked = {
            name: (count * right * net.inputs * net.sites, count * left * net.inputs * net.sites)
            for name, count in net.use_counts.items()
        }
        self._left_to_draw = {name: net.weights[name] for name in self._asked}
        expected = sum(numbers_revealed(net.weights[name], *asked) for name, asked in self._asked.items())
        self._normals, self._slabs = NormalSource(generators, expected), Slabs()

    def __missing__(self, name: str) -> WeightMatrix:
        self[name] = found = self._drawn(self._left_to_draw.pop(name))
        return found

    def _drawn(self, weight: Weight) -> WeightMatrix:
        parts = [self._one(weight) for _ in range(weight.groups)]
        return parts[0] if len(parts) == 1 else Grouped(parts, np.concatenate)

    def _one(self, weight: Weight) -> WeightMatrix:
        """The matrix of one group."""
        rows, columns = weight.shape[0] // weight.groups, prod(weight.shape[1:])
        if self._kind == "dense":
            return draw_dense(rows, columns, weight.variance, self._generators)
        room = self._asked[weight.name]
        return Lazy(rows, columns, weight.variance, self._normals, self._slabs, room)


def numbers_revealed(weight: Weight, right: int, left: int) -> int:
    """Normals that a lazily revealed weight draws for so many columns from the right and from the left."""
    return right * weight.shape[0] + left * prod(weight.shape[1:]) * weight.groups
