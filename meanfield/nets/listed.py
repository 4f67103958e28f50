"""Nets of layers that no family lists: other activations, variances or widths at every layer, blocks that differ.

A list of units is such a net where every layer is [normalisation,] [activation,] matrix, all of one stencil, and where
blocks, if there are any, stand one on the other, each on the value below it, and normalise nothing. Theory of nets of
layers reads `ListedLayers` as it reads a family's net; what asks for one rule of all layers refuses it by
`Sequential.follows_one_rule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from typing import Any

from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.layered import READOUTS, Layer, Sequential
from meanfield.nets.maps import Linear, Normalisation, Pointwise, Pooling
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
    def read(self) -> tuple[LayerMaps, ...]:
        """What stands on values 0 .. N, the readout on the last."""
        return tuple(layer for unit in self.all_units for layer in _layers_of(unit))

    def sigma_at(self, place: int) -> Activation:
        return activation_named(self.read[place].activation)

    def normalised_at(self, place: int) -> float | None:
        return self.read[place].epsilon

    @cached_property
    def unit_ends(self) -> tuple[int, ...]:
        return tuple(accumulate(len(_layers_of(unit)) for unit in self.units))

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        layers: list[Layer] = []
        starts = (0, *self.unit_ends)
        for unit, end in zip(self.units, self.unit_ends, strict=True):
            skip = None if unit.skip is None else starts[unit.skip]
            for place in range(len(layers), end):
                weight = self.read[place].linear.weights[0]
                factor = weight.variance * weight.fan_in * self.sigma_at(place).gain
                is_last = place == end - 1
                layers.append(Layer(skip if is_last else None, unit.multiplier if is_last else 1.0, factor))
        return tuple(layers)

    @cached_property
    def channels_by_layer(self) -> tuple[int, ...]:
        return (self.listed.first_channels, *(layer.linear.weights[0].shape[0] for layer in self.read[:-1]))

    @property
    def activation(self) -> str:  # type: ignore[override]
        """That which reads the input."""
        return self.read[0].activation

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
        return self.read[0].linear.kernel or (1,) * len(self.grid)

    @property
    def padding(self) -> str:  # type: ignore[override]
        return self.read[0].linear.padding

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

    @property
    def head_variance(self) -> float:
        return self.read[-1].linear.weights[0].variance * self.readout_unit.multiplier**2

    @property
    def head(self) -> str:  # type: ignore[override]
        """Variance of the readout's weights over 1 / fan-in."""
        return f"{self.head_variance * self.head_fan_in:.6g} / fan-in"

    def describe(self) -> dict[str, Any]:
        return self.listed.describe()


@dataclass(frozen=True)
class LayerMaps:
    """What stands between a value and the next: [normalisation of this epsilon,] activation, [pooling,] matrix."""

    linear: Linear
    activation: str = "linear"
    epsilon: float | None = None
    pooling: Pooling | None = None


# The maps of a layer, in their order.
PARTS: tuple[type, ...] = (Normalisation, Pointwise, Pooling, Linear)


def _layers_of(unit: Unit) -> list[LayerMaps]:
    """The layers of a unit; none if its branch is no list of them."""
    layers: list[LayerMaps] = []
    parts: dict[type, Any] = {}
    for part in unit.branch:
        if type(part) not in PARTS or any(PARTS.index(type(part)) <= PARTS.index(kind) for kind in parts):
            return []
        parts[type(part)] = part
        if part.mixes_channels:
            norm, sigma = parts.get(Normalisation), parts.get(Pointwise)
            activation, epsilon = sigma.activation if sigma else "linear", norm.epsilon if norm else None
            layers.append(LayerMaps(parts[Linear], activation, epsilon, parts.get(Pooling)))
            parts = {}
    return [] if parts else layers


def _reasons(net: Net) -> Iterator[str]:
    """What stands in the way, in the order of the units."""
    if net.input_law == "tokens":
        yield "inputs are tokens, which may be the same"
    if net.is_tied:
        name = next(name for name, uses in net.use_counts.items() if uses > 1)
        yield f"weight {name!r} is used in several places, whose changes correlate"
    by_unit = [_layers_of(unit) for unit in net.units]
    first = next((layer.linear for layers in by_unit for layer in layers), None)
    skipping = [number for number, unit in enumerate(net.units) if unit.skip is not None]
    for number, (unit, layers) in enumerate(zip(net.units, by_unit, strict=True)):
        if why := _of_layers(unit, layers, first) or _of_joins(unit, len(layers), number, skipping):
            yield f"unit {number + 1} {why}"
    top = [] if net.readout_unit is None else _layers_of(net.readout_unit)
    yield from _of_readout(net.readout_unit, top, first)
    read = [layer for layers in (*by_unit, top) for layer in layers]
    if read and read[0].epsilon is not None:
        yield "its inputs are normalised by a map"
    sigmas = sorted({layer.activation for layer in read})
    if skipping and len(sigmas) > 1:
        yield f"its stream is read by several activations ({', '.join(sigmas)}), whose gates remember"
    if skipping and any(layer.epsilon is not None for layer in read):
        yield "its stream is normalised, whose gates remember"


def _of_layers(unit: Unit, layers: list[LayerMaps], first: Linear | None) -> str:
    """Why the branch is no list of layers of the first one's stencil."""
    if unit.after:
        return f"has {_named(unit.after)} behind its join"
    if not layers or any(layer.pooling for layer in layers):
        return f"is made of {_named(unit.branch)}, not of [normalisation, activation,] matrix in turn"
    return next(filter(None, (_of_matrix(layer.linear, first) for layer in layers)), "")


def _of_matrix(linear: Linear, first: Linear | None) -> str:
    """Why it is not one matrix of the first one's stencil."""
    if len(linear.weights) > 1 or linear.weights[0].groups > 1:
        return "has weights side by side, or in groups"
    others = [field for field in fields(linear) if field.name not in ("weights", "padding")]
    unusual = [field.name for field in others if getattr(linear, field.name) != field.default]
    if unusual:
        return f"has a stencil of {', '.join(f'{name} {getattr(linear, name)}' for name in unusual)}"
    if first is not None and _stencil(linear) != _stencil(first):
        return f"has another stencil than the first matrix: {_stencil(linear)}, not {_stencil(first)}"
    return ""


def _stencil(linear: Linear) -> str:
    return "one tap" if linear.taps == 1 else f"{linear.kernel} with {linear.padding} padding"


def _of_joins(unit: Unit, layers: int, number: int, skipping: list[int]) -> str:
    """Why it is neither a plain layer nor a block on the value below."""
    if unit.concatenates:
        return "sets its branch beside a value, which is read in parts"
    if unit.shortcut:
        return f"adds its branch to what passes a shortcut of {_named(unit.shortcut)}"
    if unit.skip is not None:
        return "" if unit.skip == number else f"skips from value {unit.skip}, over several units"
    if layers > 1:
        return "holds several layers without a skip; give each a unit of its own"
    if skipping and skipping[0] < number < skipping[-1]:
        return "is a plain layer between blocks, whose gates the stream remembers"
    return ""


def _of_readout(readout: Unit | None, layers: list[LayerMaps], first: Linear | None) -> Iterator[str]:
    if readout is None:
        yield "it has no readout, from which labels would come down"
    elif readout.after or len(layers) != 1:
        yield f"its readout is made of {_named(readout.maps)}, not of [normalisation, activation, pooling,] matrix"
    elif layers[0].pooling is None:
        if why := _of_matrix(layers[0].linear, first):
            yield f"its readout {why}"
    elif layers[0].linear.taps > 1 or layers[0].pooling.kind != "mean":
        yield "its readout takes one site, or a stencil behind pooling"


def _named(maps: Any) -> str:
    return ", ".join(type(part).__name__ for part in maps)
