"""Random weights, inputs and errors in the layouts of `one_step`."""

from __future__ import annotations

import numpy as np


def given_draw(net, seed):
    """(weights, inputs, output error) of one small net."""
    rng = np.random.default_rng(seed)
    variances = net.weight_variances
    weights = [rng.normal(scale=np.sqrt(s), size=shape) for shape, s in zip(net.weight_shapes, variances, strict=True)]
    return weights, rng.normal(size=net.input_shape), rng.normal(size=net.output_shape)


def drawn_by(measure):
    """Draws of a measure that is not settled, from its fields; weights are dense unless these say otherwise."""

    def draw(net, seed, draws, **fields):
        return measure(**{"weights": "dense"} | fields).draw(net, seed, draws)

    return draw
