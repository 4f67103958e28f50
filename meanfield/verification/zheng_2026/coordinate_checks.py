"""Whether hyperparameter tables keep features and their updates flat in width and depth, after one step and many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.parameterizations import OPTIMIZERS
from meanfield.verification.claims import combined
from meanfield.verification.ladder_slopes import LadderSlope, ladder_slope
from meanfield.verification.verdicts import Deviation, Finding, Verdict, weigh

Array = NDArray[np.float64]

DIRECTIONS = ("width", "depth")
# The exponent by which a table that is not flat is off: a root, as entries of P1's tables differ by halves and wholes.
OFF = 0.5
# Standard errors by which a wrong table must be away from flat.
AWAY = 5.0
# Changes at which a net stands still to rounding, or is about to leave the floats; a slope's error that is rounding.
# The share of draws that must have a net left for a size to count.
LIMITS, MOST = (1e-14, 1e250), 0.6
ROUNDING = 1e-9


def quantities(dataset: xr.Dataset) -> list[tuple[str, int]]:
    """(variable, step) of what is judged: |h_L| and |Delta h_L| after the first and the last step."""
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    return [(name, step) for step in steps for name in ("feature_norm", "feature_update_norm")]


def slope(dataset: xr.Dataset, optimizer: str, table: str, direction: str, name: str, step: int) -> LadderSlope:
    """Slope of one quantity over one ladder."""
    at = dataset[f"{name}_by_{direction}"].sel(optimizer=optimizer, table=table, step=step)
    return ladder_slope(dataset[direction].values, at.transpose(direction, "draw").values)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per optimizer and table that was run."""
    judges: dict[str, Callable[..., Finding]] = {table: partial(judge_flat, table=table) for table in ("one", "many")}
    judges["standard"] = judge_standard
    names = map(str, dataset["optimizer"].values)
    return [judges[table](dataset, name) for name in names for table in judged_tables(dataset)]


def judged_tables(dataset: xr.Dataset) -> list[str]:
    """Those that were run: the table of the net's own block depth, the other condition's, and none."""
    right = _right_table(dataset)
    run = list(map(str, dataset["table"].values))
    return [table for table in (right, {"one": "many", "many": "one"}[right], "standard") if table in run]


def _right_table(dataset: xr.Dataset) -> str:
    return "one" if int(dataset.attrs["block_depth"]) == 1 else "many"


def judge_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZERS) -> Finding:
    """The table of the net's own block depth, for all of these optimizers; rival: a root off."""
    right = _right_table(dataset)
    claim = f"the k {'= 1' if right == 'one' else '>= 2'} tables keep |h_L| and |Delta h_L| flat in width and depth"
    return _of_each(dataset, optimizers, (claim, f"slopes of {OFF:g} or more"), partial(judge_flat, table=right))


def judge_without_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZERS) -> Finding:
    """The standard parameterization does not, for any of these optimizers."""
    titles = "the standard parameterization keeps |Delta h_L| flat", f"slopes {AWAY:g} s.e. or more from zero"
    return _of_each(dataset, optimizers, titles, judge_standard)


def _of_each(
    dataset: xr.Dataset, optimizers: Sequence[str], titles: tuple[str, str], judge_one: Callable[..., Finding]
) -> Finding:
    """One finding of those for every optimizer; what is true of those that were run is not yet true of the others."""
    names = [name for name in map(str, dataset["optimizer"].values) if name in optimizers]
    found = [judge_one(dataset, optimizer) for optimizer in names]
    verdict = combined(one.verdict for one in found)
    if verdict is Verdict.CONFIRMED and set(names) != set(optimizers):
        verdict = Verdict.INCONCLUSIVE
    shown = "; ".join(f"{name} {one.verdict}: {one.evidence}" for name, one in zip(names, found, strict=True))
    return Finding(*titles, verdict, f"{len(names)} of {len(optimizers)} optimizers: {shown}")


def judge_flat(dataset: xr.Dataset, optimizer: str, table: str) -> Finding:
    """All slopes of a table are zero; rival: a root off."""
    rows = list(_rows(dataset, optimizer, table))
    title = {"many": "k >= 2 table keeps", "one": "k = 1 table keeps"}[table]
    claim_title = f"{optimizer}: the {title} |h_L| and |Delta h_L| flat in width and depth"
    rival_title = f"slopes of {OFF:g} or more"
    if any(np.isnan(row.settled) for _, row in rows):
        return Finding(claim_title, rival_title, Verdict.REFUTED, "some nets leave the range of floats, or stand still")
    slopes, stderr, allowance = (
        np.array([getattr(row, field) for _, row in rows]) for field in ("settled", "settled_stderr", "allowance")
    )
    inside = Deviation(slopes, stderr, allowance)
    weakest = [int(np.argmin(Deviation(np.abs(slopes) - OFF, stderr, allowance).excess))]
    rival = Deviation(np.abs(slopes[weakest]) - OFF, stderr[weakest], allowance[weakest])
    name, worst = rows[int(np.argmax(inside.excess))]
    shown = f"hardest {worst.settled:+.3f} +- {worst.settled_stderr:.3f} ({name}), allowance {worst.allowance:.3f}"
    comparisons, draws = len(rows) * dataset.sizes["optimizer"], dataset.attrs["draws"]
    return weigh((claim_title, rival_title), inside, rival, comparisons=comparisons, draws=draws, shown=shown)


def judge_standard(dataset: xr.Dataset, optimizer: str) -> Finding:
    """Without a table |Delta h_L| after one step is flat; rival: it is not, by five standard errors.

    Of the middle draw: where features are large some draws are so sure of their labels that they stand still, others
    leave the floats, and what either makes of a mean says nothing of the rest.
    """
    away, shown = [], []
    for direction in DIRECTIONS:
        at = dataset[f"feature_update_norm_by_{direction}"].sel(optimizer=optimizer, table="standard", step=1)
        middle, stderr, gone = _middle_slope(dataset[direction].values, at.transpose(direction, "draw").values)
        away.append(abs(middle) / max(stderr, ROUNDING))
        lost = f" ({gone:.0%} of nets leave the floats or stand still)" if gone else ""
        # Growth is exponential, not a power: a straight line says how steep it is over this ladder.
        shown.append(f"{middle:+.2f} +- {stderr:.2f} in {direction}{lost}")
    verdict = Verdict.REFUTED if min(away) > AWAY else Verdict.INCONCLUSIVE
    evidence = f"slope after one step {', '.join(shown)}: {min(away):.0f} s.e. or more from flat"
    claim = f"{optimizer}: the standard parameterization keeps |Delta h_L| flat"
    return Finding(claim, f"slopes {AWAY:g} s.e. or more from zero in width and in depth", verdict, evidence)


def _middle_slope(sizes: Array, values: Array) -> tuple[float, float, float]:
    """Median over draws of a straight line's slope, its error by the median distance from it, the share of lost nets.

    Lines are over sizes at which few nets are lost, and there over those that the draw has left; infinitely steep where
    fewer than three are. Normal numbers are half of them within 1/1.4826 of their spread, and their median scatters
    sqrt(pi/2) times as much as their mean.
    """
    found = (values > LIMITS[0]) & (values < LIMITS[1])
    left = found & (found.mean(axis=1, keepdims=True) >= MOST)
    slopes = [
        np.polyfit(np.log(sizes[kept]), np.log(draw[kept]), 1)[0] if kept.sum() > 2 else np.inf
        for draw, kept in zip(values.T, left.T, strict=True)
    ]
    middle = np.median(slopes)
    spread = 1.4826 * np.median(np.abs(slopes - middle)) if np.isfinite(middle) else 0.0
    return float(middle), float(np.sqrt(np.pi / 2 / len(slopes)) * spread), float(1 - found.mean())


def _rows(dataset: xr.Dataset, optimizer: str, table: str) -> Iterator[tuple[str, LadderSlope]]:
    symbols = {"feature_norm": "|h_L|", "feature_update_norm": "|Delta h_L|"}
    for direction, (name, step) in product(DIRECTIONS, quantities(dataset)):
        yield f"{symbols[name]} at step {step}, {direction}", slope(dataset, optimizer, table, direction, name, step)
