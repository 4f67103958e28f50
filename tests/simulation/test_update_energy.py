"""The split S = A + B, and that a draw is the same wherever and with whatever it is made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.activations import ACTIVATIONS
from meanfield.simulation.measures.energies import draw_energies
from tests.draws import given_draw
from tests.strategies import architectures


@given(architectures(), st.integers(0, 2**31))
def test_update_energy_is_output_plus_label_term_over_the_sign_of_the_labels(net, seed):
    """Lemma 2 of Zhang et al. 2026, per draw and to rounding: the cross term is odd in y."""
    weights, inputs, labels = given_draw(net, seed)
    outputs = mf.pre_activations(net, weights, inputs)[-1]

    def energy(error):
        return np.array([np.square(change).mean() for change in mf.one_step(net, weights, inputs, error)])

    averaged = (energy(outputs - labels) + energy(outputs + labels)) / 2
    np.testing.assert_allclose(averaged, energy(outputs) + energy(labels), rtol=1e-9)


def test_label_term_has_the_factor_one_over_outputs_squared():
    """B_l = sigma_y^2 / M^2 mean_a sum_t Theta_at^2, by enumeration of unit labels; eq. 19 there lacks one 1/M."""
    net = mf.MLP(depth=3, width=5, outputs=4)
    weights, inputs, _ = given_draw(net, 11)
    by_unit = [mf.one_step(net, weights, inputs, unit[None]) for unit in np.eye(4)]
    enumerated = [np.mean([np.square(changes[layer]).mean() for changes in by_unit]) * 4 for layer in range(3)]
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    averaged = [
        np.mean([np.square(mf.one_step(net, weights, inputs, y[None].astype(float))[layer]).mean() for y in signs])
        for layer in range(3)
    ]
    np.testing.assert_allclose(averaged, enumerated, rtol=1e-12)


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=3, width=7, inputs=2),
        mf.ConvNet(depth=3, channels=20, grid=(30,), kernel=(3,)),
        mf.ConvNet(depth=2, channels=(9, 4), grid=(4, 5), kernel=(2, 3), padding="zero", readout="convolution"),
    ],
)
def test_a_draw_does_not_depend_on_its_company(net):
    together = draw_energies(net, 9, range(40))
    for name, values in together.items():
        alone = np.concatenate([draw_energies(net, 9, range(i, i + 1))[name] for i in range(40)])
        np.testing.assert_array_equal(values, alone)


def test_adding_a_quantity_shifts_no_other(monkeypatch):
    """The probe column has its own stream: label and output terms are the same with and without it."""
    from meanfield.simulation.measures import overlap_energy

    net = mf.ConvNet(depth=3, channels=4, grid=(6,))
    dense = draw_energies(net, 1, range(4))
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)
    probed = draw_energies(net, 1, range(4))
    for name in ("label_term", "output_term"):
        np.testing.assert_allclose(dense[name], probed[name], rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 64])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_inputs_of_fully_connected_nets_are_normalised(width, activation):
    from meanfield.common.seeds import streams_by_purpose
    from meanfield.simulation.draws import draw_inputs

    net = mf.MLP(depth=1, width=width, activation=activation, inputs=3)
    inputs = draw_inputs(net, streams_by_purpose(0, range(50)))
    energy = np.square(net.sigma.function(inputs)).sum(axis=1)
    np.testing.assert_allclose(energy, net.sigma.gain * width, rtol=1e-12)


def test_weights_are_numpys_own_numbers():
    from meanfield.common.seeds import stream, streams_of_draws
    from meanfield.simulation.weights import draw_weights

    net = mf.ConvNet(depth=2, channels=3, grid=(4,))
    (first, *_) = draw_weights(net, streams_of_draws(5, "weights", [2]), "dense").values()
    numbers = stream(5, "weights", 2).standard_normal(first.matrix.size)
    np.testing.assert_array_equal(first.matrix.ravel(), np.sqrt(net.weight_variances[0]) * numbers)
