"""The first step of an optimizer on a whole net, readout included: how far it moves layers and outputs.

    S_l        mean square over channels, samples and sites of the change of value l
    S_l / c_l  the same over the mean square of value l itself, of the same draw
    S_out      mean square of the change of the outputs; of a net without a readout, of its last value

Four rates follow, those at which the mean of S_l over layers, the mean of S_l / c_l, S_L / c_L and S_out are 1. Means
over draws are made by rare nets where a few layers shrink much; the median over draws is what a net meets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from meanfield.common.seeds import stream
from meanfield.common.validation import (
    fingerprint,
    inputs_described,
    not_negative,
    require_choice,
    require_count,
)
from meanfield.nets.inputs import FEWEST_NORMALISED, require_classes
from meanfield.nets.net import Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import measured_dataset
from meanfield.quantities.step_scales import relative, update_estimates
from meanfield.simulation.arrays import BACKENDS, PRECISIONS, Arrays, arrays_of, overflow_silent, require_energies
from meanfield.simulation.cost import MOST_DRAWS_PER_BATCH, step_bytes, step_operations
from meanfield.simulation.kernels.stencils import draws_side_by_side
from meanfield.simulation.maps.weighted import rectified_net
from meanfield.simulation.measures.base import DEVICE_SPEED, Cost, Measure, Pieces, runs_per_group
from meanfield.simulation.passes import Forward, forward
from meanfield.simulation.step_moves import (
    Kept,
    RoleOf,
    Sums,
    is_curved,
    require_step,
    step_changes,
    warn_unless_kept,
    whole_net,
)
from meanfield.simulation.training.data import Data, checked_data, drawn_weights, given_data, require_in_range
from meanfield.simulation.training.gradients import laid_out, power_of_two, quickest
from meanfield.simulation.training.losses import LOSSES
from meanfield.simulation.weights import given_weights

# What an epsilon leaves of signs, in draws and in what a dataset says of itself.
KEPT = "kept_share"

# What draws hold that are carried together.
BYTES_TOGETHER = 32 << 20
# `step_operations` has three products for every weight: up, back, and of the gradient. The tangent and the moves of the
# weights are two more.
PASSES_OF_STEP = 5 / 3
# From so many channels on, products with patches are as quick as convolutions without them.
WIDE = 64


def whole_step(
    state: Forward, slope: Any, step: FirstStep, role_of: RoleOf, layers: int, loss: str, sums: Sums = ()
) -> tuple[Any, Any, Any, Pieces]:
    """S_l of every error column (D, L, r), S_out (D, r), and c_l (D, L), of a whole net with so many layers.

    And where AdamW steps with an epsilon, what that leaves of its signs, kept_share (D, 1).

    ``slope`` is dL/dout, (D, outputs, r B, sites); behind its columns come ``sums`` of them, as of `step_changes`. The
    state is used up: what the tangent has passed is let go.
    """
    arrays, samples = state.arrays, state.setting.samples
    sizes = [_mean_square(value, samples, arrays)[:, 0] for value in state.values[1 : layers + 1]]
    softens = any(step.softens(role_of(name)) for name in state.net.weights)
    energies, kept = [], Kept(step, len(slope)) if softens else None
    for number, change in enumerate(step_changes(state, slope, step, role_of, loss, sums=sums, kept=kept), start=1):
        state.let_go(number)
        energies.append(_mean_square(change, samples, arrays))
    draws = len(energies[0])
    c = arrays.xp.stack([arrays.xp.broadcast_to(size, (draws,)) for size in sizes], axis=1)
    of_epsilon = {KEPT: kept.shares[:, None]} if kept else {}
    return arrays.xp.stack(energies[:layers], axis=1), energies[-1], c, of_epsilon


def _mean_square(values: Any, samples: int, arrays: Arrays) -> Any:
    """Of every column of (D, C, r B, S), over channels, samples and sites: (D, r), in double precision."""
    along = values.swapaxes(1, 3) if arrays.order == "F" else values  # as the numbers of a draw lie
    draws, outer, _, inner = along.shape
    by_column = along.reshape(draws, outer, -1, samples * inner).swapaxes(1, 2)
    flat = arrays.xp.ascontiguousarray(by_column).reshape(draws, by_column.shape[1], -1)
    return arrays.squared_norms(flat) / flat.shape[2]


@dataclass(frozen=True, kw_only=True)
class StepScales(Measure):
    """How far the first step of an optimizer on data moves layers and outputs: the step that training makes.

    Every draw takes initial weights by the net's own law and a mini-batch of the data.

    Args:
        inputs, targets: (samples, channels, *grid), and classes or values, as `meanfield.train` takes them.
        loss: "cross_entropy" or "squared".
        optimizer, epsilon: as for `meanfield.one_step`. The attribute ``kept_share`` says what an epsilon leaves of
            AdamW's signs, in the mean over draws.
        batch_size: samples of a mini-batch; all of them if None.
        precision: of weights and passes, "float64" or "float32"; energies are summed in double precision.
        backend: where the passes run, "numpy" or "cupy"; on either, draw i is the same net and batch.

    Gives over ``layer`` update_energy and relative_update_energy, without a layer mean_update_energy and
    output_update_energy, and learning_rate_scale, relative_, last_ and output_learning_rate_scale, each with
    NAME_stderr, and quantiles over draws of all but the mean.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    remedy: ClassVar[str] = "width, channels, grid, batch_size or workers"

    inputs: Any
    targets: Any
    loss: str = "cross_entropy"
    optimizer: str | Optimizer | Hybrid = "sgd"
    epsilon: float = 0.0
    batch_size: int | None = None
    precision: str = "float64"
    backend: str = "numpy"

    @property
    def step(self) -> FirstStep:
        """The step of all weights."""
        return FirstStep(self.optimizer, self.epsilon)

    def settled(self, net: Net) -> Self:
        require_choice("loss", self.loss, LOSSES)
        require_choice("precision", self.precision, PRECISIONS)
        require_choice("backend", self.backend, BACKENDS)
        settled = replace(self, epsilon=not_negative("epsilon", self.epsilon))
        require_step(net, settled.step)
        require_classes(self.loss, net.output_shape[1])
        inputs, _ = checked_data(net, self.inputs, self.targets, LOSSES[self.loss])
        require_in_range(inputs, self.precision)
        size = len(inputs) if self.batch_size is None else self.batch_size
        require_count("batch_size", size, maximum=len(inputs), why="samples of a batch, of those there are")
        if net.couples_samples and size * net.sites < FEWEST_NORMALISED:
            raise ValueError(
                f"batch normalisation over {size * net.sites} value(s) of a channel leaves signs at most, which no "
                f"step moves; give a batch_size of {FEWEST_NORMALISED} or more"
            )
        return replace(settled, inputs=np.asarray(inputs, float), targets=np.asarray(self.targets), batch_size=size)

    def cost(self, net: Net) -> Cost:
        assert self.batch_size is not None  # as of every settled measure
        patches = not self._arrays(net).convolution
        curved = is_curved(net, self.step, net.role_of) * net.output_shape[1]
        held = step_bytes(net, self.batch_size, 1, curved, self.precision, patches)
        operations = step_operations(net, self.batch_size) * PASSES_OF_STEP
        if self.backend != "numpy":
            return Cost(operations / DEVICE_SPEED, held, runs_per_group(held, operations))
        most = MOST_DRAWS_PER_BATCH
        if not patches:
            most = draws_side_by_side(max(net.value_channels), np.dtype(self.precision).itemsize)
        together = power_of_two(int(max(1, min(most, BYTES_TOGETHER // held))))
        return Cost(operations, held, together)

    def multiple(self, net: Net) -> int:
        return 1 if self.backend == "numpy" else self.together(net)

    def _arrays(self, net: Net) -> Arrays:
        """Those without patches for nets of few channels, if all their maps can do without."""
        arrays = arrays_of(self.backend, self.precision)
        return quickest(net, arrays) if max(net.value_channels) < WIDE else arrays

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """update_energy and relative_update_energy (D, L), and output_update_energy (D, 1), of every draw."""
        arrays, loss = self._arrays(net), LOSSES[self.loss]
        # On a device with copies of the last draw, so that all groups are alike and none tells on its draws.
        size = len(draws) if self.backend == "numpy" else self.together(net)
        batch = self._batches(given_data(net, self.inputs, self.targets, loss, arrays), seed, draws, size, arrays)
        whole, weights = whole_net(net), drawn_weights(net, seed, draws, arrays)
        weights = {name: _filled(matrices, size, arrays) for name, matrices in weights.items()}
        if arrays.convolution:
            whole, weights = rectified_net(whole), laid_out(whole, weights)
        with overflow_silent():
            inputs = arrays.xp.broadcast_to(batch.inputs, (size, *batch.inputs.shape[1:]))
            inputs = arrays.xp.asarray(inputs, order=arrays.order)
            state = forward(whole, given_weights(whole, weights, arrays), inputs, arrays)
            slope = loss.slope(state.output, batch.targets, arrays)
            made = whole_step(state, slope, self.step, net.role_of, len(net.units), self.loss)
        energies, outputs, c = (arrays.fetched(values)[: len(draws)] for values in made[:3])
        numbers = {"update_energy": energies[:, :, 0], "output_update_energy": outputs}
        require_energies(numbers, may_vanish=True)
        kept = {name: shares[: len(draws)] for name, shares in made[3].items()}
        return numbers | {"relative_update_energy": relative(energies[:, :, 0], c)} | kept

    def _batches(self, data: Data, seed: int, draws: range, size: int, arrays: Arrays) -> Data:
        """The samples of every draw, in the order of the data; of so many in all, the last again and again."""
        if self.batch_size == data.samples:
            return data
        chosen = [
            np.sort(stream(seed, "batches", draw).choice(data.samples, self.batch_size, replace=False))
            for draw in draws
        ]
        return data.taken(np.stack(chosen + chosen[-1:] * (size - len(draws))), arrays)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        estimates = update_estimates(values)
        how = {name: getattr(self, name) for name in ("loss", "epsilon", "batch_size", "precision", "backend")}
        own = how | {"optimizer": self.step.name, "given_targets": fingerprint(self.targets)}
        own |= kept_of_draws(values, self.step)
        return measured_dataset(net, estimates, own | inputs_described(self.inputs) | dict(attrs))

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"optimizer": repr(self.optimizer)}


def _filled(matrices: Any, size: int, arrays: Arrays) -> Any:
    """So many matrices, the last again and again behind those that are given."""
    missing = size - len(matrices)
    return arrays.xp.concatenate([matrices, *[matrices[-1:]] * missing]) if missing else matrices


def kept_of_draws(values: Pieces, step: FirstStep) -> dict[str, float]:
    """What an epsilon leaves of the step in the mean of draws, for a dataset to say, with a warning if it is little."""
    if KEPT not in values:
        return {}
    share = float(values[KEPT].mean())
    warn_unless_kept(share, step.epsilon, step.name)
    return {KEPT: share}
