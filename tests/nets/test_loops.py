"""Specs of loops: what they derive, and what they refuse."""

import numpy as np
import pytest

import meanfield as mf


@pytest.mark.parametrize(
    ("alpha", "step"), [("none", 1.0), ("sqrt", 0.25), ("linear", 1 / 16), (1.5, 1 / 64), (-1, 16)]
)
def test_step_sizes(alpha, step):
    assert mf.TiedLoop(depth=16, width=3, alpha=alpha).step_size == pytest.approx(step)


def test_any_alpha_will_do_for_a_single_step():
    assert mf.TiedLoop(depth=1, width=3, alpha=-400).step_size == 1


@pytest.mark.parametrize("alpha", [-23.9, 23.9])
def test_the_extreme_step_sizes_can_be_drawn_and_predicted(alpha):
    """Energies of the largest leave the floats; their logarithms stand beside."""
    loop = mf.TiedLoop(depth=64, width=8, alpha=alpha)
    for dataset in (mf.simulate(loop, draws=4, seed=0), mf.predict(loop, level="mean_field")):
        assert np.isfinite(dataset["log_residual_energy"]).all()


def test_a_named_scaling_is_its_exponent():
    assert mf.TiedLoop(depth=4, width=3, alpha="sqrt") == mf.TiedLoop(depth=4, width=3, alpha=0.5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"depth": 0}, ValueError, "depth is 0"),
        ({"width": 2.5}, TypeError, "width is 2.5"),
        ({"alpha": "cubic"}, ValueError, "'none', 'sqrt', 'linear'"),
        ({"alpha": np.nan}, ValueError, "alpha is nan"),
        ({"alpha": None}, TypeError, "alpha is None"),
        ({"alpha": -400}, ValueError, r"alpha is -400, and the factor 3\^\(400\) on a branch leaves the range"),
        ({"alpha": 400}, ValueError, r"of 3 branches give an alpha within \+-91$"),
        ({"weight_variance": 0}, ValueError, "must be positive"),
        ({"activation": "step"}, ValueError, "'relu', 'linear'"),
        ({"tied": 1}, TypeError, "tied is 1; it must be True"),
    ],
)
def test_bad_specs_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.TiedLoop(**({"depth": 3, "width": 4} | options))
