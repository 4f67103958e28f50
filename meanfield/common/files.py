"""Files that are either whole or absent."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meanfield.common.signals import termination_held
from meanfield.common.validation import takes

# What reading a NetCDF file raises where it is none or breaks off; the last two, where it is damaged in its middle.
UNREADABLE = (OSError, RuntimeError, AttributeError)


@takes(Path)
def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a temporary file next to ``path``, then put it in place in one step; SIGTERM waits for it.

    Raises:
        IsADirectoryError: ``path`` is a folder.
        OSError: the disk is full or refuses the file, with the path and the reason. An earlier file at ``path`` stays
            as it was.
    """
    _require_no_folder(path)
    with termination_held(), _named(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@takes(Path, str)
def write_text_whole(path: Path, text: str) -> None:
    """Write a text file as `write_whole` does."""
    write_whole(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


@takes(Path)
def require_file(path: Path) -> None:
    """Raise IsADirectoryError if ``path`` is a folder, or what `require_writable` raises for the folder around it."""
    _require_no_folder(path)
    require_writable(path.parent)


@takes(Path)
def require_writable(folder: Path) -> None:
    """Make ``folder`` and write a file in it, or raise PermissionError / NotADirectoryError saying which and why."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write to the folder {folder}: it is a file; choose another with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(
            f"cannot write to the folder {folder}: {error.strerror}; choose another with --out"
        ) from error


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error about the temporary file is raised as one about the file itself."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise
        reason = f"cannot write the file {path}: {error.strerror}; make room there, or choose another with --out"
        raise type(error)(reason) from error


def _require_no_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"cannot write the file {path}: it is a folder; choose another with --out")
