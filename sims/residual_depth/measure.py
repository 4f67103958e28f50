"""Residual nets over blocks, drawn and predicted; slopes of theory far up, mixed backbones, the papers' net."""

import argparse
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, require_count
from meanfield.nets import SCALINGS, ResidualConvNet, ResidualMLP
from meanfield.simulation import Energies
from meanfield.theory import mean_field_profiles
from sims.common.command import chosen_arrays
from sims.common.datasets import Axes, attributes, ladder, over, seeded_run, taken
from sims.common.results import Results

AXES: Axes = {"activation": ("relu", "linear"), "block_depth": (1, 2, 3), "scaling": SCALINGS}
LABEL_SCALE = "label_learning_rate_scale"
SCALES = ("learning_rate_scale", LABEL_SCALE)
# Plain layers and blocks of mixed backbones at which slopes are taken, by changing one of the two by a tenth.
BACKBONES = {f"m = {stem}, K = {blocks}": (stem, blocks) for stem, blocks in ((10, 100), (50, 50), (100, 10))}
# The axis "count" of a backbone, and the field of a net that it stands for.
COUNTS = {"m": "stem", "K": "depth"}
WIDE = 10**6
# Zhang et al. 2026's ResNets: 3x3 convolutions of 64 channels, one per block, under a stem, over a common sweep.
PAPER_DEPTHS = (4, 8, 16, 32)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """One net of a single block for each activation, branch depth and scaling; the numbers of blocks."""
    why = "blocks of the nets that are drawn"
    blocks = ladder("--blocks", options.blocks, 2, "a slope", maximum=MOST_LAYERS, why=why)
    why = "the slope is followed up to so many blocks"
    require_count("--far", options.far, minimum=10, maximum=MOST_LAYERS, why=why)
    nets = [
        ResidualMLP(depth=1, width=options.width, outputs=options.outputs, **dict(zip(AXES, place, strict=True)))
        for place in product(*AXES.values())
    ]
    return {"nets": nets, "blocks": blocks, "far": options.far}


def measure(
    options: argparse.Namespace, results: Results, nets: list[ResidualMLP], blocks: list[int], far: int
) -> xr.Dataset:
    """Scales drawn (NAME) and predicted (NAME_theory) over the blocks; slopes of theory far up; mixed backbones."""
    energies = Energies(**chosen_arrays(options))
    runs = [
        seeded_run(options, replace(net, depth=depth), energies, f"{net.describe()} of {depth} blocks")
        for net, depth in product(nets, blocks)
    ]
    drawn = zip(runs, results.draw(runs), strict=True)
    parts = [
        over(AXES | {"blocks": blocks}, [taken(scales, *SCALES) | _logs(run.net) for run, scales in drawn]),
        over(AXES, [{f"{name}_far_slope": _local_slope(net, name, far) for name in SCALES} for net in nets]),
        _mixed_backbones(options.outputs),
        _papers_net(),
    ]
    return xr.merge(parts).assign_attrs(attributes(options, "width", "outputs", "far"))


def _logs(net: ResidualMLP) -> dict[str, float]:
    """Both scales in theory, exact where there is such a level, and in the mean field."""
    theory = {f"log_{name}_theory": log_scale(net, name) for name in SCALES}
    return theory | {f"log_{name}_mean_field": log_scale(net, name, exact=False) for name in SCALES}


def log_scale(net: Any, name: str, *, exact: bool = True) -> float:
    """log of a predicted scale: exact for linear nets; else the mean field's, which has the label term's alone."""
    if exact and net.activation == "linear":
        return float(mf.predict(net, level="exact")[f"log_{name}"])
    if name != LABEL_SCALE:
        return float("nan")
    with np.errstate(all="ignore"):
        return float(-0.5 * np.log(mean_field_profiles(net)[1].mean()))


def _local_slope(net: ResidualMLP, name: str, far: int) -> float:
    """d log scale / d log K between far / 2 and far blocks; NaN without scaling, where it falls exponentially."""
    if net.scaling == "none":
        return float("nan")
    low, high = (log_scale(replace(net, depth=depth), name) for depth in (far // 2, far))
    return float((high - low) / np.log(far / (far // 2)))


def _mixed_backbones(outputs: int) -> xr.Dataset:
    """Local slopes of the label term's scale in m and in K for backbones of m plain layers below K blocks (k = 1)."""
    axes: Axes = {"activation": AXES["activation"], "backbone": list(BACKBONES), "count": list(COUNTS)}
    slopes = []
    for activation, backbone, count in product(*axes.values()):
        stem, blocks = BACKBONES[backbone]
        net = ResidualMLP(depth=blocks, width=WIDE, outputs=outputs, activation=activation, stem=stem)
        field = COUNTS[count]
        counts = [round(factor * getattr(net, field)) for factor in (0.9, 1.1)]
        low, high = (log_scale(replace(net, **{field: number}), LABEL_SCALE) for number in counts)
        slopes.append({"backbone_slope": (high - low) / np.log(counts[1] / counts[0])})
    layers = over({"backbone": list(BACKBONES)}, [{"backbone_layers": pair} for pair in BACKBONES.values()], "count")
    return xr.merge([over(axes, slopes), layers])


def _papers_net() -> xr.Dataset:
    """log of the label term's scale of the paper's ResNet, mean field: a stem and K blocks of one 3x3 convolution."""
    net = ResidualConvNet(
        depth=1, channels=64, grid=(16, 16), kernel=(3, 3), stem=1, input_channels=3, readout="convolution"
    )
    logs = [{"papers_net_log_scale": log_scale(replace(net, depth=depth), LABEL_SCALE)} for depth in PAPER_DEPTHS]
    return over({"papers_blocks": PAPER_DEPTHS}, logs)
