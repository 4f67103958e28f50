"""What one draw of a residual stream says: its residual energy, and how far one update of its weights moves it.

The residual energy is H_l = H_0 + B_l + C_l (Wang et al. 2026, eq. 2). With R_l = h_l - h_0 = sum_{s <= l} eps r_s,
summed from the increments r_s and the multipliers eps of the units, and N the numbers of a stream,

    B_l = (2 / N) <h_0, R_l>,   C_l = |R_l|^2 / N.

Both are read off R_l, never off a difference of energies, so that the split is a check of the numbers.

The move is |dh_l|^2 / N by a tangent pass. To first order in the update, with dh_0 = 0 and units h_{l+1} = h_l + eps
W phi(h_l),

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)),

W and Delta W being those of the step: a weight that is used at several steps moves at all of them. The loss of the
updates that follow one is l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I), N counting the numbers of a stream.

Any residual stream is served (`meanfield.simulation.passes.walk`). What a draw costs is known before it is made.

Source: Wang et al. 2026, Theorem 2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.common.estimates import Means, summarise_each
from meanfield.common.machine import NUMBER_BYTES
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.common.validation import Array, inputs_described, require_choice, require_flag
from meanfield.nets.inputs import checked_start, require_normalisable
from meanfield.nets.maps import Weight
from meanfield.nets.net import Net, uses
from meanfield.quantities.registry import measured_dataset
from meanfield.simulation.cost import MOST_DRAWS_PER_BATCH, OPERATIONS_PER_NUMBER
from meanfield.simulation.draws import stream_starts
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.passes import (
    LARGEST_EXPONENT,
    ErrorsByPlace,
    Forward,
    GradientMoves,
    MapPlace,
    MatrixMoves,
    Moves,
    WalkedUnit,
    backward,
    forward,
    require_residual_stream,
    require_stream_alone,
    stream_start,
    tangent,
    units_below,
    walk,
)
from meanfield.simulation.weights import KINDS, DrawnInTurn, numbers_revealed

# What a batch holds should stay near the processor: one vector at a time meets all of it at every step.
STREAM_BATCH_BYTES = 4 << 20

# Operations of a large matrix product in the time that a product with one vector needs per element.
OPERATIONS_PER_VISIT = 20

# Values that a walk holds beside its matrices.
VECTORS = 10


@dataclass(frozen=True)
class StreamCost:
    """The cost of one draw, in numbers held and in operations of matrix products.

    Attributes:
        net: the residual stream.
        right: columns, for every sample and site, that each use of a weight multiplies by it from the right.
        left: columns that it multiplies from the left.
        keeps_all: whether all weights live at once, or each only from its first use to its last.
        extra_numbers: what the measure itself holds.
        extra_operations: what it does beside the products with the weights.
    """

    net: Net
    right: int
    left: int
    keeps_all: bool
    extra_numbers: int
    extra_operations: float

    def chosen_weights(self, weights: str) -> str:
        """The kind of weights, dense or lazy: what was asked for, or under "auto" the cheaper one."""
        if weights != "auto":
            return weights
        return min(("lazy", "dense"), key=self.operations)

    def operations(self, kind: str) -> float:
        """Operations of one draw, all else counted as the operations that take the same time."""
        return sum(self._weight_operations(weight, kind) for weight in self._asked) + self.extra_operations

    def _weight_operations(self, weight: Weight, kind: str) -> float:
        right, left = self._asked[weight]
        numbers = prod(weight.shape)
        visits = numbers * (right + left)
        if kind == "lazy":
            # A query meets the known vectors of its own side about four times, on average half of them, and those of
            # the other side about twice.
            numbers = numbers_revealed(weight, right, left)
            visits = _ends(weight) * (right**2 + left**2 + right * left)
        return OPERATIONS_PER_NUMBER * numbers + OPERATIONS_PER_VISIT * visits

    def draw_bytes(self, kind: str) -> int:
        """Bytes that one draw holds."""
        held = self._most_at_once({weight: prod(weight.shape) for weight in self._asked})
        if kind == "lazy":
            held = self._most_at_once({weight: _ends(weight) * sum(asked) for weight, asked in self._asked.items()})
        widest = max(self.net.value_channels[0], *(_ends(weight) // 2 for weight in self._asked))
        return NUMBER_BYTES * (held + VECTORS * widest * self.net.places + self.extra_numbers)

    def draws_per_batch(self, kind: str) -> int:
        """How many draws to carry together; it changes speed, never a number."""
        return max(1, min(MOST_DRAWS_PER_BATCH, STREAM_BATCH_BYTES // self.draw_bytes(kind)))

    @cached_property
    def _asked(self) -> dict[Weight, tuple[int, int]]:
        """Columns that all uses of each weight multiply by it from the right and from the left."""
        places = self.net.places
        counts = self.net.use_counts
        return {self.net.weights[n]: (c * self.right * places, c * self.left * places) for n, c in counts.items()}

    def _most_at_once(self, numbers: dict[Weight, int]) -> int:
        """The most that lives at one time of what every weight holds."""
        if self.keeps_all:
            return sum(numbers.values())
        spans: dict[Weight, list[int]] = {}
        for unit, _, holder in uses(self.net.units):
            for weight in holder.weights:
                spans.setdefault(weight, []).append(unit)
        change = [0] * (len(self.net.units) + 1)
        for weight, units in spans.items():
            change[units[0]] += numbers[weight]
            change[units[-1] + 1] -= numbers[weight]
        return max(accumulate(change))


def _ends(weight: Weight) -> int:
    """Numbers of a vector below and of one above a weight, together."""
    return weight.shape[0] + weight.fan_in * weight.groups


class StreamMeasure(Measure):
    """What measures of residual streams share: given starts, and what a draw costs.

    Attributes:
        inputs: h_0 of all draws, or None for white Gaussian ones.
        weights: "auto", "dense" or "lazy".
    """

    inputs: Any
    remedy = "width, depth, draws or workers"

    @abstractmethod
    def stream_cost(self, net: Net) -> StreamCost:
        """What one draw costs, by the kind of weights."""

    def settled(self, net: Net) -> Self:
        require_residual_stream(net)
        require_choice("weights", self.weights, ("auto", *KINDS))
        require_normalisable(net)
        inputs, weights = checked_start(net, self.inputs), self.stream_cost(net).chosen_weights(self.weights)
        return replace(self, inputs=inputs, weights=weights)  # type: ignore[type-var]

    def cost(self, net: Net) -> Cost:
        cost, kind = self.stream_cost(net), self.weights
        return Cost(cost.operations(kind), cost.draw_bytes(kind), cost.draws_per_batch(kind))

    def record(self) -> dict[str, str]:
        """What datasets say of it."""
        return inputs_described(self.inputs) | {"weights": self.weights}


# The powers of 2^k in which a draw's numbers are given, k being its ``binary_exponent`` at that step.
POWERS = {"residual_energy": 2, "cross_term": 1, "correlation_term": 2}


@dataclass(frozen=True, kw_only=True)
class ResidualEnergies(StreamMeasure):
    """The residual energy H_l = H_0 + B_l + C_l of every step of a loop or a residual stream, by walking it.

    Steps are the units that add to the stream. Where others stand below them, such as the embedding of a Transformer
    with a vocabulary, these make h_0 of the inputs; a readout above is not looked at.

    Args:
        inputs: of all draws, (width,) or (samples, channels, *grid), instead of N(0, I), or of tokens drawn uniformly.
        weights: "dense", "lazy", or "auto", the cheaper of both.
        correlations: whether to measure how increments and features of all pairs of steps overlap, too.

    Gives over ``step`` = 1 .. L residual_energy, initial_energy, cross_term and correlation_term, and with
    ``correlations`` increment_correlation and feature_overlap over pairs of steps. Streams may outgrow the floats: such
    a mean and its error read inf, and log_residual_energy, the logarithm of the mean of H_l with its relative error,
    stays finite.

    Raises:
        TypeError, ValueError: a net that is no residual stream, an unknown kind of weights, inputs of another shape.
        OverflowError: a single step, or a stream under an activation that is not homogeneous, outgrows the floats.

    Source: Wang et al. 2026, eqs. 1, 2.

    Examples:
        >>> import meanfield as mf
        >>> measured = mf.simulate(mf.TiedLoop(depth=4, width=64), draws=8, seed=0, measure=mf.ResidualEnergies())
        >>> measured["residual_energy"].dims
        ('step',)
    """

    inputs: Any = None
    weights: str = "auto"
    correlations: bool = False

    def settled(self, net: Net) -> Self:
        require_flag("correlations", self.correlations)
        return super().settled(net)

    def stream_cost(self, net: Net) -> StreamCost:
        steps, numbers = len(net.units) - units_below(net), net.value_channels[-1] * net.places
        rows, pairs = 2 * steps * numbers, 2 * steps**2
        extra = self.correlations * (rows + pairs), self.correlations * 2.0 * pairs * numbers
        return StreamCost(net, 1, 0, False, *extra)

    def result_bytes(self, net: Net, draws: int) -> int:
        """The matrices of correlations take these bytes: as drawn, with their exponents, and scaled."""
        return NUMBER_BYTES * draws * 3 * self.correlations * 2 * len(net.units) ** 2

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """initial_energy (D,), and residual_energy, cross_term and correlation_term (D, L) of every draw, L steps.

        In units of 2^(p k) with k = ``binary_exponent`` (D, L) and p from `POWERS`: k is 0 unless a stream nears the
        end of the floats. With ``correlations``, also increment_correlation and feature_overlap (D, L, L), in units of
        2^(k_s + k_t): all increments, and all features, must be of one size.

        Raises:
            ValueError: a net that is no residual stream.
            OverflowError: a single step, or a smooth activation, leaves the range of floats all the same.
        """
        inputs = stream_starts(net, streams_of_draws(seed, "inputs", draws), self.inputs)
        matrices = DrawnInTurn(net, streams_of_draws(seed, "weights", draws), self.weights, right=1, left=0)
        steps, start = len(net.units) - units_below(net), stream_start(net, matrices, inputs)
        numbers = {name: np.empty((len(draws), steps)) for name in (*POWERS, "binary_exponent")}
        numbers["initial_energy"] = energy(start)
        kept: list[tuple[Array, Array]] = []
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            for index, step in enumerate(walk(net, matrices, start)):
                for name, values in _energies_at(step, start).items():
                    numbers[name][:, index] = values
                if self.correlations:
                    kept.append((_flat(step.increment), _flat(step.features)))
            if self.correlations:
                increments, features = zip(*kept, strict=True)
                numbers |= {"increment_correlation": _overlaps(increments), "feature_overlap": _overlaps(features)}
        require_finite_energies(numbers)
        return numbers

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        exponent, means = values["binary_exponent"].astype(np.int64), {}
        for name, value in values.items():
            if name == "binary_exponent":
                continue
            means[name], logarithm = _scaled_means(value, _units(name, value, exponent))
            if name == "residual_energy":
                means["log_residual_energy"] = logarithm
        return measured_dataset(net, means, dict(attrs) | self.record())


def _energies_at(step: WalkedUnit, start: Array) -> dict[str, Array]:
    total = _flat(step.total)
    return {
        "residual_energy": energy(step.stream),
        "cross_term": 2 * np.vecdot(_flat(start), total) / total.shape[1],
        "correlation_term": energy(total),
        "binary_exponent": step.exponent,
    }


def _overlaps(vectors: Sequence[Array]) -> Array:
    """<v_s, v_t> / N of all pairs of steps, (D, L, L)."""
    if len(sizes := {vector.shape[1] for vector in vectors}) > 1:
        raise ValueError(f"correlations overlap increments, and features, of one size; sizes here are {sorted(sizes)}")
    return overlaps_of_rows(np.stack(vectors, axis=1))


def overlaps_of_rows(rows: Array) -> Array:
    """<v_s, v_t> / N of all pairs of rows (D, L, N), (D, L, L)."""
    return np.asarray(rows @ rows.swapaxes(1, 2) / rows.shape[2])


def require_finite_energies(numbers: Mapping[str, Array]) -> None:
    """Raise OverflowError rather than hand on a number that left the range of floats."""
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise OverflowError(
                f"{name} leaves the range of floats; take a larger alpha, a smaller depth or a smaller weight_variance"
            )


def energy(values: Array) -> Array:
    """|v|^2 / N of every draw."""
    vectors = _flat(values)
    return np.asarray(np.vecdot(vectors, vectors) / vectors.shape[1])


def _flat(values: Array) -> Array:
    """The numbers of every draw, (D, N)."""
    return values.reshape(len(values), -1)


def _units(name: str, value: Array, exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """The powers of two that a measure's numbers are multiples of, given those of the stream, (D, L)."""
    if value.ndim == 1:
        return np.zeros(len(value), dtype=np.int64)
    return POWERS[name] * exponent if value.ndim == 2 else exponent[:, :, None] + exponent[:, None, :]


def _scaled_means(values: Array, exponent: NDArray[np.int64]) -> tuple[Means, Means]:
    """Means over draws of 2^exponent values, and of the logarithm of each mean with its relative error.

    A mean beyond the range of floats is infinite, as is its error; its logarithm stays finite.
    """
    common = exponent.max(axis=0)
    relative = summarise_each(np.ldexp(values, exponent - common))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        plain = Means(np.ldexp(relative.mean, common), np.ldexp(relative.stderr, common), relative.largest_share)
        logarithm = np.log(relative.mean) + common * np.log(2.0)
        return plain, Means(logarithm, relative.stderr / np.abs(relative.mean), relative.largest_share)


# How the weights move at learning rate 1, given a pass that gives the errors of minus the loss and a generator of signs
# for every draw.
Update = Callable[[Forward, Callable[[], ErrorsByPlace], list[Generator]], Moves]


def random_signs(rows: int, columns: int, generators: list[Generator]) -> Array:
    """Matrices (D, rows, columns) of independent fair signs, one per generator."""
    matrices = np.empty((len(generators), rows, columns))
    for generator, signs in zip(generators, matrices, strict=True):
        octets = np.frombuffer(generator.bytes(-(-signs.size // 8)), dtype=np.uint8)
        np.multiply(np.unpackbits(octets, count=signs.size).reshape(signs.shape), 2.0, out=signs)
        signs -= 1
    return matrices


def _isotropic(state: Forward, downhill: Callable[[], ErrorsByPlace], generators: list[Generator]) -> Moves:
    def moved(places: list[MapPlace], patches: Array) -> Array:
        unit, number = places[0]
        rows = sum(weight.shape[0] for weight in state.net.units[unit].maps[number].weights)
        signs = random_signs(rows, patches.shape[1], generators)
        return np.asarray(signs @ patches / np.sqrt(patches.shape[1]))

    return MatrixMoves(state, moved)


def _aligned(state: Forward, downhill: Callable[[], ErrorsByPlace], generators: list[Generator]) -> Moves:
    errors = downhill()

    def moved(places: list[MapPlace], patches: Array) -> Array:
        rows = [errors[place].reshape(*errors[place].shape[:2], -1) for place in places]
        signs = np.concatenate(rows, axis=2) @ patches.swapaxes(1, 2)
        np.sign(signs, out=signs)
        return np.asarray(signs @ patches / np.sqrt(patches.shape[1]))

    return MatrixMoves(state, moved)


def _gradient(state: Forward, downhill: Callable[[], ErrorsByPlace], generators: list[Generator]) -> Moves:
    return GradientMoves(state, downhill())


# Random signs S / sqrt(fan_in), the gradient's signs -sign(G) / sqrt(fan_in), and the gradient itself, -G.
UPDATES: dict[str, Update] = {"isotropic": _isotropic, "aligned": _aligned, "gradient": _gradient}


@dataclass(frozen=True, kw_only=True)
class StreamUpdates(StreamMeasure):
    """|dh_l|^2 / N, the first-order change of a residual stream under one update at learning rate eta = 1.

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)), dh_0 = 0. A tied loop moves its one matrix, which
    acts at every step; an independent stack moves each of its matrices by an update of that matrix's own.

    Args:
        update: "isotropic", Delta W = eta / sqrt(N) times random signs independent of everything else; or, for the
            loss l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I), "aligned", -eta / sqrt(N) sign(dl/dW), or "gradient",
            -eta dl/dW (no factor of N: the loss is a mean over units, so every unit changes by order one).
        inputs: h_0 of all draws, (N,), instead of N(0, I).
        weights: "dense", "lazy", or "auto", the cheaper of both. The update itself is exact either way.

    Gives over ``step`` = 1 .. L stream_update_energy with NAME_stderr and NAME_largest_share. Quadratic in eta. While
    H is O(1) it scales as (eta eps L)^2 for isotropic updates, N times that for aligned ones, whose norm is
    eta sqrt(N), and as (eta eps^2 L^2)^2 for gradients.

    Raises:
        TypeError, ValueError: a net that is no residual stream, or has units below it or above; unknown names, inputs
            of another shape.
        OverflowError: a draw leaves the range of floats.

    Source: Wang et al. 2026, Theorem 2, appendix D.

    Examples:
        >>> import meanfield as mf
        >>> measured = mf.simulate(mf.TiedLoop(depth=4, width=64), draws=8, seed=0, measure=mf.StreamUpdates())
        >>> sorted(measured.sizes)
        ['step']
    """

    update: str = "isotropic"
    inputs: Any = None
    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_choice("update", self.update, UPDATES)
        require_stream_alone(net)
        return super().settled(net)

    def stream_cost(self, net: Net) -> StreamCost:
        """Updates by signs hold every element of one weight's update, and of its gradient."""
        rows = 6 * len(net.units) * net.value_channels[0] * net.places
        sizes, by_signs = {name: prod(weight.shape) for name, weight in net.weights.items()}, self.update != "gradient"
        operations = 0.0
        for name, count in net.use_counts.items():
            elements, columns = by_signs * sizes[name], count * net.places
            operations += 4.0 * columns * max(elements, columns * net.weights[name].shape[0])
            operations += OPERATIONS_PER_NUMBER * elements
        return StreamCost(net, 2, 1, True, rows + 2 * by_signs * max(sizes.values(), default=0), operations)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """stream_update_energy |dh_l|^2 / N of every draw, (D, L), at learning rate 1.

        Raises:
            ValueError: a net that is no residual stream, or has units below it or above.
            OverflowError: the stream or its change leaves the range of floats.
        """
        require_stream_alone(net)
        streams = streams_by_purpose(seed, draws)
        start = stream_starts(net, streams("inputs"), self.inputs)
        matrices = DrawnInTurn(net, streams("weights"), self.weights, right=2, left=1)
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            state = forward(net, matrices, start)
            _require_plain(state)

            def downhill() -> ErrorsByPlace:
                labels = NormalSource(streams("labels")).drawn(state.output.shape[1:])
                error = (state.output - labels) / labels[0].size
                return {place: -uphill for place, uphill in backward(state, error, len(net.units)).items()}

            moves = UPDATES[self.update](state, downhill, streams("update signs").generators())
            # The start does not change, but its zeros are carried like the changes that follow: lazily revealed draws
            # then stay what they were before a pass could leave them out.
            changes = tangent(state, moves, len(net.units), columns=1, start=np.zeros_like(start))
            numbers = {"stream_update_energy": np.stack([energy(change) for change in changes], axis=1)}
        require_finite_energies(numbers)
        return numbers

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        estimates = {name: summarise_each(value) for name, value in values.items()}
        return measured_dataset(net, estimates, dict(attrs) | self.record() | {"update": self.update})


def _require_plain(state: Forward) -> None:
    """Changes are carried in plain floats: refuse streams that are not."""
    values = np.concatenate([value.reshape(len(value), -1) for value in state.values[:-1]], axis=1)
    if not max(values.max(), -values.min()) < 2.0**LARGEST_EXPONENT:
        raise OverflowError(
            f"the stream grows beyond 2^{LARGEST_EXPONENT}, too far for its change to be followed in floats; take a "
            "larger alpha, a smaller depth or a smaller weight_variance"
        )
