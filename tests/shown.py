"""What every printed cell and every drawn line of the smoke runs shows, as it was read and kept, in a file a study.

``python -m tests.shown FOLDER`` writes these files anew from a folder that `python -m sims.claims --preset smoke --out
FOLDER` has filled; of a study without a run there, what is kept stays. Read what changes: a cell must show what the
words around it say.
"""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import xarray as xr

from tests.figures.looks import looks
from tests.figures.plotted import plotted
from tests.sims.printed import shown

KEPT = Path(__file__).parent / "kept"


def first_runs(names):
    """simulation -> the name of its first run, of all names of runs."""
    return {name.split("-")[0]: name for name in sorted(names, reverse=True)}


@cache
def kept(kind):
    """simulation -> lines, of "printed" cells, or of "plotted" lines and their "looks"."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(KEPT.glob("*.txt"))}
    parts = {name: text.partition(f"## {kind}")[2].partition("\n\n")[0] for name, text in texts.items()}
    return {name: part.splitlines()[1:] for name, part in parts.items()}


def of_figure(lines_of):
    """What this says of the figure of a dataset."""
    return lambda name, dataset: lines_of(import_module(f"figures.{name}").draw(dataset), dataset)


def main(folder):
    runs = {path.stem: path for path in Path(folder).glob("*.nc")}
    for name, run in first_runs(runs).items():
        dataset = xr.load_dataset(runs[run], engine="netcdf4")
        kinds = {"printed": shown, "plotted": of_figure(plotted), "looks": of_figure(looks)}
        parts = ["\n".join([f"## {kind}", *lines_of(name, dataset)]) for kind, lines_of in kinds.items()]
        (KEPT / f"{name}.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
