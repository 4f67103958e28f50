"""Weights that are drawn when they are first looked up, for nets that need not hold all of them at once."""

from meanfield.common.seeds import Streams
from meanfield.nets.maps import Weight
from meanfield.nets.net import Net
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.weights.matrices import Lazy, WeightMatrix, draw_dense, grouped
from meanfield.simulation.weights.slabs import Slabs


class DrawnInTurn(dict[str, WeightMatrix]):
    """The weights of a net's units by name, one draw per stream, "dense" or "lazy"; what is popped is gone.

    ``right`` and ``left`` are the columns, per sample and site, that each use of a weight multiplies by it from either
    side: a lazily revealed matrix has room for all of them from the start.
    """

    def __init__(self, net: Net, streams: Streams, kind: str, right: int, left: int) -> None:
        super().__init__()
        self._kind = kind
        places = net.places
        self._asked = {name: (uses * right * places, uses * left * places) for name, uses in net.use_counts.items()}
        self._left_to_draw = {name: net.weights[name] for name in self._asked}
        self._normals, self._slabs = NormalSource(streams), Slabs()

    def __missing__(self, name: str) -> WeightMatrix:
        self[name] = drawn = grouped(self._left_to_draw.pop(name), self._group)
        return drawn

    def _group(self, weight: Weight, _: slice) -> WeightMatrix:
        if self._kind == "dense":
            return draw_dense(weight, self._normals)
        return Lazy(weight, self._normals, self._slabs, self._asked[weight.name])


def numbers_revealed(weight: Weight, right: int, left: int) -> int:
    """Normals that a lazily revealed weight draws for so many columns from the right and from the left."""
    return right * weight.shape[0] + left * weight.fan_in * weight.groups
