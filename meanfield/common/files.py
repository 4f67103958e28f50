"""Files that are either whole or absent."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meanfield.common.validation import takes
from meanfield.signals import termination_held

# What reading a NetCDF file raises where it is none or breaks off; the last two, where it is damaged in its middle.
UNREADABLE = (OSError, RuntimeError, AttributeError)
# What to do where a file of a command cannot be written.
ANOTHER = "choose another with --out"


class DamagedFileWarning(UserWarning):
    """A file of finished work is not as it was written, and what it held is computed again."""


@takes(Path)
def write_whole(path: Path, write: Callable[[Path], object], remedy: str = ANOTHER) -> None:
    """Let ``write`` fill a temporary file next to ``path``, then put it in place in one step; `ENDINGS` wait for it.

    What is in place is on the disk, whatever ends the machine. A symbolic link stays, and what it leads to is written.
    Errors end with the ``remedy``.

    Raises:
        IsADirectoryError: ``path`` is a folder.
        OSError: the disk is full or refuses the file, with the path and the reason. An earlier file at ``path`` stays
            as it was.
    """
    _require_no_folder(path, remedy)
    place = behind_links(path)
    with termination_held(), _named(path, remedy):
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
            _flush(temporary)
            temporary.replace(place)
            _flush_folder(place.parent)
        finally:
            temporary.unlink(missing_ok=True)


@takes(Path, str)
def write_text_whole(path: Path, text: str) -> None:
    """Write a text file as `write_whole` does."""
    write_whole(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


@takes(Path)
def require_file(path: Path) -> None:
    """Raise IsADirectoryError if ``path`` is a folder, or what `require_writable` raises for the folders around it."""
    _require_no_folder(path)
    require_writable(path.parent)
    require_writable(behind_links(path).parent)


def behind_links(path: Path) -> Path:
    """Where a file is, or will be, that symbolic links stand for."""
    return Path(os.path.realpath(path))


@takes(Path)
def require_writable(folder: Path) -> None:
    """Make ``folder`` and write a file in it, or raise PermissionError / NotADirectoryError saying which and why."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"cannot write to the folder {folder}: it is a file; {ANOTHER}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(f"cannot write to the folder {folder}: {error.strerror}; {ANOTHER}") from error


def _flush(path: Path) -> None:
    """Wait until a file is on the disk; otherwise its new name could be there before what it holds."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, as nothing that a file replaces may be deleted before."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that flush no folders
            raise
    finally:
        os.close(handle)


@contextmanager
def _named(path: Path, remedy: str) -> Iterator[None]:
    """An error about the temporary file is raised as one about the file itself."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise
        reason = f"cannot write the file {path}: {error.strerror}; make room there, or {remedy}"
        raise type(error)(reason) from error


def _require_no_folder(path: Path, remedy: str = ANOTHER) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"cannot write the file {path}: it is a folder; {remedy}")
