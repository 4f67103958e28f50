"""The printed report on tables of hyperparameters: where the tuned base rate goes, and what carrying it costs."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding, span
from sims.common.report import Report, answer
from sims.common.tables import MISSING, Grid, label, measured, number, table
from sims.hyperparameter_transfer.claims import DIRECTIONS, findings, has_learned, lacks_of, moves_of
from sims.hyperparameter_transfer.nets import CONDITIONS, FAMILIES, GPT, RESIDUAL

WORDS = {
    "base rate": "the learning rate of the base model's hidden weights, which the table multiplies for every other; "
    "the tuned one minimises the training loss after the last step.",
    "move": "log2 of the base rate tuned at a size over the one tuned at the base model.",
    "loss": "training loss at the rate tuned at this size, of nets that were not tuned on.",
    "lack": "loss of the same nets at the carried rate, the base model's tuned one, less that loss; what is above "
    "chance counts as chance.",
    "not learned": "the mean loss is above a third of chance (digits), or above what a pair of letters tells of the "
    "next one (text); such sizes count for no verdict.",
    "condition": "tables of Zheng et al. 2026 for branches of two and more layers (3.1), and of one (B.1).",
    "the standard": "no hyperparameter scales with the net, the variance of hidden weights included.",
}
HEADER = ["tuned rate", "move, octaves", "loss", "lack"]
NOT_LEARNED = "*"
NOTE = f" ({NOT_LEARNED} not learned)"


def _answer(dataset: xr.Dataset, judged: Sequence[Finding]) -> str:
    farthest: dict[str, float] = {}
    for family, optimizer, direction, name in _places(dataset):
        octaves = np.abs(moves_of(dataset, family, optimizer, name, direction).octaves)
        farthest[name] = max(farthest.get(name, 0.0), float(np.nanmax(octaves, initial=0.0)))
    moved = ", ".join(f"{CONDITIONS[name]} {octaves:.1f}" for name, octaves in farthest.items())
    stays = [finding for finding in judged if "stays within" in finding.claim]
    return answer(stays, f"octaves by which a tuned base rate moves at most: {moved}")


def _ends(dataset: xr.Dataset) -> Grid:
    """Every table at the largest size of each ladder."""
    lines = []
    for family, optimizer, direction, name in _places(dataset):
        _, *cells = _cells(dataset, family, optimizer, direction, name)[-1]
        lines.append([family, optimizer, direction, CONDITIONS[name], *cells])
    ladders = (f"{direction} {span(dataset[direction].values)}" for direction in DIRECTIONS)
    return table(
        [["nets", "by", "over", "table"], HEADER], lines, f"At the largest size, of {', '.join(ladders)}{NOTE}"
    )


def _places(dataset: xr.Dataset) -> list[tuple[str, str, str, str]]:
    """Family, optimizer, direction and table; of tables that give the same numbers over the width, the first."""
    families, optimizers = (map(str, dataset[dim].values) for dim in ("family", "optimizer"))
    every = product(families, optimizers, DIRECTIONS, CONDITIONS)
    return [place for place in every if place[2:] != ("width", "one")]


def _cells(dataset: xr.Dataset, family: str, optimizer: str, direction: str, name: str) -> list[list[str]]:
    """Of every size of a ladder: the size, the tuned rate, its move, the loss at it, and what the carried one lacks."""
    at = dataset.sel(family=family, optimizer=optimizer, table=name)
    moves = moves_of(dataset, family, optimizer, name, direction)
    octaves, errors = (np.concatenate([[np.nan], values]) for values in (moves.octaves, moves.stderr))
    losses, learned = at[f"tuned_loss_by_{direction}"].mean("draw", skipna=False).values, has_learned(at, direction)
    lines = []
    for place, (size, lack, error) in enumerate(zip(at[direction].values, *lacks_of(at, direction), strict=True)):
        rate = number(10.0 ** float(at[f"tuned_rate_log10_by_{direction}"][place]))
        moved = MISSING if np.isnan(octaves[place]) else f"{octaves[place]:+.2f} +- {errors[place]:.2f}"
        loss = number(losses[place]) + ("" if learned[place] else NOT_LEARNED)
        lines.append([label(size), rate, moved, loss, MISSING if np.isnan(lack) else f"{lack:+.3f} +- {error:.3f}"])
    return lines


def _ladders(dataset: xr.Dataset) -> list[Grid]:
    """Every size, a table for each ladder of each kind of net."""
    grids = []
    for family, optimizer, direction in dict.fromkeys(place[:3] for place in _places(dataset)):
        lines = [
            [CONDITIONS[name], *cells]
            for *at, name in _places(dataset)
            if tuple(at) == (family, optimizer, direction)
            for cells in _cells(dataset, family, optimizer, direction, name)
        ]
        title = f"{FAMILIES[family]} by {optimizer}, over the {direction}{NOTE}"
        grids.append(table([["table", direction], HEADER], lines, title))
    return grids


def _decays(dataset: xr.Dataset) -> Grid:
    """Rates and losses of the base models under every weight decay."""
    lines = []
    for family, optimizer in product(*(map(str, dataset[dim].values) for dim in ("family", "optimizer"))):
        at = dataset.sel(family=family, optimizer=optimizer)
        for decay in at["decay"].values:
            rate, losses = (
                number(10.0 ** float(at["decay_rate_log10"].sel(decay=decay))),
                at["decay_loss"].sel(decay=decay),
            )
            error = float(losses.std("draw", ddof=1)) / np.sqrt(losses.size)
            chosen = "carried" if decay == float(at["base_decay"]) else ""
            lines.append(
                [
                    family,
                    optimizer,
                    label(decay),
                    rate,
                    measured(float(losses.mean("draw", skipna=False)), error),
                    chosen,
                ]
            )
    return table(
        ["nets", "by", "decay", "tuned rate", "loss at it", "to all sizes"], lines, "Weight decays of the base models"
    )


ON_DATA = {RESIDUAL: "residual nets on digits", GPT: "GPTs on text, {tokens} characters a window"}


def _heading(dataset: xr.Dataset) -> str:
    nets = "; ".join(ON_DATA[str(family)] for family in dataset["family"].values)
    return (
        f"{nets}: {{steps}} steps of batches of {{batch_size}} at a constant rate;\nevery rate is tuned on "
        "{tuning_seeds} nets, and {draws} others train at it and at the base model's; seed {seed}"
    )


REPORT = Report(
    question="Does a tuned base rate stay the best of larger nets under condition 3.1?",
    answer=_answer,
    heading=_heading,
    brief=_ends,
    parts=[_ends, _ladders, _decays],
    findings=findings,
    words=WORDS,
)
