"""Running a simulation as a command, and how a command refuses."""

import os
import subprocess
import sys
import time
from unittest.mock import patch

from sims.common.study import Study


def figures_left_out():
    """Commands of this process write empty ones: figures are drawn and looked at in tests of their own."""
    return patch.object(Study, "pictures", lambda study, dataset, kinds: dict.fromkeys(kinds, b""))


def without_figure(simulation, arguments, path):
    """The status of a command that writes to a path, its figure left out."""
    with figures_left_out():
        return simulation.main([*arguments, "--out", str(path)])


def finished_run(simulation, arguments, path):
    """The dataset that a run of these arguments writes to a path."""
    import xarray as xr  # not by the processes that tests start, which load this module

    assert without_figure(simulation, arguments, path) == 0
    return xr.load_dataset(path, engine="netcdf4")


def assert_refused(simulation, arguments, message, folder, capsys):
    """One line with this message, status 2, and nothing written."""
    assert simulation.main([*arguments, "--out", str(folder / "run.nc")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not (folder / "run.nc").exists()


def unread(module, *arguments):
    """Status and complaint of a command whose output nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def assert_gone(processes, seconds=5.0):
    """Within this time none of the processes with these numbers runs any more."""
    deadline, left = time.monotonic() + seconds, list(processes)
    while left and time.monotonic() < deadline:
        left = [process for process in left if _runs(process)]
        time.sleep(0.01)
    assert not left


def _runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
