"""Inputs of a draw: the architecture's own law, or a batch that the user gives."""

from collections.abc import Callable

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.seeds import Streams
from meanfield.nets.net import Net
from meanfield.simulation.kernels.normals import NormalSource

# The streams of all draws, by purpose.
StreamsFor = Callable[[str], Streams]

# Input scales are sought between 2^-60 and 2^60; as many halvings find them to rounding.
OCTAVES = 60


def draw_inputs(net: Net, streams_for: StreamsFor, correlation: float = 0.0) -> Array:
    """Fresh inputs (D, C_0, B, S): white Gaussian, scaled as the net's law says, or one-hot tokens.

    Samples of ``correlation`` rho are sqrt(1 - rho) times one of their own plus sqrt(rho) times one that they share.
    """
    channels, sites = net.first_channels, net.sites
    if net.input_law == "tokens":
        return drawn_classes(streams_for("inputs"), channels, (net.inputs, sites))
    inputs = NormalSource(streams_for("inputs")).drawn((channels, net.inputs, sites))
    if correlation:
        common = NormalSource(streams_for("shared input")).drawn((channels, 1, sites))
        inputs = np.sqrt(1 - correlation) * inputs + np.sqrt(correlation) * common
    if net.input_law == "normalised":
        inputs = _normalised(net, inputs)
    elif net.input_law == "sphere":
        inputs /= np.sqrt(np.square(inputs).mean(axis=1, keepdims=True))
    return inputs


def stream_starts(net: Net, streams: Streams, inputs: Array | None) -> Array:
    """What a stream starts from in every draw, (D, C, B, S): the given batch, tokens, or h_0 white Gaussian."""
    if inputs is not None:
        return repeated_inputs(net, inputs, len(streams))
    if net.input_law == "tokens":
        return drawn_classes(streams, net.first_channels, (net.inputs, net.sites))
    return NormalSource(streams).drawn((net.first_channels, net.inputs, net.sites))


def drawn_classes(streams: Streams, classes: int, shape: tuple[int, ...]) -> Array:
    """Unit vectors (D, classes, *shape) over the channels, of classes drawn uniformly at every place of this shape."""
    drawn = np.stack([generator.integers(classes, size=shape) for generator in streams.generators()])
    return (drawn[:, None] == np.arange(classes).reshape(-1, *[1] * len(shape))).astype(float)


def _normalised(net: Net, inputs: Array) -> Array:
    """Scaled to |sigma(x)|^2 = n times the input energy; negated first where no scale reaches it (at tiny widths)."""
    assert net.input_energy is not None  # as of every net of this law
    sigma, target = net.input_activation, net.input_energy * inputs.shape[1]

    def energy(values: Array) -> Array:
        return np.asarray(np.square(sigma.function(values)).sum(axis=1, keepdims=True))

    inputs = np.where(energy(2.0**OCTAVES * inputs) >= target, inputs, -inputs)
    if sigma.homogeneous:
        return np.asarray(inputs * np.sqrt(target / energy(inputs)))
    # Energies need not grow everywhere (gelu dips below zero), but at the target they do: they cross it once.
    low = np.full((len(inputs), 1, *inputs.shape[2:]), -float(OCTAVES))
    high = -low
    for _ in range(OCTAVES):
        middle = (low + high) / 2
        below = energy(2**middle * inputs) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(2**high * inputs)


def repeated_inputs(net: Net, batch: Array, draws: int) -> Array:
    """A given batch (B, C_0, *grid) in the passes' layout, the same for every draw."""
    flat = batch.reshape(-1, net.first_channels, net.sites).swapaxes(0, 1)
    return np.ascontiguousarray(np.broadcast_to(flat, (draws, *flat.shape)))
