"""A command, `python -m sims.NAME`: its options as data, presets, workers, and errors in one line."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

import xarray as xr

from meanfield.common import (
    INTERRUPTED,
    TERMINATED,
    DamagedFileWarning,
    PremiseWarning,
    Terminated,
    collect_seldom,
    interrupts_raised,
    require_choice,
    require_count,
    require_counts,
    require_positive,
    when_terminated,
    while_read,
    write_text_whole,
)
from meanfield.execution import Workers

# Takes the option as it is written, --NAME, and the value given; returns the value to work with, or raises ValueError.
OptionCheck = Callable[[str, Any], Any]


KEPT = "finished pieces are kept; the same command continues from them"
REFUSED = 2
NO_MEMORY = "out of memory; lower the sizes, the depth above all, or the workers"
_SECONDS = {"s": 1, "min": 60, "h": 3600}
NUMBERS = {2: "two", 3: "three"}
# What a simulation raises to refuse its options.
REFUSALS = (ValueError, TypeError, MemoryError, OverflowError, OSError, ModuleNotFoundError)
# How options that continue on another line stand there: below the first, none of them broken.
FOLDED: dict[str, Any] = {"subsequent_indent": " " * 19, "break_on_hyphens": False}
# Forms in which a report is printed.
FORMATS = ("text", "markdown", "latex", "csv", "html")
# Options with a value, and without, that say where and how to write and who computes; no number depends on them.
PLACES = ("--out", "--workers", "--scheduler", "--format")
FLAGS = ("--force", "--full")


class Preset(dict[str, Any]):
    """Values of options to start from, and how long a run of them takes.

    ``takes`` is rough, in s, min or h, as --help shows it: on two cores that nothing else keeps busy, kernels compiled.
    ``outcome``: what such a run has found, in a line or two, for those who ran less.
    """

    def __init__(self, takes: str, outcome: str = "", /, **values: Any) -> None:
        super().__init__(values)
        self.takes, self.outcome = takes, outcome

    @property
    def seconds(self) -> int:
        count, unit = self.takes.split()
        return int(count) * _SECONDS[unit]


Presets = Mapping[str, Preset]


@dataclass(frozen=True)
class Option:
    """An option of a command, as data.

    Attributes:
        name: as the work reads it from the options; on the command line --name, with dashes.
        words: the help; a default that they do not name is added to them.
        type: of a value, or of each of ``many``.
        default: where neither the command line nor a preset says more.
        check: what settles the value, before any work; see `OptionCheck`.
        many: how many values it takes, as argparse says it: "+", "*", or a number.
        repeated: whether it may be given several times, its values in a list; ``flag``: whether it takes none.
        group: the heading under which --help lists it.
    """

    name: str
    words: str
    type: Callable[[str], Any] = str
    default: Any = None
    metavar: str | None = None
    check: OptionCheck | None = None
    choices: Sequence[Any] | None = None
    many: str | int | None = None
    repeated: bool = False
    flag: bool = False
    group: str = "network"

    @property
    def written(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        if self.flag:
            parser.add_argument(self.written, action="store_true", help=self.words)
            return
        is_said = self.default in (None, []) or "default" in self.words
        words = self.words if is_said else f"{self.words} (default: {_as_given(self.default)})"
        given: dict[str, Any] = {"type": self.type, "default": self.default, "metavar": self.metavar, "help": words}
        given |= {"choices": self.choices} if self.choices else {}
        given |= {"action": "append"} if self.repeated else {"nargs": self.many}
        parser.add_argument(self.written, **given)


def counted(why: str = "", *, minimum: int = 1, maximum: int | None = None) -> OptionCheck:
    """A whole number within bounds."""
    return lambda written, given: require_count(written, given, minimum=minimum, maximum=maximum, why=why)


def positive(why: str) -> OptionCheck:
    """A number above 0."""
    return lambda written, given: require_positive(written, given, why=why)


def ladder_of(least: int, purpose: str, *, why: str = "", maximum: int | None = None) -> OptionCheck:
    """Sizes, of which a ``purpose`` needs so many at least; they are put in order, each once."""
    return lambda written, given: ladder(written, given, least, purpose, why=why, maximum=maximum)


def chosen_of(choices: Iterable[str], what: str = "") -> OptionCheck:
    """One of some names, or several of them, each once; ``what`` follows the option in the message."""
    allowed = list(choices)

    def check(written: str, given: Any) -> Any:
        for name in [given] if isinstance(given, str) else given:
            require_choice(f"{written}{what}", name, allowed)
        return given if isinstance(given, str) else list(dict.fromkeys(given))

    return check


def ladder(
    written: str, given: Any, least: int, purpose: str, *, why: str = "", maximum: int | None = None
) -> list[int]:
    """The sizes in order, each once; ValueError where there are fewer than the ``purpose`` needs."""
    sizes = sorted(set(require_counts(written, given, maximum=maximum, why=why)))
    if len(sizes) < least:
        held = "is one number" if len(sizes) == 1 else f"has {len(sizes)} numbers"
        raise ValueError(f"{written} {sizes} {held}; {purpose} needs {NUMBERS[least]} or more")
    return sizes


@dataclass(frozen=True, kw_only=True)
class Command:
    """`python -m sims.NAME`: its options, and the work that they ask for.

    Attributes:
        name: of its module in `sims`.
        description: what --help says first; None under `python -OO`.
        options: its own; all commands share others.
        notes: what --help says below the headings of some of them, by heading.
        presets: by name; every option of one is left to it where the command line does not give it.
        compiles: how much longer a first run takes, which compiles the kernels of a simulation and keeps them.
        epilog: what --help says last where there are no presets.
    """

    name: str
    description: str | None
    options: Sequence[Option] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    presets: Presets = field(default_factory=dict)
    compiles: str = ""
    epilog: str | None = None

    def add_options(self, parser: CommandParser) -> None:
        """Under their headings, in order."""
        groups: dict[str, argparse._ActionsContainer] = {"": parser}
        for option in self.options:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group, self.notes.get(option.group))
            option.add_to(groups[option.group])

    def parser(self) -> CommandParser:
        parser = CommandParser(
            self.presets,
            prog=f"python -m sims.{self.name}",
            description=self.description,
            epilog=preset_lines(self.presets, self.compiles) if self.presets else self.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_options(parser)
        return parser

    def parse(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        return self.parser().parse_args(argv)

    def run(self, options: argparse.Namespace) -> int:
        """Do what the options ask for, and return the exit status; errors are the caller's to print."""
        raise NotImplementedError

    def main(self, argv: Sequence[str] | None = None) -> int:
        """The command, from its arguments to its exit status; those of the process itself where none are given."""
        options = self.parse(argv)
        if argv is None:
            collect_seldom()
        return run_command(self.run, options)

    def finished(self, arguments: Sequence[str], path: Path) -> xr.Dataset:
        """The dataset of this command with these arguments, measured or read, with its printed report beside it.

        Where it refuses or is interrupted it has said why, and its status becomes that of the whole command.
        """
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = self.main([*arguments, "--full", "--out", str(path)])
        if status:
            raise SystemExit(status)
        if not path.exists():
            raise ValueError(f"sims.{self.name} {' '.join(arguments)} writes no dataset; leave out what only prints")
        write_text_whole(path.with_suffix(".txt"), printed.getvalue())
        return xr.load_dataset(path, engine="netcdf4")


@dataclass(frozen=True, kw_only=True)
class Service(Command):
    """A command that serves or gathers the numbers of others: it has its options and its work from functions."""

    add: Callable[[CommandParser], None]
    work: Callable[[argparse.Namespace], int]

    def add_options(self, parser: CommandParser) -> None:
        self.add(parser)

    def run(self, options: argparse.Namespace) -> int:
        return self.work(options)


class CommandParser(argparse.ArgumentParser):
    """A parser that keeps the command which makes the same numbers as ``options.command``, itself as ``.parser``.

    ``options.check_only`` is False; `check_command` sets it.
    """

    def __init__(self, presets: Presets, **options: Any) -> None:
        super().__init__(**options)
        self.presets = presets

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        options = super().parse_args(given, namespace)
        options.parser, options.check_only = self, False
        options.command = " ".join([self.prog, *_that_change_numbers(given)])
        return options

    def error(self, message: str) -> NoReturn:
        """One line, as all refusals: the usage, which argparse puts before it, hides it; --help has it."""
        self.exit(REFUSED, f"error: {message}; {self.prog} --help lists the options\n")


def preset_lines(presets: Presets, compiles: str = "") -> str:
    """Every preset with its rough duration and the options that it stands for."""
    first = f"; the first run compiles, about {compiles} more" if compiles else ""
    lines = [f"presets, with rough durations on two cores{first}:"]
    for name, preset in presets.items():
        options = [f"--{option.replace('_', '-')} {_as_given(value)}" for option, value in preset.items()]
        lines.append(fill(" ".join(options), 110, initial_indent=f"  {name:8} {preset.takes:7} ", **FOLDED))
    return "\n".join(lines)


def _as_given(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _that_change_numbers(given: Sequence[str]) -> list[str]:
    """The arguments without those that say where to write and who computes."""
    kept, words = [], iter(given)
    for word in words:
        if word in PLACES:
            next(words, None)
        elif word not in FLAGS and not word.startswith(tuple(f"{place}=" for place in PLACES)):
            kept.append(shlex.quote(word))
    return kept


def add_output_options(parser: argparse._ActionsContainer, companion: str = "figure and page go") -> None:
    """Options of every simulation: where to write."""
    out = f"dataset to write, ending in .nc; {companion} beside it (default: results/NAME-HASH.nc)"
    parser.add_argument("--out", type=Path, help=out)
    parser.add_argument("--force", action="store_true", help="replace a dataset that another run has written")
    parser.add_argument("--full", action="store_true", help="print all tables, all evidence, and what every word means")
    form = (
        f"what to print: {', '.join(FORMATS)} (default: text, in brief); markdown and html are whole reports, latex is "
        "the verdicts and all tables, csv the tables of numbers alone"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=form)


def add_run_options(parser: CommandParser) -> None:
    """Options of every simulation that draws: preset (of the parser's), draws, seed, workers, where to write."""
    group = parser.add_argument_group("run")
    add_preset_option(group, parser.presets)
    group.add_argument("--draws", type=int, help="independent networks drawn, in all at least 2")
    group.add_argument(
        "--times",
        type=positive_integer,
        default=1,
        metavar="N",
        help="N times these draws and tuning seeds, or the preset's",
    )
    group.add_argument("--seed", type=int, default=0, help="root of all random streams (default: 0)")
    add_worker_options(group)
    add_output_options(group)


def add_preset_option(parser: argparse._ActionsContainer, presets: Presets) -> None:
    """The option of every simulation that says which sizes to start from; `fill_from_preset` takes them."""
    which = "sizes to start from, listed below (default: default); every other option overrides it"
    parser.add_argument("--preset", choices=list(presets), default="default", help=which)


def name_or_number(text: str) -> str | float:
    """What an option takes that has names for some numbers, as --scaling has."""
    try:
        return float(text)
    except ValueError:
        return text


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


# Of simulations that train nets.
TRAINED_ON = Option(
    "backend",
    "where nets train: numpy (default), or cupy, a CUDA device (needs the extra cuda12 or cuda13): the same nets",
    default="numpy",
    choices=("numpy", "cupy"),
    group="training",
)


def chosen_arrays(options: argparse.Namespace) -> dict[str, Any]:
    """Backend and precision, those that there are, as the library takes them; a run's numbers depend on them."""
    return {name: getattr(options, name) for name in ("backend", "precision") if name in options}


def worker_arguments(workers: Workers) -> list[str]:
    """The options that give another simulation the same workers."""
    count = [] if workers.processes is None else ["--workers", str(workers.processes)]
    return count if workers.scheduler is None else [*count, "--scheduler", workers.scheduler]


# Options that say how many nets are drawn, for means over them and to tune rates on.
NETS_DRAWN = ("draws", "tuning_seeds")


def fill_from_preset(options: argparse.Namespace, preset: Mapping[str, Any]) -> None:
    """Give every option that was left out the preset's value, and take as many times the nets as are asked for."""
    for name, value in preset.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name in NETS_DRAWN:
        if getattr(options, name, 0) > 0:  # others are refused as they were given
            setattr(options, name, options.times * getattr(options, name))


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

    try:
        if getattr(options, "backend", "numpy") != "numpy" and options.workers is None and options.scheduler is None:
            options.workers = 1  # one process keeps one device busy
        if "scheduler" in options:
            options.workers = Workers(options.workers, options.scheduler)
        with interrupts_raised(), when_terminated(_leave), _warnings_in_one_line():
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

    with suppress(OSError, AttributeError):  # nobody may read it, or it is kept from the terminal
        os.write(sys.stderr.fileno(), f"\nterminated: {KEPT}\n".encode())
    os._exit(TERMINATED)
