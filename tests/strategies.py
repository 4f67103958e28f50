"""Random small specs."""

from __future__ import annotations

from hypothesis import strategies as st

from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.conv_net import ConvNet
from meanfield.nets.lattice import PADDINGS
from meanfield.nets.layered import HEADS, READOUTS
from meanfield.nets.mlp import MLP
from meanfield.nets.residual import SCALINGS, ResidualConvNet, ResidualMLP
from meanfield.nets.tied_loop import TiedLoop

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
        "scaling": draw(st.sampled_from(SCALINGS)),
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
def loops(draw: st.DrawFn) -> TiedLoop:
    return TiedLoop(
        depth=draw(st.integers(1, 6)),
        width=draw(st.integers(1, 6)),
        alpha=draw(st.sampled_from((-1, 0, 0.5, 1, 2))),
        weight_variance=draw(st.sampled_from((0.3, 1.0, 2.0, 10.0))),
        activation=draw(activations),
        tied=draw(st.booleans()),
    )


def architectures() -> st.SearchStrategy:
    """Any small net of any family."""
    return st.one_of(mlps(), conv_nets(), residual_nets())
