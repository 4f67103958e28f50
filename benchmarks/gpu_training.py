"""Steps of training per second on a CUDA device, beside one processor and beside PyTorch compiled on the same device.

    python benchmarks/gpu_training.py [--steps 256] [--nets 64]

Every line is one net: as many runs as `mf.train` makes a group of on the device, each of its own rate and weights, by
gradient descent on mini-batches of 64 of one data set, in single precision. PyTorch does the same work: the same nets
side by side (`torch.func.vmap`), from the same weights, on the same mini-batches, and keeps the loss of every step; it
runs call by call, and compiled with its calls recorded (`torch.compile`, mode "reduce-overhead"). Losses of both are
compared before they race. Steps are counted over all nets; what comes before the first and behind the last step is
taken out by timing runs of two lengths. Without CuPy or a device it says so and ends, and without PyTorch on the device
its columns stay empty.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.training_step import for_torch, torch_loss
from meanfield.execution.training import training_run
from meanfield.nets.layered import MLP
from meanfield.nets.net import Net
from meanfield.nets.residual import ResidualConvNet, ResidualMLP
from meanfield.nets.transformer import Transformer
from meanfield.simulation.arrays import arrays_of, device_described, on_numpy
from meanfield.simulation.training.data import Batches, drawn_weights
from meanfield.simulation.training.trained import TrainedLosses

SAMPLES, BATCH, CLASSES = 1024, 64, 10
SIZES: dict[str, Any] = {"outputs": CLASSES, "scaling": "multiplier_sqrt"}
IMAGES: dict[str, Any] = {"grid": (8, 8), "kernel": (3, 3), "input_channels": 1, "stem": 1, "readout": "pooled"}
NETS: dict[str, Net] = {
    "MLP, n = 64, L = 4": MLP(depth=4, width=64, input_width=64),
    "residual MLP, n = 64, L = 16": ResidualMLP(depth=16, width=64, input_width=64, stem=1, **SIZES),
    "residual MLP, n = 256, L = 16": ResidualMLP(depth=16, width=256, input_width=64, stem=1, **SIZES),
    "residual MLP, n = 1024, L = 16": ResidualMLP(depth=16, width=1024, input_width=64, stem=1, **SIZES),
    "residual CNN, 16 channels, L = 8": ResidualConvNet(depth=8, channels=16, **IMAGES, **SIZES),
    "residual CNN, 64 channels, L = 8": ResidualConvNet(depth=8, channels=64, **IMAGES, **SIZES),
    "Transformer, n = 32, 4 blocks": Transformer(depth=4, width=32, tokens=8, **SIZES),
    "Transformer, n = 128, 4 blocks": Transformer(depth=4, width=128, tokens=8, **SIZES),
}
# Losses of both libraries before they race: single precision, a few steps.
COMPARED, ROUNDING = 4, 1e-3


def data_of(net: Net) -> tuple[np.ndarray, np.ndarray]:
    """White inputs and classes."""
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((SAMPLES, *net.input_shape[1:])).astype(np.float32)
    return inputs, generator.integers(CLASSES, size=SAMPLES)


def measure_of(net: Net, backend: str, most: int) -> TrainedLosses:
    """Training of as many nets as the device takes at a time, each of a rate and from a seed of its own."""
    how: dict[str, Any] = {"steps": COMPARED, "batch_size": BATCH, "precision": "float32"}
    device = training_run(net, data_of(net), rates=0.1, backend="cupy", **how).measure
    runs = min(most, device.together(net))
    rates = np.geomspace(1e-4, 1e-2, runs)
    pairs = tuple((float(rate), seed) for seed, rate in enumerate(rates))
    whole: TrainedLosses = training_run(net, data_of(net), rates=rates, seeds=runs, backend=backend, **how).measure
    return replace(whole, pairs=pairs)


def ours(net: Net, measure: TrainedLosses, steps: int) -> Any:
    """Losses of so many steps, in the pieces in which runs are made."""
    longer, size = replace(measure, steps=steps), measure.together(net)
    pieces = [longer.draw(net, 0, range(at, min(at + size, longer.runs))) for at in range(0, longer.runs, size)]
    return np.concatenate([piece["loss"] for piece in pieces])


class ByTorch:
    """The same training by PyTorch: weights, data and the order of all mini-batches lie on its device."""

    def __init__(self, net: Net, measure: TrainedLosses, device: str, compiled: bool) -> None:
        import torch

        self._torch, self._net, self._measure, self._device = torch, net, measure, device
        rates, seeds = zip(*(measure.pairs or ()), strict=True)
        self._seeds, self._rates = list(seeds), torch.tensor(rates, dtype=torch.float32, device=device)
        inputs, targets = np.asarray(measure.inputs, np.float32), measure.targets
        laid_out = np.moveaxis(inputs.reshape(*inputs.shape[:2], -1), 0, 1)[None]
        self._inputs = torch.as_tensor(for_torch(net, laid_out), device=device)
        self._labels = torch.as_tensor(targets, device=device)
        slopes = torch.func.vmap(torch.func.grad_and_value(torch_loss(net)))

        def step(tensors: dict[str, Any], samples: Any) -> Any:
            gradients, losses = slopes(tensors, self._inputs[samples], self._labels[samples])
            for name, tensor in tensors.items():
                tensor -= self._rates.reshape(-1, *[1] * (tensor.ndim - 1)) * gradients[name]
            return losses

        self._step: Callable[..., Any] = torch.compile(step, mode="reduce-overhead") if compiled else step

    def losses(self, steps: int) -> Any:
        """Losses (nets, steps), fetched once, as `ours` gives them."""
        torch, net = self._torch, self._net
        own = [drawn_weights(net, seed, range(1), on_numpy("float32")) for seed in self._seeds]
        tensors = {
            name: torch.as_tensor(np.concatenate([each[name] for each in own]), device=self._device).reshape(
                -1, *net.weights[name].shape
            )
            for name in net.weights
        }
        batches = Batches(SAMPLES, BATCH, self._seeds)
        kept = torch.empty((steps, len(own)), device=self._device)
        for step in range(steps):
            kept[step] = self._step(tensors, torch.as_tensor(batches.at(step), device=self._device))
        return kept.cpu().numpy().T


def steps_per_second(losses: Callable[[int], Any], nets: int, steps: int) -> float:
    """Over all nets, of the difference between runs of so many and of twice as many steps, once both have run."""
    losses(2 * steps)
    seconds = []
    for length in (steps, 2 * steps):
        start = time.perf_counter()
        losses(length)
        seconds.append(time.perf_counter() - start)
    return nets * steps / (seconds[1] - seconds[0])


def torch_device() -> str | None:
    """PyTorch's name of the device, if it has one."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return "cuda" if torch.cuda.is_available() else None


def by_torch(net: Net, measure: TrainedLosses, device: str | None, steps: int) -> list[float]:
    """Steps per second call by call and compiled; NaN without PyTorch on the device."""
    if device is None:
        return [float("nan")] * 2
    compared, rates = ours(net, measure, COMPARED), []
    for compiled in (False, True):
        peer = ByTorch(net, measure, device, compiled)
        np.testing.assert_allclose(peer.losses(COMPARED), compared, rtol=ROUNDING)
        rates.append(steps_per_second(peer.losses, measure.runs, steps))
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--nets", type=int, default=10**6, help="runs side by side at most (default: a whole group)")
    options = parser.parse_args()
    try:
        arrays_of("cupy", "float32")
    except (ModuleNotFoundError, OSError) as missing:
        print(f"skipped: {missing}")
        return 0
    device, described = torch_device(), device_described("cupy")
    print(f"{described['device']}, CuPy {described['cupy']}" + ("" if device else "; no PyTorch on this device"))
    print(f"{'net':>34s}  nets   one core   device   PyTorch, call by call   compiled   device / compiled")
    with threadpool_limits(1):
        for name, net in NETS.items():
            host, there = (measure_of(net, backend, options.nets) for backend in ("numpy", "cupy"))
            few = replace(host, pairs=(host.pairs or ())[: host.together(net)])
            core = steps_per_second(lambda steps, few=few, net=net: ours(net, few, steps), few.runs, 16)  # type: ignore
            here = steps_per_second(
                lambda steps, there=there, net=net: ours(net, there, steps),  # type: ignore
                there.runs,
                options.steps,
            )
            called, compiled = by_torch(net, there, device, options.steps)
            print(
                f"{name:>34s}  {there.runs:4d}   {core:8.0f}   {here:6.0f}   {called:21.0f}   {compiled:8.0f}   "
                f"{here / compiled:17.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
