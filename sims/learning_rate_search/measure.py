"""Tuned rates of every family and depth, with all losses, beside the stable rate and the one-step scale."""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import product
from math import nan
from typing import Any

import numpy as np
import xarray as xr

from meanfield import Chain
from meanfield.common import derived_seed
from meanfield.nets import Net, ResidualConvNet
from meanfield.theory import scales_at
from meanfield.transfer import Tuning, tune_all
from meanfield.verification import RESNET_BATCH_NORM_SLOPE, RESNET_DROPOUT_SLOPE, TABLE_1
from sims.common.command import ladder
from sims.common.data.trained_families import trained_net
from sims.common.data.training_data import shared_training_data
from sims.common.datasets import attributes, over
from sims.common.results import Results

# Architectures of table 1 of Zhang et al. 2026, by how the names of families here begin.
TRANSFORMER = "transformer"
PRINTED = {"cnn": "CNN", "residual cnn": "ResNet", TRANSFORMER: "ViT"}
NARROW = tuple(PRINTED)
# Table 3, on CIFAR-10; for plain nets it has neither.
TABLE_3 = {"residual cnn init batch norm": RESNET_BATCH_NORM_SLOPE, "residual cnn init dropout": RESNET_DROPOUT_SLOPE}
TABLE_3 |= {"cnn batch norm": nan, "cnn dropout": nan}
# Seeds of training are whole numbers of 63 bits.
SEED_BITS = 62
MIDDLE = 0.5
# What every seed has of its own.
SEEDS = ("seed_tuned_rate_log10", "seed_tuned_rate_log10_stderr")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned, family by family through all depths."""
    depths = ladder("--depths", options.depths, 2, "a slope", why="layers, blocks or steps of the nets")
    families = list(dict.fromkeys(options.families))
    places = list(product(families, depths))
    nets = [_net(options, *place) for place in places]
    data = shared_training_data(options.data, nets, samples=options.samples, seed=options.seed)
    given = zip(places, nets, data, strict=True)
    tunings = [_tuning(options, *place, net, inputs_and_labels) for place, net, inputs_and_labels in given]
    return {"tunings": tunings, "depths": depths}


def _net(options: argparse.Namespace, family: str, depth: int) -> Net:
    width = options.channels if family.startswith(NARROW) else options.width
    return trained_net(family, _blocks(family, [depth])[0], width, options.data)


def _tuning(options: argparse.Namespace, family: str, depth: int, net: Net, data: tuple[Any, Any]) -> Tuning:
    """With seeds that no other family or depth has, so that errors of different depths are independent."""
    first = derived_seed(options.seed, f"{family} {depth}") % 2**SEED_BITS
    training = {"epochs": options.epochs, "batch_size": options.batch_size, "optimizer": options.optimizer}
    return Tuning(
        net=net,
        data=data,
        training=training | {"precision": "float32"},
        seeds=range(first, first + options.draws),
        spacing=options.spacing,
        grid=options.grid,
    )


def _blocks(family: str, depths: Sequence[int]) -> list[int]:
    """What nets of these depths are made of: layers, blocks, steps; a block of a Transformer counts as two."""
    if not family.startswith(TRANSFORMER):
        return list(depths)
    if odd := [depth for depth in depths if depth % 2]:
        raise ValueError(f"--depths has {odd[0]}; a block of a Transformer is two units deep, so give even depths")
    return [depth // 2 for depth in depths]


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], depths: list[int]) -> xr.Dataset:
    """Minima and losses over (family, depth, draw), stable rates, one-step scales, slopes that papers print."""
    families = list(dict.fromkeys(options.families))
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rates = sorted(set(np.concatenate([of_net["rate"].values for of_net in tuned])))
    axes = {"family": families, "depth": depths}
    parts = [
        over(axes, [_row(of_net, rates) for of_net in tuned], "rate", "draw").assign_coords(rate=rates),
        over(axes, [{name: of_net[name].values for name in SEEDS} for of_net in tuned], "draw"),
        over(axes, [{"one_step_scale": scale} for scale in _one_step(tunings, families, depths)]),
        over({"family": families}, [{"printed_slope": _printed(family)} for family in families]),
    ]
    described = attributes(
        options, "data", "samples", "batch_size", "epochs", "optimizer", "channels", "width", "spacing"
    )
    places = map("{0[0]} {0[1]}".format, product(families, depths))
    reasons = {place: of_net.attrs["without_minimum"] for place, of_net in zip(places, tuned, strict=True)}
    said = {"without_minimum": json.dumps({place: reason for place, reason in reasons.items() if reason})}
    return xr.merge(parts).assign_attrs(described | said)


def _row(of_net: xr.Dataset, rates: Sequence[float]) -> dict[str, Any]:
    """One net: losses at all rates of the run, NaN where it was not trained; its tuned and its stable rate."""
    row: dict[str, Any] = {"final_loss": of_net["final_loss"].reindex(rate=rates).values}
    row |= {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    stable = of_net.sel(quantile=MIDDLE)
    ends = ("", "_stderr")
    row |= {f"stable_rate{end}": float(stable[f"stable_rate_quantile{end}"]) for end in ends}
    return row | {name: of_net.attrs[name] for name in ("complete", "located")}


def _one_step(tunings: Sequence[Tuning], families: Sequence[str], depths: Sequence[int]) -> Iterator[float]:
    """Mean-field eta* of the label term on white inputs; of residual nets on grids under a convolutional readout.

    NaN for nets with batch normalisation or dropout, which theory does not serve.
    """
    for family, tuning in zip(families, tunings[:: len(depths)], strict=True):
        net: Any = tuning.net
        if isinstance(net, ResidualConvNet):
            net = net.replace(readout="convolution")
        yield from [nan] * len(depths) if isinstance(net, Chain) else scales_at(net, _blocks(family, depths))


def _printed(family: str) -> float:
    """Mean slope of table 1 over its data sets, or that of table 3; NaN for what they do not have."""
    if family in TABLE_3:
        return TABLE_3[family]
    kinds = [TABLE_1[kind] for begin, kind in PRINTED.items() if family.startswith(begin)]
    return float(np.mean(kinds[0])) if kinds else float("nan")
