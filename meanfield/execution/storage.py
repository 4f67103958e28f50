"""The store of finished pieces that lets long work continue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meanfield.common.files import write_whole
from meanfield.simulation.measures.base import Pieces


@dataclass(frozen=True)
class PieceStore:
    """Finished pieces of a run on disk, one file per key; a piece that exists is whole."""

    folder: Path

    def load(self, key: str) -> Pieces | None:
        """The piece with this key, or None if it is not finished."""
        path = self.folder / f"{key}.npz"
        if not path.exists():
            return None
        with np.load(path) as stored:
            return dict(stored)

    def save(self, key: str, piece: Pieces) -> None:
        """Keep a finished piece."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / f"{key}.npz", lambda path: np.savez(path, allow_pickle=False, **piece))

    def discard(self) -> None:
        """Forget all pieces, once what they were for is itself on disk."""
        for path in self.folder.glob("*.npz"):
            path.unlink()
        if self.folder.exists():
            self.folder.rmdir()
