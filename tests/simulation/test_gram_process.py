"""The Gram process: of the law of drawn matrices at any width, however few units are active."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import ks_2samp

import meanfield as mf
from meanfield.common.estimates import FALSE_ALARM_BUDGET
from meanfield.simulation.kernels.gram_process import draw_gram_energies
from meanfield.simulation.measures.energies import draw_energies
from tests.draws import in_batches
from tests.statistics import COMPARISONS, consistent

TERMS = ("label_term", "output_term")
DRAWS = 12_000

# Down to fewer active units than a frame has directions, and none at all; more and fewer outputs than columns.
SMALL = {
    "eight units": mf.MLP(depth=4, width=8, outputs=3),
    "one output": mf.MLP(depth=4, width=6, outputs=1),
    "unequal widths": mf.MLP(depth=4, width=(5, 3, 9, 4), input_width=7, outputs=2, head="fan_in"),
    "four units": mf.MLP(depth=3, width=4, outputs=2, weight_variance=1.3),
    "three units": mf.MLP(depth=3, width=3, outputs=3),
    "two units": mf.MLP(depth=3, width=2, outputs=3),
    "one unit": mf.MLP(depth=2, width=1, outputs=2),
    "linear": mf.MLP(depth=4, width=5, activation="linear", outputs=2, head="mup"),
    "linear, three units": mf.MLP(depth=3, width=3, activation="linear", outputs=2),
    "linear, two units, one output": mf.MLP(depth=3, width=2, activation="linear", outputs=1),
    "linear, one unit": mf.MLP(depth=3, width=1, activation="linear", outputs=1),
}


def _same_law(first, second):
    """Whether two samples (N, K) agree, column by column, by Kolmogorov and Smirnov within the suite's budget."""
    tests = [ks_2samp(a, b, method="asymp").pvalue for a, b in zip(first.T, second.T, strict=True)]
    return min(tests) > FALSE_ALARM_BUDGET / COMPARISONS


def _columns(dataset):
    """Both terms at every layer, how they hang together at the last, and the output error: (N, 2 L + 2)."""
    label, output = (dataset[name] for name in TERMS)
    together = label[:, -1:] / (label[:, -1:] + output[:, -1:] + 1e-300)
    return np.concatenate([label, output, together, dataset["output_error"]], axis=1)


@pytest.mark.parametrize("net", SMALL.values(), ids=SMALL)
@pytest.mark.usefixtures("no_overlap_energies")
def test_distributions_are_those_of_drawn_matrices(net):
    """Two seeds, so that no number is shared. A factor of 1.3 on any energy would be seen (the test below)."""
    gram, dense = draw_gram_energies(net, 1, range(DRAWS)), in_batches(partial(draw_energies, net, 2), DRAWS)
    assert _same_law(_columns(gram), _columns(dense))


@pytest.mark.usefixtures("no_overlap_energies")
def test_other_laws_are_told_apart():
    """One unit less, one output less, energies 30 % larger: each would fail the test above."""
    net = SMALL["eight units"]
    dense = _columns(in_batches(partial(draw_energies, net, 2), DRAWS))
    for other in (replace(net, width=7), replace(net, outputs=2), replace(net, head="fan_in")):
        assert not _same_law(_columns(draw_gram_energies(other, 1, range(DRAWS))), dense)
    assert not _same_law(1.3 * dense[:, :1], dense[:, :1])


def test_lazily_revealed_draws_have_the_same_law():
    net = mf.MLP(depth=6, width=32)
    gram, lazy = (
        draw_gram_energies(net, 1, range(4000)),
        in_batches(partial(draw_energies, net, 2, weights="lazy"), 4000),
    )
    assert _same_law(_columns(gram), _columns(lazy))


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=8, width=64),
        mf.MLP(depth=8, width=64, activation="linear", head="fan_in"),
        mf.MLP(depth=6, width=(40, 80, 60, 90, 50, 70), outputs=70, input_width=30),
        mf.MLP(depth=4, width=10**9, outputs=10**7),
    ],
    ids=["relu", "linear", "unequal", "a thousand million units"],
)
def test_means_are_the_exact_ones(net):
    draws = 40_000
    measured, exact = mf.simulate(net, draws=draws, seed=0, weights="gram"), mf.predict(net, level="exact")
    assert measured.attrs["overlap_method"] == "reduction"
    for name in (*TERMS, "update_energy", "overlap_energy"):
        value, stderr, expected = (
            values_of.values for values_of in (measured[name], measured[f"{name}_stderr"], exact[name])
        )
        assert consistent(value - expected, stderr, draws)
        assert not consistent(1.15 * value - expected, 1.15 * stderr, draws), "an error of 15 % must be seen"


def test_given_inputs_enter_by_their_features_alone():
    net = mf.MLP(depth=3, width=16, input_width=5)
    inputs = np.array([[1.0, -4.0, 2.0, 0.5, -0.1]])
    turned = np.array([[0.0, np.sqrt(5.25), 0.0, -7.0, 0.0]])
    first, second = (mf.simulate(net, draws=8, seed=3, weights="gram", inputs=given) for given in (inputs, turned))
    np.testing.assert_allclose(first["label_term"], second["label_term"], rtol=1e-12)
    dense = mf.simulate(net, draws=4000, seed=4, weights="dense", inputs=inputs)
    gram = mf.simulate(net, draws=4000, seed=3, weights="gram", inputs=inputs)
    error = np.hypot(dense["label_term_stderr"], gram["label_term_stderr"])
    assert consistent(dense["label_term"] - gram["label_term"], error, 4000)


def test_a_draw_is_the_same_in_any_company():
    net = mf.MLP(depth=5, width=20)
    together, alone = draw_gram_energies(net, 7, range(40)), draw_gram_energies(net, 7, range(31, 32))
    for name in TERMS:
        np.testing.assert_array_equal(together[name][31:32], alone[name])
    serial, parallel = (mf.simulate(net, draws=700, seed=7, workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(serial["update_energy"], parallel["update_energy"])


def test_nets_without_active_units_do_not_move():
    """Three layers of one unit are all active in one of eight nets; the others' labels and outputs move nothing."""
    drawn = draw_gram_energies(mf.MLP(depth=3, width=1, outputs=1), 0, range(4000))
    moved = drawn["label_term"] > 0
    assert np.array_equal(moved.all(axis=1), moved.any(axis=1))
    assert consistent(moved[:, 0].mean() - 1 / 8, np.sqrt(7 / 64 / 4000), 4000)


def test_sites_and_memory():
    net = mf.MLP(depth=6, width=10**8)
    drawn = mf.simulate(net, draws=4, seed=0, by_site=True)
    assert drawn.attrs["weights"] == "gram"
    np.testing.assert_array_equal(drawn["label_term_by_site"][:, 0], drawn["label_term"])
    assert net.memory(draws=1000) < 10 * 2**20 < net.memory(draws=1, weights="lazy")


@pytest.mark.parametrize(
    ("net", "options", "message"),
    [
        (mf.MLP(depth=2, width=4, activation="gelu"), {}, "MLPs of 'relu' or 'linear' with one input"),
        (mf.MLP(depth=2, width=4, inputs=2), {}, "with one input"),
        (mf.ResidualMLP(depth=2, width=4), {}, "take 'lazy' or 'dense'"),
        (mf.ConvNet(depth=2, channels=4, grid=(4,)), {}, "this is ConvNet"),
        (mf.TiedLoop(depth=2, width=4), {}, "this is TiedLoop"),
        (mf.MLP(depth=2, width=4), {"precision": "float32"}, "not precision 'float32'"),
        (mf.MLP(depth=2, width=4), {"loss": "cross_entropy"}, "not loss 'cross_entropy'"),
    ],
)
def test_what_it_does_not_serve_is_refused(net, options, message):
    with pytest.raises(ValueError, match=message):
        mf.simulate(net, draws=2, seed=0, weights="gram", **options)
    if not options:
        with pytest.raises(ValueError, match=message):
            net.memory(weights="gram")
