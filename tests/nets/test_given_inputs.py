"""Inputs of a user's: real numbers that leave the layers something to see, and energies that floats can hold."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf

NET = mf.MLP(depth=3, width=16)
CONV = mf.ConvNet(depth=2, channels=2, grid=(4,), readout="convolution", inputs=2)
LOOP = mf.TiedLoop(depth=3, width=16)
NORMAL = np.random.default_rng(0).normal(size=(1, 16))


def _simulated(net, inputs, **options):
    return mf.simulate(net, draws=4, seed=0, inputs=inputs, **options)


def _predicted(net, inputs, **options):
    return mf.predict(net, level="mean_field", inputs=inputs, **options)


BOTH = pytest.mark.parametrize("entry", [_simulated, _predicted])
UNDER = [{}, {"batch": mf.Batch(label_mean=1)}, {"loss": "cross_entropy"}]


@BOTH
@pytest.mark.parametrize("options", UNDER)
@pytest.mark.parametrize("size", [0.0, -1.0])
def test_inputs_that_nothing_sees_are_refused(entry, options, size):
    """As after relu, of all -1; eta* of them was infinite, under warnings of a division by zero."""
    with pytest.raises(ValueError, match="inputs are 0 everywhere after the activation 'relu'"):
        entry(NET, size * np.ones((1, 16)), **options)


@BOTH
@pytest.mark.parametrize("options", UNDER)
@pytest.mark.parametrize("size", [1e200, 1e-200, 1e80, 1e-80])
def test_inputs_whose_energies_no_float_holds_are_refused(entry, options, size):
    with pytest.raises(ValueError, match=r"energies go as the fourth to .* scale them to between 1e-20 and 1e\+20"):
        entry(NET, size * NORMAL, **options)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_so_are_such_starts_of_loops(size):
    for measure in (mf.ResidualEnergies, mf.StreamUpdates):
        with pytest.raises(ValueError, match=r"inputs are of size .*e[+-]200; energies go as"):
            mf.simulate(LOOP, measure=measure(inputs=size * NORMAL[0]), draws=2, seed=0)


@BOTH
@pytest.mark.parametrize("size", [1e-19, 1e19])
def test_inputs_near_the_ends_are_served(entry, size):
    """Label terms of a homogeneous net go exactly as the fourth power, and scales with them."""
    scaled, plain = entry(NET, size * NORMAL), entry(NET, NORMAL)
    np.testing.assert_allclose(scaled.label_term / size**4, plain.label_term, rtol=1e-9)
    np.testing.assert_allclose(scaled.label_learning_rate_scale * size**2, plain.label_learning_rate_scale, rtol=1e-9)


def test_a_saturating_activation_takes_inputs_of_any_size():
    net = mf.MLP(depth=2, width=16, activation="tanh")
    np.testing.assert_allclose(
        _predicted(net, 1e200 * NORMAL).label_term, _predicted(net, np.sign(NORMAL) * 1e9).label_term
    )


@BOTH
def test_one_dark_sample_among_others_is_served(entry):
    inputs = np.ones(CONV.input_shape)
    inputs[0] = 0
    assert np.isfinite(entry(CONV, inputs).label_learning_rate_scale)


@pytest.mark.parametrize("inputs", [1j * NORMAL, NORMAL.astype(str)])
def test_what_is_no_real_number_is_refused_wherever_arrays_are_given(inputs):
    weights, error = [np.ones(shape) for shape in NET.weight_shapes], np.ones((1, 10))
    for entry in (
        lambda: _simulated(NET, inputs),
        lambda: _predicted(NET, inputs),
        lambda: _simulated(LOOP, inputs[0]),
        lambda: mf.simulate(LOOP, measure=mf.StreamUpdates(inputs=inputs[0]), draws=2, seed=0),
        lambda: mf.one_step(NET, weights, inputs, error),
        lambda: mf.pre_activations(NET, weights, inputs),
    ):
        with pytest.raises(
            TypeError, match=r"inputs holds values of type .*; give real numbers, so that nothing is dr"
        ):
            entry()
    with pytest.raises(TypeError, match=r"weights\[0\] holds values of type complex128"):
        mf.one_step(NET, [1j * weight for weight in weights], NORMAL, error)
    with pytest.raises(TypeError, match="output_error holds values of type complex128"):
        mf.one_step(NET, weights, NORMAL, 1j * error)


def test_rows_of_different_lengths_are_no_array():
    with pytest.raises(ValueError, match="inputs has rows of different lengths"):
        _predicted(NET, [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("given", [NORMAL.tolist(), NORMAL.astype(object), xr.DataArray(NORMAL)])
def test_real_numbers_may_come_in_any_form(given):
    xr.testing.assert_identical(_simulated(NET, given), _simulated(NET, NORMAL))
    xr.testing.assert_identical(_predicted(NET, given), _predicted(NET, NORMAL))


@pytest.mark.parametrize("name", ["simulate", "predict"])
@pytest.mark.parametrize("flag", ["by_site", "correlations"])
def test_flags_are_true_or_false(name, flag):
    how = {"draws": 2, "seed": 0} if name == "simulate" else {"level": "mean_field"}
    with pytest.raises(TypeError, match=f"{flag} is 'yes'; it must be True or False"):
        getattr(mf, name)(LOOP if flag == "correlations" else CONV, **how, **{flag: "yes"})
