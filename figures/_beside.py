"""A figure drawn by another process, `python -m figures._beside NAME`, which gets ready while the simulation runs.

Its imports and the drawing take as long as the rest of a short run. It reads the pickled dataset from its standard
input and answers with the PNG; it ends by itself when the process that started it is gone.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from meanfield.common import collect_seldom, leave_out_dask, while_read

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FAILED = "the process that was to draw the figure has ended without it; the same command draws it from the dataset"


class FigureProcess:
    """The other process; leaving the context ends it."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "figures._beside", name]
        # A session of its own: Ctrl-C is for this process alone.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def __enter__(self) -> FigureProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):  # what it was never to read
            self._process.communicate()

    def begin(self, dataset: xr.Dataset) -> Callable[[], bytes]:
        """Let it draw a dataset; what is returned waits for the file that `figures.render.rendered` makes.

        That raises ChildProcessError where the process was killed, or has failed and said why.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as its status will say
            pickle.dump(dataset, self._process.stdin)
            self._process.stdin.flush()
        return self._picture

    def _picture(self) -> bytes:
        with suppress(BrokenPipeError):
            picture, _ = self._process.communicate()
            if self._process.returncode == 0:
                return picture
        raise ChildProcessError(FAILED)


def main(name: str) -> int:
    """What the other process does; its exit status."""
    collect_seldom()
    leave_out_dask()
    import xarray as xr

    from figures.render import rendered

    draw = import_module(f"figures.{name}").draw
    rendered(_axes_alone, xr.Dataset())  # fonts and formats load with the first figure
    try:
        dataset = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):  # the run is gone, perhaps as it wrote
        return 0

    def answer() -> int:
        sys.stdout.buffer.write(rendered(draw, dataset))
        return 0

    return while_read(answer)


def _axes_alone(_: xr.Dataset) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots()
    return figure


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
