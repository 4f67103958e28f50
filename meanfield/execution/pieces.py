"""Finished pieces of a run on disk, which are taken only where they are what was written."""

import json
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.common.arrays import fingerprint
from meanfield.common.files import DamagedFileWarning, write_whole
from meanfield.common.validation import require_instance
from meanfield.simulation.measures.base import Pieces

# What a file raises that is cut off, that is another kind of file, or whose bytes have changed.
_DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, zipfile.BadZipFile, zlib.error)
# Under this name a piece holds what it is: its key, its number of draws, and a digest of all its numbers.
RECORD = "record"


@dataclass(frozen=True)
class PieceStore:
    """Finished pieces of a run on disk, one file per key, with a record of what is in it."""

    folder: Path

    def __post_init__(self) -> None:
        require_instance("folder", self.folder, Path, "the Path of a folder")
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file; give a folder, in which finished pieces are kept")

    def load(self, key: str, draws: int) -> Pieces | None:
        """The piece with this key, of so many draws; None if it is not finished, or, with a warning, damaged."""
        path = self._path(key)
        try:
            return _read(path, key, draws)
        except FileNotFoundError:
            return None
        except _DAMAGED as error:
            why = getattr(error, "strerror", None) or str(error) or "it breaks off"
            said = f"the finished piece {path} is damaged ({why}) and is computed again"
            warnings.warn(said, DamagedFileWarning, stacklevel=2)
            return None

    def save(self, key: str, piece: Pieces) -> None:
        """Keep a finished piece."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draws = len(next(iter(piece.values())))
        held = {**piece, RECORD: np.array(json.dumps(_recorded(piece, key, draws)))}
        write_whole(self._path(key), lambda path: np.savez(path, allow_pickle=False, **held))

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
    if record != expected:
        wrong = [name for name in expected if record.get(name) != expected[name]]
        raise ValueError(f"its {' and '.join(wrong)} are not those that were written")
    if short := [name for name, values in piece.items() if len(values) != draws]:
        raise ValueError(f"{short[0]} holds {len(piece[short[0]])} of {draws} draws")
    return piece


def _recorded(piece: Pieces, key: str, draws: int) -> dict[str, Any]:
    contents = "".join(f"{name} {fingerprint(values)}\n" for name, values in sorted(piece.items()))
    return {"key": key, "draws": draws, "numbers": sha256(contents.encode()).hexdigest()[:16]}
