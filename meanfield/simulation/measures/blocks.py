"""Nets of blocks that train under hyperparameter tables: how far their streams go, and by which orders of updates.

The change of a stream splits by the order of the block's own updates in it (Zheng et al. 2026, eqs. 5, 26). In a
linear net of blocks, with W -> W + Delta W in every matrix,

    Delta h_s = Delta h_0 + sum_{j=0}^k epsilon_j(s)
    epsilon_j(s) = sum_{l<=s} a_l [terms with j factors Delta W_l^(i) in block l] applied to h_{l-1} + Delta h_{l-1}

but for j = 0, where W_l^(k) .. W_l^(1) is applied to Delta h_{l-1}: what earlier blocks have changed, carried along.
The net's first unit makes h_0; the others are the blocks (appendix B.2 of the paper).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from meanfield.common.machine import NUMBER_BYTES
from meanfield.common.seeds import derived_seed, streams_of_draws
from meanfield.common.validation import Array, require_choice, require_count
from meanfield.nets.net import Net
from meanfield.optimizers.by_name import FIRST_STEPS, OPTIMIZERS, optimizer_of_role, require_optimizer
from meanfield.optimizers.elementwise import Sophia
from meanfield.optimizers.linear_algebra import stable_rank
from meanfield.quantities.registry import QUANTITIES
from meanfield.simulation.arrays import NUMPY, PRECISIONS, Arrays, on_numpy
from meanfield.simulation.maps.base import Setting, operation_of
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.passes import Forward, forward, through
from meanfield.simulation.training.data import Data, drawn_batch, drawn_weights, given_data, own_loss
from meanfield.simulation.training.training import TINY, Training
from meanfield.simulation.weights import given_weights

# Dims of every variable, behind the draw.
Dims = Mapping[str, tuple[str, ...]]

# What a step costs per element of a matrix and per matrix, in operations of a large matrix product.
OPERATIONS_PER_ELEMENT = 400
OPERATIONS_PER_MATRIX = 4e7

# Arrays of the size of all matrices that a draw holds: weights twice, two moments, a gradient, a direction, spare.
MATRIX_ARRAYS = 8

# Draws side by side share what a step costs besides arithmetic: at most so many, and so many weights in all. More of
# them leave the cache between steps, which costs wide nets half as much again. Deep nets leave it anyway, layer by
# layer: of those whose single layers stay in it, at least so many, in as little as half the time of one by one.
MOST_TOGETHER, NUMBERS_TOGETHER = 16, 1 << 20
LEAST_TOGETHER, LAYERS_TOGETHER = 4, 1 << 16


class BlockMeasure(Measure):
    """What is read off a net of blocks while it trains.

    The dataset keeps every draw, as slopes over sizes are taken draw by draw: NAME over ``draw`` and its ``DIMS``, with
    ``block`` 0 for the stream below all blocks.
    """

    weights: ClassVar[str] = "dense"  # type: ignore[misc]
    DIMS: ClassVar[Dims]

    def drawn_net(self, net: Net) -> Net:
        """The net as it is given: a family may name the roles of its weights otherwise than a chain of its units."""
        return net

    @property
    @abstractmethod
    def visits(self) -> int:
        """Steps of training, each of which visits all weights."""

    def cost(self, net: Net) -> Cost:
        matrices, sizes = sum(len(shape) > 1 for shape in net.weight_shapes), [*map(prod, net.weight_shapes)]
        numbers = sum(sizes)
        operations = self.visits * (OPERATIONS_PER_ELEMENT * numbers + OPERATIONS_PER_MATRIX * matrices)
        least = LEAST_TOGETHER if LEAST_TOGETHER * max(sizes) <= LAYERS_TOGETHER else 1
        together = max(least, min(MOST_TOGETHER, NUMBERS_TOGETHER // numbers))
        return Cost(float(operations), MATRIX_ARRAYS * NUMBER_BYTES * numbers, together)

    def multiple(self, net: Net) -> int:
        """A chunk has a multiple of so many draws: those side by side stay together, however long they take."""
        return self.together(net)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        variables = {}
        for name, value in values.items():
            quantity = QUANTITIES[name]
            words = {"long_name": quantity.long_name, "symbol": quantity.symbol, "units": "1"}
            variables[name] = xr.Variable(("draw", *self.DIMS[name]), value, words)
        return xr.Dataset(variables, attrs=dict(attrs))


# Role -> "learning_rate", and if wanted "weight_decay" and "adamw_epsilon", "shampoo_epsilon" or "soap_epsilon", as
# `meanfield.parameterizations.transfer_hyperparameters` gives them.
Hyperparameters = Mapping[str, Mapping[str, float]]
# Name of a weight -> what its step is made of, net by net.
Directions = Mapping[str, Sequence[Any]]


def tabled(
    net: Net,
    weights: dict[str, Array],
    data: Data,
    optimizer: str,
    hyperparameters: Hyperparameters,
    momentum: bool,
    arrays: Arrays = NUMPY,
    label_seeds: Sequence[int] | None = None,
) -> Training:
    """Training of given weights, full batch, by an optimizer's name and the hyperparameters of every role.

    With ``momentum`` the optimizer is as it is run in practice; without, as Zheng et al. 2026 analyse it, without
    momentum or epsilon. The name may be that of a hybrid (`optimizer_of_role`). With ``label_seeds``, one for every
    net, curvatures are those at drawn labels.
    """
    methods = OPTIMIZERS if momentum else FIRST_STEPS
    by_role = {role: optimizer_of_role(optimizer, role) for role in weight_roles(net)}

    def settings(name: str) -> dict[str, float]:
        role = net.role_of(name)
        given = hyperparameters[role]
        epsilon = given.get(f"{by_role[role]}_epsilon", TINY) if momentum else 0.0
        return {name: given[name] for name in ("learning_rate", "weight_decay") if name in given} | {"epsilon": epsilon}

    steppers = {role: methods[by] for role, by in by_role.items()}
    if label_seeds is not None:
        steppers = {role: replace(by, sampled=True) if isinstance(by, Sophia) else by for role, by in steppers.items()}
    return Training(net, weights, data, own_loss(net), steppers, settings, seeds=label_seeds, arrays=arrays)


@dataclass(frozen=True, kw_only=True)
class OneOptimizer(BlockMeasure):
    """What measures under one optimizer and one table share."""

    optimizer: str
    hyperparameters: Hyperparameters
    momentum: bool
    # Samples (samples, channels, *grid) of which every draw has a batch of its own, and their classes; drawn on the
    # sphere, with random labels, where they are left out.
    inputs: Any = None
    targets: Any = None
    # Of weights and passes, "float64" or "float32", of which draw i is the same net, rounded.
    precision: str = "float64"
    # Whether an optimizer takes the curvature of the loss at labels drawn for the outputs; summed over them if not.
    sampled_curvature: bool = False

    def settled(self, net: Net) -> Self:
        require_optimizer("optimizer", self.optimizer)
        require_choice("precision", self.precision, PRECISIONS)
        if self.inputs is not None:
            samples = given_data(net, self.inputs, self.targets, own_loss(net)).samples
            require_count("inputs", net.inputs, maximum=samples, why="samples of a batch, of those there are")
        return self

    def begun(self, net: Net, seed: int, draws: range) -> Training:
        """Nets of these draws before their first step."""
        arrays = on_numpy(self.precision)
        weights, data = drawn_weights(net, seed, draws, arrays), self._batches(net, seed, draws, arrays)
        seeds = [derived_seed(seed, f"labels of draw {draw}") for draw in draws] if self.sampled_curvature else None
        return tabled(net, weights, data, self.optimizer, self.hyperparameters, self.momentum, arrays, seeds)

    def _batches(self, net: Net, seed: int, draws: range, arrays: Arrays) -> Data:
        if self.inputs is None:
            return drawn_batch(net, seed, draws, arrays)
        every = given_data(net, self.inputs, self.targets, own_loss(net), arrays)
        sources = streams_of_draws(seed, "batch", draws).generators()
        chosen = [source.permutation(every.samples)[: net.inputs] for source in sources]
        return every.taken(np.stack(chosen), arrays)


@dataclass(frozen=True, kw_only=True)
class TrainedFeatures(OneOptimizer):
    """Sizes of the stream, of its change and of the outputs' change over so many steps of training.

    Its dataset has ``step`` 0, before the first step.
    """

    DIMS: ClassVar[Dims] = {
        "feature_norm": ("step", "block"),
        "feature_update_norm": ("step", "block"),
        "output_update_norm": ("step",),
    }

    steps: int

    @property
    def visits(self) -> int:
        return self.steps

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """NAME -> (draws, steps + 1, ...), root mean squares over units, samples and sites.

        feature_norm and feature_update_norm (L + 1,), of h_l and of h_l - h_l at the start, h_l the value of unit
        l + 1;
        output_update_norm (), of the outputs' change.

        Nets that leave the range of floats are nan from there on.
        """
        training = self.begun(net, seed, draws)
        weights, first = copied(training.weights), training.look()
        looks = [self.changes(training, weights, first, None)]
        with np.errstate(all="ignore"):  # where training diverges, the numbers say so by not being finite
            for step in range(1, self.steps + 1):
                directions = training.step()
                looks.append(self.changes(training, weights, first, directions if step in (1, self.steps) else None))
        return {name: np.stack([look[name] for look in looks], axis=1) for name in looks[0]}

    def changes(
        self, training: Training, weights: Mapping[str, Array], first: Forward, directions: Directions | None
    ) -> Pieces:
        """What is looked at, of nets that began with these weights and this first pass.

        ``weights``, and ``directions`` that the first and the last step were made of, are for what derived measures
        look at after these steps.
        """
        now = training.look()
        pairs = zip(now.values[1:], first.values[1:], strict=True)
        return {
            "feature_norm": root_mean_squares(now.values[1:]),
            "feature_update_norm": root_mean_squares([after - before for after, before in pairs]),
            "output_update_norm": root_mean_square(now.output - first.output),
        }


@dataclass(frozen=True, kw_only=True)
class TrainedStreams(TrainedFeatures):
    """It measures the same and, after the first and last step, who changes them and ranks of updates; nan elsewhere.

    own_change (roles,) is what the weights of one role change alone, those of all others as at the start: the outputs
    for output weights, h_L for the others;
    stable_rank (roles,), of the optimizer's direction A, which steps are made of, for the role's middle weight.
    """

    DIMS: ClassVar[Dims] = {**TrainedFeatures.DIMS, **dict.fromkeys(("own_change", "stable_rank"), ("step", "role"))}

    def changes(
        self, training: Training, weights: Mapping[str, Array], first: Forward, directions: Directions | None
    ) -> Pieces:
        common, middles = super().changes(training, weights, first, directions), middle_weights(training.net)
        if directions is None:
            nowhere = np.full((training.nets, len(middles)), np.nan)
            return common | {"own_change": nowhere, "stable_rank": nowhere}
        ranks = np.transpose([[stable_rank(part) for part in directions[name]] for name in middles])
        own = [_own_change(training, weights, first, role) for role in weight_roles(training.net)]
        return common | {"own_change": np.stack(own, axis=1), "stable_rank": ranks}


def _own_change(training: Training, weights: Mapping[str, Array], first: Forward, role: str) -> Array:
    """What the steps of one role's weights change, the others being as at the start."""
    net = training.net
    moved = {name: training.weights[name] if net.role_of(name) == role else old for name, old in weights.items()}
    alone = forward(net, given_weights(net, moved), training.batch.inputs, training.arrays)
    if role == "output":
        return root_mean_square(alone.output - first.output)
    return root_mean_square(alone.values[-1] - first.values[-1])


def middle_weights(net: Net) -> list[str]:
    """One weight of every role, with as many of them before as behind it."""
    by_role = {role: [name for name in net.weights if net.role_of(name) == role] for role in weight_roles(net)}
    return [names[len(names) // 2] for names in by_role.values()]


def weight_roles(net: Net) -> list[str]:
    """The roles of a net's weights, each once, in the order of its weights."""
    return list(dict.fromkeys(map(net.role_of, net.weights)))


def root_mean_squares(values: Sequence[Array]) -> Array:
    """|a|_R over all numbers of every net's array, (D, arrays)."""
    return np.stack([root_mean_square(array) for array in values], axis=1)


def root_mean_square(values: Array) -> Array:
    """|a|_R over all numbers of every net, (D,), of (D, ...), summed in double precision."""
    wide = np.asarray(values, dtype=np.float64)
    return np.sqrt(np.mean(np.square(wide).reshape(len(wide), -1), axis=1))


@dataclass(frozen=True, kw_only=True)
class UpdateOrders(OneOptimizer):
    """The change of the stream since the start, split by the order of the updates in it, after some of the steps."""

    DIMS: ClassVar[Dims] = {"order_norm": ("step", "order"), "feature_update_norm": ("step",)}

    steps: Sequence[int]

    @property
    def visits(self) -> int:
        return max(self.steps)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """|epsilon_j(L)|_R, (draws, steps, k + 1), and |Delta h_L|_R, (draws, steps).

        Raises:
            OverflowError: a net leaves the range of floats.
        """
        orders, changes = [], []
        training = self.begun(net, seed, draws)
        start = copied(training.weights)
        with np.errstate(all="ignore"):  # an error is raised instead
            for step in range(1, max(self.steps) + 1):
                training.step()
                training.require_floats()
                if step in self.steps:
                    first, terms = split_by_order(net, start, training.weights, training.data.inputs)
                    orders.append(root_mean_squares(terms[-1]))
                    changes.append(root_mean_square(first + sum(terms[-1])))
        return {"order_norm": np.stack(orders, axis=1), "feature_update_norm": np.stack(changes, axis=1)}


def copied(weights: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.copy() for name, values in weights.items()}


def split_by_order(
    net: Net, before: Mapping[str, Array], after: Mapping[str, Array], inputs: Array
) -> tuple[Array, list[list[Array]]]:
    """Delta h_0 and, for s = 1 .. L, [epsilon_0(s) .. epsilon_k(s)], each (D, n, B, S).

    Their sum is Delta h_s to rounding; a bias stands for the same factor as the matrix before it.

    Raises:
        ValueError: a net that is not linear, whose change is not a polynomial in the updates, or whose units do not
            each add to the one before.
    """
    _require_linear(net)
    moves = {name: after[name] - before[name] for name in before}
    old_way, new_way, change = (
        Setting(net.grid, inputs.shape[2], given_weights(net, weights), NUMPY) for weights in (before, after, moves)
    )
    first_unit, *blocks = net.units
    old = through(first_unit, [inputs], [old_way])[0]
    moved = first = through(first_unit, [inputs], [new_way])[0] - old
    sums: list[list[Array]] = []
    for block in blocks:
        terms = [old + moved]
        for part in block.branch:
            terms = operation_of(part).by_order(part, terms, old_way, change)
        terms = [block.multiplier * term for term in terms]
        passed = through(replace(block, skip=None), [old], [old_way])[0]
        terms[0] -= passed
        if sums:
            terms = [term + earlier for term, earlier in zip(terms, sums[-1], strict=True)]
        sums.append(terms)
        old, moved = old + passed, first + sum(terms)
    return first, sums


def is_linear(net: Net) -> bool:
    """Whether all maps below the readout are linear."""
    return not _nonlinear(net)


def _nonlinear(net: Net) -> set[str]:
    maps = (part for unit in net.units for part in unit.maps)
    return {type(part).__name__ for part in maps if not operation_of(part).splits_by_order}


def _require_linear(net: Net) -> None:
    if names := _nonlinear(net):
        raise ValueError(f"the net has maps {', '.join(sorted(names))}; only linear nets split by the order of updates")
    adding = all(unit.adds and unit.skip == number for number, unit in enumerate(net.units[1:], start=1))
    if not adding or net.units[0].skip is not None:
        raise ValueError("orders of updates are told apart in nets whose units, from the second on, add to the last")
