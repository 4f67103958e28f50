"""One update of a loop: the tangent pass against differences, the updates against their definitions."""

from functools import partial

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import stream
from meanfield.simulation.measures.streams import UPDATES, StreamUpdates, random_signs
from tests import naive
from tests.draws import drawn_by, in_batches
from tests.simulation.test_residual_energy import _given_draw
from tests.statistics import consistent

draw_stream_updates = drawn_by(StreamUpdates)


def _loop(**spec):
    return mf.TiedLoop(**{"depth": 4, "width": 5, "alpha": 0.5} | spec)


def _naive_updates(loop, update, matrices, start):
    """Delta W of every step; gradients of the loss element by element, by central differences."""
    root, signs = np.sqrt(loop.width), stream(0, "update signs", 0)
    labels = stream(0, "labels", 0).standard_normal(loop.width)

    def loss(moved):
        return np.square(naive.loop_streams(loop, moved, start)[-1] - labels).sum() / (2 * loop.width)

    def delta(shared):
        """Of the matrix that the ``shared`` steps use."""
        if update == "isotropic":
            return random_signs(loop.width, loop.width, [signs])[0] / root
        slope = np.zeros((loop.width, loop.width))
        for index in np.ndindex(slope.shape):
            unit = np.zeros_like(slope)
            unit[index] = 1e-5
            up, down = ([m + sign * unit * (s in shared) for s, m in enumerate(matrices)] for sign in (1, -1))
            slope[index] = (loss(up) - loss(down)) / 2e-5
        return -slope if update == "gradient" else -np.sign(np.where(np.abs(slope) > 1e-9, slope, 0)) / root

    if loop.tied:
        return [delta(range(loop.depth))] * loop.depth
    return [delta([step]) for step in range(loop.depth)]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_the_tangent_pass_is_a_central_difference(update, tied, activation):
    loop = _loop(activation=activation, tied=tied)
    matrices, start = _given_draw(loop)
    deltas, size = _naive_updates(loop, update, matrices, start), 1e-6
    up, down = (
        naive.loop_streams(loop, [m + sign * size * d for m, d in zip(matrices, deltas, strict=True)], start)[1:]
        for sign in (1, -1)
    )
    changes = [(first - second) / (2 * size) for first, second in zip(up, down, strict=True)]
    expected = [change @ change / loop.width for change in changes]
    drawn = draw_stream_updates(loop, 0, range(1), update=update)["stream_update_energy"][0]
    np.testing.assert_allclose(drawn, expected, rtol=1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_lazy_updates_have_the_mean_of_dense_ones(update):
    """The mean logarithm at every step, and half as much weight variance again as the negative control."""
    loop, draws = _loop(depth=6, width=16, activation="gelu"), 3000

    def logs(kind, which, seed):
        drawn = in_batches(partial(draw_stream_updates, which, seed, update=update, weights=kind), draws)
        return np.log(drawn["stream_update_energy"])

    dense, lazy, other = logs("dense", loop, 1), logs("lazy", loop, 2), logs("lazy", _more_variance(loop), 2)
    error = np.sqrt((dense.var(axis=0) + lazy.var(axis=0)) / draws)
    assert consistent(dense.mean(axis=0) - lazy.mean(axis=0), error, draws)
    assert not consistent(dense.mean(axis=0) - other.mean(axis=0), error, draws)


def _more_variance(loop):
    spec = {name: value for name, value in loop.describe().items() if name != "family"}
    return mf.TiedLoop(**spec | {"weight_variance": 1.5 * loop.weight_variance})


def test_isotropic_updates_of_one_linear_step_have_the_energy_of_the_start():
    """dh_1 = eps S h_0 / sqrt(N): mean square 1; weights do not matter."""
    measured = mf.simulate(
        _loop(depth=1, width=64, activation="linear"), measure=mf.StreamUpdates(), draws=2000, seed=1
    )
    difference = measured.stream_update_energy.values - 1.0
    error = measured.stream_update_energy_stderr.values
    assert consistent(difference, error, 2000)
    assert not consistent(difference + 0.1, error, 2000)


@pytest.mark.parametrize("kind", ["dense", "lazy"])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("tied", [True, False])
def test_a_draw_does_not_depend_on_its_company(update, kind, tied):
    loop = _loop(width=70, tied=tied)
    together = draw_stream_updates(loop, 9, range(8), update=update, weights=kind)["stream_update_energy"]
    alone = [draw_stream_updates(loop, 9, range(i, i + 1), update=update, weights=kind) for i in range(8)]
    np.testing.assert_array_equal(together, np.concatenate([drawn["stream_update_energy"] for drawn in alone]))


def test_signs_are_fair_and_independent():
    signs = random_signs(3, 3, [stream(0, "update signs", draw) for draw in range(4000)]).reshape(4000, 9)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    products = (signs[:, :, None] * signs[:, None, :]).mean(axis=0)[np.triu_indices(9, 1)]
    assert consistent(np.concatenate([signs.mean(axis=0), products]), 4000**-0.5, 4000)


def test_streams_too_large_for_their_changes_are_refused():
    with pytest.raises(OverflowError, match="take a larger alpha"):
        mf.simulate(_loop(depth=400, width=8, alpha=0), measure=mf.StreamUpdates(), draws=2, seed=0)
