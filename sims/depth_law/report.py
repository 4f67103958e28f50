"""What is printed of a law: the verdicts, the sizes, and what the numbers say of exponent, limit and finite width."""

from collections.abc import Sequence
from math import isnan
from textwrap import shorten

import numpy as np
import xarray as xr

from meanfield.transfer import LAW_QUANTITIES
from meanfield.verification import Finding, Verdict, drawn_series, law_findings, span
from sims.common.report import SAYS, Report
from sims.common.tables import LINE, Column, Group, Table, slope, value

LEVELS = {"exact": "exact", "mean_field": "mean field"}
LABEL_SCALE = "label_learning_rate_scale"
# What the verdict on whether there is a power law says of it.
SERVES = {
    Verdict.CONFIRMED: "one power serves",
    Verdict.REFUTED: "no one power",
    Verdict.INCONCLUSIVE: "this run cannot tell whether one power serves",
}
# Chances below this are called so rare that the points follow no power law.
RARE = 0.01
# Characters of a line of the answer, which goes on below where it is long: one reason has room, and not one a size.
MOST = 6 * LINE


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """On the claim, or else on whether it is a power law; below, what the numbers say, in a line each."""
    attrs = dataset.attrs
    sizes = span(drawn_series(dataset).value["size"])
    exponent = f"exponent {attrs['exponent']:.3f} +- {attrs['exponent_stderr']:.3f} over {attrs['along']} {sizes}"
    left_out = f" ({attrs['overflowed']} left out, as floats end or nets do not move)" if attrs["overflowed"] else ""
    lines = [f"{SAYS[findings[0].verdict]}: {exponent}{left_out}."]
    if "power" in attrs:
        refuted = ", REFUTED too" * (attrs["verdict"] == attrs["verdict_of_rival"] == Verdict.REFUTED)
        lines.append(f"Rival: {attrs['rival']}{refuted}{_power('; ', '. ', attrs['power'])}.")
    lines += [_slopes(dataset, findings[-1].verdict), _theory(dataset), _finite_width(dataset)]
    return "\n  ".join(shorten(line, MOST, placeholder=" ... (--full)") for line in lines)


def _power(before: str, before_none: str, words: str) -> str:
    """What such draws refute, behind its start; where nothing, a sentence of its own that says why."""
    none, _, why = words.partition("none: ")
    return f"{before}{words}" if none or not why else f"{before_none}No power: {why}"


def _slopes(dataset: xr.Dataset, verdict: Verdict) -> str:
    """How they change, and what the verdict on that says of a power law."""
    attrs, local = dataset.attrs, dataset["local_slope"].dropna("size").values
    drift = slope(attrs["drift"], attrs["drift_stderr"])
    return (
        f"Slopes: {local[0]:+.2f} .. {local[-1]:+.2f}, changing by {drift} for a factor e; {SERVES[verdict]}, p = "
        f"{attrs['p_value']:.2g}."
    )


def _theory(dataset: xr.Dataset) -> str:
    """What it says at these sizes and beyond them, and of what."""
    attrs = dataset.attrs
    limit = "" if isnan(attrs["limit_exponent"]) else f"{attrs['limit_exponent']:+g} in the end"
    of_labels = "of the label term " if attrs["optimizer"] == "sgd" else ""
    if not attrs["theory"] and attrs["quantity"] != LABEL_SCALE and _is_known(dataset, f"{LABEL_SCALE}_mean_field"):
        drawn = drawn_series(dataset, LABEL_SCALE)
        logs = np.log(dataset[f"{LABEL_SCALE}_mean_field"].sel(size=drawn.value["size"]).values)
        said = f"Theory: of the label term alone, exponent {drawn.slope_of('size', logs):+.3f} in mean field"
        return f"{said}, {limit}." if limit else f"{said}."
    if not attrs["theory"]:
        none = f"none at these sizes, {attrs['theory_missing']}"
        return f"Theory: exponent {of_labels}{limit}; {none}." if limit else f"Theory: {none}."
    said = f"Theory ({LEVELS[attrs['theory']]}): exponent {attrs['theory_exponent']:+.3f} at these sizes"
    return f"{said}; {of_labels}{limit}." if limit else f"{said}."


def _is_known(dataset: xr.Dataset, name: str) -> bool:
    return name in dataset and bool(np.isfinite(dataset[name]).all())


def _finite_width(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    if isnan(attrs["finite_width"]):
        return f"Finite width: not known, {attrs['finite_width_missing']}."
    error = f" +- {attrs['finite_width_stderr']:.3f}" if attrs["finite_width_stderr"] else ""
    return f"Finite width: exponent moved by {attrs['finite_width']:+.3f}{error} ({attrs['finite_width_of']})."


def _heading(dataset: xr.Dataset) -> str:
    """Which nets, and what was drawn of them under whose step."""
    attrs = dataset.attrs
    words = [attrs["quantity_in_words"], f"{attrs['draws']} draws of each size", f"seed {attrs['seed']}"]
    words.append(f"loss {attrs['loss']}")
    if attrs["optimizer"] != "sgd":
        words.append(f"first step of {attrs['optimizer']}")
    if attrs["epsilon"]:
        words.append(f"epsilon {attrs['epsilon']:g}")
    if attrs["data"]:
        words.append(f"medians over draws on mini-batches of {attrs['batch_size']} of {attrs['data']}")
    return "\n".join(["{net}", ", ".join(words)])


def _columns(dataset: xr.Dataset) -> Sequence[Group]:
    attrs, names = dataset.attrs, [dataset.attrs["quantity"]]
    if not attrs["theory"] and f"{LABEL_SCALE}_mean_field" in dataset:
        names.append(LABEL_SCALE)
    columns: list[Group] = []
    for name in names:
        words = attrs["quantity_in_words"] if name == attrs["quantity"] else "of the label term"
        columns.append(Column(words, name))
        levels = [level for level in LEVELS if f"{name}_{level}" in dataset]
        columns += [Column(LEVELS[level], f"{name}_{level}") for level in levels]
    columns.append(Column("local slope", lambda at: slope(value(at, "local_slope"), value(at, "local_slope_stderr"))))
    if "local_slope_theory" in dataset:
        columns.append(Column("in theory", "local_slope_theory"))
    return columns


def _fit(dataset: xr.Dataset) -> str:
    """What has no room in the answer: the fit in full, and why there is no theory, or no limit."""
    attrs, freedom = dataset.attrs, len(drawn_series(dataset).value) - 2
    scatter = "the points follow no power law" if attrs["p_value"] < RARE else "the points may lie on a power law"
    lines = [
        f"Fit: exponent {slope(attrs['exponent'], attrs['exponent_stderr'])}, chi-square {attrs['chi_square']:.3g} "
        f"with {freedom} degree{'s' * (freedom > 1)} of freedom, p = {attrs['p_value']:.2g}: {scatter}. The drift "
        f"of the local slope is 0 with p = {attrs['drift_p_value']:.2g}."
    ]
    if "power" in attrs:
        lines.append(f"{_power('Power: ', '', attrs['power'])}.")
    if attrs["theory_missing"]:
        lines.append(f"No theory of {attrs['quantity_in_words']}: {attrs['theory_missing']}.")
    if attrs["limit_missing"]:
        lines.append(f"No limit of the exponent: {attrs['limit_missing']}.")
    return "\n".join(lines)


TITLE = "Drawn by {along}; local slopes are from the size before"
SIZE_TABLE = Table("table of sizes", TITLE, ["size"], "size", _columns)

REPORT = Report(
    question="Does the quantity go with the size as claimed, and is it a power of the size at all?",
    answer=_answer,
    heading=_heading,
    parts=[SIZE_TABLE, _fit],
    findings=law_findings,
    heavy=tuple(LAW_QUANTITIES),
    words={
        "local slope": "d ln y / d ln x between two sizes x.",
        "Slopes": "the local slopes of the first two sizes and of the last two.",
        "chi-square": "sum over sizes of the squared distance from the fit, in standard errors; p: how often a power "
        "law scatters as much.",
    },
)
