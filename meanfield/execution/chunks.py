"""A chunk: draws worth a second (more in long runs), the unit of parallel work and of what is kept on disk.

Its numbers depend on (what is measured, spec, seed, draw) alone, so chunks can be computed anywhere and in any order.
Workers import this module, so it stays free of everything that only the main process needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meanfield.common.validation import MOST_DRAWS
from meanfield.execution.provenance import code_digest, digest
from meanfield.nets.net import Net
from meanfield.simulation.measures.base import Measure, Pieces

OPERATIONS_PER_CHUNK = 4e10
# A scheduler hands out some 600 tasks a second (docs/cluster.md): chunks of long runs grow, so as to keep more cores.
MOST_CHUNKS = 10_000
MOST_DRAWS_PER_CHUNK = MOST_DRAWS // MOST_CHUNKS


@dataclass(frozen=True)
class Chunk:
    """Draws ``start`` .. ``stop`` - 1 of one net under one measure."""

    net: Net
    measure: Measure
    seed: int
    start: int
    stop: int

    @property
    def key(self) -> str:
        """A digest of all that the chunk's numbers depend on."""
        return digest(
            spec=self.net,
            measure=self.measure,
            seed=self.seed,
            draws=[self.start, self.stop],
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
    together = chunk.measure.together(chunk.net)
    starts = range(chunk.start, chunk.stop, together)
    batches = [
        chunk.measure.draw(chunk.net, chunk.seed, range(start, min(start + together, chunk.stop))) for start in starts
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
