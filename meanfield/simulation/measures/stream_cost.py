"""What a draw of a residual stream costs, before it is made, and what all measures of such streams share."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, Self

from meanfield.common.arrays import inputs_described
from meanfield.common.machine import NUMBER_BYTES
from meanfield.common.validation import require_choice
from meanfield.nets.inputs.given import checked_start
from meanfield.nets.maps import Weight
from meanfield.nets.net import Net
from meanfield.nets.regularisation import require_normalisable
from meanfield.nets.units import uses
from meanfield.simulation.cost import MOST_DRAWS_PER_BATCH, OPERATIONS_PER_NUMBER
from meanfield.simulation.measures.base import Cost, Measure
from meanfield.simulation.walk import require_residual_stream
from meanfield.simulation.weights.in_turn import numbers_revealed
from meanfield.simulation.weights.matrices import KINDS

# What a batch holds should stay near the processor: one vector at a time meets all of it at every step.
BATCH_BYTES = 4 << 20

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
        return max(1, min(MOST_DRAWS_PER_BATCH, BATCH_BYTES // self.draw_bytes(kind)))

    @cached_property
    def _asked(self) -> dict[Weight, tuple[int, int]]:
        """Columns that all uses of each weight multiply by it from the right and from the left."""
        places = self.net.places
        counts = self.net.use_counts
        return {self.net.weights[n]: (c * self.right * places, c * self.left * places) for n, c in counts.items()}

    def _most_at_once(self, numbers: dict[Weight, int]) -> int:
        """Of what every weight holds, the most that lives at one time."""
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
        """Of one draw, by the kind of weights."""

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
