"""What enters a net in one draw: inputs from below, and the error columns of labels and outputs from above.

Inputs follow the net's own law, or are a batch that the user gives. For every loss, the columns are what the labels
and what the outputs contribute to dL/dz_out:

    squared         L = |z_out - y|^2 / (2 M) per sample:           dL/dz_out = (z_out - y) / M
    cross_entropy   L = -sum_t y_t log p_t, mean over output sites: dL/dz_out = ((p - 1/C) - (y - 1/C)) / sites

with p the softmax over the C output channels of a site and y the unit vector of a class drawn uniformly; means are
over samples. Either loss gives one column that is odd in the labels about their mean (up to sign) and one without
labels, so that S = A + B for both. Every part of the labels' law has a random stream of its own.
"""

from collections.abc import Callable

import numpy as np

from meanfield.common.seeds import Streams
from meanfield.common.validation import Array
from meanfield.nets.inputs import Batch
from meanfield.nets.net import Net
from meanfield.simulation.arrays import NUMPY, Arrays
from meanfield.simulation.kernels.gaussians import NormalSource

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


def output_gradients(
    streams_for: StreamsFor,
    inputs: Array,
    output: Array,
    batch: Batch,
    loss: str,
    arrays: Arrays = NUMPY,
) -> Array:
    """dL/dz_out of the label column and of the output column: (D, outputs, 2 B, output sites).

    ``inputs`` are (D, C_0, B, S) and on the host, where labels are drawn; ``output`` (D, outputs, B, output sites).
    """
    if loss == "cross_entropy":
        uniform = 1 / output.shape[1]
        classes = drawn_classes(streams_for("labels"), output.shape[1], output.shape[2:])
        label, own = classes - uniform, arrays.softmax(output, axis=1) - uniform
        averaged = output.shape[3] * output.shape[2]
    else:
        label, own = drawn_labels(streams_for, inputs, output, batch), output
        averaged = output.shape[1] * output.shape[3] * output.shape[2]
    return arrays.xp.concatenate([arrays.moved(label), own], axis=2) / averaged


def error_at_output(gradient: Array, loss: str, arrays: Arrays = NUMPY) -> Array:
    """|e|^2 of z_out - y, or of p - y, from both columns of `output_gradients`: one number per draw.

    The cross term of the columns, whose mean over labels is 0, is left out, as in S = A + B.
    """
    places = gradient.shape[2] * gradient.shape[3] // 2
    averaged = places * (1 if loss == "cross_entropy" else gradient.shape[1])
    flat = gradient.reshape(len(gradient), -1)
    return arrays.xp.square(flat).sum(axis=1, dtype="float64") * averaged**2 / places


def drawn_labels(streams_for: StreamsFor, inputs: Array, output: Array, batch: Batch) -> Array:
    """Labels of the batch's law, in the shape of the output."""
    if batch.labels == "teacher":
        labels = _taught(inputs, output, streams_for("teacher"))
    else:
        labels = NormalSource(streams_for("labels")).drawn(output.shape[1:])
    if batch.label_mean:
        means = NormalSource(streams_for("label means")).drawn((output.shape[1], 1, output.shape[3]))
        labels += batch.label_mean * means
    return labels


def _taught(inputs: Array, output: Array, streams: Streams) -> Array:
    """T x / sqrt(C_0), with a T of its own at each output site; under a pooled readout x is the whole input."""
    sites = output.shape[3]
    if sites == 1:
        inputs = inputs.swapaxes(2, 3).reshape(len(inputs), -1, inputs.shape[2], 1)
    channels = inputs.shape[1]
    teacher = NormalSource(streams).drawn((output.shape[1], channels, sites))
    return np.einsum("dtcs,dcbs->dtbs", teacher, inputs, optimize=True) / np.sqrt(channels)
