"""Corrections of order 1/n from the fluctuating energy of layers: against the mean field and against draws."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.gaussian_averages import mean_square
from meanfield.execution.run import Run, simulate_all
from meanfield.nets.activations import activation_named
from meanfield.simulation.measures.propagation import ActivationStatistics
from meanfield.theory.mean_field.layers import forward_moments, gate_energies, white_input, white_product
from meanfield.theory.mean_field.whole_update import (
    chain_corrections,
    gram_excess,
    mean_field_chain,
    thin_input_warning,
)
from tests.statistics import consistent

DRAWS = 1500


def _preserving(activation):
    """sigma_W^2 that keeps pre-activations at variance 1."""
    return 1 / mean_square(activation_named(activation).function, 1.0)


@pytest.mark.parametrize("weight_variance", [None, 2.5])
def test_the_chain_is_the_mean_field(weight_variance):
    net = mf.MLP(depth=5, width=(8, 6, 9, 7, 5), activation="gelu", weight_variance=weight_variance)
    transport, product = white_product(net)
    energies = [float(np.ravel(c)[0]) for _, c in forward_moments(net, transport, product)]
    gates = [float(np.ravel(g)[0]) * net.sigma.gain for g in gate_energies(net, transport, product)]
    np.testing.assert_allclose(mean_field_chain(net).pre_activation_energy, energies, rtol=1e-9)
    np.testing.assert_allclose(mean_field_chain(net).gate_energy, gates, rtol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_homogeneous_activations_need_no_correction(activation):
    predicted = chain_corrections(mf.MLP(depth=6, width=100, activation=activation))
    np.testing.assert_allclose([predicted.pre_activation_energy, predicted.gate_energy], 0, atol=1e-8)


@pytest.fixture(scope="module", params=["gelu", "tanh"])
def drawn(request):
    net = mf.MLP(depth=7, width=160, activation=request.param, weight_variance=_preserving(request.param))
    return net, simulate_all([Run(net, ActivationStatistics(), DRAWS, seed=5)])[0]


def test_energies_and_gates_of_draws_need_the_correction(drawn):
    """Within the square of the correction; without it gelu, which amplifies, is far off (negative control)."""
    net, measured = drawn
    chain, correction = mean_field_chain(net), chain_corrections(net)
    for name in ("pre_activation_energy", "gate_energy"):
        mean_field, relative = getattr(chain, name), getattr(correction, name)
        value, stderr = measured[name].values, measured[f"{name}_stderr"].values
        beyond = mean_field * np.square(np.maximum.accumulate(np.abs(relative)))
        assert consistent(value - mean_field * (1 + relative), stderr, DRAWS, beyond)
        if net.activation == "gelu" and name == "gate_energy":
            assert not consistent(value - mean_field, stderr, DRAWS)


def test_one_input_alone():
    with pytest.raises(ValueError, match="with 2 input"):
        chain_corrections(mf.MLP(depth=2, width=4, inputs=2))
    with pytest.raises(ValueError, match="ResidualMLP"):
        mean_field_chain(mf.ResidualMLP(depth=2, width=4))


@pytest.mark.parametrize(("sites", "taps"), [(5, 1), (5, 3), (8, 5)])
def test_the_excess_of_white_gram_matrices_by_hand(sites, taps):
    """Of S sites and C k independent products a pair: E s^2 s'^2 is 3 of a site with itself and 1 of two, E [s s']^2 is
    1 and 0, so that the excess is (S + 2 - 1) / (C k)."""
    net = mf.ConvNet(depth=1, channels=7, grid=(sites,), kernel=(taps,), activation="linear", outputs=1)
    assert gram_excess(net, *white_input(net), 4) == pytest.approx((sites + 1) / (4 * taps))


@pytest.mark.parametrize(("channels", "warned"), [(500, True), (700, False)])
def test_thin_inputs_are_warned_of_from_an_excess_of_a_tenth(channels, warned):
    """On 63 sites with one tap, whose excess is 64 over the channels."""
    net = mf.ConvNet(depth=1, channels=2000, input_channels=channels, grid=(63,), kernel=(1,), activation="linear")
    assert bool(thin_input_warning(net)) == warned
