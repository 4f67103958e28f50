"""`predict`: one entry to every level of theory, answering in the schema of `simulate`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.architectures import INPUT_LAYOUT, Sequential
from meanfield.datasets import predicted_dataset
from meanfield.memory import NUMBER_BYTES, require_bytes
from meanfield.theory import laws, mean_field
from meanfield.theory.transport import Transport
from meanfield.validation import require_array, require_choice

Array = NDArray[np.float64]

LEVELS = ("mean_field", "law")

# Square arrays over pairs of sites that the recursion holds at once.
SITE_PAIR_ARRAYS = 12


def predict(architecture: Sequential, *, level: str, inputs: ArrayLike | None = None) -> xr.Dataset:
    """Expected overlap energy and label term of every layer, without drawing anything.

    Args:
        architecture: the net.
        level: "mean_field", leading order in 1/channels for any sites and padding (THEORY section 4), or "law",
            the papers' sum of minima l (l + 1)(2 l + 1)/6 with its prefactor set at `anchor_layer` (P0 eq. 22, 23).
        inputs: a given batch (samples, channels, *grid); the architecture's own input law if not given.

    Returns:
        Dataset over ``layer``: ``overlap_energy``; under a convolutional readout (and for fully-connected nets)
        also ``label_term`` and ``label_learning_rate_scale``, for labels of variance 1 at rate 1. Under a pooled
        readout labels reach all sites alike and the label term does not reduce to the overlap energy, so it is
        left out. Output terms have no prediction at these levels.

    Raises:
        ValueError: a level that does not exist, naming those that do; inputs of the wrong shape.
        MemoryError: more pairs of sites than the machine can hold, saying how much they need.
    """
    require_choice("level", level, LEVELS)
    if inputs is not None or architecture.padding != "circular":
        pairs = (architecture.inputs * architecture.sites) ** 2
        require_bytes(
            SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs, "the mean field over all pairs of sites", "grid or samples"
        )
    if inputs is None:
        transport, product = mean_field.white_input(architecture)
    else:
        batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
        transport, product = mean_field.given_input(architecture, batch)
    overlap, label = _mean_field_terms(architecture, transport, product)
    attrs: dict[str, Any] = {"level": level, "architecture": json.dumps(architecture.describe())}
    if level == "law":
        anchor = anchor_layer(architecture)
        channels = np.array(architecture.channels_by_layer)
        law = laws.weighted_sum_of_minima(channels[:-1] / channels[-1])
        overlap, label = (term[anchor - 1] * law / law[anchor - 1] for term in (overlap, label))
        attrs["anchor_layer"] = anchor
    values = {"overlap_energy": overlap}
    if not architecture.is_pooled:
        values |= {"label_term": label, "label_learning_rate_scale": label.mean() ** -0.5}
    return predicted_dataset(values, attrs)


def anchor_layer(architecture: Sequential) -> int:
    """Layer at which the sum of minima takes its prefactor from the mean field: the first one like all others.

    That is layer 1 if the input has as many channels as the layers, else layer 2.
    """
    return 1 if architecture.depth == 1 or len(set(architecture.channels_by_layer[:2])) == 1 else 2


def _mean_field_terms(architecture: Sequential, transport: Transport, product: Array) -> tuple[Array, Array]:
    """F_l and, for independent labels of variance 1 at every output site, B_l = n_l mean(F w) / M^2."""
    places = architecture.inputs * architecture.sites
    outputs = architecture.output_units * architecture.inputs
    overlap, label = [], []
    layers = mean_field.layer_moments(architecture, transport, product)
    for channels, weight, moments in zip(
        architecture.channels_by_layer[1:], mean_field.label_weights(architecture), layers, strict=True
    ):
        pairs = moments.overlap(channels)
        overlap.append(transport.mean(pairs))
        label.append(channels * places * transport.mean(pairs, weight) / outputs**2)
    return np.array(overlap), np.array(label)
