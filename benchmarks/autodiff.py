"""One draw of an MLP by automatic differentiation, as a user of JAX or PyTorch would write it for the same numbers.

Weights are drawn by the library. The gradient of <c, outputs> / M by the hidden weights is a step, once with c the
labels and once with c the outputs; a forward-mode derivative along it gives the change of every pre-activation, whose
mean squares, (2, L), are the label and output terms.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from meanfield.nets.layered import MLP

Draw = Callable[[], np.ndarray]


def jax_energies(net: MLP, weights: list[Any], x: Any, labels: Any) -> Any:
    """Energies of given weights, input (n,) and labels (M,)."""
    import jax
    from jax import numpy as jnp

    hidden, readout = list(weights[:-1]), weights[-1]

    def pre_activations(hidden: list[Any], x: Any) -> list[Any]:
        values = [x]
        for weight in hidden:
            values.append(weight @ jax.nn.relu(values[-1]))
        return values[1:]

    def energies(column: Any) -> Any:
        (step,) = pull(column / net.outputs)
        _, changes = jax.jvp(lambda h: pre_activations(h, x), (hidden,), (step,))
        return jnp.stack([jnp.mean(jnp.square(change)) for change in changes])

    out, pull = jax.vjp(lambda h: readout @ jax.nn.relu(pre_activations(h, x)[-1]), hidden)
    return jnp.stack([energies(labels), energies(out)])


def jax_draw(net: MLP, precision: str) -> Draw:
    """Draws of float32 or float64 by JAX, compiled."""
    import jax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
    dtype = jnp.dtype(precision)

    @jax.jit
    def draw(key: Any) -> Any:
        keys = jax.random.split(key, net.depth + 3)
        weights = [
            jnp.asarray(sqrt(variance), dtype) * jax.random.normal(k, shape, dtype)
            for k, shape, variance in zip(keys[2:], net.weight_shapes, net.weight_variances, strict=True)
        ]
        x = jax.random.normal(keys[0], (net.channels_by_layer[0],), dtype)
        energy = jnp.sum(jnp.square(jax.nn.relu(x)))
        x = x * jnp.sqrt(net.sigma.gain * x.size / energy)
        return jax_energies(net, weights, x, jax.random.normal(keys[1], (net.outputs,), dtype))

    return lambda: np.asarray(draw(jax.random.key(0)))


def torch_energies(net: MLP, weights: list[Any], x: Any, labels: Any) -> Any:
    """Energies of given weights, input (n,) and labels (M,)."""
    import torch

    *hidden, readout, x, labels = (torch.as_tensor(array) for array in (*weights, x, labels))

    def pre_activations(*hidden: Any) -> tuple[Any, ...]:
        values = [x]
        for weight in hidden:
            values.append(weight @ torch.relu(values[-1]))
        return tuple(values[1:])

    out, pull = torch.func.vjp(lambda *h: readout @ torch.relu(pre_activations(*h)[-1]), *hidden)
    rows = []
    for column in (labels, out):
        _, changes = torch.func.jvp(pre_activations, tuple(hidden), pull(column / net.outputs, retain_graph=True))
        rows.append(torch.stack([change.square().mean() for change in changes]))
    return torch.stack(rows).detach()


def torch_draw(net: MLP, precision: str) -> Draw:
    """Draws of float32 or float64 by PyTorch."""
    import torch

    torch.set_num_threads(1)
    dtype = getattr(torch, precision)

    def draw() -> np.ndarray:
        weights = [
            torch.randn(shape, dtype=dtype).mul_(sqrt(variance))
            for shape, variance in zip(net.weight_shapes, net.weight_variances, strict=True)
        ]
        x = torch.randn(net.channels_by_layer[0], dtype=dtype)
        x *= torch.sqrt(net.sigma.gain * x.numel() / torch.relu(x).square().sum())
        return torch_energies(net, weights, x, torch.randn(net.outputs, dtype=dtype)).numpy()

    return draw


# Module to import, draws of a net in a precision, and energies of given weights.
LIBRARIES: dict[str, tuple[str, Callable[[MLP, str], Draw], Callable[..., Any]]] = {
    "JAX": ("jax", jax_draw, jax_energies),
    "PyTorch": ("torch", torch_draw, torch_energies),
}
