"""A chunk: draws worth a second (more in long runs), the unit of parallel work and of what is kept on disk.

Its numbers depend on the net, the measure, the seed and the draws alone, so chunks can be computed anywhere and in
any order. The finished piece of one is taken from disk only where it is what was written.
"""

import json
import time
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.common.files import DamagedFileWarning, write_whole
from meanfield.common.machine import on_one_thread
from meanfield.common.validation import MOST_DRAWS, fingerprint, require_instance
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
        return self.measure.cost(self.net).operations * (self.stop - self.start) / OPERATIONS_PER_CHUNK

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
    """The numbers of one chunk, draw by draw: name -> (draws, ...)."""
    together = chunk.measure.cost(chunk.net).together
    ends = [(start, min(start + together, chunk.stop)) for start in range(chunk.start, chunk.stop, together)]
    batches = []
    for start, stop in ends:
        batches.append(chunk.measure.draw(chunk.net, chunk.seed, range(start, stop)))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


# The numbers of a chunk, and the seconds of a processor that they took.
TimedPieces = tuple[Pieces, float]


def timed_chunk(chunk: Chunk) -> TimedPieces:
    """The numbers of one chunk, timed where it is computed."""
    begun = time.thread_time()  # not that of the process: a worker of a scheduler may have other threads
    return compute_chunk(chunk), time.thread_time() - begun


def one_thread() -> None:
    """Keep matrix products of this process on one thread from now on: compiled kernels here are serial anyway.

    The limit reaches the libraries that are loaded by now, which are all that chunks use, as this module imports them.
    """
    on_one_thread()


# What a file raises that is cut off, that is another kind of file, or whose bytes have changed.
_DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, zipfile.BadZipFile, zlib.error)
# What to do where no piece can be kept.
ANOTHER_FOLDER = "give another folder for finished pieces (resume_in=, or beside --out)"
# Under this name a piece holds what it is: its key, its number of draws, a digest of all its numbers, and its seconds.
RECORD, SECONDS = "record", "seconds"


@dataclass(frozen=True)
class PieceStore:
    """Finished pieces of a run on disk, one file per key, with a record of what is in it."""

    folder: Path

    def __post_init__(self) -> None:
        require_instance("folder", self.folder, Path, "the Path of a folder")
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file; give a folder, in which finished pieces are kept")

    def load(self, key: str, draws: int) -> Pieces | None:
        """The piece with this key, of so many draws; None if it is not finished, or, with a warning, damaged.

        A folder of its name is no piece, and may hold what nobody wants to lose: it is refused before any work.
        """
        path = self._path(key)
        if path.is_dir():
            raise IsADirectoryError(
                f"{path} is a folder, where a file with a finished piece is to be: move it away, or {ANOTHER_FOLDER}"
            )
        try:
            return _read(path, key, draws)
        except FileNotFoundError:
            if not path.is_symlink():
                return None
            why = "a link that leads nowhere"
        except _DAMAGED as error:
            why = getattr(error, "strerror", None) or str(error) or "it breaks off"
        said = f"the finished piece {path} is damaged ({why}) and is computed again"
        warnings.warn(said, DamagedFileWarning, stacklevel=2)
        return None

    def save(self, key: str, piece: Pieces, seconds: float = 0.0) -> None:
        """Keep a finished piece, and how long a processor has taken for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draws = len(next(iter(piece.values())))
        held = {**piece, RECORD: np.array(json.dumps(_recorded(piece, key, draws) | {SECONDS: seconds}))}
        path = self._path(key)
        if path.is_symlink() and not path.exists():  # it was said to be damaged, and leads nowhere to write to
            path.unlink()
        write_whole(path, lambda unfinished: np.savez(unfinished, allow_pickle=False, **held), ANOTHER_FOLDER)

    def seconds(self) -> float:
        """How long a processor has taken for the finished pieces, over all starts and on all machines.

        One that was damaged since counts nothing: no run ends without its result for that.
        """
        total = 0.0
        for path in self.folder.glob("*.npz"):
            try:
                with np.load(path, allow_pickle=False) as stored:
                    total += json.loads(str(stored[RECORD]))[SECONDS]
            except _DAMAGED:
                continue
        return total

    def discard(self) -> None:
        """Delete all pieces, once the result that they were kept for is itself on disk."""
        for path in self.folder.glob("*.npz"):
            path.unlink()
        if self.folder.exists():
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def _read(path: Path, key: str, draws: int) -> Pieces:
    """The numbers in a file; one of `_DAMAGED` unless they are those that were written for this key and these draws."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is cut off, or no file of NumPy")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            piece = dict(stored)
    if RECORD not in piece:
        raise ValueError("it has no record of what is in it")
    record, expected = json.loads(str(piece.pop(RECORD))), _recorded(piece, key, draws)
    if wrong := [name for name in expected if record.get(name) != expected[name]]:
        raise ValueError(f"its {' and '.join(wrong)} are not those that were written")
    if short := [name for name, values in piece.items() if len(values) != draws]:
        raise ValueError(f"{short[0]} holds {len(piece[short[0]])} of {draws} draws")
    return piece


def _recorded(piece: Pieces, key: str, draws: int) -> dict[str, Any]:
    contents = "".join(f"{name} {fingerprint(values)}\n" for name, values in sorted(piece.items()))
    return {"key": key, "draws": draws, "numbers": sha256(contents.encode()).hexdigest()[:16]}
