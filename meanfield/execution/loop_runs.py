"""`LoopRun`: the residual energy of a loop over many draws, what `simulate` runs for a `TiedLoop`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.datasets import measured_dataset
from meanfield.digests import inputs_described
from meanfield.estimates import Means, summarise_each
from meanfield.execution.chunks import Chunk, Pieces, plan
from meanfield.execution.draws import Draws
from meanfield.nets.given_inputs import checked_start
from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.loop_cost import StreamCost, residual_energy_cost
from meanfield.simulation.residual_energy import POWERS
from meanfield.validation import require_flag, settle

Array = NDArray[np.float64]


class LoopDraws(Draws):
    """What all runs of loops share: the loop, the weights that are asked for, and what its draws cost."""

    loop: TiedLoop
    inputs: ArrayLike | None
    weights: str

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, inputs=checked_start(self.loop, self.inputs))

    @property
    def cost(self) -> StreamCost:
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """The kind of weights that is drawn."""
        return self.cost.chosen_weights(self.weights)

    def planned(self, measure: str, options: dict[str, Any]) -> list[Chunk]:
        """The plan of a measure of this loop."""
        together = self.cost.draws_per_batch(self.kind)
        whole = Chunk(self.loop, measure, options, self.seed, 0, self.draws, self.kind, together)
        return plan(whole, self.cost.operations(self.kind))


@dataclass(frozen=True)
class LoopRun(LoopDraws):
    """One loop to draw: what `simulate` takes, checked when it is planned."""

    loop: TiedLoop
    draws: int
    seed: int
    inputs: ArrayLike | None = None
    weights: str = "auto"
    correlations: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, correlations=require_flag("correlations", self.correlations))

    @property
    def cost(self) -> StreamCost:
        return residual_energy_cost(self.loop, self.correlations)

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        return self.planned("residual energies", {"inputs": self.inputs, "correlations": self.correlations})

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once and this process can hold what they find."""
        matrices = 3 * self.correlations * 2 * self.loop.depth**2  # as drawn, with their exponents, and scaled
        self.cost.require_memory(workers, self.draws, self.kind, self.draws * matrices)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The measured dataset from all finished chunks, in order."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        exponent = values.pop("binary_exponent").astype(np.int64)
        found = {}
        for name, value in values.items():
            found[name], logarithm = _scaled_means(value, _units(name, value, exponent))
            if name == "residual_energy":
                found["log_residual_energy"] = logarithm
        attrs = self.attrs() | inputs_described(self.inputs) | {"weights": self.kind}
        return measured_dataset(self.loop, found, attrs)


def _units(name: str, value: Array, exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """The powers of two that a measure's numbers are multiples of, given those of the stream, (D, L)."""
    if value.ndim == 1:
        return np.zeros(len(value), dtype=np.int64)
    return POWERS[name] * exponent if value.ndim == 2 else exponent[:, :, None] + exponent[:, None, :]


def _scaled_means(values: Array, exponent: NDArray[np.int64]) -> tuple[Means, Means]:
    """Means over draws of 2^exponent values, and of the logarithm of each mean with its relative error.

    A mean beyond the range of floats is infinite, as is its error; its logarithm stays finite.
    """
    common = exponent.max(axis=0)
    relative = summarise_each(np.ldexp(values, exponent - common))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        plain = Means(np.ldexp(relative.mean, common), np.ldexp(relative.stderr, common), relative.largest_share)
        logarithm = np.log(relative.mean) + common * np.log(2.0)
        return plain, Means(logarithm, relative.stderr / np.abs(relative.mean), relative.largest_share)
