"""What every printed cell and every drawn line of the smoke runs shows, as it was read and kept in three files.

``python -m tests.shown FOLDER`` writes these files anew from a folder that `python -m sims.claims --preset smoke --out
FOLDER` has filled; of a study without a run there, what is kept stays. Read what changes: a cell must show what the
words around it say.
"""

import sys
from importlib import import_module
from pathlib import Path

import xarray as xr

from tests.figures.looks import looks
from tests.figures.plotted import plotted
from tests.sims.printed import shown

HERE = Path(__file__).parent
KEPT = {"printed": HERE / "sims" / "printed.txt"} | {
    kind: HERE / "figures" / f"{kind}.txt" for kind in ("plotted", "looks")
}


def first_runs(names):
    """simulation -> the name of its first run, of all names of runs."""
    return {name.split("-")[0]: name for name in sorted(names, reverse=True)}


def kept(kind):
    """simulation -> lines, of "printed" cells, or of "plotted" lines and their "looks"."""
    parts = KEPT[kind].read_text(encoding="utf-8").split("## ")[1:]
    return {part.splitlines()[0]: part.splitlines()[1:-1] for part in parts}


def of_figure(lines_of):
    """What this says of the figure of a dataset."""
    return lambda name, dataset: lines_of(import_module(f"figures.{name}").draw(dataset), dataset)


def main(folder):
    runs = {path.stem: path for path in Path(folder).glob("*.nc")}
    datasets = {name: xr.load_dataset(runs[run], engine="netcdf4") for name, run in first_runs(runs).items()}
    for kind, lines_of in (("printed", shown), ("plotted", of_figure(plotted)), ("looks", of_figure(looks))):
        of_studies = kept(kind) | {name: lines_of(name, dataset) for name, dataset in datasets.items()}
        parts = ["\n".join([f"## {name}", *lines, ""]) for name, lines in sorted(of_studies.items())]
        KEPT[kind].write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
