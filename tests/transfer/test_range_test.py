"""The learning-rate finder: runs alone and together, and refusals; tests/torch holds it to torch-lr-finder."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers.schedules import Exponential

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 96)
DATA = RNG.standard_normal((96, 8)) + 2 * np.eye(3, 8)[LABELS], LABELS
NET = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
TESTED = {"batch_size": 16, "low": 1e-5, "steps": 80}
SEED = 7
# What is said of range tests under AdamW and Muon has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:under .*AdamW rates of a range test")


def test_losses_are_those_of_training_whose_rate_grows(tmp_path):
    """No seed depends on those beside it, nor on workers and what is kept; the median is that of logarithms."""
    how = {"optimizer": "adamw", **TESTED}
    found = mf.range_test(NET, DATA, seeds=4, resume_in=tmp_path, **how)
    trained = mf.train(
        NET,
        DATA,
        rates=10.0,
        seeds=[2],
        schedule=Exponential(1e-5 / 10),
        **{name: value for name, value in how.items() if name != "low"},
    )
    tested = found["smoothed_loss"].sel(seed=2).notnull()
    np.testing.assert_array_equal(found["loss"].sel(seed=2)[tested], trained["loss"].squeeze()[tested])
    assert len(set(found["seed_steepest_rate"].values)) > 1
    for again in (mf.range_test(NET, DATA, seeds=[2], **how), mf.range_test(NET, DATA, seeds=4, workers=2, **how)):
        for name in ("smoothed_loss", "seed_steepest_rate", "seed_tenth_rate"):
            np.testing.assert_array_equal(again[name].sel(seed=2), found[name].sel(seed=2))
    for name in ("steepest_rate", "tenth_rate"):
        middle = np.sort(found[f"seed_{name}"])[1:3]
        assert float(found[name]) == pytest.approx(np.sqrt(middle.prod()))
    assert list(tmp_path.glob("*.npz"))


def test_a_rate_grows_by_one_factor_a_step():
    shares = Exponential(1e-4).shares(5)
    np.testing.assert_allclose(shares, [1e-4, 1e-3, 1e-2, 1e-1, 1], rtol=1e-12)
    for first, words in ((0, "nothing grows from 0"), (2, "at most 1")):
        with pytest.raises(ValueError, match=words):
            Exponential(first)


@pytest.mark.parametrize(
    ("data", "changes", "missing"),
    [
        ((0 * DATA[0], DATA[1]), {}, ("steepest_rate", "tenth_rate")),  # no rate moves it
        (DATA, {"low": 1e4, "high": 1e6, "optimizer": "adamw"}, ("steepest_rate", "tenth_rate")),
        ((DATA[0], np.full((96, 3), 1e200)), {"loss": "squared"}, ("steepest_rate", "tenth_rate")),  # infinite losses
    ],
)
def test_what_has_no_suggestion_says_so(data, changes, missing):
    with pytest.warns(RuntimeWarning, match=f"no seed has a {' or a '.join(missing)}"):
        found = mf.range_test(NET, data, seeds=2, **TESTED | changes)
    for name in missing:
        assert np.isnan(found[name])
        assert np.isnan(found[f"seed_{name}"]).all()


@pytest.mark.parametrize(("optimizer", "times"), [("adamw", "5 to 58 times"), ("muon-adamw", "1.8 to 9.2 times")])
def test_range_tests_that_are_known_to_be_far_off_say_so(optimizer, times):
    with pytest.warns(mf.PremiseWarning, match=f"{times} as large, .* begin at `meanfield.starting_rate`"):
        mf.range_test(NET, DATA, seeds=1, optimizer=optimizer, **TESTED)


def test_seeds_without_a_suggestion_count_for_nothing():
    """Of nets so narrow that some are dead from the start."""
    found = mf.range_test(NET.replace(width=1), DATA, seeds=8, optimizer="adamw", **TESTED)
    for name in ("steepest_rate", "tenth_rate"):
        rates = found[f"seed_{name}"].values
        known = rates[np.isfinite(rates)]
        assert 0 < len(known) < 8
        assert float(found[name]) == pytest.approx(np.exp(np.median(np.log(known))))


REFUSED = {
    "a falling rate": ({"low": 1.0, "high": 0.1}, ValueError, "low is 1 and high is 0.1"),
    "one rate": ({"low": 1.0, "high": 1.0}, ValueError, "grows by a factor"),
    "rates too far apart": ({"low": 1e-300, "high": 1e30}, ValueError, "low is 1e-300 and high is 1e\\+30"),
    "a rate of 0": ({"low": 0}, ValueError, "low is 0"),
    "an infinite rate": ({"high": np.inf}, ValueError, "high is inf"),
    "few steps": ({"steps": 16}, ValueError, "steps is 16; it must be at least 17"),
    "another optimizer": ({"optimizer": "adam"}, ValueError, "'sgd_momentum'"),
    "a large batch": ({"batch_size": 97}, ValueError, "batch_size is 97"),
    "no seed": ({"seeds": []}, ValueError, "seeds is empty"),
    "no net": ({"net": "mlp"}, TypeError, "net is"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_before_any_work(case, monkeypatch):
    changes, error, words = REFUSED[case]
    monkeypatch.setattr("meanfield.execution.chunks.compute_chunk", None)
    given = {"net": NET, "data": DATA, **TESTED} | changes
    with pytest.raises(error, match=words):
        mf.range_test(given.pop("net"), given.pop("data"), **given)
