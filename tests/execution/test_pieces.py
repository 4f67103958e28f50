"""Finished pieces on disk: what is damaged is said, computed again, and never taken for what was written."""

import errno
import io
import json
import re
import time

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.common.files import DamagedFileWarning
from meanfield.execution import chunks
from meanfield.execution.chunks import RECORD, PieceStore

NET = mf.MLP(depth=2, width=4)
PIECE = {"label_term": np.arange(6.0).reshape(3, 2), "output_term": np.ones((3, 2))}
DATA = np.random.default_rng(0).normal(size=(8, 4)), np.arange(8) % 2


@pytest.fixture
def stored(tmp_path):
    """A store with one piece, and the file of it."""
    store = PieceStore(tmp_path)
    store.save("a", PIECE)
    return store, tmp_path / "a.npz"


def _held(path):
    with np.load(path) as held:
        return dict(held)


def _damage_by(change):
    """A change of what the file holds, in a file that NumPy reads."""

    def damage(path):
        np.savez(path, **change(_held(path)))

    return damage


def _first_draw(held):
    return held | {name: held[name][:1] for name in PIECE}


def _nothing_recorded(held):
    return {name: held[name] for name in PIECE}


def _another_number(held):
    return held | {"label_term": held["label_term"] + 1e-16 * (held["label_term"] == 0)}


def _another_type(held):
    return held | {"output_term": held["output_term"].astype("float32")}


DAMAGES = {
    "empty": (lambda path: path.write_bytes(b""), "cut off"),
    "half": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "cut off"),
    "garbage": (lambda path: path.write_bytes(b"garbage" * 100), "no file of NumPy"),
    "array": (lambda path: path.write_bytes(_array()), "no file of NumPy"),
    "draws": (_damage_by(_first_draw), "numbers are not those that were written"),
    "record": (_damage_by(_nothing_recorded), "no record"),
    "number": (_damage_by(_another_number), "numbers are not those that were written"),
    "type": (_damage_by(_another_type), "numbers are not those that were written"),
    "none": (_damage_by(lambda held: {RECORD: held[RECORD]}), "numbers are not those that were written"),
    "words": (_damage_by(lambda held: held | {RECORD: np.array("[1")}), "damaged"),
    "link": (lambda path: (path.unlink(), path.symlink_to("nowhere/a.npz")), "a link that leads nowhere"),
}


def _array():
    file = io.BytesIO()
    np.save(file, PIECE["label_term"])
    return file.getvalue()


@pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_piece_is_named_in_one_line_and_not_taken(stored, damage, why):
    store, path = stored
    damage(path)
    with pytest.warns(DamagedFileWarning, match=re.escape(f"the finished piece {path} is damaged (")) as said:
        assert store.load("a", 3) is None
    (warning,) = said
    assert why in str(warning.message)
    assert "\n" not in str(warning.message)


def test_no_changed_byte_gives_another_number(stored):
    """Every third byte: a few, of the times in a zip file, mean nothing."""
    store, path = stored
    whole, told = path.read_bytes(), 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            piece = store.load("a", 3)
        except DamagedFileWarning:
            told += 1
            continue
        assert piece.keys() == PIECE.keys()
        for name, values in PIECE.items():
            np.testing.assert_array_equal(piece[name], values)
    assert told > len(whole) / 6


def test_a_piece_of_another_key_or_number_of_draws_is_not_taken(stored):
    store, path = stored
    with pytest.warns(DamagedFileWarning, match="its draws are not those"):
        assert store.load("a", 4) is None
    path.rename(path.with_name("b.npz"))
    with pytest.warns(DamagedFileWarning, match="its key are not those"):
        assert store.load("b", 3) is None
    assert store.load("a", 3) is None, "what is not there is not finished"


def test_what_stands_in_the_place_of_a_piece_stops_no_run_at_its_end(tmp_path, monkeypatch):
    """A link that leads nowhere gives way to the piece; a folder is refused before any draw, in words of the API."""
    fresh = mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path)
    (path,) = tmp_path.glob("*.npz")
    path.unlink()
    path.symlink_to(tmp_path / "nowhere" / "piece.npz")
    with pytest.warns(DamagedFileWarning, match="a link that leads nowhere"):
        xr.testing.assert_identical(mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path), fresh)
    assert path.is_file()
    path.unlink()
    path.mkdir()
    monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: pytest.fail("a draw is made"))
    with pytest.raises(
        IsADirectoryError, match=r"npz is a folder, .* move it away, or give another folder .*resume_in="
    ):
        mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path)


def test_a_piece_that_cannot_be_written_is_told_in_words_of_the_api(stored, monkeypatch):
    def full(*given, **held):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"a.npz: No space left on device; make room there, or give another folder .*"):
        stored[0].save("a", PIECE)


def test_a_file_is_no_folder_for_pieces(tmp_path):
    """Before any work; it was said in other words once the first piece was finished."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"file is a file; give a folder, in which finished pieces are kept"):
        mf.simulate(NET, draws=12, seed=3, resume_in=tmp_path / "file")


def test_a_record_says_what_a_piece_holds(stored):
    record = json.loads(str(_held(stored[1])[RECORD]))
    assert record.keys() == {"key", "draws", "numbers", "seconds"}
    assert (record["key"], record["draws"]) == ("a", 3)


def test_the_time_of_all_pieces_is_known_but_that_of_damaged_ones(stored):
    store, path = stored
    store.save("b", PIECE, 1.5)
    store.save("c", PIECE, 2.25)
    assert store.seconds() == 3.75
    path.with_name("c.npz").write_bytes(b"garbage")
    path.with_name("d.npz").write_bytes(b"")
    assert store.seconds() == 1.5


def test_the_time_of_a_run_counts_both_of_its_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e3)
    monkeypatch.setattr(chunks, "compute_chunk", _slow(chunks.compute_chunk))
    mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path)
    store, made = PieceStore(tmp_path), len(list(tmp_path.glob("*.npz")))
    first = store.seconds()
    assert first >= made * SPENT > 0
    mf.simulate(NET, draws=4, seed=3, resume_in=tmp_path)
    assert store.seconds() == first, "what is read takes no time"
    mf.simulate(NET, draws=8, seed=3, resume_in=tmp_path)
    more = len(list(tmp_path.glob("*.npz"))) - made
    assert store.seconds() >= first + more * SPENT > first


SPENT = 0.02


def _slow(compute):
    def computed(chunk):
        until = time.process_time() + SPENT
        while time.process_time() < until:
            pass
        return compute(chunk)

    return computed


@pytest.mark.parametrize("left", [0, 100])
def test_runs_go_on_beside_a_damaged_piece(tmp_path, monkeypatch, left):
    """Of draws and of training."""
    runs = {
        "draws": lambda: mf.simulate(NET, draws=12, seed=3, resume_in=tmp_path / "draws"),
        "training": lambda: mf.train(NET, DATA, rates=[0.1, 0.2], seeds=10, steps=1, resume_in=tmp_path / "training"),
    }
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 1e3)
    real, computed = chunks.compute_chunk, []
    for name, run in runs.items():
        monkeypatch.setattr(chunks, "compute_chunk", real)
        whole, (first, *others) = run(), sorted((tmp_path / name).glob("*.npz"))
        assert len(others) > 0
        monkeypatch.setattr(chunks, "compute_chunk", lambda chunk: (computed.append(chunk), real(chunk))[1])
        computed.clear()
        first.write_bytes(first.read_bytes()[:left])
        with pytest.warns(DamagedFileWarning, match=first.name):
            xr.testing.assert_identical(run(), whole)
        assert len(computed) == 1
        xr.testing.assert_identical(run(), whole)
        assert len(computed) == 1, "what was damaged is finished again"
