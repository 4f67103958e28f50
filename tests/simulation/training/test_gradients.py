"""Gradients and curvature of every weight of nets with every map against central differences."""

import numpy as np
import pytest

from meanfield.optimizers.linear_algebra import Factored, dense
from meanfield.simulation.arrays import NUMPY
from meanfield.simulation.passes import forward
from meanfield.simulation.training.data import drawn_weights
from meanfield.simulation.training.gradients import gradients
from meanfield.simulation.training.losses import CrossEntropy, Logistic, Squared
from meanfield.simulation.weights import given_weights
from tests.simulation.training.nets import NETS

DRAWS, STEP = range(2), 1e-5
LOSSES = {"squared": Squared(), "cross_entropy": CrossEntropy(), "logistic": Logistic()}


def outputs(net, weights, inputs):
    return forward(net, given_weights(net, weights), inputs)


def made(net, loss, samples, shared):
    """Weights, inputs (of one net for all, or of each), and targets of a loss."""
    rng = np.random.default_rng(1)
    weights = drawn_weights(net, 0, DRAWS)
    inputs = rng.normal(size=(1 if shared else 2, net.first_channels, samples, net.sites))
    _, channels, _, sites = outputs(net, weights, inputs).output.shape
    if loss == "squared":
        return weights, inputs, rng.normal(size=(1, channels, samples, sites))
    if loss == "logistic":
        return weights, inputs, rng.choice([-1.0, 1.0], size=(1, 1, samples, 1))
    return weights, inputs, rng.integers(channels, size=(2, 1, samples, sites))


def differences(net, weights, inputs, of):
    """d of(output) / d element for every element of every weight: name -> (elements, ...)."""
    differences = {}
    for name, values in weights.items():
        slopes = []
        for index in np.ndindex(values.shape[1:]):
            kept, sides = values[:, *index].copy(), []
            for shift in (-STEP, STEP):
                values[:, *index] = kept + shift
                sides.append(of(outputs(net, weights, inputs).output))
            values[:, *index] = kept
            slopes.append((sides[1] - sides[0]) / (2 * STEP))
        differences[name] = np.stack(slopes)
    return differences


CASES = [(name, loss, samples) for name in NETS for loss in ("squared", "cross_entropy") for samples in (1, 3)]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("name", "loss", "samples"), CASES)
def test_gradients_are_central_differences(name, loss, samples, shared):
    net, law = NETS[name], LOSSES[loss]
    weights, inputs, targets = made(net, loss, samples, shared)
    state = outputs(net, weights, inputs)
    slopes = gradients(state, law.slope(state.output, targets, NUMPY))
    expected = differences(net, weights, inputs, lambda output: law.value(output, targets, NUMPY))
    assert set(slopes) == set(net.weights)
    for weight, gradient in slopes.items():
        slope = dense(gradient.slope)
        assert slope.shape == weights[weight].shape
        np.testing.assert_allclose(slope.reshape(2, -1).T, expected[weight], atol=1e-9, err_msg=weight)


@pytest.mark.parametrize(("name", "loss", "samples"), CASES)
def test_curvature_is_the_gauss_newton_diagonal(name, loss, samples):
    """Sum over samples of j' H j, j the derivative of a sample's outputs and H the loss's Hessian in them."""
    net, law = NETS[name], LOSSES[loss]
    weights, inputs, targets = made(net, loss, samples, True)
    state = outputs(net, weights, inputs)
    output = state.output
    slopes = gradients(state, law.slope(output, targets, NUMPY), law.curvature(output, targets, NUMPY))
    hessian = hessians(law, output, targets)
    expected = differences(net, weights, inputs, lambda moved: moved.swapaxes(1, 2).reshape(2, samples, -1))
    for weight, gradient in slopes.items():
        moved = np.einsum("edbi,dbij,edbj->ed", expected[weight], hessian, expected[weight])
        np.testing.assert_allclose(dense(gradient.curvature).reshape(2, -1).T, moved, atol=1e-8, err_msg=weight)


def hessians(law, output, targets):
    """d^2 L / dout^2 of every sample, (D, B, numbers, numbers), by central differences of the slope."""
    nets, _, samples, _ = output.shape
    columns = []
    for index in np.ndindex(output.shape[1], output.shape[3]):
        sides = []
        for shift in (-STEP, STEP):
            moved = output.copy()
            moved[:, index[0], :, index[1]] += shift
            sides.append(law.slope(moved, targets, NUMPY).swapaxes(1, 2).reshape(nets, samples, -1))
        columns.append((sides[1] - sides[0]) / (2 * STEP))
    return np.stack(columns, axis=3)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_the_curvature_make_up_the_hessian(loss):
    rng, law, outputs_of = np.random.default_rng(0), LOSSES[loss], 1 if loss == "logistic" else 3
    sites = 1 if loss == "logistic" else 2
    output = rng.normal(size=(2, outputs_of, 4, sites))
    targets = {
        "squared": rng.normal(size=(1, 3, 4, 2)),
        "cross_entropy": rng.integers(3, size=(1, 1, 4, 2)),
        "logistic": np.array([1.0, -1.0, -1.0, 1.0]).reshape(1, 1, 4, 1),
    }[loss]
    columns = law.curvature(output, targets, NUMPY).reshape(2, outputs_of, -1, 4, sites)
    flat = columns.transpose(0, 3, 1, 4, 2).reshape(2, 4, outputs_of * sites, -1)
    np.testing.assert_allclose(flat @ flat.swapaxes(2, 3), hessians(law, output, targets), atol=1e-9)


def test_losses_are_their_definitions():
    rng = np.random.default_rng(0)
    output = rng.normal(size=(2, 3, 4, 2))
    targets, classes = rng.normal(size=(4, 3, 2)), rng.integers(3, size=(4, 2))
    flat = [output[net].swapaxes(0, 1) for net in range(2)]
    squared, entropy = Squared(), CrossEntropy()
    loss_value = squared.value(output, squared.targets(targets, NUMPY), NUMPY)
    np.testing.assert_allclose(
        loss_value, [np.mean([np.sum((o - y) ** 2) / 12 for o, y in zip(f, targets, strict=True)]) for f in flat]
    )
    shares = [np.exp(f) / np.exp(f).sum(axis=1, keepdims=True) for f in flat]
    chosen = [-np.log(np.take_along_axis(share, classes[:, None], axis=1)).mean() for share in shares]
    np.testing.assert_allclose(entropy.value(output, entropy.targets(classes, NUMPY), NUMPY), chosen)
    labels = np.array([1, -1, 1, 1])
    margins = labels * output[:, 0, :, 0]
    logistic = Logistic().value(output[:, :1, :, :1], Logistic().targets(labels, NUMPY), NUMPY)
    np.testing.assert_allclose(logistic, np.log(1 + np.exp(-margins)).mean(axis=1))


def test_factors_are_kept_where_they_are_fewer_numbers():
    net = NETS["plain"]
    for samples, by_factors in ((2, True), (5, False)):
        weights, inputs, targets = made(net, "squared", samples, False)
        state = outputs(net, weights, inputs)
        slope = gradients(state, Squared().slope(state.output, targets, NUMPY))["W2"].slope
        assert isinstance(slope, Factored) == by_factors


def test_a_net_alone_is_the_net_in_company():
    net = NETS["transformer"]
    weights, inputs, targets = made(net, "squared", 3, True)
    both = gradients(state := outputs(net, weights, inputs), Squared().slope(state.output, targets, NUMPY))
    alone = outputs(net, {name: weight[1:] for name, weight in weights.items()}, inputs)
    for name, gradient in gradients(alone, Squared().slope(alone.output, targets, NUMPY)).items():
        np.testing.assert_array_equal(dense(gradient.slope)[0], dense(both[name].slope)[1])


@pytest.mark.parametrize(
    ("law", "given", "words"),
    [
        (Squared(), np.zeros(3), "samples, outputs"),
        (CrossEntropy(), np.zeros(3), "whole numbers"),
        (CrossEntropy(), np.array([-1, 0]), "whole numbers"),
        (Logistic(), np.array([0.0, 1.0]), r"-1 or \+1"),
    ],
)
def test_targets_of_another_kind_are_refused(law, given, words):
    with pytest.raises(ValueError, match=words):
        law.targets(given, NUMPY)
