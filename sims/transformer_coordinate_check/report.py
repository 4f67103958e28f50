"""The printed report on coordinate checks of GPT-like nets."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import Finding, coordinate_checks
from meanfield.verification import transformer_checks as claims
from sims.common.blocks.ladders import DIRECTIONS, TABLES, trained_in
from sims.common.report import Report, answer
from sims.common.tables import number, slope, table

WORDS = {
    "k >= 2 table": "that of Zheng et al. 2026 for blocks of two and more layers (condition 3.1).",
    "k = 1 table": "that of Zheng et al. 2026 for blocks of one layer (condition B.1).",
    "standard": "the parameterization in which no hyperparameter scales with width or depth.",
    "h_L": "the stream behind the last block, before the last normalisation; f: the outputs, of every character.",
    "Delta": "the change since training began, on the batch of the steps.",
}

CURVATURES = {
    "sampled": "from one character drawn at every place (Liu et al. 2024), as in practice",
    "exact": "from all characters at every place, as an exact sum",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    optimizer, norm = (str(dataset[name].values[0]) for name in ("optimizer", "normalisation"))
    run = [name for name in TABLES if name in dataset["table"].values]
    slopes = [claims.features_slope(dataset, norm, optimizer, name, "depth").plain for name in run]
    by_table = (f"{TABLES[name]} {value:+.2f}" for name, value in zip(run, slopes, strict=True))
    return answer(findings[:1], f"slopes in L: {', '.join(by_table)}")


def _training(dataset: xr.Dataset) -> str:
    """In which precision nets trained, and how Sophia and SOAP were run, where they were."""
    precision = f"Nets trained in {trained_in(dataset.attrs)}."
    has_sophia = any("sophia" in str(name).split("-") for name in dataset["optimizer"].values)
    curvature = f" Sophia takes its curvature {CURVATURES[dataset.attrs['curvature']]}."
    epsilon = dataset.attrs.get("soap_epsilon")
    soap = "" if epsilon is None else f" SOAP's epsilon is {epsilon:g} in the base model."
    return precision + curvature * has_sophia + soap


def _slopes(dataset: xr.Dataset) -> list[str]:
    """A table for every normalisation and ladder: a line for every optimizer and table."""
    tables = []
    for norm in map(str, dataset["normalisation"].values):
        at = dataset.sel(normalisation=norm)
        tables += [_slope_table(at, direction, claims.NORMALISED[norm]) for direction in DIRECTIONS]
    return tables


def _slope_table(at: xr.Dataset, direction: str, words: str) -> str:
    numbers, lines = claims.watched(at), []
    for optimizer in map(str, at["optimizer"].values):
        for name in map(str, at["table"].values):
            laws = (coordinate_checks.slope(at, optimizer, name, direction, watched) for watched in numbers)
            cells = (f"{slope(law.settled, law.settled_stderr)} ({law.plain:+.2f})" for law in laws)
            lines.append([optimizer, TABLES[name], *cells])
    header = [f"{watched.symbol}, step {watched.step}" for watched in numbers]
    return table([["optimizer", "table"], *header], lines, f"{words}: slopes in {direction}")


def _sizes(dataset: xr.Dataset) -> list[str]:
    """|h_L| after the last step, mean over draws."""
    tables = []
    for direction in DIRECTIONS:
        lines = []
        means = dataset[f"feature_norm_by_{direction}"].sel(place="last").isel(step=-1).mean("draw", skipna=False)
        for norm in map(str, dataset["normalisation"].values):
            for optimizer in map(str, dataset["optimizer"].values):
                for name in map(str, dataset["table"].values):
                    at = means.sel(normalisation=norm, optimizer=optimizer, table=name).values
                    lines.append([norm, optimizer, TABLES[name], *map(number, map(float, at))])
        header = [["norm", "optimizer", "table"], *(f"{direction} {size}" for size in dataset[direction].values)]
        tables.append(table(header, lines, f"|h_L| after {dataset.attrs['steps']} steps in {direction}"))
    return tables


text = Report(
    question="Does the k >= 2 table keep features of GPT-like nets flat in width and depth?",
    answer=_answer,
    heading="Characters of English text: {samples} windows of {tokens}, {steps} steps on them; {draws} draws, seed "
    "{seed}\nwidths {widths} at L = {depth} blocks, L = {depths} at width {width}; no weight decay\n"
    "slope s of log y = a + s log x + c / x, draw by draw; in brackets that of a straight line",
    parts=[_training, _slopes, _sizes],
    findings=claims.findings,
    words=WORDS,
).text
