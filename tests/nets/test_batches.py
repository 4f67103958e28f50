"""The law of a batch: what is refused, and that it is plain data."""

import pytest

import meanfield as mf
from meanfield.nets.inputs import PLAIN_BATCH

NET = mf.MLP(depth=2, width=4, inputs=2)


def test_a_plain_batch_is_what_the_papers_assume():
    assert mf.Batch() == PLAIN_BATCH
    assert PLAIN_BATCH.describe() == {"input_correlation": 0.0, "labels": "independent", "label_mean": 0.0}
    assert PLAIN_BATCH.has_plain_labels
    assert not mf.Batch(label_mean=1).has_plain_labels
    assert not mf.Batch(labels="teacher").has_plain_labels


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"input_correlation": 1.5}, ValueError, "input_correlation is 1.5; it must be from 0 to 1"),
        ({"input_correlation": float("nan")}, ValueError, "input_correlation is nan"),
        ({"input_correlation": "half"}, TypeError, "input_correlation is 'half'"),
        ({"label_mean": -1}, ValueError, "label_mean is -1; it must be at least 0"),
        ({"label_mean": float("inf")}, ValueError, "label_mean is inf"),
        ({"labels": "random"}, ValueError, "choose one of 'independent', 'teacher'"),
    ],
)
def test_bad_batches(options, error, message):
    with pytest.raises(error, match=message):
        mf.Batch(**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "hinge"}, ValueError, "choose one of 'squared', 'cross_entropy'"),
        ({"loss": "cross_entropy", "batch": mf.Batch(label_mean=1)}, ValueError, "classes, drawn uniformly"),
        ({"batch": 8}, TypeError, "batch is 8; it must be a Batch"),
        ({"batch": mf.Batch(input_correlation=0.5), "inputs": [[1.0] * 4] * 2}, ValueError, "nothing to correlate"),
    ],
)
def test_bad_uses_are_refused_by_simulation_and_theory_alike(options, error, message):
    with pytest.raises(error, match=message):
        mf.simulate(NET, draws=2, seed=0, **options)
    with pytest.raises(error, match=message):
        mf.predict(NET, level="mean_field", **options)


@pytest.mark.parametrize(
    ("net", "level", "batch", "message"),
    [
        (NET, "law", mf.Batch(), "this is level 'law' of MLP"),
        (
            mf.ConvNet(depth=2, channels=3, grid=(4,), padding="zero", activation="tanh"),
            "mean_field",
            mf.Batch(),
            "with readout 'pooled'",
        ),
        (mf.ResidualMLP(depth=2, width=4), "mean_field", mf.Batch(), "of ResidualMLP"),
        (
            mf.ConvNet(depth=2, channels=3, grid=(4,), inputs=2, activation="tanh"),
            "mean_field",
            mf.Batch(input_correlation=0.5),
            "three gates",
        ),
        (mf.TiedLoop(depth=2, width=4), "mean_field", mf.Batch(), "are for nets"),
    ],
)
def test_what_theory_does_not_know(net, level, batch, message):
    with pytest.raises(ValueError, match=message):
        mf.predict(net, level=level, batch=batch)


def test_loops_have_no_batch():
    with pytest.raises(ValueError, match="a loop has neither samples nor labels"):
        mf.simulate(mf.TiedLoop(depth=2, width=4), draws=2, seed=0, loss="cross_entropy")
