"""How far the outputs move in one step, the readout's own weights included."""

from unittest.mock import patch

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.net import Chain
from meanfield.simulation.measures import energies
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.output_update import OutputUpdate
from meanfield.simulation.training.data import drawn_weights


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_outputs_are_one_more_layer(loss):
    """Of a net whose readout keeps the sites, `Energies` has them as the last unit of the list that it is."""
    net = mf.ConvNet(depth=2, channels=6, grid=(5,), outputs=3, readout="convolution", inputs=2)
    whole = Chain.of(net, units=net.all_units, readout_unit=None)
    layers = mf.simulate(whole, draws=5, seed=3, measure=Energies(weights="dense", loss=loss))
    outputs = mf.simulate(net, draws=5, seed=3, measure=OutputUpdate(loss=loss))
    for end in ("", "_stderr", "_largest_share"):
        expected = float(layers[f"update_energy{end}"][-1])
        assert float(outputs[f"output_update_energy{end}"]) == pytest.approx(expected, rel=1e-12)


def test_a_pooled_readout_moves_as_finite_differences_say():
    """The change is -J J^T g, J the derivatives of all outputs of the batch by all weights, g either column."""
    net = mf.ConvNet(depth=2, channels=4, grid=(3,), outputs=2, inputs=2, activation="tanh")
    inputs, columns = np.random.default_rng(0).normal(size=net.input_shape), []
    real = energies.output_gradients
    with patch.object(energies, "output_gradients", lambda *given: columns.append(real(*given)) or columns[0]):
        energy = OutputUpdate(inputs=inputs).settled(net).draw(net, 5, range(1))["output_update_energy"]
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
    outputs = mf.simulate(loop, draws=4, seed=0, measure=OutputUpdate())
    assert float(outputs["output_update_energy"]) == pytest.approx(float(layers["update_energy"][-1]), rel=1e-12)
