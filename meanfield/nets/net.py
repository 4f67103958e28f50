"""What every net is to the library: a list of depth units and a readout, and the shapes that follow.

A unit says where it skips from, its multiplier, its branch, and what follows the join:

    value_0 = input,   value_u = after([shortcut(value_skip) +] multiplier * branch(value_{u-1})),   u = 1 .. D

or has the channels of both, one behind the other, after([value_skip, multiplier * branch(value_{u-1})]).

Values have a grid of sites each, that of the input unless a map in between makes a coarser one. The readout, if any, is
one more unit, on the value of the last. `Chain` is the net of any list of units.

Source of the reduction to the top layer: Zhang et al. 2026, Lemma 1.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any, ClassVar, Self

import meanfield
from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.validation import (
    require_choice,
    require_count,
    require_counts,
    require_instance,
    require_instances,
    require_positive,
    settle,
)
from meanfield.nets.activations import Activation, activation_named
from meanfield.nets.maps import Map, Weight

JOINS = ("add", "concat")


@dataclass(frozen=True)
class Unit:
    """One depth unit.

    Attributes:
        branch: the maps that its input goes through, at least one.
        skip: number of the value that the branch joins (0 is the input), or None.
        multiplier: factor on the branch.
        after: maps behind the join, such as the normalisation of post-norm nets.
        join: "add", the sum of both, or "concat", the channels of the value that is skipped from and then those of the
            branch.
        shortcut: maps that the skipped value goes through before it is added, where its channels or its grid are others
            than those of the branch; none if it is added as it is.
    """

    branch: tuple[Map, ...]
    skip: int | None = None
    multiplier: float = 1.0
    after: tuple[Map, ...] = ()
    join: str = "add"
    shortcut: tuple[Map, ...] = ()

    @cached_property
    def maps(self) -> tuple[Map, ...]:
        """All maps in the order in which values pass: those of the branch, of the shortcut, and those behind."""
        return (*self.branch, *self.shortcut, *self.after)

    @cached_property
    def places(self) -> tuple[range, range, range]:
        """Where among the maps those of the branch stand, of the shortcut, and those behind the join."""
        ends = (0, *accumulate(map(len, (self.branch, self.shortcut, self.after))))
        branch, shortcut, after = (range(*end) for end in pairwise(ends))
        return branch, shortcut, after

    @property
    def adds(self) -> bool:
        """Whether its branch is added to a value, and not set beside one."""
        return self.skip is not None and self.join == "add"

    @property
    def concatenates(self) -> bool:
        """Whether its branch is set beside a value."""
        return self.skip is not None and self.join == "concat"


# Channels and grid of a value.
Shape = tuple[int, tuple[int, ...]]


def shapes_by_value(units: Sequence[Unit], input_channels: int, grid: tuple[int, ...]) -> tuple[Shape, ...]:
    """Channels and grid of value_0 .. value_D.

    Raises:
        ValueError: a unit whose maps do not fit each other, whose skip does not lie below it, is on another grid than
            the branch, or has other channels than the branch that is added to it, without a branch, or that
            concatenates its branch to nothing, or to what passes a shortcut; a name that stands for two weights.
    """
    shapes = [(input_channels, grid)]
    for number, unit in enumerate(units, start=1):
        try:
            shapes.append(_shape_above(unit, number, shapes))
        except ValueError as error:
            raise ValueError(f"unit {number}: {error}") from error
    named_weights(units)
    return tuple(shapes)


def named_weights(units: Sequence[Unit]) -> dict[str, Weight]:
    """All weights by name, in the order of their first use."""
    weights: dict[str, Weight] = {}
    stacks: dict[str, tuple[Weight, ...]] = {}
    for stack in (holder.weights for unit in units for holder in unit.maps):
        for weight in stack:
            if weights.setdefault(weight.name, weight) != weight or stacks.setdefault(weight.name, stack) != stack:
                raise ValueError(
                    f"the name {weight.name!r} stands for two weights, {weights[weight.name]} and {weight}, or in two "
                    "stacks; what is tied is one weight, alone or in one stack"
                )
    return weights


def uses(units: Sequence[Unit]) -> Iterator[tuple[int, int, Map]]:
    """(unit, place among its maps, map) of every map with weights, units counted from 0."""
    for number, unit in enumerate(units):
        for place, holder in enumerate(unit.maps):
            if holder.weights:
                yield number, place, holder


def joined_weights(stack: Sequence[Weight]) -> list[tuple[Weight, ...]]:
    """The weights side by side in one map, those of one law that see all channels together: one Gaussian matrix."""
    first = stack[0]
    alike = all(weight.variance == first.variance and weight.groups == 1 for weight in stack)
    return [tuple(stack)] if alike else [(weight,) for weight in stack]


def _through(maps: Sequence[Map], shape: Shape) -> Shape:
    channels, grid = shape
    for part in maps:
        channels, grid = part.channels_above(channels), part.grid_above(grid)
    return channels, grid


def _shape_above(unit: Unit, number: int, below: Sequence[Shape]) -> Shape:
    if not unit.branch:
        raise ValueError("its branch is empty; give it a map")
    require_choice("join", unit.join, JOINS)
    channels, grid = shape = _through(unit.branch, below[-1])
    if unit.skip is None:
        if unit.join == "concat":
            raise ValueError("its join is 'concat', and it skips from no value; give it skip, the number of one")
        if unit.shortcut:
            raise ValueError("it has a shortcut and no skip; say which value goes through it")
        return _through(unit.after, shape)
    if not 0 <= unit.skip < number:
        raise ValueError(f"it skips from value {unit.skip}; values 0 .. {number - 1} lie below it")
    if unit.concatenates and unit.shortcut:
        raise ValueError(
            "it concatenates its branch and has a shortcut; give the maps of the shortcut a unit of their own, below"
        )
    skipped, grid_skipped = _through(unit.shortcut, below[unit.skip])
    behind = "" if not unit.shortcut else " behind the shortcut"
    if skipped != channels and not unit.concatenates:
        raise ValueError(f"its branch has {channels} channels, value {unit.skip} has {skipped}{behind}")
    if grid_skipped != grid:
        raise ValueError(
            f"its branch is on a grid {grid}, value {unit.skip} on {grid_skipped}{behind}; give the unit a shortcut "
            "that brings the value to the grid of the branch"
        )
    return _through(unit.after, _joined(unit, shape, below[unit.skip]))


def _joined(unit: Unit, branch: Shape, skipped: Shape) -> Shape:
    """The shape behind the join."""
    return (branch[0] + skipped[0], branch[1]) if unit.concatenates else branch


INPUT_LAWS = ("white", "normalised", "sphere", "tokens")


class Net:
    """A chain of depth units and a readout (`meanfield.nets.net`), on a batch of samples over a grid of sites.

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
        return tuple(channels for channels, _ in self.value_shapes)

    @cached_property
    def value_grids(self) -> tuple[tuple[int, ...], ...]:
        """Grids of value_0 .. value_D."""
        return tuple(grid for _, grid in self.value_shapes)

    @cached_property
    def value_shapes(self) -> tuple[Shape, ...]:
        """Channels and grid of value_0 .. value_D."""
        return shapes_by_value(self.units, self.first_channels, self.grid)

    @cached_property
    def map_shapes(self) -> tuple[tuple[int, int, Map, Shape], ...]:
        """(unit, place among its maps, map, shape of what comes in) of every map, the readout's last.

        Units are counted from 0.
        """
        shapes: list[tuple[int, int, Map, Shape]] = []
        for number, unit in enumerate(self.all_units):
            below, skipped = self.value_shapes[number], self.value_shapes[unit.skip or 0]
            starts = (below, skipped, _joined(unit, _through(unit.branch, below), skipped))
            for places, shape in zip(unit.places, starts, strict=True):
                for place in places:
                    part = unit.maps[place]
                    shapes.append((number, place, part, shape))
                    shape = _through((part,), shape)
        return tuple(shapes)

    @property
    def has_one_grid(self) -> bool:
        """Whether all values are on the grid of the input."""
        return len(set(self.value_grids)) == 1

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
        """The role of every weight of the depth units; a weight of the first unit that others share is hidden."""
        return dict.fromkeys(named_weights(self.units[:1]), "input") | dict.fromkeys(
            named_weights(self.units[1:]), "hidden"
        )

    @cached_property
    def input_activation(self) -> Activation:
        """sigma of the first map, which reads the input; the identity where that is no activation."""
        return activation_named(self.units[0].maps[0].pointwise_activation or "linear")

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
        """Whether some unit joins an earlier value to its own branch."""
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
        return any(part.couples_samples for unit in self.all_units for part in unit.maps)

    @property
    def is_pooled(self) -> bool:
        """Whether the readout makes one number of all sites of a channel."""
        return self.readout_unit is not None and any(part.reduces for part in self.readout_unit.branch)

    @property
    def output_grid(self) -> tuple[int, ...]:
        """Lengths of the axes at the outputs: none where the readout takes the sites of a sample together."""
        return self.output_shape[2:]

    @property
    def reduces_to_top(self) -> bool:
        """Whether labels reach every value with the same energy, so that one column measures all overlaps."""
        return False

    @cached_property
    def sites(self) -> int:
        """S, those of the input."""
        return prod(self.grid)

    @cached_property
    def places(self) -> int:
        """Samples times sites of the input: columns of a batch's patches."""
        return self.inputs * self.sites

    @property
    def value_sizes(self) -> list[int]:
        """n_1 .. n_D of the values: channels times samples times sites."""
        return [channels * self.inputs * prod(grid) for channels, grid in self.value_shapes[1:]]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(samples, channels, *grid)."""
        return (self.inputs, self.first_channels, *self.grid)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """(samples, outputs, *grid), no grid where a readout takes sites together; of the last value without one."""
        readout = () if self.readout_unit is None else (self.readout_unit,)
        channels, grid = shapes_by_value(readout, *self.value_shapes[-1])[-1]
        return (self.inputs, channels, *grid)

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


@dataclass(frozen=True, kw_only=True)
class Chain(Net):
    """Any chain of depth units, for nets that no family lists.

    A chain with the units, the grid and the input law of a family's net is served as that net, whatever its weights are
    called: by `simulate`, `memory` and `predict`, and by the transfer of learning rates. Draws of every chain are
    measured; predictions refuse units that no family has.

    Args:
        units: from the input up, at least one.
        readout_unit: the unit that makes outputs; if not given, the last value is the output.
        input_channels: channels of the input.
        grid: lengths of the axes, none for one site.
        inputs: samples in the batch.
        input_law: "white", "normalised", "sphere" or "tokens" (`meanfield.nets.net.Net`).
        input_energy: of "normalised" inputs, the mean over channels of sigma(x)^2, sigma the activation that reads
            them; if not given, that at which what the first weights give has variance 1.

    Raises:
        TypeError, ValueError: units that do not fit each other, counts that are not whole or below 1, an unknown law,
            an energy of inputs that are not normalised, or one that no input has.

    Examples:
        >>> import meanfield as mf
        >>> chain = mf.Chain.of(mf.MLP(depth=3, width=16))
        >>> len(chain.units), chain.weight_shapes[-1]
        (3, (10, 16))
    """

    units: tuple[Unit, ...]
    readout_unit: Unit | None = None
    input_channels: int = 1
    grid: tuple[int, ...] = ()
    inputs: int = 1
    input_law: str = "white"  # type: ignore[misc]
    input_energy: float | None = None

    def __post_init__(self) -> None:
        self._settle_counts(input_channels="channels of the input", inputs="samples in the batch")
        settle(self, grid=require_counts("grid", self.grid, why="sites along an axis"))
        settle(self, units=require_instances("units", self.units, Unit, "depth units, meanfield.nets.net.Unit"))
        require_choice("input_law", self.input_law, INPUT_LAWS)
        if not self.units:
            raise ValueError("units is empty; a net has one depth unit or more")
        _require_maps(self.units)
        top = shapes_by_value(self.units, self.input_channels, self.grid)[-1]
        if self.readout_unit is not None:
            _require_maps([require_instance("readout_unit", self.readout_unit, Unit, "a unit, or None")])
            if self.readout_unit.skip is not None:
                raise ValueError("the readout skips from a value; it reads the last one alone")
            shapes_by_value([self.readout_unit], *top)
        self.weights  # noqa: B018  # refuses names that stand for two weights
        self._require_one_grid_per_weight()
        self._settle_input_energy()

    @classmethod
    def of(cls, net: Net, **changes: Any) -> Self:
        """The units of any net, with other values of some fields.

        Raises:
            TypeError: what is no net.
        """
        require_instance("net", net, Net, "a net, such as meanfield.MLP(depth=8, width=512)")
        fields: dict[str, Any] = {"units": net.units, "readout_unit": net.readout_unit, "grid": net.grid}
        fields |= {"input_channels": net.first_channels, "inputs": net.inputs, "input_law": net.input_law}
        fields |= changes
        if net.input_law == fields["input_law"] == "normalised":
            fields.setdefault("input_energy", net.input_energy)
        return cls(**fields)

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.input_channels

    def describe(self) -> dict[str, Any]:
        """The full spec as plain values."""
        return {"family": "Chain", **asdict(self)}

    def _require_one_grid_per_weight(self) -> None:
        """Raise ValueError where a weight acts on several grids: its moves are made at all its uses at once."""
        grids: dict[str, tuple[int, ...]] = {}
        for *_, part, (_, grid) in self.map_shapes:
            for weight in part.weights if part.mixes_channels else ():
                if grids.setdefault(weight.name, grid) != grid:
                    raise ValueError(
                        f"weight {weight.name!r} acts on a grid {grids[weight.name]} and on another, {grid}; a tied "
                        "weight keeps to one grid: give the other use a weight of its own"
                    )

    def _settle_input_energy(self) -> None:
        if self.input_law != "normalised":
            if self.input_energy is not None:
                raise ValueError(
                    f"input_energy is {self.input_energy!r} and input_law {self.input_law!r}; inputs of that law are "
                    "not scaled: leave it out, or take input_law='normalised'"
                )
            return
        if self.input_energy is None:
            settle(self, input_energy=self._energy_of_variance_one())
        energy = require_positive("input_energy", self.input_energy, why="it is a mean square")
        reached = mean_square(self.input_activation.function, LARGEST_VARIANCE)
        if not self.input_activation.homogeneous and energy >= reached:
            raise ValueError(
                f"input_energy is {energy:.4g}, and the mean square of the activation that reads inputs is below "
                f"{reached:.4g} at any of them: give less, or first weights of a larger variance"
            )
        settle(self, input_energy=energy)

    def _energy_of_variance_one(self) -> float:
        """1 / (channels x variance) of the first weights, where nothing but an activation stands below them."""
        unit = self.units[0]
        above = unit.branch[unit.branch[0].pointwise_activation is not None :]
        weights = above[0].weights if above and above[0].mixes_channels and unit.skip is None else ()
        if len(weights) != 1 or not weights[0].variance or not unit.multiplier:
            raise ValueError(
                "input_law is 'normalised': inputs are scaled so that what the first weights give has variance 1, "
                "which is known of a first unit that is a linear map of one weight, or an activation and such a map, "
                "without a skip; give input_energy, the mean square of what those weights read, or another input_law"
            )
        return float(1 / (weights[0].fan_in * weights[0].variance * unit.multiplier**2))


def _require_maps(units: Any) -> None:
    """Raise TypeError for what is no map: those of the library, and one's own, say how many channels leave them."""
    for number, unit in enumerate(units, start=1):
        for name in ("branch", "shortcut", "after"):
            for entry in require_instances(f"{name} of unit {number}", getattr(unit, name), object, "maps"):
                if not callable(getattr(entry, "channels_above", None)):
                    raise TypeError(
                        f"an entry of {name} of unit {number} is {entry!r}; give maps of meanfield.nets.maps, or of "
                        "your own with a method channels_above, as docs/how_to/add_a_map.md has it"
                    )
