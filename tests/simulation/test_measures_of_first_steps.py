"""Measures under the first step of an optimizer, on every family: the steps of `one_step`, in whatever company."""

from unittest.mock import patch

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import stream
from meanfield.optimizers import Muon
from meanfield.simulation.measures import energies
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.training.data import drawn_weights
from meanfield.simulation.weights import given_weights
from tests.draws import given_inputs
from tests.simulation.test_one_step_of_optimizers import NETS

OPTIMIZERS = ("sgd", "adamw", "muon", "shampoo", "muon-adamw", Muon(0.95, 5))
each_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())


def weights_of(net, seed, draw):
    drawn = drawn_weights(net, seed, range(draw, draw + 1)).values()
    return [each[0].reshape(shape) for each, shape in zip(drawn, net.weight_shapes, strict=True)]


def data_of(net, samples):
    """Inputs and classes."""
    rng = np.random.default_rng(1)
    inputs = given_inputs(net, rng, samples)
    return inputs, rng.integers(net.output_shape[1], size=(samples, *net.output_shape[2:]))


def mean_squares(changes):
    return np.array([np.square(change).mean() for change in changes])


def sizes_of(net, weights, inputs):
    return mean_squares(mf.pre_activations(net, weights, inputs)[: len(net.units)])


@each_net
def test_a_draw_on_data_is_one_step_of_its_weights_and_batch(net):
    inputs, targets = data_of(net, 3 * net.inputs)
    for optimizer in OPTIMIZERS:
        measure = StepScales(inputs=inputs, targets=targets, optimizer=optimizer, batch_size=net.inputs).settled(net)
        drawn, layers = measure.draw(net, 3, range(2)), len(net.units)
        for draw in range(2):
            weights = weights_of(net, 3, draw)
            batch = np.sort(stream(3, "batches", draw).choice(len(inputs), net.inputs, replace=False))
            how = {"targets": targets[batch], "loss": "cross_entropy", "optimizer": optimizer, "outputs": True}
            squares = mean_squares(mf.one_step(net, weights, inputs[batch], **how))
            expected = {
                "update_energy": squares[:layers],
                "relative_update_energy": squares[:layers] / sizes_of(net, weights, inputs[batch]),
                "output_update_energy": squares[-1:],
            }
            for name, values in expected.items():
                np.testing.assert_allclose(drawn[name][draw], values, rtol=1e-8, err_msg=f"{name} {optimizer}")


@each_net
def test_a_draw_of_energies_is_one_step_on_labels_on_outputs_and_on_both(net, monkeypatch):
    """Of the weights that training draws, biases among them from a stream of their own."""
    columns, real = [], energies.output_gradients
    monkeypatch.setattr(energies, "output_gradients", lambda *given: columns.append(real(*given)) or columns[-1])
    monkeypatch.setattr(
        energies, "weights_of_draws", lambda net, seed, draws, *_: given_weights(net, drawn_weights(net, seed, draws))
    )
    inputs, layers = given_inputs(net, np.random.default_rng(2)), len(net.units)
    shape, weights = inputs.shape if net.readout_unit is None else net.output_shape, weights_of(net, 5, 0)
    counted = 1 if net.readout_unit is None else np.prod(shape)
    for optimizer in OPTIMIZERS[1:]:
        drawn = Energies(inputs=inputs, optimizer=optimizer).settled(net).draw(net, 5, range(1))
        labels, outputs = (part[0].swapaxes(0, 1) for part in np.split(columns[-1], 2, axis=2))
        for name, slope in {"label_term": labels, "output_term": outputs, "update_energy": outputs - labels}.items():
            error = np.reshape(slope * counted, shape)
            squares = mean_squares(mf.one_step(net, weights, inputs, error, optimizer=optimizer, outputs=True))
            np.testing.assert_allclose(drawn[name][0], squares[:layers], rtol=1e-8, err_msg=str(optimizer))
        relative = squares[:layers] / sizes_of(net, weights, inputs)
        np.testing.assert_allclose(drawn["relative_update_energy"][0], relative, rtol=1e-8)
        np.testing.assert_allclose(drawn["output_update_energy"][0], squares[-1:], rtol=1e-8)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "soap", "muon-adamw", "sophia", "sso"])
@each_net
def test_draws_are_what_they_are_in_any_company(net, optimizer):
    if optimizer == "sophia" and net.couples_samples:
        pytest.skip("curvatures are summed sample by sample")
    inputs, targets = data_of(net, 3 * net.inputs)
    on_data = StepScales(inputs=inputs, targets=targets, optimizer=optimizer, batch_size=net.inputs)
    for measure in (Energies(optimizer=optimizer, scales=True).settled(net), on_data.settled(net)):
        together = measure.draw(net, 0, range(5))
        apart = [measure.draw(net, 0, part) for part in (range(2), range(2, 3), range(3, 5))]
        for name, values in together.items():
            np.testing.assert_allclose(values, np.concatenate([part[name] for part in apart]), rtol=1e-9, err_msg=name)


@each_net
def test_descent_has_the_same_layers_with_scales_and_without(net):
    inputs = given_inputs(net, np.random.default_rng(3))
    plain, scales = (Energies(inputs=inputs, weights="dense", scales=scales).settled(net) for scales in (False, True))
    without, beside = (measure.draw(net, 1, range(3)) for measure in (plain, scales))
    for name in ("label_term", "output_term", "output_error"):
        np.testing.assert_allclose(beside[name], without[name], rtol=1e-9)
    np.testing.assert_allclose(beside["update_energy"], without["label_term"] + without["output_term"], rtol=1e-9)


@pytest.mark.parametrize("optimizer", ["sgd", "lion", "muon"])
@each_net
def test_single_precision_follows_double(net, optimizer):
    """Signs of gradients as small as their rounding are few."""
    inputs, targets = data_of(net, net.inputs)
    wide, narrow = (
        mf.step_scales(net, (inputs, targets), optimizer=optimizer, draws=8, precision=precision)
        for precision in ("float64", "float32")
    )
    for name in ("update_energy", "relative_update_energy", "output_update_energy"):
        np.testing.assert_allclose(narrow[name], wide[name], rtol=1e-3)
    assert narrow.attrs["precision"] == "float32"


def test_every_draw_has_a_batch_of_its_own_and_has_it_again():
    net = NETS["MLP"]
    inputs, targets = data_of(net, 20)
    how = {"optimizer": "adamw", "batch_size": 2, "draws": 6}
    with patch("meanfield.simulation.measures.step_scales.drawn_weights") as drawn:
        # The same weights in all draws: what differs is the batch.
        drawn.side_effect = lambda net, seed, draws, arrays: {
            name: np.repeat(values, len(draws), axis=0) for name, values in drawn_weights(net, 0, range(1)).items()
        }
        measure = StepScales(inputs=inputs, targets=targets, optimizer="adamw", batch_size=2).settled(net)
        energies_of_draws = measure.draw(net, 0, range(6))["output_update_energy"]
    assert len(np.unique(energies_of_draws)) > 3
    first, again = (mf.step_scales(net, (inputs, targets), seed=4, **how) for _ in range(2))
    other = mf.step_scales(net, (inputs, targets), seed=5, **how)
    assert first.update_energy.equals(again.update_energy)
    assert not first.update_energy.equals(other.update_energy)
    order = np.random.default_rng(0).permutation(20)
    whole = {"optimizer": "adamw", "draws": 6, "seed": 4}
    given, shuffled = (
        mf.step_scales(net, data, **whole) for data in ((inputs, targets), (inputs[order], targets[order]))
    )
    np.testing.assert_allclose(given.update_energy, shuffled.update_energy, rtol=1e-9)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_runs_are_the_same_for_any_number_of_workers(optimizer):
    net = NETS["residual"]
    data = data_of(net, 6)
    for measured in (
        lambda **how: mf.simulate(net, draws=6, seed=0, optimizer=optimizer, **how),
        lambda **how: mf.step_scales(net, data, draws=6, optimizer=optimizer, batch_size=2, **how),
    ):
        alone, shared = measured(workers=1), measured(workers=2)
        for name, values in alone.data_vars.items():
            np.testing.assert_array_equal(values, shared[name], err_msg=name)


def test_one_output_and_one_sample_have_one_sign_and_so_one_step():
    """Labels alone, outputs alone and both move alike: of a single error signs and polar factors keep the sign."""
    net = mf.MLP(depth=3, width=6, outputs=1)
    for optimizer in ("adamw", "lion", "muon", "shampoo", "soap", "sso"):
        drawn = Energies(optimizer=optimizer).settled(net).draw(net, 0, range(4))
        np.testing.assert_allclose(drawn["label_term"], drawn["output_term"], rtol=1e-9)
        np.testing.assert_allclose(drawn["label_term"], drawn["update_energy"], rtol=1e-9)
    drawn = Energies(optimizer="sgd", scales=True).settled(net).draw(net, 0, range(4))
    assert not np.allclose(drawn["label_term"], drawn["output_term"], rtol=0.1)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_scales_are_the_rates_at_which_a_mean_square_is_1(optimizer):
    net = NETS["residual"]
    inputs, targets = data_of(net, 4)
    on_data = StepScales(inputs=inputs, targets=targets, optimizer=optimizer)
    for measure in (Energies(optimizer=optimizer, scales=True), on_data):
        drawn = measure.settled(net).draw(net, 2, range(7))
        found = mf.simulate(net, draws=7, seed=2, measure=measure)
        relative = drawn["relative_update_energy"]
        squares = {
            "learning_rate_scale": drawn["update_energy"].mean(axis=1),
            "relative_learning_rate_scale": relative.mean(axis=1),
            "last_learning_rate_scale": relative[:, -1],
            "output_learning_rate_scale": drawn["output_update_energy"][:, 0],
        }
        for name, values in squares.items():
            assert float(found[name]) == pytest.approx(values.mean() ** -0.5, rel=1e-9), name
            median = float(found[f"{name}_quantile"].sel(quantile=0.5))
            assert median == pytest.approx(np.median(values**-0.5), rel=1e-9), name
        for name in ("relative_update_energy", "output_update_energy"):
            np.testing.assert_allclose(found[name], drawn[name].mean(axis=0).squeeze(), rtol=1e-9)
            middle = found[f"{name}_quantile"].sel(quantile=0.5)
            np.testing.assert_allclose(middle, np.median(drawn[name], axis=0).squeeze(), rtol=1e-9)
