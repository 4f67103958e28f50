"""What becomes of a report that nobody can be given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HYPERPARAMETERS = ["--optimizer", "sgd", "--width", "8", "--depth", "8", "--base-width", "4", "--base-depth", "4"]
COMMAND = [sys.executable, "-m", "sims.hyperparameters", *HYPERPARAMETERS]
posix = pytest.mark.skipif(os.name != "posix", reason="uses a POSIX shell")


def _run(redirection, *more):
    words = " ".join([*COMMAND, *more])
    return subprocess.run(["sh", "-c", f"{words} {redirection}"], cwd=ROOT, capture_output=True, text=True)


@posix
def test_a_closed_output_takes_no_report_and_no_file_its_place(tmp_path):
    done = _run(">&-", "--out", str(tmp_path / "table.txt"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "table.txt").read_text().strip()


@posix
def test_a_closed_output_changes_no_refusal():
    done = _run(">&-", "--block-depth", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: block_depth is 0")


@posix
def test_a_closed_error_output_is_none_of_the_reports_business():
    done = _run("2>&-")
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_without_room_is_named():
    done = _run("> /dev/full")
    assert done.returncode == 2
    assert done.stderr == "error: cannot write to the standard output: No space left on device\n"
