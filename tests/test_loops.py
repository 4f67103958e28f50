"""Specs of loops: what they derive, and what they refuse."""

import numpy as np
import pytest

import meanfield as mf


@pytest.mark.parametrize(
    ("alpha", "step"), [("none", 1.0), ("sqrt", 0.25), ("linear", 1 / 16), (1.5, 1 / 64), (-1, 16)]
)
def test_step_sizes(alpha, step):
    assert mf.TiedLoop(depth=16, width=3, alpha=alpha).step_size == pytest.approx(step)


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
        ({"weight_variance": 0}, ValueError, "must be positive"),
        ({"activation": "step"}, ValueError, "'relu', 'linear'"),
        ({"tied": 1}, TypeError, "tied is 1; it must be True"),
    ],
)
def test_bad_specs_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.TiedLoop(**({"depth": 3, "width": 4} | options))
