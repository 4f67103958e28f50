"""A net that is given by its units themselves."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from meanfield.common.gaussian_averages import LARGEST_VARIANCE, mean_square
from meanfield.common.validation import (
    require_choice,
    require_counts,
    require_instance,
    require_instances,
    require_positive,
    settle,
)
from meanfield.nets.maps import Linear, Pointwise
from meanfield.nets.net import INPUT_LAWS, Net
from meanfield.nets.units import Unit, channels_by_value


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
        settle(self, units=require_instances("units", self.units, Unit, "depth units, meanfield.nets.units.Unit"))
        require_choice("input_law", self.input_law, INPUT_LAWS)
        if not self.units:
            raise ValueError("units is empty; a net has one depth unit or more")
        _require_maps(self.units)
        top = channels_by_value(self.units, self.input_channels)[-1]
        if self.readout_unit is not None:
            _require_maps([require_instance("readout_unit", self.readout_unit, Unit, "a unit, or None")])
            if self.readout_unit.skip is not None:
                raise ValueError("the readout skips from a value; it reads the last one alone")
            channels_by_value([self.readout_unit], top)
        self.weights  # noqa: B018  # refuses names that stand for two weights
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
        above = unit.branch[isinstance(unit.branch[0], Pointwise) :]
        weights = above[0].weights if above and isinstance(above[0], Linear) and unit.skip is None else ()
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
        for name in ("branch", "after"):
            for entry in require_instances(f"{name} of unit {number}", getattr(unit, name), object, "maps"):
                if not callable(getattr(entry, "channels_above", None)):
                    raise TypeError(
                        f"an entry of {name} of unit {number} is {entry!r}; give maps of meanfield.nets.maps, or of "
                        "your own with a method channels_above, as docs/how_to/add_a_map.md has it"
                    )
