"""One step of any net against autograd, to rounding: a third road, which shares the list of units and no code."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.maps import Bias, Linear, Pointwise, Weight
from meanfield.nets.net import Chain, Unit
from tests import derivable
from tests.draws import given_draw
from tests.strategies import nets

SHARED, OWN = (Linear((Weight(name, (5, 5), 0.2),)) for name in ("shared", "own"))
TANH = Pointwise("tanh")
WIDER, BACK = Linear((Weight("wider", (7, 5), 0.2),)), Linear((Weight("back", (5, 7), 0.2),))
BIAS, LAST = Bias(Weight("bias", (5,), 0.3)), Linear((Weight("last", (5, 5), 0.2),))
READOUT = Unit((TANH, Linear((Weight("readout", (3, 5), 0.2),))))
# Of three samples: two units that skip from one value, with unequal widths; a weight in three different units; biases
# whose errors are handed on as they are, to a sum with those of a skip and to an activation: they stay what they were.
CASES = {
    "two skips from one value": ((TANH, SHARED), (TANH, OWN), (TANH, WIDER, TANH, BACK)),
    "a weight in several units": ((TANH, SHARED), (TANH, OWN, TANH, SHARED), (SHARED,)),
    "a bias beside a skip": ((TANH, SHARED), (BIAS,), (TANH, OWN)),
    "a bias behind an activation": ((TANH, SHARED), (OWN, TANH, BIAS, LAST)),
}


def _chain(branches):
    units = tuple(Unit(branch, 1 if number else None) for number, branch in enumerate(branches))
    return Chain(units=units, readout_unit=READOUT, input_channels=5, inputs=3)


def _assert_alike(net, seed):
    weights, inputs, error = given_draw(net, seed)
    averaged = 1 if net.readout_unit is None else error.size  # squared loss, mean over outputs and samples
    theirs = derivable.one_step(net, weights, inputs, error / averaged)
    for change, reference in zip(mf.one_step(net, weights, inputs, error), theirs, strict=True):
        np.testing.assert_allclose(change, reference, rtol=1e-9, atol=1e-11 * max(1.0, np.abs(reference).max()))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(nets(), st.integers(0, 2**31))
@example(mf.TiedLoop(depth=4, width=6, alpha=-1.0, weight_variance=10.0, activation="silu"), 0)
def test_one_step_is_that_of_automatic_differentiation(net, seed):
    _assert_alike(net, seed)


@pytest.mark.parametrize("branches", CASES.values(), ids=CASES.keys())
def test_one_step_of_forked_and_tied_units(branches):
    _assert_alike(_chain(branches), 0)


def test_weights_of_a_shortcut_may_be_the_first_to_move():
    """Those of the input itself, beside a branch without weights."""
    units = (Unit((TANH,), 0, 0.5, shortcut=(OWN,)), Unit((TANH, SHARED), 1))
    _assert_alike(Chain(units=units, readout_unit=READOUT, input_channels=5, inputs=3), 0)


@pytest.mark.parametrize("tied", [True, False])
def test_a_loop_takes_its_matrix_once_and_any_number_of_starts(tied):
    """TiedLoop: weights [W], inputs h_0 (inputs, width), error dL/dh_L, and Delta h_1 .. Delta h_L."""
    loop, rng = mf.TiedLoop(depth=4, width=5, alpha=0.5, activation="tanh", tied=tied), np.random.default_rng(1)
    weights = [rng.normal(size=(5, 5)) for _ in range(1 if tied else 4)]
    start, error = rng.normal(size=(2, 3, 5))
    changes = mf.one_step(loop, weights, start, error)
    assert [change.shape for change in changes] == [(3, 5)] * 4
    for change, reference in zip(changes, derivable.one_step(loop, weights, start, error), strict=True):
        np.testing.assert_allclose(change, reference, rtol=1e-10)


def test_a_gradient_through_one_of_two_skips_alone_is_seen():
    """Negative control: with the upper skip left out of the reference, the lower layers' changes differ."""
    net = _chain(CASES["two skips from one value"])
    weights, inputs, error = given_draw(net, 0)
    units = (*net.units[:-1], replace(net.units[-1], skip=None))
    theirs = derivable.one_step(replace(net, units=units), weights, inputs, error / error.size)
    assert np.abs(mf.one_step(net, weights, inputs, error)[0] - theirs[0]).max() > 1e-3 * np.abs(theirs[0]).max()
