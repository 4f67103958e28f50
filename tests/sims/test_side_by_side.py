"""Several simulations at once: what comes back, and what a refusal does to the others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from meanfield.memory import require_bytes
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


def _be_killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_an_error():
    with pytest.raises(ChildProcessError, match="killed from outside"):
        list(side_by_side(_be_killed, [None], 1))


def _fail_after_a_warning(_):
    print("warning: of what is to come", file=sys.stderr)
    raise RuntimeError("it came")


def test_what_was_said_before_a_failure_is_not_lost(capfd):
    with pytest.raises(RuntimeError, match="it came"):
        list(side_by_side(_fail_after_a_warning, [None], 1))
    assert "warning: of what is to come" in capfd.readouterr().err


def _ask_for_memory(share):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    require_bytes(share * machine, "a simulation", "its sizes")
    return share


def test_memory_is_granted_by_shares():
    """Two at a time have half of the machine each; one alone has all of it."""
    assert [outcome for _, outcome, _ in side_by_side(_ask_for_memory, [0.4, 0.4], 2)] == [0.4, 0.4]
    assert [outcome for _, outcome, _ in side_by_side(_ask_for_memory, [0.6], 1)] == [0.6]
    with pytest.raises(MemoryError, match="for each of 2 simulations"):
        list(side_by_side(_ask_for_memory, [0.6], 2))


def _write_for_long(folder):
    """Hold a file named by this process, half written, for minutes."""
    half = folder / str(os.getpid())
    try:
        half.write_text("half")
        time.sleep(100)
    finally:
        half.unlink()


TWO = """
import sys
from pathlib import Path
from sims._side_by_side import side_by_side
from tests.sims.test_side_by_side import _write_for_long
list(side_by_side(_write_for_long, [Path(sys.argv[1])] * 2, 2))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_leaves_neither_processes_nor_half_files(tmp_path, number):
    root = Path(__file__).parent.parent.parent
    command = subprocess.Popen([sys.executable, "-c", TWO, str(tmp_path)], cwd=root, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    children = [int(path.name) for path in tmp_path.iterdir()]
    assert len(children) == 2
    command.send_signal(number)
    assert command.wait(timeout=60) != 0
    assert not list(tmp_path.iterdir())
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
