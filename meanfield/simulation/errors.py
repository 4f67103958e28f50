"""Error columns of a draw: what the labels and what the outputs contribute to dL/dz_out, for every loss.

    squared         L = |z_out - y|^2 / (2 M) per sample:           dL/dz_out = (z_out - y) / M
    cross_entropy   L = -sum_t y_t log p_t, mean over output sites: dL/dz_out = ((p - 1/C) - (y - 1/C)) / sites

with p the softmax over the C output channels of a site and y the unit vector of a class drawn uniformly; means are over
samples. Either loss gives one column that is odd in the labels about their mean (up to sign) and one without labels, so
that S = A + B for both. Every part of the labels' law has a random stream of its own.
"""

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.seeds import Streams
from meanfield.nets.inputs.batches import Batch
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.inputs import StreamsFor, drawn_classes
from meanfield.simulation.kernels.normals import NormalSource


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
