"""What is read off nets in training: losses of one net, and residual energies of streams, step by step.

Losses are those under several learning rates and from several seeds side by side.

Residual energies are H_l = H_0 + B_l + C_l (Wang et al. 2026, eq. 2) of the stream h_0 .. h_U
(`meanfield.simulation.passes.walk`). After every step of the optimizer, with R_l = h_l - h_0 and N the numbers of a
stream,

    H_l = |h_l|^2 / N,   B_l = (2 / N) <h_0, R_l>,   C_l = |R_l|^2 / N.

Post-norm streams, with maps behind their joins, are no sum of h_0 and what units add. They have H_l without the
split.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from meanfield.common.array_libraries import on_host
from meanfield.common.estimates import summarise_each
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.common.validation import (
    Array,
    fingerprint,
    inputs_described,
    not_negative,
    require_choice,
    require_count,
    require_counts,
    require_flag,
    require_instance,
    require_positive,
    unmasked,
)
from meanfield.nets.inputs import FEWEST_NORMALISED, require_classes, require_normalisable
from meanfield.nets.net import Net, Unit
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.elementwise import AdamW
from meanfield.optimizers.linear_algebra import dense
from meanfield.optimizers.schedules import Constant, Schedule
from meanfield.quantities.registry import measured_dataset, plain_dataset
from meanfield.simulation.arrays import BACKENDS, PRECISIONS, Arrays, arrays_of, on_numpy
from meanfield.simulation.cost import passes_bytes, step_operations, weight_bytes
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.base import DEVICE_SPEED, Cost, Measure, Pieces, runs_per_group
from meanfield.simulation.measures.streams import energy, overlaps_of_rows
from meanfield.simulation.passes import forward, require_residual_stream, units_below
from meanfield.simulation.training.data import Batches, Data, checked_data, drawn_weights, given_data, require_in_range
from meanfield.simulation.training.gradients import loss_gradients, quickest
from meanfield.simulation.training.losses import LOSSES, CrossEntropy
from meanfield.simulation.training.training import Training
from meanfield.simulation.weights import checked_weights, given_weights

# Nets side by side share what a step costs besides arithmetic: at most so many, of so many operations a step in all.
MOST_RUNS_TOGETHER, OPERATIONS_OF_RUNS = 16, 1e9
# Arrays of the size of all weights that a net in training holds: weights, moments, gradients and directions.
WEIGHT_ARRAYS = 6
# Steps after which losses are fetched from a device, and it is asked whether any net is left: each waits for it.
STEPS_BETWEEN_LOOKS = 32
# Batches that the last loss takes at a time: it has no errors to hold.
FINAL_BATCHES = 2
# Every step takes the whole rate.
CONSTANT = Constant()
# Samples of a look at whether a net moves at all: most do on the first of them.
FEW_SAMPLES = 16
# No rate moves a net whose outputs and gradients are no larger: no float holds their squares.
IDLE = float(np.finfo(np.float64).tiny) ** 0.5
# Files hold seeds as whole numbers of 64 bits.
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class TrainedLosses(Measure):
    """Losses before every step, and on all data after the last one, of every learning rate from every seed.

    A draw is one run of training: those of the first rate from all seeds come first, or those of ``pairs``. Its numbers
    do not depend on the runs that are drawn beside it.

    Args:
        inputs, targets: (samples, channels, *grid), and classes (samples,) or values (samples, outputs), each with the
            grid of the outputs behind, where they have one.
        loss: "cross_entropy" or "squared".
        optimizer: of matrices, and of biases too if it is elementwise; others leave biases to AdamW. Or a hybrid.
        rates: learning rates of all weights.
        seeds: of the initial weights and of the order of batches.
        steps, batch_size: of every run.
        pairs: of a rate and a seed, the runs that are wanted; None for all rates from all seeds.
        start: initial weights in place of those that the seeds draw, in the order of the net's weights.
        weight_decay, epsilon: of the optimizer.
        schedule: the shares of the rates that the steps take.
        precision: of all arrays.
        backend: where nets train. They begin at the same weights, and meet the same batches, on "numpy" and on "cupy".
        role_factors: by role, what multiplies these settings for its weights; none multiplies nothing.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    fewest: ClassVar[int] = 1
    remedy: ClassVar[str] = "width, channels, grid, batch_size, rates or workers"

    inputs: Any
    targets: Any
    loss: str
    optimizer: Optimizer | Hybrid
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    batch_size: int
    pairs: tuple[tuple[float, int], ...] | None = None
    start: Any = None
    weight_decay: float = 0.0
    epsilon: float = 1e-8
    schedule: Schedule = CONSTANT
    precision: str = "float64"
    backend: str = "numpy"
    role_factors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many draws there are."""
        return len(self._runs)

    @property
    def _runs(self) -> list[tuple[float, int]]:
        """The rate and the seed of every draw, each pair once, however often it is asked for."""
        return list(dict.fromkeys(product(self.rates, self.seeds) if self.pairs is None else self.pairs))

    def settled(self, net: Net) -> Self:
        require_choice("loss", self.loss, LOSSES)
        require_choice("precision", self.precision, PRECISIONS)
        require_choice("backend", self.backend, BACKENDS)
        if not isinstance(self.optimizer, Optimizer | Hybrid):
            raise TypeError(f"optimizer is {self.optimizer!r}; give one of meanfield.optimizers, such as SGD(0.9)")
        require_instance("schedule", self.schedule, Schedule, "a name or a schedule, such as meanfield.WarmupCosine()")
        for optimizer in self.optimizer.parts if isinstance(self.optimizer, Hybrid) else (self.optimizer,):
            _require_coupled(net, self.batch_size, optimizer)
        require_classes(self.loss, net.output_shape[1])
        inputs, _ = checked_data(net, self.inputs, self.targets, LOSSES[self.loss])
        require_in_range(inputs, self.precision)
        require_count("batch_size", self.batch_size, maximum=len(inputs), why="samples of a batch, of those there are")
        return replace(
            self,
            inputs=np.asarray(self.inputs, dtype=float),
            targets=np.asarray(self.targets),
            rates=checked_rates(self.rates),
            seeds=checked_seeds(self.seeds),
            steps=require_count("steps", self.steps, why="steps of training"),
            start=None if self.start is None else _settled_start(net, self.start),
            weight_decay=not_negative("weight_decay", self.weight_decay),
            epsilon=not_negative("epsilon", self.epsilon),
            role_factors=_settled_factors(net, self.role_factors),
        )

    def cost(self, net: Net) -> Cost:
        held = WEIGHT_ARRAYS * weight_bytes(net, self.precision)
        held += passes_bytes(net, self.batch_size, 1, self.precision)
        of_step = step_operations(net, self.batch_size)
        if self.backend != "numpy":
            return Cost(self.steps * of_step / DEVICE_SPEED, held, runs_per_group(held, of_step))
        return Cost(self.steps * of_step, held, int(max(1, min(MOST_RUNS_TOGETHER, OPERATIONS_OF_RUNS // of_step))))

    def multiple(self, net: Net) -> int:
        return self.together(net)

    def result_bytes(self, net: Net, draws: int) -> int:
        return 8 * draws * self.steps

    def first_size(self, net: Net, seed: int) -> float:
        """The largest output of this seed's net at first, or gradient of one without: at most `IDLE`, if all are."""
        arrays, loss = replace(on_numpy(self.precision), lenient=True), LOSSES[self.loss]
        data = given_data(net, self.inputs, self.targets, loss, arrays)
        weights = given_weights(net, self._start_weights(net, [seed], arrays))
        largest = 0.0
        for first in range(0, data.samples, FEW_SAMPLES):
            part = data.part(slice(first, first + FEW_SAMPLES))
            with np.errstate(all="ignore"):  # outputs that are not finite are not 0
                state = forward(net, weights, part.inputs, arrays)
                sizes = [_largest(state.output)]
                if sizes[0] <= IDLE:
                    gradients = loss_gradients(state, loss, part.targets)
                    sizes += [_largest(dense(gradient.slope)) for gradient in gradients.values()]
            largest = max(largest, *sizes)
            if largest > IDLE:
                break
        return largest

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """loss (draws, steps) and final_loss (draws,)."""
        rates, seeds = zip(*self._filled(net, self._runs[draws.start : draws.stop]), strict=True)
        training = self._begun(net, np.array(rates), list(seeds))
        arrays, losses, unseen = training.arrays, np.full((len(rates), self.steps), np.inf), []
        between = STEPS_BETWEEN_LOOKS if arrays.on_device else 1
        with np.errstate(all="ignore"):  # runs that diverge say so by infinite losses
            for step in range(1, self.steps + 1):
                unseen.append(training.losses())
                training.step()
                if len(unseen) == between or step == self.steps:
                    losses[:, step - len(unseen) : step] = arrays.fetched(arrays.xp.stack(unseen, axis=1))
                    unseen.clear()
                    if on_host(training.gone).all():
                        break
            numbers = {"loss": losses, "final_loss": training.losses_on_all(FINAL_BATCHES * self.batch_size)}
        return {name: values[: len(draws)] for name, values in numbers.items()}

    def _filled(self, net: Net, runs: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """The runs, on a device with copies of the last, so that all groups are alike and none tells on its runs."""
        return runs if self.backend == "numpy" else runs + runs[-1:] * (self.together(net) - len(runs))

    def _begun(self, net: Net, rates: Array, seeds: list[int]) -> Training:
        arrays = quickest(net, replace(arrays_of(self.backend, self.precision), lenient=True))
        loss = LOSSES[self.loss]
        data = given_data(net, self.inputs, self.targets, loss, arrays)
        weights = self._start_weights(net, seeds, arrays)
        common: dict[str, Any] = {"learning_rate": rates, "weight_decay": self.weight_decay, "epsilon": self.epsilon}

        def settings(name: str) -> dict[str, Any]:
            factors = self.role_factors.get(net.role_of(name), {})
            return {setting: value * factors.get(setting, 1.0) for setting, value in common.items()}

        batches = Batches(data.samples, self.batch_size, seeds)
        return Training(
            net,
            weights,
            data,
            loss,
            self.optimizer,
            settings,
            batches=batches,
            shares=self.schedule.shares(self.steps),
            seeds=seeds,
            arrays=arrays,
        )

    def _start_weights(self, net: Net, seeds: list[int], arrays: Arrays) -> dict[str, Any]:
        """The weights of every net by name, as its seed draws them, or as they are given."""
        if self.start is None:
            own = {seed: drawn_weights(net, seed, range(1), arrays) for seed in set(seeds)}
        else:
            given = checked_weights(net, self.start)
            moved = {name: arrays.moved(values) for name, values in given.items()}
            own = dict.fromkeys(seeds, moved)
        return {name: arrays.xp.concatenate([own[seed][name] for seed in seeds]) for name in net.weights}

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        kept = {name: value for name, value in attrs.items() if name not in ("seed", "draws")}
        names = ("loss", "batch_size", "weight_decay", "epsilon", "precision", "backend")
        how = {name: getattr(self, name) for name in names}
        own = {"optimizer": repr(self.optimizer), "schedule": repr(self.schedule)}
        own |= {"given_targets": fingerprint(self.targets)}
        own |= {"role_factors": json.dumps(self.role_factors)} if self.role_factors else {}
        number = {run: draw for draw, run in enumerate(self._runs)}
        drawn = np.array([[number.get((rate, seed), -1) for seed in self.seeds] for rate in self.rates])
        grids = {}
        for name, value in values.items():
            # Behind the last run are the numbers of pairs that were left out.
            grids[name] = np.concatenate([value, np.full((1, *value.shape[1:]), np.nan)])[drawn]
        coords: dict[str, Any] = {"rate": list(self.rates), "seed": list(self.seeds)}
        return plain_dataset(net, grids, how | own | inputs_described(self.inputs) | kept, coords)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"optimizer": repr(self.optimizer), "schedule": repr(self.schedule)}


def _largest(values: Any) -> float:
    """The largest size; infinite where one is not a number."""
    return float(np.nan_to_num(np.abs(values).max(initial=0.0), nan=np.inf))


def _require_coupled(net: Net, batch_size: int, optimizer: Optimizer) -> None:
    """Raise ValueError where batch normalisation leaves signs alone, or the curvature of one sample means nothing."""
    if not net.couples_samples:
        return
    if (values := batch_size * net.sites) < FEWEST_NORMALISED:
        raise ValueError(
            f"batch normalisation over {values} value(s) of a channel, batch_size {batch_size} times {net.sites} "
            f"site(s), leaves signs at most, which no step moves; give {FEWEST_NORMALISED} or more"
        )
    if optimizer.curved and not optimizer.draws_labels:
        raise ValueError(
            f"{optimizer!r} adds up curvatures sample by sample, and under batch normalisation samples depend on each "
            "other; take an optimizer that needs none, such as AdamW, or Sophia(sampled=True)"
        )


def checked_rates(given: Any) -> tuple[float, ...]:
    """Learning rates, one by one, or ValueError."""
    rates = tuple(np.atleast_1d(unmasked("rates", given).astype(object)).ravel())
    if not rates:
        raise ValueError("rates is empty; give one learning rate or more")
    return tuple(require_positive("a rate", rate, why="it is a learning rate") for rate in rates)


def checked_seeds(given: Any) -> tuple[int, ...]:
    """Seeds that files can hold, one or more, or TypeError, ValueError."""
    seeds = require_counts("seeds", given, minimum=0, maximum=LARGEST_SEED, why="seeds are whole numbers from 0")
    if not seeds:
        raise ValueError("seeds is empty; give one or more")
    return seeds


# What a role may have a factor on.
SCALED = ("learning_rate", "weight_decay", "epsilon")


def _settled_factors(net: Net, given: Any) -> dict[str, dict[str, float]]:
    """Numbers from 0 by role and setting, or TypeError, ValueError; of every role of the net, if there are any."""
    if not isinstance(given, Mapping) or not all(isinstance(own, Mapping) for own in given.values()):
        raise TypeError(f"role_factors is {given!r}; give role -> setting -> factor, of settings {', '.join(SCALED)}")
    roles = dict.fromkeys(map(net.role_of, net.weights))
    if given and (missing := [role for role in roles if role not in given]):
        raise ValueError(
            f"role_factors has {', '.join(map(repr, given))} and lacks {missing[0]!r}, a role of this net's weights; "
            "add it, with {} where nothing is multiplied"
        )
    settled: dict[str, dict[str, float]] = {}
    for role, factors in given.items():
        for name in factors:
            require_choice(f"a factor of {role!r}", name, SCALED)
        settled[role] = {name: not_negative(f"factor of {role!r} on {name}", value) for name, value in factors.items()}
    return settled


def _settled_start(net: Net, given: Any) -> tuple[Array, ...]:
    checked = checked_weights(net, given).values()
    return tuple(values.reshape(shape) for values, shape in zip(checked, net.weight_shapes, strict=True))


# Draws side by side share what a step costs besides arithmetic: at most so many, of so many operations a step in all.
MOST_DRAWS_TOGETHER, OPERATIONS_OF_DRAWS = 4, 8e9
# Of nets so small that what 16 of them hold stays in the caches, 16 take half the time of 4.
MOST_OF_SMALL, OPERATIONS_OF_SMALL = 16, 2e8
# AdamW without weight decay, as the draws train here.
ADAM = AdamW()


@dataclass(frozen=True, kw_only=True)
class TrainedResidualEnergies(Measure):
    """The residual energy H_l = H_0 + B_l + C_l of every unit of a stream after 0, 1 .. of the first training steps.

    Every draw has weights, a batch of inputs and classes of its own, by the net's laws, and trains on that one batch
    under cross-entropy, without weight decay. Classes are uniform at every output. Of nets that take one-hot tokens and
    have outputs at every token, the class at a token is the next token; behind the last token a fresh one is drawn.

    Args:
        optimizer: an elementwise one: Adam is AdamW() without decay.
        rate, epsilon: its learning rate, of all weights, and its epsilon.
        steps: how many are taken, S.
        correlations: whether to measure how the increments of all pairs of units overlap, too.
        precision: "float64" or "float32", of weights, values and gradients; energies are summed in double precision.

    Gives over ``update`` = 0 .. S, the steps taken, and ``step`` = 1 .. U, the units of the stream:
    trained_residual_energy, trained_cross_term, trained_correlation_term and trained_stream_change; over ``update``
    trained_initial_energy and trained_loss; with ``correlations`` trained_increment_correlation over pairs of units.
    Each comes with NAME_stderr and NAME_largest_share. Post-norm streams have no trained_cross_term, no
    trained_correlation_term and no ``correlations``.

    Raises:
        TypeError, ValueError: a net that is no stream, correlations of a post-norm stream, an optimizer of whole
            matrices, numbers out of range.
        OverflowError: a net leaves the range of floats while it trains.

    Source: Wang et al. 2026, eq. 2, section 3.1.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.Transformer(depth=1, width=16, tokens=4, outputs=3)
        >>> trained = mf.TrainedResidualEnergies(steps=2)
        >>> mf.simulate(net, draws=4, seed=0, measure=trained)["trained_residual_energy"].dims
        ('update', 'step')
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    remedy: ClassVar[str] = "width, tokens, depth or workers"

    optimizer: Optimizer = ADAM
    rate: float = 1e-3
    epsilon: float = 1e-8
    steps: int = 10
    correlations: bool = False
    precision: str = "float64"

    def settled(self, net: Net) -> Self:
        require_choice("precision", self.precision, PRECISIONS)
        require_flag("correlations", self.correlations)
        if not (isinstance(self.optimizer, Optimizer) and self.optimizer.elementwise):
            raise TypeError(
                f"optimizer is {self.optimizer!r}; give an elementwise one of meanfield.optimizers, such as AdamW(), "
                "as draws train side by side"
            )
        require_normalisable(net)
        require_classes("cross_entropy", net.output_shape[1])
        require_residual_stream(net, maps_behind=not self.correlations)
        return replace(
            self,
            rate=require_positive("rate", self.rate, why="it is a learning rate"),
            epsilon=require_positive("epsilon", self.epsilon, why="it is added to the size of gradients"),
            steps=require_count("steps", self.steps, why="steps of training"),
        )

    def cost(self, net: Net) -> Cost:
        held = WEIGHT_ARRAYS * weight_bytes(net, self.precision)
        held += 2 * passes_bytes(net, net.inputs, 1, self.precision)  # the first pass is kept
        of_step = step_operations(net, net.inputs)
        most = MOST_OF_SMALL if of_step <= OPERATIONS_OF_SMALL else MOST_DRAWS_TOGETHER
        together = int(max(1, min(most, OPERATIONS_OF_DRAWS // of_step)))
        return Cost((self.steps + 1) * of_step, held, together)

    def multiple(self, net: Net) -> int:
        """A chunk has a multiple of so many draws, those side by side, so that none ends between them."""
        return self.together(net)

    def result_bytes(self, net: Net, draws: int) -> int:
        return 8 * draws * (self.steps + 1) * self.correlations * len(net.units) ** 2

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """Numbers (D, S + 1, U) and (D, S + 1) of every draw, with ``correlations`` also (D, S + 1, U, U).

        Raises:
            OverflowError: a net leaves the range of floats.
        """
        training, first = self._begun(net, seed, draws), units_below(net)
        adds = not any(unit.after for unit in net.units[first:])
        by_update = []
        with np.errstate(all="ignore"):  # an error is raised instead
            before = streams = _streams(training, first)
            for update in range(self.steps + 1):
                if update:
                    training.step()
                    training.require_floats()
                    streams = _streams(training, first)
                numbers = _energies(streams, before) | {"trained_loss": training.losses()}
                if adds:
                    numbers |= _split(streams)
                if self.correlations:
                    numbers["trained_increment_correlation"] = _overlaps(streams, net.units[first:])
                by_update.append(numbers)
        return {name: np.stack([numbers[name] for numbers in by_update], axis=1) for name in by_update[0]}

    def _begun(self, net: Net, seed: int, draws: range) -> Training:
        arrays = replace(on_numpy(self.precision), lenient=True)
        inputs = draw_inputs(net, streams_by_purpose(seed, draws))
        data = Data(arrays.moved(inputs), _classes(net, seed, draws, inputs, arrays))
        settings = {"learning_rate": self.rate, "epsilon": self.epsilon}
        weights = drawn_weights(net, seed, draws, arrays)
        return Training(net, weights, data, CrossEntropy(), self.optimizer, lambda _: settings, arrays=arrays)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        estimates = {name: summarise_each(value) for name, value in values.items()}
        how = {"optimizer": repr(self.optimizer), "rate": self.rate, "precision": self.precision}
        return measured_dataset(net, estimates, dict(attrs) | how, {"update": range(self.steps + 1)})

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"optimizer": repr(self.optimizer)}


def _classes(net: Net, seed: int, draws: range, inputs: Array, arrays: Arrays) -> Any:
    """Classes (D, 1, B, T) at all outputs: uniform, or the next token."""
    _, classes, *grid = net.output_shape
    shape = (net.inputs, int(np.prod(grid)))
    sources = streams_of_draws(seed, "labels", draws).generators()
    drawn = np.stack([source.integers(classes, size=shape) for source in sources])
    if net.input_law == "tokens" and shape[1] == net.sites:
        drawn[..., :-1] = inputs.argmax(axis=1)[..., 1:]
    return arrays.xp.asarray(drawn[:, None])


def _streams(training: Training, first: int) -> list[Array]:
    """The stream h_0 .. h_U of every draw in double precision, each (D, N)."""
    values = training.look().values[first:]
    return [np.asarray(value.reshape(len(value), -1), dtype=np.float64) for value in values]


def _energies(streams: Sequence[Array], before: Sequence[Array]) -> dict[str, Array]:
    """H_l and |h_l - h_l before|^2 / N, (D, U), and H_0, (D,), of the stream h_0 .. h_U."""
    start, *rest = streams
    changed = [stream - earlier for stream, earlier in zip(rest, before[1:], strict=True)]
    return {
        "trained_initial_energy": energy(start),
        "trained_residual_energy": np.stack([energy(stream) for stream in rest], axis=1),
        "trained_stream_change": np.stack([energy(change) for change in changed], axis=1),
    }


def _split(streams: Sequence[Array]) -> dict[str, Array]:
    """B_l and C_l, (D, U), of the stream h_0 .. h_U."""
    start, *rest = streams
    moved = [stream - start for stream in rest]
    return {
        "trained_cross_term": np.stack([2 * np.vecdot(start, total) / start.shape[1] for total in moved], axis=1),
        "trained_correlation_term": np.stack([energy(total) for total in moved], axis=1),
    }


def _overlaps(streams: Sequence[Array], units: Sequence[Unit]) -> Array:
    """<r_s, r_t> / N of the increments of all pairs of units, (D, U, U)."""
    pairs = zip(streams[1:], streams[:-1], units, strict=True)
    increments = np.stack([(above - below) / unit.multiplier for above, below, unit in pairs], axis=1)
    return overlaps_of_rows(increments)
