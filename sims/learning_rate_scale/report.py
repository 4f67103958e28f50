"""The printed report on learning-rate scales: by depth, fitted slopes beside measured ones, transfer, verdicts."""

from collections.abc import Iterable

import numpy as np
import xarray as xr

from meanfield.common import Array, fit_power_law
from meanfield.verification import (
    COMMON_SWEEP,
    PAPERS_EXPONENT,
    Finding,
    depth_laws,
    family_laws,
    fitted_law,
    judged_slopes,
    local_slopes,
    measured_slopes,
    plain_families,
    scale_of,
)
from sims.common.report import answer, report
from sims.common.tables import exponents, fraction, from_log, measured, number, table
from sims.learning_rate_scale.measure import FACTORS, SHOWN, STARTS

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
QUESTION = "Is eta*(L) of plain nets the power law L^(-3/2) at the depths of common nets?"
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


def text(dataset: xr.Dataset) -> str:
    """The whole report."""
    plain, residual, loops = _groups(dataset)
    reached = [_law_table(dataset), _slope_table(dataset), NOTE] if _deepest(dataset) >= LEAST_DEPTH else []
    powers = [name for name in (*residual, *loops) if np.isfinite(family_laws.law_of(dataset, name))]
    parts = [
        _scale_table(dataset, plain, PLAIN_TITLE, exact=True),
        _scale_table(dataset, residual, RESIDUAL_TITLE, unit="blocks"),
        _scale_table(dataset, list(map(str, dataset["transformer"].values)), TRANSFORMER_TITLE, unit="blocks"),
        _scale_table(dataset, loops, LOOP_TITLE, unit="steps"),
        LOOP_NOTE,
        *reached,
        _transfer_table(dataset, plain, PAPERS_EXPONENT),
        _transfer_table(dataset, powers),
    ]
    return report(QUESTION, _answer(dataset), parts, _findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    deepest = f"local slope {_slopes_of(dataset, 'mlp')[-1]:.3f}"
    if COMMON_SWEEP not in _ranges(dataset):
        return f"Too shallow for those depths: {deepest} at L = {_deepest(dataset)}."
    fitted = fitted_law(dataset, "mlp", COMMON_SWEEP).exponent
    at = f"slope {fitted:.3f} over {_span(COMMON_SWEEP)}, {deepest} at L = {_deepest(dataset)}"
    return answer([depth_laws.judge_power_law_in_use(dataset)], at)


def _groups(dataset: xr.Dataset) -> tuple[list[str], list[str], list[str]]:
    """Plain families, residual ones, loops."""
    plain = plain_families(dataset)
    residual = [str(name) for name in dataset["family"].values if name not in plain]
    return plain, residual, [str(name) for name in dataset["loop"].values]


def _deepest(dataset: xr.Dataset) -> int:
    return int(dataset["depth"][-1])


def _short(name: str) -> str:
    """A family's name under a heading that says the rest."""
    return name.removeprefix("residual ")


def _slopes_of(dataset: xr.Dataset, name: str) -> Array:
    """Local slopes of a family's scale at every depth."""
    return local_slopes(dataset["depth"].values, scale_of(dataset, name).values)


def _scale_table(
    dataset: xr.Dataset, names: Iterable[str], title: str, *, unit: str = "depth", exact: bool = False
) -> str:
    columns = {name: (scale_of(dataset, name).values, _slopes_of(dataset, name)) for name in names}
    logs, exact_slopes = (dataset[name].to_series() for name in ("log_learning_rate_scale", "exact_slope"))
    lines = []
    for depth in (depth for depth in SHOWN if depth <= _deepest(dataset)):
        at = int(np.searchsorted(dataset["depth"].values, depth))
        cells = [f"{scale[at] / scale[0]:.4g} ({_slope(slopes[at])})" for scale, slopes in columns.values()]
        if exact:
            cells.append(f"{from_log(logs[depth] - logs[1])} ({_slope(exact_slopes[depth])})")
        lines.append([str(depth), *cells])
    return table([unit, *map(_short, columns), *(["mlp exact"] if exact else [])], lines, title)


def _ranges(dataset: xr.Dataset) -> list[tuple[int, ...]]:
    """The depths of all measured slopes, without repetition, as far as the run reaches them."""
    ranges = dict.fromkeys(slope.depths for slope in measured_slopes())
    return [depths for depths in ranges if max(depths) <= _deepest(dataset)]


def _law_table(dataset: xr.Dataset) -> str:
    """Slopes that a fit finds, the local one at the end, the law, and what the papers print, by family."""
    ranges, lines = _ranges(dataset), []
    for name in (name for group in _groups(dataset) for name in group):
        slopes = [fitted_law(dataset, name, depths).exponent for depths in ranges] + [_slopes_of(dataset, name)[-1]]
        law, printed = family_laws.law_of(dataset, name), family_laws.printed_for(dataset, name)
        last = ["exponential" if np.isnan(law) else fraction(law), exponents(printed)]
        lines.append([name, *map(_slope, slopes), *last])
    header = ["fit over", *map(_span, ranges), [f"at {_deepest(dataset)}", "law", "papers"]]
    return table(header, lines, "Slopes of eta*(L) in theory: fitted over depths of the papers' sweeps, and far down")


def _slope_table(dataset: xr.Dataset) -> str:
    """Measured slopes beside those that a fit finds in theory over the same depths."""
    lines = []
    for tuned in (slope for slope in measured_slopes() if slope.depths in _ranges(dataset)):
        exact = np.exp(dataset["log_learning_rate_scale"].sel(exact_depth=list(tuned.depths)).values)
        plain, resnet = (fitted_law(dataset, name, tuned.depths).exponent for name in ("mlp", RESNET))
        slopes = [f"{slope:.3f}" for slope in (plain, fit_power_law(tuned.depths, exact).exponent, resnet)]
        differences = [f"{tuned.slope - rival:+.3f}" for rival in (plain, PAPERS_EXPONENT)]
        lines.append([tuned.source, _span(tuned.depths), measured(tuned.slope, tuned.stderr), *slopes, *differences])
    less = ["less mlp", "less -3/2"]
    header = [["slope of tuned rates", "depths"], "measured", ["mlp", "mlp exact", RESNET], less]
    return table(header, lines, "Slopes that trained nets showed, and that a fit finds in theory over the same depths")


def _transfer_table(dataset: xr.Dataset, names: list[str], shared: float | None = None) -> str:
    """How far a power law, one for all or each family's own, misses a rate that the finite-depth scale carries."""
    deepest, lines = _deepest(dataset), []
    scales, place = {name: scale_of(dataset, name).values for name in names}, dataset.get_index("depth").get_loc
    laws = {name: family_laws.law_of(dataset, name) if shared is None else shared for name in names}
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


def _span(depths: tuple[int, ...]) -> str:
    return f"{depths[0]} .. {depths[-1]}"


def _findings(dataset: xr.Dataset) -> list[Finding]:
    judged = judged_slopes()
    findings = [depth_laws.judge_asymptote(dataset)]
    if COMMON_SWEEP in _ranges(dataset):
        findings.append(depth_laws.judge_power_law_in_use(dataset))
    findings += [depth_laws.judge_measured_slope(slope, len(judged)) for slope in judged]
    return [*findings, *family_laws.findings(dataset)]
