"""Fully-connected nets by layer: drawn against the exact expectation at finite width, and what it says of depth.

Draws with lazily revealed weights where these are cheaper and compares every layer's label, output and update energy
with the exact expectation (no allowance is needed). The exact spread of one draw says beforehand how many draws a layer
takes: where depth is of the order of the width (--preset square) no run has enough, and the report says so instead of
comparing. From the recursion alone: energies to depth 100000, the finite-width correction as a function of l/n, and the
output term over the label term against head, outputs and depth, with the slope of eta*(L).
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common import Array
from meanfield.execution import Run
from meanfield.nets import HEADS, MLP
from meanfield.simulation import Energies
from meanfield.theory import energies_by_depth, finite_width_excess, label_spread, output_share, relative_spread
from meanfield.verification import (
    LABEL_SPREAD,
    OVERLAP_SPREAD,
    PAPERS_EXPONENT,
    PRECISION,
    ROUNDING,
    UNCONVERGED,
    Contest,
    Finding,
    Judges,
    Ruling,
    Verdict,
    announced,
    computed,
    contest,
    draws_needed,
    draws_to_converge,
    effective_draws,
    exact_spread,
    is_converged,
    is_planned,
    largest_share,
    needing,
    span,
)
from sims.common.command import Option, Preset, chosen_arrays
from sims.common.datasets import Axes, Variable, attributes, over, predictions, seeded_run
from sims.common.report import ETA, Report, answer, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import (
    Column,
    Grid,
    Table,
    against,
    drawn,
    from_log,
    heavy_tail_notes,
    number,
    predicted,
    table,
    value,
)

NAME = "mlp_depth"
LISTED = "fully-connected nets against the exact expectation at finite width"

# What is asked for.

OPTIONS = (
    Option("depth", "hidden layers", int, metavar="L"),
    Option("width", "units of every layer", int, metavar="N"),
    Option("outputs", "outputs", int, 10, metavar="M"),
    Option("activation", "relu (default) or linear: those with an exact expectation", default="relu"),
    Option("head", "he (default), fan_in or mup", default="he"),
)
PRESETS = {
    "smoke": Preset("8 s", depth=6, width=64, draws=256),
    "default": Preset("8 s", depth=32, width=512, draws=4096),
    "square": Preset("90 s", depth=64, width=64, draws=4096),
    "paper": Preset("80 s", depth=128, width=1024, draws=4096),
}

# What is measured.

# Depths of the exact energies; widths, depths over width and layers of the finite-width correction.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
WIDTHS = (256, 1024, 4096, 16_384)
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
LAYERS = (8, 64, 512)

# Heads, outputs and depths of the output term's share; the width is so large that depth over width stays small.
SHARE_WIDTH = 10**6
SHARE_DEPTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)

# Small nets that are drawn for the ratio of output to label term.
SMALL_WIDTH = 256
SMALL: Axes = {"head": HEADS, "drawn_outputs": (1, 10, SMALL_WIDTH), "drawn_depth": (2, 8)}
TERMS = ("output_term", "label_term")

VARIABLES = (
    Variable("drawn_share", "output term over label term at the last layer, of small nets"),
    Variable("drawn_share_effective_draws", "draws that carry the means of both terms"),
    Variable("drawn_share_converged", "whether the means of both terms are converged"),
    Variable("drawn_share_largest_draw", "share of the largest draw in the mean of either term"),
    Variable("drawn_share_draws_needed", "draws that the label term's exact spread asks for"),
    Variable("drawn_share_draws", "draws that were made"),
    Variable("net_depth", "depth L of the nets that are computed alone"),
    Variable("energy", "update energy, or a part of it"),
    Variable("layers", "the last layer, or the mean over layers"),
    Variable("depth_over_width", "layer over width l/n"),
    Variable("fixed_layer", "layer at which widths are compared"),
    Variable("head", "law of the output weights' variance"),
    Variable("outputs", "outputs of the nets that are computed alone"),
    Variable("share_depth", "depth L of the nets whose output term is computed"),
    Variable("drawn_outputs", "outputs of the small nets"),
    Variable("drawn_depth", "depth L of the small nets"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net."""
    names = ("depth", "width", "outputs", "activation", "head")
    net = MLP(**{name: getattr(options, name) for name in names})
    _run(options, net).require_memory(options.workers.here)
    return {"net": net}


def _run(options: argparse.Namespace, net: MLP) -> Run:
    return Run(net, Energies(**chosen_arrays(options)), options.draws, options.seed)


def measure(options: argparse.Namespace, results: Results, net: MLP) -> xr.Dataset:
    """Draws with their exact expectation (NAME_exact) and mean field (NAME_mean_field), and all that is exact alone."""
    spreads = {LABEL_SPREAD: ("layer", label_spread(net)), OVERLAP_SPREAD: ("layer", relative_spread(net))}
    theory = [*predictions(net, ("exact", "mean_field")), xr.Dataset(spreads)]
    print(plan(theory[-1], options.draws), file=sys.stderr)
    small = [
        (replace(net, depth=depth, width=SMALL_WIDTH, outputs=outputs, head=head), f"{head} head, {outputs} outputs")
        for head, outputs, depth in product(*SMALL.values())
    ]
    energies = Energies(**chosen_arrays(options))
    runs = [seeded_run(options, each, energies, f"{label}, depth {each.depth}") for each, label in small]
    measured, *swept = results.draw([_run(options, net), *runs])
    shares = over(SMALL, [_share(run.net, of_net) for run, of_net in zip(runs, swept, strict=True)])
    parts = [measured, *theory, *_exact_only(net), shares]
    return xr.merge(parts, combine_attrs="override").assign_attrs(attributes(options, "width"), sweep_width=SMALL_WIDTH)


def plan(dataset: xr.Dataset, draws: int) -> str:
    """How many draws the deepest layer takes, and how far these draws go; known before any is made."""
    lines = []
    for letter, name in (("B", LABEL_SPREAD), ("F", OVERLAP_SPREAD)):
        spread = dataset[name].values
        needed = draws_needed(spread)
        enough = np.flatnonzero(needed <= draws) + 1
        reach = f"layers {layer_ranges(enough)}" if len(enough) else "no layer"
        words = (
            f"One draw of {letter} at layer {len(spread)} spreads by {spread[-1]:.3g} times its mean (exact): a mean "
            f"good to {PRECISION:.0%} takes {needed[-1]:.3g} draws. {draws} draws do for {reach}."
        )
        lines.append(folded(words, "", 2))
    return "\n".join(lines)


def layer_ranges(layers: ArrayLike) -> str:
    """Layer numbers in words: "3, 5 .. 9"."""
    numbers = np.asarray(layers)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} .. {run[-1]}" for run in runs)


def _exact_only(net: MLP) -> list[xr.Dataset]:
    """What needs no draws: energies by depth, the finite-width correction, the output term's share."""
    wide = replace(net, depth=1, width=SHARE_WIDTH)
    return [
        energies_by_depth(net, DEPTHS),
        finite_width_excess(net, WIDTHS, SHARES, LAYERS),
        output_share(wide, HEADS, (1, 10, SHARE_WIDTH), SHARE_DEPTHS),
    ]


def _share(net: MLP, measured: xr.Dataset) -> dict[str, float]:
    """Output over label term of one small net, drawn and exact, and how far its draws can be trusted."""
    spread = xr.Dataset({LABEL_SPREAD: ("layer", label_spread(net))})
    measured = xr.merge([measured, *predictions(net, ("exact",)), spread], combine_attrs="override")
    top = measured.isel(layer=-1)
    share, stderr = share_at_top(measured)
    return {
        "drawn_share": share,
        "drawn_share_stderr": stderr,
        "drawn_share_exact": float(np.exp(top["log_output_term_exact"] - top["log_label_term_exact"])),
        "drawn_share_effective_draws": effective_draws(top, *TERMS),
        "drawn_share_converged": float(all(bool(is_converged(top, name)) for name in TERMS)),
        "drawn_share_largest_draw": largest_share(top, *TERMS),
        "drawn_share_draws_needed": float(draws_needed(top[LABEL_SPREAD])),
        "drawn_share_draws": float(measured.attrs["draws"]),
    }


def share_at_top(measured: xr.Dataset) -> tuple[float, float]:
    """A/B at the last layer and its standard error, with the covariance of A and B.

    A and B rise and fall together from draw to draw. As S = A + B holds draw by draw, their covariance is half of what
    the variance of S has beyond theirs.
    """
    top = measured.isel(layer=-1)
    output, label = (float(top[name]) for name in TERMS)
    variances = [float(top[f"{name}_stderr"]) ** 2 for name in (*TERMS, "update_energy")]
    covariance = 0.5 * (variances[2] - variances[0] - variances[1])
    relative = variances[0] / output**2 + variances[1] / label**2 - 2 * covariance / (output * label)
    return output / label, output / label * float(np.sqrt(max(relative, 0.0)))


# What is claimed, and what decides it; the claims rest on runs of convolutional nets too (`sims.claims.catalogue`).

# A tenth of an exponent, whose rivals are half a unit or more apart.
TOLERANCE = 0.1
# What eta* falls as where the output term dominates, a factor of order l above the label term (mean_l A_l ~ L^4).
OUTPUT_EXPONENT = -2.0
# Depths at which nets of width 10^6 are deep and depth over width is still small.
DEEP_AND_WIDE = (100, 1000)

JUDGES = Judges("Zhang et al. 2026")
# Two quantities of one net, or one of many nets, share the budget of the run.
OF_DRAWS = Judges(findings=2)


@OF_DRAWS.decide(
    claim="{title} is the exact finite-width expectation",
    rival="infinite width{few}",
    measured="means over draws, at the layers that the draws suffice for",
    brief="Drawn {title} is its exact expectation at this width, layer by layer",
)
def judge_exact(dataset: xr.Dataset, name: str) -> Contest | Ruling:
    """The rival is the mean field of the overlap energy or of the label term.

    At leading order in 1/n and few outputs the output term equals the label term, so both have the same rival. Layers
    that the draws do not suffice for, by an exact spread, are left out; which ones does not depend on the draws, so
    that nothing is selected. Where a layer that was planned for does not converge all the same, the whole claim stays
    undecided: means of output terms fall short of such tails by many of their own errors.
    """
    words = {"title": name.replace("_", " "), "few": " and few outputs" if name == "output_term" else ""}
    planned = is_planned(dataset, name)
    kept, left_out = dataset.sel(layer=planned), dataset["layer"].values[~planned.values]
    if kept.sizes["layer"] == 0:
        least = float(draws_needed(exact_spread(dataset, name)).min())
        evidence = f"draws for {PRECISION:.0%} of the mean at no layer{needing(least, dataset.attrs['draws'])}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no layer is judged", needed=announced(least))
    note = f"; layers {layer_ranges(left_out)} left out, not converged" if len(left_out) else ""
    limit = "overlap_energy" if name == "overlap_energy" else "label_term"
    mean, stderr, exact, wide = (
        kept[column].values for column in (name, f"{name}_stderr", f"{name}_exact", f"{limit}_mean_field")
    )
    made = contest(mean, stderr, claimed=exact, rival=wide, allowance=ROUNDING * mean, note=note)
    if not is_converged(kept, name).all():
        lacking = _lacking(kept, name)
        evidence = f"{_missed(made)}; its mean has not converged{needing(lacking, kept.attrs['draws'])}{note}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, UNCONVERGED, needed=announced(lacking))
    return replace(made.carried_by(kept, name), words=words)


def _missed(made: Contest) -> str:
    return f"worst {made.claim.worst:.1f} s.e., rival {made.rival.worst:.1f} s.e."


def _lacking(measured: xr.Dataset, name: str) -> float:
    """The draws after which NAME would be converged at all of these layers."""
    made = float(measured.attrs["draws"])
    by_error = draws_needed(np.sqrt(made) * measured[f"{name}_stderr"] / measured[name]).max()
    by_share = draws_to_converge(largest_share(measured, name), made)
    return max(float(by_error), by_share)


@JUDGES.decide(
    claim="Finite channels correct F by O(1/n), uniformly in depth",
    rival="a function of l/n",
    source="section 3.3; Zhang et al. 2025, theorem 2",
    measured="the exact correction's power of n at fixed l/n",
    brief="Finite width corrects F by O(1/n), uniformly in depth (exact, n = 4096 and 16384)",
)
def judge_uniform_correction(dataset: xr.Dataset) -> Ruling:
    widest = dataset.isel(width=[-2, -1])
    fixed = float(_exponent_in_width(widest["excess_at_layer"])[0])
    exponents = _exponent_in_width(widest["excess_at_share"])
    largest = float(dataset["excess_at_share"].isel(width=-1).sel(depth_over_width=1.0))
    parts = [
        f"at l/n = {span(dataset['depth_over_width'])} the correction goes as n^({exponents.min():+.3f}) .. "
        f"n^({exponents.max():+.3f})",
        f"it is {largest:.1f} at l = n",
        f"at fixed l = {int(dataset['fixed_layer'][0])} it does go as n^({fixed:+.3f})",
    ]
    return computed(exponents, -1.0, 0.0, TOLERANCE, "; ".join(parts))


def _exponent_in_width(excess: xr.DataArray) -> Array:
    """Log-log slope in the width between two widths."""
    narrow, wide = (np.log(excess.isel(width=end).values) for end in (0, 1))
    return np.asarray((wide - narrow) / np.log(float(excess["width"][1] / excess["width"][0])))


@JUDGES.decide(
    claim="Output term is O(l^2) under a label term of order l^3, so A/B falls as 1/L",
    rival="A/B does not fall",
    source="eq. 21",
    measured="exact A/B of one output",
    brief="Output term A over label term B falls as 1/L (exact, width 10^6, one output)",
)
def judge_output_term_growth(dataset: xr.Dataset) -> Ruling:
    logs = dataset["log_output_over_label"].sel(head="he", outputs=1, share_depth=list(DEEP_AND_WIDE)).values
    exponent = float((logs[1] - logs[0]) / np.log(DEEP_AND_WIDE[1] / DEEP_AND_WIDE[0]))
    at_depth = dataset["log_output_over_label"].sel(outputs=1, share_depth=DEEP_AND_WIDE[0])
    by_head = ", ".join(f"{np.exp(float(at_depth.sel(head=head))):.2g} ({head})" for head in dataset["head"].values)
    evidence = f"one output, he head: A/B goes as L^({exponent:+.3f}); A/B at L = {DEEP_AND_WIDE[0]}: {by_head}"
    return computed(exponent, -1.0, 0.0, TOLERANCE, evidence)


@JUDGES.decide(
    claim="Output term is negligible with as many outputs as units: eta* falls as L^(-3/2)",
    rival="eta* falls as L^-2, as the output term has it",
    source="eq. 21",
    measured="local slopes of the exact eta*",
    brief="With 10^6 outputs A is negligible: eta* falls as L^(-3/2) (exact, width 10^6)",
)
def judge_negligible_output_term(dataset: xr.Dataset) -> Ruling:
    many = dataset.sel(head="he", outputs=dataset["outputs"].values.max())
    slopes = many["scale_slope"].sel(share_depth=list(DEEP_AND_WIDE)).values
    words = ", ".join(f"{slope:.3f} at L = {depth}" for slope, depth in zip(slopes, DEEP_AND_WIDE, strict=True))
    evidence = f"width 10^6, he head: local slope {words}"
    return computed(slopes, PAPERS_EXPONENT, OUTPUT_EXPONENT, TOLERANCE, evidence)


@OF_DRAWS.decide(
    claim="Output over label term at the last layer is the exact ratio, for every head and number of outputs",
    rival="that of one output, whatever their number",
    measured="A/B of all nets that the draws suffice for, by the exact spread of B",
    brief="Drawn A/B at the last layer is the exact ratio (width 256; all heads and outputs)",
)
def judge_drawn_share(dataset: xr.Dataset) -> Contest | Ruling:
    enough = (dataset["drawn_share_draws_needed"] <= dataset["drawn_share_draws"]).values
    if not enough.any():
        least = dataset.isel(dataset["drawn_share_draws_needed"].argmin(...))
        most = float(least["drawn_share_draws_needed"])
        evidence = f"no net has draws enough{needing(most, float(least['drawn_share_draws']))}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no net is judged", needed=announced(most))
    share, stderr, exact, converged, draws, effective = (
        dataset[f"drawn_share{end}"].values[enough]
        for end in ("", "_stderr", "_exact", "_converged", "_draws", "_effective_draws")
    )
    one_output = np.broadcast_to(dataset["drawn_share_exact"].isel(drawn_outputs=[0]).values, enough.shape)[enough]
    left_out = f"; {np.sum(~enough)} nets left out, not converged" if not enough.all() else ""
    counts = {"draws": float(draws.min()), "effective": float(effective.min())}
    made = contest(share, stderr, claimed=exact, rival=one_output, note=left_out, **counts)
    stray = int(np.sum(converged == 0))
    if stray:
        largest = dataset["drawn_share_largest_draw"].values[enough]
        # Effective draws as many as PRECISION asks for, and no draw that makes more than its share.
        by_error = draws * draws_needed(1.0) / effective
        needed = np.maximum(by_error, [draws_to_converge(*of) for of in zip(largest, draws, strict=True)])
        most = float(needed[converged == 0].max())
        evidence = f"{_missed(made)}; {stray} nets have not converged{needing(most, counts['draws'])}{left_out}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power=UNCONVERGED, needed=announced(most))
    return made


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of every term that is judged, of what is exact alone, and of the small nets."""
    of_terms = [judge_exact(dataset, name) for name in _judged(dataset)]
    return [*of_terms, *JUDGES.findings(dataset), judge_drawn_share(dataset)]


def _judged(dataset: xr.Dataset) -> list[str]:
    return [name for name in _terms(dataset) if name != "update_energy"]


def _terms(dataset: xr.Dataset) -> dict[str, str]:
    """What is held against the exact expectation; F too where it comes from the kernel itself and not from B."""
    return TITLES | (OVERLAP if dataset.attrs["overlap_method"] == "dense" else {})


# What is printed.

TITLES = {"label_term": "label term B", "output_term": "output term A", "update_energy": "update energy S"}
OVERLAP = {"overlap_energy": "overlap energy F"}
ENERGIES = {"update_energy": "S", "output_term": "A", "label_term": "B", "overlap_energy": "F"}
LEVELS = {"mean_field": "mean field", "law": "minima"}
SHOWN_DEPTHS = (10, 100, 1000, 10_000, 100_000)
NOT_CONVERGED = "not converged"
WORDS = {
    "exact": "the expectation at this width, by a recursion.",
    "spread": "standard deviation of one draw over its mean, exact.",
    "if log-normal": "the median that a log-normal S of this spread would have, exp(-sd^2 / 2) of its mean.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """What the terms that are held against the exact expectation say, which come first."""
    state = "" if all(is_converged(dataset, name).all() for name in TITLES) else f" ({NOT_CONVERGED})"
    exact = number(value(dataset, "learning_rate_scale_exact"))
    net = f"eta* of width {dataset.attrs['width']} and depth {dataset.sizes['layer']}"
    scales = f"{net} is {drawn(dataset, 'learning_rate_scale')} drawn{state} and {exact} exactly"
    return answer(findings[: len(_judged(dataset))], scales)


def _against_exact(at: xr.Dataset, name: str) -> list[str]:
    *energies, off = against(at, name, "exact")
    return [*energies, off if is_converged(at, name) else NOT_CONVERGED]


def _layer_columns(dataset: xr.Dataset) -> list[Column | list[Column]]:
    terms = [
        Column([title, "exact", "s.e."], partial(_against_exact, name=name)) for name, title in _terms(dataset).items()
    ]
    return [*terms, [Column("spread of B", LABEL_SPREAD), Column("spread of F", OVERLAP_SPREAD)]]


LAYER_TABLE = Table("layer table", "By layer", ["layer"], "layer", _layer_columns)


def _brief_table(dataset: xr.Dataset) -> Grid:
    """What the answer rests on, at three layers."""
    last = dataset.sizes["layer"]
    lines = []
    for name, layer in product(_judged(dataset), sorted({max(last // 4, 1), max(last // 2, 1), last})):
        at = dataset.sel(layer=layer)
        mean, exact, off = _against_exact(at, name)
        lines.append([_terms(dataset)[name], str(layer), mean, exact, off, predicted(at, f"{name}_mean_field")])
    title = f"Means over {dataset.attrs['draws']} draws of width {dataset.attrs['width']}; off: drawn minus exact"
    return table([["energy", "layer"], "drawn", "exact", "off (s.e.)", "infinite width"], lines, title)


def _notes(dataset: xr.Dataset) -> str:
    notes = [plan(dataset, dataset.attrs["draws"]), *filter(None, [heavy_tail_notes(dataset, _terms(dataset))])]
    left_out = dataset["layer"].values[~is_planned(dataset, "label_term").values]
    if len(left_out):
        notes.append(
            f"Layers {layer_ranges(left_out)}: B, A and S not converged. Draws rarer than this run can see make their "
            "means:\nvalues and errors there are too small in all likelihood, and no verdict rests on them."
        )
    return "\n".join(notes)


def _over_mean(at: xr.Dataset, quantile: int) -> str:
    return number(float(at["update_energy_quantile"][quantile] / at["update_energy_exact"]))


SINGLE_NETS = Table(
    "single net table",
    "Single nets: S of one net over the exact mean",
    ["layer"],
    "layer",
    [
        Column("1 in 10 below", partial(_over_mean, quantile=0)),
        Column("median", partial(_over_mean, quantile=1)),
        Column("if log-normal", lambda at: number(float(np.exp(-(at["update_energy_log_spread"] ** 2) / 2)))),
        Column("1 in 10 above", partial(_over_mean, quantile=2)),
        Column("sd of ln S", lambda at: predicted(at, "update_energy_log_spread")),
        Column("skewness of ln S", lambda at: predicted(at, "update_energy_log_skewness")),
    ],
)


def _single_net_table(dataset: xr.Dataset) -> list[str | Grid]:
    """How single nets lie about the exact mean: what the median net does where rare ones make the mean."""
    low, middle, high = map(number, dataset["learning_rate_scale_quantile"].values)
    note = f"eta* of single nets: {middle} in the median, between {low} and {high} in four of five; "
    note += f"{predicted(dataset, 'learning_rate_scale_exact')} by the exact mean of S."
    return [SINGLE_NETS(dataset), note]


def _energy_table(layers: str, place: str) -> Table:
    """A row for each depth. B over F is the same at every level, so that the predictions of F serve both."""

    def log(at: xr.Dataset, energy: str, level: str = "") -> float:
        return float(at[f"log_energy{level}"].sel(energy=energy, layers=layers))

    def column(header: str, power: float, energy: str, level: str = "") -> Column:
        return Column(header, lambda at: from_log(power * log(at, energy, level)))

    energies = [column(letter, 1, name) for name, letter in ENERGIES.items()]
    overlaps = [column(f"F, {words}", 1, "overlap_energy", f"_{level}") for level, words in LEVELS.items()]
    ratio = Column(
        "F / mean field", lambda at: from_log(log(at, "overlap_energy") - log(at, "overlap_energy", "_mean_field"))
    )
    scales = [
        column("eta*", -0.5, "update_energy"),
        column("eta* of B", -0.5, "label_term"),
        *(column(f"eta* of B, {words}", -0.5, "label_term", f"_{level}") for level, words in LEVELS.items()),
    ]
    return Table(
        "energy table",
        f"Exact energies {place}, width {{width}}, by depth of the net",
        ["net_depth"],
        "depth L",
        [energies, [*overlaps, ratio], *([scales] if layers == "mean" else [])],
    )


def _width_columns(dataset: xr.Dataset) -> list[Column | list[Column]]:
    def column(header: str, name: str, **place: Any) -> Column:
        return Column(header, lambda at: predicted(at.sel(place), name))

    shares = [
        column(f"l/n = {share:g}", "excess_at_share", depth_over_width=share)
        for share in dataset["depth_over_width"].values
    ]
    layers = [column(f"l = {layer}", "excess_at_layer", fixed_layer=layer) for layer in dataset["fixed_layer"].values]
    return [*shares, layers]


WIDTH_TABLE = Table(
    "width table",
    "Finite width: exact F_l over its leading order, less 1 (O(1/n) uniform in depth: columns fall as 1/n)",
    ["width"],
    "width n",
    _width_columns,
)


def _share_and_slope(at: xr.Dataset, depth: int) -> str:
    there = at.sel(share_depth=depth)
    return f"{from_log(value(there, 'log_output_over_label'))} ({value(there, 'scale_slope'):.3f})"


SHARE_TABLE = Table(
    "share table",
    lambda dataset: f"A/B at the last layer (local slope of eta*), exact, width {dataset['outputs'].values.max():g}",
    ["head", "outputs"],
    ["head", "outputs"],
    [Column(f"L = {depth}", partial(_share_and_slope, depth=depth)) for depth in SHOWN_DEPTHS],
)


def _drawn_share(at: xr.Dataset) -> list[str]:
    *shares, off = against(at, "drawn_share", "exact")
    return [*shares, off if at["drawn_share_converged"] else NOT_CONVERGED]


DRAWN_SHARES = Table(
    "drawn share table",
    lambda dataset: (
        f"A/B at the last layer, {int(np.max(dataset['drawn_share_draws']))} draws of nets of width "
        f"{dataset.attrs['sweep_width']}"
    ),
    ["head", "drawn_outputs", "drawn_depth"],
    ["head", "outputs", "depth"],
    [
        Column(["A/B, drawn", "exact", "s.e."], _drawn_share),
        Column("largest draw", lambda at: f"{value(at, 'drawn_share_largest_draw'):.0%}"),
    ],
)

STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="40 s",
    arrays=True,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=Report(
        question="Do drawn energies of nets of finite width agree with their exact expectation?",
        answer=_answer,
        heading=f"{{net}}; {{draws}} draws, seed {{seed}}, {{weights}} weights\n{ETA}",
        parts=[
            LAYER_TABLE,
            _notes,
            _single_net_table,
            _energy_table("last", "of the last layer"),
            _energy_table("mean", "averaged over layers, and eta* = (mean S)^(-1/2)"),
            WIDTH_TABLE,
            SHARE_TABLE,
            DRAWN_SHARES,
        ],
        findings=findings,
        brief=_brief_table,
        steps=[
            ("--head mup", "outputs that vanish with the width, so that the label term alone makes eta*"),
            ("--preset square", "as many layers as units, where no number of draws finds the mean"),
        ],
        words=WORDS,
    ),
)

if __name__ == "__main__":
    run_as_command(NAME)
