"""Overlaps of pairs of parameter directions in residual nets, from block to block (Zhang et al. 2026, appendix C.1).

A direction is one unit's weights at the end of a block (or in a stem or tail layer), moved along that unit's incoming
features; T_l is the mean over units of the product of two tangents of the stream, T~_l the same behind the gates.
Measured: the mean over one block given all below it (eq. 31); the mean over redraws against (1 + cq/K)^blocks and its
bound e^(cq) (eq. 35); at several widths epsilon = E T~ - q E T, by which gates depend on tangents (eq. 34). Depth units
are counted from 1: stem layers, blocks, tail layers. Choose pairs with --pair.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw
from meanfield.execution import Run
from meanfield.nets import DirectionPair, ResidualMLP, pair_name, unit_shares
from meanfield.simulation import PairOverlaps
from meanfield.theory import FOLLOWED, growth_bound, growth_since_birth, mean_overlap
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Series,
    Verdict,
    announced,
    between,
    checks,
    needing,
    shown_laws,
    slope_contest,
)
from sims.common.command import Option, Preset, chosen_of, name_or_number
from sims.common.datasets import Variable, over, suffixed
from sims.common.pairs import PAIR, chosen_pairs, deviation, effective_overlap_draws, open_seed
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Grid, Table, against, drawn, fitted, number, predicted, signed

NAME = "residual_overlap"
LISTED = "overlaps of parameter directions in residual nets, block by block"

# What is asked for.

OPTIONS = (
    Option("depth", "residual blocks", int, metavar="K"),
    Option("width", "units of every layer", int, metavar="N"),
    Option("block_depth", "layers of a branch", int, 1, metavar="k"),
    Option(
        "scaling",
        "init (default), multiplier_sqrt, multiplier_linear, none, or a number alpha for a multiplier K^(-alpha)",
        name_or_number,
        "init",
        metavar="SCALING",
    ),
    Option(
        "activation",
        "relu (default) or linear",
        default="relu",
        check=chosen_of(FOLLOWED, ", of a net whose mean overlaps have a law,"),
    ),
    Option("stem", "plain layers below the blocks", int, 1, metavar="M"),
    Option("tail", "plain layers above the blocks", int, 0, metavar="M"),
    PAIR,
)
PRESETS = {
    "smoke": Preset("6 s", depth=4, width=32, draws=4096),
    "default": Preset("10 s", depth=8, width=64, draws=16384),
    "paper": Preset("20 min", depth=24, width=128, draws=262_144),
}

# What is measured.

# Parts of the width at which epsilon is measured too.
WIDTH_PARTS = (8, 4, 2)
# Depth units up to which nets are fixed in the conditional runs: so many at most.
MOST_FIXED = 3

VARIABLES = (
    Variable("gate_deviation_by_width", "how far gates depend on tangents, at the top depth unit, by width"),
    Variable("overlap_below", "overlap at the top of a fixed net"),
    Variable("gated_overlap_below", "law of the mean overlap above a fixed net: T + (c/K) T~", source="eq. 31"),
    Variable("ungated_below", "the same with gates ignored: T (1 + c/K)"),
    Variable("overlap_given", "mean overlap in the depth unit above a fixed net"),
    Variable("growth", "growth r of the mean overlap since it began", source="Zhang et al. 2026, eq. 35"),
    Variable("growth_ungated", "the same growth with gates ignored"),
    Variable("growth_bound", "bound e^(cq) of the growth", source="Zhang et al. 2026, eq. 35"),
    Variable("overlap_scale", "overlap of a direction with itself, at leading order"),
    Variable("on_one_unit", "whether both directions follow one unit of the stream"),
    Variable("across", "whether the directions begin in different depth units"),
    Variable("fixed", "depth unit up to which a net is fixed"),
    Variable("layer", "depth unit, from 1 at the bottom: stem, blocks, tail"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net, the pairs, and the units up to which it is fixed in the conditional runs."""
    names = ("depth", "width", "block_depth", "scaling", "activation", "stem", "tail")
    net = ResidualMLP(**{name: getattr(options, name) for name in names})
    pairs = chosen_pairs(net, options.pair)
    return {"net": net, "pairs": pairs, "fixed": _fixed_units(net, pairs)}


def _fixed_units(net: ResidualMLP, pairs: tuple[DirectionPair, ...]) -> list[int]:
    """Units of the conditional runs: from where all pairs have begun to the last that has one above, evenly spread."""
    first, last = max(layer for pair in pairs for layer, _ in pair), len(net.unit_ends) - 1
    if first > last:
        raise ValueError(f"a direction begins at the top depth unit, {first}; leave a unit above it to follow")
    steps = min(MOST_FIXED, last - first + 1)
    return sorted({first + (last - first) * step // max(1, steps - 1) for step in range(steps)})


def measure(
    options: argparse.Namespace, results: Results, net: ResidualMLP, pairs: tuple[DirectionPair, ...], fixed: list[int]
) -> xr.Dataset:
    """Everything redrawn, NAME; nets fixed up to a unit, NAME_below and, one above, NAME_given; NAME_by_width."""
    largest = max(unit for pair in pairs for _, unit in pair)
    narrower = [replace(net, width=options.width // part) for part in WIDTH_PARTS if options.width // part >= largest]
    runs = [Run(each, PairOverlaps(pairs=pairs), options.draws, options.seed) for each in (net, *narrower)]
    for unit in fixed:
        conditional = PairOverlaps(pairs=pairs, fixed_layers=unit)
        runs.append(Run(net, conditional, options.draws, open_seed(net, pairs, unit, options.seed)))
    free, *further = results.draw(runs)
    by_width, given = further[: len(narrower)], further[len(narrower) :]
    parts = [free, _by_width([*narrower, net], [*by_width, free]), _given(net, given, fixed), _laws(net, pairs)]
    merged = xr.merge(parts, combine_attrs="override", join="outer")
    return merged.assign_attrs(gain=net.sigma.gain, width=net.width)


def _by_width(nets: list[ResidualMLP], measured: list[xr.Dataset]) -> xr.Dataset:
    """The gate deviation at the top unit, by width."""
    top = [drawn[["gate_deviation", "gate_deviation_stderr"]].isel(layer=-1, drop=True) for drawn in measured]
    joined = xr.concat(top, dim="width", join="outer").assign_coords(width=[net.width for net in nets])
    return suffixed(joined, "by_width")


def _given(net: ResidualMLP, measured: list[xr.Dataset], fixed: list[int]) -> xr.Dataset:
    """Of nets that are fixed up to a unit: what that unit says of the next, and the mean there."""
    parts = []
    for dataset, unit in zip(measured, fixed, strict=True):
        own, above = dataset.isel(layer=unit - 1, drop=True), dataset.isel(layer=unit, drop=True)
        kept, carried = unit_shares(net)[unit]
        values = {"overlap_below": own["overlap"], "gated_overlap_below": own["gated_overlap"]}
        values["ungated_below"] = (kept + carried / net.sigma.gain) * own["overlap"]
        values |= {"overlap_given": above["overlap"], "overlap_stderr_given": above["overlap_stderr"]}
        parts.append(xr.Dataset(values))
    return xr.concat(parts, dim="fixed", join="outer").assign_coords(fixed=fixed)


def _laws(net: ResidualMLP, pairs: tuple[DirectionPair, ...]) -> xr.Dataset:
    """Growth since birth and its bound, leading-order means, and what kind each pair is."""
    axes, rows = {"pair": [pair_name(pair) for pair in pairs]}, []
    for pair in pairs:
        law, (first, second) = mean_overlap(net, pair), pair
        rows.append(
            {
                "growth": growth_since_birth(net, pair),
                "growth_ungated": growth_since_birth(net, pair, 1 / net.sigma.gain),
                "growth_bound": growth_bound(net, pair),
                "overlap_law": law.mean,
                "overlap_scale": law.scale,
                "gate_deviation_law": law.deviation,
                "on_one_unit": int(law.on_one_unit),
                "across": int(first[0] != second[0]),
            }
        )
    return over(axes, rows, "layer").assign_coords(layer=np.arange(1, len(net.unit_ends) + 1))


# What is claimed, and what decides it.
# Gates and tangents of a stream depend on each other at order 1/n. What the paper states up to o(1) is granted so much,
# in multiples of 1/n, stated here, of the overlap that a direction has with itself.

# Multiple of 1/n by which the next order may change a leading one.
NEXT_ORDER = 2.0

# Standard errors from 0 beyond which a logarithm says something, and widths that a slope needs.
RESOLVED = 4.0
LEAST_WIDTHS = 3

# On all pairs and units.
JUDGES = Judges("Zhang et al. 2026", effective=effective_overlap_draws)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every claim that this net can decide."""
    has_law = has_gates(dataset) and bool(dataset["gate_deviation_law"].notnull().any())
    judges = {
        judge_one_block: True,
        judge_mean_law: True,
        judge_one_unit: bool(_across_blocks(dataset).any()),
        judge_vanishing_deviation: has_gates(dataset),
        judge_deviation_law: has_law,
    }
    return [judge(dataset) for judge, can_decide in judges.items() if can_decide]


def has_gates(dataset: xr.Dataset) -> bool:
    """Whether there is a gate deviation at all."""
    return bool(dataset.attrs["gain"] < 1)


@JUDGES.decide(
    claim="Mean overlap over one block, given all below it, is T + (c/K) T~",
    source="eq. 31",
    rival="{ungated}",
    measured="nets fixed up to a unit and redrawn above it, and all units of nets redrawn",
    brief="Given all below a block, it takes mean T to T + (c/K) T~ (T~: T behind the gates)",
)
def judge_one_block(dataset: xr.Dataset) -> Contest:
    gates = has_gates(dataset)
    given = deviation(dataset, "overlap", dataset["gated_overlap_below"], "given")
    redrawn = deviation(dataset, "overlap_innovation", xr.zeros_like(dataset["overlap"]))
    rival = deviation(dataset, "overlap", dataset["ungated_below" if gates else "overlap_below"], "given")
    ungated = "T (1 + c/K), gates ignored" if gates else "T, as in plain nets"
    apart = np.concatenate([given.difference - rival.difference, np.zeros_like(redrawn.difference)])
    return Contest(Deviation.joined([given, redrawn]), rival, words={"ungated": ungated}, apart=apart)


@JUDGES.decide(
    claim="Mean overlap grows by r = (1 + cq/K)^blocks since it began{up_to}",
    source="eq. 35",
    rival="{ungated}",
    measured="means over draws of the overlap less r times its first value, of every pair at every depth unit",
    brief="Mean T grows by r = (1 + c q/K)^blocks since it began{up_to}",
)
def judge_mean_law(dataset: xr.Dataset) -> Contest:
    """In paired differences. Exact without gates.

    With gates epsilon is granted: the scale of the overlap, times its log-growth, over n.
    """
    gates, growth = has_gates(dataset), dataset["growth"]
    granted = gates * dataset["overlap_scale"] * np.log(dataset["growth_bound"]) / dataset.attrs["width"]
    at_birth = (dataset["overlap"] - dataset["overlap_excess"]) / growth
    rival_growth = dataset["growth_ungated"] if gates else xr.ones_like(growth)
    # Two means of the same draws: at most their errors add up.
    error = dataset["overlap_excess_stderr"] + abs(rival_growth / growth - 1) * dataset["overlap_stderr"]
    claim = deviation(dataset, "overlap_excess", xr.zeros_like(growth), allowance=granted)
    rival = deviation(dataset.assign(overlap_stderr=error), "overlap", rival_growth * at_birth, allowance=granted)
    ungated = "r = (1 + c/K)^blocks, gates ignored" if gates else "r = 1, as in plain nets"
    words = {"up_to": ", up to O(1/n)" * gates, "ungated": ungated}
    return between(claim, rival, note=_bound_kept(dataset, at_birth), words=words)


def _bound_kept(dataset: xr.Dataset, at_birth: xr.DataArray) -> str:
    """r <= e^(cq) in words, for the pair of one unit that comes nearest at the top; nothing where there is none."""
    one_unit = dataset.isel(pair=np.flatnonzero(dataset["on_one_unit"]), layer=-1)
    if one_unit.sizes["pair"] == 0:
        return ""
    grown = (one_unit["overlap"] / at_birth.isel(layer=-1)).sel(pair=one_unit["pair"])
    nearest = one_unit.assign(grown=grown).isel(pair=int(np.argmax((grown / one_unit["growth_bound"]).values)))
    return f"; at the top {float(nearest['grown']):.4g} times, bound e^(cq) = {float(nearest['growth_bound']):.4g}"


@JUDGES.decide(
    claim="Directions of one unit in different blocks overlap like one with itself, up to O(1/n)",
    rival="they begin at 0, as in plain nets",
    measured="mean overlaps of every pair of directions of one unit in different blocks, at every depth unit",
    brief="One unit's directions in two blocks overlap like one with itself, up to O(1/n)",
)
def judge_one_unit(dataset: xr.Dataset) -> Contest:
    pairs = dataset.isel(pair=np.flatnonzero(_across_blocks(dataset)))
    scale = pairs["overlap_scale"]
    granted = scale * (NEXT_ORDER + np.log(pairs["growth_bound"])) / dataset.attrs["width"]
    return between(*(deviation(pairs, "overlap", value, allowance=granted) for value in (scale, 0 * scale)))


@JUDGES.decide(
    claim="epsilon = E T~ - q E T vanishes with the width, as 1/n",
    source="eq. 34: o(1)",
    rival="it does not vanish",
    measured="slopes in the width at the top unit, of every pair where it is resolved",
    brief="epsilon = E T~ - q E T vanishes with the width n, as 1/n",
)
def judge_vanishing_deviation(dataset: xr.Dataset) -> Contest | Ruling:
    slopes = width_slopes(dataset)
    resolved = {name: law for name, law in slopes.items() if law is not None}
    words = ", ".join(f"{name}: {shown_laws(law)}" for name, law in resolved.items()) or "none"
    left = ", ".join(name for name in slopes if name not in resolved)
    evidence = f"slopes by pair: {words}" + (f"; not resolved: {left}" if left else "")
    if not resolved:
        made = float(dataset.attrs["draws"])
        needed = made * _times_to_resolve(dataset)
        evidence += needing(needed, made)
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no slope is met", needed=announced(needed))
    # The next order weighs most at the least width: a law 1/n (1 + NEXT_ORDER / n) has slopes off by so much.
    least = dataset["width"].values[:LEAST_WIDTHS]
    slack = np.log1p(NEXT_ORDER / least[0]) / np.log(least[-1] / least[0])
    evidence += f"; allowance {slack:.3f}"
    return slope_contest(*resolved.values(), claimed=-1.0, rival=0.0, allowance=slack, shown=evidence)


def width_slopes(dataset: xr.Dataset) -> dict[str, PowerLaw | None]:
    """By pair, the power of the width that epsilon at the top goes as, over the widths up to the last resolved one.

    None where fewer than LEAST_WIDTHS narrow widths in a row are RESOLVED standard errors from 0.
    """
    slopes: dict[str, PowerLaw | None] = {}
    for pair in map(str, dataset["pair"].values):
        at = Series.of(dataset, "gate_deviation", "by_width").sel(pair=pair)
        count = int(np.cumprod(at.value > RESOLVED * at.error).sum())
        slopes[pair] = at.isel(width=slice(count)).law("width") if count >= LEAST_WIDTHS else None
    return slopes


def _times_to_resolve(dataset: xr.Dataset) -> float:
    """How many times the draws resolve the LEAST_WIDTHS narrowest widths of the pair that takes the fewest.

    A mean within one standard error of 0, of which nothing is known but that, counts as one.
    """
    narrow = Series.of(dataset, "gate_deviation", "by_width").isel(width=slice(LEAST_WIDTHS))
    seen = narrow.value / narrow.error
    return float((RESOLVED / seen.clip(min=1.0).min("width").max()) ** 2)


@JUDGES.decide(
    claim="epsilon of two units is what they meet of each other's gates, at leading order",
    rival="epsilon is 0, gates independent of tangents",
    measured="epsilon = E T~ - q E T, T~ the gated overlap, of pairs of directions of two units, wherever its law is "
    "not 0",
    brief="epsilon of two units is what one meets of the other's gates (leading order)",
)
def judge_deviation_law(dataset: xr.Dataset) -> Contest:
    law = dataset["gate_deviation_law"].where(dataset["gate_deviation_law"] != 0)
    granted = NEXT_ORDER * law / dataset.attrs["width"]
    return between(*(deviation(dataset, "gate_deviation", value, allowance=granted) for value in (law, 0.0 * law)))


def _across_blocks(dataset: xr.Dataset) -> Array:
    """Pairs of one unit of the stream whose directions begin in different depth units."""
    return np.asarray((dataset["on_one_unit"] == 1) & (dataset["across"] == 1))


CLAIMS = (
    Claim(
        id="A12",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 6, eq. 31-35",
        statement="overlaps obey the one-block identity, and grow in mean by (1 + c q / K)^l, at most e^(c q)",
        brief="overlaps obey the one-block identity and grow by at most e^(c q)",
        printed='"E[T_l(mu_1, mu_2) | F_(l-1)] = T_(l-1)(mu_1, mu_2) + (c/K) T_tilde_(l-1)(mu_1, mu_2) ... r_l <= r_K '
        '= (1 + cq/K)^K <= e^(cq)" (lemma 6, eq. 31, and corollary of appendix C.1)',
        hypotheses="blocks z + W sigma(z) with weights of variance c / (K n); gates independent of tangents up to o(1)",
        checks=checks(NAME, judge_one_block, judge_mean_law, judge_vanishing_deviation),
    ),
)

# What is printed.

WORDS = {
    "T": "overlap of two parameter directions, each DEPTH UNIT,UNIT (depth units: stem, blocks, tail).",
    "T~": "the same behind the gates.",
    "r T at birth": "the overlap where the later direction begins, times the growth r since.",
    "epsilon": "how far gates depend on tangents.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    top = dataset.isel(layer=-1)
    grown, bound = (float(top[name].max()) for name in ("growth", "growth_bound"))
    grows = f"by that law T grows {grown:.3g} times up to the top, at most e^(c q) = {bound:.3g} times"
    return answer([judge_mean_law(dataset)], f"{grows} (judged at width {dataset.attrs['width']})")


def _given_cells(at: xr.Dataset) -> list[str]:
    means = {"mean": at["overlap_given"], "mean_stderr": at["overlap_stderr_given"]}
    mean, _, off = against(xr.Dataset(means | {"mean_law": at["gated_overlap_below"]}), "mean", "law")
    return [predicted(at, "gated_overlap_below"), mean, off]


def _mean_cells(at: xr.Dataset) -> list[str]:
    excess, stderr = at["overlap_excess"], at["overlap_excess_stderr"]
    law = at["overlap"] - excess
    bound = (law / at["growth"] * at["growth_bound"]).where(at["on_one_unit"] == 1)
    difference = signed(float(excess / stderr)) if stderr > 1e-12 * at["overlap_scale"] else signed(0.0)
    return [drawn(at, "overlap"), number(float(law)), difference, number(float(bound))]


def _brief_table(dataset: xr.Dataset) -> Grid:
    """The law of the mean at two depth units."""
    last = dataset.sizes["layer"]
    columns = [Column(["mean T", "T by the law", "off (s.e.)", "most, by e^(c q)"], _mean_cells), Column("r", "growth")]
    title = (
        f"Mean T over {dataset.attrs['draws']} draws, and the law: r = (1 + c q/K)^blocks times T where the later "
        "direction begins"
    )
    made = Table("brief table", title, ["pair", "layer"], ["pair", "depth unit"], columns, known="overlap")
    return made(dataset.sel(layer=sorted({last - last // 2, last})))


GIVEN_TABLE = Table(
    "given table",
    "Given the net up to a depth unit, and the mean at the next",
    ["pair", "fixed"],
    ["pair", "depth unit"],
    [
        Column("T", "overlap_below"),
        Column("T (1 + c/K)", "ungated_below"),
        Column(["T + (c/K) T~", "mean T above", "s.e."], _given_cells),
    ],
)
UNIT_TABLE = Table(
    "unit table",
    "Everything redrawn; differences are paired, draw by draw",
    ["pair", "layer"],
    ["pair", "depth unit"],
    [
        Column(["mean T", "r T at birth", "s.e.", "e^(cq) bound"], _mean_cells),
        Column(["epsilon = E T~ - q E T", "law", "s.e."], lambda at: against(at, "gate_deviation", "law")),
    ],
    known="overlap",
)


def _width_tables(dataset: xr.Dataset) -> list[Grid]:
    """None for nets without gates."""
    if not has_gates(dataset):
        return []
    laws = width_slopes(dataset)

    def exponent(at: xr.Dataset) -> str:
        law = laws[str(at["pair"].values)]
        return fitted(law) if law else MISSING

    top = dataset.rename(gate_deviation_by_width="top", gate_deviation_stderr_by_width="top_stderr")
    title = f"n epsilon at the top, and the power of n that epsilon goes as ({MISSING}: not resolved)"
    columns = [*map(_width_column, dataset["width"].values), Column("exponent", exponent)]
    return [Table("width tables", title, ["pair"], "pair", columns)(top)]


def _width_column(width: int) -> Column:
    return Column(f"n = {width}", lambda at: drawn(at.sel(width=width), "top", width))


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="3 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Does the mean overlap T grow by (1 + c q/K) in every block, at most to e^(c q)?",
        answer=_answer,
        heading="{net}; {draws} draws, seed {seed}, {weights} weights\n"
        "T: how alike the stream moves along two parameter directions, each written DEPTH UNIT,UNIT",
        brief=_brief_table,
        steps=[
            ("--activation linear", "no gates, where the law of the mean is exact at any width"),
            ("--preset paper", "24 blocks of width 128, and 262,144 draws, in 20 minutes"),
        ],
        parts=[GIVEN_TABLE, UNIT_TABLE, _width_tables],
        findings=findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
