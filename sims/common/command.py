"""What all simulations share on the command line: presets, options, workers, errors."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn

from sims.common.durations import DURATIONS, first_run

if TYPE_CHECKING:
    from meanfield.execution import Workers

Presets = Mapping[str, Mapping[str, Any]]

INTERRUPTED = 130
KEPT = "finished pieces are kept; the same command continues from them"
REFUSED = 2
NO_MEMORY = "out of memory; lower the sizes, the depth above all, or the workers"
# What a simulation raises to refuse its options.
REFUSALS = (ValueError, TypeError, MemoryError, OverflowError, OSError, ModuleNotFoundError)
# How options that continue on another line stand there: below the first, none of them broken.
FOLDED: dict[str, Any] = {"subsequent_indent": " " * 19, "break_on_hyphens": False}
# Options with a value that say where to write and who computes; no number depends on them.
PLACES = ("--out", "--workers", "--scheduler")


class CommandParser(argparse.ArgumentParser):
    """A parser that keeps the command which makes the same numbers as ``options.command``, itself as ``.parser``.

    ``options.check_only`` is False; `check_command` sets it. ``options.alone`` is False; a command that has a process
    of its own sets it.
    """

    def __init__(self, presets: Presets, **options: Any) -> None:
        super().__init__(**options)
        self.presets = presets

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        options = super().parse_args(given, namespace)
        options.parser, options.check_only, options.alone = self, False, False
        options.command = " ".join([self.prog, *_that_change_numbers(given)])
        return options

    def error(self, message: str) -> NoReturn:
        """One line, as all refusals: the usage, which argparse puts before it, hides it; --help has it."""
        self.exit(REFUSED, f"error: {message}; {self.prog} --help lists the options\n")


def command_parser(
    name: str, description: str | None, epilog: str | None = None, presets: Presets | None = None
) -> CommandParser:
    """The parser of `python -m sims.NAME`; its help ends with what the presets mean, where there are some."""
    return CommandParser(
        presets or {},
        prog=f"python -m sims.{name}",
        description=description,
        epilog=epilog if presets is None else preset_lines(name, presets),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def preset_lines(name: str, presets: Presets) -> str:
    """Every preset with its rough duration and the options that it stands for."""
    lines = [f"presets, with rough durations on two cores{first_run(name)}:"]
    for preset, values in presets.items():
        options = [_option(option, value) for option, value in values.items()]
        title = f"  {preset:8} {DURATIONS.get(name, {}).get(preset, ''):7} "
        lines.append(fill(" ".join(options), 110, initial_indent=title, **FOLDED))
    return "\n".join(lines)


def _option(name: str, value: Any) -> str:
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"--{name.replace('_', '-')} {words}"


def _that_change_numbers(given: Sequence[str]) -> list[str]:
    """The arguments without those that say where to write and who computes."""
    kept, words = [], iter(given)
    for word in words:
        if word in PLACES:
            next(words, None)
        elif word != "--force" and not word.startswith(tuple(f"{place}=" for place in PLACES)):
            kept.append(shlex.quote(word))
    return kept


def add_output_options(parser: argparse._ActionsContainer, companion: str = "the figure goes") -> None:
    """Options of every simulation: where to write."""
    out = f"dataset to write, ending in .nc; {companion} beside it (default: results/NAME-HASH.nc)"
    parser.add_argument("--out", type=Path, help=out)
    parser.add_argument("--force", action="store_true", help="replace a dataset that another run has written")


def add_run_options(parser: CommandParser) -> None:
    """Options of every simulation that draws: preset (of the parser's), draws, seed, workers, where to write."""
    group = parser.add_argument_group("run")
    add_preset_option(group, parser.presets)
    group.add_argument("--draws", type=int, help="independent networks drawn, in all at least 2")
    group.add_argument(
        "--times", type=positive_integer, default=1, metavar="N", help="N times these draws, or the preset's"
    )
    group.add_argument("--seed", type=int, default=0, help="root of all random streams (default: 0)")
    add_worker_options(group)
    add_output_options(group)


def add_preset_option(parser: argparse._ActionsContainer, presets: Presets) -> None:
    """The option of every simulation that says which sizes to start from; `fill_from_preset` takes them."""
    which = "sizes to start from, listed below (default: default); every other option overrides it"
    parser.add_argument("--preset", choices=list(presets), default="default", help=which)


def positive_integer(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number of at least 1")
    return int(text)


def add_worker_options(parser: argparse._ActionsContainer) -> None:
    """Options that say who computes; `run_command` makes one `meanfield.Workers` of them, ``options.workers``."""
    count = "processes; results do not depend on it (default: all cores, where draws take more than seconds)"
    parser.add_argument("--workers", type=int, metavar="N", help=count)
    where = "Dask scheduler whose workers compute, or local: --workers processes under one (needs the extra cluster)"
    parser.add_argument("--scheduler", metavar="tcp://HOST:PORT", help=where)


def add_array_options(parser: argparse.ArgumentParser) -> None:
    """Options of simulations that draw nets by `meanfield.simulate`: where and how precisely the passes run."""
    add = parser.add_argument_group("arrays").add_argument
    where = "numpy (default), or cupy, a CUDA device (needs the extra cuda12 or cuda13): the same law by other numbers"
    add("--backend", choices=("numpy", "cupy"), default="numpy", help=where)
    how = (
        "of weights and passes: float64 (default, unless a preset below says float32), or float32, to one part in 10^6"
    )
    add("--precision", choices=("float64", "float32"), default="float64", help=how)


def chosen_arrays(options: argparse.Namespace) -> dict[str, Any]:
    """Backend and precision, as `meanfield.simulate` takes them; part of what a run's numbers depend on."""
    return {"backend": options.backend, "precision": options.precision}


def worker_arguments(workers: Workers) -> list[str]:
    """The options that give another simulation the same workers."""
    count = [] if workers.processes is None else ["--workers", str(workers.processes)]
    return count if workers.scheduler is None else [*count, "--scheduler", workers.scheduler]


def fill_from_preset(options: argparse.Namespace, preset: Mapping[str, Any]) -> None:
    """Give every option that was left out the preset's value, and take as many times the draws as are asked for."""
    for name, value in preset.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if "draws" in options and options.draws > 0:  # others are refused as they were given
        options.draws *= options.times


def complaint(error: Exception) -> str:
    """What a refusal says; an allocation that fails inside Python itself says nothing."""
    return str(error) or NO_MEMORY


class Checked(Exception):
    """A run that stands at the beginning of its work, with nothing to refuse, and was asked to check only."""


def check_command(run: Callable[[argparse.Namespace], int], options: argparse.Namespace, workers: Workers) -> None:
    """Raise what `run_command` would print of these options, before any work; ``workers`` are those it would have.

    Raises:
        ValueError: a command that only prints; and all that the simulation raises.
    """
    options.check_only, options.workers = True, workers
    try:
        run(options)
    except Checked:
        return
    raise ValueError("it writes no dataset; leave out what only prints")


def run_command(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a simulation; refuse bad input in one line, and leave whole files behind Ctrl-C, SIGTERM and SIGHUP."""
    from meanfield.common import TERMINATED, Terminated, when_terminated, while_read
    from meanfield.execution import Workers

    try:
        if getattr(options, "backend", "numpy") != "numpy" and options.workers is None and options.scheduler is None:
            options.workers = 1  # one process keeps one device busy
        if "scheduler" in options:
            options.workers = Workers(options.workers, options.scheduler)
        with when_terminated(_leave), _warnings_in_one_line():
            return while_read(lambda: run(options))
    except REFUSALS as error:
        print(f"error: {complaint(error)}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(f"\ninterrupted: {KEPT}", file=sys.stderr)
        return INTERRUPTED
    except Terminated:
        print(f"\nterminated: {KEPT}", file=sys.stderr)
        return TERMINATED


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """A premise that fails, or a damaged file, is meant for the reader of the report: one line, no source code."""
    from meanfield.common import DamagedFileWarning, PremiseWarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, PremiseWarning | DamagedFileWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            show_as_before(message, category, *place, **options)

    with warnings.catch_warnings():
        show_as_before, warnings.showwarning = warnings.showwarning, show
        yield


def _leave() -> NoReturn:
    """End at once, with its line: a signal comes here where no process is to be stopped and no file to be finished."""
    from meanfield.common import TERMINATED

    with suppress(OSError, AttributeError):  # nobody may read it, or it is kept from the terminal
        os.write(sys.stderr.fileno(), f"\nterminated: {KEPT}\n".encode())
    os._exit(TERMINATED)
