"""Several simulations at once: what comes back, and what a refusal does to the others."""

import sys
import time
from pathlib import Path

import pytest

from sims._side_by_side import side_by_side


def _double(number):
    print(f"doubling {number}", file=sys.stderr)
    return 2 * number


def _write_or_refuse(job):
    """Write a file that is whole after minutes only; or refuse, once the other has begun to."""
    path, refuse = job
    if refuse:
        while not path.exists():
            time.sleep(0.01)
        print("error: nothing to write to", file=sys.stderr)
        raise SystemExit(2)
    try:
        path.write_text("half")
        time.sleep(100)
    finally:
        path.unlink()


def test_every_outcome_comes_with_what_was_said(capfd):
    found = sorted(side_by_side(_double, [3, 1, 2], 2))
    assert found == [(0, 6, "doubling 3\n"), (1, 2, "doubling 1\n"), (2, 4, "doubling 2\n")]
    assert capfd.readouterr().err == ""


def test_a_refusal_stops_the_others_and_is_said(tmp_path: Path, capfd):
    started = time.monotonic()
    with pytest.raises(SystemExit) as leaving:
        list(side_by_side(_write_or_refuse, [(tmp_path / "half", False), (tmp_path / "half", True)], 2))
    assert leaving.value.code == 2
    assert capfd.readouterr().err == "error: nothing to write to\n"
    assert time.monotonic() - started < 60
    assert not list(tmp_path.iterdir())
