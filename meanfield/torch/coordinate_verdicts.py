"""The verdict on every slope of a coordinate check: flat, not flat, or undecided, and what could be wrong where not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
import xarray as xr

from meanfield.common.validation import Array, not_negative, require_count
from meanfield.parameterizations import optimizers_by_role
from meanfield.torch.short_training import OUTPUTS
from meanfield.torch.steps import TRIED
from meanfield.torch.suspects import Row, Table, in_words, suspects
from meanfield.verification import (
    OFF,
    Contest,
    Deviation,
    LadderSlope,
    Ruling,
    Shares,
    Verdict,
    ladder_slope,
    ladder_values,
    tuned_rates,
)

# Exponents of so much or less count as flat, in small models at small sizes, where tables hold as well as this.
FLAT = 0.1
# Changes that are so small a part of a value are its rounding.
ROUNDING = {"float64": 1e-12, "float32": 1e-5}
# What is watched: values before the first step, and changes after each.
OF = {"value": "feature_norm", "change": "feature_update_norm"}

WORDS = {
    "slope": "power of the size that a value or change goes as, in the limit of large sizes",
    "slope_stderr": "power of the size: standard error over draws",
    "slope_allowance": "power of the size: what leaving out the least size changes in it",
    "plain_slope": "slope of a straight line in logarithms",
    "plain_slope_stderr": "slope of a straight line in logarithms: standard error over draws",
    "refuted_from": "least power of the size that 99 of 100 such checks refute",
    "draws_needed": "draws with which 8 of 10 such checks decide",
    "verdict": "verdict on the claim that the power is 0",
    "evidence": "distances in standard errors, and bands",
    "suspects": "cells of the table that could be wrong",
}
COORDINATES = {
    "along": "direction of the sizes",
    "of": "value before the first step, or change since then",
    "at": "place in the model",
    "after": "steps of training",
}


@dataclass(frozen=True)
class Asked:
    """How slopes are judged.

    Attributes:
        flat: exponents that count as flat.
        table: optimizer of the table, None where it follows from the optimizers' classes.
        block_depth: matrices of a branch.
    """

    flat: float
    table: str | None
    block_depth: int

    @classmethod
    def checked(cls, flat: Any, table: Any, block_depth: Any) -> Self:
        """Raise TypeError or ValueError for what is none of these."""
        asked = cls(not_negative("flat", flat), table, require_count("block_depth", block_depth))
        if asked.flat >= OFF / 2:
            raise ValueError(f"flat is {asked.flat:g}; give less than {OFF / 2:g}: wrong cells make slopes of {OFF:g}")
        if table is not None:
            optimizers_by_role(table, asked.block_depth)
        return asked

    def table_of(self, dataset: xr.Dataset) -> Table:
        """The one that is asked for, or that of the optimizers; Muon steps hidden weights, and others all else."""
        names = [TRIED.get(name, "") for name in dataset.attrs["optimizer"].split(" and ")]
        if len(names) == 2 and "muon" in names and all(names):
            names = ["-".join(sorted(names, key="muon".__ne__))]
        known = names[0] if len(set(names)) == 1 else ""
        return Table(known if self.table is None else self.table, self.block_depth, bool(dataset.attrs["decays"]))


@dataclass(frozen=True)
class Judged:
    """One slope and the ruling on it."""

    row: Row
    law: LadderSlope
    ruling: Ruling


def judged(dataset: xr.Dataset, asked: Asked) -> xr.Dataset:
    """A dataset of sizes of values and changes, with a row for each slope.

    Raises:
        ValueError: where nothing moves.
    """
    table = asked.table_of(dataset)
    laddered = [(each, values) for each in _watched(dataset) if (values := _values(dataset, *each)).any()]
    if not any(of == "change" for (_, of, _, _), _ in laddered):
        raise ValueError("nothing moves in any of the models: their rates are 0, or gradients are, as units have died")
    moving = {(along, at) for (along, of, at, _), _ in laddered if of == "change"}
    kept = [(each, values) for each, values in laddered if (each[0], each[2]) in moving]
    rows = [_judged(dataset, *each, values, asked.flat, len(kept)) for each, values in kept]
    by_place = {(row.row.along, row.row.of, row.row.at, row.row.after): row.row for row in rows}
    named = [_suspects(row, by_place, table) for row in rows]
    verdicts = [row.ruling.verdict for row in rows]
    attrs = {"flat": asked.flat, "table": table.optimizer, "block_depth": asked.block_depth}
    return _with_rows(dataset, rows, named).assign_attrs(attrs | {"verdict": str(_overall(verdicts))})


def _watched(dataset: xr.Dataset) -> Iterator[tuple[str, str, str, int]]:
    """(along, of, at, after) of all that may have a slope."""
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    for along, at in product(directions, map(str, dataset["place"].values)):
        yield along, "value", at, 0
        yield from ((along, "change", at, step) for step in map(int, dataset["step"].values[1:]))


def _values(dataset: xr.Dataset, along: str, of: str, at: str, after: int) -> Array:
    """Over sizes and draws."""
    return ladder_values(dataset, OF[of], along, place=at, step=after)


def _judged(
    dataset: xr.Dataset, along: str, of: str, at: str, after: int, values: Array, flat: float, comparisons: int
) -> Judged:
    law = ladder_slope(dataset[along].values, values)
    lost = ~np.isfinite(values).all(axis=1)
    if lost.any():
        sizes = " ".join(f"{size:g}" for size in dataset[along].values[lost])
        ruling = Ruling(Verdict.REFUTED, f"models leave the range of floats at {along} {sizes}")
    elif reason := _unjudged(dataset, values, along, of, at):
        ruling = Ruling(Verdict.INCONCLUSIVE, reason)
    else:
        contest = _contest(law, flat, may_fall=(along, of, at) == ("width", "value", OUTPUTS))
        ruling = contest.weigh(comparisons, dataset.attrs["draws"], tuned_rates.TRAINED_BUDGET)
    grows, slope = bool(lost.any() or law.settled > 0), np.nan if lost.any() else law.settled
    return Judged(Row(along, of, at, after, slope, ruling.verdict, grows), law, ruling)


def _unjudged(dataset: xr.Dataset, values: Array, along: str, of: str, at: str) -> str:
    """Why numbers have no slope that says anything, or nothing."""
    if not values.all():
        return "some models do not move it at all, as units have died, and others do"
    least = ROUNDING[dataset.attrs["precision"]] * _values(dataset, along, "value", at, 0)
    if of == "change" and (values < least).any():
        return 'changes are of the size of rounding: take a larger rate, or precision="float64"'
    return ""


def _contest(law: LadderSlope, flat: float, may_fall: bool) -> Contest:
    """The slope against 0, or at most 0 where it may fall; and against half a power off, on the side that is nearer."""
    off = max(law.settled, 0.0) if may_fall else law.settled
    beyond = max(OFF - (law.settled if may_fall else abs(law.settled)), 0.0)
    sides = (Deviation(distance, law.settled_stderr, law.allowance + flat) for distance in (off, beyond))
    return Contest(*sides, apart=OFF, gaussian=True)


def _suspects(judged_row: Judged, rows: Mapping[Any, Row], table: Table) -> str:
    """In words, of a slope that is not flat."""
    row = judged_row.row
    if judged_row.ruling.verdict is not Verdict.REFUTED:
        return ""
    return in_words(suspects(row, lambda of, at, after: rows.get((row.along, of, at, after)), table), row.along)


def _overall(verdicts: list[Verdict]) -> Verdict:
    if Verdict.REFUTED in verdicts:
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.CONFIRMED


def _with_rows(dataset: xr.Dataset, rows: list[Judged], named: list[str]) -> xr.Dataset:
    laws, rulings = [row.law for row in rows], [row.ruling for row in rows]
    powers = [OFF * ruling.power.together if isinstance(ruling.power, Shares) else np.nan for ruling in rulings]
    columns: dict[str, list[Any]] = {
        "slope": [law.settled for law in laws],
        "slope_stderr": [law.settled_stderr for law in laws],
        "slope_allowance": [law.allowance for law in laws],
        "plain_slope": [law.plain for law in laws],
        "plain_slope_stderr": [law.plain_stderr for law in laws],
        "refuted_from": powers,
        "draws_needed": [np.nan if ruling.needed is None else ruling.needed for ruling in rulings],
        "verdict": [str(ruling.verdict) for ruling in rulings],
        "evidence": [ruling.evidence for ruling in rulings],
        "suspects": named,
    }
    variables = {name: ("row", values, _described(WORDS[name], values)) for name, values in columns.items()}
    coords = {name: [getattr(row.row, name) for row in rows] for name in COORDINATES}
    labels = {name: ("row", values, _described(COORDINATES[name], values)) for name, values in coords.items()}
    return dataset.assign(variables).assign_coords(labels)


def _described(words: str, values: list[Any]) -> dict[str, str]:
    return {"long_name": words} | ({} if isinstance(values[0], str) else {"units": "1"})
