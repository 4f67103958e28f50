"""One step of gradient descent with cross-entropy on convolutional nets, by the library and by PyTorch.

The library takes several nets side by side, each with a learning rate and weights of its own, on one batch. The nets
and the batch are cut into pieces that stay in the caches (`meanfield.simulation.pieces`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from meanfield.nets.conv_net import ConvNet
from meanfield.nets.net import Net
from meanfield.seeds import stream
from meanfield.simulation.arrays.arrays import Arrays, on_numpy
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.rectified import rectified
from meanfield.simulation.passes import Forward, Place, backward, forward, through_readout
from meanfield.simulation.pieces import keep_freed_memory, piece
from meanfield.simulation.weights import Dense

Matrices = dict[str, np.ndarray]


def drawn(net: Net, nets: int, precision: str) -> Matrices:
    """Weights (D, n', n k) of so many nets, by name."""
    generator = stream(0, "benchmark weights", 0)
    shapes = [
        (name, one.variance, (nets, one.shape[0], np.prod(one.shape[1:], dtype=int)))
        for name, one in net.weights.items()
    ]
    return {
        name: (variance**0.5 * generator.standard_normal(size)).astype(precision) for name, variance, size in shapes
    }


def batch(net: Net, precision: str) -> tuple[np.ndarray, np.ndarray]:
    """White inputs (1, C_0, B, S), and a class for each."""
    generator = stream(0, "benchmark data", 0)
    inputs = generator.standard_normal((1, net.first_channels, net.inputs, net.sites)).astype(precision)
    return inputs, generator.integers(0, 10, net.inputs)


class _Gradients(dict[Place, Any]):
    """Errors as they come from the backward pass, each made a gradient by weight at once."""

    def __init__(self, state: Forward) -> None:
        self._state, self.by_weight = state, {}  # type: ignore[var-annotated]

    def __setitem__(self, place: Place, error: Any) -> None:
        number, position = place
        passage = [*self._state.passages, self._state.readout][number]
        assert passage is not None
        one, setting = passage.unit.maps[position], self._state.setting
        values = passage.input_of(position, setting)
        name = one.weights[0].name  # type: ignore[union-attr]
        self.by_weight[name] = operation_of(one).weight_gradient(one, error, values, setting)  # type: ignore[attr-defined]


def gradients(net: Net, weights: Matrices, inputs: Any, labels: Any, of: int, arrays: Arrays) -> Matrices:
    """Those of a batch of so many samples, from these samples of it."""
    state = forward(net, {name: Dense(one) for name, one in weights.items()}, inputs, arrays)
    slope = arrays.softmax(state.output[..., 0], axis=1)
    slope[:, labels, np.arange(len(labels))] -= 1
    found = _Gradients(state)
    top, _ = through_readout(state, (slope / of)[..., None], found)
    backward(state, top, len(net.units), found)
    return found.by_weight


def library_step(net: ConvNet, weights: Matrices, rates: np.ndarray, precision: str) -> Callable[[], None]:
    """A step of all nets, which moves these weights (D, n', n k)."""
    keep_freed_memory()
    arrays, (inputs, labels) = on_numpy(precision).for_training(), batch(net, precision)
    together, samples = piece(net, len(rates), net.inputs, precision)
    cuts = {size: rectified(replace(net, inputs=size)) for size in (samples, net.inputs % samples) if size}
    shared = np.broadcast_to(inputs, (together, *inputs.shape[1:]))
    parts = {first: np.asfortranarray(shared[:, :, first : first + samples]) for first in range(0, net.inputs, samples)}
    own = rates.astype(precision)[:, None, None]

    def of_group(group: slice) -> None:
        matrices = {name: np.asfortranarray(one[group]) for name, one in weights.items()}
        total: Matrices = {}
        for first in range(0, net.inputs, samples):
            part = slice(first, first + samples)
            cut = cuts[len(labels[part])]
            for name, one in gradients(cut, matrices, parts[first], labels[part], net.inputs, arrays).items():
                total[name] = np.add(total[name], one, out=one) if name in total else one
        for name, one in total.items():
            weights[name][group] -= own[group] * one

    def step() -> None:
        for first in range(0, len(rates), together):
            of_group(slice(first, first + together))

    return step


def torch_step(net: ConvNet, weights: Matrices, rate: float, precision: str) -> tuple[Callable[[], None], list[Any]]:
    """A step of the first of these nets by PyTorch, on one thread, and its weights, moved in place."""
    import torch

    torch.set_num_threads(1)
    inputs, labels = batch(net, precision)
    x = torch.as_tensor(inputs[0].swapaxes(0, 1).reshape(net.inputs, -1, *net.grid).copy())
    y = torch.as_tensor(labels)
    assert net.padding == "circular"
    around = [side for taps in reversed(net.kernel) for side in (taps // 2, taps // 2)]
    shapes = [one.shape for one in net.weights.values()]
    tensors = [
        torch.tensor(one[0].reshape(shape), requires_grad=True)
        for one, shape in zip(weights.values(), shapes, strict=True)
    ]
    optimizer, pad = torch.optim.SGD(tensors, lr=rate), torch.nn.functional.pad

    def step() -> None:
        values = x
        for weight in tensors[:-1]:
            values = torch.nn.functional.conv2d(pad(torch.relu(values), around, mode="circular"), weight)
        outputs = torch.relu(values).mean(dim=(2, 3)) @ tensors[-1].T
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(outputs, y).backward()
        optimizer.step()

    return step, tensors
