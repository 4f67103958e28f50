"""One step of gradient descent with cross-entropy on small nets, by the library and by PyTorch.

The library takes several nets side by side, each with a learning rate and weights of its own, on one batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meanfield.common.seeds import stream
from meanfield.nets.maps import Attention, Linear, Map, Normalisation, Pointwise, Pooling
from meanfield.nets.net import Net
from meanfield.optimizers import SGD
from meanfield.simulation.arrays import on_numpy
from meanfield.simulation.training.data import Data
from meanfield.simulation.training.losses import CrossEntropy
from meanfield.simulation.training.training import Training

Matrices = dict[str, np.ndarray]


def drawn(net: Net, nets: int, precision: str) -> Matrices:
    """Weights (D, n', n k) of so many nets, by name."""
    generator = stream(0, "benchmark weights", 0)
    shapes = [
        (name, weight.variance, (nets, weight.shape[0], np.prod(weight.shape[1:], dtype=int)))
        for name, weight in net.weights.items()
    ]
    return {
        name: (variance**0.5 * generator.standard_normal(size)).astype(precision) for name, variance, size in shapes
    }


def batch(net: Net, precision: str) -> tuple[np.ndarray, np.ndarray]:
    """White inputs (1, C_0, B, S), and a class for each."""
    generator = stream(0, "benchmark data", 0)
    inputs = generator.standard_normal((1, net.first_channels, net.inputs, net.sites)).astype(precision)
    return inputs, generator.integers(0, 10, net.inputs)


def training(net: Net, weights: Matrices, rates: np.ndarray, precision: str) -> Training:
    """Nets of these weights (D, n', n k), which steps move, each with a rate of its own."""
    arrays, (inputs, labels) = on_numpy(precision).for_training(), batch(net, precision)
    data = Data(inputs, labels.reshape(1, 1, -1, 1))
    settings = {"learning_rate": rates}
    return Training(net, weights, data, CrossEntropy(), SGD(momentum=0), lambda name: settings, arrays=arrays)


def torch_step(net: Net, weights: Matrices, rate: float, precision: str) -> tuple[Callable[[], None], list[Any]]:
    """A step of the first of these nets by PyTorch, on one thread, and its weights, moved in place."""
    import torch

    torch.set_num_threads(1)
    inputs, labels = batch(net, precision)
    x, y, loss = torch.as_tensor(for_torch(net, inputs)), torch.as_tensor(labels), torch_loss(net)
    tensors = {
        name: torch.tensor(matrix[0].reshape(net.weights[name].shape), requires_grad=True)
        for name, matrix in weights.items()
    }
    optimizer = torch.optim.SGD(tensors.values(), lr=rate)

    def step() -> None:
        optimizer.zero_grad()
        loss(tensors, x, y).backward()
        optimizer.step()

    return step, list(tensors.values())


def for_torch(net: Net, inputs: np.ndarray) -> np.ndarray:
    """Inputs (1, C_0, B, S) as PyTorch takes them: samples first, and channels last but for images."""
    images, samples = len(net.grid) == 2, inputs.shape[2]
    samples_first = np.moveaxis(inputs[0], 0, 1 if images else 2)
    shape = (samples, -1, *net.grid) if images else (samples, *net.grid, net.first_channels)
    return samples_first.reshape(shape).copy()


def torch_loss(net: Net) -> Callable[[dict[str, Any], Any, Any], Any]:
    """Cross-entropy of tensors by name on inputs and labels, by PyTorch.

    Of convolutional nets on a torus, and of nets of vectors or tokens, which have their channels last.
    """
    import torch

    assert net.readout_unit is not None
    readout = net.readout_unit.branch

    def loss(tensors: dict[str, Any], inputs: Any, labels: Any) -> Any:
        values = [inputs]
        for unit in net.units:
            branch = _along(unit.branch, values[-1], tensors)
            branch = branch if unit.multiplier == 1 else unit.multiplier * branch
            values.append(branch if unit.skip is None else values[unit.skip] + branch)
        return torch.nn.functional.cross_entropy(_along(readout, values[-1], tensors), labels)

    return loss


def _along(maps: Sequence[Map], values: Any, tensors: dict[str, Any]) -> Any:
    for spec in maps:
        values = _BY_TORCH[type(spec)](spec, values, tensors)
    return values


def _relu(spec: Pointwise, values: Any, tensors: dict[str, Any]) -> Any:
    assert spec.activation == "relu"
    return values.relu()


def _linear(spec: Linear, values: Any, tensors: dict[str, Any]) -> Any:
    import torch

    if not spec.kernel:
        sides = [torch.nn.functional.linear(values, tensors[weight.name]) for weight in spec.weights]
        return sides[0] if len(sides) == 1 else torch.cat(sides, dim=-1)
    assert spec.padding == "circular"
    around = [side for taps in reversed(spec.kernel) for side in (taps // 2, taps // 2)]
    padded = torch.nn.functional.pad(values, around, mode="circular")
    return torch.nn.functional.conv2d(padded, tensors[spec.weights[0].name])


def _normalisation(spec: Normalisation, values: Any, tensors: dict[str, Any]) -> Any:
    import torch

    assert spec.kind == "layer"
    return torch.nn.functional.layer_norm(values, values.shape[-1:], eps=spec.epsilon)


def _attention(spec: Attention, values: Any, tensors: dict[str, Any]) -> Any:
    import torch

    assert (spec.scale, spec.rotary) == ("inverse_sqrt", False)
    heads = (side.unflatten(-1, (spec.heads, -1)).transpose(1, 2) for side in values.chunk(3, dim=-1))
    mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=spec.causal)
    return mixed.transpose(1, 2).flatten(-2)


def _pooling(spec: Pooling, values: Any, tensors: dict[str, Any]) -> Any:
    assert spec.kind == "mean"
    return values.mean(dim=(2, 3) if values.ndim == 4 else 1)


_BY_TORCH: dict[type, Callable[..., Any]] = {
    Pointwise: _relu,
    Linear: _linear,
    Normalisation: _normalisation,
    Attention: _attention,
    Pooling: _pooling,
}
