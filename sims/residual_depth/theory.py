"""What theory says of residual nets beside the drawn ones: slopes far up, mixed backbones, the papers' net."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.theory import mean_field_profiles

ACTIVATIONS = ("relu", "linear")
LABEL_SCALE = "label_learning_rate_scale"
# Plain layers and blocks of mixed backbones at which slopes are taken, by changing one of the two by a tenth.
BACKBONES = ((10, 100), (50, 50), (100, 10))
WIDE = 10**6
# P0's ResNets: 3x3 convolutions of 64 channels, one per block, under a stem, over depths of a common sweep.
PAPER_DEPTHS = (4, 8, 16, 32)


def log_scale(net: Any, name: str, *, exact: bool = True) -> float:
    """log of a predicted scale: exact for linear nets; else the mean field's, which has the label term's alone."""
    if exact and net.activation == "linear":
        return float(mf.predict(net, level="exact")[f"log_{name}"])
    if name != LABEL_SCALE:
        return float("nan")
    with np.errstate(all="ignore"):
        return float(-0.5 * np.log(mean_field_profiles(net)[1].mean()))


def local_slope(net: Any, name: str, far: int) -> float:
    """d log scale / d log K between far / 2 and far blocks; NaN without scaling, where it falls exponentially."""
    if net.scaling == "none":
        return float("nan")
    ends = [log_scale(replace(net, depth=depth), name) for depth in (far // 2, far)]
    return float((ends[1] - ends[0]) / np.log(far / (far // 2)))


def mixed_backbones(outputs: int) -> xr.Dataset:
    """Local slopes of the label term's scale in m and in K for backbones of m plain layers below K blocks (k = 1)."""
    slopes = np.empty((len(ACTIVATIONS), len(BACKBONES), 2))
    for (i, activation), (j, (stem, blocks)) in product(enumerate(ACTIVATIONS), enumerate(BACKBONES)):
        net = mf.ResidualMLP(depth=blocks, width=WIDE, outputs=outputs, activation=activation, stem=stem)
        for side, field in enumerate(("stem", "depth")):
            counts = [round(factor * getattr(net, field)) for factor in (0.9, 1.1)]
            logs = [log_scale(replace(net, **{field: count}), LABEL_SCALE) for count in counts]
            slopes[i, j, side] = (logs[1] - logs[0]) / np.log(counts[1] / counts[0])
    coords = {
        "activation": list(ACTIVATIONS),
        "backbone": [f"m = {m}, K = {k}" for m, k in BACKBONES],
        "count": ["m", "K"],
    }
    variables = {
        "backbone_slope": (("activation", "backbone", "count"), slopes),
        "backbone_layers": (("backbone", "count"), np.array(BACKBONES)),
    }
    return xr.Dataset(variables, coords)


def papers_net() -> xr.Dataset:
    """log of the label term's scale of P0's ResNet by the mean field: a stem and K blocks of one 3x3 convolution."""
    net = mf.ResidualConvNet(
        depth=1, channels=64, grid=(16, 16), kernel=(3, 3), stem=1, input_channels=3, readout="convolution"
    )
    logs = [log_scale(replace(net, depth=depth), LABEL_SCALE) for depth in PAPER_DEPTHS]
    return xr.Dataset(
        {"papers_net_log_scale": ("papers_blocks", np.array(logs))}, {"papers_blocks": list(PAPER_DEPTHS)}
    )
