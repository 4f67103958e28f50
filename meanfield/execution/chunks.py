"""A chunk: a range of draws worth about a second, the unit of parallel work and of what is kept on disk.

Its numbers depend on (spec, seed, draw) alone, so chunks can be computed anywhere and in any order. Workers import
this module, so it stays free of everything that only the main process needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.execution.provenance import code_digest, digest
from meanfield.simulation.cost import draw_operations, draws_per_batch
from meanfield.simulation.update_energy import draw_energies

Array = NDArray[np.float64]
Pieces = dict[str, Array]

OPERATIONS_PER_CHUNK = 4e10
MOST_DRAWS_PER_CHUNK = 10_000


@dataclass(frozen=True)
class Chunk:
    """Draws ``start`` .. ``stop`` - 1 of one network."""

    architecture: Sequential
    seed: int
    start: int
    stop: int
    inputs: Array | None
    weights: str

    @property
    def key(self) -> str:
        """A digest of all that the chunk's numbers depend on."""
        return digest(
            spec=self.architecture.describe(),
            seed=self.seed,
            draws=[self.start, self.stop],
            weights=self.weights,
            inputs=None if self.inputs is None else sha256(self.inputs.tobytes()).hexdigest(),
            code=code_digest(),
        )


def plan(architecture: Sequential, seed: int, draws: int, inputs: Array | None, weights: str) -> list[Chunk]:
    """Split the draws into chunks whose size depends on the architecture and the kind of weights alone."""
    size = int(min(max(1, OPERATIONS_PER_CHUNK // draw_operations(architecture, weights)), MOST_DRAWS_PER_CHUNK))
    starts = range(0, draws, size)
    return [Chunk(architecture, seed, start, min(start + size, draws), inputs, weights) for start in starts]


def compute_chunk(chunk: Chunk) -> Pieces:
    """Per-draw energies of one chunk: name -> (draws, L)."""
    size = draws_per_batch(chunk.architecture, chunk.weights)
    ranges = [range(start, min(start + size, chunk.stop)) for start in range(chunk.start, chunk.stop, size)]
    batches = [draw_energies(chunk.architecture, chunk.seed, draws, chunk.inputs, chunk.weights) for draws in ranges]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
