"""The families of nets that simulations train, by name: each at any depth and width, for any labelled data."""

from collections.abc import Callable
from functools import partial
from typing import Any

from meanfield import with_batch_normalisation, with_dropout
from meanfield.common import require_choice
from meanfield.nets import MLP, ConvNet, Net, ResidualConvNet, ResidualMLP, TiedLoop, Transformer
from sims.common.data.data_shape import DataShape
from sims.common.data.labelled import TEXT

# The share of values that families with dropout drop; Zhang et al. 2026, table 3, do not say theirs.
DROPPED = 0.1


def _mlp(depth: int, width: int, data: DataShape, **options: Any) -> MLP:
    return MLP(depth=depth, width=width, input_width=data.values, outputs=data.classes, head="fan_in", **options)


def _residual_mlp(depth: int, width: int, data: DataShape, **options: Any) -> ResidualMLP:
    shared: dict[str, Any] = {"input_width": data.values, "stem": 1, "head": "fan_in"}
    return ResidualMLP(depth=depth, width=width, outputs=data.classes, **shared, **options)


def _conv(depth: int, width: int, data: DataShape, kernel: int = 3, **options: Any) -> ConvNet:
    lattice: dict[str, Any] = {"grid": data.sides, "kernel": (kernel, kernel), "input_channels": data.channels}
    return ConvNet(depth=depth, channels=width, outputs=data.classes, head="fan_in", **lattice, **options)


def _residual_conv(depth: int, width: int, data: DataShape, **options: Any) -> ResidualConvNet:
    lattice: dict[str, Any] = {"grid": data.sides, "kernel": (3, 3), "input_channels": data.channels, "stem": 1}
    return ResidualConvNet(depth=depth, channels=width, outputs=data.classes, head="fan_in", **lattice, **options)


def _transformer(depth: int, width: int, data: DataShape, **options: Any) -> Transformer:
    shared: dict[str, Any] = {"tokens": data.tokens, "heads": max(1, width // 16), "head": "fan_in"}
    return Transformer(depth=depth, width=width, outputs=data.classes, **shared, **options)


def _loop(depth: int, width: int, data: DataShape, alpha: str) -> TiedLoop:
    return TiedLoop(depth=depth, width=width, alpha=alpha)


Builder = Callable[..., Net]


def _normalised(build: Builder) -> Builder:
    return lambda *sizes: with_batch_normalisation(build(*sizes))


def _dropped(build: Builder) -> Builder:
    return lambda *sizes: with_dropout(build(*sizes), DROPPED)


# Depth counts layers, blocks of residual nets and Transformers, steps of loops. "init": branches of variance 1/K;
# "multiplier": branches times K^(-1/2), for blocks of one layer, or "k=2", of two layers under "init".
FAMILIES: dict[str, Builder] = {
    "mlp": _mlp,
    "mlp gelu": partial(_mlp, activation="gelu"),
    "cnn": _conv,
    "cnn zero": partial(_conv, padding="zero"),
    "cnn 4x4": partial(_conv, kernel=4),
    "cnn 5x5": partial(_conv, kernel=5, padding="zero"),
    "cnn gelu": partial(_conv, activation="gelu"),
    "residual mlp init": _residual_mlp,
    "residual mlp multiplier": partial(_residual_mlp, scaling="multiplier_sqrt"),
    "residual mlp k=2": partial(_residual_mlp, block_depth=2),
    "residual cnn init": _residual_conv,
    "residual cnn multiplier": partial(_residual_conv, scaling="multiplier_sqrt"),
    "residual cnn k=2": partial(_residual_conv, block_depth=2),
    "cnn batch norm": _normalised(_conv),
    "cnn dropout": _dropped(_conv),
    "residual cnn init batch norm": _normalised(_residual_conv),
    "residual cnn init dropout": _dropped(_residual_conv),
    "transformer pre": partial(_transformer, norm="pre"),
    "transformer post": partial(_transformer, norm="post"),
    "loop linear": partial(_loop, alpha="linear"),
    "loop sqrt": partial(_loop, alpha="sqrt"),
}


def trained_net(family: str, depth: int, width: int, source: str) -> Net:
    """The net of this family for the data of a source: "digits", "mnist", "text" or a file with inputs and labels.

    Width counts channels of convolutional nets. Input channels, grid, tokens and classes are those of the data
    (`DataShape`). All have a head of variance 1/fan-in, pooled over sites; a loop's outputs are its whole last stream.

    Raises:
        ValueError: an unknown family, text or vectors for one that takes images, or a file without labelled inputs.
    """
    require_choice("--families", family, FAMILIES)
    if source == TEXT and not family.startswith("transformer"):
        raise ValueError(f"text is a row of characters, which Transformers take; {family!r} takes images")
    data = DataShape.of(source)
    if source != TEXT and len(data.sides) == 1 and not family.startswith(("mlp", "residual mlp", "loop")):
        raise ValueError(f"inputs in {source} are vectors, which 'mlp' and others take; {family!r} takes images")
    return FAMILIES[family](depth, width, data)
