"""What is printed of a law: the verdicts, the sizes, and what the numbers say of exponent, limit and finite width."""

from collections.abc import Sequence
from math import isnan
from textwrap import shorten

import numpy as np
import xarray as xr

from meanfield.transfer import LAW_QUANTITIES
from meanfield.verification import Finding, Verdict, drawn_series, law_findings, span
from sims.common.report import SAYS, Report, folded
from sims.common.tables import Column, Group, Table, slope, value

LEVELS = {"exact": "exact", "mean_field": "mean field"}
LABEL_SCALE = "label_learning_rate_scale"
# Chances below this are called so rare that the points follow no power law.
RARE = 0.01
# Of why there is no theory the report says so many characters; the dataset has all of it.
LONGEST_REASON = 200


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """On the claim, or else on whether it is a power law; below, what the numbers say, line by line."""
    attrs, local = dataset.attrs, dataset["local_slope"].dropna("size").values
    sizes = span(drawn_series(dataset).value["size"])
    exponent = f"exponent {attrs['exponent']:.3f} +- {attrs['exponent_stderr']:.3f} over {attrs['along']} {sizes}"
    first = f"{SAYS[findings[0].verdict]}: {exponent}, slopes {local[0]:+.2f} .. {local[-1]:+.2f}."
    lines = [*_fit(dataset), _theory(dataset), _limit(dataset), _finite_width(dataset)]
    if "power" in attrs:
        refuted = ", REFUTED too" * (attrs["verdict"] == attrs["verdict_of_rival"] == Verdict.REFUTED)
        lines.append(f"Rival: {attrs['rival']}{refuted}; {attrs['power']}.")
    if lost := attrs["overflowed"]:
        lines.append(f"Left out: {attrs['along']} {lost}, where floats end or no rate moves a net.")
    return "\n".join([first, *(folded(line, "  ", 4) for line in lines)])


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


def _fit(dataset: xr.Dataset) -> list[str]:
    attrs, freedom = dataset.attrs, len(drawn_series(dataset).value) - 2
    scatter = "the points follow no power law" if attrs["p_value"] < RARE else "the points may lie on a power law"
    return [
        f"Fit: exponent {slope(attrs['exponent'], attrs['exponent_stderr'])}, chi-square {attrs['chi_square']:.3g} "
        f"with {freedom} degree{'s' * (freedom > 1)} of freedom, p = {attrs['p_value']:.2g}: {scatter}.",
        f"Drift: the local slope changes by {slope(attrs['drift'], attrs['drift_stderr'])} for a factor e in "
        f"{attrs['along']}, p = {attrs['drift_p_value']:.2g}.",
    ]


def _theory(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    missing = shorten(attrs["theory_missing"], LONGEST_REASON, placeholder=" ...")
    if not attrs["theory"]:
        label = f"{LABEL_SCALE}_mean_field"
        if attrs["quantity"] == LABEL_SCALE or label not in dataset or not np.isfinite(dataset[label]).all():
            return f"Theory: none, {missing}."
        drawn = drawn_series(dataset, LABEL_SCALE)
        exponent = drawn.slope_of("size", np.log(dataset[label].sel(size=drawn.value["size"]).values))
        return f"Theory: of the label term alone, exponent {exponent:+.3f} in mean field; {missing}."
    return f"Theory ({LEVELS[attrs['theory']]}): exponent {attrs['theory_exponent']:+.3f} at these sizes."


def _limit(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    if isnan(attrs["limit_exponent"]):
        return f"Limit: not known, {attrs['limit_missing']}."
    return f"Limit: {attrs['quantity_in_words']} goes as {attrs['along']}^{attrs['limit_exponent']:g} in the end."


def _finite_width(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    if isnan(attrs["finite_width"]):
        return f"Finite width: not known, {attrs['finite_width_missing']}."
    error = f" +- {attrs['finite_width_stderr']:.3f}" if attrs["finite_width_stderr"] else ""
    return f"Finite width: it moves the exponent by {attrs['finite_width']:+.3f}{error} ({attrs['finite_width_of']})."


TITLE = "Drawn by {along}; local slopes are from the size before"
SIZE_TABLE = Table("table of sizes", TITLE, ["size"], "size", _columns)

REPORT = Report(
    question="Does the quantity go with the size as claimed, and is it a power of the size at all?",
    answer=_answer,
    heading="{net}\n{quantity_in_words}, {draws} draws of each size, seed {seed}, loss {loss}",
    parts=[SIZE_TABLE],
    findings=law_findings,
    heavy=tuple(LAW_QUANTITIES),
    words={
        "local slope": "d ln y / d ln x between two sizes x.",
        "chi-square": "sum over sizes of the squared distance from the fit, in standard errors; p: how often a power "
        "law scatters as much.",
    },
)
