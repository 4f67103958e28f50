"""Draws of plain nets whose pre-activations and gates are measured beside the update."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from meanfield.datasets import measured_dataset
from meanfield.execution.chunks import Chunk, Pieces, plan
from meanfield.execution.draws import Draws
from meanfield.execution.energy_estimates import energy_estimates
from meanfield.nets.mlp import MLP
from meanfield.simulation.cost import chosen_weights, draw_operations, draws_per_batch, require_memory


@dataclass(frozen=True)
class ActivationRun(Draws):
    """One fully-connected net to draw, of any activation and weight variance, for `simulate_all`.

    Its dataset is that of `simulate`, with pre_activation_energy and gate_energy in place of the overlap energy.
    """

    architecture: MLP
    draws: int
    seed: int

    @property
    def priced(self) -> MLP:
        """The net whose draws cost as much: ReLU's, whose overlap energy takes no pass of its own."""
        return replace(self.architecture, activation="relu", weight_variance=None)

    @property
    def kind(self) -> str:
        """The kind of weights that is drawn: the cheaper one."""
        return chosen_weights(self.priced, "auto")

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        together = draws_per_batch(self.priced, self.kind)
        whole = Chunk(self.architecture, "activation statistics", {}, self.seed, 0, self.draws, self.kind, together)
        return plan(whole, draw_operations(self.priced, self.kind))

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        require_memory(self.priced, workers, self.draws, self.kind)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The measured dataset from all finished chunks, in order."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return measured_dataset(self.architecture, energy_estimates(values), self.attrs() | {"weights": self.kind})
