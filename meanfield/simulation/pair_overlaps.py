"""Overlaps of chosen pairs of parameter directions, followed from where they begin to the top layer.

A direction of `meanfield.directions` begins as the tangent u = e_a X' x0 / |x0| of its own layer, X the patches there
and x0 that of the first sample's first site, and is carried up like every tangent, u <- W patches(sigma'(z) u).
Overlaps T_h = <u, v> / n_h are read off at every layer, n_h = channels x samples x sites.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.directions import Direction, Pair
from meanfield.seeds import stream
from meanfield.simulation import passes
from meanfield.simulation.cost import LAZY_EFFORT, OPERATIONS_PER_NUMBER
from meanfield.simulation.inputs import draw_inputs
from meanfield.simulation.weights import draw_weights

Array = NDArray[np.float64]

# Columns that a lazily revealed matrix may be asked for before filling it is the cheaper way.
LAZY_SHARE = 1 / 8


def cheaper_weights(architecture: Sequential, pairs: tuple[Pair, ...]) -> str:
    """The kind of weights, dense or lazy, that costs less for so many directions."""
    smallest = min(architecture.channels_by_layer) * architecture.taps
    return "lazy" if _columns(architecture, pairs) <= LAZY_SHARE * smallest else "dense"


def overlap_operations(architecture: Sequential, pairs: tuple[Pair, ...], weights: str) -> float:
    """Operations of one draw, random numbers counted as the operations that take the same time."""
    columns = _columns(architecture, pairs)
    shapes = architecture.weight_shapes[:-1]
    if weights == "lazy":
        return OPERATIONS_PER_NUMBER * LAZY_EFFORT * columns * sum(shape[0] for shape in shapes)
    return (OPERATIONS_PER_NUMBER + 2 * columns) * sum(prod(shape) for shape in shapes)


def draw_overlaps(
    architecture: Sequential, pairs: tuple[Pair, ...], seed: int, draws: range, weights: str, fixed_layers: int
) -> dict[str, Array]:
    """Per draw, pair and layer, (D, pairs, L), NaN where a direction of the pair has not begun.

    ``overlap`` T_h; ``squared_overlap`` T_h^2; ``gated_overlap``, the mean of T_{h+1} given everything up to layer h;
    ``overlap_variance``, the square of T_h minus that mean. Inputs and the weights of the first ``fixed_layers`` layers
    are those of draw 0 in every draw.
    """
    matrices = draw_weights(architecture, [stream(seed, "weights", draw) for draw in draws], weights)
    inputs = draw_inputs(architecture, [stream(seed, "inputs", 0 if fixed_layers else draw) for draw in draws])
    if fixed_layers:
        same = [stream(seed, "weights below", 0) for _ in draws]
        matrices[:fixed_layers] = draw_weights(architecture, same, weights)[:fixed_layers]
    state = passes.forward(architecture, matrices, inputs)

    directions = _directions(pairs)
    places = [(directions.index(first), directions.index(second)) for first, second in pairs]
    overlap, gated = np.full((2, len(draws), len(pairs), architecture.depth), np.nan)
    tangents: dict[int, Array] = {}
    for layer in range(1, architecture.depth + 1):
        below, here = state.hidden[layer - 1 : layer + 1]
        if tangents:
            columns = passes.gated(architecture, below, np.concatenate(list(tangents.values()), axis=2))
            moved = passes.apply_layer(architecture, matrices[layer - 1], columns)
            tangents = dict(zip(tangents, np.split(moved, len(tangents), axis=2), strict=True))
        for index, (own, unit) in enumerate(directions):
            if own == layer:
                tangents[index] = _begun(architecture, below, here.shape, unit)
        for pair, (first, second) in enumerate(places):
            if first in tangents and second in tangents:
                product = tangents[first] * tangents[second]
                overlap[:, pair, layer - 1] = product.mean(axis=(1, 2, 3))
                open_gates = np.square(architecture.sigma.gate(here))
                gated[:, pair, layer - 1] = (open_gates * product).mean(axis=(1, 2, 3)) / architecture.sigma.gain
    innovation = np.full_like(overlap, np.nan)
    innovation[..., 1:] = np.square(overlap[..., 1:] - gated[..., :-1])
    return {
        "overlap": overlap,
        "squared_overlap": np.square(overlap),
        "gated_overlap": gated,
        "overlap_variance": innovation,
    }


def _columns(architecture: Sequential, pairs: tuple[Pair, ...]) -> int:
    """Columns that every matrix multiplies: pre-activations and tangents."""
    return (1 + len(_directions(pairs))) * architecture.inputs * architecture.sites


def _directions(pairs: tuple[Pair, ...]) -> list[Direction]:
    return sorted({direction for pair in pairs for direction in pair})


def _begun(architecture: Sequential, below: Array, shape: tuple[int, ...], unit: int) -> Array:
    """A direction's tangent at its own layer: (D, C, B, S), only its unit moving; 0 if its features vanish."""
    gram = passes.site_gram(architecture, architecture.sigma.function(below))
    length = np.sqrt(gram[:, :1, 0])
    profile = np.divide(gram[:, :, 0], length, out=np.zeros_like(gram[:, :, 0]), where=length > 0)
    tangent = np.zeros(shape)
    tangent[:, unit - 1] = profile.reshape(shape[0], *shape[2:])
    return tangent
