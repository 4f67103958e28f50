"""Draws whose numbers leave the range of floats are refused, not averaged.

Sizes change by a factor from layer to layer: fading numbers come close to the smallest float before they are lost, and
growing ones end as infinity. So it is enough to check that no single matrix changes sizes by too much, and to look at
the pre-activations of every layer and at their change.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import log

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.nets.net import Net

# Below this, the errors behind a change, which are smaller by up to the fan-in, near the smallest number that single
# precision keeps in full, 1.2e-38.
LEAST = 1e-30
# The least size of weights in single precision: numbers that they shrink too far in one step were below LEAST before.
JUMP = 1e-15
# Energies are squared and summed over draws.
LARGEST_ENERGY = 1e150
LOG_RANGE = 300.0


def overflow_silent() -> AbstractContextManager[None]:
    """No warnings about what is refused here."""
    return np.errstate(over="ignore", invalid="ignore")


def require_range(sizes: Mapping[str, Array]) -> None:
    """Raise OverflowError unless all sizes, (D, layers) by what they are of, are 0 or well inside single precision."""
    for what, values in sizes.items():
        bad = ~np.isfinite(values) | ((values > 0) & (values < LEAST))
        if bad.any():
            draw, layer = np.argwhere(bad)[0]
            raise OverflowError(
                f"{what} has size {values[draw, layer]:.2g} at layer {layer + 1} in some draw, outside the range of "
                f"float32 ({LEAST:g} to 3e38, with room for what they are made of); take precision 'float64'"
            )


def require_followed(what: str, size: float, least: float = LEAST) -> None:
    """Raise OverflowError unless elements of this size are 0, or can be followed in single precision."""
    if size and not least <= size <= 1 / least:
        raise OverflowError(
            f"{what} has size {size:.2g}; float32 would lose in one step what passes through it (of sizes from "
            f"{least:g} to {1 / least:g} all is seen); take precision 'float64'"
        )


def require_reach(architecture: Net) -> None:
    """Raise OverflowError where weights off the fan-in rule make energies that double precision cannot hold.

    With homogeneous activations label terms go as f^(2L) and output terms as f^(3L), f the variance over the rule's.
    Other nets are checked when they are drawn.
    """
    if not isinstance(architecture, Sequential):
        return
    factor = architecture.variance_factor
    if factor == 1 or not architecture.sigma.homogeneous:
        return
    power = 3 if factor > 1 else 2
    deepest = LOG_RANGE / abs(power * log(factor))
    if architecture.depth > deepest:
        raise OverflowError(
            f"weight_variance is {architecture.weight_variance:g}: at depth {architecture.depth} energies are about "
            f"{factor:g}^{power * architecture.depth}, beyond what floats can hold and square; draw nets of depth "
            f"{int(deepest)} or less, or take predict, which has logarithms"
        )


def require_energies(energies: Mapping[str, Array], may_vanish: bool) -> None:
    """Raise OverflowError unless double precision holds all energies, (D, ...) by name, and their squares.

    A label term of 0 has been lost, unless terms ``may_vanish``, as behind units that are all off.
    """
    for name, values in energies.items():
        bad = ~(np.abs(values) < LARGEST_ENERGY)
        if name == "label_term" and not may_vanish:
            bad |= values == 0
        if bad.any():
            raise OverflowError(
                f"{name} is {values[bad][0]:.2g} at some layer in some draw, beyond what floats can hold and square; "
                "lower the depth or what makes it grow or fade so fast (branch scaling, weight_variance, inputs)"
            )


def require_finite(what: str, arrays: Sequence[ArrayLike]) -> None:
    """Raise OverflowError unless all elements, layer by layer, are finite."""
    for layer, values in enumerate(arrays, start=1):
        if not np.isfinite(values).all():
            raise OverflowError(f"{what} of layer {layer} leaves the range of floats; give smaller weights or inputs")
