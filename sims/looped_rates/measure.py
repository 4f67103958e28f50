"""Tuned rates of looped Transformers by residual scaling and number of loops, and losses at them and at all others."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, derived_seed, require_count
from meanfield.nets import Transformer
from meanfield.transfer import Tuning, tune_all
from sims.common.command import ladder
from sims.common.data.labelled import CHARACTERS, TEXT
from sims.common.data.training_data import training_data
from sims.common.datasets import Axes, attributes, over
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
    require_count("--tuning-seeds", options.tuning_seeds, minimum=2, why="one seed has no standard error")
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
        seeds=range(first, first + options.tuning_seeds),
        spacing=options.spacing,
        curvature_draws=0,
    )


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], loops: list[int]) -> xr.Dataset:
    """Minima and losses over (scaling, loops, seed), and losses of further nets at the tuned rates over draws."""
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rates = sorted(set(np.concatenate([of_net["rate"].values for of_net in tuned])))
    axes: Axes = {"scaling": list(SCALINGS), "loops": loops}
    searched = [{"final_loss": of_net["final_loss"].reindex(rate=rates).values} for of_net in tuned]
    losses = [{"tuned_loss": of_net} for of_net in _tuned_losses(options, results, tunings, tuned)]
    parts = [
        over(axes, searched, "rate", "seed").assign_coords(rate=rates),
        over(axes, [_row(of_net) for of_net in tuned], "seed"),
        over(axes, losses, "draw"),
    ]
    described = attributes(
        options, "width", "heads", "tokens", "steps", "batch_size", "optimizer", "tuning_seeds", "spacing"
    )
    return xr.merge(parts).assign_attrs(described)


def _row(of_net: xr.Dataset) -> dict[str, Any]:
    """One net: its tuned rate, and that of every seed."""
    row: dict[str, Any] = {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    row |= {name: of_net.attrs[name] for name in ("complete", "located")}
    return row | {"seed_tuned_rate_log10": of_net["seed_tuned_rate_log10"].values}


def _tuned_losses(
    options: argparse.Namespace, results: Results, tunings: Sequence[Tuning], tuned: Sequence[xr.Dataset]
) -> list[Array]:
    """Losses at the tuned rate of nets that it was not tuned on, so that they are not chosen; NaN without a rate."""
    rates = [float(of_net["tuned_rate"]) for of_net in tuned]
    runs = [
        replace(tuning, seeds=range(after := tuning.each_seed[-1] + 1, after + options.draws)).run([rate])
        for tuning, rate in zip(tunings, rates, strict=True)
        if np.isfinite(rate)
    ]
    made = iter(results.draw(runs))
    nothing = np.full(options.draws, np.nan)
    return [next(made)["final_loss"].values[0] if np.isfinite(rate) else nothing for rate in rates]
