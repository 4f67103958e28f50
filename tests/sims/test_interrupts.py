"""Ctrl-C while a command still loads ends it in one line, whatever it loads."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")


def interrupted_after(loaded, module):
    """Status and words of a command that is interrupted once this has been imported."""
    command = [sys.executable, "-X", "importtime", "-m", module]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        for line in process.stderr:
            if line.split("|")[-1].strip() == loaded:
                process.send_signal(signal.SIGINT)
                break
        lines = process.stderr.read().splitlines()
    return process.returncode, [line for line in lines if line and not line.startswith("import time:")]


@pytest.mark.parametrize("module", ["sims.looped_rates", "sims.cnn_overlap", "sims.claims", "figures.cnn_overlap"])
@pytest.mark.parametrize("loaded", ["its package", "numpy", "xarray.core.dataset"])
def test_a_command_that_loads_ends_in_one_line(loaded, module):
    """A study that is a module, one that is a folder, a service to others, and a figure."""
    package = module.partition(".")[0]
    assert interrupted_after(package if loaded == "its package" else loaded, module) == (130, ["interrupted"])


def test_the_command_of_all_figures_does_so_too():
    assert interrupted_after("numpy", "figures") == (130, ["interrupted"])
