"""The printed report on learning-rate scales: by depth, fitted slopes beside measured ones, transfer, verdicts."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import fit_power_law, require_count
from meanfield.nets import ResidualConvNet, ResidualMLP, Transformer
from meanfield.theory import learning_rate_exponent
from meanfield.transfer import RIVALS, RULES, OneStep, depth_over_width
from meanfield.verification import (
    COMMON_SWEEP,
    PAPERS_EXPONENT,
    Finding,
    judged_slopes,
    measured_slopes,
    printed_exponents,
    span,
)
from sims.common.report import ETA, Document, Report, answer, folded
from sims.common.tables import MISSING, Grid, exponents, fraction, from_log, measured, number, table
from sims.common.training_data import training_data
from sims.learning_rate_scale.claims import (
    findings,
    fitted_law,
    judge_power_law_in_use,
    law_of,
    plain_families,
    printed_for,
    residual_families,
    scale_of,
    slopes_of,
    swept_depths,
)
from sims.learning_rate_scale.families import FACTORS, SHOWN_DEPTHS, STARTS, on_data, served_as

# Depth from which a net reaches the depths of some measured slope.
LEAST_DEPTH = min(slope.depths[-1] for slope in measured_slopes())
# A local slope beyond which eta* falls exponentially.
EXPONENTIAL = 10.0
# What stands in for the papers' ResNets: blocks of one layer, initialised with variance 1/K.
RESNET = "residual init k=1"

WORDS = {
    "local slope": "d ln eta* / d ln L at one depth.",
    "init": "residual nets initialised with variance 1/K; multiplier_sqrt, multiplier_linear: with branches multiplied "
    "by K^(-1/2), 1/K; k: layers of a branch.",
    "looped": "one matrix for all steps; deep: one for each; linear, sqrt: under eps = 1/L, L^(-1/2).",
}
PLAIN_TITLE = "eta*(L) / eta*(1) of the label term (local slope), mean field; last: exact, output term included"
RESIDUAL_TITLE = "The same of residual nets by the number of blocks, without plain layers, ReLU"
OWN_LAWS = "The same of residual nets and loops, by the law of each, L^x with x behind its name"
TRANSFORMER_TITLE = "The same of Transformers by the number of blocks (2 depth units each), 16 white tokens"
LOOP_TITLE = "Loops: eta(L) / eta(1) that keeps |dh_L| under one update fixed (local slope), mean field"

NOTE = (
    "Table 1: mean over CIFAR-10, CIFAR-100 and ImageNet, its scatter as error; its depths are not printed, 3 .. 30 "
    "stands in. Tables 5, 6: fits through the rates that they print (table 5 at effective depths D + 1, from which its "
    "scaled rates follow). ViTs and audio nets are none of the families here, and the papers' ResNets have plain "
    "layers too."
)
LOOP_NOTE = (
    "Updates of isotropic signs. With a matrix for every step (deep) their changes add up in squares, hence "
    "L^(alpha - 1/2); the L^(alpha - 1) that Wang et al. 2026 print for stacks is that of updates whose changes all "
    "point one way."
)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    deepest = f"local slope {slopes_of(dataset, 'mlp')[-1]:.3f}"
    if COMMON_SWEEP not in swept_depths(dataset):
        return f"Too shallow for those depths: {deepest} at L = {_deepest(dataset)} (ReLU MLPs, mean field)."
    fitted = fitted_law(dataset, "mlp", COMMON_SWEEP).exponent
    at = f"the mean field's slope is {fitted:.3f} over depths {span(COMMON_SWEEP)}, its {deepest} at"
    return answer([judge_power_law_in_use(dataset)], f"{at} L = {_deepest(dataset)} (ReLU MLPs)")


def _deepest(dataset: xr.Dataset) -> int:
    return int(dataset["depth"][-1])


def _loops(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["loop"].values]


def _transformers(dataset: xr.Dataset) -> list[str]:
    return [str(name) for name in dataset["transformer"].values]


def _with_power(dataset: xr.Dataset) -> list[str]:
    """Residual families and loops whose scale tends to a power of the depth."""
    names = [*residual_families(dataset), *_loops(dataset)]
    return [name for name in names if np.isfinite(law_of(dataset, name))]


def _short(name: str) -> str:
    """A family's name under a heading that says the rest."""
    return name.removeprefix("residual ")


def _scale_table(
    dataset: xr.Dataset,
    named: Callable[[xr.Dataset], list[str]],
    title: str,
    *,
    unit: str = "depth",
    exact: bool = False,
) -> Grid:
    columns = {name: (scale_of(dataset, name).values, slopes_of(dataset, name)) for name in named(dataset)}
    logs, exact_slopes = (dataset[name].to_series() for name in ("log_learning_rate_scale", "exact_slope"))
    lines = []
    for depth in (depth for depth in SHOWN_DEPTHS if depth <= _deepest(dataset)):
        at = int(np.searchsorted(dataset["depth"].values, depth))
        cells = [f"{scale[at] / scale[0]:.4g} ({_slope(slopes[at])})" for scale, slopes in columns.values()]
        if exact:
            cells.append(f"{from_log(logs[depth] - logs[1])} ({_slope(exact_slopes[depth])})")
        lines.append([str(depth), *cells])
    return table([unit, *map(_short, columns), *(["mlp exact"] if exact else [])], lines, title)


def _beside_trained(dataset: xr.Dataset) -> list[str | Grid]:
    """Slopes over depths of trained nets, where the run reaches such."""
    if _deepest(dataset) < LEAST_DEPTH:
        return []
    return [_law_table(dataset), _slope_table(dataset), NOTE]


def _law_table(dataset: xr.Dataset) -> Grid:
    """Slopes that a fit finds, the local one at the end, the law, and what the papers print, by family."""
    swept, lines = swept_depths(dataset), []
    for name in (*plain_families(dataset), *residual_families(dataset), *_loops(dataset)):
        slopes = [fitted_law(dataset, name, depths).exponent for depths in swept] + [slopes_of(dataset, name)[-1]]
        law = law_of(dataset, name)
        last = ["exponential" if np.isnan(law) else fraction(law), exponents(printed_for(dataset, name))]
        lines.append([name, *map(_slope, slopes), *last])
    header = ["fit over", *map(span, swept), [f"at {_deepest(dataset)}", "law", "papers"]]
    return table(header, lines, "Slopes of eta*(L) in theory: fitted over depths of the papers' sweeps, and far down")


def _brief_table(dataset: xr.Dataset) -> Grid:
    """Slopes of plain nets in theory over the depths of the papers' sweeps, and those that trained nets showed."""
    swept, lines = swept_depths(dataset), []
    for name in plain_families(dataset):
        slopes = [fitted_law(dataset, name, depths).exponent for depths in swept] + [slopes_of(dataset, name)[-1]]
        lines.append([name, *map(_slope, slopes), fraction(law_of(dataset, name))])
    trained = {slope.depths: measured(slope.slope, slope.stderr) for slope in judged_slopes()}
    if swept:
        row = (trained.get(depths, MISSING) for depths in swept)
        lines.append(["tuned rates", *row, MISSING, MISSING])
    header = ["net", *(f"L = {span(depths)}" for depths in swept), f"local, L = {_deepest(dataset)}", "limit"]
    title = "Slope of the label term's eta*(L), fitted to the mean field; last row: tuned (Zhang et al. 2026)"
    return table(header, lines, title)


def _slope_table(dataset: xr.Dataset) -> Grid:
    """Measured slopes beside those that a fit finds in theory over the same depths."""
    lines = []
    for tuned in (slope for slope in measured_slopes() if slope.depths in swept_depths(dataset)):
        exact = np.exp(dataset["log_learning_rate_scale"].sel(exact_depth=list(tuned.depths)).values)
        plain, resnet = (fitted_law(dataset, name, tuned.depths).exponent for name in ("mlp", RESNET))
        slopes = [f"{slope:.3f}" for slope in (plain, fit_power_law(tuned.depths, exact).exponent, resnet)]
        differences = [f"{tuned.slope - rival:+.3f}" for rival in (plain, PAPERS_EXPONENT)]
        lines.append([tuned.source, span(tuned.depths), measured(tuned.slope, tuned.stderr), *slopes, *differences])
    less = ["less mlp", "less -3/2"]
    header = [["slope of tuned rates", "depths"], "measured", ["mlp", "mlp exact", RESNET], less]
    return table(header, lines, "Slopes that trained nets showed, and that a fit finds in theory over the same depths")


def _transfer_table(dataset: xr.Dataset, named: Callable[[xr.Dataset], list[str]], shared: float | None = None) -> Grid:
    """How far a power law, one for all or each family's own, misses a rate that the finite-depth scale carries."""
    deepest, names, lines = _deepest(dataset), named(dataset), []
    scales, place = {name: scale_of(dataset, name).values for name in names}, dataset.get_index("depth").get_loc
    laws = {name: law_of(dataset, name) if shared is None else shared for name in names}
    for start in (depth for depth in STARTS if depth < deepest):
        for end in [*(start * factor for factor in FACTORS if start * factor < deepest), deepest]:
            finite = {name: scale[place(end)] / scale[place(start)] for name, scale in scales.items()}
            cells = [f"{finite[name] / (end / start) ** laws[name] - 1:+.1%}" for name in names]
            power = [] if shared is None else [number((end / start) ** shared)]
            lines.append([str(start), str(end), *power, *cells])
    if shared is None:
        header, title = [f"{_short(name)}: {fraction(laws[name])}" for name in names], OWN_LAWS
        return table([["from L0", "to L"], *header], lines, title)
    title = "Transfer: rate by the finite-depth rule over rate by the power law, less 1 (label term, mean field)"
    return table([["from L0", "to L"], f"(L/L0)^({fraction(shared)})", *names], lines, title)


def _slope(slope: float) -> str:
    """Three decimals; of steep ones, which fall exponentially and are less certain on wide steps of depth, one."""
    return f"{slope:.3f}" if abs(slope) < EXPONENTIAL else f"{slope:.1f}"


REPORT = Report(
    question="Is eta*(L) of plain nets the power law L^(-3/2) at the depths of common nets?",
    answer=_answer,
    heading="Mean field, no draws. cnn: rings of 32 sites (1d), grids of 16 x 16 (2d), 3 taps an axis; residual: "
    "branches of k layers, of variance 1/K (init), or times K^(-1/2) (multiplier_sqrt), 1/K (multiplier_linear)\n"
    f"{ETA}",
    brief=_brief_table,
    steps=[
        ("--transfer 0.1 --from 12 --to 48", "carry a rate tuned at depth 12 to depth 48 by this law"),
        ("--preset paper", "theory to 3,000 layers"),
    ],
    parts=[
        partial(_scale_table, named=plain_families, title=PLAIN_TITLE, exact=True),
        partial(_scale_table, named=residual_families, title=RESIDUAL_TITLE, unit="blocks"),
        partial(_scale_table, named=_transformers, title=TRANSFORMER_TITLE, unit="blocks"),
        partial(_scale_table, named=_loops, title=LOOP_TITLE, unit="steps"),
        LOOP_NOTE,
        _beside_trained,
        partial(_transfer_table, named=plain_families, shared=PAPERS_EXPONENT),
        partial(_transfer_table, named=_with_power),
    ],
    findings=findings,
    words=WORDS,
)


# Fields of a spec that say what the net is, in the order of a sentence, and those that only some families have.
SHOWN_FIELDS = ("width", "channels", "grid", "kernel", "padding", "activation", "head", "readout", "outputs", "inputs")
OF_FAMILIES = (
    "block_depth",
    "stem",
    "input_width",
    "input_channels",
    "scaling",
    "alpha",
    "tied",
    "weight_variance",
    "heads",
    "tokens",
    "ffn",
    "norm",
)


def carried(options: argparse.Namespace) -> str:
    """The report on the rate that the options ask for, with all that should be known of it."""
    start = vars(options)["from"]
    for name, depth in (("--from", start), ("--to", options.to)):
        if depth is None:
            raise ValueError(f"--transfer {options.transfer:g} is given without {name}, a depth; it needs both")
        require_count(name, depth, why="a depth")
    net = served_as(options.family, options.width, options.outputs)
    net = net if options.stem is None else _on_stem(net, options)
    how: dict[str, Any] = {"optimizer": options.optimizer, "of": options.of}
    if options.data is not None:
        net = on_data(net, options.data)
        how |= {"data": training_data(options.data, net), "batch_size": options.batch_size}
    elif options.batch_size is not None:
        raise ValueError(f"--batch-size is {options.batch_size}, but no data are given; give them with --data")
    how |= {} if options.rule is None else {"rule": options.rule}
    return text(options.transfer, net, start, options.to, options.family, **how)


def _on_stem(net: Any, options: argparse.Namespace) -> Any:
    """The residual net with a plain layer below its blocks."""
    require_count("--stem", options.stem, why="channels that a stem reads")
    if not isinstance(net, ResidualMLP | ResidualConvNet):
        raise ValueError(f"--stem {options.stem} is for residual nets, not for --family {options.family!r}; drop it")
    return replace(net, stem=1, **{net.INPUT: options.stem})


def text(rate: float, net: Any, start: int, end: int, family: str, **how: Any) -> str:
    """The report on one carried rate, the answer first; ``how`` is that of `meanfield.explain_transfer`."""
    transfer = mf.explain_transfer(rate, replace(net, depth=start), replace(net, depth=end), **how)
    parts: list[str | Grid] = [_rule_table(rate, net, start, end, transfer)]
    if transfer.interval is not None:
        low, high = transfer.interval
        parts.append(f"Four in five nets of depth {end} would take a rate between {low:.3g} and {high:.3g}.")
    share = depth_over_width(replace(net, depth=end))
    parts += [
        f"Net: {_described(net)}; depth over width {share:.2g} at depth {end}.",
        "\n".join(["Premises:", *(folded(sentence, "- ", 2) for sentence in transfer.premises)]),
        *(f"WARNING: {sentence}" for sentence in transfer.warnings),
    ]
    under = f" under {transfer.optimizer}" if transfer.rule == OneStep.name else ""
    question = f"Which learning rate at depth {end}{under}, if {rate:g} was tuned at depth {start} ({family})?"
    carried = f"{transfer.rate:.4g}{_error(transfer)}, by rule {transfer.rule!r}: {transfer.reason}."
    return Document(question=question, answer=carried, parts=parts).text()


def _error(transfer: mf.Transfer) -> str:
    return f" (+- {transfer.error:.0%}, from draws)" if transfer.error else ""


def _rule_table(rate: float, net: Any, start: int, end: int, transfer: mf.Transfer) -> Grid:
    """The rates of all rules, and, of descent, of the exponents that papers print for this family."""
    header = ["rule", "eta* by", "learning rate"]
    if transfer.rule == OneStep.name:
        return table(header, [[transfer.rule, transfer.reason, f"{transfer.rate:.4g}"]])
    powers = not isinstance(net, Transformer)
    law = learning_rate_exponent(net) if powers else nan
    titles = {name: (RULES | RIVALS)[name].title for name in transfer.rates}
    if "power_law" in titles:
        titles["power_law"] += f" L^({fraction(law)})"
    rows = [[name, titles[name], f"{carried:.4g}"] for name, carried in transfer.rates.items()]
    if isnan(law):
        why = "an exponential of the depth, or of a power of it" if powers else "no power of common depths"
        rows.append(["power_law", f"none holds: eta* is {why}", "-"])
    printed = {paper: exponent for paper, exponent in printed_exponents(net).items() if exponent != law}
    for paper, exponent in printed.items():
        rows.append(["", f"L^({fraction(exponent)}) ({paper})", f"{rate * (end / start) ** exponent:.4g}"])
    return table(header, rows)


def _described(net: Any) -> str:
    """The net in words of its spec; depth is the question's."""
    spec = net.describe()
    named = [f"{name} {spec[name]}" for name in (*SHOWN_FIELDS, *OF_FAMILIES) if spec.get(name) is not None]
    return f"{spec['family']} of " + ", ".join(named)
