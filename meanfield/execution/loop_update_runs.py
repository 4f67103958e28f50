"""`simulate_loop_update`: how far one update of a loop's weights moves its stream, over many draws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.datasets import measured_dataset
from meanfield.digests import inputs_described
from meanfield.estimates import summarise_each
from meanfield.execution.chunks import Chunk, Pieces
from meanfield.execution.loop_runs import LoopDraws
from meanfield.execution.runs import simulate_all
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.loop_cost import StreamCost, stream_update_cost
from meanfield.simulation.loop_update import UPDATES
from meanfield.simulation.weights import KINDS
from meanfield.validation import require_choice


def simulate_loop_update(
    loop: TiedLoop,
    *,
    draws: int,
    seed: int,
    update: str = "isotropic",
    weights: str = "auto",
    inputs: ArrayLike | None = None,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure |dh_l|^2 / N, the first-order change of a loop's stream under one update at learning rate eta = 1.

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)), dh_0 = 0. A tied loop moves its one matrix, which
    acts at every step; an independent stack moves each of its matrices by an update of that matrix's own.

    Args:
        loop: the loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        update: "isotropic", Delta W = eta / sqrt(N) times random signs independent of all else; or, for the loss
            l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I), "aligned", -eta / sqrt(N) sign(dl/dW), or "gradient",
            -eta dl/dW (no factor of N: the loss is a mean over units, so every unit changes by order one).
        weights: "dense", "lazy" or "auto", as for `simulate`. The update itself is exact either way.
        inputs: h_0 of all draws, (N,), instead of N(0, I).
        workers, resume_in: as for `simulate`.

    Returns:
        Dataset over ``step`` = 1 .. L: stream_update_energy with NAME_stderr and NAME_largest_share. Quadratic in eta.
        While H is O(1) it scales as (eta eps L)^2 for isotropic updates, N times that for aligned ones, whose norm is
        eta sqrt(N), and as (eta eps^2 L^2)^2 for gradients.

    Raises:
        TypeError, ValueError: what is not a loop, bad counts, names or inputs. MemoryError: more than the machine has.
        All before any work starts. OverflowError: a draw leaves the range of floats.

    Source: P2 Theorem 2, appendix D.
    """
    if not isinstance(loop, TiedLoop):
        raise TypeError(
            f"loop is of type {type(loop).__name__}; it must be a TiedLoop (simulate measures updates of nets)"
        )
    require_choice("update", update, UPDATES)
    require_choice("weights", weights, ("auto", *KINDS))
    store = None if resume_in is None else PieceStore(Path(resume_in))
    return simulate_all([LoopUpdateRun(loop, draws, seed, update, inputs, weights)], workers=workers, store=store)[0]


@dataclass(frozen=True)
class LoopUpdateRun(LoopDraws):
    """One loop to update: what `simulate_loop_update` takes, checked when it is planned."""

    loop: TiedLoop
    draws: int
    seed: int
    update: str = "isotropic"
    inputs: ArrayLike | None = None
    weights: str = "auto"

    @property
    def cost(self) -> StreamCost:
        return stream_update_cost(self.loop, self.update)

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        return self.planned("loop updates", {"inputs": self.inputs, "update": self.update})

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once."""
        self.cost.require_memory(workers, self.draws, self.kind)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The measured dataset from all finished chunks, in order."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        attrs = self.attrs() | inputs_described(self.inputs) | {"weights": self.kind, "update": self.update}
        return measured_dataset(self.loop, {name: summarise_each(value) for name, value in values.items()}, attrs)
