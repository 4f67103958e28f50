"""A command and a simulation: each declares what is its own, and all run alike."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sims.common.command import (
    CommandParser,
    Presets,
    add_array_options,
    add_output_options,
    add_preset_option,
    add_run_options,
    command_parser,
    fill_from_preset,
    run_command,
)
from sims.common.results import Results, require_dataset_name, require_draws_and_seed, run_key, shared_values

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Command:
    """`python -m sims.NAME`: its options, and the work that they ask for.

    ``work`` takes the options and returns the exit status; ``epilog`` ends the help of a command without presets.
    """

    name: str
    description: str | None
    add_options: Callable[[CommandParser], None]
    presets: Presets = field(default_factory=dict)
    work: Callable[[argparse.Namespace], int] | None = None
    epilog: str | None = None

    def parser(self) -> CommandParser:
        parser = command_parser(self.name, self.description, self.epilog, self.presets or None)
        self.add_options(parser)
        return parser

    def parse(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        return self.parser().parse_args(argv)

    def run(self, options: argparse.Namespace) -> int:
        """Do what the options ask for; errors are the caller's to print."""
        assert self.work is not None
        return self.work(options)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """The command, from its arguments to its exit status; those of the process itself where none are given."""
        options = self.parse(argv)
        options.alone = argv is None
        if options.alone:
            from meanfield.common import collect_seldom, leave_out_dask

            collect_seldom()
            if getattr(options, "scheduler", None) is None:
                leave_out_dask()
        return run_command(self.run, options)


@dataclass(frozen=True, kw_only=True)
class Experiment(Command):
    """A simulation with one dataset, one report and one figure, each in a module of its own.

    `sims/NAME/measure.py` has ``planned(options)``, which checks the options and returns what the numbers depend on, by
    name, and ``measure(options, results, **planned)``, which returns the dataset; `sims/NAME/report.py` has
    ``text(dataset)``, and `figures/NAME.py` has ``draw(dataset)``. They are imported when work begins: `--help` needs
    none of them.

    ``draws``: whether nets are drawn, a number of times that an option says; ``arrays``: whether on a device of choice.
    ``require_installed`` raises where something that the work needs is not installed.
    """

    draws: bool = True
    arrays: bool = False
    require_installed: Callable[[], None] = lambda: None

    def parser(self) -> CommandParser:
        parser = super().parser()
        if self.arrays:
            add_array_options(parser)
        if self.draws:
            add_run_options(parser)
        else:
            add_preset_option(parser, self.presets)
            add_output_options(parser)
        # What a preset says is no default of the option's own.
        parser.set_defaults(**dict.fromkeys(name for preset in self.presets.values() for name in preset))
        return parser

    def parse(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        options = super().parse(argv)
        fill_from_preset(options, self.presets[options.preset])
        return options

    def run(self, options: argparse.Namespace) -> int:
        """Check everything; measure, or read what an equal run has measured; print, write, say where."""
        # Before the imports, which take a second or two.
        require_dataset_name(options)
        require_draws_and_seed(options)
        with self._figures(options) as begin_figure:
            study, report = (import_module(f"sims.{self.name}.{part}") for part in ("measure", "report"))
            plan = study.planned(options)
            results = Results(self.name, run_key(**plan, **shared_values(options)), options)
            return results.deliver(lambda: study.measure(options, results, **plan), report.text, begin_figure)

    @contextmanager
    def _figures(self, options: argparse.Namespace) -> Iterator[Callable[[xr.Dataset], Callable[[], bytes]]]:
        """How to begin the figure of a dataset: beside a process that is here for this run alone, else in this one."""
        if options.alone:
            from figures._beside import FigureProcess

            with FigureProcess(self.name) as process:
                yield process.begin
        else:
            yield self._figure_here

    def _figure_here(self, dataset: xr.Dataset) -> Callable[[], bytes]:
        from figures.render import rendered

        return partial(rendered, import_module(f"figures.{self.name}").draw, dataset)

    def finished(self, arguments: Sequence[str], path: Path) -> xr.Dataset:
        """The dataset of this command with these arguments, measured or read, with its printed report beside it.

        Where it refuses or is interrupted it has said why, and its status becomes that of the whole command.
        """
        import xarray as xr

        from meanfield.common import write_text_whole

        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = self.main([*arguments, "--out", str(path)])
        if status:
            raise SystemExit(status)
        if not path.exists():
            raise ValueError(f"sims.{self.name} {' '.join(arguments)} writes no dataset; leave out what only prints")
        write_text_whole(path.with_suffix(".txt"), printed.getvalue())
        return xr.load_dataset(path, engine="netcdf4")
