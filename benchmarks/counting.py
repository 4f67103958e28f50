"""How many random numbers and matrix products some work takes: counted while it runs, once, untimed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from meanfield.simulation import weights
from meanfield.simulation.weights import Dense


@dataclass
class Count:
    """Normals drawn for weights, operations of the products with dense weights, and those that lazy ones answer by."""

    numbers: int = 0
    operations: float = 0.0
    revealed: float = 0.0


def counted(work: Callable[[], object]) -> Count:
    """What a call of ``work`` takes. Inputs and labels, a few numbers in comparison, are left out."""
    count = Count()
    make = Dense.__init__

    def make_counted(self: Dense, matrix: Any) -> None:
        count.numbers += matrix.size
        make(self, matrix)

    def product_counted(product: Callable[[Dense, Any], Any]) -> Callable[[Dense, Any], Any]:
        def multiplied(self: Dense, columns: Any) -> Any:
            count.operations += 2.0 * self.matrix.size * columns.shape[2]
            return product(self, columns)

        return multiplied

    answered = weights.reveal

    def answer_counted(queries: Any, basis: Any, images: Any, known: int, other_known: int, *others: Any) -> None:
        draws, asked, size = queries.shape
        width = images.shape[2]
        count.numbers += draws * asked * width
        count.revealed += 2.0 * draws * asked * _of_a_query(asked, size, width, known, other_known)
        answered(queries, basis, images, known, other_known, *others)

    with (
        patch.object(Dense, "__init__", make_counted),
        patch.object(Dense, "times", product_counted(Dense.times)),
        patch.object(Dense, "transpose_times", product_counted(Dense.transpose_times)),
        patch.object(weights, "reveal", answer_counted),
    ):
        work()
    return count


def _of_a_query(asked: int, size: int, width: int, known: int, other_known: int) -> float:
    """Multiplications of one of the queries that are asked together of a lazily revealed matrix.

    Its parts along known directions, their removal, and the same among the new ones, half of which come before it; what
    the other side knows of its new direction and of the fresh image, whose part there is replaced; and the answer, of
    the images of all directions.
    """
    apart = 2 * size * (known + asked / 2)
    told = other_known * (size + 2 * width)
    return apart + told + width * (known + asked)
