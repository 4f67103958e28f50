"""What a map does in the three passes, and to the gradients of its weights.

Arrays are (D, C, R, S): D draws, channels, rows, sites. Values have a row for every sample, R = B; errors and tangents
have r columns of them, R = r B, columns outermost.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from meanfield.simulation.arrays import Arrays
from meanfield.simulation.weights import Weights


@dataclass(frozen=True)
class Setting:
    """Where maps act: the grid, the samples of a batch, the drawn weights by name, and the arrays of it all.

    In training also the ``masks`` of dropout (`meanfield.simulation.maps.weightless`).
    """

    grid: tuple[int, ...]
    samples: int
    weights: Weights
    arrays: Arrays
    masks: Any = None

    def by_sample(self, columns: Any) -> Any:
        """(D, C, r B, S) as (D, C, r, B, S)."""
        draws, channels, _, sites = columns.shape
        return columns.reshape(draws, channels, -1, self.samples, sites)


class Operation(ABC):
    """One map's side of the simulation: its three passes.

    Attributes:
        remade: whether an output is computed again from its input where it is needed, rather than kept.
        reads: whether the backward pass and the tangent look at the input.
        lends: whether the output is also among what is kept, so that nobody may write to it.
        rectifies: whether a ReLU stands between the input and the map's own weights.
        whole_batch: whether a batch has to pass at once, rather than by some samples after others.
    """

    remade = False
    reads = False
    lends = False
    rectifies = False
    whole_batch = False

    def degree(self, spec: Any) -> int | None:
        """d, where the output of t X is t^d times that of X for all t > 0; None where there is no such number."""
        return None

    def kept(self, spec: Any, below: int, sites: int) -> int:
        """Numbers per sample and site that `forward` keeps besides the input, of so many channels below."""
        return 0

    def products(self, spec: Any, below: int, sites: int) -> tuple[int, int]:
        """Operations of products of values with values, per sample and site: on the way up, and per column of errors.

        Those of a column count the way back and the tangent.
        """
        return 0, 0

    @abstractmethod
    def forward(self, spec: Any, values: Any, setting: Setting) -> tuple[Any, Any]:
        """The output (D, C', B, S), and what the other passes want kept of it besides the input."""

    def seen(self, spec: Any, values: Any, setting: Setting) -> Any:
        """What the map's own weights are multiplied by, before its patches are taken."""
        return values

    @abstractmethod
    def backward(self, spec: Any, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        """Errors (D, C, r B, S) at the input from those at the output, which may be written to if ``in_place``."""

    @abstractmethod
    def tangent(self, spec: Any, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        """The first-order change of the output for a change of the input, weights being as they are."""


class SymmetricOperation(Operation):
    """One whose Jacobian is symmetric: errors go back as tangents go up."""

    def backward(self, spec: Any, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        return self.tangent(spec, values, kept, errors, setting)
