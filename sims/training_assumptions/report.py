"""The printed report on what P1 assumes of training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding, Verdict
from meanfield.verification import training_assumptions as claims
from sims.common.report import answer, report
from sims.common.table import measured, number, slope, table

QUESTION = "Does training meet what P1 assumes of it (G.1, G.2, G.3), at any width and depth?"
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


def text(dataset: xr.Dataset) -> str:
    """Losses, every ratio over training, its slopes, and a verdict on each assumption."""
    parts = [_heading(dataset), _losses(dataset), _over_steps(dataset)]
    parts += [_slopes(dataset, direction) for direction in (*claims.DIRECTIONS, "batch")]
    findings = claims.findings(dataset)
    return report(QUESTION, _answer(findings), parts, findings)


def _answer(findings: Sequence[Finding]) -> str:
    assumed = [one for one in findings if any(name in one.claim for name in ("(G.1)", "(G.2)", "(G.3)"))]
    kept = sum(one.verdict is Verdict.CONFIRMED for one in assumed)
    return answer(assumed, f"{kept} of {len(assumed)} are confirmed")


def _heading(dataset: xr.Dataset) -> str:
    nets = "ReLU nets of L blocks of two matrices; widths {widths} and depths {depths} (width {width}, depth {depth} "
    rest = "otherwise), batches {batches} ({batch})"
    run = "classes {classes} of {input}, {numbers} numbers an image; {steps} full-batch steps, base rate {rate}"
    how = "{draws} draws of weights, seed {seed}; |W| RMS operator norms, |h| root mean squares; means over samples"
    return "\n".join([nets + rest, run, how]).format_map(dataset.attrs)


def _losses(dataset: xr.Dataset) -> str:
    steps = dataset["step"].values
    lines = []
    for direction in (*claims.DIRECTIONS, "batch"):
        for size in dataset[direction].values[[0, -1]]:
            means = dataset[f"training_loss_by_{direction}"].sel({direction: size}).mean("draw")
            lines.append([f"{direction} {size}", *(number(float(mean)) for mean in means)])
    return table(["before step", *map(str, steps)], lines, "Binary cross-entropy, mean over draws")


def _over_steps(dataset: xr.Dataset) -> str:
    """Ratios at the largest width, mean +- standard error over draws, in the first, a middle and the last look."""
    steps = _shown(dataset)
    lines = []
    for assumption, name in _named():
        for place in claims.PLACES:
            at = dataset[f"{name}_by_width"].isel(width=-1).sel(place=place)
            values = [at.sel(step=step).values for step in steps]
            cells = [measured(float(one.mean()), float(one.std(ddof=1) / np.sqrt(len(one)))) for one in values]
            lines.append([assumption, TITLES[name], place, *cells])
    header = [["", "ratio", "of"], *(f"step {step}" for step in steps)]
    return table(header, lines, f"Over training, width {dataset['width'].values[-1]}")


def _slopes(dataset: xr.Dataset, direction: str) -> str:
    steps = _shown(dataset)
    lines = []
    for assumption, name in _named():
        found = {(row.place, row.step): row.slope for row in claims.rows(dataset, (name,), (direction,))}
        for place in claims.PLACES:
            at = [found[place, step] for step in steps]
            cells = [slope(one.settled, one.settled_stderr) for one in at]
            lines.append([assumption, TITLES[name], place, *cells])
    header = [["", "ratio", "of"], *(f"step {step}" for step in steps)]
    how = "s of log y = a + s log x + c / x, draw by draw"
    return table(header, lines, f"Slopes in {'batch size' if direction == 'batch' else direction}: {how}")


def _named() -> list[tuple[str, str]]:
    """(assumption, ratio), the assumption without its words."""
    return [(key.split()[0], name) for key, names in claims.ASSUMPTIONS.items() for name in names]


def _shown(dataset: xr.Dataset) -> list[int]:
    steps = [int(step) for step in dataset["step"].values]
    return list(dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1])))
