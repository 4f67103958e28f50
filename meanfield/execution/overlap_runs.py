"""`simulate_overlaps`: chosen pairs of parameter directions followed over many draws."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.datasets import measured_dataset
from meanfield.directions import Pair, checked_pairs, pair_name
from meanfield.estimates import summarise_each
from meanfield.execution.chunks import Chunk, Pieces, plan
from meanfield.execution.draws import Draws
from meanfield.execution.runs import simulate_all
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.nets.families import require_net
from meanfield.nets.layered import Sequential
from meanfield.simulation.cost import draws_per_batch, require_memory
from meanfield.simulation.pair_overlaps import cheaper_weights, overlap_operations
from meanfield.simulation.weights import KINDS
from meanfield.validation import require_choice, require_count, settle


def simulate_overlaps(
    architecture: Sequential,
    *,
    pairs: Iterable[Any],
    draws: int,
    seed: int,
    weights: str = "auto",
    fixed_layers: int = 0,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure the overlaps T_h of pairs of parameter directions from where they begin to the top layer.

    Args:
        architecture: the net.
        pairs: ((layer, unit), (layer, unit)), counted from 1; a direction moves the weights into one unit along that
            unit's own incoming features (`meanfield.directions`). In residual nets layers are depth units: stem
            layers, blocks, tail layers.
        draws: at least 2.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        weights: "dense", "lazy", or "auto", the cheaper of both.
        fixed_layers: inputs and the weights of so many first layers (depth units) are the same in all draws, so that
            means are conditional on them.
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``pair`` (named "LAYER,UNIT:LAYER,UNIT") and ``layer``: overlap T_h, squared_overlap T_h^2,
        gated_overlap (the mean of T_{h+1} given layer h), overlap_innovation (T_h less that mean), overlap_variance
        Var(T_h | layers below), gate_deviation T~ - q T and overlap_excess T_h - r T_l, each with NAME_stderr; NaN
        below the upper direction of a pair, and where smooth gates inside a branch leave no closed mean.

    Raises:
        TypeError, ValueError: what is no net (loops are not served), a pair outside the net, bad counts or names.
        MemoryError: more than the machine has.

    Source: P0 eqs. 13-15, 27, 30-35.
    """
    require_net(architecture)
    require_choice("weights", weights, ("auto", *KINDS))
    store = None if resume_in is None else PieceStore(Path(resume_in))
    run = OverlapRun(architecture, checked_pairs(architecture, pairs), draws, seed, weights, fixed_layers)
    return simulate_all([run], workers=workers, store=store)[0]


@dataclass(frozen=True)
class OverlapRun(Draws):
    """Pairs of one network to follow: what `simulate_overlaps` takes, checked when it is planned."""

    architecture: Sequential
    pairs: tuple[Pair, ...]
    draws: int
    seed: int
    weights: str = "auto"
    fixed_layers: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed = require_count("fixed_layers", self.fixed_layers, minimum=0, why="layers that all draws share")
        if fixed > (units := len(self.architecture.unit_ends)):
            raise ValueError(f"fixed_layers is {fixed}; the net has {units} depth units to fix")
        settle(self, fixed_layers=fixed)

    @property
    def kind(self) -> str:
        """The kind of weights that is drawn."""
        return cheaper_weights(self.architecture, self.pairs) if self.weights == "auto" else self.weights

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        options = {"pairs": self.pairs, "fixed_layers": self.fixed_layers}
        together = draws_per_batch(self.architecture, self.kind)
        whole = Chunk(self.architecture, "overlaps", options, self.seed, 0, self.draws, self.kind, together)
        return plan(whole, overlap_operations(self.architecture, self.pairs, self.kind))

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        require_memory(self.architecture, workers, self.draws, self.kind)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The measured dataset from all finished chunks, in order."""
        own = {"weights": self.kind, "fixed_layers": self.fixed_layers, "pairs": json.dumps(self.pairs)}
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        estimates = {name: summarise_each(value) for name, value in values.items()}
        coords = {"pair": [pair_name(pair) for pair in self.pairs]}
        return measured_dataset(self.architecture, estimates, self.attrs() | own, coords)
