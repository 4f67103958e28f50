"""The printed report on tuned rates of looped Transformers: slopes, rates, losses by the number of loops."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding, loop_rates
from sims.common.report import Report, answer
from sims.common.tables import MISSING, fitted, number, table

WORDS = {
    "tuned rate": "the learning rate that minimises the loss on all windows after the last step: the vertex of a "
    "parabola of ln(loss) over log10(rate) for every seed, and the geometric mean of these over seeds.",
    "loss": "mean over draws, nets that the rate was not tuned on, at the tuned rate; linear less sqrt from the same "
    "initial weights and mini-batches.",
    "sqrt, linear": "branches times (2 L)^(-1/2) and 1/(2 L), as a loop adds two branches.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    laws = {scaling: loop_rates.tuned_slope(dataset, scaling) for scaling in loop_rates.CLAIMED}
    slopes = (f"{scaling} {law.exponent:+.2f} +- {law.stderr:.2f}" for scaling, law in laws.items())
    return answer(findings[:1], f"slopes in L: {', '.join(slopes)}")


def _slope_table(dataset: xr.Dataset) -> str:
    rows = [
        [scaling, fitted(loop_rates.tuned_slope(dataset, scaling)), number(claimed)]
        for scaling, claimed in loop_rates.CLAIMED.items()
    ]
    first, *_, last = dataset["loops"].values
    return table(
        ["scaling", "tuned rate", "L^(alpha-1)"], rows, f"Slopes of the tuned rate in L over {first} .. {last}"
    )


def _rate_table(dataset: xr.Dataset) -> str:
    rows = []
    for loops in dataset["loops"].values:
        at = dataset.sel(loops=loops)
        rows.append([str(loops), *(cell for scaling in loop_rates.CLAIMED for cell in _cells(at.sel(scaling=scaling)))])
    header = ["loops", *([scaling, "+- decades", "loss"] for scaling in loop_rates.CLAIMED)]
    return table(header, rows, "Tuned rates and losses")


def _cells(at: xr.Dataset) -> list[str]:
    error, loss = float(at["tuned_rate_log10_stderr"]), at["tuned_loss"].values
    rate = number(10.0 ** float(at["tuned_rate_log10"]))
    return [rate, MISSING if np.isnan(error) else f"{error:.3f}", f"{loss.mean():.4f}"]


def _loss_table(dataset: xr.Dataset) -> str:
    rows = []
    for loops in dataset["loops"].values:
        mean, error = loop_rates.loss_difference(dataset, loops)
        rows.append([str(loops), f"{mean:+.4f} +- {error:.2g}" if np.isfinite(mean) else MISSING])
    return table(["loops", "linear - sqrt"], rows, "Difference of losses at the tuned rates")


text = Report(
    question="Do tuned rates of looped Transformers align over the loops L under the factor 1/L?",
    answer=_answer,
    heading="Characters of English text: windows of {tokens}, {steps} steps of {batch_size} windows, {optimizer} at a "
    "constant rate;\nwidth {width}, {heads} heads, one block applied L times; every rate is tuned on {tuning_seeds} "
    "nets,\nand {draws} others train at it; seed {seed}",
    parts=[_slope_table, _rate_table, _loss_table],
    findings=loop_rates.findings,
    words=WORDS,
).text
