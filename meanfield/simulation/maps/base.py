"""What a map does in the three passes, to its kernels and to the gradients of its weights; found by the map's type.

Arrays are (D, C, R, S): D draws, channels, rows, sites. Values have a row for every sample, R = B; errors and tangents
have r columns of them, R = r B, columns outermost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from meanfield.nets.maps import Map, Weight
from meanfield.simulation.arrays import Arrays
from meanfield.simulation.weights import Weights


@dataclass(frozen=True)
class Setting:
    """Where a map acts: the grid of what comes in, the samples of a batch, the drawn weights by name, and the arrays.

    In training also the ``masks`` of dropout (`meanfield.simulation.maps.weightless`).
    """

    grid: tuple[int, ...]
    samples: int
    weights: Weights
    arrays: Arrays
    masks: Any = None

    def above(self, spec: Map) -> "Setting":
        """Where a map acts on what this one gives."""
        grid = spec.grid_above(self.grid)
        return self if grid == self.grid else replace(self, grid=grid)

    def by_sample(self, columns: Any) -> Any:
        """(D, C, r B, S) as (D, C, r, B, S)."""
        draws, channels, _, sites = columns.shape
        return columns.reshape(draws, channels, -1, self.samples, sites)


OPERATIONS: dict[type[Map], "Operation"] = {}
Entered = TypeVar("Entered", bound="Operation")


def operation_of(spec: Map) -> "Operation":
    """What this map does."""
    return OPERATIONS[type(spec)]


def operation(of: type[Map]) -> Callable[[type[Entered]], type[Entered]]:
    """Enter the class that stands below as what maps of a type do."""

    def entered(kind: type[Entered]) -> type[Entered]:
        OPERATIONS[of] = kind()
        return kind

    return entered


class Operation(ABC):
    """One map's side of the simulation: its three passes.

    Attributes:
        remade: whether an output is computed again from its input where it is needed, rather than kept.
        reads: whether the backward pass and the tangent look at the input.
        lends: whether the output is also among what is kept, so that nobody may write to it.
        rectifies: whether a ReLU stands between the input and the map's own weights.
        whole_batch: whether a batch has to pass at once, rather than by some samples after others.
        splits_by_order: whether the output of a sum of terms is the sum of theirs, or a bias is added to it.
    """

    remade = False
    reads = False
    lends = False
    rectifies = False
    whole_batch = False
    splits_by_order = False

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

    def may_shut(self, spec: Any) -> bool:
        """Whether units of its output may be 0 for all small changes of the input."""
        return False

    def by_order(self, spec: Any, terms: list[Any], way: Setting, change: Setting) -> list[Any]:
        """The terms of the output by the number of updates in them, from those of the input.

        Weights are those of the setting ``way`` before the updates, and the updates those of ``change``.
        """
        return [self.forward(spec, term, way)[0] for term in terms]

    @abstractmethod
    def forward(self, spec: Any, values: Any, setting: Setting) -> tuple[Any, Any]:
        """The output (D, C', B, S), and what the other passes want kept of it besides the input."""

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


@dataclass(frozen=True)
class Use:
    """A weight at one of its places: its map, its rows of the errors there, (D, out, r B, S), and what comes in.

    ``passage`` is that of the unit (`meanfield.simulation.passes.Passage`), and ``place`` that of the map in it.
    """

    spec: Any
    weight: Weight
    errors: Any
    passage: Any
    place: int

    @property
    def setting(self) -> Setting:
        """Where the map acts."""
        setting: Setting = self.passage.settings[self.place]
        return setting

    @property
    def values(self) -> Any:
        """What comes in, (D, C, B, S), of one net where all share it."""
        return self.passage.input_of(self.place)

    @property
    def patches(self) -> Any:
        """X (D, in taps, B S) of what comes in."""
        own = weighted_operation_of(self.spec)
        return own.patches(self.spec, own.seen(self.spec, self.values, self.setting), self.setting)

    @property
    def by_column(self) -> Any:
        """The errors as (D, out, r, B, S)."""
        return self.setting.by_sample(self.errors)


class Multiplier(Protocol):
    """The change of a weight, (D, out, in taps), as what multiplies columns from the left."""

    @property
    def matrix(self) -> Any:
        """All its elements."""

    def times(self, columns: Any) -> Any:
        """(D, in taps, R) -> (D, out, R)."""


class WeightedOperation(Operation):
    """One with weights, which move.

    Attributes:
        no_matrix: why no matrix may move its weights; empty if one may.
        by_rows: whether a row of the errors makes a row of the gradient, and that a row of the output.
    """

    no_matrix = ""
    by_rows = False

    def seen(self, spec: Any, values: Any, setting: Setting) -> Any:
        """What the map's own weights are multiplied by, before its patches are taken."""
        return values

    def patches(self, spec: Any, values: Any, setting: Setting) -> Any:
        """X (D, in taps, B S), which a matrix that moves the weights multiplies, of what they see."""
        raise NotImplementedError(self.no_matrix)

    @abstractmethod
    def moves(self, specs: Sequence[Any], errors: Sequence[Any], seen: Iterable[Any], setting: Setting) -> list[Any]:
        """Delta W X at all uses of one weight, or one stack of them, that moves by +1 times the gradient.

        ``errors`` are those at the uses, and ``seen`` makes what the weights see there.
        """

    @abstractmethod
    def kernel(self, spec: Any, features: Any, setting: Setting) -> Any:
        """Tangent kernel (D, C, C, B S, B S) of the map's own weights, of the features (D, C', B, S) at its input."""

    def rows(self, spec: Any, weight: Weight, error: Any) -> int:
        """How many channels of the error at the output belong to this weight."""
        return weight.shape[0]

    @abstractmethod
    def gradient(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        """The sum over all uses of a weight of U X^T, for errors U (D, out, B, S)."""

    @abstractmethod
    def moved_by(self, use: Use, change: Multiplier) -> Any:
        """What a change of the weight, (D, out, in taps) or (D, elements, 1), does to the output at a use.

        (D, out, B, S), where D is 1 if all nets share what comes in and the change.
        """

    @abstractmethod
    def curvature(self, uses: Sequence[Use], errors: Sequence[Any]) -> Any:
        """The sum over samples and columns of the squares of (sum over uses of U X^T), for errors (D, out, r, B, S)."""


def weighted_operation_of(spec: Map) -> WeightedOperation:
    """What this map does, which has weights."""
    return OPERATIONS[type(spec)]  # type: ignore[return-value]
