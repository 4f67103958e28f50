"""Both losses over nets, heads and depths, drawn, with theory beside."""

import argparse
from dataclasses import replace
from itertools import product
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS, require_count
from meanfield.execution import Run
from meanfield.nets import LOSS_NAMES, MLP, ConvNet, Sequential
from meanfield.simulation import Energies
from meanfield.theory import predict
from sims.common.command import chosen_arrays, ladder
from sims.common.datasets import (
    ENDS,
    Axes,
    attributes,
    labels_in_mean_field,
    layer_means,
    over,
    seeded_run,
    taken,
)
from sims.common.results import Results

HEADS = ("he", "fan_in", "mup")
TERMS = ("label_term", "output_term", "update_energy")
GRID = (8,)
NAN = float("nan")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets at depth 1, by name, and the depths."""
    depths = ladder("--depths", options.depths, 2, "a slope", maximum=MOST_LAYERS, why="hidden layers")
    require_count("--classes", options.classes, minimum=2, why="one class has a softmax of 1 and no error")
    shared = {"depth": 1, "outputs": options.classes}
    nets = {
        "MLP": MLP(width=options.width, **shared),
        "ConvNet": ConvNet(channels=options.channels, grid=GRID, **shared),
    }
    return {"nets": nets, "depths": depths}


def measure(
    options: argparse.Namespace, results: Results, nets: dict[str, Sequential], depths: list[int]
) -> xr.Dataset:
    """Means over layers of all terms, and the error at the outputs, by net, head, loss and depth; theory beside."""
    axes: Axes = {"net": list(nets), "head": HEADS, "loss": LOSS_NAMES, "depth": depths}
    runs = [
        seeded_run(
            options,
            replace(nets[name], head=head, depth=depth),  # type: ignore[type-var]
            Energies(loss=loss, **chosen_arrays(options)),
            f"{name}, {head} head, {loss}, depth {depth}",
        )
        for name, head, loss, depth in product(*axes.values())
    ]
    measured = zip(runs, results.draw(runs), strict=True)
    rows = [
        layer_means(drawn, *TERMS) | taken(drawn, "output_error", ends=ENDS[:2]) | _beside(run)
        for run, drawn in measured
    ]
    return over(axes, rows).assign_attrs(attributes(options, "width", "channels", "classes"))


def _beside(run: Run) -> dict[str, float]:
    """Means over layers of NAME_mean_field and, of the MLP under squared loss, of NAME_exact; NaN elsewhere."""
    net, loss = run.net, run.measure.loss
    levels = {"mean_field": ("label_term", "output_term", "output_error"), "exact": ("label_term", "update_energy")}
    predictions = {"mean_field": labels_in_mean_field(net, batch=run.measure.batch, loss=loss)}
    if loss == "squared" and isinstance(net, MLP):
        predictions["exact"] = predict(net, level="exact")
    return {
        f"{name}_{level}": float(predictions[level][name].mean()) if level in predictions else NAN
        for level, names in levels.items()
        for name in names
    }
