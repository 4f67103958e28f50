"""The printed report on what Zheng et al. 2026 assume of training."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding, Verdict
from sims.common.blocks.ladders import DIRECTIONS
from sims.common.report import Report, answer
from sims.common.tables import measured, number, slope, table
from sims.training_assumptions import claims

TITLES = {
    "weight_step_ratio": "a step: |W + dW|/(|W| + |dW|)",
    "weight_travel_ratio": "the same since the start",
    "feature_step_ratio": "a step: |h + dh|/(|h| + |dh|)",
    "feature_travel_ratio": "the same since the start",
    "activation_ratio": "|phi(W z)| / |W z|",
    "sample_update_ratio": "|dW^(i) z^(i)|/(B |dW z^(i)|)",
    "weight_alignment": "|W z| / (|W| |z|)",
    "update_alignment": "|dW z| / (|dW| |z|)",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    names = ("(G.1)", "(G.2)", "(G.3)")
    assumed = [finding for finding in findings if any(name in finding.claim for name in names)]
    kept = sum(finding.verdict is Verdict.CONFIRMED for finding in assumed)
    return answer(assumed, f"{kept} of {len(assumed)} are confirmed")


def _losses(dataset: xr.Dataset) -> str:
    lines = []
    for direction in _ladders(dataset):
        for size in dataset[direction].values[[0, -1]]:
            means = dataset[f"training_loss_by_{direction}"].sel({direction: size}).mean("draw")
            lines.append([f"{direction} {size}", *(number(float(mean)) for mean in means)])
    return table(["before step", *map(str, dataset["step"].values)], lines, "Binary cross-entropy, mean over draws")


def _over_steps(dataset: xr.Dataset) -> str:
    """Ratios at the largest width, mean +- standard error over draws, in the first, a middle and the last look."""

    def cell(name: str, place: str, step: int) -> str:
        values = dataset[f"{name}_by_width"].isel(width=-1).sel(place=place, step=step).values
        return measured(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))

    return _by_step(dataset, cell, f"Over training, width {dataset['width'].values[-1]}")


def _slope_tables(dataset: xr.Dataset) -> list[str]:
    return [_slopes(dataset, direction) for direction in _ladders(dataset)]


def _ladders(dataset: xr.Dataset) -> list[str]:
    return [name for name in (*DIRECTIONS, "batch") if name in dataset.coords]


def _slopes(dataset: xr.Dataset, direction: str) -> str:
    def cell(name: str, place: str, step: int) -> str:
        law = laws[name, place, step]
        return slope(law.settled, law.settled_stderr)

    laws = {
        (name, row.place, row.step): row.slope
        for name in claims.ladders_of(dataset)
        for row in claims.rows(dataset, (name,), (direction,))
    }
    how = "s of log y = a + s log x + c / x, draw by draw"
    return _by_step(dataset, cell, f"Slopes in {'batch size' if direction == 'batch' else direction}: {how}")


def _by_step(dataset: xr.Dataset, cell: Callable[[str, str, int], str], title: str) -> str:
    """A line for every assumption, without its words, ratio and place; a cell for each of a few steps."""
    steps = _shown(dataset)
    lines = [
        [key.split()[0], TITLES[name], place, *(cell(name, place, step) for step in steps)]
        for key, names in claims.ASSUMPTIONS.items()
        for name in claims.ladders_of(dataset, names)
        for place in claims.places_for(name)
    ]
    return table([["", "ratio", "of"], *(f"step {step}" for step in steps)], lines, title)


def _shown(dataset: xr.Dataset) -> list[int]:
    steps = [int(step) for step in dataset["step"].values]
    return list(dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1])))


def _soap(dataset: xr.Dataset) -> list[str]:
    """SOAP's epsilon, where it trains the nets."""
    epsilon = dataset.attrs.get("soap_epsilon")
    return [] if epsilon is None else [f"SOAP's epsilon is {epsilon:g} in the base model."]


REPORT = Report(
    question="Does training meet what Zheng et al. 2026 assume of it (G.1 - G.3), at any size?",
    answer=_answer,
    heading="ReLU nets of L blocks of two matrices under {optimizer}; widths {widths} and depths {depths} "
    "(width {width}, depth {depth} otherwise), batches {batches} ({batch})\n"
    "classes {classes} of {input}, {numbers} numbers an image; {steps} full-batch steps, base rate {rate}\n"
    "{draws} draws of weights, seed {seed}, {precision}; |W| RMS operator norms, |h| root mean squares; means over "
    "samples",
    parts=[_soap, _losses, _over_steps, _slope_tables],
    findings=claims.findings,
)
