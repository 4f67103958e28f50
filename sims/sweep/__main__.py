"""Run any simulation over grids of any of its parameters, into one dataset.

The configuration names a simulation, parameters that are fixed and parameters that are swept; parameters are the
simulation's options. Every point of the grid is a run like any other, with its own dataset, figure and report in a
folder beside the sweep's dataset, and with a seed of its own, derived from the fixed one and the swept values, so that
errors across the grid are independent. Finished points are read, an interrupted sweep continues where it stopped, and
a longer list of values runs only what is new. The dataset has the parameters as leading dims.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import require_writable
from sims import simulation
from sims.common.command import CommandParser, Service, add_output_options, add_worker_options, worker_arguments
from sims.common.report import Document
from sims.common.results import Results, in_form, require_dataset_name
from sims.common.tables import table
from sims.sweep.plan import Plan, check_points, label, read_plan

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
