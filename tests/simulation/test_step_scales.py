"""How far the first step moves layers and outputs, the readout's own weights included."""

from unittest.mock import patch

import numpy as np
import pytest

import meanfield as mf
from meanfield.common.seeds import stream
from meanfield.nets.net import Chain
from meanfield.simulation.measures import energies, step_scales
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.training.data import drawn_weights
from tests.simulation.training.test_pieces import CONVOLUTIONAL


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_outputs_are_one_more_layer(loss):
    """Of a net whose readout keeps the sites, `Energies` has them as the last unit of the list that it is."""
    net = mf.ConvNet(depth=2, channels=6, grid=(5,), outputs=3, readout="convolution", inputs=2)
    whole = Chain.of(net, units=net.all_units, readout_unit=None)
    layers = mf.simulate(whole, draws=5, seed=3, measure=Energies(weights="dense", loss=loss))
    outputs = mf.simulate(net, draws=5, seed=3, measure=Energies(loss=loss, scales=True))
    for end in ("", "_stderr", "_largest_share"):
        expected = float(layers[f"update_energy{end}"][-1])
        assert float(outputs[f"output_update_energy{end}"]) == pytest.approx(expected, rel=1e-12)


def test_a_pooled_readout_moves_as_finite_differences_say():
    """The change is -J J^T g, J the derivatives of all outputs of the batch by all weights, g either column."""
    net = mf.ConvNet(depth=2, channels=4, grid=(3,), outputs=2, inputs=2, activation="tanh")
    inputs, columns = np.random.default_rng(0).normal(size=net.input_shape), []
    real = energies.output_gradients
    with patch.object(energies, "output_gradients", lambda *given: columns.append(real(*given)) or columns[0]):
        energy = Energies(inputs=inputs, scales=True).settled(net).draw(net, 5, range(1))["output_update_energy"][0]
    weights = np.concatenate([each.ravel() for each in drawn_weights(net, 5, range(1)).values()])
    ends = np.cumsum([np.prod(shape) for shape in net.weight_shapes])

    def outputs(flat):
        parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), net.weight_shapes, strict=True)]
        return mf.pre_activations(net, parts, inputs)[-1].ravel()

    steps = 1e-5 * np.eye(len(weights))
    derivatives = np.transpose([(outputs(weights + step) - outputs(weights - step)) / 2e-5 for step in steps])
    errors = columns[0].reshape(2, 2, 2).transpose(1, 2, 0).reshape(2, -1)  # of labels and outputs, by sample, output
    changes = errors @ derivatives @ derivatives.T
    assert energy[0] == pytest.approx(np.square(changes).mean(axis=1).sum(), rel=1e-6)


def test_a_net_without_a_readout_moves_its_last_value():
    loop = mf.TiedLoop(depth=3, width=8)
    layers = mf.simulate(loop, draws=4, seed=0, measure=Energies(weights="dense"))
    outputs = mf.simulate(loop, draws=4, seed=0, measure=Energies(scales=True))
    assert float(outputs["output_update_energy"]) == pytest.approx(float(layers["update_energy"][-1]), rel=1e-12)


def test_layers_are_those_of_gradient_descent_with_scales_and_without():
    net = mf.ResidualMLP(depth=3, width=8, stem=1, outputs=2, inputs=2)
    plain = mf.simulate(net, draws=5, seed=3, measure=Energies(weights="dense"))
    scales = mf.simulate(net, draws=5, seed=3, measure=Energies(scales=True))
    for name in ("label_term", "output_term", "update_energy", "mean_update_energy", "learning_rate_scale"):
        for end in ("", "_stderr"):
            np.testing.assert_allclose(scales[name + end], plain[name + end], rtol=1e-10)


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sophia", "sso", "muon-adamw"])
def test_draws_have_the_changes_that_one_step_makes_of_the_same_weights(optimizer):
    """On labels alone, on outputs alone, and on both; relative to the values, and of the outputs."""
    net = mf.ResidualMLP(depth=2, width=6, stem=1, outputs=3, inputs=2, activation="tanh")
    inputs, columns = np.random.default_rng(0).normal(size=net.input_shape), []
    real = energies.output_gradients
    with patch.object(energies, "output_gradients", lambda *given: columns.append(real(*given)) or columns[0]):
        drawn = Energies(inputs=inputs, optimizer=optimizer).settled(net).draw(net, 5, range(1))
    weights = [
        each.reshape(shape)
        for each, shape in zip(drawn_weights(net, 5, range(1)).values(), net.weight_shapes, strict=True)
    ]
    labels, outputs = np.split(columns[0][0, :, :, 0].T * net.outputs * net.inputs, 2)
    values = [np.square(value).mean() for value in mf.pre_activations(net, weights, inputs)]
    for name, error in {"label_term": labels, "output_term": outputs, "update_energy": outputs - labels}.items():
        *changes, of_outputs = mf.one_step(net, weights, inputs, error, optimizer=optimizer, outputs=True)
        squares = np.array([np.square(change).mean() for change in changes])
        np.testing.assert_allclose(drawn[name][0], squares, rtol=1e-10)
    np.testing.assert_allclose(drawn["relative_update_energy"][0], squares / values[:-1], rtol=1e-10)
    np.testing.assert_allclose(drawn["output_update_energy"][0], np.square(of_outputs).mean(), rtol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_scales_on_data_are_those_of_the_batches_that_are_drawn(loss):
    net, rng = mf.MLP(depth=2, width=6, input_width=4, outputs=3), np.random.default_rng(0)
    targets = rng.integers(0, 3, 10) if loss == "cross_entropy" else rng.normal(size=(10, 3))
    data = rng.normal(size=(10, 4)), targets
    found = mf.step_scales(net, data, loss=loss, optimizer="adamw", batch_size=4, draws=3, seed=2)
    update, output = [], []
    for draw in range(3):
        weights = [each[0] for each in drawn_weights(net, 2, range(draw, draw + 1)).values()]
        weights = [each.reshape(shape) for each, shape in zip(weights, net.weight_shapes, strict=True)]
        batch = np.sort(stream(2, "batches", draw).choice(10, 4, replace=False))
        inputs, wanted = data[0][batch], targets[batch]
        own = net.replace(inputs=4)
        *changes, of_outputs = mf.one_step(
            own, weights, inputs, targets=wanted, loss=loss, optimizer="adamw", outputs=True
        )
        update.append([np.square(change).mean() for change in changes])
        output.append(np.square(of_outputs).mean())
    np.testing.assert_allclose(found.update_energy, np.mean(update, axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.output_update_energy, np.mean(output), rtol=1e-10)
    middle = float(found.output_learning_rate_scale_quantile.sel(quantile=0.5))
    assert middle == pytest.approx(np.median(np.array(output) ** -0.5), rel=1e-10)


def scales_of(net, optimizer, precision="float64", epsilon=0.0):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(7, net.first_channels, *net.grid))
    _, outputs, *grid = net.output_shape
    targets = rng.integers(0, outputs, (7, *(grid if np.prod(grid) > 1 else ())))
    how = {"optimizer": optimizer, "epsilon": epsilon, "precision": precision, "batch_size": 5}
    return StepScales(inputs=inputs, targets=targets, **how).settled(net)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon", "sophia", "sso", "muon-adamw"])
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_draws_without_patches_are_those_with_them(name, optimizer, monkeypatch):
    net = CONVOLUTIONAL[name]
    measure = scales_of(net, optimizer, epsilon=1e-6 * (optimizer == "sophia"))
    assert measure._arrays(net).convolution
    without = measure.draw(net, 3, range(2, 7))
    monkeypatch.setattr(step_scales, "WIDE", 0)
    assert not measure._arrays(net).convolution
    for key, values in measure.draw(net, 3, range(2, 7)).items():
        np.testing.assert_allclose(without[key], values, rtol=1e-9, err_msg=key)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_single_precision_without_patches(optimizer, monkeypatch):
    net = CONVOLUTIONAL["conv_net"]
    measure = scales_of(net, optimizer, "float32")
    without = measure.draw(net, 3, range(3))
    monkeypatch.setattr(step_scales, "WIDE", 0)
    for key, values in measure.draw(net, 3, range(3)).items():
        np.testing.assert_allclose(without[key], values, rtol=1e-3, err_msg=key)


@pytest.mark.parametrize("name", ["conv_net", "staged residual", "zero padding"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "sophia"])
def test_a_draw_without_patches_is_the_same_in_any_company(name, optimizer):
    """To the last digit, whatever draws lie side by side in a vector."""
    net = CONVOLUTIONAL[name]
    measure = scales_of(net, optimizer, epsilon=1e-6 * (optimizer != "sgd"))
    together, alone = measure.draw(net, 0, range(8)), [measure.draw(net, 0, range(draw, draw + 1)) for draw in range(8)]
    for key, values in together.items():
        np.testing.assert_array_equal(values, np.concatenate([each[key] for each in alone]), err_msg=key)


def test_nets_that_are_wide_or_have_other_maps_take_patches():
    plane = {"depth": 2, "grid": (3, 3), "kernel": (3, 3)}
    for net, direct in [
        (mf.ConvNet(channels=63, **plane), True),
        (mf.ConvNet(channels=64, **plane), False),
        (mf.MLP(depth=2, width=8), False),
    ]:
        assert bool(scales_of(net, "adamw")._arrays(net).convolution) is direct
