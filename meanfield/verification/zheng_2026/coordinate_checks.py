"""Zheng et al. 2026: hyperparameter tables keep features, their changes and every role's share in them flat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.validation import Array
from meanfield.optimizers import HYBRIDS
from meanfield.parameterizations import OPTIMIZER_NAMES
from meanfield.verification.claims import Check, Claim, Kind, of_all, of_rival
from meanfield.verification.judges import Contest, Judges, Ruling
from meanfield.verification.series import (
    OFF,
    LadderRow,
    LadderSlope,
    against_conditions,
    ladder_slope,
    ladder_values,
)
from meanfield.verification.verdicts import Bands, Finding, Verdict

DIRECTIONS = ("width", "depth")
# What is watched, by the dim along which it is: a place in the stream, or the role of the weights that change it.
WATCHED = {"feature_norm": "place", "feature_update_norm": "place", "output_update_norm": "", "own_change": "role"}
TITLES = {"many": "k >= 2 table", "one": "k = 1 table"}
OTHER = {"one": "many", "many": "one"}
# Standard errors by which a wrong table must be away from flat; the sentences of the judges say so too.
AWAY = 5.0
# Changes at which a net stands still to rounding, or is about to leave the floats; a slope's error that is rounding.
# The share of draws that must have a net left for a size to count.
LIMITS, MOST = {"float64": (1e-14, 1e250), "float32": (1e-6, 1e30)}, 0.6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Watched:
    """One of the numbers that are watched: a variable, after a step, at a place of the stream or of one role.

    Attributes:
        dim, at: the dim of the dataset and the place or role on it; both empty for the outputs.
    """

    variable: str
    step: int
    dim: str = ""
    at: str = ""

    @property
    def selection(self) -> dict[str, Any]:
        return {"step": self.step} | ({self.dim: self.at} if self.dim else {})

    @property
    def symbol(self) -> str:
        """In the words of the report."""
        if self.variable == "output_update_norm":
            return "|Delta f|"
        if self.variable == "own_change":
            whose = self.at.replace("_bias", " biases") if self.at.endswith("_bias") else f"{self.at} weights"
            return f"|Delta {'f' if self.at == 'output' else 'h_L'}| by {whose} alone"
        letter = {"input": "h_0", "middle": "h_(L/2)", "last": "h_L"}[self.at]
        return f"|{letter}|" if self.variable == "feature_norm" else f"|Delta {letter}|"


def watched(dataset: xr.Dataset, *names: str) -> list[Watched]:
    """All numbers that are watched, or those of some variables, after the first and the last step."""
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    numbers = []
    for step, name in product(steps, names or WATCHED):
        dim = WATCHED[name]
        numbers += [Watched(name, step, dim, str(at)) for at in dataset[dim].values] if dim else [Watched(name, step)]
    return numbers


def slope(dataset: xr.Dataset, optimizer: str, table: str, direction: str, number: Watched) -> LadderSlope:
    """Slope of one number over one ladder."""
    values = ladder_values(dataset, number.variable, direction, optimizer=optimizer, table=table, **number.selection)
    return ladder_slope(dataset[direction].values, values)


# The judges of `sims.coordinate_check`. Entries of tables differ by halves and wholes: a wrong one is off by a root.
JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per optimizer and table that was run."""
    judges: dict[str, Callable[..., Finding]] = {table: partial(judge_flat, table=table) for table in TITLES}
    judges["standard"] = judge_standard
    each = product(map(str, dataset["optimizer"].values), judged_tables(dataset))
    return [judges[table](dataset, name) for name, table in each]


def judged_tables(dataset: xr.Dataset) -> list[str]:
    """Those that were run: the table of the net's own block depth, the other condition's, and none."""
    right = _right_table(dataset)
    return [table for table in (right, OTHER[right], "standard") if table in dataset["table"]]


def _right_table(dataset: xr.Dataset) -> str:
    return "one" if int(dataset.attrs["block_depth"]) == 1 else "many"


@JUDGES.decide
def judge_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    """The {title}s keep features, their changes and every role's share in them flat on blocks of k = {k}; rival: slopes
    of half a power or more; measured: slopes of them all over ladders of width and depth, after the first and the last
    step."""
    return _of_table(dataset, optimizers, _right_table(dataset))


@JUDGES.decide
def judge_other_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    """The {title}s keep features, their changes and every role's share in them flat on {kind} blocks of k = {k}; rival:
    on {kind} blocks of k = {k} the {title}s leave features, their changes or a role's share in them a slope of half a
    power or more; measured: slopes of them all over ladders of width and depth, after the first and the last step."""
    return _of_table(dataset, optimizers, OTHER[_right_table(dataset)])


@JUDGES.decide
def judge_without_tables(dataset: xr.Dataset, optimizers: Sequence[str] = OPTIMIZER_NAMES) -> Ruling:
    """The standard parameterization keeps |Delta h_L| flat; rival: in the standard parameterization |Delta h_L| has
    slopes 5 s.e. or more from zero in width and in depth; measured: every draw's slope of |Delta h_L| after
    one step, of which the median is taken."""
    return _of_each(dataset, optimizers, judge_standard, {})


def _of_table(dataset: xr.Dataset, optimizers: Sequence[str], table: str) -> Ruling:
    words = {"title": TITLES[table], "k": dataset.attrs["block_depth"], "kind": dataset.attrs["activation"]}
    return _of_each(dataset, optimizers, partial(judge_flat, table=table), words)


def _of_each(
    dataset: xr.Dataset, optimizers: Sequence[str], judge: Callable[..., Finding], words: dict[str, str]
) -> Ruling:
    """One ruling of those for every optimizer that was run."""
    run = {name: judge(dataset, name) for name in map(str, dataset["optimizer"].values) if name in optimizers}
    return of_all(run, optimizers, "optimizers", words)


@JUDGES.decide
def judge_flat(dataset: xr.Dataset, optimizer: str, table: str) -> Contest | Ruling:
    """{optimizer}: the {title} keeps features, their changes and every role's share in them flat in width and depth;
    rival: slopes of half a power or more; measured: slopes in width and in depth of these and of the outputs' change,
    after the first and the last step."""
    rows = [
        LadderRow(number.symbol, direction, slope(dataset, optimizer, table, direction, number), step=number.step)
        for direction, number in product(DIRECTIONS, watched(dataset))
    ]
    words = {"title": TITLES[table]}
    if any(np.isnan(row.slope.settled) for row in rows):
        lost = "none: no slope is left to be tilted"
        return Ruling(Verdict.REFUTED, "some nets leave the range of floats, or stand still", words, lost, lost)
    claim, rival = against_conditions(rows)
    hardest = rows[int(np.argmax(claim.excess))]
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows) * dataset.sizes["optimizer"])
    return made.saying(f"hardest {hardest.slope} ({hardest.where}), allowance {hardest.slope.allowance:.3f}", **words)


@JUDGES.decide
def judge_standard(dataset: xr.Dataset, optimizer: str) -> Ruling:
    """{optimizer}: the standard parameterization keeps |Delta h_L| flat; rival: slopes 5 s.e. or more from zero
    in width and in depth; measured: every draw's slope of |Delta h_L| after one step, of which the median is taken.

    Where features are large some draws are so sure of their labels that they stand still, others leave the floats, and
    what either makes of a mean says nothing of the rest.
    """
    away, slopes, least = [], [], 0.0
    for direction in DIRECTIONS:
        at = {"optimizer": optimizer, "table": "standard", "step": 1, "place": "last"}
        values = ladder_values(dataset, "feature_update_norm", direction, **at)
        limits = LIMITS[dataset.attrs.get("precision", "float64")]
        middle, stderr, gone = _middle_slope(dataset[direction].values, values, limits)
        away.append(abs(middle) / max(stderr, ROUNDING))
        least = max(least, Bands(AWAY, AWAY).sure * max(stderr, ROUNDING))
        lost = f" ({gone:.0%} of nets leave the floats or stand still)" if gone else ""
        # Growth is exponential, not a power: a straight line says how steep it is over this ladder.
        slopes.append(f"{middle:+.2f} +- {stderr:.2f} in {direction}{lost}")
    verdict = Verdict.REFUTED if np.min(away) > AWAY else Verdict.INCONCLUSIVE
    evidence = f"slope after one step {', '.join(slopes)}: {min(away):.0f} s.e. or more from flat"
    power = f"slopes of {least:.2g} in width and in depth are refuted"
    return Ruling(verdict, evidence, power=power, power_of_rival="none: flat slopes stay INCONCLUSIVE")


def _middle_slope(
    sizes: Array, values: Array, limits: tuple[float, float] = LIMITS["float64"]
) -> tuple[float, float, float]:
    """Median over draws of a straight line's slope, its error by the median distance from it, the share of lost nets.

    Lines are over sizes at which few nets are lost, and there over those that the draw has left; infinitely steep where
    fewer than three are. Normal numbers are half of them within 1/1.4826 of their spread, and their median scatters
    sqrt(pi/2) times as much as their mean.
    """
    finite = (values > limits[0]) & (values < limits[1])
    left = finite & (finite.mean(axis=1, keepdims=True) >= MOST)
    slopes = [
        np.polyfit(np.log(sizes[kept]), np.log(draw[kept]), 1)[0] if kept.sum() > 2 else np.inf
        for draw, kept in zip(values.T, left.T, strict=True)
    ]
    middle = np.median(slopes)
    spread = 1.4826 * np.median(np.abs(slopes - middle)) if np.isfinite(middle) else 0.0
    return float(middle), float(np.sqrt(np.pi / 2 / len(slopes)) * spread), float(1 - finite.mean())


# Steps that are as large as the gradient (SGD), and those of AdamW and Shampoo, scatter more from draw to draw than
# others. SSO is flat for five steps, as the sphere holds its input weights down from then on, in wide nets earlier.
STEADY = ("muon", "muon_kimi", "soap", "lion", "sophia")
SSO_STEPS = ("--steps", "5")
# At k = 1 Lion nears its limit slowly: a plain slope of |Delta h_L| is 0.07 over 4 .. 64 blocks, 0.03 over 16 .. 256.
DEEPER = ("--depths", "4", "6", "16", "24", "64")


def flatness(
    table: str, optimizers: tuple[str, ...], *arguments: str, judge: Callable[..., Finding] = judge_tables
) -> Check:
    """Of these optimizers, over many steps."""
    decide = partial(judge, optimizers=optimizers)
    decided = of_rival(decide) if judge is judge_other_tables else decide
    return Check("coordinate_check", decided, ("--tables", table, "--optimizers", *optimizers, *arguments))


# All tables for k >= 2 but SGD's, on k = 2; and every table for k = 1.
OF_MANY_LAYERS = (
    flatness("many", STEADY),
    flatness("many", ("adamw",), "--times", "2"),
    flatness("many", ("shampoo",), "--times", "2"),
    flatness("many", ("sso",), *SSO_STEPS),
)
OF_SGD = flatness("many", ("sgd",), "--times", "4")
OF_ONE_LAYER = (
    flatness("one", ("muon_kimi", "muon", "sophia"), "--block-depth", "1"),
    flatness("one", ("lion", "soap"), "--block-depth", "1", *DEEPER),
    flatness("one", ("adamw",), "--block-depth", "1", "--times", "3"),
    flatness("one", ("sgd",), "--block-depth", "1", "--times", "4"),
    flatness("one", ("shampoo",), "--block-depth", "1", "--times", "2"),
    flatness("one", ("sso",), "--block-depth", "1", *SSO_STEPS),
)

# The hybrids that the paper trains.
OF_HYBRIDS = (
    flatness("many", HYBRIDS, "--times", "2"),
    flatness("one", HYBRIDS, "--block-depth", "1", "--times", "2"),
)


def standard(optimizers: tuple[str, ...], *words: str) -> Check:
    """Without a table, of which one step is enough."""
    judge = of_rival(partial(judge_without_tables, optimizers=optimizers))
    return Check("coordinate_check", judge, ("--tables", "standard", "--steps", "1", "--optimizers", *words))


# What all of these run at the default preset.
NETS = "on eight samples and four outputs, widths 32 .. 256 and 2 .. 32 blocks"

CLAIMS = (
    Claim(
        id="S5a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, principle 2.1, tables 3-7 and 9-13",
        statement="under its own block depth every table keeps features, their changes, the outputs' change and what "
        "input, hidden and output weights change alone flat in width and depth, with weight decay and epsilons, over "
        "ten steps (SSO: over five; SOAP: with an epsilon of 0.002 in the base model)",
        printed='"muP aims to realize scale-invariant feature learning while maximizing the feature change induced by '
        'parameter updates" (principle 2.1)',
        hypotheses="one step on one sample, linear blocks, no momentum; checked with all nine optimizers at k = 2 and "
        f"k = 1 over ten steps with momentum, {NETS} (Lion and SOAP at k = 1: 4 .. 64, chosen after shorter ladders "
        "left them undecided); SSO over five steps, as after ten the change of its features falls as n^(-0.16 +- "
        "0.04) (docs/findings.md). SSO keeps the norm with which weights begin, as the output variance of tables 7 and "
        "13 lies off the sphere of appendix C.11 by a factor n (S13). SOAP's epsilon has no row in the paper: "
        "at 1e-5 as many draws do not decide, and at 1e-8, its usual value, nets leave the range of floats (S5l)",
        checks=(*OF_MANY_LAYERS, OF_SGD, *OF_ONE_LAYER, standard(OPTIMIZER_NAMES, "all")),
    ),
    Claim(
        id="S5h",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.1, figures 1, 5, 6",
        statement="hybrids of Muon-Kimi, Muon or Shampoo on hidden matrices and AdamW on all else, every role by the "
        "table of its own, keep features and their changes flat in width and depth, and without tables they do not",
        printed='"SP exhibits feature-scale growth under width or depth scaling, whereas ... Condition 3.1 (k >= 2) '
        'keeps the final-block feature norm approximately scale-invariant" (appendix E.2)',
        hypotheses="linear blocks of k = 2 and k = 1 layers with weight decay and epsilons in place of the paper's "
        f"Transformers; ten steps with momentum, {NETS}",
        checks=(*OF_HYBRIDS, standard(HYBRIDS, *HYBRIDS)),
    ),
)
