"""A study: a question to simulations, as data; `python -m sims.NAME` runs it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NoReturn

import xarray as xr

from meanfield.verification import Claim
from sims import simulation
from sims.common.command import (
    Command,
    CommandParser,
    add_array_options,
    add_output_options,
    add_preset_option,
    add_run_options,
    fill_from_preset,
)
from sims.common.datasets import Variable, described
from sims.common.report import Document, NextStep, Report
from sims.common.results import Results, require_dataset_name, require_draws_and_seed, run_key, shared_values


@dataclass(frozen=True, kw_only=True)
class Study(Command):
    """A simulation with one dataset, one report, one figure (`figures/NAME.py`) and the claims that it decides.

    A run checks every option, asks what is planned, measures (or reads what an equal run has measured), puts the words
    of every variable to it, prints the report, draws the figure, and writes the page.

    Attributes:
        planned: from the checked options, what the numbers depend on, by name; refuses what no single option shows.
        measure: (options, results, **planned) -> the dataset.
        report: what is said of a dataset: a `Report`, or a function that makes the whole document.
        claims: those that its judges decide.
        variables: words of what it stores, where the registry of quantities has none.
        draws: whether nets are drawn, a number of times that an option says.
        arrays: whether they are drawn on a device of choice.
        require_installed: raises where something that the work needs is not installed.
    """

    planned: Callable[[argparse.Namespace], Mapping[str, Any]]
    measure: Callable[..., xr.Dataset]
    report: Report | Callable[[xr.Dataset], Document]
    claims: Sequence[Claim] = ()
    variables: Sequence[Variable] = ()
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

    def checked(self, options: argparse.Namespace) -> Mapping[str, Any]:
        """What is planned, once every option is checked, and settled, in the order of their declaration."""
        for option in self.options:
            given = getattr(options, option.name)
            if option.check is not None and given is not None:
                setattr(options, option.name, option.check(option.written, given))
        return self.planned(options)

    def run(self, options: argparse.Namespace) -> int:
        """Check everything; measure, or read what an equal run has measured; print, write, say where."""
        require_dataset_name(options)
        require_draws_and_seed(options)
        plan = self.checked(options)
        results = Results(self.name, run_key(**plan, **shared_values(options)), options)
        return results.deliver(lambda: self.measured(options, results, plan), self.document, self.pictures)

    def measured(self, options: argparse.Namespace, results: Results, plan: Mapping[str, Any]) -> xr.Dataset:
        """The dataset, with the words of its variables."""
        return described(self.measure(options, results, **plan), self.variables)

    def document(self, dataset: xr.Dataset) -> Document:
        """What is said of a dataset, and that larger sizes can be run."""
        made = self.report.document(dataset) if isinstance(self.report, Report) else self.report(dataset)
        return replace(made, steps=[*made.steps, *self._larger(dataset)])

    def _larger(self, dataset: xr.Dataset) -> list[NextStep]:
        """Presets that take longer than the one of this run: those that say what they found, and the next one.

        None that would change nothing, as all that it sets was asked for otherwise.
        """
        arguments = shlex.split(dataset.attrs.get("command", ""))[3:]
        given = vars(self.parse(arguments))

        def changes(name: str) -> bool:
            then = vars(self.parse([*arguments, "--preset", name]))
            return any(then[option] != given[option] for option in self.presets[name])

        seconds = self.presets[given["preset"]].seconds
        longer = [name for name, preset in self.presets.items() if preset.seconds > seconds and changes(name)]
        shown = [name for name in longer if self.presets[name].outcome]
        shown += [name for name in sorted(longer, key=lambda name: self.presets[name].seconds)[:1] if name not in shown]
        said = {name: self.presets[name].outcome or "larger sizes and more draws" for name in shown}
        return [(f"--preset {name}", f"{said[name]} ({self.presets[name].takes} on two cores)") for name in shown]

    def pictures(self, dataset: xr.Dataset, kinds: Sequence[str]) -> Mapping[str, bytes]:
        """The figure, drawn once, as files of these kinds hold it."""
        return pictures_of(self.name, dataset, kinds)


def pictures_of(name: str, dataset: xr.Dataset, kinds: Sequence[str]) -> Mapping[str, bytes]:
    """The figure `figures/NAME.py` of a dataset, drawn once, as files of these kinds hold it.

    Here alone something is imported late: what draws takes a second to load, and no command but one that has measured
    needs it.
    """
    draw, render = import_module(f"figures.{name}").draw, import_module("figures.render")
    drawn: Mapping[str, bytes] = render.pictures(draw, dataset, kinds)
    return drawn


def run_as_command(name: str) -> NoReturn:
    """`python -m sims.NAME`, and the end of the process.

    The study is that of the module under its true name, not of the one that runs as `__main__`: functions that it sends
    to other processes are found there.
    """
    sys.exit(simulation(name).main())
