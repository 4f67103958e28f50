"""The first step of an optimizer on a batch, as a user of JAX and optax would write it for the same numbers.

Weights are drawn by JAX. optax's first update of the gradient is a step, and a forward-mode derivative along it gives
the change of every layer and of the outputs, whose mean squares, (L + 1,), are the update energies.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from meanfield.nets.layered import MLP
from meanfield.optimizers import SGD, AdamW, Muon, Optimizer

# What both sides run: Muon by Newton and Schulz's iterations, as it is run.
OPTIMIZERS: dict[str, Optimizer] = {"sgd": SGD(0.0), "adamw": AdamW(), "muon": Muon(0.95, 5, shape_factor=True)}


def _of_optax(name: str) -> Any:
    import optax

    if name == "muon":  # of matrices (outputs, inputs)
        by = optax.contrib.MuonDimensionNumbers(1, 0)
        return optax.contrib.muon(1.0, eps=1e-30, muon_weight_dimension_numbers=lambda weights: [by] * len(weights))
    if name == "adamw":
        return optax.adamw(1.0, eps=1e-30, weight_decay=0.0)
    return optax.sgd(1.0)


def energies(net: MLP, optimizer: str, weights: Any, x: Any, classes: Any) -> Any:
    """Mean squares of the changes of all layers and outputs, of given weights, inputs (B, n) and classes (B,)."""
    import jax
    import optax
    from jax import numpy as jnp

    def values(weights: Any) -> list[Any]:
        found = [x]
        for weight in weights:
            found.append(jax.nn.relu(found[-1]) @ weight.T)
        return found[1:]

    def loss(weights: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(values(weights)[-1], classes).mean()

    made = _of_optax(optimizer)
    step, _ = made.update(jax.grad(loss)(weights), made.init(weights), weights)
    _, changes = jax.jvp(values, (weights,), (step,))
    return jnp.stack([jnp.mean(jnp.square(change)) for change in changes])


def draw(net: MLP, optimizer: str, x: Any, classes: Any, precision: str) -> Callable[[], np.ndarray]:
    """Draws of float32 or float64, compiled."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    dtype = jnp.dtype(precision)

    @jax.jit
    def drawn(key: Any, x: Any, classes: Any) -> Any:
        weights = [
            jnp.asarray(sqrt(variance), dtype) * jax.random.normal(own, shape, dtype)
            for own, shape, variance in zip(
                jax.random.split(key, net.depth + 1), net.weight_shapes, net.weight_variances, strict=True
            )
        ]
        return energies(net, optimizer, weights, x, classes)

    given = jnp.asarray(x, dtype), jnp.asarray(classes)
    return lambda: np.asarray(drawn(jax.random.key(0), *given))
