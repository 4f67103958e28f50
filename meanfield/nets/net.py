"""What every net is to the library: units and a readout as data, and the shapes that follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from math import prod
from typing import Any, ClassVar

from meanfield.memory import Drawable
from meanfield.nets.maps import Pooling, Weight
from meanfield.nets.units import Unit, channels_by_value, named_weights


INPUT_LAWS = ("white", "normalised", "sphere")


class Net(Drawable, ABC):
    """A chain of depth units and a readout (`meanfield.nets.units`), on a batch of samples over a grid of sites.

    Attributes:
        inputs: samples B of a batch.
        grid: lengths of the axes; the empty grid has one site.
        input_law: how inputs are drawn where none are given: "white" Gaussian of unit variance over channels and sites,
            "normalised" to a first layer of variance 1, or uniform on the "sphere" |x|^2 = channels.
    """

    inputs: int
    grid: tuple[int, ...]
    input_law: ClassVar[str] = "white"

    @property
    @abstractmethod
    def first_channels(self) -> int:
        """Channels of the input."""

    @cached_property
    @abstractmethod
    def units(self) -> tuple[Unit, ...]:
        """The depth units, from the input up."""

    @cached_property
    @abstractmethod
    def readout(self) -> Unit | None:
        """The unit that makes outputs of the last value; None if that value is the output."""

    @cached_property
    def channels(self) -> tuple[int, ...]:
        """Channels of value_0 .. value_D."""
        return channels_by_value(self.units, self.first_channels)

    @cached_property
    def weights(self) -> dict[str, Weight]:
        """All weights by name, in the order of their first use, those of the readout last."""
        return named_weights([*self.units, *([] if self.readout is None else [self.readout])])

    @property
    def weight_shapes(self) -> list[tuple[int, ...]]:
        """(channels out, channels in, *kernel) of every weight, and (channels,) of every bias."""
        return [weight.shape for weight in self.weights.values()]

    @property
    def weight_variances(self) -> list[float]:
        """Variance of an element of every weight."""
        return [weight.variance for weight in self.weights.values()]

    @cached_property
    def sites(self) -> int:
        """S."""
        return prod(self.grid)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(samples, channels, *grid)."""
        return (self.inputs, self.first_channels, *self.grid)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(samples, outputs, *grid), without the grid behind a pooling readout; of the last value, if there is none."""
        if self.readout is None:
            return (self.inputs, self.channels[-1], *self.grid)
        channels = channels_by_value([self.readout], self.channels[-1])[-1]
        pooled = any(isinstance(one, Pooling) for one in self.readout.branch)
        return (self.inputs, channels, *(() if pooled else self.grid))

    def describe(self) -> dict[str, Any]:
        """The full spec as plain values, for records that outlive the process."""
        spec = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"family": type(self).__name__, **{k: list(v) if isinstance(v, tuple) else v for k, v in spec.items()}}

    def _set(self, name: str, value: Any) -> None:
        """Store a normalised value on the frozen spec (construction only)."""
        object.__setattr__(self, name, value)
