"""How the output of a weight matrix joins the net, and where skip connections lead."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """How the output of one weight matrix joins the net: z = z_skip + multiplier * W patches(sigma(z_below)).

    Attributes:
        skip: layer whose pre-activation is added (0 is the input), or None.
        multiplier: factor on the branch.
        variance_factor: factor on the fan-in variance of the weights.
    """

    skip: int | None = None
    multiplier: float = 1.0
    variance_factor: float = 1.0


def joins(layers: Sequence[Layer]) -> dict[int, int]:
    """The layer that every skip connection leads to, by the layer that it starts from.

    Raises:
        ValueError: two skip connections start from one layer; errors would be sent back through one of them alone.
    """
    ends: dict[int, int] = {}
    for place, layer in enumerate(layers, start=1):
        if layer.skip is None:
            continue
        if layer.skip in ends:
            raise ValueError(
                f"layers {ends[layer.skip]} and {place} both skip from layer {layer.skip}; errors and labels are "
                "sent back through one skip connection of a layer: let every skip start from a layer of its own"
            )
        ends[layer.skip] = place
    return ends
