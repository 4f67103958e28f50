"""Several simulations at once: what comes back, and what a refusal does to the others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from meanfield.common.files import write_whole
from meanfield.common.machine import require_bytes
from sims.claims.runs import side_by_side
from tests.sims.commands import assert_gone


def _double(number):
    print(f"doubling {number}", file=sys.stderr)
    return 2 * number


def _write_slowly(folder):
    """A file named by this process, in two halves with a marker beside once it is begun; then work for minutes."""

    def write(path):
        path.write_text("half")
        (folder / f"begun-{os.getpid()}").touch()
        time.sleep(0.5)
        path.write_text("whole")

    write_whole(folder / f"file-{os.getpid()}", write)
    time.sleep(100)


def _write_or_refuse(job):
    """Write slowly; or refuse, once the other has begun to."""
    folder, refuse = job
    if not refuse:
        _write_slowly(folder)
    while not list(folder.glob("begun-*")):
        time.sleep(0.01)
    print("error: nothing to write to", file=sys.stderr)
    raise SystemExit(2)


def _begun(folder, count):
    """The processes that write there, once there are so many."""
    deadline = time.monotonic() + 60
    while len(begun := list(folder.glob("begun-*"))) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(begun) == count
    return [int(path.name.removeprefix("begun-")) for path in begun]


def _assert_only_whole_files(folder, processes):
    for process in processes:
        assert (folder / f"file-{process}").read_text() == "whole"
        (folder / f"begun-{process}").unlink()
    assert len(list(folder.iterdir())) == len(processes)


def test_every_outcome_comes_with_what_was_said(capfd):
    doubled = sorted(side_by_side(_double, [3, 1, 2], 2))
    assert doubled == [(0, 6, "doubling 3\n"), (1, 2, "doubling 1\n"), (2, 4, "doubling 2\n")]
    assert capfd.readouterr().err == ""


def test_a_refusal_stops_the_others_and_is_said(tmp_path: Path, capfd):
    started = time.monotonic()
    with pytest.raises(SystemExit) as leaving:
        list(side_by_side(_write_or_refuse, [(tmp_path, False), (tmp_path, True)], 2))
    assert leaving.value.code == 2
    assert capfd.readouterr().err == "error: nothing to write to\n"
    assert time.monotonic() - started < 60
    _assert_only_whole_files(tmp_path, _begun(tmp_path, 1))


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


TWO = """
import sys
from pathlib import Path
from sims.claims.runs import side_by_side
from tests.sims.test_side_by_side import _write_slowly
list(side_by_side(_write_slowly, [Path(sys.argv[1])] * 2, 2))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_command_leaves_neither_processes_nor_half_files(tmp_path, number):
    """Nor does one that is killed: its processes finish the file that they write, and go."""
    root = Path(__file__).parent.parent.parent
    command = subprocess.Popen([sys.executable, "-c", TWO, str(tmp_path)], cwd=root, stderr=subprocess.DEVNULL)
    children = _begun(tmp_path, 2)
    command.send_signal(number)
    assert command.wait(timeout=60) != 0
    assert_gone(children)
    _assert_only_whole_files(tmp_path, children)
