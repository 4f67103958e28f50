"""Zheng et al. 2026: hyperparameter tables keep features and their updates flat in width and depth, over many steps."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.parameterizations import OPTIMIZERS
from meanfield.verification.claims import Check, Claim, combined, of_rival
from meanfield.verification.judges import Contest, Judges, Ruling
from meanfield.verification.ladder_slopes import LadderRow, LadderSlope, against_conditions, ladder_slope
from meanfield.verification.verdicts import Finding, Verdict

DIRECTIONS = ("width", "depth")
SYMBOLS = {"feature_norm": "|h_L|", "feature_update_norm": "|Delta h_L|"}
TITLES = {"many": "k >= 2 table", "one": "k = 1 table"}
# Standard errors by which a wrong table must be away from flat; the sentences of the judges say so too.
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


# The judges of `sims.coordinate_check`. Entries of tables differ by halves and wholes: a wrong one is off by a root.
JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per optimizer and table that was run."""
    judges: dict[str, Callable[..., Finding]] = {table: partial(judge_flat, table=table) for table in TITLES}
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


@JUDGES.decide
def judge_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZERS) -> Ruling:
    """The {title}s keep |h_L| and |Delta h_L| flat in width and depth; rival: slopes of half a power or more."""
    right = _right_table(dataset)
    return _of_each(dataset, optimizers, partial(judge_flat, table=right), {"title": TITLES[right]})


@JUDGES.decide
def judge_without_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZERS) -> Ruling:
    """The standard parameterization keeps |Delta h_L| flat; rival: slopes 5 s.e. or more from zero."""
    return _of_each(dataset, optimizers, judge_standard, {})


def _of_each(
    dataset: xr.Dataset, optimizers: Sequence[str], judge: Callable[..., Finding], words: dict[str, str]
) -> Ruling:
    """One ruling of those for every optimizer; what is true of those that were run is not yet true of the others."""
    run = {name: judge(dataset, name) for name in map(str, dataset["optimizer"].values) if name in optimizers}
    verdict = combined(finding.verdict for finding in run.values())
    if verdict is Verdict.CONFIRMED and set(run) != set(optimizers):
        verdict = Verdict.INCONCLUSIVE
    by_optimizer = "; ".join(f"{name} {finding.verdict}: {finding.evidence}" for name, finding in run.items())
    return Ruling(verdict, f"{len(run)} of {len(optimizers)} optimizers: {by_optimizer}", words)


@JUDGES.decide
def judge_flat(dataset: xr.Dataset, optimizer: str, table: str) -> Contest | Ruling:
    """{optimizer}: the {title} keeps |h_L| and |Delta h_L| flat in width and depth; rival: slopes of half a power or
    more."""
    rows = [
        LadderRow(SYMBOLS[name], direction, slope(dataset, optimizer, table, direction, name, step), step=step)
        for direction, (name, step) in product(DIRECTIONS, quantities(dataset))
    ]
    words = {"title": TITLES[table]}
    if any(np.isnan(row.slope.settled) for row in rows):
        return Ruling(Verdict.REFUTED, "some nets leave the range of floats, or stand still", words)
    claim, rival = against_conditions(rows)
    hardest = rows[int(np.argmax(claim.excess))]
    worst = hardest.slope
    evidence = f"{worst.settled:+.3f} +- {worst.settled_stderr:.3f} ({hardest.where}), allowance {worst.allowance:.3f}"
    made = Contest(claim, rival, comparisons=len(rows) * dataset.sizes["optimizer"])
    return made.saying(f"hardest {evidence}", **words)


@JUDGES.decide
def judge_standard(dataset: xr.Dataset, optimizer: str) -> Ruling:
    """{optimizer}: the standard parameterization keeps |Delta h_L| flat; rival: slopes 5 s.e. or more from zero
    in width and in depth; measured: slopes of |Delta h_L| after one step, of the middle draw.

    Where features are large some draws are so sure of their labels that they stand still, others leave the floats, and
    what either makes of a mean says nothing of the rest.
    """
    away, slopes = [], []
    for direction in DIRECTIONS:
        at = dataset[f"feature_update_norm_by_{direction}"].sel(optimizer=optimizer, table="standard", step=1)
        middle, stderr, gone = _middle_slope(dataset[direction].values, at.transpose(direction, "draw").values)
        away.append(abs(middle) / max(stderr, ROUNDING))
        lost = f" ({gone:.0%} of nets leave the floats or stand still)" if gone else ""
        # Growth is exponential, not a power: a straight line says how steep it is over this ladder.
        slopes.append(f"{middle:+.2f} +- {stderr:.2f} in {direction}{lost}")
    verdict = Verdict.REFUTED if min(away) > AWAY else Verdict.INCONCLUSIVE
    return Ruling(verdict, f"slope after one step {', '.join(slopes)}: {min(away):.0f} s.e. or more from flat")


def _middle_slope(sizes: Array, values: Array) -> tuple[float, float, float]:
    """Median over draws of a straight line's slope, its error by the median distance from it, the share of lost nets.

    Lines are over sizes at which few nets are lost, and there over those that the draw has left; infinitely steep where
    fewer than three are. Normal numbers are half of them within 1/1.4826 of their spread, and their median scatters
    sqrt(pi/2) times as much as their mean.
    """
    finite = (values > LIMITS[0]) & (values < LIMITS[1])
    left = finite & (finite.mean(axis=1, keepdims=True) >= MOST)
    slopes = [
        np.polyfit(np.log(sizes[kept]), np.log(draw[kept]), 1)[0] if kept.sum() > 2 else np.inf
        for draw, kept in zip(values.T, left.T, strict=True)
    ]
    middle = np.median(slopes)
    spread = 1.4826 * np.median(np.abs(slopes - middle)) if np.isfinite(middle) else 0.0
    return float(middle), float(np.sqrt(np.pi / 2 / len(slopes)) * spread), float(1 - finite.mean())


# Steps that are as large as the gradient (SGD), those of single elements, and Shampoo's scatter from draw to draw.
SCATTERING = ("sgd", "adamw", "lion", "sophia", "shampoo")
STEADY = tuple(name for name in OPTIMIZERS if name not in SCATTERING)


def _flatness(optimizers: tuple[str, ...], *times: str) -> Check:
    """Of these optimizers, over many steps."""
    judge = partial(judge_tables, optimizers=optimizers)
    return Check("coordinate_check", judge, ("--tables", "many", "--optimizers", *optimizers, *times))


CLAIMS = (
    Claim(
        id="S5",
        source="Zheng et al. 2026, tables 1, 3-7",
        statement="every optimizer's table keeps |h_L| and |Delta h_L| flat in width and depth, and none does without",
        checks=(
            _flatness(STEADY),
            _flatness(SCATTERING, "--times", "2"),
            # Without a table one step is enough.
            Check(
                "coordinate_check",
                of_rival(judge_without_tables),
                ("--tables", "standard", "--steps", "1", "--optimizers", "all"),
            ),
        ),
    ),
)
