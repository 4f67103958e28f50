"""Tuned rates of looped Transformers by residual scaling and number of loops, with the losses under all rates."""

import argparse
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, derived_seed, require_count
from meanfield.nets import Transformer
from meanfield.transfer import Tuning, tune_all
from sims.common.data.labelled import CHARACTERS, TEXT
from sims.common.data.training_data import training_data
from sims.common.datasets import Axes, attributes, ladder, over
from sims.common.results import Results

# By its name in the library. One loop makes two additions, of attention and of the FFN, and the factor counts these.
SCALINGS = {"sqrt": "multiplier_sqrt", "linear": "multiplier_linear"}
# Llama's: hidden units of a gated FFN over the width, so that it has as many weights as an ungated one of four.
FFN = 8 / 3
# Seeds of training are whole numbers of 63 bits.
SEED_BITS = 62


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned, under either scaling for all numbers of loops."""
    loops = ladder("--loops", options.loops, 2, "a slope", maximum=MOST_LAYERS // 2, why="numbers of loops")
    require_count("--steps", options.steps, why="steps of training")
    require_count("--batch-size", options.batch_size, why="windows of a mini-batch")
    data = training_data(
        TEXT, _net(options, "linear", loops[0]), samples=options.steps * options.batch_size, seed=options.seed
    )
    return {"tunings": [_tuning(options, data, *place) for place in product(SCALINGS, loops)], "loops": loops}


def _net(options: argparse.Namespace, scaling: str, loops: int) -> Transformer:
    """All of them take the same windows of text."""
    llama: dict[str, Any] = {"normalisation": "rms", "causal": True, "rotary": True, "activation": "swiglu", "ffn": FFN}
    text: dict[str, Any] = {"vocabulary": len(CHARACTERS), "outputs": len(CHARACTERS), "head": "fan_in"}
    sizes = attributes(options, "width", "heads", "tokens")
    return Transformer(depth=loops, tied=True, scaling=SCALINGS[scaling], readout="every", **sizes, **llama, **text)


def _tuning(options: argparse.Namespace, data: tuple[Any, Any], scaling: str, loops: int) -> Tuning:
    """With seeds that both scalings share, so that their losses compare, and no other number of loops has."""
    first = derived_seed(options.seed, f"looped rates {loops}") % 2**SEED_BITS
    return Tuning(
        net=_net(options, scaling, loops),
        data=data,
        training=attributes(options, "steps", "batch_size", "optimizer") | {"precision": "float32"},
        seeds=range(first, first + options.draws),
        spacing=options.spacing,
        curvature_draws=0,
    )


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], loops: list[int]) -> xr.Dataset:
    """Minima and losses over (scaling, loops, draw), and the losses of every net at its tuned rate."""
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rates = sorted(set(np.concatenate([of_net["rate"].values for of_net in tuned])))
    axes: Axes = {"scaling": list(SCALINGS), "loops": loops}
    parts = [
        over(
            axes, [{"final_loss": of_net["final_loss"].reindex(rate=rates).values} for of_net in tuned], "rate", "draw"
        ),
        over(axes, [_row(of_net) for of_net in tuned], "draw"),
    ]
    described = attributes(options, "width", "heads", "tokens", "steps", "batch_size", "optimizer", "spacing")
    return xr.merge([parts[0].assign_coords(rate=rates), parts[1]]).assign_attrs(described)


def _row(of_net: xr.Dataset) -> dict[str, Any]:
    """One net: its tuned rate, and the losses of all seeds at the one rate that all met with the least mean."""
    row: dict[str, Any] = {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    losses = of_net["final_loss"].values
    row |= {name: of_net.attrs[name] for name in ("complete", "located")}
    row["seed_tuned_rate_log10"] = of_net["seed_tuned_rate_log10"].values
    return row | {"least_loss": losses[np.nanargmin(losses.mean(axis=1))]}
