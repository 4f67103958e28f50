"""One draw of a pre-norm Transformer by JAX, as a user would write it for the same numbers.

As in `benchmarks.autodiff`: weights are drawn, the gradient of <c, outputs> / M is a step, once with c the labels and
once with c the outputs, and a forward-mode derivative along it gives the change of the stream behind every addition,
whose mean squares, (2, L), are the label and output terms.
"""

from math import sqrt
from typing import Any

import numpy as np

from benchmarks.autodiff import Draw
from meanfield.nets.transformer import Transformer

# Matrices of a block.
EACH = 6


def energies(net: Transformer, weights: list[Any], x: Any, labels: Any) -> Any:
    """Energies of given weights, input (width, tokens) and labels (M,), of a net of default norms and activations."""
    import jax
    from jax import numpy as jnp

    def normalised(z: Any) -> Any:
        centred = z - jnp.mean(z, axis=0)
        return centred / jnp.sqrt(jnp.mean(jnp.square(centred), axis=0))

    def attended(u: Any, wq: Any, wk: Any, wv: Any) -> Any:
        q, k, v = ((w @ u).reshape(net.heads, net.head_size, net.tokens) for w in (wq, wk, wv))
        shares = jax.nn.softmax(jnp.einsum("hct,hcs->hts", q, k) / sqrt(net.head_size), axis=-1)
        return jnp.einsum("hts,hcs->hct", shares, v).reshape(u.shape)

    def streams(hidden: list[Any]) -> list[Any]:
        values = [x]
        for first in range(0, len(hidden), EACH):
            wq, wk, wv, wo, w1, w2 = hidden[first : first + EACH]
            values.append(values[-1] + wo @ attended(normalised(values[-1]), wq, wk, wv))
            values.append(values[-1] + w2 @ jax.nn.relu(w1 @ normalised(values[-1])))
        return values[1:]

    def of_column(column: Any) -> Any:
        (step,) = pull(column / net.outputs)
        _, changes = jax.jvp(streams, (hidden,), (step,))
        return jnp.stack([jnp.mean(jnp.square(change)) for change in changes])

    hidden, readout = list(weights[:-1]), weights[-1]
    out, pull = jax.vjp(lambda h: readout @ jnp.mean(normalised(streams(h)[-1]), axis=1), hidden)
    return jnp.stack([of_column(labels), of_column(out)])


def draw(net: Transformer, precision: str) -> Draw:
    """Draws of float32 or float64, compiled; in one piece with the passes, XLA takes minutes to compile float32."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    dtype = jnp.dtype(precision)

    @jax.jit
    def drawn(key: Any) -> Any:
        keys = jax.random.split(key, len(net.weights) + 2)
        laws = zip(keys[2:], net.weight_shapes, net.weight_variances, strict=True)
        deviations = [(key, shape, jnp.asarray(sqrt(variance), dtype)) for key, shape, variance in laws]
        weights = [deviation * jax.random.normal(key, shape, dtype) for key, shape, deviation in deviations]
        x = jax.random.normal(keys[0], (net.width, net.tokens), dtype)
        return weights, x, jax.random.normal(keys[1], (net.outputs,), dtype)

    passes = jax.jit(lambda weights, x, labels: energies(net, weights, x, labels))
    return lambda: np.asarray(passes(*drawn(jax.random.key(0))))
