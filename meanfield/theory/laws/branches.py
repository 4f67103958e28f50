"""How a family of nets changes with its depth, read off the layers of a few of its nets, whatever their fields say.

A field such as ``scaling`` names what a family builds; a class of one's own may build something else. So the law over
depth is taken from the multipliers and variances that the layers have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isclose, log

import numpy as np

from meanfield.nets.families.layered import Sequential
from meanfield.nets.layers import Layer

# Where an asymptote is read off, and how closely logarithms must lie on a line to be those of a power.
FAR = (64, 128, 256)
ROUNDING = 1e-9
LARGEST_DENOMINATOR = 100


class NoPower(ValueError):
    """The layers of a family follow no power of its depth; the message says what does not."""


@dataclass(frozen=True)
class Branches:
    """The blocks of one net, which are all alike, and the plain layers beside them.

    Attributes:
        stem, tail: plain layers below and above the blocks.
        multiplier: a, the factor on a branch.
        variance_factors: of the layers of a branch, from the one that reads the stream upwards, over the fan-in rule.
    """

    stem: tuple[Layer, ...]
    tail: tuple[Layer, ...]
    multiplier: float
    variance_factors: tuple[float, ...]


@dataclass(frozen=True)
class BranchPowers:
    """Powers of the number of blocks K: a = c K^multiplier, variance factors c K^variances.

    Attributes:
        stem, tail: numbers of plain layers, the same at every K.
        multiplier: power of the factor on a branch.
        variances: powers of the variance factors of the layers of a branch.
    """

    stem: int
    tail: int
    multiplier: float
    variances: tuple[float, ...]


def branches_of(net: Sequential) -> Branches:
    """The blocks of a net with skip connections.

    Raises:
        NoPower: blocks that differ from one another, plain layers between them, or a skip over several units.
    """
    units = [net.layers[start:end] for start, end in pairwise((0, *net.unit_ends))]
    skipping = [number for number, unit in enumerate(units) if unit[-1].skip is not None]
    first, last = skipping[0], skipping[-1]
    starts = (0, *net.unit_ends)
    if len(skipping) <= last - first or any(units[number][-1].skip != starts[number] for number in skipping):
        raise NoPower("its blocks do not stand one on the other, each with a skip of its own")
    blocks = {(unit[-1].multiplier, tuple(layer.variance_factor for layer in unit)) for unit in units[first : last + 1]}
    if len(blocks) > 1:
        raise NoPower(f"its blocks differ from one another at depth {net.depth}, and the law is that of equal ones")
    ((multiplier, factors),) = blocks
    plain = [tuple(unit[-1] for unit in part) for part in (units[:first], units[last + 1 :])]
    return Branches(plain[0], plain[1], multiplier, factors)


def branch_powers(net: Sequential, depths: Iterable[int] = ()) -> BranchPowers:
    """The powers of K that multipliers and variances follow from depth to depth of the nets of this family.

    Args:
        net: a net with skip connections; other depths are those of ``net.replace``.
        depths: further ones over which the powers must hold, beside `FAR`.

    Raises:
        NoPower: blocks that `branches_of` refuses, plain layers that change with K, factors that are no power of K.
    """
    counts = sorted({*FAR, *depths})
    parts = [branches_of(net if count == net.depth else net.replace(depth=count)) for count in counts]
    if len({(part.stem, part.tail, len(part.variance_factors)) for part in parts}) > 1:
        raise NoPower("its plain layers, or the layers of a block, change with the number of blocks")
    multiplier = power_of(counts, [abs(part.multiplier) for part in parts], "factor on its branches")
    by_layer = zip(*(part.variance_factors for part in parts), strict=True)
    variances = tuple(power_of(counts, factors, "variance of the weights of its branches") for factors in by_layer)
    return BranchPowers(len(parts[0].stem), len(parts[0].tail), multiplier, variances)


def keeps_energies(net: Sequential) -> bool:
    """Whether plain layers pass energies unchanged: fan-in weights, gates that know the sign alone, no lossy edge."""
    factors = {id(layer): layer.variance_factor for layer in net.layers}.values()
    return net.covers_evenly and net.sigma.homogeneous and all(isclose(factor, 1.0) for factor in factors)


def power_of(counts: Sequence[int], values: Sequence[float], what: str) -> float:
    """x of values = c counts^x; a simple fraction where it is one to rounding.

    Raises:
        NoPower: values that are not positive, or no power of the counts.
    """
    if min(values) > 0:
        logs = np.log(values)
        power = (logs[-1] - logs[0]) / log(counts[-1] / counts[0])
        expected = logs[0] + power * np.log(np.array(counts) / counts[0])
        if np.allclose(logs, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(logs).max())):
            fraction = float(Fraction(power).limit_denominator(LARGEST_DENOMINATOR))
            return fraction if abs(fraction - power) < ROUNDING else float(power)
    shown = ", ".join(f"{value:.4g} at {count}" for count, value in zip(counts, values, strict=True))
    raise NoPower(f"the {what} is no power of the depth: {shown}")
