"""Entries that are masked have no value: points without one are left out of fits, and all else refuses them."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.transfer import StableRate

NET, LOOP = mf.MLP(depth=2, width=3, outputs=2, activation="tanh"), mf.TiedLoop(depth=2, width=3)
TOKENS = mf.ConvNet(depth=2, channels=3, grid=(4,), outputs=2)
WEIGHTS = [np.ones(shape) for shape in NET.weight_shapes]
SAMPLES, LABELS = np.arange(12.0).reshape(4, 3), np.array([0, 1, 1, 0])
DRAWN = {"draws": 2, "seed": 0}
# A function of one array, and the array.
TAKERS = {
    "one_step inputs": (lambda given: mf.one_step(NET, WEIGHTS, given, np.ones((1, 2))), np.ones((1, 3))),
    "one_step error": (lambda given: mf.one_step(NET, WEIGHTS, np.ones((1, 3)), given), np.ones((1, 2))),
    "one_step weights": (
        lambda given: mf.one_step(NET, [given, *WEIGHTS[1:]], np.ones((1, 3)), np.ones((1, 2))),
        WEIGHTS[0],
    ),
    "pre_activations": (lambda given: mf.pre_activations(NET, WEIGHTS, given), np.ones((1, 3))),
    "simulate": (lambda given: mf.simulate(NET, inputs=given, **DRAWN), np.ones((1, 3))),
    "simulate a loop": (lambda given: mf.simulate(LOOP, inputs=given, **DRAWN), np.ones(3)),
    "tokens": (
        lambda given: mf.simulate(TOKENS, measure=mf.TokenStatistics(inputs=given), **DRAWN),
        np.ones((1, 3, 4)),
    ),
    "updates": (lambda given: mf.simulate(LOOP, measure=mf.StreamUpdates(inputs=given), **DRAWN), np.ones(3)),
    "predict": (lambda given: mf.predict(NET, level="mean_field", inputs=given), np.ones((1, 3))),
    "patches": (lambda given: mf.patch_tokens(given, patch=2, width=3), np.arange(16.0).reshape(1, 1, 4, 4)),
    "train inputs": (lambda given: mf.train(NET, (given, LABELS), rates=0.1, steps=1), SAMPLES),
    "train labels": (lambda given: mf.train(NET, (SAMPLES, given), rates=0.1, steps=1), LABELS),
    "train targets": (
        lambda given: mf.train(NET, (SAMPLES, given), rates=0.1, steps=1, loss="squared"),
        np.ones((4, 2)),
    ),
    "train rates": (lambda given: mf.train(NET, (SAMPLES, LABELS), rates=given, steps=1), np.array([0.1, 0.2])),
    "train weights": (
        lambda given: mf.train(NET, (SAMPLES, LABELS), rates=0.1, steps=1, weights=[given, *WEIGHTS[1:]]),
        WEIGHTS[0],
    ),
    "stable rate": (lambda given: mf.stable_rate(NET, (given, LABELS), draws=2), SAMPLES),
    "stable rate rule": (
        lambda given: mf.explain_transfer(0.1, NET, NET, rule=StableRate((given, LABELS), draws=2)),
        SAMPLES,
    ),
    "tuned rate": (lambda given: mf.tuned_rate(NET, (given, LABELS), steps=1, seeds=2, grid=3), SAMPLES),
    "tuned rate grid": (
        lambda given: mf.tuned_rate(NET, (SAMPLES, LABELS), steps=1, seeds=2, grid=given),
        np.array([0.1, 0.2, 0.3]),
    ),
}


@pytest.mark.filterwarnings("ignore:no seed has a minimum")
@pytest.mark.parametrize(("call", "array"), TAKERS.values(), ids=TAKERS)
def test_a_masked_entry_is_refused_and_a_mask_without_one_passes(call, array):
    call(np.ma.array(array, mask=False))
    mask = np.zeros(array.shape, bool)
    mask.flat[0] = True
    with pytest.raises(ValueError, match=r"is a masked array with 1 of \d+ entries masked, .*; leave these out"):
        call(np.ma.array(array, mask=mask))


@pytest.mark.parametrize("masked", ["x", "y", "stderr"])
def test_a_power_law_is_fitted_to_points_without_a_mask(masked):
    given = {"x": np.arange(1.0, 8), "y": np.arange(1.0, 8) ** 2, "stderr": np.full(7, 0.1)}
    without = mf.fit_power_law(**{name: values[:-1] for name, values in given.items()})
    outlier = given[masked].copy()
    outlier[-1] = 1e9 if masked != "stderr" else 1e-9
    last = np.arange(7) == 6
    assert mf.fit_power_law(**(given | {masked: np.ma.array(outlier, mask=last)})) == without
    assert mf.fit_power_law(**(given | {masked: outlier})) != without  # which it sees without a mask
    assert without.exponent == pytest.approx(2)
    unmasked = {name: np.ma.array(values) for name, values in given.items()}
    assert mf.fit_power_law(**unmasked) == mf.fit_power_law(**given)


def test_too_few_points_without_a_mask_are_refused():
    with pytest.raises(ValueError, match="a power law needs 3 or more different x"):
        mf.fit_power_law([1, 2, 3], np.ma.array([1.0, 2, 3], mask=[0, 0, 1]))
    with pytest.raises(ValueError, match="y is a masked array with 1 of 3 entries masked"):
        mf.fit_power_law([1, 2, 3, 4], np.ma.array([1.0, 2, 3], mask=[0, 0, 1]))
