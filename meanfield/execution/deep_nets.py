"""What draws of deep nets of equal layers need, from shallow ones: no layer is met a million times to be counted."""

from fractions import Fraction
from typing import Any

from meanfield.nets.net import Net
from meanfield.simulation.cost import BATCH_BYTES_HELD
from meanfield.simulation.measures.base import Measure
from meanfield.simulation.measures.energies import Energies

# Depths that are counted layer by layer. Bytes of a draw are sums and maxima over layers, and sums of such sums: from
# the first of these on a polynomial of second degree in depth.
COUNTED = (24, 32, 40)
# Nets that say their depth in one number and their sizes once for all layers, by family.
SIZES = {
    "MLP": "width",
    "ResidualMLP": "width",
    "ConvNet": "channels",
    "ResidualConvNet": "channels",
    "TiedLoop": "width",
    "Transformer": "width",
}


def bytes_needed(measure: Measure, net: Net, draws: int) -> int:
    """As `Measure.bytes` of the settled measure; of deep nets of equal layers in the time of shallow ones."""
    net = measure.drawn_net(net)
    if not (isinstance(measure, Energies) and measure.backend == "numpy" and _has_equal_layers(net)):
        return measure.settled(net).bytes(net, draws)
    shallow: list[Any] = [net.replace(depth=depth) for depth in COUNTED]
    settled = [measure.settled(each) for each in shallow]
    if len({each.weights for each in settled}) > 1:
        return measure.settled(net).bytes(net, draws)
    costs = [each.cost(at) for each, at in zip(settled, shallow, strict=True)]
    of_draw = _at(net.depth, [cost.bytes for cost in costs])  # type: ignore[attr-defined]
    together = costs[-1].together
    if settled[-1].weights != "gram":
        together = min(together, max(1, BATCH_BYTES_HELD // of_draw))
    return min(draws, together) * of_draw


def _has_equal_layers(net: Net) -> bool:
    """Whether it is so deep that shallow nets tell, and of a family whose layers are all alike."""
    size = SIZES.get(type(net).__name__)
    known = type(net).__module__.startswith("meanfield.nets.families.") and size is not None
    return known and isinstance(getattr(net, str(size)), int) and int(getattr(net, "depth", 0)) > COUNTED[-1]


def _at(depth: int, counted: list[int]) -> int:
    """The polynomial of second degree through what was counted."""
    step = COUNTED[1] - COUNTED[0]
    place = Fraction(depth - COUNTED[0], step)
    first, second = counted[1] - counted[0], counted[2] - 2 * counted[1] + counted[0]
    return int(counted[0] + place * first + place * (place - 1) / 2 * second)
