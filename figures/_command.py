"""The commands `python -m figures.NAME DATASET` and `python -m figures`: from dataset files to picture files."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import xarray as xr

from figures import figure_names
from figures.render import METADATA, Draw, save
from figures.style import STYLES
from meanfield.common import INTERRUPTED, UNREADABLE, interrupts_raised, require_choice, while_read

REFUSED = 2
PRESETS = ("smoke", "default", "paper")


class MakingEnded(Exception):
    """The simulation that was to make a dataset has refused, or was interrupted, and has said so in its own line."""

    def __init__(self, status: int) -> None:
        self.status = status


class FigureParser(argparse.ArgumentParser):
    """A parser that refuses in one line; --help has the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, f"error: {message}; {self.prog} --help lists the options\n")


def command(name: str, draw: Draw) -> NoReturn:
    """Run `python -m figures.NAME` and end the program with its status."""
    sys.exit(draw_one(name, draw))


def draw_one(name: str, draw: Draw, argv: Sequence[str] | None = None) -> int:
    """`python -m figures.NAME [DATASET]`; the exit status."""
    parser = FigureParser(prog=f"python -m figures.{name}", description=f"Draw a dataset of sims.{name}.")
    where = f"dataset of sims.{name} (default, with --make: results/{name}.nc)"
    parser.add_argument("dataset", type=Path, nargs="?", default=Path("results") / f"{name}.nc", help=where)
    add_options(parser)
    options = parser.parse_args(argv)
    return _refusing(lambda: _draw(name, draw, options.dataset, options))


def command_of_saved(name: str, made_by: str, draw: Draw) -> NoReturn:
    """Run `python -m figures.NAME DATASET`, of a dataset that a function made and its user saved, to the end."""
    sys.exit(draw_saved(name, made_by, draw))


def draw_saved(name: str, made_by: str, draw: Draw, argv: Sequence[str] | None = None) -> int:
    """`python -m figures.NAME DATASET`; the exit status."""
    parser = FigureParser(prog=f"python -m figures.{name}", description=f"Draw a dataset of {made_by}.")
    parser.add_argument("dataset", type=Path, help=f"dataset of {made_by}, as its to_netcdf saves it")
    add_looks(parser)
    options = parser.parse_args(argv)
    return _refusing(lambda: _draw_file(draw, options.dataset, made_by, options))


def draw_all(argv: Sequence[str] | None = None) -> int:
    """`python -m figures [NAME ...]`; the exit status."""
    names = figure_names()
    parser = FigureParser(
        prog="python -m figures", description="Draw every figure, or those named, from FOLDER/NAME.nc."
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--folder", type=Path, default=Path("results"), help="of the datasets (default: results)")
    add_options(parser)
    options = parser.parse_args(argv)
    names_drawn = options.name or names

    def draw_each() -> None:
        for name in names_drawn:
            require_choice("NAME", name, names)
        for name in names_drawn:
            _draw(name, import_module(f"figures.{name}").draw, options.folder / f"{name}.nc", options)

    return _refusing(draw_each)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of commands that draw what simulations make."""
    add = parser.add_argument
    add("--make", action="store_true", help="run the simulation first where its dataset is missing")
    add("--preset", choices=PRESETS, default="default", help="sizes for --make (default: default)")
    add_looks(parser)


def add_looks(parser: argparse.ArgumentParser) -> None:
    """Options of every command."""
    add = parser.add_argument
    add("--style", choices=list(STYLES), default="light", help="light, for screens (default), or print")
    add("--format", nargs="+", choices=list(METADATA), default=["png"], help="one or more (default: png)")


def _draw(name: str, draw: Draw, path: Path, options: argparse.Namespace) -> None:
    """One figure of a simulation's dataset, which is made first where that is asked for."""
    if options.make and not path.exists():
        _make(name, path, options.preset)
    if not path.exists():
        raise FileNotFoundError(f"no dataset {path}; give the one that sims.{name} has written, or --make to run it")
    _draw_file(draw, path, f"sims.{name}", options)


def _draw_file(draw: Draw, path: Path, maker: str, options: argparse.Namespace) -> None:
    """One figure in every format asked for, beside its dataset."""
    if not path.exists():
        raise FileNotFoundError(f"no dataset {path}; give one that {maker} has made")
    try:
        dataset = xr.load_dataset(path, engine="netcdf4")
    except (ValueError, *UNREADABLE):
        raise ValueError(f"{path} holds no readable dataset; give the one that {maker} has written") from None
    made_by = dataset.attrs.get("command", "")
    if not f"{made_by} ".startswith((f"python -m {maker} ", f"{maker} ")):
        raise ValueError(f"{path} is no dataset of {maker}, but of {made_by or 'an unknown command'}")
    for kind in options.format:
        save(draw, dataset, path.with_suffix(f".{kind}"), options.style)
        print(path.with_suffix(f".{kind}"))


def _make(name: str, path: Path, preset: str) -> None:
    """Run the simulation as a command of its own: figures read datasets and import no simulation."""
    command = [sys.executable, "-m", f"sims.{name}", "--preset", preset, "--out", str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as simulation:
        try:
            status = simulation.wait()
        except KeyboardInterrupt:
            simulation.send_signal(signal.SIGINT)  # it keeps its finished pieces, and stops its processes
            status = simulation.wait()
    if status in (REFUSED, INTERRUPTED):
        raise MakingEnded(status)
    if status:
        raise RuntimeError(f"sims.{name} ended with status {status}")


def _refusing(work: Callable[[], None]) -> int:
    def worked() -> int:
        work()
        return 0

    try:
        with interrupts_raised():
            return while_read(worked)
    except MakingEnded as making:
        return making.status
    except (ValueError, OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("\ninterrupted: no picture is left unfinished", file=sys.stderr)
        return INTERRUPTED
