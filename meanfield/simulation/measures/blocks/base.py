"""What measures of nets of blocks in training share: what they cost, and a dataset of every draw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from meanfield.common.machine import NUMBER_BYTES
from meanfield.nets.net import Net
from meanfield.quantities.registry import QUANTITIES
from meanfield.simulation.measures.base import Cost, Measure, Pieces

if TYPE_CHECKING:
    import xarray as xr

# Dims of every variable, behind the draw.
Dims = Mapping[str, tuple[str, ...]]

# What a step costs per element of a matrix and per matrix, in operations of a large matrix product.
OPERATIONS_PER_ELEMENT = 400
OPERATIONS_PER_MATRIX = 4e7

# Arrays of the size of all matrices that a draw holds: weights twice, two moments, a gradient, a direction, spare.
ARRAYS = 8

# Draws side by side share what a step costs besides arithmetic: at most so many, and so many weights in all. More of
# them leave the cache between steps, which costs wide nets half as much again. Deep nets leave it anyway, layer by
# layer: of those whose single layers stay in it, at least so many, in as little as half the time of one by one.
MOST_TOGETHER, NUMBERS_TOGETHER = 16, 1 << 20
LEAST_TOGETHER, LAYERS_TOGETHER = 4, 1 << 16


class BlockMeasure(Measure):
    """What is read off a net of blocks while it trains.

    The dataset keeps every draw, as slopes over sizes are taken draw by draw: NAME over ``draw`` and its ``DIMS``, with
    ``block`` 0 for the stream below all blocks.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    DIMS: ClassVar[Dims]

    def drawn_net(self, net: Net) -> Net:
        """The net as it is given: a family may name the roles of its weights otherwise than a chain of its units."""
        return net

    @property
    @abstractmethod
    def visits(self) -> int:
        """Steps of training, each of which visits all weights."""

    def cost(self, net: Net) -> Cost:
        matrices, sizes = sum(len(shape) > 1 for shape in net.weight_shapes), [*map(prod, net.weight_shapes)]
        numbers = sum(sizes)
        operations = self.visits * (OPERATIONS_PER_ELEMENT * numbers + OPERATIONS_PER_MATRIX * matrices)
        least = LEAST_TOGETHER if LEAST_TOGETHER * max(sizes) <= LAYERS_TOGETHER else 1
        together = max(least, min(MOST_TOGETHER, NUMBERS_TOGETHER // numbers))
        return Cost(float(operations), ARRAYS * NUMBER_BYTES * numbers, together)

    def multiple(self, net: Net) -> int:
        """Those side by side stay in one chunk, however long they take."""
        return self.together(net)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        import xarray as xr

        variables = {}
        for name, value in values.items():
            quantity = QUANTITIES[name]
            words = {"long_name": quantity.long_name, "symbol": quantity.symbol, "units": "1"}
            variables[name] = xr.Variable(("draw", *self.DIMS[name]), value, words)
        return xr.Dataset(variables, attrs=dict(attrs))
