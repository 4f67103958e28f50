"""A third road to one step: nets written in JAX, changed along the gradient that JAX derives.

It reads the units of a net, as the library does, and shares no code with it. Values are (B, C, *grid).
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from meanfield.nets import maps

jax = pytest.importorskip("jax")
jnp = jax.numpy

SIGMA = {
    "relu": jax.nn.relu,
    "linear": lambda z: z,
    "gelu": lambda z: jax.nn.gelu(z, approximate=False),
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}


def values_and_output(net, weights, x):
    """value_1 .. value_D and the output of weights by name."""
    values = [x]
    for unit in net.units:
        branch = unit.multiplier * along(unit.branch, values[-1], weights)
        values.append(along(unit.after, branch if unit.skip is None else values[unit.skip] + branch, weights))
    readout = net.readout_unit
    output = values[-1] if readout is None else readout.multiplier * along(readout.branch, values[-1], weights)
    return values[1:], output


def one_step(net, weights, inputs, output_error):
    """Change of every value under one step of rate 1 of the loss whose gradient at the output is ``output_error``."""

    @jax.jit  # one compilation of the whole step takes less than one of every operation by itself
    def changes(given, x, error):
        output, pull = jax.vjp(lambda w: values_and_output(net, w, x)[1], given)
        (gradient,) = pull(error.reshape(output.shape))
        down = jax.tree.map(lambda part: -part, gradient)
        return jax.jvp(lambda w: values_and_output(net, w, x)[0], (given,), (down,))[1]

    with jax.enable_x64(True):
        given = {name: jnp.asarray(weight) for name, weight in zip(net.weights, weights, strict=True)}
        return [np.asarray(change) for change in changes(given, jnp.asarray(inputs), jnp.asarray(output_error))]


def along(branch, x, weights):
    for spec in branch:
        x = MAPS[type(spec)](spec, x, weights)
    return x


def _linear(spec, x, weights):
    return jnp.concatenate([_stencil(spec, weight, x, weights[weight.name]) for weight in spec.weights], axis=1)


def _stencil(spec, weight, x, tensor):
    """sum over taps and groups of W[:, :, tap] x(p + offset), offsets from -((k - 1) // 2) on along every axis."""
    kernel = weight.shape[2:]
    if not kernel:
        return jnp.concatenate(_by_group(weight, x, tensor), axis=1)
    total = 0.0
    for tap in product(*map(range, kernel)):
        offset = [spec.dilation * (step - (taps - 1) // 2) for step, taps in zip(tap, kernel, strict=True)]
        moved = _shifted(x, offset, spec.padding)
        total = total + jnp.concatenate(_by_group(weight, moved, tensor[(slice(None), slice(None), *tap)]), axis=1)
    return total


def _by_group(weight, x, matrix):
    parts = zip(jnp.split(matrix, weight.groups), jnp.split(x, weight.groups, axis=1), strict=True)
    return [jnp.einsum("oi,bi...->bo...", rows, seen) for rows, seen in parts]


def _shifted(x, offset, padding):
    """x(p + offset): on a torus, or with zeros beyond the grid."""
    for axis, step in enumerate(offset, start=2):
        if padding == "zero":
            reach = abs(step)
            widths = [(reach, reach) if at == axis else (0, 0) for at in range(x.ndim)]
            x = jax.lax.slice_in_dim(jnp.pad(x, widths), reach + step, reach + step + x.shape[axis], axis=axis)
        else:
            x = jnp.roll(x, -step, axis=axis)
    return x


def _bias(spec, x, weights):
    return x + weights[spec.weight.name].reshape(1, -1, *[1] * (x.ndim - 2))


def _gain(spec, x, weights):
    return x * weights[spec.weight.name][0]


def _gate(spec, x, weights):
    gating, gated = jnp.split(x, 2, axis=1)
    return SIGMA[spec.activation](gating) * gated


def _normalisation(spec, x, weights):
    centred = x - x.mean(axis=1, keepdims=True) if spec.kind == "layer" else x
    return centred / jnp.sqrt((centred**2).mean(axis=1, keepdims=True) + spec.epsilon)


def _attention(spec, x, weights):
    flat = x.reshape(*x.shape[:2], -1)
    sites = flat.shape[2]
    heads = [part.reshape(len(x), spec.heads, -1, sites) for part in jnp.split(flat, 3, axis=1)]
    queries, keys, items = heads
    size = queries.shape[2]
    if spec.rotary:
        queries, keys = _rotated(queries), _rotated(keys)
    logits = jnp.einsum("bhci,bhcj->bhij", queries, keys) * size ** (-1.0 if spec.scale == "inverse" else -0.5)
    if spec.causal:
        logits = jnp.where(jnp.arange(sites)[:, None] >= jnp.arange(sites), logits, -jnp.inf)
    mixed = jnp.einsum("bhij,bhcj->bhci", jax.nn.softmax(logits, axis=-1), items)
    return mixed.reshape(len(x), -1, *x.shape[2:])


def _rotated(heads):
    """Pairs (i, i + size/2) as complex numbers, turned by t 10000^(-2 i / size) at site t."""
    size, sites = heads.shape[2:]
    turn = jnp.exp(1j * jnp.arange(sites) * 10_000.0 ** (-2 * jnp.arange(size // 2) / size)[:, None])
    pairs = (heads[:, :, : size // 2] + 1j * heads[:, :, size // 2 :]) * turn
    return jnp.concatenate([pairs.real, pairs.imag], axis=2)


def _pooling(spec, x, weights):
    flat = x.reshape(*x.shape[:2], -1)
    return flat.mean(axis=2) if spec.kind == "mean" else flat[:, :, -1]


def _batch_normalisation(spec, x, weights):
    axes = (0, *range(2, x.ndim))
    return (x - x.mean(axis=axes, keepdims=True)) / jnp.sqrt(x.var(axis=axes, keepdims=True) + spec.epsilon)


def _dropout(spec, x, weights):
    """By the next of the masks (C, B, sites) that come with the weights; as it is without."""
    if "masks" not in weights:
        return x
    kept = weights["masks"].pop(0)
    return jnp.where(kept.swapaxes(0, 1).reshape(x.shape), x / (1 - spec.rate), 0.0)


MAPS = {
    maps.Linear: _linear,
    maps.Bias: _bias,
    maps.Gain: _gain,
    maps.Pointwise: lambda spec, x, weights: SIGMA[spec.activation](x),
    maps.Gate: _gate,
    maps.Normalisation: _normalisation,
    maps.Attention: _attention,
    maps.Pooling: _pooling,
    maps.BatchNormalisation: _batch_normalisation,
    maps.Dropout: _dropout,
}
