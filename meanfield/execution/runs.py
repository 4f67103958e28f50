"""`simulate`: many independent draws of a network, in one dataset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.datasets import measured_dataset
from meanfield.digests import inputs_described
from meanfield.execution.chunks import Chunk, Pieces, plan
from meanfield.execution.draws import Draws
from meanfield.execution.energy_estimates import energy_estimates
from meanfield.execution.loop_runs import LoopRun
from meanfield.execution.storage import PieceStore
from meanfield.execution.team import Workers
from meanfield.execution.workers import all_pieces
from meanfield.nets.batches import PLAIN, Batch, require_batch
from meanfield.nets.families import require_net
from meanfield.nets.given_inputs import checked_inputs
from meanfield.nets.layered import Sequential
from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.arrays.arrays import BACKENDS, PRECISIONS
from meanfield.simulation.arrays.float_range import JUMP, require_followed, require_reach
from meanfield.simulation.arrays.groups import DEVICE_SPEED, draws_per_group, require_device_memory
from meanfield.simulation.arrays.resolve import device_described
from meanfield.simulation.cost import chosen_weights, draw_operations, draws_per_batch, require_memory
from meanfield.simulation.gram_process import require_gram_process
from meanfield.simulation.update_energy import overlap_method_under
from meanfield.simulation.weights import ENERGY_KINDS
from meanfield.validation import require_choice, require_flag, settle


def simulate(
    architecture: Sequential | TiedLoop,
    *,
    draws: int,
    seed: int,
    weights: str = "auto",
    backend: str = "numpy",
    precision: str = "float64",
    inputs: ArrayLike | None = None,
    batch: Batch = PLAIN,
    loss: str = "squared",
    correlations: bool = False,
    by_site: bool = False,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure update energy, label term, output term and overlap energy of every layer over independent draws.

    Every draw takes new weights, labels (y ~ N(0, 1) unless ``batch`` or ``loss`` say otherwise) and (unless given)
    inputs, and computes the exact one-step change of every pre-activation at learning rate 1 by one forward, backward
    and tangent pass.

    Of a loop, measure the residual energy of every step and its split H_l = H_0 + B_l + C_l instead, by walking it.

    Args:
        architecture: the net or loop.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        weights: "dense" Gaussian matrices, "lazy" ones that are revealed only where they are looked at, "gram", no
            matrices but the lengths and angles that energies depend on, whatever the width (MLPs of "relu" or "linear"
            with one input), or "auto", the cheapest: all of one law, with other numbers; the dataset says which.
        backend: "numpy", or for nets "cupy", a CUDA device through CuPy: the same passes on many draws at once. A
            device has streams of its own for weights: the same law, other numbers than "numpy" has.
        precision: of weights and passes of a net, "float64" or "float32", which halves the memory; energies are
            summed in double precision. On "numpy" draw i is the same net, rounded. docs/precision.md has the bias.
        inputs: a fixed batch (samples, channels, *grid) instead of the architecture's input law; of a loop, the start
            h_0 of all draws, (width,).
        batch: how the samples of a net's batch hang together: correlated inputs, labels with a mean or of a teacher.
        loss: "squared", |z_out - y|^2 / (2 M), or "cross_entropy", with the outputs of a site as logits and a class
            drawn uniformly for every sample and site; both mean over the samples. The label term is then that of
            y - 1/C, the output term that of the softmax less 1/C, and still S = A + B.
        correlations: whether to measure, of a loop, how increments and features of all pairs of steps overlap.
        by_site: whether to measure, of a net, label term, output term and update energy at every site, too.
        workers: processes, 1 stays in this one; or `meanfield.Workers`, for the workers of a Dask scheduler.
        resume_in: folder for finished pieces; a rerun with the same arguments continues from them.

    Returns:
        Dataset over ``layer`` = 1 .. L with the variables of `meanfield.QUANTITIES`, each with NAME_stderr,
        NAME_largest_share and, per layer, NAME_covariance; with ``by_site``, over ``layer`` and ``site`` (row by row),
        label_term_by_site, output_term_by_site and update_energy_by_site, without covariance. The overlap energy, which
        no label moves, is measured beside plain labels and squared loss only.
        Of a loop, over ``step`` = 1 .. L: residual_energy, initial_energy, cross_term and correlation_term, and with
        ``correlations`` increment_correlation and feature_overlap over pairs of steps. Streams may outgrow the floats:
        such a mean and its error read inf, and log_residual_energy, the logarithm of the mean of H_l with its relative
        error, stays finite.

    Raises:
        TypeError, ValueError: what is neither net nor loop, bad counts, names or inputs. MemoryError: more than the
        machine has. ModuleNotFoundError, OSError: a backend without its library or its device. All before any work.
        OverflowError: a single step of a loop leaves the range of floats, or its stream does so under an activation
        that is not homogeneous; a net's numbers leave the range of its precision.

    Source: P0 eqs. 7-9, 18-20; P2 eqs. 1, 2.
    """
    require_net(architecture, loops=True)
    require_choice("weights", weights, ("auto", *ENERGY_KINDS))
    require_choice("backend", backend, BACKENDS)
    require_choice("precision", precision, PRECISIONS)
    store = None if resume_in is None else PieceStore(Path(resume_in))
    run: Plannable
    if isinstance(architecture, TiedLoop):
        if batch != PLAIN or loss != "squared":
            raise ValueError("batch and loss are those of nets; a loop has neither samples nor labels: leave them out")
        if (backend, precision) != ("numpy", "float64"):
            raise ValueError(
                f"a TiedLoop is walked by backend 'numpy' in float64; backend {backend!r} and precision {precision!r} "
                "are for nets: leave them out"
            )
        if by_site:
            raise ValueError("by_site is for nets on grids; a TiedLoop has no sites: leave the option out")
        if weights == "gram":
            require_gram_process(architecture)
        run = LoopRun(architecture, draws, seed, inputs, weights, correlations)
    elif correlations:
        raise ValueError(f"correlations are those of the steps of a TiedLoop; this is a {type(architecture).__name__}")
    else:
        run = Run(architecture, draws, seed, inputs, weights, batch, loss, by_site, backend, precision)
    return simulate_all([run], workers=workers, store=store)[0]


@dataclass(frozen=True)
class Run(Draws):
    """One network to draw: what `simulate` takes, checked when it is planned."""

    architecture: Sequential
    draws: int
    seed: int
    inputs: ArrayLike | None = None
    weights: str = "auto"
    batch: Batch = PLAIN
    loss: str = "squared"
    by_site: bool = False
    backend: str = "numpy"
    precision: str = "float64"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_batch(self.batch, self.loss, self.inputs is not None)
        if self.weights == "gram":
            require_gram_process(self.architecture)
            if beyond := self._beyond_gram():
                asked = ", ".join(f"{name} {value!r}" for name, value in beyond.items())
                raise ValueError(f"weights 'gram' serve plain labels, squared loss and NumPy in float64, not {asked}")
        inputs = checked_inputs(self.architecture, self.inputs)
        settle(self, inputs=inputs, by_site=require_flag("by_site", self.by_site))
        if self.precision == "float64":
            require_reach(self.architecture)
            return
        for place, variance in enumerate(self.architecture.weight_variances, start=1):
            require_followed(f"weight matrix {place}", sqrt(variance), JUMP)

    @property
    def kind(self) -> str:
        """The kind of weights that is drawn."""
        return chosen_weights(self.architecture, self.weights, gram=not self._beyond_gram())

    def _beyond_gram(self) -> dict[str, Any]:
        """What is asked of this run that the Gram process does not serve."""
        asked = {"backend": self.backend, "precision": self.precision, "batch": self.batch, "loss": self.loss}
        plain = {"backend": "numpy", "precision": "float64", "batch": PLAIN, "loss": "squared"}
        return {name: value for name, value in asked.items() if value != plain[name]}

    def chunks(self) -> list[Chunk]:
        """The checked plan of this run."""
        named = ("inputs", "batch", "loss", "by_site", "backend", "precision")
        options = {name: getattr(self, name) for name in named}
        operations = draw_operations(self.architecture, self.kind)
        if self.backend == "numpy":
            together, multiple = draws_per_batch(self.architecture, self.kind, self.precision), 1
        else:
            together = multiple = draws_per_group(self.architecture, self.kind, self.precision)
            operations /= DEVICE_SPEED
        whole = Chunk(self.architecture, "energies", options, self.seed, 0, self.draws, self.kind, together)
        return plan(whole, operations, multiple)

    def require_memory(self, workers: int) -> None:
        """Raise MemoryError unless so many workers can draw at once, and as `arrays_of` does where this cannot be."""
        if self.backend == "numpy":
            require_memory(self.architecture, workers, self.draws, self.kind, self.precision)
        elif workers:  # not those of a scheduler, whose machines are theirs
            require_device_memory(self.architecture, workers, self.kind, self.precision)

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset:
        """The measured dataset from all finished chunks, in order."""
        values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        attrs = {
            "weights": self.kind,
            "backend": self.backend,
            "precision": self.precision,
            "overlap_method": overlap_method_under(self.architecture, self.batch, self.loss, self.kind),
            "batch": json.dumps(self.batch.describe()),
            "loss": self.loss,
            **inputs_described(self.inputs),
            **self.attrs(**device_described(self.backend)),
        }
        return measured_dataset(self.architecture, energy_estimates(values), attrs)


class Plannable(Protocol):
    """What `simulate_all` asks of a network to draw, whatever is measured on it."""

    def require_memory(self, workers: int) -> None: ...

    def chunks(self) -> list[Chunk]: ...

    def dataset(self, pieces: list[Pieces]) -> xr.Dataset: ...


def simulate_all(
    runs: Sequence[Plannable], *, workers: int | Workers = 1, store: PieceStore | None = None
) -> list[xr.Dataset]:
    """`simulate` several networks on one set of workers, with one progress bar; checks all before any starts."""
    workers = Workers.of(workers)
    plans = [run.chunks() for run in runs]
    for run in runs:
        run.require_memory(workers.here)
    pieces = iter(all_pieces([chunk for chunks in plans for chunk in chunks], workers, store))
    return [run.dataset([next(pieces) for _ in chunks]) for run, chunks in zip(runs, plans, strict=True)]
