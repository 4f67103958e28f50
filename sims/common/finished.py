"""A simulation run inside another command: its dataset, measured or read, with its printed report beside it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from meanfield.common import write_text_whole
from sims import simulation as simulation_module


def finished(name: str, arguments: Sequence[str], path: Path) -> xr.Dataset:
    """The dataset of `python -m sims.NAME ARGUMENTS --out PATH`.

    Where it refuses or is interrupted it has said why, and its status becomes that of the whole command.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = simulation_module(name).main([*arguments, "--out", str(path)])
    if status:
        raise SystemExit(status)
    if not path.exists():
        raise ValueError(f"sims.{name} {' '.join(arguments)} writes no dataset; leave out what only prints")
    write_text_whole(path.with_suffix(".txt"), printed.getvalue())
    with xr.open_dataset(path, engine="h5netcdf") as stored:
        return stored.load()
