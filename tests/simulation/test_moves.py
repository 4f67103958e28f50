"""Moves of weights, tied ones at all of their uses: against central differences of whole forward passes."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.maps import Linear, Pointwise, Weight
from meanfield.nets.net import uses
from meanfield.simulation import passes
from meanfield.simulation.passes import GradientMoves, MatrixMoves
from meanfield.simulation.weights import Dense, Grouped
from tests.simulation.test_walk import STREAMS, _chain

SIZE = 1e-5
NETS = STREAMS | {
    "loop, deeper than wide": mf.TiedLoop(depth=9, width=3, activation="tanh"),
    "loop, smooth": mf.TiedLoop(depth=4, width=6, alpha=0.5, activation="gelu"),
}
GROUPED = {
    f"groups, {count} weight(s)": _chain(
        *[(Pointwise("tanh"), Linear((Weight(f"w{step % count}", (4, 2, 3), 0.2, groups=2),))) for step in range(3)]
    )
    for count in (1, 3)
}
each_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


def _given(net, draws=2):
    """Matrices by name (D, rows, columns), inputs, and errors at the output of every draw."""
    rng = np.random.default_rng(3)
    matrices = {
        name: np.sqrt(weight.variance) * rng.normal(size=(draws, weight.shape[0], int(np.prod(weight.shape[1:]))))
        for name, weight in net.weights.items()
    }
    inputs = rng.normal(size=(draws, net.first_channels, net.inputs, net.sites))
    return matrices, inputs, rng.normal(size=inputs.shape)


def _forward(net, matrices, inputs):
    def drawn(name, matrix):
        groups = [Dense(part) for part in np.split(matrix, net.weights[name].groups, axis=1)]
        return groups[0] if len(groups) == 1 else Grouped(groups, np.concatenate)

    return passes.forward(net, {name: drawn(name, matrix) for name, matrix in matrices.items()}, inputs)


def _values(net, matrices, inputs):
    return _forward(net, matrices, inputs).values


def _slopes(net, matrices, inputs, error):
    """d<error, output>/dW of every weight, element by element, draw by draw."""

    def loss(moved):
        return (error * _values(net, moved, inputs)[-1]).sum(axis=(1, 2, 3))

    slopes = {name: np.empty_like(matrix) for name, matrix in matrices.items()}
    for name, matrix in matrices.items():
        for index in np.ndindex(matrix.shape[1:]):
            unit = np.zeros_like(matrix)
            unit[:, *index] = SIZE
            up, down = (loss(matrices | {name: matrix + sign * unit}) for sign in (1, -1))
            slopes[name][:, *index] = (up - down) / (2 * SIZE)
    return slopes


def _differences(net, matrices, inputs, moves):
    """Changes of all values by central differences along these moves of all weights, no element by over SIZE."""
    size = SIZE / max(np.abs(move).max() for move in moves.values())
    up, down = (
        _values(net, {name: matrix + sign * size * moves[name] for name, matrix in matrices.items()}, inputs)[1:]
        for sign in (1, -1)
    )
    return [(first - second) / (2 * size) for first, second in zip(up, down, strict=True)]


def _assert_alike(changes, expected):
    for change, reference in zip(changes, expected, strict=True):
        np.testing.assert_allclose(change, reference, rtol=1e-6, atol=1e-6 * np.abs(reference).max())


@pytest.mark.parametrize("net", (NETS | GROUPED).values(), ids=(NETS | GROUPED).keys())
def test_gradient_moves_are_central_differences_along_the_gradient(net):
    matrices, inputs, error = _given(net)
    state = _forward(net, matrices, inputs)
    errors = passes.backward(state, error, len(net.units))
    changes = passes.tangent(state, GradientMoves(state, errors), len(net.units), columns=1)
    _assert_alike(changes, _differences(net, matrices, inputs, _slopes(net, matrices, inputs, error)))


@each_net
def test_matrix_moves_are_central_differences_along_the_matrices(net):
    matrices, inputs, _ = _given(net)
    rng = np.random.default_rng(5)
    moves = {name: rng.normal(size=matrix.shape) for name, matrix in matrices.items()}
    state = _forward(net, matrices, inputs)
    asked = []

    def product(places, patches):
        number, place = places[0]
        names = [weight.name for weight in net.units[number].maps[place].weights]
        asked.extend(names)
        return np.concatenate([moves[name] for name in names], axis=1) @ patches

    changes = list(passes.tangent(state, MatrixMoves(state, product), len(net.units), columns=1))
    _assert_alike(changes, _differences(net, matrices, inputs, moves))
    assert sorted(asked) == sorted(net.weights), "every weight is asked for once, whatever its uses"


def test_a_weight_that_moves_at_one_use_alone_is_seen():
    """Negative control: the tangent of a tied loop whose weight stays where it is at all steps but the first."""
    net = NETS["loop, smooth"]
    matrices, inputs, error = _given(net)
    state = _forward(net, matrices, inputs)
    errors = passes.backward(state, error, len(net.units))
    first, *rest = [(number, place) for number, place, _ in uses(net.units)]

    class OneUse:
        def __init__(self):
            self._moves = GradientMoves(state, errors)

        def of(self, place):
            return self._moves.of(place) * (place == first)

    assert rest
    changes = list(passes.tangent(state, OneUse(), len(net.units), columns=1))
    expected = _differences(net, matrices, inputs, _slopes(net, matrices, inputs, error))
    np.testing.assert_allclose(changes[0], expected[0], rtol=1e-6, atol=1e-6)
    assert np.abs(changes[-1] - expected[-1]).max() > 0.1 * np.abs(expected[-1]).max()


def test_a_change_of_the_inputs_goes_up_beside_the_moves():
    net = NETS["transformer"]
    matrices, inputs, _ = _given(net)
    moved = np.random.default_rng(7).normal(size=inputs.shape)
    state = _forward(net, matrices, inputs)
    still = MatrixMoves(state, lambda places, patches: np.zeros((2, _rows(net, places[0]), patches.shape[2])))
    changes = passes.tangent(state, still, len(net.units), columns=1, start=moved)
    up, down = (_values(net, matrices, inputs + sign * SIZE * moved)[1:] for sign in (1, -1))
    _assert_alike(changes, [(above - below) / (2 * SIZE) for above, below in zip(up, down, strict=True)])


def _rows(net, place):
    return sum(weight.shape[0] for weight in net.units[place[0]].maps[place[1]].weights)
