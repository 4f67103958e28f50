"""The nets that one step of each optimizer moves, and what of a net the labels, the loss and the head may change."""

from collections.abc import Mapping
from typing import Any

from meanfield.nets import MLP, ResidualMLP

DESCENT = "sgd"
# Those whose first step from rest is a function of the gradient alone, and what that takes of it: all but descent
# forget its size.
OPTIMIZERS = {DESCENT: "descent"} | dict.fromkeys(("adamw", "lion"), "signs")
OPTIMIZERS |= dict.fromkeys(("muon", "muon_kimi", "shampoo", "soap"), "polar factors")

PLAIN = "plain"
RESIDUAL: Mapping[str, Mapping[str, Any]] = {
    "init": {"scaling": "init", "block_depth": 1},
    "multiplier_sqrt": {"scaling": "multiplier_sqrt", "block_depth": 1},
    "multiplier_linear": {"scaling": "multiplier_linear", "block_depth": 1},
    "init_k2": {"scaling": "init", "block_depth": 2},
    "multiplier_linear_k2": {"scaling": "multiplier_linear", "block_depth": 2},
}
FAMILIES = (PLAIN, *RESIDUAL)
IN_WORDS = {
    PLAIN: "plain",
    "init": "variance 1/K, k = 1",
    "multiplier_sqrt": "times K^(-1/2), k = 1",
    "multiplier_linear": "times 1/K, k = 1",
    "init_k2": "variance 1/K, k = 2",
    "multiplier_linear_k2": "times 1/K, k = 2",
}

# Layers of the nets whose width, labels, loss and head change.
SHALLOW = 4
# The base, and what differs from it: fields of the net, and options of the measure. Few outputs, so that the part of
# the error that the features themselves make is small.
BASE = "base"
FEW, MORE_OUTPUTS = 2, 8
SETTINGS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    BASE: ({}, {}),
    "labels": ({}, {"label_mean": 3.0}),
    "loss": ({}, {"loss": "cross_entropy"}),
    "outputs": ({"outputs": MORE_OUTPUTS}, {}),
    "head": ({"head": "mup"}, {}),
}
SETTINGS_IN_WORDS = {
    BASE: f"labels of variance 1, squared loss, {FEW} outputs, He's head",
    "labels": "labels of a mean of 3",
    "loss": "cross-entropy",
    "outputs": f"{MORE_OUTPUTS} outputs",
    "head": "a head of variance 1/n^2 (muP)",
}


def plain(depth: int, width: int, outputs: int) -> MLP:
    return MLP(depth=depth, width=width, outputs=outputs)


def residual(family: str, depth: int, width: int, outputs: int) -> ResidualMLP:
    return ResidualMLP(depth=depth, width=width, outputs=outputs, **RESIDUAL[family])
