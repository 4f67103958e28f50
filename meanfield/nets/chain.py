"""A net that is given by its units themselves."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from meanfield.common.validation import require_choice, require_counts, settle
from meanfield.nets.net import INPUT_LAWS, Net
from meanfield.nets.units import Unit, channels_by_value


@dataclass(frozen=True, kw_only=True)
class Chain(Net):
    """Any chain of depth units, for nets that no family lists.

    Args:
        units: from the input up, at least one.
        readout_unit: the unit that makes outputs; if not given, the last value is the output.
        input_channels: channels of the input.
        grid: lengths of the axes, none for one site.
        inputs: samples in the batch.
        input_law: "white", "normalised", "sphere" or "tokens" (`meanfield.nets.net.Net`).

    Raises:
        TypeError, ValueError: units that do not fit each other, counts that are not whole or below 1, an unknown law.
    """

    units: tuple[Unit, ...]
    readout_unit: Unit | None = None
    input_channels: int = 1
    grid: tuple[int, ...] = ()
    inputs: int = 1
    input_law: str = "white"  # type: ignore[misc]

    def __post_init__(self) -> None:
        self._settle_counts(input_channels="channels of the input", inputs="samples in the batch")
        settle(self, grid=require_counts("grid", self.grid, why="sites along an axis"), units=tuple(self.units))
        require_choice("input_law", self.input_law, INPUT_LAWS)
        if not self.units:
            raise ValueError("units is empty; a net has one depth unit or more")
        top = channels_by_value(self.units, self.input_channels)[-1]
        if self.readout_unit is not None:
            if self.readout_unit.skip is not None:
                raise ValueError("the readout skips from a value; it reads the last one alone")
            channels_by_value([self.readout_unit], top)
        self.weights  # noqa: B018  # refuses names that stand for two weights

    @classmethod
    def of(cls, net: Net, **changes: Any) -> Self:
        """The units of any net, with other values of some fields."""
        fields: dict[str, Any] = {"units": net.units, "readout_unit": net.readout_unit, "grid": net.grid}
        fields |= {"input_channels": net.first_channels, "inputs": net.inputs, "input_law": net.input_law}
        return cls(**fields | changes)

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.input_channels

    def describe(self) -> dict[str, Any]:
        """The full spec as plain values."""
        return {"family": "Chain", **asdict(self)}
