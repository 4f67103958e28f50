"""`simulate`: independent draws, in batches, in chunks, on any number of workers, with the same result.

A chunk is a range of draws worth about a second of work; its numbers depend on (spec, seed, draw) alone, so
chunks can be computed anywhere, in any order, and kept on disk until all are there.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from meanfield.architectures import INPUT_LAYOUT, Sequential
from meanfield.datasets import measured_dataset
from meanfield.estimates import Estimate, summarise
from meanfield.execution.provenance import code_digest, digest, provenance
from meanfield.execution.storage import Pieces, PieceStore
from meanfield.seeds import checked_seed
from meanfield.simulation.cost import draw_operations, draws_per_batch, require_memory
from meanfield.simulation.update_energy import draw_energies, overlap_method
from meanfield.validation import require_array, require_choice, require_count

Array = NDArray[np.float64]

OPERATIONS_PER_CHUNK = 4e10
LEAST_SECONDS_PER_DRAW = 1e-4


@dataclass(frozen=True)
class Chunk:
    """Draws ``start`` .. ``stop`` - 1 of one run."""

    architecture: Sequential
    seed: int
    start: int
    stop: int
    inputs: Array | None

    @property
    def key(self) -> str:
        inputs = None if self.inputs is None else sha256(self.inputs.tobytes()).hexdigest()
        return digest(
            spec=self.architecture.describe(),
            seed=self.seed,
            draws=[self.start, self.stop],
            inputs=inputs,
            code=code_digest(),
        )


def simulate(
    architecture: Sequential,
    *,
    draws: int,
    seed: int,
    weights: str = "auto",
    backend: str = "numpy",
    inputs: ArrayLike | None = None,
    workers: int = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """Measure update energy, label term, output term and overlap energy of every layer over independent draws.

    Every draw takes new weights, labels y ~ N(0, 1) and (unless given) inputs, and computes the exact one-step
    change of every pre-activation at learning rate 1 by one forward, backward and tangent pass.

    Args:
        architecture: the net.
        draws: at least 2; errors come from the spread over draws.
        seed: root of all streams; draw i is the same for any ``draws``, ``workers`` or batch size.
        weights: "dense" Gaussian matrices; "auto" picks, and the dataset says what.
        backend: "numpy".
        inputs: a fixed batch (samples, channels, *grid) instead of the architecture's input law.
        workers: processes; 1 stays in this one.
        resume_in: folder for finished pieces; a rerun with the same arguments continues from them.

    Returns:
        Dataset over ``layer`` = 1 .. L with the variables of `meanfield.QUANTITIES`, each with NAME_stderr,
        NAME_largest_share and, per layer, NAME_covariance. ``overlap_energy`` is left out under zero padding when
        the tangent kernel is too large to form: no single error column measures it there.

    Raises:
        TypeError, ValueError: bad counts, names or input shapes. MemoryError: more than the machine has.
        All before any work starts.
    """
    draws = require_count("draws", draws, minimum=2, why="one draw has no standard error")
    workers = require_count("workers", workers)
    require_choice("weights", weights, ("auto", "dense"))
    require_choice("backend", backend, ("numpy",))
    batch = None if inputs is None else require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    require_memory(architecture, workers)
    chunks = _plan(architecture, checked_seed(seed), draws, batch)
    store = None if resume_in is None else PieceStore(Path(resume_in))
    pieces = _all_pieces(chunks, workers, store)
    values = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    attrs = {
        "level": "measured",
        "architecture": json.dumps(architecture.describe()),
        "seed": seed,
        "draws": draws,
        "weights": "dense",
        "overlap_method": overlap_method(architecture),
        "provenance": provenance(seed=seed, draws=draws),
    }
    return measured_dataset(_estimates(values), attrs)


def _plan(architecture: Sequential, seed: int, draws: int, inputs: Array | None) -> list[Chunk]:
    """Split the draws into chunks whose size depends on the architecture alone."""
    cost = max(draw_operations(architecture), LEAST_SECONDS_PER_DRAW * OPERATIONS_PER_CHUNK)
    size = max(1, int(OPERATIONS_PER_CHUNK / cost))
    return [Chunk(architecture, seed, start, min(start + size, draws), inputs) for start in range(0, draws, size)]


def _all_pieces(chunks: list[Chunk], workers: int, store: PieceStore | None) -> list[Pieces]:
    """Every chunk's numbers in order: from the store where they are, computed and stored where not."""
    found = {index: store.load(chunk.key) if store else None for index, chunk in enumerate(chunks)}
    missing = [index for index, piece in found.items() if piece is None]
    progress = tqdm(
        total=len(chunks), initial=len(chunks) - len(missing), unit="chunk", delay=2, disable=None, leave=False
    )
    with progress:
        for index, piece in _computed([(index, chunks[index]) for index in missing], workers):
            if store:
                store.save(chunks[index].key, piece)
            found[index] = piece
            progress.update()
    return [piece for _, piece in sorted(found.items()) if piece is not None]


def _computed(tasks: list[tuple[int, Chunk]], workers: int) -> Iterator[tuple[int, Pieces]]:
    """Yield (index, numbers) of every task as it is finished."""
    if workers == 1 or len(tasks) <= 1:
        with threadpool_limits(1):
            for index, chunk in tasks:
                yield index, compute_chunk(chunk)
        return
    pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        with _interrupts_held():
            indices = {pool.submit(compute_chunk, chunk): index for index, chunk in tasks}
        for future in as_completed(indices):
            yield indices[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def compute_chunk(chunk: Chunk) -> Pieces:
    """Per-draw energies of one chunk: name -> (draws, L)."""
    size = draws_per_batch(chunk.architecture)
    batches = [
        draw_energies(chunk.architecture, chunk.seed, range(start, min(start + size, chunk.stop)), chunk.inputs)
        for start in range(chunk.start, chunk.stop, size)
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _prepare_worker() -> None:
    """One thread per worker: no oversubscription."""
    threadpool_limits(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C while processes start: they inherit the mask, so an interrupt is the parent's business alone."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _estimates(values: Pieces) -> dict[str, Estimate]:
    """Means and errors of the measured terms and of what follows from them draw by draw."""
    energy = values["label_term"] + values["output_term"]
    per_draw = {"update_energy": energy, **values, "mean_update_energy": energy.mean(axis=1, keepdims=True)}
    found = {name: summarise(value) for name, value in per_draw.items()}
    found["learning_rate_scale"] = _inverse_root(found["mean_update_energy"])
    found["label_learning_rate_scale"] = _inverse_root(summarise(values["label_term"].mean(axis=1, keepdims=True)))
    return found


def _inverse_root(estimate: Estimate) -> Estimate:
    """S -> S^(-1/2), the error carried to first order."""
    scale = estimate.mean**-0.5
    slope = 0.5 * scale[0] / estimate.mean[0]
    return Estimate(scale, slope**2 * estimate.covariance, estimate.largest_share)
