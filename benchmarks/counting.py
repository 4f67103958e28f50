"""How many random numbers and products with weights some work takes: counted while it runs, once, untimed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from meanfield.simulation.weights.matrices import Dense, NormalSource


@dataclass
class Count:
    """Normals drawn for weights, and operations of the products with dense weights."""

    numbers: int = 0
    operations: float = 0.0


def counted(work: Callable[[], object]) -> Count:
    """What a call of ``work`` takes. Inputs and labels, a few numbers in comparison, are left out."""
    count = Count()
    make, take = Dense.__init__, NormalSource.take

    def make_counted(self: Dense, matrix: Any) -> None:
        count.numbers += matrix.size
        make(self, matrix)

    def take_counted(self: NormalSource, wanted: int) -> Any:
        count.numbers += wanted * self.draws
        return take(self, wanted)

    def product_counted(product: Callable[[Dense, Any], Any]) -> Callable[[Dense, Any], Any]:
        def multiplied(self: Dense, columns: Any) -> Any:
            count.operations += 2.0 * self.matrix.size * columns.shape[2]
            return product(self, columns)

        return multiplied

    with (
        patch.object(Dense, "__init__", make_counted),
        patch.object(NormalSource, "take", take_counted),
        patch.object(Dense, "times", product_counted(Dense.times)),
        patch.object(Dense, "transpose_times", product_counted(Dense.transpose_times)),
    ):
        work()
    return count
