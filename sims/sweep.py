"""Run any simulation over grids of any of its parameters, into one dataset.

The configuration names a simulation, parameters that are fixed and parameters that are swept; parameters are the
simulation's options. Every point of the grid is a run like any other, with its own dataset, figure and report in a
folder beside the sweep's dataset, and with a seed of its own, derived from the fixed one and the swept values, so that
errors across the grid are independent. Finished points are read, an interrupted sweep continues where it stopped, and
a longer list of values runs only what is new. The dataset has the parameters as leading dims.
"""

import argparse
import contextlib
import io
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from figures import figure_names
from meanfield.common import checked_seed, derived_seed, require_choice, require_writable
from meanfield.execution import Workers
from sims import simulation
from sims import simulation as command_of
from sims.common.command import (
    REFUSALS,
    CommandParser,
    Service,
    add_output_options,
    add_worker_options,
    check_command,
    complaint,
    worker_arguments,
)
from sims.common.report import Document
from sims.common.results import Results, in_form, require_dataset_name, run_key
from sims.common.tables import table

# What a sweep runs: a configuration read and checked, and one command line for each point of its grid.

# Options of a simulation that the sweep itself takes, for all points.
OWN = ("help", "out", "force", "workers", "scheduler")
TABLES = ("simulation", "fixed", "sweep")


@dataclass(frozen=True)
class SweepPoint:
    """One run of the simulation: the swept parameters' values, its arguments, and a file name of its own."""

    values: Mapping[str, Any]
    arguments: tuple[str, ...]
    stem: str


@dataclass(frozen=True)
class Plan:
    """A simulation over the grid of ``sweep``: parameter -> values; points run through the last parameter first.

    ``draws`` says whether it has work for workers.
    """

    simulation: str
    draws: bool
    sweep: Mapping[str, list[Any]]
    points: tuple[SweepPoint, ...]

    @property
    def key(self) -> str:
        """A digest of all that the numbers depend on."""
        return run_key(points=[point.stem for point in self.points], sweep=self.sweep)


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file; ValueError, in one line, for whatever in it cannot run."""
    try:
        config = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from None
    for name in config:
        require_choice(f"a key of {path}", name, TABLES)
    if "simulation" not in config:
        raise ValueError(f'{path} names no simulation; begin it with a line such as simulation = "looped_update"')
    # Simulations with one dataset are those with a figure of it.
    require_choice("simulation", config["simulation"], figure_names())
    return planned(config["simulation"], _table(config, "fixed"), _table(config, "sweep"))


def planned(simulation: str, fixed: Mapping[str, Any], sweep: Mapping[str, Any]) -> Plan:
    """The checked plan of a simulation with ``fixed`` parameters over the grid of ``sweep``."""
    parse = command_of(simulation).parse
    options = parse([])
    takes = {action.dest: action for action in options.parser._actions if action.dest not in OWN}
    fixed, sweep = _spelled(fixed), _spelled(sweep)
    for name in (*fixed, *sweep):
        require_choice(f"parameter of sims.{simulation}", name, takes)
    _check_grid(fixed, sweep)
    points = []
    for values in product(*sweep.values()):
        swept = dict(zip(sweep, values, strict=True))
        points.append(_point(simulation, takes, fixed, swept))
        _require_parsed(parse, simulation, points[-1].arguments)
    return Plan(simulation, "workers" in options, sweep, tuple(points))


def check_points(plan: Plan, workers: Workers) -> None:
    """Raise ValueError with the complaint of the first point that its simulation would refuse; nothing is run."""
    simulation = command_of(plan.simulation)
    for point in plan.points:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                check_command(simulation.run, simulation.parse(list(point.arguments)), workers)
        except REFUSALS as error:
            raise _refused(plan.simulation, point.arguments, complaint(error)) from None


def label(value: Any) -> str:
    """A value as words: lists with spaces, as on the command line."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = config.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name} is {table!r}; make it a table: a line [{name}], then lines PARAMETER = VALUE")
    return table


def _spelled(table: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters may be spelled as options are, with hyphens."""
    spelled = {name.replace("-", "_"): value for name, value in table.items()}
    if len(spelled) < len(table):
        raise ValueError(f"{', '.join(table)}: a parameter stands there twice, with - and with _; leave one")
    return spelled


def _check_grid(fixed: Mapping[str, Any], sweep: Mapping[str, Any]) -> None:
    """Refuse grids that are empty, doubled or fixed at the same time."""
    if not sweep:
        raise ValueError("[sweep] is empty; give a parameter a list of values, such as width = [64, 128]")
    for name, values in sweep.items():
        if name in fixed:
            raise ValueError(f"{name} is both fixed and swept; leave it in one of the tables")
        if not isinstance(values, list) or not values:
            raise ValueError(f"{name} is swept over {values!r}; give a list of one or more values")
        if len({label(value) for value in values}) < len(values):
            raise ValueError(f"{name} is swept over {values}, which holds a value twice")


def _point(simulation: str, takes: Mapping[str, Any], fixed: Mapping[str, Any], swept: dict[str, Any]) -> SweepPoint:
    """One point, with a seed of its own: errors across the grid are then independent."""
    given = {**fixed, **swept}
    if "seed" in takes:
        root = checked_seed(given.get("seed", takes["seed"].default))
        given["seed"] = derived_seed(root, json.dumps([simulation, swept], sort_keys=True))
    arguments = tuple(word for name, value in given.items() for word in _words(takes[name], value))
    slug = "-".join(f"{name}-{label(value)}" for name, value in swept.items())
    key = run_key(arguments=arguments, files=_contents(arguments))
    return SweepPoint(swept, arguments, f"{re.sub(r'[^A-Za-z0-9.=-]+', '_', slug)[:80]}-{key}")


def _contents(arguments: Sequence[str]) -> dict[str, str]:
    """A digest of every file that an argument names: another file of the same name makes another point."""
    named = {word.partition("=")[2] if word.startswith("--") else word for word in arguments}
    return {word: sha256(Path(word).read_bytes()).hexdigest() for word in named if word and Path(word).is_file()}


def _words(action: argparse.Action, value: Any) -> list[str]:
    """One parameter as it stands on the command line."""
    option = action.option_strings[-1]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"{action.dest} is {value!r}; it must be true or false")
        return [option] * value
    values = value if isinstance(value, list) else [value]
    # The form with = keeps values that begin with a hyphen; several values of one option have no such form.
    if isinstance(action, argparse._AppendAction) or not isinstance(value, list):
        return [f"{option}={item}" for item in values]
    return [option, *map(str, values)]


def _require_parsed(parse: Callable[[list[str]], Any], simulation: str, arguments: tuple[str, ...]) -> None:
    """Raise ValueError, with the simulation's own complaint, unless it can read its arguments."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            parse(list(arguments))
    except SystemExit:
        said = printed.getvalue().strip().removeprefix("error: ")
        raise _refused(simulation, arguments, said) from None


def _refused(simulation: str, arguments: tuple[str, ...], complaint: str) -> ValueError:
    return ValueError(f"sims.{simulation} {' '.join(arguments)}: {complaint}")


LISTED = "any of these over grids of its parameters, into one dataset"

EXAMPLE = """example: FILE.toml (docs/sweep.toml)

  simulation = "looped_update"

  [fixed]
  preset = "smoke"
  draws = 256

  [sweep]
  activation = ["relu", "tanh"]
  weight-variance = [1.0, 2.0]
  # where an option takes several numbers, a value is a list: loops = [[4, 8], [8, 16]]

  python -m sims.sweep --config FILE.toml
"""


def add_options(parser: CommandParser) -> None:
    parser.add_argument("--config", type=Path, required=True, metavar="FILE.toml", help="what to run")
    add_worker_options(parser)
    add_output_options(parser, companion="its page and a folder of all points go")


def run(options: argparse.Namespace) -> int:
    """Check all points, run those that are not finished, join them, say where."""
    require_dataset_name(options)
    plan = read_plan(options.config)
    results = Results(f"sweep-{plan.simulation}", plan.key, options)
    dataset = results.finished()
    if dataset is None:
        check_points(plan, options.workers)
        dataset = _swept(plan, options, results)
        results.keep(dataset)
    else:
        results.tell(f"reading the finished sweep in {results.dataset_path} (--force runs all points again)\n")
    document = _document(dataset, plan)
    print(in_form(document, options))
    results.keep_page(dataset, document)
    results.tell(f"\ndataset  {results.dataset_path}\npoints   {_folder(plan, results)}\npage     {results.page_path}")
    return 0


def _folder(plan: Plan, results: Results) -> Path:
    """Where the points stand: one folder for all sweeps of a simulation that write side by side."""
    return results.dataset_path.parent / f"{plan.simulation}-points"


def _swept(plan: Plan, options: argparse.Namespace, results: Results) -> xr.Dataset:
    """All points, run or read, in one dataset."""
    folder = _folder(plan, results)
    require_writable(folder)
    shared = [*(worker_arguments(options.workers) if plan.draws else []), *["--force"] * options.force]
    experiment, datasets = simulation(plan.simulation), []
    for place, point in enumerate(plan.points, start=1):
        described = ", ".join(f"{name} {value}" for name, value in point.values.items())
        print(f"[{place}/{len(plan.points)}] sims.{plan.simulation}: {described}", file=sys.stderr)
        path = folder / f"{point.stem}.nc"
        datasets.append(experiment.finished([*point.arguments, *shared], path))
    return combined(plan.sweep, datasets).assign_attrs(simulation=plan.simulation, sweep=json.dumps(plan.sweep))


def combined(sweep: Mapping[str, list[Any]], datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """One dataset over the grid: what points lack (layers of deeper nets, say) is NaN.

    A parameter whose name a simulation's own dims or variables have taken stands as NAME_swept.
    """
    names_taken = {name for dataset in datasets for name in (*dataset.variables, *dataset.dims)}
    names = {name: f"{name}_swept" if name in names_taken else name for name in sweep}
    commands = np.array([dataset.attrs["command"] for dataset in datasets])
    labelled = [_labelled(dataset, datasets) for dataset in datasets]
    nested: list[Any] = labelled
    for values in reversed(list(sweep.values())):
        nested = [nested[start : start + len(values)] for start in range(0, len(nested), len(values))]
    dims = list(names.values())
    points = xr.combine_nested(
        nested[0], concat_dim=dims, data_vars="all", join="outer", combine_attrs="drop_conflicts"
    )
    points = points.assign_coords({names[name]: _coordinate(name, values) for name, values in sweep.items()})
    points["command"] = (dims, commands.reshape([len(values) for values in sweep.values()]))
    points["command"].attrs["long_name"] = "command that makes the point"
    return points.transpose(*dims, ...)


def _labelled(dataset: xr.Dataset, datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Bare dims that differ in length between points get numbers, from 0, to be joined by."""
    ragged = {
        str(dim): np.arange(length)
        for dim, length in dataset.sizes.items()
        if dim not in dataset.coords and any(compared.sizes.get(dim, length) != length for compared in datasets)
    }
    return dataset.assign_coords(ragged)


def _coordinate(name: str, values: list[Any]) -> list[Any]:
    """Numbers as they are, all else as words, seeds too: files hold no integers beyond 64 bits."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return values if numbers and name != "seed" else [label(value) for value in values]


def _document(dataset: xr.Dataset, plan: Plan) -> Document:
    """What the sweep holds: its grid, and every variable with its dims."""
    grid = " x ".join(f"{name} ({len(values)})" for name, values in plan.sweep.items())
    rows = [
        [str(name), " ".join(f"{dim} ({dataset.sizes[dim]})" for dim in variable.dims)]
        for name, variable in dataset.data_vars.items()
    ]
    answer = f"{len(rows)} variables at {len(plan.points)} points, in one dataset."
    question = f"What does sims.{plan.simulation} give over {grid}?"
    return Document(question=question, answer=answer, parts=[table(["variable", "dims"], rows)])


COMMAND = Service(name="sweep", description=__doc__, epilog=EXAMPLE, add=add_options, work=run)


if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
