"""Label terms of correlated labels: representations, limits, draws; the averages they rest on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.simulation import draws
from meanfield.theory.finite_width import finite_width_allowance
from meanfield.theory.mean_field.label_term import correlated_term, driven_terms, errors_below, forward_layers
from meanfield.theory.mean_field.layers import input_variance
from meanfield.theory.mean_field.output_term import label_covariance, mean_square_probability
from meanfield.theory.two_points import EveryPair
from tests.statistics import consistent

BATCHES = [
    mf.Batch(label_mean=0.7),
    mf.Batch(input_correlation=0.3, label_mean=0.5),
    mf.Batch(input_correlation=0.3, labels="teacher", label_mean=0.2),
]
NETS = {
    "mlp": mf.MLP(depth=4, width=16, inputs=3),
    "linear": mf.MLP(depth=3, width=16, inputs=4, activation="linear"),
    "1d": mf.ConvNet(depth=3, channels=8, grid=(5,), inputs=3, readout="convolution"),
    "weights off the fan-in rule": mf.MLP(depth=3, width=16, inputs=3, weight_variance=2.6),
    "2d, two samples": mf.ConvNet(depth=3, channels=8, grid=(3, 2), kernel=(2, 2), inputs=2, readout="convolution"),
    "1d, pooled": mf.ConvNet(depth=3, channels=8, grid=(5,), inputs=3),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_alike_samples_and_pairs_of_samples_agree(net, batch):
    """Two representations of one sum over pairs of samples."""
    rho, samples = batch.input_correlation, net.inputs
    points = EveryPair(net)
    between = (1 - rho) * np.eye(samples) + rho
    covariance = input_variance(net) * np.kron(between, np.eye(net.sites))
    product = net.sigma.product(*points.variances(covariance), covariance)
    labels = input_variance(net) * between if batch.labels == "teacher" else np.eye(samples)
    draws = points.labels((labels + batch.label_mean**2)[..., None], net.is_pooled)
    layers = list(forward_layers(net, points, product))
    predicted = np.mean(list(driven_terms(net, points, layers, errors_below(net, points, draws))), axis=(1, 2))
    np.testing.assert_allclose(predicted, mf.predict(net, level="mean_field", batch=batch).label_term, rtol=1e-12)


@pytest.mark.parametrize(("padding", "variance"), [("circular", None), ("zero", None), ("zero", 1.3)])
def test_independent_labels_of_mean_zero_give_the_plain_label_term(padding, variance):
    shared = {"padding": padding, "weight_variance": variance, "readout": "convolution"}
    net = mf.ConvNet(depth=3, channels=8, grid=(5,), inputs=3, **shared)
    labels = label_covariance(net, None, mf.Batch())
    plain = mf.predict(net, level="mean_field").label_term
    np.testing.assert_allclose(correlated_term(net, None, 0.0, labels), plain, rtol=1e-12)


def test_copies_of_one_sample_are_one_sample():
    """rho = 1 with a teacher: the same label too, so the batch size does not matter."""
    law = mf.Batch(input_correlation=1, labels="teacher")
    single, many = (mf.predict(mf.MLP(depth=4, width=9, inputs=b), level="mean_field", batch=law) for b in (1, 50))
    for name in ("label_term", "output_term", "learning_rate_scale", "output_error"):
        np.testing.assert_allclose(many[name], single[name], rtol=1e-9)


@given(st.integers(1, 40), st.floats(0, 1))
def test_the_law_in_the_batch_size(samples, rho):
    """B(B) = B(1) [1 + (B - 1) f] / B^2 for labels of mean 0, f from two samples."""

    def term(count):
        net = mf.MLP(depth=3, width=20, inputs=count)
        return mf.predict(net, level="mean_field", batch=mf.Batch(input_correlation=rho)).label_term.values

    other = 4 * term(2) / term(1) - 1
    assert np.all((other > -1e-12) & (other < 1 + 1e-12))
    np.testing.assert_allclose(term(samples), term(1) * (1 + (samples - 1) * other) / samples**2, rtol=1e-10)


DRAWS = 512
DRAWN = {
    "mlp, large weights": (mf.MLP(depth=3, width=128, inputs=4, weight_variance=3.0), mf.Batch(label_mean=1), None),
    "mlp, mean": (mf.MLP(depth=4, width=128, inputs=6, outputs=3), mf.Batch(label_mean=1), None),
    "mlp, teacher": (mf.MLP(depth=4, width=128, inputs=4), mf.Batch(input_correlation=0.6, labels="teacher"), None),
    "1d zero, mean": (
        mf.ConvNet(depth=3, channels=48, grid=(4,), padding="zero", inputs=3, readout="convolution"),
        mf.Batch(input_correlation=0.5, label_mean=1),
        None,
    ),
    "images, teacher": (
        mf.ConvNet(depth=3, channels=48, grid=(6,), input_channels=1, inputs=3, readout="convolution"),
        mf.Batch(labels="teacher"),
        np.stack([np.linspace(-1, 1, 6), np.cos(np.arange(6)), np.linspace(2, 0, 6)])[:, None],
    ),
}


def _agrees(net, batch, inputs, predicted=None):
    measured = mf.simulate(net, draws=DRAWS, seed=4, batch=batch, inputs=inputs)
    theory = (predicted or mf.predict(net, level="mean_field", batch=batch, inputs=inputs)).label_term.values
    allowance = finite_width_allowance(net, inputs, batch.input_correlation) * theory
    return consistent(measured.label_term.values - theory, measured.label_term_stderr.values, DRAWS, allowance)


@pytest.mark.parametrize(("net", "batch", "inputs"), DRAWN.values(), ids=DRAWN.keys())
def test_draws(net, batch, inputs):
    assert _agrees(net, batch, inputs)
    assert not _agrees(net, batch, inputs, mf.predict(net, level="mean_field", batch=mf.Batch(), inputs=inputs))


def test_labels_shared_by_mistake_are_caught(monkeypatch):
    """Negative control: every sample of a batch gets the label of the first."""
    net, law = mf.MLP(depth=3, width=128, inputs=6, outputs=3), mf.Batch()
    assert _agrees(net, law, None)
    right = draws.drawn_labels
    monkeypatch.setattr(draws, "drawn_labels", lambda *given: np.repeat(right(*given)[:, :, :1], 6, axis=2))
    assert not _agrees(net, law, None)


def test_correlated_inputs_are_told_from_independent_ones():
    net = mf.MLP(depth=3, width=128, inputs=6, outputs=3)
    law = mf.Batch(input_correlation=0.8)
    assert _agrees(net, law, None)
    assert not _agrees(net, law, None, mf.predict(net, level="mean_field", batch=mf.Batch()))


def test_outputs_act_as_labels_of_their_covariance():
    """A over its leading order tends to 1 with the width, 3 (M + 5) L / n is granted; it is not the label term."""
    net = mf.MLP(depth=2, width=512, inputs=6, outputs=2)
    measured = mf.simulate(net, draws=DRAWS, seed=4)
    theory = mf.predict(net, level="mean_field", batch=mf.Batch())
    output, stderr = measured.output_term.values, measured.output_term_stderr.values
    granted = 3 * 7 * 2 / 512
    assert consistent(output - theory.output_term.values, stderr, DRAWS, granted * theory.output_term.values)
    assert not consistent(output - theory.label_term.values, stderr, DRAWS, granted * theory.label_term.values)


@pytest.mark.parametrize(("classes", "variance"), [(2, 1.0), (10, 1.0), (10, 9.0), (50, 4.0)])
def test_mean_square_probability(classes, variance):
    logits = np.sqrt(variance) * np.random.default_rng(2).normal(size=(100_000, classes))
    exponentials = np.exp(logits)
    square = np.square(exponentials / exponentials.sum(axis=1, keepdims=True)).mean(axis=1)
    stderr = square.std() / np.sqrt(len(square))
    predicted = mean_square_probability(classes, variance)
    assert consistent(square.mean() - predicted, stderr, len(square))
    assert not consistent(square.mean() - 1.05 * predicted, stderr, len(square))


def test_mean_square_probability_in_its_limits():
    assert mean_square_probability(7, 0.0) == pytest.approx(1 / 49, rel=1e-11)
    assert mean_square_probability(1, 3.0) == pytest.approx(1, rel=1e-11)
    with pytest.raises(ValueError, match="from 0 to 25"):
        mean_square_probability(10, 30.0)


def test_cross_entropy():
    """B is C - 1 times that of the squared loss; a head of zero variance would leave 1 - 1/C of the error."""
    net = mf.MLP(depth=3, width=40, outputs=5, head="mup")
    squared, other = (
        mf.predict(net, level="mean_field", loss=loss, batch=mf.Batch()) for loss in ("squared", "cross_entropy")
    )
    np.testing.assert_allclose(other.label_term, 4 * squared.label_term, rtol=1e-12)
    # Small logits: p - 1/C = (z - mean z) / C, z of variance E[sigma(z)^2] n / n^2 = 1 / (2 * 40).
    assert float(other.output_error) - 0.8 == pytest.approx(0.8 / 5 / 80, rel=0.02)
    measured = mf.simulate(net, draws=DRAWS, seed=5, loss="cross_entropy")
    ratio = measured.output_error.values / other.output_error.values - 1
    assert consistent(ratio, measured.output_error_stderr.values, DRAWS, 1e-4)
    label, stderr = measured.label_term.values, measured.label_term_stderr.values
    allowance = finite_width_allowance(net) * other.label_term.values
    assert consistent(label - other.label_term.values, stderr, DRAWS, allowance)
    assert not consistent(label - 5 * squared.label_term.values, stderr, DRAWS)
