"""One step of gradient descent with cross-entropy on convolutional nets, by the library and by PyTorch.

The library takes several nets side by side, each with a learning rate and weights of its own, on one batch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.common.seeds import stream
from meanfield.nets.families.conv_net import ConvNet
from meanfield.nets.net import Net
from meanfield.optimizers import SGD
from meanfield.simulation.arrays.arrays import on_numpy
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


def training(net: ConvNet, weights: Matrices, rates: np.ndarray, precision: str) -> Training:
    """Nets of these weights (D, n', n k), which steps move, each with a rate of its own."""
    arrays, (inputs, labels) = on_numpy(precision).for_training(), batch(net, precision)
    data = Data(inputs, labels.reshape(1, 1, -1, 1))
    settings = {"learning_rate": rates}
    return Training(net, weights, data, CrossEntropy(), SGD(momentum=0), lambda name: settings, arrays=arrays)


def torch_step(net: ConvNet, weights: Matrices, rate: float, precision: str) -> tuple[Callable[[], None], list[Any]]:
    """A step of the first of these nets by PyTorch, on one thread, and its weights, moved in place."""
    import torch

    torch.set_num_threads(1)
    inputs, labels = batch(net, precision)
    x = torch.as_tensor(inputs[0].swapaxes(0, 1).reshape(net.inputs, -1, *net.grid).copy())
    y = torch.as_tensor(labels)
    assert net.padding == "circular"
    around = [side for taps in reversed(net.kernel) for side in (taps // 2, taps // 2)]
    shapes = [weight.shape for weight in net.weights.values()]
    tensors = [
        torch.tensor(matrix[0].reshape(shape), requires_grad=True)
        for matrix, shape in zip(weights.values(), shapes, strict=True)
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
