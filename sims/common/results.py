"""Where the numbers of one run go: dataset, figure, page, unfinished pieces; each found again by the same run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import (
    UNREADABLE,
    behind_links,
    machine_described,
    require_count,
    require_draws,
    require_file,
    write_text_whole,
    write_whole,
)
from meanfield.execution import PieceStore, Run, code_digest, digest, provenance, simulate_all, sources_digest
from meanfield.simulation import arrays_of, device_described
from sims.common.command import Checked, chosen_arrays
from sims.common.page import LARGEST_PICTURE, figure_html, report_page, run_page
from sims.common.report import Document, made_or_reason

# The attribute of a finished dataset that holds where it was made and for how long, in which alone equal runs differ.
MADE = "made"
# The one that holds a digest of all else in it.
CONTENTS = "contents"


def run_key(**what: Any) -> str:
    """A digest of what a run is asked for and of all code that its numbers come from.

    The code is the library's, and that of all simulations: they choose what is drawn and put theory beside it. Figures
    read what is stored.
    """
    return digest(**what, code=code_digest(), simulations=sources_digest(Path(__file__).parent.parent))[:8]


# Draws the figure of a dataset once, and returns the files of the kinds that are asked for.
Picture = Callable[[xr.Dataset, Sequence[str]], Mapping[str, bytes]]


class Results:
    """The dataset of one run, its figure and its page: where they stand, and whether they are there already."""

    def __init__(self, name: str, run_key: str, options: argparse.Namespace) -> None:
        self.run_key = run_key
        self.dataset_path = options.out or Path("results") / f"{name}-{run_key}.nc"
        self.figure_path, self.page_path = (self.dataset_path.with_suffix(end) for end in (".png", ".html"))
        self._force, self._command, self._options = options.force, options.command, options

    @property
    def pieces(self) -> PieceStore:
        """Finished pieces of this run, beside the dataset that they are for."""
        return PieceStore(self.dataset_path.parent / f".{self.dataset_path.stem}-{self.run_key}.pieces")

    def draw(self, runs: Sequence[Run]) -> list[xr.Dataset]:
        """What the workers measure in these runs, those of an interrupted command included."""
        return simulate_all(runs, workers=self._options.workers, store=self.pieces)

    def deliver(
        self,
        measure: Callable[[], xr.Dataset],
        document: Callable[[xr.Dataset], Document],
        picture: Picture,
    ) -> int:
        """Measure, or read what this very run has measured; print the report, keep dataset, figure and page, say where.

        All that can be refused has been when this is called: here the work begins.
        """
        if self._options.check_only:
            self._require_arrays()
            raise Checked
        dataset = self.finished()
        if dataset is None:
            self._require_arrays()
            dataset = measure()
            self.keep(dataset)
        else:
            self.tell(f"reading the finished run in {self.dataset_path} (--force measures again)\n")
        nothing: Document | None = None
        said, unsaid = made_or_reason("report", lambda: document(dataset), nothing)
        print(unsaid if said is None else in_form(said, self._options))
        undrawn, unmade = self._keep_beside(dataset, said, picture)
        figure, page = undrawn or self.figure_path, unmade or self.page_path
        self.tell(f"\ndataset  {self.dataset_path}\nfigure   {figure}\npage     {page}")
        return 0

    def tell(self, words: str) -> None:
        """Print beside the report, of which other programs read all forms but text."""
        print(words, file=sys.stdout if self._options.format == "text" else sys.stderr)

    def _require_arrays(self) -> None:
        """Raise unless this process has the backend that it computes on."""
        if "backend" in self._options and not self._options.workers.remote:
            arrays_of(**{"precision": "float32"} | chosen_arrays(self._options))

    def finished(self) -> xr.Dataset | None:
        """The dataset if this very run has written it; refuses to touch a file of any other run without --force."""
        made_of_it = (self.figure_path, self.page_path)
        for path in (self.dataset_path, *made_of_it):
            require_file(path)
        if self._force:
            return None
        if self.dataset_path.exists():
            dataset = _stored(self.dataset_path)
            if dataset is None or dataset.attrs.get("run") != self.run_key:
                raise self._occupied(self.dataset_path)
            if dataset.attrs.get(CONTENTS) != contents_digest(dataset):
                raise FileExistsError(
                    f"{self.dataset_path} was changed after this run wrote it, and is its result no more; move it "
                    "away or give another --out to measure again, or --force to replace it"
                )
            return dataset
        for path in made_of_it:
            if path.exists():
                raise self._occupied(path)
        return None

    def keep(self, dataset: xr.Dataset) -> None:
        """Write the dataset whole, then forget the pieces it was made from."""
        self._sign(dataset)
        self._write(dataset)

    def _sign(self, dataset: xr.Dataset) -> None:
        """Record draws, arrays and provenance where the dataset does not itself; seeds are text, as in `simulate`'s.

        A dataset that joins runs has none of their records, so that their device is added here.
        """
        shared = shared_values(self._options)
        seed = {"seed": str(shared.pop("seed"))} if "seed" in shared else {}
        dataset.attrs = {"provenance": provenance(), **shared, **dataset.attrs, **seed}
        if shared.get("backend", "numpy") != "numpy":
            record = json.loads(dataset.attrs["provenance"]) | device_described(shared["backend"])
            dataset.attrs["provenance"] = json.dumps(record, sort_keys=True)
        dataset.attrs |= {"run": self.run_key, "command": self._command, MADE: json.dumps(self._made())}
        dataset.attrs[CONTENTS] = contents_digest(dataset)

    def _made(self) -> dict[str, Any]:
        """The machine that ends the run, and how long processors drew and trained for it, if they did."""
        made: dict[str, Any] = {"machine": machine_described()}
        seconds = self.pieces.seconds()
        return made | {"processor_seconds": float(f"{seconds:.3g}")} if seconds else made

    def _write(self, dataset: xr.Dataset) -> None:
        write_whole(self.dataset_path, lambda path: _write_netcdf(dataset, path))
        for path in (self.figure_path, self.page_path):
            behind_links(path).unlink(missing_ok=True)
        self.pieces.discard()

    def _keep_beside(self, dataset: xr.Dataset, document: Document | None, picture: Picture) -> tuple[str, str]:
        """Write figure and page where they are not there; the reasons where there is no figure, or no page."""
        kinds = ["png"] * (not self.figure_path.exists()) + ["svg"] * (not self.page_path.exists())
        none: Mapping[str, bytes] = {}
        drawn, undrawn = made_or_reason("figure", lambda: picture(dataset, kinds), none) if kinds else (none, "")
        if "png" in drawn:
            write_whole(self.figure_path, lambda path: path.write_bytes(drawn["png"]))
        if document is None:
            return undrawn, "there is no report to put on it"
        figure = self._shown(drawn["svg"], document) if "svg" in drawn else f"<p>{escape(undrawn)}</p>"
        return undrawn, made_or_reason("page", lambda: self.keep_page(dataset, document, figure), None)[1]

    def _shown(self, svg: bytes, document: Document) -> str:
        """The figure on the page: to be looked into at any size, or, where that would be too large, its pixels."""
        kind, shown = ("svg", svg) if len(svg) <= LARGEST_PICTURE else ("png", self.figure_path.read_bytes())
        return figure_html(shown, kind, f"Figure: {document.question}")

    def keep_page(self, dataset: xr.Dataset, document: Document, figure: str = "") -> None:
        """Write the page if it is not there."""
        if not self.page_path.exists():
            write_text_whole(self.page_path, run_page(document, dataset, self.dataset_path, figure))

    @staticmethod
    def _occupied(path: Path) -> FileExistsError:
        return FileExistsError(f"{path} was not written by this run; give another --out, or --force to replace it")


def in_form(document: Document, options: argparse.Namespace) -> str:
    """A report in the form that is asked for; printed ones fit a screen, but for --full."""
    if options.format == "text":
        return document.text() if options.full else document.short()
    if options.format == "html":
        return report_page(document)
    return str(getattr(document, options.format)())


def as_it_is(path: Path) -> xr.Dataset | None:
    """The finished dataset in a file, whatever version made it; None where there is no file.

    Raises:
        ValueError: the file holds no finished run, or has been changed since.
    """
    if not path.exists():
        return None
    dataset = _stored(path)
    if dataset is None or dataset.attrs.get(CONTENTS) != contents_digest(dataset):
        raise ValueError(f"{path} is no finished run as it was written: give --force instead, to make it anew")
    return dataset


def contents_digest(dataset: xr.Dataset) -> str:
    """A digest of what a dataset holds, the same in equal runs, before it is written and once it is read.

    It leaves out itself, and where the dataset was made and for how long. Files keep neither the order of
    attributes nor the kind of numbers in them, nor the width of text.
    """
    variables = {
        str(name): [variable.dims, _as_read(variable.values), _attributes(variable.attrs)]
        for name, variable in dataset.variables.items()
    }
    own = {name: value for name, value in dataset.attrs.items() if name not in (CONTENTS, MADE)}
    return digest(variables=variables, coords=set(map(str, dataset.coords)), attrs=_attributes(own))


def _as_read(values: Any) -> Any:
    """Text as a list; numbers as they are, in the order of bytes of this machine."""
    values = np.asarray(values)
    if values.dtype.kind in "OUST":
        return [values.shape, [str(value) for value in values.ravel()]]
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _attributes(attrs: Mapping[Any, Any]) -> dict[str, Any]:

    return {str(name): np.asarray(value).ravel().tolist() for name, value in attrs.items()}


def _write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a file that NetCDF can append to, which it cannot to one that it has made in memory.

    HDF5 does not say why it fails, as that the disk is full: what it holds is written without it, to hear the reason.
    """
    try:
        dataset.to_netcdf(path, engine="netcdf4")
    except UNREADABLE:
        path.write_bytes(dataset.to_netcdf(engine="netcdf4"))
        raise


def shared_values(options: argparse.Namespace) -> dict[str, Any]:
    """Draws, seed, backend and precision, where a simulation has them: all its numbers depend on them."""
    return {name: getattr(options, name) for name in ("draws", "seed", "backend", "precision") if name in options}


def require_dataset_name(options: argparse.Namespace) -> None:
    """Refuse a --out that names no NetCDF file."""
    if options.out and options.out.suffix != ".nc":
        what = "is an ending without a name" if options.out.name == ".nc" else "must end in .nc (NetCDF)"
        raise ValueError(f"--out {options.out} {what}; give a file such as results/run.nc")


def require_draws_and_seed(options: argparse.Namespace) -> None:
    """Refuse numbers of draws and seeds that no simulation takes."""
    if "draws" in options:
        require_draws("--draws" if options.times == 1 else f"--draws with --times {options.times}", options.draws)
    if "seed" in options:
        require_count("--seed", options.seed, minimum=0, why="a seed is a non-negative whole number")


def _stored(path: Path) -> xr.Dataset | None:
    """The dataset in a file, or None if the file holds no dataset that can be read."""

    try:
        return xr.load_dataset(path, engine="netcdf4")
    except (ValueError, *UNREADABLE):
        return None
