"""What every net is to the library: units and a readout as data, and the shapes that follow from them.

Source of the reduction to the top layer: Zhang et al. 2026, Lemma 1.
"""

from collections import Counter
from dataclasses import fields, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Self

import meanfield
from meanfield.common.validation import require_count, settle
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import BatchNormalisation, Pointwise, Pooling, Weight
from meanfield.nets.units import Unit, channels_by_value, named_weights, uses

INPUT_LAWS = ("white", "normalised", "sphere", "tokens")


class Net:
    """A chain of depth units and a readout (`meanfield.nets.units`), on a batch of samples over a grid of sites.

    Attributes:
        units: the depth units, from the input up.
        readout_unit: the unit that makes outputs of the last value; None if that value is the output.
        first_channels: channels of the input.
        inputs: samples B of a batch.
        grid: lengths of the axes; the empty grid has one site.
        input_law: how inputs are drawn where none are given: "white" Gaussian of unit variance over channels and sites,
            "normalised" to a first layer of variance 1, uniform on the "sphere" |x|^2 = channels, or one-hot "tokens",
            1 in one channel of every site, uniform among all, and 0 in the others.
        input_energy: of "normalised" inputs x, the mean over channels of sigma(x)^2, sigma the `input_activation`.
        first_layer: the number of the first depth unit in datasets over ``layer``.
    """

    units: tuple[Unit, ...]
    readout_unit: Unit | None
    first_channels: int
    inputs: int
    grid: tuple[int, ...]
    input_law: ClassVar[str] = "white"
    input_energy: float | None
    first_layer: ClassVar[int] = 1

    @cached_property
    def value_channels(self) -> tuple[int, ...]:
        """Channels of value_0 .. value_D."""
        return channels_by_value(self.units, self.first_channels)

    @cached_property
    def weights(self) -> dict[str, Weight]:
        """All weights by name, in the order of their first use, those of the readout last."""
        return named_weights(self.all_units)

    @cached_property
    def all_units(self) -> tuple[Unit, ...]:
        """The depth units and the readout, if there is one."""
        return self.units if self.readout_unit is None else (*self.units, self.readout_unit)

    def role_of(self, weight: str) -> str:
        """Where the weight of this name stands: "input" (in the first unit alone), "hidden" (in any other) or "output".

        For a bias, or a gain, the word is followed by "_bias".
        """
        role = self._role_of_place.get(weight, "output")
        return role if len(self.weights[weight].shape) > 1 else f"{role}_bias"

    @cached_property
    def _role_of_place(self) -> dict[str, str]:
        """Of all weights of the depth units, a weight of the first one that others share being hidden."""
        return dict.fromkeys(named_weights(self.units[:1]), "input") | dict.fromkeys(
            named_weights(self.units[1:]), "hidden"
        )

    @cached_property
    def input_activation(self) -> Activation:
        """sigma of the first map, which reads the input; the identity where that is no activation."""
        first = self.units[0].maps[0]
        return activation_named(first.activation if isinstance(first, Pointwise) else "linear")

    @property
    def weight_shapes(self) -> list[tuple[int, ...]]:
        """(channels out, channels in, *kernel) of every weight, and (channels,) of every bias."""
        return [weight.shape for weight in self.weights.values()]

    @property
    def weight_variances(self) -> list[float]:
        """Variance of an element of every weight."""
        return [weight.variance for weight in self.weights.values()]

    @property
    def has_skips(self) -> bool:
        """Whether some unit adds an earlier value to its own branch."""
        return any(unit.skip is not None for unit in self.units)

    @property
    def is_tied(self) -> bool:
        """Whether some weight is used in more than one place."""
        return max(self.use_counts.values()) > 1

    @cached_property
    def use_counts(self) -> Counter[str]:
        """In how many places each weight acts, by name, the readout's included."""
        return Counter(weight.name for _, _, holder in uses(self.all_units) for weight in holder.weights)

    @cached_property
    def last_uses(self) -> dict[str, int]:
        """The number of the last unit, counted from 1, that uses each weight."""
        return {weight.name: unit + 1 for unit, _, holder in uses(self.units) for weight in holder.weights}

    @cached_property
    def couples_samples(self) -> bool:
        """Whether what a sample becomes depends on the others of its batch."""
        return any(isinstance(part, BatchNormalisation) for unit in self.all_units for part in unit.maps)

    @property
    def is_pooled(self) -> bool:
        """Whether the readout averages over sites."""
        return self.readout_unit is not None and any(isinstance(part, Pooling) for part in self.readout_unit.branch)

    @property
    def reduces_to_top(self) -> bool:
        """Whether labels reach every value with the same energy, so that one column measures all overlaps."""
        return False

    @cached_property
    def sites(self) -> int:
        """S."""
        return prod(self.grid)

    @cached_property
    def places(self) -> int:
        """Samples times sites: columns of a batch's patches."""
        return self.inputs * self.sites

    @property
    def value_sizes(self) -> list[int]:
        """n_1 .. n_D of the values: channels times samples times sites."""
        return [channels * self.places for channels in self.value_channels[1:]]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(samples, channels, *grid)."""
        return (self.inputs, self.first_channels, *self.grid)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(samples, outputs, *grid), without the grid after a pooling readout; of the last value without a readout."""
        if self.readout_unit is None:
            return (self.inputs, self.value_channels[-1], *self.grid)
        channels = channels_by_value([self.readout_unit], self.value_channels[-1])[-1]
        return (self.inputs, channels, *(() if self.is_pooled else self.grid))

    def _settle_counts(self, *, minimum: int = 1, **reasons: str) -> None:
        """Settle these fields as whole numbers; errors give the reason."""
        for name, why in reasons.items():
            settle(self, **{name: require_count(name, getattr(self, name), minimum=minimum, why=why)})

    def replace(self, **changes: Any) -> Self:
        """This net with other values of some of its fields."""
        return replace(self, **changes)  # type: ignore[type-var]

    def memory(self, *, weights: str = "auto", draws: int = 1) -> int:
        """Bytes that drawing this net takes: `meanfield.memory`."""
        return meanfield.memory(self, weights=weights, draws=draws)

    def describe(self) -> dict[str, Any]:
        """The full spec as plain values, for records that outlive the process."""
        spec = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"family": type(self).__name__, **{k: list(v) if isinstance(v, tuple) else v for k, v in spec.items()}}
