"""Tuned rates at the edges: nets that no rate trains, outputs beyond the softmax, minima beside a cliff."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.simulation.training.trained import TrainedLosses
from meanfield.transfer.tuning import LATTICE, RateSearch, Tuning, _dataset, minima, searched, tune_all
from tests.transfer.test_rate_search import HOW, NET

EIGHTH = LATTICE // 8
LOGS = np.arange(-16, 5) / 8


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("net", "scale", "message"),
    [
        (NET, 0.0, "inputs are all 0"),
        (mf.MLP(depth=40, width=2, inputs=1, outputs=3), 1.0, "units of the nets have died"),
        (NET, 1e-15, "rates are searched for between 1e-15 and 1e15"),
    ],
)
def test_nets_that_no_rate_of_the_range_trains_are_refused_before_training(
    data, net, scale, message, precision, monkeypatch
):
    monkeypatch.setattr(TrainedLosses, "draw", lambda *given: pytest.fail("training begins"))
    inputs = scale * data[0][:, : net.first_channels]
    with pytest.raises(ValueError, match=message):
        mf.tuned_rate(net, (inputs, data[1]), seeds=2, precision=precision, **HOW)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_inputs_whose_squares_no_float_holds_are_named(data, optimizer):
    """Their curvature is 0, and no rate within the range of floats moves their outputs."""
    why = r"outputs and gradients are .*e-\d+ or less from all 2 seeds, .*: the inputs or the weights are so small that"
    with pytest.raises(ValueError, match=why):
        mf.tuned_rate(NET, (1e-200 * data[0], data[1]), seeds=2, optimizer=optimizer, **HOW)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_outputs_beyond_the_softmax_have_a_tuned_rate(data, precision):
    """Inputs times 1e6 leave no curvature at the start; the rate is that of a grid around 1e-6, not infinite."""
    large = 1e6 * data[0], data[1]
    how = {"steps": 8, "seeds": 3, "precision": precision, "spacing": 1 / 4}
    tuned = mf.tuned_rate(NET, large, **how)
    assert tuned.attrs["located"] == 3
    assert np.isinf(tuned["stable_rate"])
    grid = mf.tuned_rate(NET, large, grid=10.0 ** np.arange(-9, -2, 0.25), **how)
    least = [float(of["final_loss"].min()) for of in (tuned, grid)]
    assert least[0] <= 1.2 * least[1]
    assert 1e-8 < tuned["tuned_rate"] < 1e-4


def test_a_seed_that_has_died_is_not_searched(data):
    """Of several nets that begin dead or alive; the others have their minima."""
    net = mf.MLP(depth=4, width=3, outputs=3, head="fan_in")
    pair = data[0][:, :3], data[1]
    tuning = Tuning(net=net, data=pair, training=HOW, seeds=6, curvature_draws=0)
    dead = [tuning.is_idle(seed) for seed in range(6)]
    assert 0 < sum(dead) < 6
    (tuned,) = tune_all([tuning])
    asked = tuned["final_loss"].notnull().sum("rate").values
    assert asked[dead].max() == 3
    assert asked[np.invert(dead)].min() > 6
    assert np.isnan(tuned["seed_tuned_rate_log10"][dead]).all()


def test_a_search_without_a_minimum_says_so(data):
    with pytest.warns(RuntimeWarning, match="no seed has a minimum among the 8 rates"):
        tuned = mf.tuned_rate(NET, (1e25 * data[0], data[1]), seeds=2, most_rates=8, **HOW)
    assert np.isnan(tuned["tuned_rate"])


def test_the_error_of_a_minimum_beside_a_cliff_is_its_distance():
    """Losses fall ever faster up to cliffs that lie anywhere; the distance has the stated root mean square.

    Far above a valley the same cliffs leave its vertex without an error of the lattice.
    """
    distances, stated = [], []
    for cliff in np.random.default_rng(0).uniform(-0.5, 0.5, size=200):
        begun, valley = (RateSearch(-64, EIGHTH, 64) for _ in range(2))
        losses = (lambda at: np.exp(-(10.0**at))), (lambda at: np.exp(0.7 * (at + 1.27) ** 2))
        searched(
            [begun, valley],
            lambda asked, cliff=cliff, losses=losses: [
                np.inf if rung > cliff * LATTICE else losses[search](rung / LATTICE) for search, rung in asked
            ],
        )
        (place, error), (vertex, none) = (
            (column[0] for column in minima(np.array(rungs) / LATTICE, np.array([[of.losses[at]] for at in rungs])))
            for of in (begun, valley)
            if (rungs := sorted(of.losses))
        )
        np.testing.assert_allclose([vertex, none], [-1.27, 0.0], atol=1e-9)
        distances.append(place - cliff)
        stated.append(error)
    np.testing.assert_allclose(np.mean(np.square(stated)), np.mean(np.square(distances)), rtol=0.25)
    assert min(stated) > 0


def made_of(losses):
    """The dataset of a search whose seeds have these losses, (rates, seeds)."""
    labels = np.arange(6) % 3
    data = np.ones((6, 8)), labels
    seeds = losses.shape[1]
    tuning = Tuning(net=NET, data=data, training={"steps": 1}, seeds=seeds, grid=tuple(10.0**LOGS))
    finals = {
        (rate, seed): float(losses[place, seed]) for place, rate in enumerate(tuning.rates) for seed in range(seeds)
    }
    return _dataset(tuning, True, finals, xr.Dataset(), "")


def test_seeds_with_equal_minima_have_the_error_of_the_lattice():
    """Beside one cliff all six seeds have the same least rate, whose error does not fall with their number.

    Seeds with vertices of their own have the error over seeds alone, as ever.
    """
    cliff = np.where(LOGS > -0.2, np.inf, 0.5 - 0.1 * LOGS)
    made = made_of(np.repeat(cliff[:, None], 6, axis=1))
    np.testing.assert_allclose(made["seed_tuned_rate_log10"], -0.25)
    np.testing.assert_allclose(made["seed_tuned_rate_log10_stderr"], 0.25 / np.sqrt(12))
    np.testing.assert_allclose(made["tuned_rate_log10_stderr"], 0.25 / np.sqrt(12))
    places = np.array([-1.1, -1.0, -0.8, -0.7, -0.9, -1.2])
    valleys = made_of(0.5 * np.exp(0.7 * (LOGS[:, None] - places) ** 2))
    assert valleys["seed_tuned_rate_log10_stderr"].values.tolist() == [0.0] * 6
    np.testing.assert_allclose(valleys["tuned_rate_log10_stderr"], places.std(ddof=1) / np.sqrt(6))
