"""Error columns: the gradient of the loss that they stand for, and the laws of labels and inputs."""

import numpy as np
import pytest
from scipy.special import logsumexp

import meanfield as mf
from meanfield.common.seeds import streams_by_purpose
from meanfield.simulation import draws as errors
from meanfield.simulation import passes
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.energies import draw_energies
from meanfield.simulation.weights import draw_weights
from tests.statistics import consistent

NETS = [
    mf.MLP(depth=2, width=6, outputs=3, inputs=2),
    mf.ConvNet(depth=2, channels=4, grid=(5,), outputs=3, inputs=2),
    mf.ConvNet(depth=2, channels=4, grid=(5,), outputs=3, inputs=2, readout="convolution"),
]


def _drawn(net, seed=3):
    """Inputs and outputs of one draw."""
    streams = streams_by_purpose(seed, [0])
    inputs = draw_inputs(net, streams)
    return inputs, passes.forward(net, draw_weights(net, streams("weights"), "dense"), inputs).output


def _loss(net, output, labels, loss):
    """Mean over samples, written out from the definition; arrays (1, outputs, B, sites)."""
    if loss == "squared":
        return np.square(output - labels).sum() / (2 * net.output_units * net.inputs)
    picked = (labels * (output - logsumexp(output, axis=1, keepdims=True))).sum(axis=1)
    return -picked.mean()


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_columns_are_the_gradient_of_the_loss(net, loss, monkeypatch):
    """Output column less label column is dL/dz_out, by central differences."""
    inputs, output = _drawn(net)
    seen = {}
    name = "drawn_classes" if loss == "cross_entropy" else "drawn_labels"
    drawn = getattr(errors, name)
    monkeypatch.setattr(errors, name, lambda *given: seen.setdefault("labels", drawn(*given)))
    columns = errors.output_gradients(streams_by_purpose(3, [0]), inputs, output, mf.Batch(), loss)
    label, own = np.split(columns, 2, axis=2)
    numeric = np.empty_like(output)
    for place in np.ndindex(output.shape):
        step = np.zeros_like(output)
        step[place] = 1e-5
        above, below = (_loss(net, output + sign * step, seen["labels"], loss) for sign in (1, -1))
        numeric[place] = (above - below) / 2e-5
    np.testing.assert_allclose(own - label, numeric, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_output_error_is_that_of_both_columns(loss):
    net = NETS[2]
    inputs, output = _drawn(net)
    columns = errors.output_gradients(streams_by_purpose(3, [0]), inputs, output, mf.Batch(), loss)
    averaged = net.sites * net.inputs * (net.outputs if loss == "squared" else 1)
    expected = np.square(columns * averaged).sum(axis=1).mean() * 2
    np.testing.assert_allclose(errors.error_at_output(columns, loss), expected)


@pytest.mark.parametrize(
    ("batch", "same", "other"),
    [
        (mf.Batch(label_mean=0.5), 1.25, 0.25),
        (mf.Batch(input_correlation=0.6, labels="teacher"), 1.0, 0.6),
        (mf.Batch(input_correlation=1, labels="teacher", label_mean=1), 2.0, 2.0),
    ],
)
def test_labels_of_two_samples_covary_as_the_law_says(batch, same, other):
    """y y' and y^2 at the output coordinates of independent draws; an error of 0.1 is seen."""
    net, draws = mf.ConvNet(depth=1, channels=3, grid=(4,), outputs=5, inputs=2, readout="convolution"), 4000
    streams = streams_by_purpose(5, range(draws))
    inputs = draw_inputs(net, streams, batch.input_correlation)
    labels = errors.drawn_labels(streams, inputs, np.zeros((draws, 5, 2, 4)), batch)
    for pair, expected in ((labels[:, :, 0] * labels[:, :, 1], other), (labels[:, :, 0] ** 2, same)):
        product = pair.mean(axis=(1, 2))
        stderr = product.std() / np.sqrt(draws)
        assert consistent(product.mean() - expected, stderr, draws)
        assert not consistent(product.mean() - expected - 0.1, stderr, draws)


def test_labels_of_two_coordinates_share_nothing():
    net = NETS[0]
    draws = 8000
    streams = streams_by_purpose(6, range(draws))
    inputs = draw_inputs(net, streams)
    labels = errors.drawn_labels(streams, inputs, np.zeros((draws, 3, 2, 1)), mf.Batch(labels="teacher", label_mean=1))
    product = labels[:, 0, 0, 0] * labels[:, 1, 1, 0]
    assert consistent(product.mean(), product.std() / np.sqrt(draws), draws)


def test_copies_of_one_sample_are_one_sample():
    """Fully correlated inputs with a teacher's labels: the batch makes the step of its one sample."""
    net, law = mf.MLP(depth=3, width=5, inputs=3), mf.Batch(input_correlation=1, labels="teacher")
    whole = draw_energies(net, 2, range(5), batch=law)
    streams = streams_by_purpose(2, range(5))
    given = draw_inputs(net, streams, 1.0)
    for draw in range(5):
        alone = given[draw].swapaxes(0, 1)[:1, :, 0]
        of_sample = draw_energies(mf.MLP(depth=3, width=5), 2, range(draw, draw + 1), inputs=alone, batch=law)
        for name in ("label_term", "output_term", "output_error"):
            np.testing.assert_allclose(whole[name][draw], of_sample[name][0], rtol=1e-12)


def test_other_labels_leave_the_overlap_energy_out_and_outputs_as_they_are():
    net = mf.MLP(depth=2, width=5, inputs=2)
    plain, other = (draw_energies(net, 1, range(3), batch=batch) for batch in (mf.Batch(), mf.Batch(label_mean=1)))
    assert "overlap_energy" in plain
    assert "overlap_energy" not in other
    np.testing.assert_array_equal(plain["output_term"], other["output_term"])
    assert "overlap_energy" not in draw_energies(net, 1, range(3), loss="cross_entropy")


def test_label_term_under_cross_entropy_is_c_minus_1_times_that_under_squared_loss():
    """Exactly, over all classes and all unit labels of one net, once readout rows have had both signs."""
    net = mf.MLP(depth=2, width=4, outputs=3)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape) for shape in net.weight_shapes]
    inputs = rng.normal(size=net.input_shape)
    squared = other = 0.0
    for signs in np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T:
        flipped = [*weights[:-1], signs[:, None] * weights[-1]]
        for unit in np.eye(3):
            squared += np.square(mf.one_step(net, flipped, inputs, unit[None])[-1]).mean()
            # one_step divides by M, cross-entropy does not; each class has probability 1/C.
            other += np.square(3 * mf.one_step(net, flipped, inputs, unit[None] - 1 / 3)[-1]).mean() / 3
    assert other / squared == pytest.approx(3 - 1, rel=1e-12)
