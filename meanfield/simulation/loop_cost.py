"""What a draw of a loop costs, before it is made: memory, arithmetic, and how many draws to carry together."""

from __future__ import annotations

from dataclasses import dataclass

from meanfield.memory import NUMBER_BYTES, require_bytes
from meanfield.nets.tied_loop import TiedLoop
from meanfield.simulation.cost import MOST_DRAWS_PER_BATCH, OPERATIONS_PER_NUMBER
from meanfield.simulation.weights import NormalSource

# What a batch holds should stay near the processor: one vector at a time meets all of it at every step.
BATCH_BYTES = 4 << 20

# Operations of a large matrix product in the time that a product with one vector needs per element.
OPERATIONS_PER_VISIT = 20

# Vectors that a walk holds beside its matrices.
VECTORS = 10


@dataclass(frozen=True)
class LoopCost:
    """The cost of one draw, in numbers held and in operations of matrix products.

    Attributes:
        loop: L steps of width N.
        right: vectors that every step multiplies by its matrix from the right.
        left: vectors that it multiplies from the left.
        kept_matrices: how many dense matrices of an independent stack live at once.
        extra_numbers: what the measure itself holds.
        extra_operations: what it does beside the products with the weights.
    """

    loop: TiedLoop
    right: int
    left: int
    kept_matrices: int
    extra_numbers: int
    extra_operations: float

    def chosen_weights(self, weights: str) -> str:
        """The kind of weights, dense or lazy: what was asked for, or under "auto" the cheaper one."""
        if weights != "auto":
            return weights
        return min(("lazy", "dense"), key=self.operations)

    def operations(self, kind: str) -> float:
        """Operations of one draw, all else counted as the operations that take the same time."""
        width, (matrices, right, left) = self.loop.width, self._questions
        numbers, visits = width**2, width**2 * (right + left)
        if kind == "lazy":
            # A question meets the known vectors of its own side some four times, half of which are yet to come, and
            # those of the other side some two times.
            numbers, visits = width * (right + left), width * 2 * (right**2 + left**2 + right * left)
        return matrices * (OPERATIONS_PER_NUMBER * numbers + OPERATIONS_PER_VISIT * visits) + self.extra_operations

    def draw_bytes(self, kind: str) -> int:
        """Bytes that one draw holds."""
        width, (matrices, right, left) = self.loop.width, self._questions
        kept = 1 if self.loop.tied else min(matrices, self.kept_matrices)
        held = kept * width**2
        if kind == "lazy":
            held = kept * 2 * width * (right + left) + min(NormalSource.BLOCK, matrices * width * (right + left))
        return NUMBER_BYTES * (held + VECTORS * width + self.extra_numbers)

    def draws_per_batch(self, kind: str) -> int:
        """How many draws to carry together; it changes speed, never a number."""
        return max(1, min(MOST_DRAWS_PER_BATCH, BATCH_BYTES // self.draw_bytes(kind)))

    def batch_bytes(self, draws: int, kind: str) -> int:
        """Bytes at the peak of so many draws in one process, which carries a batch of them at a time."""
        return min(draws, self.draws_per_batch(kind)) * self.draw_bytes(kind)

    def require_memory(self, workers: int, draws: int, kind: str, results: int = 0) -> None:
        """Raise MemoryError unless so many workers can hold a batch of draws, and this process all the results."""
        needed = workers * self.batch_bytes(draws, kind) + NUMBER_BYTES * results
        require_bytes(needed, f"drawing with {workers} worker(s)", "width, depth, draws or workers")

    @property
    def _questions(self) -> tuple[int, int, int]:
        """Matrices, and what each is asked from the right and from the left."""
        times = self.loop.depth if self.loop.tied else 1
        return self.loop.depth // times, times * self.right, times * self.left


def residual_energy_cost(loop: TiedLoop, correlations: bool) -> LoopCost:
    """The cost of `draw_residual_energies`."""
    rows, pairs = 2 * loop.depth * loop.width, 2 * loop.depth**2
    return LoopCost(loop, 1, 0, 2, correlations * (rows + pairs), correlations * 2.0 * pairs * loop.width)


def stream_update_cost(loop: TiedLoop, update: str) -> LoopCost:
    """The cost of `draw_stream_updates`; updates by signs hold every element of the update, and of its gradient."""
    rows = 6 * loop.depth * loop.width
    elements = 0 if update == "gradient" else loop.width**2
    changed = 1 if loop.tied else loop.depth
    operations = 4.0 * loop.depth * max(elements, loop.depth * loop.width) + changed * OPERATIONS_PER_NUMBER * elements
    return LoopCost(loop, 2, 1, loop.depth, rows + 2 * elements, operations)
