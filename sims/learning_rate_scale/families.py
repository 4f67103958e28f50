"""The nets whose scales are compared over depth, and the depths at which they are."""

from dataclasses import replace
from itertools import product
from typing import Any

from meanfield.common import require_choice
from meanfield.nets import MLP, SCALINGS, ConvNet, ResidualConvNet, ResidualMLP, TiedLoop, Transformer
from meanfield.verification import COMMON_SWEEP
from sims.common.command import name_or_number
from sims.common.images import DataShape

BLOCK_DEPTHS = (1, 2, 3)
SHOWN_RESIDUAL = (
    "residual init k=1",
    "residual init k=2",
    "residual multiplier_sqrt k=1",
    "residual multiplier_linear k=2",
    "residual cnn 1d",
)
# Transformers that rates are carried between: tokens, and channels of a head.
TOKENS, HEAD_SIZE = 16, 64
# Shorter names that --family takes too.
ALIASES = {
    "cnn": "cnn 2d",
    "residual": "residual init k=1",
    "looped": "looped linear",
    "transformer": "transformer pre",
}


def plain(depth: int, width: int, outputs: int) -> dict[str, Any]:
    """White inputs, he heads, convolutional readouts."""
    conv: dict[str, Any] = {"depth": depth, "channels": width, "outputs": outputs, "readout": "convolution"}
    return {
        "mlp": MLP(depth=depth, width=width, outputs=outputs),
        "mlp linear": MLP(depth=depth, width=width, outputs=outputs, activation="linear"),
        "cnn 1d": ConvNet(grid=(32,), kernel=(3,), **conv),
        "cnn 2d": ConvNet(grid=(16, 16), kernel=(3, 3), **conv),
    }


def residual(depth: int, width: int, outputs: int) -> dict[str, Any]:
    """ReLU blocks alone, every scaling and branch depth k; of convolutions, one layer per block (Zhang et al. 2026)."""
    nets: dict[str, Any] = {
        f"residual {scaling} k={k}": ResidualMLP(
            depth=depth, width=width, outputs=outputs, block_depth=k, scaling=scaling
        )
        for scaling, k in product(SCALINGS, BLOCK_DEPTHS)
    }
    conv: dict[str, Any] = {"depth": depth, "channels": width, "outputs": outputs, "readout": "convolution"}
    return nets | {"residual cnn 1d": ResidualConvNet(grid=(32,), kernel=(3,), **conv)}


def loops(depth: int, width: int) -> dict[str, TiedLoop]:
    """One matrix for all steps ("looped") or one for each ("deep"), under eps = L^-1 and L^(-1/2)."""
    return {
        f"{model} {alpha}": TiedLoop(depth=depth, width=width, alpha=alpha, tied=model == "looped")
        for model, alpha in product(("looped", "deep"), ("linear", "sqrt"))
    }


def transformers(depth: int, width: int, outputs: int) -> dict[str, Transformer]:
    """Pre- and post-norm Transformers of ``depth`` blocks on white tokens; heads of `HEAD_SIZE` if they fit."""
    heads = max(1, width // HEAD_SIZE) if width % HEAD_SIZE == 0 else 1
    shared: dict[str, Any] = {"depth": depth, "width": width, "heads": heads, "tokens": TOKENS, "outputs": outputs}
    return {f"transformer {norm}": Transformer(norm=norm, **shared) for norm in ("pre", "post")}


def shown(depth: int, width: int, outputs: int) -> dict[str, dict[str, Any]]:
    """Nets, loops and Transformers of the report."""
    blocks = residual(depth, width, outputs)
    nets = plain(depth, width, outputs) | {name: blocks[name] for name in SHOWN_RESIDUAL}
    return {"nets": nets, "loops": loops(depth, width), "transformers": transformers(depth, width, outputs)}


def served_as(name: str, width: int, outputs: int) -> Any:
    """The net of depth 1 of this name, or "residual ALPHA k=..", whose branches are multiplied by K^(-ALPHA).

    Raises:
        ValueError: a name that stands for no net.
    """
    nets = served(width, outputs)
    match name.split():
        case ["residual", scaling, layers] if not isinstance(alpha := name_or_number(scaling), str):
            k = {f"k={k}": k for k in BLOCK_DEPTHS}
            require_choice(f"--family {name!r}: layers of a branch", layers, k)
            return ResidualMLP(depth=1, width=width, outputs=outputs, block_depth=k[layers], scaling=alpha)
    require_choice("--family", name, nets)
    return nets[name]


def served(width: int, outputs: int) -> dict[str, Any]:
    """Everything of depth 1 that a rate can be carried for, by full and by shorter names."""
    nets = plain(1, width, outputs) | residual(1, width, outputs) | loops(1, width) | transformers(1, width, outputs)
    nets |= {f"{name} pooled": replace(nets[name], readout="pooled") for name in ("cnn 1d", "cnn 2d")}
    return nets | {short: nets[name] for short, name in ALIASES.items()}


def on_data(net: Any, source: str) -> Any:
    """The net with input, grid and outputs as the data have them.

    A stream that begins at the input keeps its width: an image is embedded in it, whole or in patches.
    """
    data = DataShape.of(source)
    if isinstance(net, TiedLoop):
        return net
    sizes: dict[str, Any] = {"outputs": data.classes}
    if isinstance(net, Transformer):
        return replace(net, tokens=data.tokens, **sizes)
    if net.grid:
        if not len(net.grid) == len(data.sides) == 2:
            raise ValueError(f"--data is {source}, of axes {data.sides}: this net has {net.grid}; give 'cnn 2d pooled'")
        return replace(net, grid=data.sides, input_channels=data.channels, **sizes)
    return replace(net, **sizes) if net.units[0].skip == 0 else replace(net, input_width=data.values, **sizes)


SHOWN_DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)

# Depths at which a rate is tuned, and factors by which depth then grows; the deepest net of the run ends each row.
STARTS = (3, 6, 12, 25)
FACTORS = (2, 4, 8)

# All depths up to here, which trained nets were swept over; above, these of every decade: theory is smooth there.
DENSE = max(COMMON_SWEEP)
PER_DECADE = (1, 2, 3, 5, 7)


def depth_grid(deepest: int) -> list[int]:
    """The depths of the dataset: all small ones, those that the report prints, and steps of a factor 2 at most."""
    steps = {round(step * 10**power) for power in range(1, len(str(deepest))) for step in PER_DECADE}
    ends = {start * factor for start in STARTS for factor in FACTORS}
    return sorted(depth for depth in {*range(1, DENSE + 1), *SHOWN_DEPTHS, *steps, *ends, deepest} if depth <= deepest)
