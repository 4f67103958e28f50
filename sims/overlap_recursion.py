"""Overlaps of pairs of parameter directions, followed from the layer where they begin to the top.

A direction is one unit's weights, moved along that unit's incoming features; T_h is the mean over units of the product
of the two tangents of z^(h). All claims are of Zhang et al. 2026. Over redraws of the net: the mean of T_h, which lemma
1 says is conserved; the growth of its square against the exact recursion; the variance that each new layer adds (lemma
5: at most C0/C). Over redraws of the layers above a fixed one: the mean of T_h given z^(l), as lemma 1 is written.
Choose pairs with --pair.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.execution import Run
from meanfield.nets import MLP, DirectionPair
from meanfield.simulation import PairOverlaps
from meanfield.theory import GATES
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    between,
    checks,
    of_rival,
)
from sims.common.command import Option, Preset, chosen_of
from sims.common.datasets import Variable, suffixed
from sims.common.pairs import (
    OF_FIXED_NETS,
    PAIR,
    added_variance,
    added_variance_judge,
    added_variance_table,
    chosen_pairs,
    conditional_mean_judge,
    deviation,
    effective_overlap_draws,
    open_seed,
)
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, against, drawn, predicted

NAME = "overlap_recursion"
LISTED = "overlaps of parameter directions: what is conserved, and what grows"

# What is asked for.

OPTIONS = (
    Option("depth", "hidden layers", int, metavar="L"),
    Option("width", "units of every layer", int, metavar="N"),
    Option(
        "activation",
        "relu (default) or linear",
        default="relu",
        check=chosen_of(GATES, ", of a net whose overlaps are known exactly,"),
    ),
    PAIR,
    Option("fixed", "layer up to which the net is fixed (default: the pairs' own)", int, metavar="L"),
)
PRESETS = {
    "smoke": Preset("4 s", depth=5, width=32, draws=2048),
    "default": Preset("8 s", depth=12, width=128, draws=32768),
    "paper": Preset("4 min", depth=24, width=256, draws=131_072),
}

# What is measured.

# Widths of the layer above the fixed ones, over which the added variance should fall as 1/C.
WIDTH_FACTORS = (0.5, 1, 2, 4)

VARIABLES = (
    *OF_FIXED_NETS,
    Variable("squared_overlap_given", "squared overlap, the layers up to a fixed one given"),
    Variable("overlap_variance_given", "variance that a layer adds to the overlap, the layers up to a fixed one given"),
    Variable("overlap_innovation_given", "overlap less its mean given the layers below, above a fixed layer"),
    Variable("overlap_excess_given", "overlap less its first value, above a fixed layer"),
    Variable("gate_deviation_given", "how far gates depend on tangents, above a fixed layer"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net, the pairs, and the layer up to which the net is fixed in the conditional run."""
    net = MLP(depth=options.depth, width=options.width, activation=options.activation)
    pairs = chosen_pairs(net, options.pair)
    upper = max(layer for pair in pairs for layer, _ in pair)
    fixed = upper if options.fixed is None else options.fixed
    if not upper <= fixed < net.depth:
        allowed = f"{upper} .. {net.depth - 1}" if upper < net.depth else "none: a direction begins at the top layer"
        raise ValueError(f"--fixed is {fixed}; all pairs must have begun and a layer be left above; allowed: {allowed}")
    return {"net": net, "pairs": pairs, "fixed": fixed}


def measure(
    options: argparse.Namespace, results: Results, net: MLP, pairs: tuple[DirectionPair, ...], fixed: int
) -> xr.Dataset:
    """Everything redrawn, NAME, with NAME_exact; only what stands above the fixed layers, NAME_given; NAME_by_width."""
    below = net.channels_by_layer[1 : fixed + 1]
    widths = [max(1, round(options.width * factor)) for factor in WIDTH_FACTORS]
    varied = [replace(net, depth=fixed + 1, width=(*below, width)) for width in widths]
    # Dense and lazily revealed weights of a seed are different nets: one kind for all widths above the same layers.
    kind = PairOverlaps(pairs=pairs).settled(varied[0]).weights
    beyond = open_seed(varied[-1], pairs, fixed, options.seed, kind)
    # With all below fixed, overlaps spread far less: a quarter of the draws tells their means and variances.
    fewer = max(2, options.draws // 4)
    conditional = PairOverlaps(pairs=pairs, weights=kind, fixed_layers=fixed)
    runs = [Run(net, PairOverlaps(pairs=pairs), options.draws, options.seed)]
    runs += [Run(each, conditional, fewer, beyond) for each in (net, *varied)]
    free, given, *by_width = results.draw(runs)
    exact = mf.predict(net, level="exact", pairs=pairs)
    parts = [
        free,
        suffixed(exact, "exact", ["overlap", "squared_overlap", "overlap_variance"]),
        suffixed(given, "given"),
        added_variance(by_width, widths, fixed),
    ]
    return xr.merge(parts, combine_attrs="override").assign_attrs(fixed_layers=fixed, draws_given=fewer)


# What is claimed, and what decides it; claims on convolutional nets besides stand in `sims.claims.catalogue`.

# On all pairs of directions and all layers.
JUDGES = Judges("Zhang et al. 2026", effective=effective_overlap_draws)


@JUDGES.decide(
    claim="Mean overlap is conserved for directions of one layer, and steps to 1/(2 pi q n) for different layers",
    rival="mean overlap is conserved for every pair (Zhang et al. 2026, lemma 1, eq. 14)",
    measured="means of all pairs at all layers",
    brief="Mean T stays for directions of one layer, and steps to 1/(2 pi q n) for others",
)
def judge_mean(dataset: xr.Dataset) -> Contest:
    return _exact_or_as_it_begins(dataset, "overlap")


judge_conditional_mean = conditional_mean_judge(JUDGES)


@JUDGES.decide(
    claim="Mean squared overlap follows the exact recursion",
    rival="it stays as it begins",
    measured="means over draws of every pair at every layer",
)
def judge_square(dataset: xr.Dataset) -> Contest:
    return _exact_or_as_it_begins(dataset, "squared_overlap")


def _exact_or_as_it_begins(dataset: xr.Dataset, name: str) -> Contest:
    """A drawn mean against its exact value, and against the one at the first layer of every pair, at all its layers."""
    exact = dataset[f"{name}_exact"]
    begun = exact.notnull()
    first = exact.isel(layer=begun.argmax("layer")).drop_vars("layer").where(begun)
    return between(*(deviation(dataset, name, expected) for expected in (exact, first)))


judge_added_variance = added_variance_judge(JUDGES)


@JUDGES.decide(
    claim="E X^2, X one channel's share of the overlap T_h of a direction with itself, stays below one bound C_0 as "
    "layers are added: its logarithm's rise slows down, if only as for 1 - 1/l",
    rival="it rises in proportion to the depth, as in the exact recursion, which no bound survives",
    source="lemma 5, eq. 26",
    brief="E X^2, X one channel's share of T, stays below one bound C_0 at all depths",
    measured="ln E T_h^2, which rises as ln E X^2, over layers {layers}: the second rise less {share:.2g} times the "
    "first, which 1 - 1/l makes 0",
)
def judge_uniform_bound(dataset: xr.Dataset) -> Contest | Ruling:
    """Given the layers below, X is the square of a Gaussian, so that E X^2 = 3 E T_h^2 up to 1/n.

    Means of one sign add up in error at worst. Those of opposite sign are of the same draws, which are large together:
    a square is carried on in mean.
    """
    own = [pair for pair in map(str, dataset["pair"].values) if len(set(pair.split(":"))) == 1]
    last = int(dataset["layer"][-1])
    first = max(last // 4, 2)
    middle = max(last // 2, first + 1)
    if not own or last <= middle:
        evidence = "no direction is paired with itself over four layers in this run"
        return Ruling(Verdict.INCONCLUSIVE, evidence, {"layers": f"1 .. {last}", "share": 1.0}, "none: no such pair")
    at = dataset.sel(pair=own[0], layer=[first, middle, last])
    square, stderr, exact = (at[f"squared_overlap{end}"].values for end in ("", "_stderr", "_exact"))
    share = (1 / middle - 1 / last) / (1 / first - 1 / middle)
    weights = np.array([share, -1 - share, 1.0])
    slowing, theory = (float(weights @ np.log(values)) for values in (square, exact))
    relative = np.abs(weights) * stderr / square
    error = float(np.hypot(relative[0] + relative[2], relative[1]))
    claim, rival = Deviation(max(slowing, 0.0), error), Deviation(slowing - theory, error)
    rises = (np.diff(np.log(values)) for values in (square, exact))
    words = " and ".join(f"{rise:.3f} (exact {law:.3f})" for rise, law in zip(*rises, strict=True))
    made = Contest(claim, rival, apart=theory).carried_by(at, "squared_overlap").shared_in(at, "squared_overlap")
    layers = f"{first} .. {middle} and {middle} .. {last}"
    return made.saying(f"rises of {words}", layers=layers, share=share)


CLAIMS = (
    Claim(
        id="A11b",
        kind=Kind.PREMISE,
        source="Zhang et al. 2026, lemma 5, eq. 26",
        statement="its C_0 bounds E[X^2 given layer h - 1], X one channel's share of T_h, by one constant for all "
        "depths (judged: its mean over nets, E X^2, of a direction with itself, does not rise in proportion to depth)",
        brief="C_0 of the variance of overlaps is bounded by one constant for all depths",
        printed='"assume the channel-wise second moments are uniformly bounded at initialization: E[X_1^2 | F_(h-1)] '
        '<= C_0" (lemma 5, eq. 26); "depends only on C_0 (and not on depth)" (eq. 27)',
        hypotheses="it is one: lemma 5 assumes it; that one C_0 serves all layers is our reading of 'uniformly'",
        checks=checks(NAME, judge_uniform_bound),
        replaced_by="E X^2 = 3 E T^2 grows by a factor 1 + O(1/n) with every layer, as exp(5 l / n) for ReLU; bounded "
        "in depth only while L / n is, which is where corrections are a function of L / n",
        premise="the constant is taken for one of a layer; every layer multiplies it by 1 + O(1/n)",
    ),
)

# What is printed.

WORDS = {
    "T": "overlap of two parameter directions, each LAYER,UNIT; q for a direction with itself.",
    "exact": "the expectation at this width, by a recursion.",
    "gated T / q": "the overlap behind the gates of that layer, over q.",
}
TITLES = {"overlap": "mean T", "squared_overlap": "mean T^2", "overlap_variance": "Var(T | below)"}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    own, pairs = of_rival(judge_mean)(dataset), dataset["pair"].values
    exact = dataset["overlap_exact"].isel(pair=-1).dropna("layer")
    first, last = (f"{float(exact[end]):.3g} at layer {int(exact['layer'][end])}" for end in (0, -1))
    return answer([own], f"the exact mean T of the pair {pairs[-1]} is {first} and {last}")


LAYER_TABLE = Table(
    "layer table",
    "Everything redrawn",
    ["pair", "layer"],
    ["pair", "layer"],
    [Column([title, "exact", "s.e."], partial(against, name=name, level="exact")) for name, title in TITLES.items()],
    known="overlap",
)


def _brief_table(dataset: xr.Dataset) -> Grid:
    """Means of the overlap and of its square, where all pairs have begun and at the top."""
    names = list(TITLES.items())[:2]
    columns = [
        Column([title, "exact", "off (s.e.)"], partial(against, name=name, level="exact")) for name, title in names
    ]
    title = f"Means over {dataset.attrs['draws']} draws, and the exact expectation at this width"
    made = Table("brief table", title, ["pair", "layer"], ["pair", "layer"], columns, known="overlap")
    return made(dataset.sel(layer=sorted({int(dataset.attrs["fixed_layers"]), dataset.sizes["layer"]})))


def _given_columns(dataset: xr.Dataset) -> list[Column]:
    fixed, top = int(dataset.attrs["fixed_layers"]), int(dataset["layer"][-1])
    return [
        Column(f"T at layer {fixed}", lambda at: predicted(at.sel(layer=fixed), "overlap_given")),
        Column("gated T / q", lambda at: predicted(at.sel(layer=fixed), "gated_overlap_given")),
        *(Column(f"mean T at {layer}", partial(_mean_given, layer)) for layer in sorted({fixed + 1, top})),
    ]


def _mean_given(layer: int, at: xr.Dataset) -> str:
    return drawn(at.sel(layer=layer).rename(overlap_given="mean", overlap_stderr_given="mean_stderr"), "mean")


GIVEN_TABLE = Table(
    "given table",
    "Layers 1 .. {fixed_layers} and the input fixed, layers above redrawn",
    ["pair"],
    "pair",
    _given_columns,
)

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
        question="Is the mean overlap T of two parameter directions the same in every layer, for every pair?",
        answer=_answer,
        heading="{net}; {draws} draws, seed {seed}, {weights} weights\n"
        "T: how alike a layer moves along two parameter directions, each written LAYER,UNIT",
        brief=_brief_table,
        steps=[
            ("--activation linear", "no gates: is it they that let mean overlaps step?"),
            ("--pair 1,1:3,1", "directions that begin two layers apart"),
        ],
        parts=[LAYER_TABLE, GIVEN_TABLE, added_variance_table],
        findings=JUDGES.findings,
        words=WORDS,
    ),
    claims=CLAIMS,
)

if __name__ == "__main__":
    run_as_command(NAME)
