"""Random weights, inputs and errors in the layouts of `one_step`."""

from __future__ import annotations

import numpy as np


def given_draw(net, seed):
    """(weights, inputs, output error) of one small net."""
    rng = np.random.default_rng(seed)
    variances = net.weight_variances
    weights = [rng.normal(scale=np.sqrt(s), size=shape) for shape, s in zip(net.weight_shapes, variances, strict=True)]
    return weights, rng.normal(size=net.input_shape), rng.normal(size=net.output_shape)
