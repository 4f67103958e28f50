"""How far one update of its weights moves a residual stream: |dh_l|^2 / N by a tangent pass.

To first order in the update, with dh_0 = 0 and units h_{l+1} = h_l + eps W phi(h_l),

    dh_{l+1} = dh_l + eps (Delta W phi(h_l) + W (phi'(h_l) dh_l)),

W and Delta W being those of the step: a weight that is used at several steps moves at all of them. The loss of the
updates that follow one is l = |h_L - y|^2 / (2 N) with labels y ~ N(0, I), N counting the numbers of a stream. Any
residual stream is served (`meanfield.simulation.walk`).

Source: Wang et al. 2026, Theorem 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.random import Generator

from meanfield.common.arrays import Array
from meanfield.common.estimates import summarise_each
from meanfield.common.seeds import streams_by_purpose
from meanfield.common.validation import require_choice
from meanfield.nets.net import Net
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.cost import OPERATIONS_PER_NUMBER
from meanfield.simulation.inputs import stream_starts
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.residual_energy import energy, require_finite
from meanfield.simulation.measures.stream_cost import StreamCost, StreamMeasure
from meanfield.simulation.passes import Forward, Moves, Place, backward, forward, tangent
from meanfield.simulation.walk import LARGEST_EXPONENT, require_stream_alone
from meanfield.simulation.weights.in_turn import DrawnInTurn
from meanfield.simulation.weights.moves import GradientMoves, MatrixMoves

if TYPE_CHECKING:
    import xarray as xr

# How the weights move at learning rate 1, given a pass that gives the errors of minus the loss and a generator of signs
# for every draw.
Errors = dict[Place, Any]
Update = Callable[[Forward, Callable[[], Errors], list[Generator]], Moves]


def random_signs(rows: int, columns: int, generators: list[Generator]) -> Array:
    """Matrices (D, rows, columns) of independent fair signs, one per generator."""
    matrices = np.empty((len(generators), rows, columns))
    for generator, signs in zip(generators, matrices, strict=True):
        octets = np.frombuffer(generator.bytes(-(-signs.size // 8)), dtype=np.uint8)
        np.multiply(np.unpackbits(octets, count=signs.size).reshape(signs.shape), 2.0, out=signs)
        signs -= 1
    return matrices


def _isotropic(state: Forward, downhill: Callable[[], Errors], generators: list[Generator]) -> Moves:
    def moved(places: list[Place], patches: Array) -> Array:
        unit, number = places[0]
        rows = sum(weight.shape[0] for weight in state.net.units[unit].maps[number].weights)
        signs = random_signs(rows, patches.shape[1], generators)
        return np.asarray(signs @ patches / np.sqrt(patches.shape[1]))

    return MatrixMoves(state, moved)


def _aligned(state: Forward, downhill: Callable[[], Errors], generators: list[Generator]) -> Moves:
    errors = downhill()

    def moved(places: list[Place], patches: Array) -> Array:
        rows = [errors[place].reshape(*errors[place].shape[:2], -1) for place in places]
        signs = np.concatenate(rows, axis=2) @ patches.swapaxes(1, 2)
        np.sign(signs, out=signs)
        return np.asarray(signs @ patches / np.sqrt(patches.shape[1]))

    return MatrixMoves(state, moved)


def _gradient(state: Forward, downhill: Callable[[], Errors], generators: list[Generator]) -> Moves:
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

            def downhill() -> Errors:
                labels = NormalSource(streams("labels")).drawn(state.output.shape[1:])
                error = (state.output - labels) / labels[0].size
                return {place: -uphill for place, uphill in backward(state, error, len(net.units)).items()}

            moves = UPDATES[self.update](state, downhill, streams("update signs").generators())
            # The start does not change, but its zeros are carried like the changes that follow: lazily revealed draws
            # then stay what they were before a pass could leave them out.
            changes = tangent(state, moves, len(net.units), columns=1, start=np.zeros_like(start))
            numbers = {"stream_update_energy": np.stack([energy(change) for change in changes], axis=1)}
        require_finite(numbers)
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
