"""Random small specs."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.block_net import BlockNet
from meanfield.nets.dense import DenseNet
from meanfield.nets.lattice import PADDINGS
from meanfield.nets.layered import HEADS, MLP, READOUTS, ConvNet
from meanfield.nets.loop import TiedLoop
from meanfield.nets.maps import (
    ATTENTION_SCALES,
    NORMALISATIONS,
    Attention,
    BatchNormalisation,
    Bias,
    Dropout,
    Flatten,
    Gain,
    Gate,
    Linear,
    Map,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Chain, Unit
from meanfield.nets.residual import ResidualConvNet, ResidualMLP
from meanfield.nets.scalings import SCALINGS
from meanfield.nets.staged import DOWNSAMPLINGS, STAGED_READOUTS, StagedConvNet, StagedResidualConvNet
from meanfield.nets.transformer import NORMS, Transformer
from meanfield.nets.transformer import TOKEN_READOUTS as TOKENS_READ

activations = st.sampled_from(tuple(ACTIVATIONS))
weight_variances = st.sampled_from((None, 1.5, 3.0))


@st.composite
def mlps(draw: st.DrawFn) -> MLP:
    depth = draw(st.integers(1, 3))
    return MLP(
        depth=depth,
        width=draw(st.one_of(st.integers(1, 4), st.tuples(*[st.integers(1, 4)] * depth))),
        activation=draw(activations),
        outputs=draw(st.integers(1, 3)),
        head=draw(st.sampled_from(HEADS)),
        inputs=draw(st.integers(1, 2)),
        input_width=draw(st.one_of(st.none(), st.integers(1, 4))),
        weight_variance=draw(weight_variances),
    )


@st.composite
def conv_nets(draw: st.DrawFn) -> ConvNet:
    depth = draw(st.integers(1, 3))
    grid = draw(st.one_of(st.tuples(st.integers(1, 5)), st.tuples(st.integers(1, 3), st.integers(1, 3))))
    padding = draw(st.sampled_from(PADDINGS))
    largest = [length if padding == "circular" else 4 for length in grid]
    return ConvNet(
        depth=depth,
        channels=draw(st.one_of(st.integers(1, 3), st.tuples(*[st.integers(1, 3)] * depth))),
        grid=grid,
        kernel=tuple(draw(st.integers(1, limit)) for limit in largest),
        padding=padding,
        activation=draw(activations),
        outputs=draw(st.integers(1, 2)),
        head=draw(st.sampled_from(HEADS)),
        readout=draw(st.sampled_from(READOUTS)),
        input_channels=draw(st.one_of(st.none(), st.integers(1, 3))),
        inputs=draw(st.integers(1, 2)),
        weight_variance=draw(weight_variances),
    )


@st.composite
def residual_nets(draw: st.DrawFn) -> ResidualMLP | ResidualConvNet:
    shared = {
        "depth": draw(st.integers(1, 2)),
        "block_depth": draw(st.integers(1, 3)),
        "scaling": draw(st.sampled_from((*SCALINGS, 0.3))),
        "stem": draw(st.integers(0, 1)),
        "tail": draw(st.integers(0, 1)),
        "activation": draw(activations),
        "outputs": draw(st.integers(1, 2)),
        "inputs": draw(st.integers(1, 2)),
    }
    width = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return ResidualMLP(width=width, **shared)
    grid = draw(st.one_of(st.tuples(st.integers(2, 4)), st.just((2, 2))))
    padding, readout = draw(st.sampled_from(PADDINGS)), draw(st.sampled_from(READOUTS))
    kernel = (2,) * len(grid)
    return ResidualConvNet(channels=width, grid=grid, kernel=kernel, padding=padding, readout=readout, **shared)


@st.composite
def staged_nets(draw: st.DrawFn) -> StagedConvNet | StagedResidualConvNet:
    """Two or three stages, the last of one or two sites along an axis, of strides as wide as the kernel or wider."""
    stages = draw(st.sampled_from(((1, 1), (2, 1), (1, 2, 1))))
    axes = draw(st.integers(1, 2)) if len(stages) == 2 else 1
    stride = tuple(draw(st.sampled_from((2, 3) if axes == 1 else (1, 2))) for _ in range(axes))
    grid = tuple(draw(st.sampled_from((1, 2))) * step ** (len(stages) - 1) for step in stride)
    padding, downsampling = draw(st.sampled_from(PADDINGS)), draw(st.sampled_from(DOWNSAMPLINGS))
    last = [length // step ** (len(stages) - 1) for length, step in zip(grid, stride, strict=True)]
    if padding == "zero" and downsampling == "stride":
        grid = tuple(length + draw(st.integers(0, 1)) for length in grid)
    shared = {
        "depth": sum(stages),
        "stages": stages,
        "channels": draw(st.sampled_from((2, (3,) * len(stages)))),
        "grid": grid,
        "kernel": tuple(draw(st.integers(1, length if padding == "circular" else 3)) for length in last),
        "stride": stride,
        "downsampling": downsampling,
        "padding": padding,
        "activation": draw(activations),
        "outputs": draw(st.integers(1, 2)),
        "head": draw(st.sampled_from(HEADS)),
        "readout": draw(st.sampled_from(STAGED_READOUTS)),
        "inputs": draw(st.integers(1, 2)),
    }
    if draw(st.booleans()):
        return StagedConvNet(input_channels=draw(st.integers(1, 3)), **shared)
    depths = {"block_depth": draw(st.integers(1, 2)), "stem": draw(st.integers(0, 1))}
    return StagedResidualConvNet(scaling=draw(st.sampled_from(SCALINGS)), **depths, **shared)


@st.composite
def loops(draw: st.DrawFn) -> TiedLoop:
    return TiedLoop(
        depth=draw(st.integers(1, 6)),
        width=draw(st.integers(1, 6)),
        alpha=draw(st.sampled_from((-1, 0, 0.5, 1, 2))),
        weight_variance=draw(st.sampled_from((0.3, 1.0, 2.0, 10.0))),
        activation=draw(activations),
        tied=draw(st.booleans()),
    )


@st.composite
def block_nets(draw: st.DrawFn) -> BlockNet:
    return BlockNet(
        width=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 3)),
        block_depth=draw(st.integers(1, 3)),
        block_width=draw(st.one_of(st.none(), st.integers(1, 4))),
        input_width=draw(st.integers(1, 4)),
        samples=draw(st.integers(1, 3)),
        activation=draw(st.sampled_from(("linear", "relu"))),
        biases=draw(st.booleans()),
        multipliers=draw(st.sampled_from(((1.0, 1.0, 1.0), (0.5, 2.0, 0.3)))),
        bias_variance=1.0,
    )


@st.composite
def transformers(draw: st.DrawFn) -> Transformer:
    """Of few sizes, so that JAX compiles few; heads of an even one, for rotary positions."""
    return Transformer(
        depth=draw(st.integers(1, 2)),
        width=8,
        heads=draw(st.sampled_from((1, 2))),
        tokens=draw(st.sampled_from((1, 3))),
        ffn=draw(st.sampled_from((0.5, 4))),
        norm=draw(st.sampled_from(NORMS)),
        normalisation=draw(st.sampled_from(NORMALISATIONS)),
        attention_scale=draw(st.sampled_from(ATTENTION_SCALES)),
        causal=draw(st.booleans()),
        activation=draw(st.one_of(activations, st.just("swiglu"))),
        rotary=draw(st.booleans()),
        scaling=draw(st.sampled_from((*SCALINGS, 0.3, "rezero"))),
        tied=draw(st.booleans()),
        outputs=3,
        head=draw(st.sampled_from(HEADS)),
        readout=draw(st.sampled_from(tuple(TOKENS_READ))),
        inputs=2,
    )


# Behind a join; dropout is nothing outside training.
AFTER = ((), (), (Normalisation("layer", 0.1),), (BatchNormalisation(0.1),), (Dropout(0.5),))
BRANCHES = ("stencil", "gated", "groups", "attention", "bias", "normalised", "over the batch", "gain")


JOINED = st.sampled_from(("add", "add", "concat"))


def branch(kind: str, name: str, channels: int, dimensions: int, draw: st.DrawFn) -> tuple[Map, ...]:
    """Maps of that kind, channels to channels; whoever asks again for a kind and a name has the same weights."""
    kernel, padding = (2,) * dimensions, draw(st.sampled_from(PADDINGS))
    sigma = Pointwise(draw(st.sampled_from(("tanh", "gelu", "relu"))))

    def weight(part: str, taps: tuple[int, ...] = (), groups: int = 1) -> Weight:
        return Weight(f"{kind}{name}{part}{channels}", (channels, channels // groups, *taps), 0.5 / channels, groups)

    stencil = Linear((weight("", kernel),), padding, draw(st.integers(1, 2)))
    if kind == "stencil":
        return sigma, stencil
    if kind == "gated":
        return Linear((weight("1"), weight("3"))), Gate("silu"), Linear((weight("2"),))
    if kind == "groups":
        return sigma, Linear((weight("", kernel, groups=2),), padding)
    if kind == "attention":
        heads = Attention(2, draw(st.sampled_from(ATTENTION_SCALES)), draw(st.booleans()), draw(st.booleans()))
        return Linear((weight("q"), weight("k"), weight("v"))), heads, Linear((weight("o"),))
    if kind == "bias":
        return stencil, Bias(Weight(f"{kind}{name}b{channels}", (channels,), 1.0)), sigma
    if kind == "gain":
        return sigma, stencil, Gain(Weight(f"{kind}{name}g", (1,), 1.0))
    if kind == "over the batch":
        return sigma, Dropout(0.3), stencil, BatchNormalisation(0.1)
    return Normalisation(draw(st.sampled_from(NORMALISATIONS)), 0.1), stencil


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Units of any maps, which skip from where they like, several from one value among them, and share weights.

    They add to values of as many channels as theirs, and concatenate to any.
    """
    values, grid = [4], draw(st.sampled_from(((3,), (2, 3))))
    units = []
    for number in range(draw(st.integers(1, 4))):
        channels = values[-1]
        maps = branch(draw(st.sampled_from(BRANCHES)), draw(st.sampled_from("ab")), channels, len(grid), draw)
        after = draw(st.sampled_from(AFTER))
        skip = draw(st.one_of(st.none(), st.integers(0, number)))
        join = "add" if skip is None else draw(JOINED) if values[skip] == channels else "concat"
        units.append(Unit(maps, skip, draw(st.sampled_from((1.0, 0.5))), after, join))
        values.append(channels + (values[skip] if join == "concat" else 0))
    channels = values[-1]
    outputs = Linear((Weight("readout", (2, channels), 1 / channels),))
    of_all = Flatten(prod(grid)), Linear((Weight("readout", (2, channels * prod(grid)), 1 / channels),))
    readouts = (None, (Pooling("mean"), outputs), (Pooling("last"), outputs), (outputs,), of_all)
    readout = draw(st.sampled_from(readouts))
    return Chain(
        units=tuple(units),
        readout_unit=None if readout is None else Unit(readout),
        input_channels=values[0],
        grid=grid,
        inputs=draw(st.integers(1, 2)),
    )


@st.composite
def dense_nets(draw: st.DrawFn) -> DenseNet:
    grid = draw(st.sampled_from(((), (3,), (2, 3))))
    stem = draw(st.integers(0, 1))
    return DenseNet(
        depth=draw(st.integers(1, 3)),
        growth=draw(st.integers(1, 3)),
        width=draw(st.integers(1, 3)),
        stem=stem,
        activation=draw(activations),
        grid=grid,
        kernel=(2,),
        padding=draw(st.sampled_from(PADDINGS)),
        outputs=draw(st.integers(1, 2)),
        head=draw(st.sampled_from(HEADS)),
        readout=draw(st.sampled_from(READOUTS)),
        inputs=draw(st.integers(1, 2)),
        input_width=draw(st.integers(1, 2)) if stem else None,
    )


def nets() -> st.SearchStrategy:
    """Any small net: of any family, or of units at random."""
    return st.one_of(architectures(), dense_nets(), staged_nets(), loops(), block_nets(), chains(), transformers())


def architectures() -> st.SearchStrategy:
    """Any small net of layers."""
    return st.one_of(mlps(), conv_nets(), residual_nets())
