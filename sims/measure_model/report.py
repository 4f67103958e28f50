"""What is said of a measured model: the rate to start from, what one step moves, by which parameters, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import isfinite, isnan, sqrt
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr

from sims.common.report import Document, NextStep
from sims.common.tables import LINE, MISSING, Column, Grid, Table, measured, number, slope, table
from sims.measure_model.asked import WHOLE_MODEL
from sims.measure_model.dataset import OTHERS

WHOLE: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}
# Rows of the two tables that are printed.
MOST_SIZES, MOST_MODULES = 5, 3
# A module stands out where its values are so many times as large, or as small, as its like in the other blocks says.
STANDS_OUT, LIKE = 3.0, 3
# One parameter is named where it moves a module so many times as far as the next one of its group.
FIRST = 2.0
# Chances below this are called so rare that scales follow no power of the sizes.
RARE = 0.01
# What one step moves by 1 at the rate that is its scale.
OF = {
    "absolute": "all modules (by 1)",
    "relative": "all modules (by their size)",
    "last": "the last layer (by its size)",
    "outputs": "the outputs (by 1)",
}


def document(dataset: xr.Dataset) -> Document:
    """The whole report; printed, it has the rates, the modules that move most, and warnings."""
    attrs = dataset.attrs
    rates, modules = RATES(dataset), _modules(dataset)
    top = _modules(dataset, MOST_MODULES)
    against = [note for note in (_against(dataset),) if note]
    parts: list[str | Grid] = [rates, modules, *_alone(dataset), SCALES(dataset)]
    parts += [SLOPES(dataset)] if "slope" in dataset else []
    return Document(
        question=f"From which learning rate does {attrs['family']} start under {attrs['optimizer']}, and what does one "
        "step move?",
        answer=_paragraphs(_answer(dataset)),
        heading=_heading(dataset),
        parts=[*parts, *against, *_premises(dataset)],
        shown=[rates.thinned(MOST_SIZES), top, *against],
        steps=_steps(dataset),
        words=WORDS,
    )


# The answer.


def _paragraphs(listed: Iterable[str]) -> str:
    """Each from a line of its own on; the first begins behind the word that says what they are."""
    first, *others = listed
    behind = " " * len("Answer:   ")
    lines = [fill(first, LINE, initial_indent=behind, subsequent_indent="  ", **WHOLE).removeprefix(behind)]
    return "\n".join(
        [*lines, *(fill(each, LINE, initial_indent="  ", subsequent_indent="    ", **WHOLE) for each in others)]
    )


def _answer(dataset: xr.Dataset) -> Iterator[str]:
    yield " ".join(filter(None, [_rates(dataset), _goes(dataset)]))
    yield " ".join(_movers(dataset))
    if outstanding := _outstanding(dataset):
        yield outstanding


def _rates(dataset: xr.Dataset) -> str:
    """The rate of every size, the carried one where one was tuned."""
    attrs = dataset.attrs
    if attrs["tuned"]:
        others = [at for at in _each(dataset) if not attrs["tuned"].endswith(f" at {at['size'].item()}")]
        rates = {str(at["size"].item()): float(at["carried_rate"]) for at in others}
        said = [f"{rate:.2g} at {size}" for size, rate in rates.items() if not isnan(rate)]
        lost = [size for size, rate in rates.items() if isnan(rate)]
        becomes = f"The rate {attrs['tuned']} becomes {_listed(said)}." if said else ""
        why = (
            f"{attrs['tuned']} is not carried to {_listed(lost)}: {attrs['not_carried'].splitlines()[0]}."
            if lost
            else ""
        )
        return " ".join(filter(None, [becomes, why]))
    if dataset["started_rate"].isnull().all():
        return f"No rate to start from is named: {attrs['no_rate'].splitlines()[0]}."
    if dataset.sizes["size"] == 1:
        rate, low, high = (float(dataset[f"started_{name}"][0]) for name in ("rate", "low", "high"))
        return f"Start from {rate:.2g}, and expect the best rate between {low:.2g} and {high:.2g}."
    said = [f"{float(at['started_rate']):.2g} at {at['size'].item()}" for at in _each(dataset)]
    factors = np.sqrt(dataset["started_high"] / dataset["started_low"])
    return f"Start from {_listed(said)}; expect the best rate within a factor {float(factors.max()):.2g}."


def _each(dataset: xr.Dataset) -> list[xr.Dataset]:
    """The dataset at every size."""
    return [dataset.isel(size=number) for number in range(dataset.sizes["size"])]


def _listed(said: Sequence[str]) -> str:
    """The first and the last two of many."""
    kept = [*said[:2], "..", *said[-2:]] if len(said) > 5 else list(said)
    return kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"


def _goes(dataset: xr.Dataset) -> str:
    """The power of every size that the rate goes as, with its error; nothing where sizes go by different scales."""
    attrs = dataset.attrs
    of = attrs["carried_by"] or attrs["scale_of_rate"]
    if "slope" not in dataset or of not in dataset["of"]:
        return ""
    at = dataset.sel(of=of)
    if at["slope"].isnull().any():
        return ""
    powers = [
        f"{each['axis'].item()}^({float(each['slope']):.2f} +- {float(each['slope_stderr']):.2f})"
        for each in (at.isel(axis=number) for number in range(dataset.sizes["axis"]))
    ]
    named = dataset["started_rate"].notnull().any() or attrs["carried_by"]
    what = "By one step the rate goes as" if named else f"The rate that moves {OF[of]} goes as"
    bent = f", though sizes follow no one power (p = {float(at['chance']):.1g})" * (float(at["chance"]) < RARE)
    return f"{what} {' '.join(powers)}{bent}."


def _movers(dataset: xr.Dataset) -> Iterator[str]:
    """The module that moves most, and the parameters that move it."""
    changes = change(dataset)
    if changes.isnull().all():
        yield "No module that is shown has a size at the start, relative to which a change has one."
        return
    top = _top(dataset)
    largest = float(changes.sel(place=top))
    times = f", {_times(largest / float(changes.median()))} the median module" * (dataset.sizes["place"] > 2)
    yield f"{top} moves most, by {percent(largest)} of its size in a step{times}."
    energies = dataset["place_energy_of_group"].sel(place=top).sortby(lambda energy: -energy)
    whole = float(dataset["place_update_energy"].sel(place=top))
    shares = [percent(largest * sqrt(float(energy) / whole)) for energy in energies]
    groups = [str(group) for group in energies["group"].values]
    others = f", {groups[1]} by {shares[1]}" if len(groups) > 1 else ""
    yield f"Of parameters, {groups[0]} move it most, alone by {shares[0]}{others}{_first_of(dataset)}."


def _first_of(dataset: xr.Dataset) -> str:
    """The one parameter of the strongest group that moves the module most, beside the next and all other groups."""
    if "energy_alone" not in dataset:
        return ""
    energies = {str(name): float(energy) for name, energy in dataset["energy_alone"].to_series().items()}
    others = energies.pop(OTHERS, 0.0)
    first, second = sorted(energies, key=lambda name: -energies[name])[:2]
    if energies[first] < FIRST**2 * energies[second]:
        return f"; of these {len(energies)} parameters none moves it twice as far as the next"
    said = []
    for energy, what in ((energies[second], f"as far as {second}"), (others, "as far as all other groups together")):
        said += [f"{_times(sqrt(energies[first] / energy))} {what}"] if 0 < energy < energies[first] else []
    return f"; of these {first} moves it {' and '.join(said) or 'alone'}"


def _outstanding(dataset: xr.Dataset) -> str:
    """The first leaf of the largest size whose values are out of line with those of its like in the other blocks."""
    factors = out_of_line(dataset)
    if not factors:
        return ""
    away = {name: max(factor, 1 / factor) for name, factor in factors.items()}
    most = max(away.values())
    if most < STANDS_OUT:
        return "No module's values are out of line with those of its like in other blocks."
    first = next(name for name in away if away[name] > max(most / 2, STANDS_OUT))
    return f"{first} stands out: its values are {factors[first]:.2g} times those of its like in other blocks."


def out_of_line(dataset: xr.Dataset) -> dict[str, float]:
    """How many times as large as in the other blocks the values of leaves are, by their names, in order of their calls.

    Leaves of one name in three blocks or more are compared, in four or more along the line that the median step from
    block to block and the median leaf make: values that grow from block to block are in line.
    """
    at = dataset.sel(size=dataset.attrs["largest"])
    blocks, names = dataset.attrs["block_names"].split(), [str(name) for name in dataset["module"].values]
    squares = at["update_energy"] / at["relative_update_energy"]
    logs_of = dict(zip(names, np.log(squares.values) / 2, strict=True))
    alike: dict[str, list[str]] = {}
    for block in blocks:
        for name in names:
            if name.startswith(f"{block}."):
                alike.setdefault(name.removeprefix(block), []).append(name)
    factors: dict[str, float] = {}
    for leaves in alike.values():
        logs = np.array([logs_of[name] for name in leaves])
        if len(leaves) >= LIKE and np.isfinite(logs).all():
            rise = np.median(np.diff(logs)) if len(leaves) > LIKE else 0.0  # one of two steps is no rule
            level = logs - np.arange(len(logs)) * rise
            factors |= dict(zip(leaves, np.exp(level - np.median(level)).tolist(), strict=True))
    return {name: factors[name] for name in names if name in factors}


def _top(dataset: xr.Dataset) -> str:
    """The module that moves most by its size."""
    return str(change(dataset).fillna(-1.0).idxmax("place").item())


def change(dataset: xr.Dataset) -> xr.DataArray:
    """Root mean square of the change of every module that is shown over that of its value, at the rate shown."""
    return dataset.attrs["shown_rate"] * np.sqrt(dataset["place_relative_update_energy"])


def percent(share: float) -> str:
    """A change with two digits, three above 100 %."""
    return MISSING if isnan(share) else f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


def _times(factor: float) -> str:
    return f"{factor:.2g} times" if factor < 100 else f"{factor:.0f} times"


# Tables.


def _modules(dataset: xr.Dataset, most: int | None = None) -> Grid:
    """Modules of the largest size, the most moved ones first, with what each group of parameters moves alone."""
    attrs, changes = dataset.attrs, change(dataset)
    shares = changes * np.sqrt(dataset["place_energy_of_group"] / dataset["place_update_energy"])
    sizes = np.sqrt(dataset["place_update_energy"] / dataset["place_relative_update_energy"])
    order = np.argsort(-changes.fillna(-1.0).values, kind="stable")[:most]
    groups = [str(group) for group in dataset["group"].values]
    rows = [
        [
            str(dataset["place"].values[place]),
            f"{float(sizes[place]):.2g}" if isfinite(sizes[place]) else MISSING,
            percent(float(changes[place])),
            *(percent(float(shares.isel(place=place).sel(group=group))) for group in groups),
        ]
        for place in order
    ]
    left = f" ({len(rows)} of {len(changes)})" if len(rows) < len(changes) else ""
    at = f"at {attrs['largest']} and {attrs['shown_rate_of']}, {attrs['shown_rate']:.2g}"
    title = f"Change in one step {at}, by each group alone{left}"
    return table(["module", "RMS", "change", *groups], rows, title)


def _alone(dataset: xr.Dataset) -> list[Grid]:
    """What the parameters of the strongest group move alone."""
    if "energy_alone" not in dataset:
        return []
    changes = change(dataset)
    top = _top(dataset)
    whole, energies = float(dataset["place_update_energy"].sel(place=top)), dataset["energy_alone"]
    rows = [
        [str(name), percent(float(changes.sel(place=top)) * sqrt(float(energies.sel(parameter=name)) / whole))]
        for name in energies.sortby(lambda energy: -energy)["parameter"].values
    ]
    return [table(["parameter", "change"], rows, f"Change of {top} by one parameter alone")]


def _between(at: xr.Dataset, kind: str) -> str:
    low, high = (float(at[f"{kind}_{end}"]) for end in ("low", "high"))
    return MISSING if isnan(low) or low == high else f"{low:.2g} .. {high:.2g}"


def _rate(at: xr.Dataset, kind: str) -> str:
    rate = float(at[f"{kind}_rate"])
    return MISSING if isnan(rate) else f"{rate:.2g}"


def _rate_columns(dataset: xr.Dataset) -> Iterator[Column]:
    yield Column("parameters", lambda at: f"{int(at['parameters']):,}")
    if "carried_of" in dataset and dataset["carried_rate"].notnull().any():
        yield Column("carried by", lambda at: str(at["carried_of"].item()) or MISSING)
    for kind, headers in (("carried", ["carried", "by draws"]), ("started", ["start from", "expect"])):
        if dataset[f"{kind}_rate"].notnull().any():
            yield Column(
                headers,
                lambda at, kind=kind: [_rate(at, kind), _between(at, kind)],  # type: ignore[misc]
            )
    yield Column("moves the outputs by 1", lambda at: f"{float(at['scale'].sel(of='outputs')):.2g}")


RATES = Table("table of rates", "Learning rates", ["size"], "size", lambda dataset: [*_rate_columns(dataset)])


def _of_scale(at: xr.Dataset, of: str) -> str:
    return measured(*(float(at[name].sel(of=of)) for name in ("scale", "scale_stderr")))


SCALES = Table(
    "table of scales",
    "Rates at which one step moves .., medians over draws",
    ["size"],
    "size",
    [
        *(Column(words, partial(_of_scale, of=of)) for of, words in OF.items()),
        Column("last layer", lambda at: str(at["last_layer"].item())),
    ],
)
SLOPES = Table(
    "table of slopes",
    "Powers of the sizes that these rates go as",
    ["of", "axis"],
    ["one step moves ..", "size"],
    [
        Column("power", lambda at: slope(float(at["slope"]), float(at["slope_stderr"]))),
        Column("p", lambda at: number(float(at["chance"]))),
    ],
    shown={"of": OF},
)


# Notes.


def _heading(dataset: xr.Dataset) -> str:
    """What was measured."""
    attrs = dataset.attrs
    kind = f", of kind {attrs['kind']}" * bool(attrs["kind"])
    line = (
        f"{attrs['factory']}{kind}; one step of {attrs['optimizer']} on {attrs['loss']}, {attrs['batch']}, "
        f"{attrs['draws']} draws, seed {attrs['seed']}, {attrs['precision']}"
    )
    return fill(line, LINE, **WHOLE)


def _premises(dataset: xr.Dataset) -> list[str]:
    """What the rates take for granted, and what the one to start from rests on."""
    attrs = dataset.attrs
    notes = [_note("Premises", [attrs["carried_premises"] or attrs["premises"]])]
    return [*filter(None, notes), _note("What the rate to start from rests on", [attrs["rests_on"]])]


def _against(dataset: xr.Dataset) -> str:
    """What speaks against the rates, and which of them there are not."""
    attrs = dataset.attrs
    return _note(
        "Warnings", [line for name in ("no_rate", "not_carried", "warnings") for line in attrs[name].split("\n")]
    )


def _note(title: str, sentences: Sequence[str]) -> str:
    lines = [fill(each, LINE, initial_indent="  ", subsequent_indent="    ", **WHOLE) for each in sentences if each]
    return "\n".join([title, *lines]) if lines else ""


def _steps(dataset: xr.Dataset) -> list[NextStep]:
    """What to run next."""
    attrs, steps = dataset.attrs, []
    first = str(dataset["size"].values[0])
    if not attrs["tuned"] and dataset.sizes["size"] > 1:
        steps.append((f"--carry RATE@{first}", "once you have tuned a rate there: the rates of the other sizes"))
    top = _top(dataset)
    if top in attrs["block_names"].split():
        steps.append((f"--modules '{top}.*'", "what moves inside of the module that moves most"))
    if not attrs["axes"]:
        sizes = "--sizes depth=4,8,16" if first == WHOLE_MODEL else f"--sizes {_doubled(dataset, first)}"
        steps.append((sizes, "how all of this goes with a keyword of the factory"))
    if not steps:
        steps.append((f"--draws {4 * int(attrs['draws'])}", "errors half as wide, in four times the time"))
    return steps


def _doubled(dataset: xr.Dataset, size: str) -> str:
    """The first keyword of a size with its number, and that twice and four times."""
    name = size.partition("=")[0]
    start = float(dataset[name][0])
    return f"{name}={start:g},{2 * start:g},{4 * start:g}"


WORDS = {
    "by draws": "two errors of the medians over draws, either way: not how well one step tells how the model trains.",
    "expect": "where tuned rates of the small nets of the trials lay beside the rate that is named.",
    "moves the outputs by 1": "the rate at which one step changes the outputs by 1 in mean square.",
    "RMS": "root mean square of the values of a module before the step, its size.",
    "change": "root mean square of the change of a module's values in one step over their size, exact to first order.",
    "by each group alone": "what the step of these parameters changes while all others stay; such changes may cancel "
    "or add up.",
}
