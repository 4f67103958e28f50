"""Activations and weight variances: what is drawn of each, and what the mean field says of it."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, mean_square, require_count
from meanfield.nets import MLP, Activation, ConvNet, activation_named
from meanfield.simulation import ActivationStatistics
from meanfield.theory import chain_corrections, mean_field_chain, scales_by_depth
from meanfield.verification import COMMON_SWEEP
from sims.common.command import ladder
from sims.common.datasets import Axes, attributes, over, seeded_run, taken
from sims.common.results import Results

# Scales are extrapolated in 1/width from the width and this part of it.
NARROW = 4
SCALES = ("learning_rate_scale", "label_learning_rate_scale")
ENERGIES = ("pre_activation_energy", "gate_energy")
SMOOTH = ("gelu", "silu", "tanh")
RULES = ("fan_in", "he", "energy")
# Layers that the mean field is followed over: at the energy rule rounding, amplified, shows from some hundred on.
FAR = 60
# A small stand-in for the nets on images of Zhang et al. 2026 (table 3), and their activations; mean field alone.
CNN = ConvNet(depth=max(COMMON_SWEEP), channels=64, grid=(8, 8), kernel=(3, 3), readout="convolution")
TRAINED = ("relu", "gelu")


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets by case, and the depths to draw them at."""
    depths = ladder("--depths", options.depths, 2, "a slope", why="depths of the nets that are drawn")
    if depths[-1] > FAR:
        raise ValueError(f"--depths reach {depths[-1]}; the mean field beside them is followed to {FAR} layers")
    require_count("--width", options.width, minimum=NARROW, why=f"a {NARROW}th as many units are drawn too")
    return {"nets": nets(options.width, options.outputs), "depths": depths}


def measure(options: argparse.Namespace, results: Results, nets: dict[str, MLP], depths: list[int]) -> xr.Dataset:
    """Scales by case, width and depth; energies by case and layer of the deepest wide nets; the mean field of all."""
    axes: Axes = {"case": list(nets), "width": [options.width // NARROW, options.width], "depth": depths}
    runs = [
        (replace(nets[case], depth=depth, width=width), f"{case}, {depth} layers of {width}")
        for case, width, depth in product(*axes.values())
    ]
    measured = results.draw([seeded_run(options, net, ActivationStatistics(), label) for net, label in runs])
    deepest = measured[2 * len(depths) - 1 :: 2 * len(depths)]
    scales = over(axes, [taken(drawn, *SCALES) for drawn in measured])
    energies = over({"case": list(nets)}, [taken(drawn, *ENERGIES) for drawn in deepest], "layer")
    return xr.merge([scales, energies, predicted(nets, depths[-1])]).assign_attrs(attributes(options, "outputs"))


def nets(width: int, outputs: int) -> dict[str, MLP]:
    """One net of a single layer for each case: ReLU, whose rules agree, and "ACTIVATION, RULE"."""
    plain = MLP(depth=1, width=width, outputs=outputs)
    by_case = {"relu": plain}
    for name, rule in product(SMOOTH, RULES):
        variance = weight_variance(activation_named(name), rule)
        by_case[f"{name}, {rule}"] = replace(plain, activation=name, weight_variance=variance)
    return by_case


def weight_variance(activation: Activation, rule: str) -> float:
    """sigma_W^2: 1/q, 2, or 1/E[sigma(G)^2]."""
    variances = {"fan_in": 1 / activation.gain, "he": 2.0, "energy": 1 / mean_square(activation.function, 1.0)}
    return variances[rule]


def predicted(nets: Mapping[str, MLP], drawn: int) -> xr.Dataset:
    """By case: scales and energies over layers 1 .. FAR, corrections up to the deepest drawn layer, a CNN's scales."""
    axes: Axes = {"case": list(nets)}
    corrections = [chain_corrections(replace(net, depth=drawn)) for net in nets.values()]
    by_drawn = [{f"{name}_correction": getattr(correction, name) for name in ENERGIES} for correction in corrections]
    images = [{"cnn_scale_mean_field": _image_scales(net)} for net in nets.values()]
    far = over(axes, [_far(replace(net, depth=FAR)) for net in nets.values()], "layers")
    parts = [far, over(axes, by_drawn, "layer"), over(axes, images, "cnn_layers")]
    depths = {"layers": FAR, "layer": drawn, "cnn_layers": CNN.depth}
    return xr.merge(parts).assign_coords({dim: np.arange(1, depth + 1) for dim, depth in depths.items()})


def _far(net: MLP) -> dict[str, Any]:
    """The mean field of one net by layer, its weight variance, and its gain at unit variance."""
    chain, gain = mean_field_chain(net), net.sigma.gain
    energies = {f"{name}_mean_field": getattr(chain, name) for name in ENERGIES}
    scale = {"label_learning_rate_scale_mean_field": scales_by_depth(net)}
    return scale | energies | {"weight_variance": net.variance_factor / gain, "gain": gain}


def _image_scales(net: MLP) -> Array:
    """Scales of the convolutional net with this net's activation and weights; NaN where the paper trained none."""
    if net.activation not in TRAINED:
        return np.full(CNN.depth, np.nan)
    return scales_by_depth(replace(CNN, activation=net.activation, weight_variance=net.weight_variance))
