"""The cases of `sims.activation_drift`, activations and weight variances, and their mean field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common import mean_square
from meanfield.nets import MLP, Activation, ConvNet, activation_named
from meanfield.theory import chain_corrections, mean_field_chain, scales_by_depth
from meanfield.verification import COMMON_SWEEP

SMOOTH = ("gelu", "silu", "tanh")
RULES = ("fan_in", "he", "energy")
# Layers that the mean field is followed over: at the energy rule rounding, amplified, shows from some hundred on.
FAR = 60
# A small stand-in for the nets on images of P0 table 3, and their activations; by the mean field alone.
CNN = ConvNet(depth=max(COMMON_SWEEP), channels=64, grid=(8, 8), kernel=(3, 3), readout="convolution")
TRAINED = ("relu", "gelu")


def nets(width: int, outputs: int) -> dict[str, MLP]:
    """One net of a single layer for each case: ReLU, whose rules agree, and "ACTIVATION, RULE"."""
    plain = MLP(depth=1, width=width, outputs=outputs)
    found = {"relu": plain}
    for name in SMOOTH:
        for rule in RULES:
            variance = weight_variance(activation_named(name), rule)
            found[f"{name}, {rule}"] = replace(plain, activation=name, weight_variance=variance)
    return found


def weight_variance(activation: Activation, rule: str) -> float:
    """sigma_W^2: 1/q, 2, or 1/E[sigma(G)^2]."""
    variances = {"fan_in": 1 / activation.gain, "he": 2.0, "energy": 1 / mean_square(activation.function, 1.0)}
    return variances[rule]


def predicted(cases: Mapping[str, MLP], drawn: int) -> xr.Dataset:
    """By case: scales and energies over layers 1 .. FAR, corrections up to the deepest drawn layer, a CNN's scales."""
    far = [replace(net, depth=FAR) for net in cases.values()]
    chains = [mean_field_chain(net) for net in far]
    corrections = [chain_corrections(replace(net, depth=drawn)) for net in cases.values()]
    over_layers, over_drawn, per_case = ("case", "layers"), ("case", "layer"), ("case",)
    variables = {
        "label_learning_rate_scale_mean_field": (over_layers, [scales_by_depth(net) for net in far]),
        "pre_activation_energy_mean_field": (over_layers, [chain.pre_activation_energy for chain in chains]),
        "gate_energy_mean_field": (over_layers, [chain.gate_energy for chain in chains]),
        "pre_activation_energy_correction": (over_drawn, [one.pre_activation_energy for one in corrections]),
        "gate_energy_correction": (over_drawn, [one.gate_energy for one in corrections]),
        "cnn_scale_mean_field": (("case", "cnn_layers"), [_image_scales(net) for net in far]),
        "weight_variance": (per_case, [net.variance_factor / net.sigma.gain for net in far]),
        "gain": (per_case, [net.sigma.gain for net in far]),
    }
    layers = {"layers": np.arange(1, FAR + 1), "cnn_layers": np.arange(1, CNN.depth + 1)}
    return xr.Dataset(variables, {"case": list(cases), "layer": np.arange(1, drawn + 1), **layers})


def _image_scales(net: MLP) -> NDArray[np.float64]:
    """Scales of the convolutional net with this net's activation and weights, where P0 trained one; else NaN."""
    if net.activation not in TRAINED:
        return np.full(CNN.depth, np.nan)
    return scales_by_depth(replace(CNN, activation=net.activation, weight_variance=net.weight_variance))
