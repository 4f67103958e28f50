"""Nets that have every map, tied weights, groups, stacks of weights and several skips from one value."""

from meanfield.nets.maps import (
    Attention,
    AveragePooling,
    Bias,
    Flatten,
    Gain,
    Gate,
    Linear,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Chain, Unit


def linear(*weights, **how):
    return Linear(tuple(Weight(name, shape, 0.3) for name, shape in weights), **how)


def bias(name, channels):
    return Bias(Weight(name, (channels,), 0.2))


def transformer():
    """Two blocks of attention with one set of weights and one gain, SwiGLU, biases, both normalisations, both sides of
    a join."""
    stacked = linear(("Wq", (4, 4)), ("Wk", (4, 4)), ("Wv", (4, 4)))
    attention = Attention(2, causal=True, rotary=True)
    block = (Normalisation("layer", 0.1), stacked, attention, linear(("Wo", (4, 4))), Gain(Weight("gain", (1,), 1.0)))
    units = (
        Unit((linear(("embed", (4, 3))), bias("position", 4))),
        Unit(block, 1, 0.7),
        Unit((linear(("W1", (3, 4)), ("W3", (3, 4))), Gate("silu"), linear(("W2", (4, 3))), bias("b2", 4)), 2),
        Unit(block, 3, 0.7, (Normalisation("rms", 0.1),)),
    )
    readout = Unit((Normalisation("rms", 0.1), Pooling(), linear(("head", (3, 4)))), None, 1.5)
    return Chain(units=units, readout_unit=readout, input_channels=3, grid=(3,))


def convolutional():
    """Groups, dilation, zero padding, an even stencil, two units that skip from one value, a readout with sites."""
    grouped = Linear((Weight("W1", (4, 1, 3), 0.5, groups=2),), "zero", 2)
    units = (
        Unit((grouped, bias("b1", 4), Pointwise("tanh"))),
        Unit((linear(("W2", (4, 4, 2))), Pointwise("gelu"), linear(("W2", (4, 4, 2)), padding="zero")), 1, 0.5),
        Unit((Pointwise("silu"), linear(("W3", (4, 4, 3)))), 1),
    )
    return Chain(
        units=units, readout_unit=Unit((linear(("head", (3, 4, 1))), bias("b", 3))), input_channels=2, grid=(4,)
    )


def loop():
    """One matrix at every step and in the readout, on vectors; the last site is pooled."""
    step = (Pointwise("tanh"), linear(("W", (3, 3))), bias("b", 3))
    units = tuple(Unit(step, number, 0.6) for number in range(3))
    return Chain(units=units, readout_unit=Unit((Pooling("last"), linear(("W", (3, 3))))), input_channels=3)


def plain():
    """Matrices wide enough for factors to be worth it."""
    units = (
        Unit((linear(("W1", (9, 8))), bias("b1", 9), Pointwise("tanh"))),
        Unit((linear(("W2", (9, 9))), Pointwise("tanh")), 1, 0.5),
    )
    return Chain(units=units, readout_unit=Unit((linear(("head", (3, 9))),)), input_channels=8)


def concatenating():
    """Units set beside the value below them, beside an earlier one, and beside the input."""
    units = (
        Unit((linear(("W1", (3, 2, 2))),)),
        Unit((Pointwise("tanh"), linear(("W2", (2, 3, 2)), padding="zero")), 1, 0.5, join="concat"),
        Unit((Pointwise("gelu"), linear(("W3", (2, 5, 2))), bias("b3", 2)), 1, join="concat"),
        Unit((Pointwise("tanh"), linear(("W4", (2, 5, 2)))), 0, 0.7, (Normalisation("rms", 0.1),), "concat"),
    )
    readout = Unit((Pointwise("silu"), Flatten(4), linear(("head", (3, 16)))))
    return Chain(units=units, readout_unit=readout, input_channels=2, grid=(4,))


def staged():
    """Strides and means over windows in branches and shortcuts, an edge that the stride does not divide."""
    units = (
        Unit((Pointwise("tanh"), Linear((Weight("W1", (3, 2, 2), 0.5),), "zero"))),
        Unit(
            (Pointwise("tanh"), Linear((Weight("W2", (4, 3, 3), 0.3),), "zero", stride=(2,))),
            1,
            0.5,
            shortcut=(Linear((Weight("s2", (4, 3), 0.3),), "zero", stride=(2,)),),
        ),
        Unit(
            (Pointwise("silu"), AveragePooling((2,)), linear(("W3", (4, 4, 2)))),
            2,
            shortcut=(AveragePooling((2,)), linear(("s3", (4, 4)))),
        ),
    )
    readout = Unit((Pointwise("gelu"), linear(("head", (3, 4, 1)))))
    return Chain(units=units, readout_unit=readout, input_channels=2, grid=(7,))


NETS = {
    "transformer": transformer(),
    "convolutional": convolutional(),
    "loop": loop(),
    "plain": plain(),
    "concatenating": concatenating(),
    "staged": staged(),
}
