"""A chunk: draws worth a second (more in long runs), the unit of parallel work and of what is kept on disk.

Its numbers depend on the net, the measure, the seed and the draws alone, so chunks can be computed anywhere and in any
order. Workers import this module, so it stays free of everything that only the main process needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from meanfield.common.machine import on_one_thread
from meanfield.common.validation import MOST_DRAWS
from meanfield.execution.digests import Digests, code_digest
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
    def seconds(self) -> float:
        """How long it takes, roughly, by the measure's count of operations."""
        return self.measure.operations(self.net) * (self.stop - self.start) / OPERATIONS_PER_CHUNK

    @property
    def key(self) -> str:
        """A digest of all that the chunk's numbers depend on."""
        return keys([self])[0]


def keys(plan: Sequence[Chunk]) -> list[str]:
    """The key of every chunk; a net or a measure that many share is gone through once."""
    digest, code = Digests(), code_digest()
    return [
        digest(spec=chunk.net, measure=chunk.measure, seed=chunk.seed, draws=[chunk.start, chunk.stop], code=code)
        for chunk in plan
    ]


def plan(chunk: Chunk, operations: float, multiple: int = 1) -> list[Chunk]:
    """Split one large chunk into chunks of about a second (of more in long runs), given the operations per draw.

    Each but the last holds a multiple of ``multiple`` draws.
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
    ends = [(start, min(start + together, chunk.stop)) for start in range(chunk.start, chunk.stop, together)]
    batches = [chunk.measure.draw(chunk.net, chunk.seed, range(start, stop)) for start, stop in ends]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def one_thread() -> None:
    """Keep matrix products of this process on one thread from now on: compiled kernels here are serial anyway.

    The limit reaches the libraries that are loaded by now, which are all that chunks use, as this module imports them.
    """
    on_one_thread()
