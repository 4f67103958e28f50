"""How moves of the weights change the outputs of their maps: the gradient's own step, or any other move."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from meanfield.nets.maps import Weight
from meanfield.nets.net import uses
from meanfield.simulation.maps.base import weighted_operation_of
from meanfield.simulation.maps.weighted import by_use, side_by_side
from meanfield.simulation.passes import Forward, Place, backward, tangent, through_readout


class WeightMoves(ABC):
    """The changes that moved weights make at their places; a weight is moved at all its uses when first asked for."""

    def __init__(self, state: Forward, places: Iterable[Place]) -> None:
        self._state = state
        self._uses: dict[tuple[Weight, ...], list[Place]] = defaultdict(list)
        for place in places:
            self._uses[self._map(place).weights].append(place)
        self._made: dict[Place, Any] = {}

    def of(self, place: Place) -> Any:
        if place not in self._made:
            places = self._uses[self._map(place).weights]
            self._made |= dict(zip(places, self._moved(places), strict=True))
        return self._made.pop(place)

    def _map(self, place: Place) -> Any:
        return self._state.net.units[place[0]].maps[place[1]]

    def _seen(self, place: Place) -> Any:
        spec, values = self._map(place), self._state.passages[place[0]].input_of(place[1], self._state.setting)
        return weighted_operation_of(spec).seen(spec, values, self._state.setting)

    @abstractmethod
    def _moved(self, places: list[Place]) -> list[Any]:
        """Delta W X at all uses of one weight, or of one stack of them."""


class GradientMoves(WeightMoves):
    """Weights moved by +1 times the gradient of every error column: W by sum over its uses of U X^T.

    At a use the output moves by sum_uses U (X^T X_here), by Gram matrices of the features or by the gradient itself,
    whichever is less work. The ``errors`` are used up: each is let go once its weight has moved.
    """

    def __init__(self, state: Forward, errors: MutableMapping[Place, Any]) -> None:
        super().__init__(state, sorted(errors))
        self._errors = errors

    def _moved(self, places: list[Place]) -> list[Any]:
        maps, errors = [self._map(place) for place in places], [self._errors.pop(place) for place in places]
        seen = (self._seen(place) for place in places)
        return weighted_operation_of(maps[0]).moves(maps, errors, seen, self._state.setting)


def gradient_changes(state: Forward, output_error: Any) -> Iterator[Any]:
    """T_1 .. T_D, (D, C, r B, S), under plain gradients of every column r of errors (D, outputs, r B, sites)."""
    top, _ = through_readout(state, output_error)
    units = len(state.net.units)
    moves = GradientMoves(state, backward(state, top, units))
    return tangent(state, moves, units, top.shape[2] // state.setting.samples)


# Delta W X (D, rows, places B S) for the weights of these places, stacked as they are, given X of all places.
MatrixProduct = Callable[[list[Place], Any], Any]


class MatrixMoves(WeightMoves):
    """Weights moved by matrices: Delta W X at every use, all uses of a weight in one product.

    ``product`` is called once for every weight, or stack of them, with its places and their patches side by side,
    (D, columns, places B S); a bias has a row of ones.
    """

    def __init__(self, state: Forward, product: MatrixProduct) -> None:
        places = [(number, place, holder) for number, place, holder in uses(state.net.units)]
        for *_, holder in places:
            if why := weighted_operation_of(holder).no_matrix:
                raise ValueError(why)
        super().__init__(state, [(number, place) for number, place, _ in places])
        self._product = product

    def _moved(self, places: list[Place]) -> list[Any]:
        setting, inputs = self._state.setting, [self._seen(place) for place in places]
        maps = [self._map(place) for place in places]
        patches = [weighted_operation_of(spec).patches(spec, x, setting) for spec, x in zip(maps, inputs, strict=True)]
        moved = self._product(places, side_by_side(patches, setting))
        return by_use(moved.reshape(*moved.shape[:2], 1, len(places), -1), inputs[0].shape[2:], setting)
