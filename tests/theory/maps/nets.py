"""Small nets of every map by their width, on given inputs of two samples and three sites or of three samples."""

from __future__ import annotations

import numpy as np

import meanfield as mf
from meanfield.nets.block_net import BlockNet
from meanfield.nets.maps import (
    Attention,
    AveragePooling,
    Bias,
    Flatten,
    Gate,
    Linear,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Chain, Unit

CHANNELS = 3


def linear(name, above, below, taps=(), groups=1, **options):
    """One weight whose outputs are about as large as what it sees."""
    shape = (above, below // groups, *taps)
    return Linear((Weight(name, shape, 1.2 / np.prod(shape[1:]), groups),), **options)


def stack(names, width):
    """Weights side by side, of variances of their own."""
    variances = (1.2 + 0.4 * place for place in range(len(names)))
    return Linear(tuple(Weight(name, (width, width), s / width) for name, s in zip(names, variances, strict=True)))


def chain(width, *units, grid=(3,)):
    """These units on two linear maps, the second of which gives the kernel as large a part as those above it do.

    Between them values are normalised, so that draws differ less.
    """
    stem = Unit((linear("stem", width, CHANNELS), Normalisation("rms"), linear("wide", width, width)))
    return Chain(units=(stem, *units), input_channels=CHANNELS, grid=grid, inputs=2)


def convolution(width):
    conv = linear("conv", width, width, (2,), padding="zero", dilation=2)
    return chain(width, Unit((Pointwise("relu"), conv)), Unit((Pointwise("relu"), linear("top", width, width)), 2, 0.7))


def groups(width):
    """A stencil for every channel by itself, and one for every half of them."""
    alone = linear("alone", width, width, (3,), width)
    return chain(width, Unit((Pointwise("tanh"), alone)), Unit((linear("half", width, width, (2,), 2),)))


def biases(width):
    def bias(name):
        return Bias(Weight(name, (width,), 0.8))

    return chain(width, Unit((bias("b1"), Pointwise("relu"), linear("top", width, width), bias("b2"))))


def gated(width):
    maps = stack(("w1", "w3"), width), Gate("silu"), linear("w2", width, width)
    return chain(width, Unit((Normalisation("rms"), *maps)))


def layer_norm(width):
    return chain(width, Unit((Pointwise("relu"), Normalisation("layer"), linear("top", width, width))))


def attention(width, causal=True):
    maps = stack(("q", "k", "v"), width), Attention(1, "inverse", causal, rotary=True), linear("o", width, width)
    return chain(width, Unit(maps, 1, after=(Normalisation("rms", 0.1),)))


def everywhere(width):
    return attention(width, causal=False)


def softmax(width):
    """One head, whose size is the width; nothing behind it that would see how a head departs from the mean of heads."""
    maps = stack(("q", "k", "v"), width), Attention(1, "inverse_sqrt"), linear("o", width, width)
    return chain(width, Unit(maps))


def pooled(width, kind="mean"):
    return chain(width, Unit((Pointwise("gelu"), Pooling(kind), linear("top", width, width))))


def strided(width):
    """A stride in a branch and on its skip: two sites of three."""
    down = linear("down", width, width, (2,), padding="zero", stride=(2,))
    short = linear("short", width, width, padding="zero", stride=(2,))
    return chain(width, Unit((Pointwise("relu"), down), 1, 0.7, shortcut=(short,)))


def windows(width):
    """Means over a window in a branch and on its skip."""
    mean = AveragePooling((3,))
    return chain(width, Unit((Pointwise("relu"), mean, linear("top", width, width)), 1, 0.7, shortcut=(mean,)))


def last(width):
    return pooled(width, "last")


def flattened(width):
    return chain(width, Unit((Pointwise("gelu"), Flatten(3), linear("top", width, 3 * width))))


def dense(width):
    """The blocks' own channels are a third of the value; of the net on two linear maps, as the others."""

    def block(n):
        return Unit((Pointwise("gelu"), linear(f"block{n}", width, n * width, (2,))), n, 0.7, join="concat")

    blocks = map(block, (1, 2))
    return chain(width, *blocks, Unit((Pointwise("relu"), linear("top", width, 3 * width))))


def rectified_blocks(width):
    """Branches that end in a ReLU: their means and the stream's meet."""
    scales = {"variances": (1.0, 2.0 / width, 1.0), "multipliers": (1.0, 0.6, 1.0), "bias_variance": 0.5}
    return BlockNet(width=width, depth=2, input_width=CHANNELS, samples=3, activation="relu", biases=True, **scales)


def residual(width):
    options = {"depth": 2, "width": width, "block_depth": 2, "scaling": "multiplier_sqrt", "stem": 1, "inputs": 3}
    return mf.ResidualMLP(activation="gelu", input_width=CHANNELS, **options)


NETS = {
    made.__name__: made
    for made in (
        convolution,
        groups,
        biases,
        gated,
        layer_norm,
        attention,
        everywhere,
        softmax,
        pooled,
        strided,
        windows,
        last,
        flattened,
        dense,
        rectified_blocks,
        residual,
    )
}


def inputs_of(net):
    """The same for every width; a fan of points, from nearly alike to nearly opposite."""
    points = net.inputs * net.sites
    order = [0, 3, 1, 4, 5, 2] if net.grid else range(points)
    angle = np.linspace(0, 0.8 * np.pi, points)[order]
    values = np.stack([np.cos(angle), np.sin(angle), np.full(points, 0.3)]) * np.linspace(0.8, 1.6, points)
    return values.reshape(CHANNELS, net.inputs, *net.grid).swapaxes(0, 1)
