"""Processes that compute for a command: stopped with it, however it ends, and named where they cannot begin."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from meanfield.execution import workers as processes
from tests.sims.commands import assert_gone

ROOT = Path(__file__).parent.parent.parent
# Whole ones: a piece that is being written has a name that begins with a dot.
PIECES = ".*/[!.]*.npz"
posix = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")


def _started(tmp_path, draws):
    """A command with two workers that has finished a piece of its own, what it was, and the numbers of its workers."""
    psutil = pytest.importorskip("psutil", reason="comes with the extra cluster")
    command = [sys.executable, "-m", "sims.cnn_overlap", "--depth", "3", "--channels", "64", "--grid", "16", "16"]
    command += ["--kernel", "3", "--draws", str(draws), "--workers", "2", "--out", str(tmp_path / "run.nc")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    before = len(list(tmp_path.glob(PIECES)))
    running = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob(PIECES))) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    children = psutil.Process(running.pid).children(recursive=True)
    workers = [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) == 2
    return command, running, workers


@posix
def test_a_stopped_command_leaves_whole_pieces_and_continues(tmp_path):
    """In one line, without warnings of semaphores that nobody has released; by Ctrl-C, which reaches workers too.

    And stopped once more, by SIGTERM.
    """
    stopped = set()  # of four pieces, so that the first stop leaves work for the second
    for send, number, status, word in (
        (os.killpg, signal.SIGINT, 130, "interrupted"),
        (os.kill, signal.SIGTERM, 143, "terminated"),
    ):
        command, running, workers = _started(tmp_path, draws=320)
        send(running.pid, number)
        _, complaint = running.communicate(timeout=60)
        assert running.returncode == status
        assert complaint.strip() == f"{word}: finished pieces are kept; the same command continues from them"
        assert_gone(workers)
        pieces = {piece: piece.stat().st_mtime_ns for piece in tmp_path.glob(PIECES)}
        assert stopped < set(pieces.items())
        stopped = set(pieces.items())
        assert not list(tmp_path.glob("*.nc"))
        assert all(np.load(piece)["label_term"].size for piece in pieces)
    continued = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Verdicts" in continued.stdout
    assert not list(tmp_path.glob(".*.pieces"))


@posix
def test_a_result_that_is_half_sent_is_not_waited_for(tmp_path):
    """The one process is stopped while it sends 300 MB; whoever waited for the rest would never end."""
    pytest.importorskip("psutil", reason="comes with the extra cluster")
    script = tmp_path / "script.py"
    script.write_text(HALF_SENT)
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, script], cwd=ROOT, env=own, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("stopped half-way\n", 0), ended.stderr


HALF_SENT = """
import time
import psutil
from meanfield.execution.workers import pool

def nothing():
    pass

def large(size):
    return bytes(size)

if __name__ == "__main__":
    try:
        with pool(1, nothing) as executor:
            executor.submit(large, 1).result()
            before, sent = psutil.Process().memory_info().rss, executor.submit(large, 300_000_000)
            while psutil.Process().memory_info().rss < before + 20_000_000:
                time.sleep(0.001)
            assert not sent.done()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        print("stopped half-way")
"""


@posix
def test_a_terminal_that_closes_stops_a_command_as_sigterm_does(tmp_path):
    """Its signal reaches all processes; semaphores that nobody has released would be told of on a line of their own."""
    _, running, workers = _started(tmp_path, draws=1000)
    os.killpg(running.pid, signal.SIGHUP)
    _, complaint = running.communicate(timeout=60)
    assert running.returncode == 143
    assert complaint.strip() == "terminated: finished pieces are kept; the same command continues from them"
    assert_gone(workers)


@posix
def test_workers_of_a_killed_command_end_within_seconds(tmp_path):
    """Its tasks would take them longer."""
    _, running, workers = _started(tmp_path, draws=1000)
    running.kill()
    assert_gone(workers, seconds=5)
    running.communicate(timeout=60)


@posix
def test_a_command_that_is_stopped_before_its_work_says_so_too():
    """As while it imports, where an exception might be lost or end the program in a riddle."""
    stopped = """
import os, signal, sys
from argparse import Namespace
from sims.common.command import run_command
class Swallowing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
def run(options):
    Swallowing()
    return 0
sys.exit(run_command(run, Namespace()))
"""
    done = subprocess.run([sys.executable, "-c", stopped], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 143
    assert done.stderr.strip() == "terminated: finished pieces are kept; the same command continues from them"


UNGUARDED = """
import meanfield as mf
from meanfield.execution import chunks

chunks.OPERATIONS_PER_CHUNK = 1
mf.simulate(mf.MLP(depth=2, width=4), draws=4, seed=0, workers={workers})
"""


@pytest.mark.parametrize("workers", ["2", 'mf.Workers(2, "local")'])
def test_a_script_without_a_guard_is_told_of_it(tmp_path, workers):
    """Once, and by nothing else: its workers import it, and end without a word where they would start their own."""
    if "local" in workers:
        pytest.importorskip("distributed", reason="needs the extra cluster")
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(workers=workers))
    done = subprocess.run([sys.executable, script], cwd=ROOT, env=_here(), capture_output=True, text=True)
    assert done.returncode == 1
    assert 'put the call under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
    assert done.stderr.count("Traceback") == 1
    assert "killed from outside" not in done.stderr


def test_a_guarded_script_runs(tmp_path):
    script = tmp_path / "script.py"
    lines = UNGUARDED.format(workers="mf.Workers(2)").strip().splitlines()
    script.write_text("\n".join([*lines[:-1], 'if __name__ == "__main__":', f"    {lines[-1]}"]))
    subprocess.run([sys.executable, script], cwd=ROOT, env=_here(), check=True)


def _here():
    """The environment of a script that lies elsewhere and imports this library."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _die():
    os._exit(3)


def test_a_process_that_dies_later_was_killed():
    with (
        pytest.raises(ChildProcessError, match="killed from outside, as for want of memory"),
        processes.pool(1, signal.getsignal, signal.SIGTERM) as executor,
    ):
        executor.submit(_die).result()


def test_an_error_in_the_middle_does_not_wait_for_the_processes():
    started = time.monotonic()
    with pytest.raises(TimeoutError), processes.pool(2, time.sleep, 0) as executor:
        executor.submit(time.sleep, 100).result(timeout=0.1)
    assert time.monotonic() - started < 60
