"""Training by pieces of nets and samples, without patches: the steps of the whole, to rounding."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers import SGD, AdamW, Muon, Sophia
from meanfield.simulation.arrays import NUMPY, on_numpy
from meanfield.simulation.training import gradients
from meanfield.simulation.training.data import Batches, drawn_weights, given_data
from meanfield.simulation.training.gradients import FEWEST_SAMPLES, Piecewise, cuts
from meanfield.simulation.training.losses import CrossEntropy, Squared
from meanfield.simulation.training.training import Training
from tests.simulation.training.nets import NETS as CHAINS

PLANE = {"grid": (4, 5), "kernel": (3, 3), "outputs": 3}
CONVOLUTIONAL = {
    "conv_net": mf.ConvNet(depth=3, channels=4, input_channels=2, **PLANE),
    "zero padding": mf.ConvNet(depth=2, channels=(3, 5), padding="zero", readout="convolution", **PLANE),
    "tanh": mf.ConvNet(depth=2, channels=8, activation="tanh", **PLANE),
    "residual": mf.ResidualConvNet(depth=4, channels=4, scaling="multiplier_sqrt", **PLANE),
    "dense": mf.DenseNet(depth=3, growth=3, width=4, stem=1, input_width=2, **PLANE),
    "concatenating": CHAINS["concatenating"],
    "staged": mf.StagedConvNet(depth=4, stages=2, channels=4, stride=(2, 1), **PLANE | {"grid": (6, 3)}),
    "staged residual": mf.StagedResidualConvNet(depth=4, stages=2, channels=4, padding="zero", **PLANE),
}
OTHERS = {name: net for name, net in CHAINS.items() if name not in CONVOLUTIONAL}
OTHERS["mlp"] = mf.MLP(depth=2, width=9, outputs=3)
SAMPLES = 27


def made(net, optimizer, arrays, nets, loss, size=None):
    """Nets of several rates, on all samples or on mini-batches of their own."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(SAMPLES, net.first_channels, *net.grid))
    _, outputs, *grid = net.output_shape
    labels = rng.normal(size=(SAMPLES, outputs, *grid))
    data = given_data(net, inputs, labels if loss == Squared() else labels.argmax(axis=1), loss, arrays)
    settings = {"learning_rate": np.geomspace(0.01, 0.1, nets), "epsilon": 1e-4, "weight_decay": 0.1}
    batches = None if size is None else Batches(SAMPLES, size, range(nets))
    weights = drawn_weights(net, 0, range(nets), arrays)
    how = {"batches": batches, "seeds": range(nets) if optimizer.draws_labels else None, "arrays": arrays}
    return Training(net, weights, data, loss, optimizer, lambda _: settings, **how)


def same_steps(net, optimizer, nets, loss, size=None, precision="float64"):
    """Four steps, looked at before some of them."""
    whole, cut = (
        made(net, optimizer, arrays, nets, loss, size)
        for arrays in (on_numpy(precision), on_numpy(precision).for_training())
    )
    close = {"rtol": 1e-9, "atol": 1e-10} if precision == "float64" else {"rtol": 1e-4, "atol": 1e-5}
    for step in range(4):
        if step % 2:
            np.testing.assert_allclose(cut.losses(), whole.losses(), **close)
            np.testing.assert_allclose(cut.look().output, whole.look().output, **close)
        whole.step()
        cut.step()
    for name, values in whole.weights.items():
        np.testing.assert_allclose(cut.weights[name], values, err_msg=name, **close)


@pytest.fixture
def small(monkeypatch):
    """Pieces of eight samples and fewer."""
    monkeypatch.setattr(gradients, "LAYER_BYTES", 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("optimizer", [SGD(0.9), AdamW(), Sophia(), Sophia(sampled=True), Muon()])
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_steps_by_pieces_are_those_of_the_whole(name, optimizer):
    net = CONVOLUTIONAL[name]
    assert Piecewise.serve(net, NUMPY.for_training())
    loss = Squared() if name == "zero padding" else CrossEntropy()
    same_steps(net, optimizer, 11, loss)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [5, 13])
def test_mini_batches_of_every_net(size):
    same_steps(CONVOLUTIONAL["conv_net"], SGD(0.9), 3, CrossEntropy(), size)


@pytest.mark.usefixtures("small")
def test_single_precision():
    same_steps(CONVOLUTIONAL["conv_net"], SGD(0.5), 9, CrossEntropy(), precision="float32")


@pytest.mark.parametrize("name", OTHERS)
def test_nets_with_other_linear_maps_are_not_cut(name):
    net = OTHERS[name]
    assert not Piecewise.serve(net, NUMPY.for_training())
    same_steps(net, SGD(0.9), 3, Squared())


def test_only_arrays_for_training_cut():
    assert not Piecewise.serve(CONVOLUTIONAL["conv_net"], NUMPY)


@pytest.mark.usefixtures("small")
def test_nets_that_leave_the_floats_leave_their_neighbours_alone():
    net = CONVOLUTIONAL["conv_net"]
    both, alone = (made(net, SGD(0.9), NUMPY.for_training(), nets, CrossEntropy()) for nets in (4, 2))
    for training, rates in ((both, [0.1, 0.2, 1e200, 0.1]), (alone, [0.1, 0.2])):
        for name in training.weights:
            training._settings[name] = {"learning_rate": np.array(rates), "weight_decay": 0.0, "epsilon": 0.0}
        with np.errstate(all="ignore"):
            for _ in range(4):
                training.step()
    assert both.gone.tolist() == [False, False, True, False]
    assert both.losses()[2] == np.inf
    np.testing.assert_array_equal(both.losses()[:2], alone.losses())


def test_losses_before_a_step_cost_no_pass_of_their_own(monkeypatch):
    passes = []
    own = gradients.forward
    monkeypatch.setattr(gradients, "forward", lambda *given: passes.append(1) or own(*given))
    training = made(CONVOLUTIONAL["conv_net"], SGD(0.9), NUMPY.for_training(), 2, CrossEntropy())
    training.losses()
    once = len(passes)
    training.step()
    assert len(passes) == once > 0


@pytest.mark.parametrize("total", [1, 3, 8, 13, 48])
@pytest.mark.parametrize("most", [1, 2, 8])
def test_cuts_are_powers_of_two_one_after_another(total, most):
    gradients = list(cuts(total, most))
    assert [n for piece in gradients for n in range(piece.start, piece.stop)] == list(range(total))
    assert {piece.stop - piece.start for piece in gradients} <= {1, 2, 4, 8}
    assert max(piece.stop - piece.start for piece in gradients) <= most


@pytest.mark.parametrize("nets", [1, 3, 8, 48])
@pytest.mark.parametrize("channels", [8, 32, 512])
def test_pieces_hold_some_samples(nets, channels):
    net = replace(CONVOLUTIONAL["conv_net"], channels=channels)
    planned = Piecewise(net, nets, NUMPY.for_training())
    assert planned.together <= nets
    assert planned.samples >= FEWEST_SAMPLES
    assert planned.samples == Piecewise(net, 1, NUMPY.for_training()).samples  # sums are the same in any company
