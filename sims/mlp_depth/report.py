"""The printed report on drawn fully-connected nets: the plan, the layers beside the exact expectation, verdicts."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import (
    LABEL_SPREAD,
    OVERLAP_SPREAD,
    PRECISION,
    Finding,
    draws_needed,
    is_converged,
    is_planned,
    judge_exact,
    layer_ranges,
)
from sims.common.report import Report, answer, folded
from sims.common.tables import against, drawn, heavy_tail_notes, number, predicted, rows, table, value
from sims.mlp_depth import depth_law_report as depth_laws

TERMS = {"label_term": "label term B", "output_term": "output term A", "update_energy": "update energy S"}
OVERLAP = {"overlap_energy": "overlap energy F"}
NOT_CONVERGED = "not converged"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """What the terms that are held against the exact expectation say, which come first."""
    state = "" if all(is_converged(dataset, name).all() for name in TERMS) else f" ({NOT_CONVERGED})"
    exact = number(value(dataset, "learning_rate_scale_exact"))
    scales = f"eta* = {drawn(dataset, 'learning_rate_scale')}{state}, exact {exact}"
    return answer(findings[: len(_judged(dataset))], scales)


def _findings(dataset: xr.Dataset) -> list[Finding]:
    return [*(judge_exact(dataset, name) for name in _judged(dataset)), *depth_laws.findings(dataset)]


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


def _terms(dataset: xr.Dataset) -> dict[str, str]:
    """What is held against the exact expectation; F too where it comes from the kernel itself and not from B."""
    return TERMS | (OVERLAP if dataset.attrs["overlap_method"] == "dense" else {})


def _judged(dataset: xr.Dataset) -> list[str]:
    return [name for name in _terms(dataset) if name != "update_energy"]


def _layer_table(dataset: xr.Dataset) -> str:
    terms = _terms(dataset)
    converged = {name: is_converged(dataset, name) for name in terms}

    def cells(at: xr.Dataset) -> list[str]:
        texts = []
        for name in terms:
            *energies, off = against(at, name, "exact")
            texts += [*energies, off if converged[name].sel(layer=at["layer"]) else NOT_CONVERGED]
        return [*texts, *(predicted(at, name) for name in (LABEL_SPREAD, OVERLAP_SPREAD))]

    header = ["layer", *([title, "exact", "s.e."] for title in terms.values()), ["spread of B", "spread of F"]]
    return table(header, rows(dataset, ["layer"], cells), "By layer")


def _single_net_table(dataset: xr.Dataset) -> str:
    """How single nets lie about the exact mean: what the median net does where rare ones make the mean."""
    low, middle, high = dataset["update_energy_quantile"].values / dataset["update_energy_exact"].values
    spread, skewness = (dataset[f"update_energy_log_{name}"].values for name in ("spread", "skewness"))
    columns = [low, middle, np.exp(-(spread**2) / 2), high, spread, skewness]
    by_layer = zip(dataset["layer"].values, *columns, strict=True)
    lines = [[str(layer), *map(number, values)] for layer, *values in by_layer]
    header = ["layer", "1 in 10 below", "median", "if log-normal", "1 in 10 above", "sd of ln S", "skewness of ln S"]
    low, middle, high = map(number, dataset["learning_rate_scale_quantile"].values)
    note = f"eta* of single nets: {middle} in the median, between {low} and {high} in four of five; "
    note += f"{predicted(dataset, 'learning_rate_scale_exact')} by the exact mean of S."
    return f"{table(header, lines, 'Single nets: S of one net over the exact mean')}\n{note}"


def _notes(dataset: xr.Dataset) -> str:
    notes = [plan(dataset, dataset.attrs["draws"]), *filter(None, [heavy_tail_notes(dataset, _terms(dataset))])]
    left_out = dataset["layer"].values[~is_planned(dataset, "label_term").values]
    if len(left_out):
        notes.append(
            f"Layers {layer_ranges(left_out)}: B, A and S not converged. Draws rarer than this run can see make their "
            "means:\nvalues and errors there are too small in all likelihood, and no verdict rests on them."
        )
    return "\n".join(notes)


text = Report(
    question="Are drawn energies of nets of finite width those of the exact expectation?",
    answer=_answer,
    heading="{draws} draws, seed {seed}, {weights} weights",
    parts=[_layer_table, _notes, _single_net_table, *depth_laws.TABLES],
    findings=_findings,
    words={
        "exact": "the expectation at this width, by a recursion.",
        "spread": "standard deviation of one draw over its mean, exact.",
        "if log-normal": "the median that a log-normal S of this spread would have, exp(-sd^2 / 2) of its mean.",
    },
).text
