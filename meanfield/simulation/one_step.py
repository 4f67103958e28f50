"""One gradient step of a net with given weights, in the layouts of deep-learning programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.nets.families import require_net
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.simulation import old_passes as passes
from meanfield.simulation.arrays.arrays import Arrays
from meanfield.simulation.arrays.float_range import (
    JUMP,
    LEAST,
    overflow_silent,
    require_finite,
    require_followed,
    require_range,
)
from meanfield.simulation.arrays.resolve import arrays_of
from meanfield.simulation.inputs import repeated_inputs
from meanfield.simulation.weights import Dense, WeightMatrix
from meanfield.validation import require_array

Array = NDArray[np.float64]


def one_step(
    architecture: Sequential,
    weights: Sequence[ArrayLike],
    inputs: ArrayLike,
    output_error: ArrayLike,
    *,
    backend: str = "numpy",
    precision: str = "float64",
) -> list[Array]:
    """Change of every pre-activation under one gradient step of rate 1, to first order in the rate.

    The loss is the mean over samples of |z_out - y|^2 / (2 M), M the output coordinates of a sample; the step is
    Delta W = -dL/dW for every weight, and Delta z^(l) = sum over weights of dz^(l)/dW Delta W.

    Args:
        architecture: the net.
        weights: W^(1) .. W^(L) and the readout, of shapes `architecture.weight_shapes`:
            (channels out, channels in, *kernel); a pooled readout is (outputs, channels).
        inputs: (samples, channels, *grid).
        output_error: z_out - y, of shape `architecture.output_shape`: (samples, outputs, *grid), without the grid
            under a pooled readout.
        backend, precision: where and how precisely the passes run, as in `simulate`.

    Returns:
        Delta z^(1) .. Delta z^(L), each (samples, channels, *grid). Dimensionless; for O(1) errors the mean square
        grows as n l^3 / M^2 times the outputs at one site.

    Raises:
        TypeError, ValueError: what is no net (loops are not served), an array of the wrong shape, of other than real
            numbers or with values that are not finite, or an unknown backend or precision. ModuleNotFoundError,
            OSError: a backend without its library or its device. OverflowError: changes outside the range of floats.

    Source: P0 eq. 7.
    """
    require_net(architecture)
    arrays = arrays_of(backend, precision)
    error = require_array("output_error", output_error, architecture.output_shape, "(samples, outputs, *output grid)")
    _require_followed(arrays, "output_error", error)
    gradient = arrays.moved(_to_columns(error) / (architecture.output_units * architecture.inputs))
    with overflow_silent():
        matrices, state = _checked_forward(architecture, weights, inputs, arrays)
        top = passes.through_readout(architecture, matrices, state, gradient)
        errors = passes.backward(architecture, matrices, state, top, len(architecture.layers))
        changes = passes.at_unit_ends(architecture, passes.tangent(architecture, matrices, state, errors))
        found = [-_to_images(arrays.fetched(change), architecture.grid) for change in changes]
    _require_range("a change", found, precision)
    return found


def pre_activations(
    architecture: Sequential,
    weights: Sequence[ArrayLike],
    inputs: ArrayLike,
    *,
    backend: str = "numpy",
    precision: str = "float64",
) -> list[Array]:
    """z^(1) .. z^(L), each (samples, channels, *grid), and the outputs, of shape `architecture.output_shape`.

    Same arguments and errors as `one_step`. Source: P0 eqs. 2, 3.
    """
    require_net(architecture)
    arrays = arrays_of(backend, precision)
    with overflow_silent():
        _, state = _checked_forward(architecture, weights, inputs, arrays)
    hidden = [arrays.fetched(z) for z in passes.at_unit_ends(architecture, state.hidden[1:])]
    outputs = _to_images(arrays.fetched(state.output), architecture.output_shape[2:])
    found = [*(_to_images(z, architecture.grid) for z in hidden), outputs]
    _require_range("a pre-activation", found, precision)
    return found


def _checked_forward(
    architecture: Sequential, weights: Sequence[ArrayLike], inputs: ArrayLike, arrays: Arrays
) -> tuple[list[WeightMatrix], passes.Forward]:
    """The weights as matrices of a single draw, and the forward pass through them."""
    shapes = architecture.weight_shapes
    if len(weights) != len(shapes):
        raise ValueError(
            f"weights has {len(weights)} arrays; this architecture takes {len(shapes)}, of shapes {shapes}"
        )
    layout = "(channels out, channels in, *kernel)"
    given = [
        require_array(f"weights[{index}]", weight, shape, layout)
        for index, (weight, shape) in enumerate(zip(weights, shapes, strict=True))
    ]
    for index, array in enumerate(given):
        _require_followed(arrays, f"weights[{index}]", array, JUMP)
    matrices: list[WeightMatrix] = [Dense(arrays.moved(array.reshape(1, len(array), -1))) for array in given]
    batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    _require_followed(arrays, "inputs", batch)
    values = arrays.moved(repeated_inputs(architecture, batch, 1))
    return matrices, passes.forward(architecture, matrices, values, arrays)


def _require_followed(arrays: Arrays, what: str, given: Array, least: float = LEAST) -> None:
    if arrays.precision == "float32":
        require_followed(what, float(np.abs(given).max()), least)


def _require_range(what: str, found: list[Array], precision: str) -> None:
    """Raise OverflowError unless the precision holds these arrays of every layer."""
    if precision == "float32":
        require_range({what: np.array([[np.abs(values).max() for values in found]])})
    require_finite(what, found)


def _to_columns(images: Array) -> Array:
    """(B, C, *grid) -> (1, C, B, S)."""
    return images.reshape(*images.shape[:2], -1).swapaxes(0, 1)[None]


def _to_images(columns: Array, grid: tuple[int, ...]) -> Array:
    """(1, C, B, S) -> (B, C, *grid)."""
    samples_first = columns[0].swapaxes(0, 1)
    return samples_first.reshape(*samples_first.shape[:2], *grid)
