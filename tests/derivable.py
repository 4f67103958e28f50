"""A third road to one step: nets written in NumPy, changed along the gradient that autograd or JAX derives.

It reads the units of a net, as the library does, and shares no code with it. Values are (B, C, *grid).
"""

from __future__ import annotations

import math
from itertools import product

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_jvp, make_vjp
from autograd.builtins import tuple as traced_tuple
from autograd.extend import defjvp
from autograd.scipy.special import erf

from meanfield.nets import maps

jax = pytest.importorskip("jax")
jnp = jax.numpy

# autograd derives erf for errors that come back alone.
defjvp(erf, lambda change, value, z: change * 2 / math.sqrt(math.pi) * anp.exp(-z * z))

SIGMA = {
    "relu": lambda z: numpy_of(z).where(z > 0, z, 0.0),
    "linear": lambda z: z,
    "gelu": lambda z: z * (1 + (jax.scipy.special.erf if numpy_of(z) is jnp else erf)(z / math.sqrt(2))) / 2,
    # z over 1 + e^(-z), of which no part overflows: streams that nothing normalises reach thousands.
    "silu": lambda z: z * numpy_of(z).exp(numpy_of(z).minimum(z, 0.0)) / (1 + numpy_of(z).exp(-abs(z))),
    "tanh": lambda z: numpy_of(z).tanh(z),
    "erf": lambda z: (jax.scipy.special.erf if numpy_of(z) is jnp else erf)(z),
}


def numpy_of(x):
    """JAX's where JAX derives, else autograd's, which compiles nothing."""
    return jnp if isinstance(x, jax.Array) else anp


def values_and_output(net, weights, x):
    """value_1 .. value_D and the output of weights by name."""
    values = [x]
    for unit in net.units:
        branch = unit.multiplier * along(unit.branch, values[-1], weights)
        if unit.skip is not None and unit.shortcut:
            skipped = along(unit.shortcut, values[unit.skip], weights)
            values.append(along(unit.after, skipped + branch, weights))
        else:
            values.append(along(unit.after, joined(unit, branch, values), weights))
    readout = net.readout_unit
    output = values[-1] if readout is None else readout.multiplier * along(readout.branch, values[-1], weights)
    return values[1:], output


def joined(unit, branch, values):
    if unit.skip is None:
        return branch
    if unit.join == "concat":
        return numpy_of(branch).concatenate([values[unit.skip], branch], axis=1)
    return values[unit.skip] + branch


def one_step(net, weights, inputs, output_error):
    """Change of every value under one step of rate 1 of the loss whose gradient at the output is ``output_error``."""

    given = dict(zip(net.weights, weights, strict=True))
    pull, output = make_vjp(lambda w: values_and_output(net, w, inputs)[1])(given)
    down = {name: -slope for name, slope in pull(np.reshape(output_error, output.shape)).items()}
    return make_jvp(lambda w: traced_tuple(values_and_output(net, w, inputs)[0]))(given)(down)[1]


def jacobian(net, weights, inputs, number):
    """Of this value in every weight, by name: (*value, *weight)."""
    pull, value = make_vjp(lambda w: values_and_output(net, w, inputs)[0][number])(weights)
    rows = [pull(row.reshape(value.shape)) for row in np.eye(value.size)]
    return {
        name: np.reshape([row[name] for row in rows], value.shape + weight.shape) for name, weight in weights.items()
    }


def along(branch, x, weights):
    for spec in branch:
        x = MAPS[type(spec)](spec, x, weights)
    return x


def _linear(spec, x, weights):
    return numpy_of(x).concatenate([_stencil(spec, weight, x, weights[weight.name]) for weight in spec.weights], axis=1)


def _stencil(spec, weight, x, tensor):
    """sum over taps and groups of W[:, :, tap] x(p + offset), offsets from -((k - 1) // 2) on along every axis."""
    kernel = weight.shape[2:]
    if not kernel:
        x = x[(slice(None), slice(None), *(slice(None, None, step) for step in spec.stride))]
        return numpy_of(x).concatenate(_by_group(weight, x, tensor), axis=1)
    total = 0.0
    for tap in product(*map(range, kernel)):
        offset = [spec.dilation * (step - (taps - 1) // 2) for step, taps in zip(tap, kernel, strict=True)]
        moved = _shifted(x, offset, spec.padding)
        moved = moved[(slice(None), slice(None), *(slice(None, None, step) for step in spec.stride))]
        total = total + numpy_of(x).concatenate(
            _by_group(weight, moved, tensor[(slice(None), slice(None), *tap)]), axis=1
        )
    return total


def _by_group(weight, x, matrix):
    parts = zip(_split(matrix, weight.groups, 0), _split(x, weight.groups, 1), strict=True)
    return [numpy_of(x).einsum("oi,bi...->bo...", rows, seen) for rows, seen in parts]


def _split(x, parts, axis):
    size = x.shape[axis] // parts
    return [x[(slice(None),) * axis + (slice(part * size, (part + 1) * size),)] for part in range(parts)]


def _shifted(x, offset, padding):
    """x(p + offset): on a torus, or with zeros beyond the grid."""
    for axis, step in enumerate(offset, start=2):
        length, own = x.shape[axis], numpy_of(x)
        if padding == "zero":
            beyond = own.zeros((*x.shape[:axis], abs(step), *x.shape[axis + 1 :]))
            padded = own.concatenate([beyond, x, beyond], axis=axis)
            x = padded[(slice(None),) * axis + (slice(abs(step) + step, abs(step) + step + length),)]
        else:
            x = own.roll(x, -step, axis=axis)
    return x


def _bias(spec, x, weights):
    return x + weights[spec.weight.name].reshape(1, -1, *[1] * (x.ndim - 2))


def _gain(spec, x, weights):
    return x * weights[spec.weight.name][0]


def _gate(spec, x, weights):
    gating, gated = _split(x, 2, 1)
    return SIGMA[spec.activation](gating) * gated


def _normalisation(spec, x, weights):
    centred = x - x.mean(axis=1, keepdims=True) if spec.kind == "layer" else x
    return centred / numpy_of(x).sqrt((centred**2).mean(axis=1, keepdims=True) + spec.epsilon)


def _attention(spec, x, weights):
    flat = x.reshape(*x.shape[:2], -1)
    sites = flat.shape[2]
    queries, keys, items = (part.reshape(len(x), spec.heads, -1, sites) for part in _split(flat, 3, 1))
    size, own = queries.shape[2], numpy_of(x)
    if spec.rotary:
        queries, keys = _rotated(queries), _rotated(keys)
    logits = own.einsum("bhci,bhcj->bhij", queries, keys) * size ** (-1.0 if spec.scale == "inverse" else -0.5)
    if spec.causal:
        logits = own.where(np.arange(sites)[:, None] >= np.arange(sites), logits, -np.inf)
    weights = own.exp(logits - logits.max(axis=-1, keepdims=True))
    mixed = own.einsum("bhij,bhcj->bhci", weights / weights.sum(axis=-1, keepdims=True), items)
    return mixed.reshape(len(x), -1, *x.shape[2:])


def _rotated(heads):
    """Pairs (i, i + size/2) in the plane, turned by t 10000^(-2 i / size) at site t."""
    size, sites = heads.shape[2:]
    turn = np.arange(sites) * 10_000.0 ** (-2 * np.arange(size // 2) / size)[:, None]
    first, second = heads[:, :, : size // 2], heads[:, :, size // 2 :]
    turned = (first * np.cos(turn) - second * np.sin(turn), first * np.sin(turn) + second * np.cos(turn))
    return numpy_of(heads).concatenate(turned, axis=2)


def _pooling(spec, x, weights):
    flat = x.reshape(*x.shape[:2], -1)
    return flat.mean(axis=2) if spec.kind == "mean" else flat[:, :, -1]


def _flatten(spec, x, weights):
    return x.reshape(len(x), -1)


def _average_pooling(spec, x, weights):
    """Window by window: (B, C, windows, sites of each, ...), means over the sites of each."""
    apart = (number for length, size in zip(x.shape[2:], spec.window, strict=True) for number in (length // size, size))
    return x.reshape(*x.shape[:2], *apart).mean(axis=tuple(range(3, 2 * x.ndim - 2, 2)))


def _batch_normalisation(spec, x, weights):
    axes = (0, *range(2, x.ndim))
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / numpy_of(x).sqrt((centred**2).mean(axis=axes, keepdims=True) + spec.epsilon)


def _dropout(spec, x, weights):
    """By the next of the masks (C, B, sites) that come with the weights; as it is without."""
    if "masks" not in weights:
        return x
    kept = weights["masks"].pop(0)
    return numpy_of(x).where(kept.swapaxes(0, 1).reshape(x.shape), x / (1 - spec.rate), 0.0)


MAPS = {
    maps.Linear: _linear,
    maps.Bias: _bias,
    maps.Gain: _gain,
    maps.Pointwise: lambda spec, x, weights: SIGMA[spec.activation](x),
    maps.Gate: _gate,
    maps.Normalisation: _normalisation,
    maps.Attention: _attention,
    maps.Pooling: _pooling,
    maps.Flatten: _flatten,
    maps.AveragePooling: _average_pooling,
    maps.BatchNormalisation: _batch_normalisation,
    maps.Dropout: _dropout,
}
