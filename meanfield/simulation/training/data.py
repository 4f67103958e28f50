"""What a net is trained on: samples and targets in the passes' layout, drawn or given, and the order of its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from meanfield.common.array_libraries import on_host
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.common.validation import Array, real_array, require_count
from meanfield.nets.inputs import require_allowed
from meanfield.nets.net import Net
from meanfield.simulation.arrays import NUMPY, Arrays
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.training.losses import CrossEntropy, Logistic, Loss
from meanfield.simulation.weights import draw_dense


@dataclass(frozen=True)
class Data:
    """Inputs (D, C_0, N, S) and targets (D, .., N, ..) of N samples; D is 1 where all nets share them."""

    inputs: Any
    targets: Any

    @property
    def samples(self) -> int:
        """N."""
        return int(self.inputs.shape[2])

    def of_nets(self, nets: slice) -> Data:
        """The data of some nets; those that all share stay one."""
        return Data(*(values if len(values) == 1 else values[nets] for values in (self.inputs, self.targets)))

    def part(self, samples: slice) -> Data:
        """Some samples of every net."""
        return Data(self.inputs[:, :, samples], self.targets[:, :, samples])

    def taken(self, samples: NDArray[np.int64], arrays: Arrays) -> Data:
        """A batch for every net, of the samples with these numbers (D, B)."""
        return Data(*(_taken(values, samples, arrays) for values in (self.inputs, self.targets)))


def given_data(net: Net, inputs: ArrayLike, targets: ArrayLike, loss: Loss, arrays: Arrays = NUMPY) -> Data:
    """Inputs (samples, channels, *grid) and their targets, as a loss takes them, the same for all nets.

    Raises:
        TypeError, ValueError: inputs that are not finite real numbers or have other channels or another grid than the
            net's; another number of targets than of inputs; targets of another shape than the outputs; classes that
            the net has no output for.
    """
    values, laid_out = checked_data(net, inputs, targets, loss, arrays)
    flat = values.reshape(*values.shape[:2], -1).swapaxes(0, 1)
    return Data(arrays.moved(np.ascontiguousarray(flat)[None]), laid_out)


def checked_data(
    net: Net, inputs: ArrayLike, targets: ArrayLike, loss: Loss, arrays: Arrays = NUMPY
) -> tuple[Array, Any]:
    """Inputs as they are given, without a copy of them, and laid-out targets; errors as of `given_data`."""
    values = real_array("inputs", inputs)
    if values.shape[1:] != (net.first_channels, *net.grid):
        wanted = ("samples", net.first_channels, *net.grid)
        raise ValueError(f"inputs have shape {values.shape}; this net takes ({', '.join(map(str, wanted))})")
    if not np.isfinite(values).all():
        raise ValueError("inputs hold NaN or infinite values; remove or replace them first")
    require_allowed(net, values)
    return values, laid_out_targets(net, targets, len(values), loss, arrays)


def laid_out_targets(net: Net, targets: ArrayLike, samples: int, loss: Loss, arrays: Arrays = NUMPY) -> Any:
    """Targets of so many samples as a loss takes them, (1, channels, samples, T)."""
    laid_out = loss.targets(targets, arrays)
    if laid_out.shape[2] != samples:
        raise ValueError(f"there are {samples} inputs and {laid_out.shape[2]} targets; give one for each")
    _require_outputs(net, laid_out)
    return laid_out


def require_in_range(inputs: Array, precision: str) -> None:
    """Raise ValueError where an input is beyond the largest number of a precision, or all are below its least."""
    limits, largest = np.finfo(precision), float(max(inputs.max(initial=0.0), -inputs.min(initial=0.0)))
    if largest > float(limits.max) or 0 < largest < float(limits.tiny):
        raise ValueError(
            f"inputs are up to {largest:.2g} in size; {precision} holds {limits.tiny:.2g} to {limits.max:.2g}: give "
            "inputs of the size of 1" + ("" if precision == "float64" else ", or precision='float64'")
        )


def _require_outputs(net: Net, targets: Any) -> None:
    """Raise ValueError unless targets (1, channels, N, T), or classes (1, 1, N, T), are those of the net's outputs."""
    _, outputs, *grid = net.output_shape
    classes = np.issubdtype(targets.dtype, np.integer)
    _, channels, samples, sites = targets.shape
    if (channels, sites) != (1 if classes else outputs, prod(grid)):
        wanted = ("samples", *(() if classes else (outputs,)), *grid)
        raise ValueError(
            f"targets have {channels} channels at {sites} sites of each of {samples} samples; this net takes targets "
            f"({', '.join(map(str, wanted))})"
        )
    if classes and (largest := int(on_host(targets).max())) >= outputs:
        raise ValueError(
            f"a label is {largest}; this net has {outputs} outputs, for the classes 0 .. {outputs - 1}: give the net "
            f"outputs={largest + 1}, or other labels"
        )


class Batches:
    """Mini-batches of B out of N samples, drawn without replacement epoch by epoch, in an order that a seed keys.

    Nets with the same seed see the same batches. The last samples of an epoch, fewer than a batch, are left out.

    Args:
        samples: N.
        size: B, at most N.
        seeds: one for every net, or one for all.
    """

    def __init__(self, samples: int, size: int, seeds: Sequence[int]) -> None:
        self._samples = require_count("samples", samples, why="samples of the data")
        self._size = require_count("batch_size", size, maximum=samples, why="samples of a batch, of those there are")
        self._seeds = tuple(seeds)
        self._epoch, self._order = -1, np.zeros((0, 0), np.int64)

    def at(self, step: int) -> NDArray[np.int64]:
        """Numbers of the samples of one step, counted from 0: (nets, B)."""
        epoch, place = divmod(step, self._samples // self._size)
        if epoch != self._epoch:
            own = {seed: stream(seed, "batches", epoch).permutation(self._samples) for seed in set(self._seeds)}
            self._epoch, self._order = epoch, np.stack([own[seed] for seed in self._seeds])
        return self._order[:, place * self._size : (place + 1) * self._size]

    def next_epoch(self, step: int) -> Iterator[NDArray[np.int64]]:
        """Numbers of the samples, (nets, B), of every step of the first epoch that begins at this step or after it."""
        of_epoch = self._samples // self._size
        first = -(-step // of_epoch) * of_epoch
        return map(self.at, range(first, first + of_epoch))


def _taken(values: Any, samples: NDArray[np.int64], arrays: Arrays) -> Any:
    """Take these samples of (D, C, N, S): (D, C, B, S)."""
    places = arrays.xp.asarray(samples)
    if len(values) == 1:
        return arrays.xp.ascontiguousarray(arrays.xp.moveaxis(arrays.xp.take(values[0], places, axis=1), 1, 0))
    return arrays.xp.stack([arrays.xp.take(values[net], places[net], axis=1) for net in range(len(values))])


def drawn_weights(net: Net, seed: int, draws: range, arrays: Arrays = NUMPY) -> dict[str, Any]:
    """All weights by name, (draws, out, in taps), biases (draws, out, 1) from a stream of their own."""
    matrices, biases = (NormalSource(streams_of_draws(seed, purpose, draws)) for purpose in ("weights", "biases"))
    drawn = {}
    for name, weight in net.weights.items():
        sources = biases if len(weight.shape) == 1 else matrices
        drawn[name] = arrays.moved(draw_dense(replace(weight, groups=1), sources).matrix)
    return drawn


def drawn_batch(net: Net, seed: int, draws: range, arrays: Arrays = NUMPY) -> Data:
    """Inputs of every draw, uniform on the sphere |x|^2 = channels, and their labels.

    Labels are classes, one for a sample, or +-1 of nets with one output; `own_loss` goes with them.
    """
    made = [_batch(net, source) for source in streams_of_draws(seed, "batch", draws).generators()]
    inputs, labels = (np.stack(values) for values in zip(*made, strict=True))
    targets = [own_loss(net).targets(given, arrays) for given in labels]
    return Data(arrays.moved(inputs[..., None]), arrays.xp.concatenate(targets))


def own_loss(net: Net) -> Loss:
    """Cross-entropy over the outputs, or its form for one output and labels +-1."""
    return Logistic() if net.output_shape[1] == 1 else CrossEntropy()


def _batch(net: Net, source: Generator) -> tuple[Any, Any]:
    if net.input_law != "sphere" or net.sites != 1:
        raise ValueError(f"inputs on the sphere are drawn for nets of vectors; this one takes {net.input_law!r} inputs")
    inputs = source.standard_normal((net.first_channels, net.inputs))
    inputs *= np.sqrt(net.first_channels) / np.linalg.norm(inputs, axis=0)
    outputs = net.output_shape[1]
    return inputs, source.choice([-1.0, 1.0], net.inputs) if outputs == 1 else source.integers(outputs, size=net.inputs)
