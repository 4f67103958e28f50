"""A figure drawn beside its run is the figure; the process that draws it neither hides its end nor outlives the run."""

import pickle
import subprocess
import sys

import pytest
import xarray as xr

from figures import looped_update as figure
from figures._beside import FigureProcess
from figures.render import rendered
from meanfield.common.signals import READER_LEFT
from sims.looped_update.__main__ import COMMAND

ALONE = [sys.executable, "-m", "figures._beside", "looped_update"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> xr.Dataset:
    return COMMAND.finished(["--preset", "smoke"], tmp_path_factory.mktemp("beside") / "run.nc")


def test_the_picture_is_that_of_this_process(dataset):
    with FigureProcess("looped_update") as process:
        picture = process.begin(dataset)()
    assert picture == rendered(figure.draw, dataset)
    assert picture != rendered(figure.draw, dataset.assign_attrs(command="another"))


def test_one_that_fails_is_reported(dataset, capfd):
    with FigureProcess("looped_update") as process:
        picture = process.begin(dataset.drop_vars(list(dataset.data_vars)))
        with pytest.raises(ChildProcessError, match="the same command draws it from the dataset"):
            picture()
    assert "KeyError" in capfd.readouterr().err


def test_one_that_was_killed_is_reported(dataset):
    with FigureProcess("looped_update") as process:
        process._process.kill()
        process._process.wait()
        with pytest.raises(ChildProcessError, match="has ended without it"):
            process.begin(dataset)()


def test_it_ends_with_the_run_that_needs_no_figure():
    with FigureProcess("looped_update") as process:
        assert process._process.poll() is None
    assert process._process.poll() is not None


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_it_ends_in_silence_when_the_run_is_gone(dataset, share):
    pickled = pickle.dumps(dataset)
    given = pickled[: int(share * len(pickled))]
    ended = subprocess.run(ALONE, input=given, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_it_ends_in_silence_when_nobody_takes_the_picture(dataset):
    with subprocess.Popen(ALONE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdin.write(pickle.dumps(dataset))
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == READER_LEFT
