"""A chunk: draws worth a second (more in long runs), the unit of parallel work and of what is kept on disk.

Its numbers depend on (what is measured, spec, seed, draw) alone, so chunks can be computed anywhere and in any order.
Workers import this module, so it stays free of everything that only the main process needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.datasets import Spec
from meanfield.execution.provenance import code_digest, digest
from meanfield.simulation.activation_statistics import draw_activation_statistics
from meanfield.simulation.arrays.groups import draw_energies_on
from meanfield.simulation.block_training import draw_trained_streams, draw_update_orders
from meanfield.simulation.first_updates import draw_first_updates
from meanfield.simulation.loop_update import draw_stream_updates
from meanfield.simulation.pair_overlaps import draw_overlaps
from meanfield.simulation.residual_energy import draw_residual_energies
from meanfield.simulation.training_assumptions import draw_training_assumptions
from meanfield.validation import MOST_DRAWS

Array = NDArray[np.float64]
Pieces = dict[str, Array]

OPERATIONS_PER_CHUNK = 4e10
# A scheduler hands out some 600 tasks a second (docs/cluster.md): chunks of long runs grow, so as to keep more cores.
MOST_CHUNKS = 10_000
MOST_DRAWS_PER_CHUNK = MOST_DRAWS // MOST_CHUNKS


# What can be read off draws: (architecture, seed=, draws=, weights=, **options) -> numbers per draw, by name.
MEASURES: dict[str, Callable[..., Pieces]] = {
    "energies": draw_energies_on,
    "activation statistics": draw_activation_statistics,
    "overlaps": draw_overlaps,
    "residual energies": draw_residual_energies,
    "loop updates": draw_stream_updates,
    "trained streams": draw_trained_streams,
    "first updates": draw_first_updates,
    "update orders": draw_update_orders,
    "training assumptions": draw_training_assumptions,
}


@dataclass(frozen=True)
class Chunk:
    """Draws ``start`` .. ``stop`` - 1 of one network, and which of the ``MEASURES`` is taken with what options.

    ``together`` is how many draws are carried at once; it changes speed, never a number.
    """

    architecture: Spec
    measure: str
    options: Mapping[str, Any]
    seed: int
    start: int
    stop: int
    weights: str
    together: int

    @property
    def key(self) -> str:
        """A digest of all that the chunk's numbers depend on."""
        return digest(
            spec=self.architecture,
            measure=self.measure,
            options=dict(self.options),
            seed=self.seed,
            draws=[self.start, self.stop],
            weights=self.weights,
            code=code_digest(),
        )


def plan(chunk: Chunk, operations: float, multiple: int = 1) -> list[Chunk]:
    """Split the draws of one large chunk into chunks of about a second, fewer in long runs, by operations per draw.

    Chunks are of a multiple of so many draws.
    """
    draws = chunk.stop - chunk.start
    fewest = -(-draws // MOST_CHUNKS)
    size = int(min(max(1, fewest, OPERATIONS_PER_CHUNK // operations), MOST_DRAWS_PER_CHUNK))
    size = -(-size // multiple) * multiple
    starts = range(chunk.start, chunk.stop, size)
    return [replace(chunk, start=start, stop=min(start + size, chunk.stop)) for start in starts]


def compute_chunk(chunk: Chunk) -> Pieces:
    """Per-draw numbers of one chunk: name -> (draws, ...)."""
    batches = [
        MEASURES[chunk.measure](
            chunk.architecture,
            seed=chunk.seed,
            draws=range(start, min(start + chunk.together, chunk.stop)),
            weights=chunk.weights,
            **chunk.options,
        )
        for start in range(chunk.start, chunk.stop, chunk.together)
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
