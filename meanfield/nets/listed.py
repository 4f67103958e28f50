"""Nets of layers that no family lists: other activations, variances or widths at every layer, blocks that differ.

A list of units is such a net where every layer is an activation and one matrix, all of one stencil, and where blocks,
if there are any, stand one on the other, each on the value below it. Theory of nets of layers reads `ListedLayers` as
it reads a family's net; what asks for one rule of all layers refuses it by `Sequential.follows_one_rule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.layered import READOUTS, Layer, Sequential
from meanfield.nets.maps import Linear, Pointwise
from meanfield.nets.net import Net, Unit

# Reasons that a refusal gives; of nets with more, it counts the others.
MOST_REASONS = 3


def listed_layers(net: Net) -> tuple[ListedLayers | None, str]:
    """The net as its layers, or why it is none, unit by unit."""
    reasons = list(_reasons(net))
    if not reasons:
        return ListedLayers(listed=net), ""
    shown = "; ".join(reasons[:MOST_REASONS])
    return None, f"{shown}; and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else shown


@dataclass(frozen=True, kw_only=True)
class ListedLayers(Sequential):
    """The layers of a net that `listed_layers` could read, for what serves nets of layers."""

    listed: Net

    def __post_init__(self) -> None:
        """Its units have been checked by the net that lists them."""

    follows_one_rule = False
    weight_variance = None
    head = ""

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        return self.listed.units

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        assert self.listed.readout_unit is not None
        return self.listed.readout_unit

    @cached_property
    def depth(self) -> int:  # type: ignore[override]
        return len(self.units)

    @cached_property
    def linears(self) -> tuple[Linear, ...]:
        """The matrices of layers 1 .. N."""
        return tuple(part for unit in self.units for part in unit.branch if isinstance(part, Linear))

    @cached_property
    def unit_ends(self) -> tuple[int, ...]:  # type: ignore[override]
        ends, layer = [], 0
        for unit in self.units:
            layer += len(unit.branch) // 2
            ends.append(layer)
        return tuple(ends)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:  # type: ignore[override]
        layers: list[Layer] = []
        starts = (0, *self.unit_ends)
        for unit in self.units:
            for place in range(count := len(unit.branch) // 2):
                weight = self.linears[len(layers)].weights[0]
                factor = weight.variance * weight.fan_in * self.sigma_at(len(layers)).gain
                joins = unit.skip is not None and place == count - 1
                layers.append(
                    Layer(starts[unit.skip or 0] if joins else None, unit.multiplier if joins else 1.0, factor)
                )
        return tuple(layers)

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        return (self.listed.first_channels, *(linear.weights[0].shape[0] for linear in self.linears))

    @cached_property
    def sigmas(self) -> tuple[Activation, ...]:
        """sigma of values 0 .. N."""
        maps = (part for unit in self.all_units for part in unit.branch)
        return tuple(activation_named(part.activation) for part in maps if isinstance(part, Pointwise))

    def sigma_at(self, place: int) -> Activation:
        return self.sigmas[place]

    @property
    def activation(self) -> str:  # type: ignore[override]
        """That which reads the input."""
        return self.sigmas[0].name

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return self.listed.output_shape[1]

    @property
    def inputs(self) -> int:  # type: ignore[override]
        return self.listed.inputs

    @property
    def grid(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.listed.grid

    @property
    def kernel(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.linears[0].kernel or (1,) * len(self.grid)

    @property
    def padding(self) -> str:  # type: ignore[override]
        return self.linears[0].padding

    @property
    def readout(self) -> str:  # type: ignore[override]
        return READOUTS[0] if self.listed.is_pooled else READOUTS[1]

    @property
    def input_law(self) -> str:  # type: ignore[override]
        return self.listed.input_law

    @property
    def input_energy(self) -> float:  # type: ignore[override]
        return self.listed.input_energy or self.sigma.gain

    @property
    def variance_factor(self) -> float:
        """That of the layer at which the law of the inputs gives variance 1."""
        return self.sigma.gain / self.input_energy

    def describe(self) -> dict[str, Any]:
        return self.listed.describe()

    @property
    def head_variance(self) -> float:
        return self.readout_unit.branch[-1].weights[0].variance * self.readout_unit.multiplier**2


def _reasons(net: Net) -> Iterator[str]:
    """What stands in the way, in the order of the units."""
    if net.input_law == "tokens":
        yield "inputs are tokens, which may be the same"
    if net.is_tied:
        name = next(name for name, uses in net.use_counts.items() if uses > 1)
        yield f"weight {name!r} is used in several places, whose changes correlate"
    first: Any = next((part for part in net.units[0].branch if isinstance(part, Linear)), None)
    skipping = [number for number, unit in enumerate(net.units) if unit.skip is not None]
    sigmas = {part.activation for unit in net.all_units for part in unit.branch if isinstance(part, Pointwise)}
    for number, unit in enumerate(net.units):
        if why := _of_layers(unit, first) or _of_joins(unit, number, skipping):
            yield f"unit {number + 1} {why}"
    if skipping and len(sigmas) > 1:
        yield f"its stream is read by several activations ({', '.join(sorted(sigmas))}), whose gates remember"
    yield from _of_readout(net, first)


def _of_layers(unit: Unit, first: Any) -> str:
    """Why the branch is no list of layers, each an activation and a matrix of the first one's stencil."""
    if unit.after:
        return f"has {_named(unit.after)} behind its join"
    pairs = list(zip(unit.branch[::2], unit.branch[1::2], strict=False))
    if len(unit.branch) % 2 or not all(isinstance(a, Pointwise) and isinstance(b, Linear) for a, b in pairs):
        return f"is made of {_named(unit.branch)}, not of activations and matrices in turn"
    for _, linear in pairs:
        if len(linear.weights) > 1 or linear.weights[0].groups > 1:
            return "has weights side by side, or in groups"
        if linear.dilation > 1:
            return f"has a stencil of dilation {linear.dilation}"
        if _stencil(linear) != _stencil(first):
            return f"has another stencil than unit 1: {_stencil(linear)} and {_stencil(first)}"
    return ""


def _of_joins(unit: Unit, number: int, skipping: list[int]) -> str:
    """Why it is neither a plain layer nor a block on the value below."""
    if unit.skip is None:
        if len(unit.branch) > 2:
            return "holds several layers without a skip; give each a unit of its own"
        if unit.multiplier != 1:
            return f"multiplies by {unit.multiplier:g} without a skip; put the factor into the variance of its weights"
        if skipping and skipping[0] < number < skipping[-1]:
            return "is a plain layer between blocks, whose gates the stream remembers"
        return ""
    return "" if unit.skip == number else f"skips from value {unit.skip}, over several units"


def _of_readout(net: Net, first: Any) -> Iterator[str]:
    if net.readout_unit is None:
        yield "it has no readout, from which labels would come down"
        return
    activation, *between, last = net.readout_unit.branch if len(net.readout_unit.branch) > 1 else (None, None)
    pools = [part for part in between if part.pools]
    is_layer = isinstance(activation, Pointwise) and isinstance(last, Linear) and between == pools
    if not is_layer or net.readout_unit.after or len(pools) > 1:
        made = _named(net.readout_unit.maps)
        yield f"its readout is made of {made}, not of an activation, pooling or none, and a matrix"
    elif len(last.weights) > 1 or last.weights[0].groups > 1:
        yield "its readout has weights side by side, or in groups"
    elif not pools and _stencil(last) != _stencil(first):
        yield f"its readout has another stencil than its layers: {_stencil(last)} and {_stencil(first)}"
    elif pools and (last.taps > 1 or getattr(pools[0], "kind", "") != "mean"):
        yield "its readout takes one site, or a stencil behind pooling"


def _stencil(linear: Any) -> str:
    """Kernel, padding and whatever else is not as usual, as far as they matter."""
    taps = "one tap" if linear.taps == 1 else f"{linear.kernel} with {linear.padding} padding"
    unusual = [field for field in fields(linear) if field.name not in ("weights", "padding")]
    given = [(field.name, getattr(linear, field.name), field.default) for field in unusual]
    return ", ".join([taps, *(f"{name} {value}" for name, value, default in given if value != default)])


def _named(maps: Any) -> str:
    return ", ".join(type(part).__name__ for part in maps)
