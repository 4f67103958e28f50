"""Files that are whole or absent, on disks that are full too."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from meanfield.common.files import write_text_whole, write_whole
from meanfield.execution.chunks import PieceStore

ROOT = Path(__file__).parent.parent.parent


def _full(path):
    path.write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_named_with_its_file_which_stays_as_it_was(tmp_path):
    write_text_whole(tmp_path / "kept.txt", "old")
    with pytest.raises(OSError, match=r"cannot write the file .*/kept\.txt: No space left on device; make room there"):
        write_whole(tmp_path / "kept.txt", _full)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_symbolic_link_stays_and_what_it_leads_to_is_written(tmp_path):
    """Whole, beside its old form; a link to nothing yet gives the file that it names."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "kept.txt").write_text("old")
    for name in ("kept.txt", "new.txt"):
        link = tmp_path / name
        link.symlink_to(folder / name)
        write_text_whole(link, "new")
        assert link.is_symlink()
        assert (folder / name).read_text() == "new"
    with pytest.raises(OSError, match=r"cannot write the file .*kept\.txt: No space left"):
        write_whole(tmp_path / "kept.txt", _full)
    assert (folder / "kept.txt").read_text() == "new"
    assert sorted(path.name for path in folder.iterdir()) == ["kept.txt", "new.txt"]


def test_a_file_is_on_the_disk_before_its_name_is_and_the_name_before_the_end(tmp_path, monkeypatch):
    """A machine that loses power leaves the old file or the new one, and no empty one under the new name."""
    steps, flush, replace = [], os.fsync, Path.replace

    def flushed(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        steps.append(("flush", path.name, path.is_file() and path.read_text()))
        flush(handle)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", lambda self, to: steps.append(("name", to.name)) or replace(self, to))
    write_text_whole(tmp_path / "new.txt", "text")
    (first, _, held), *others = steps
    assert (first, held) == ("flush", "text")
    assert others == [("name", "new.txt"), ("flush", tmp_path.name, False)]


def test_the_kind_of_error_stays(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write the file .*/none/new\.txt: No such file"):
        write_text_whole(tmp_path / "none" / "new.txt", "text")


def test_what_a_writer_itself_raises_is_left_alone(tmp_path):
    def fail(path):
        raise OSError("the writer's own words")

    with pytest.raises(OSError, match=r"^the writer's own words$"):
        write_whole(tmp_path / "new.txt", fail)


def test_pieces_name_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "savez", lambda path, **_: _full(path))
    with pytest.raises(OSError, match=r"pieces/a\.npz: No space left on device"):
        PieceStore(tmp_path / "pieces").save("a", {"label_term": np.arange(3.0)})


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
@pytest.mark.parametrize(("most", "file"), [(4096, "run.nc"), (70_000, "run.png")])
def test_a_command_without_room_says_so_in_one_line(tmp_path, most, file):
    """HDF5 itself would not say why it failed.

    Without bytecode (-B), which would be cut off at that size, too, and then break every import after this test.
    Matplotlib's list of fonts is made here if it is not there yet: it is larger, too, and Matplotlib would say that it
    cannot keep it.
    """
    import matplotlib.font_manager  # noqa: F401

    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)\n"
    limited += "from sims import simulation; sys.exit(simulation('identities').main(sys.argv[2:]))"
    command = [sys.executable, "-B", "-c", limited, str(most), "--out", str(tmp_path / "run.nc")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: cannot write the file {tmp_path / file}: File too large; make room there, or choose another with "
        "--out\n"
    )
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".") or path.name == file]
