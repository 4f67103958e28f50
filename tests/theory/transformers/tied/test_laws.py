"""The constant of growth of tied streams, against the recursion at growing depths."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.activations import ACTIVATIONS
from meanfield.theory.transformers.tied import growth_constant


def _net(depth=2, **options):
    usual = {"width": 4, "tokens": 1, "tied": True, "outputs": 1, "attention_scale": "inverse"}
    return mf.Transformer(depth=depth, **(usual | options))


def _ratios(depths, **options):
    """H / D^2 at a = 1 after so many blocks."""
    predicted = mf.predict(_net(depths[-1], **options), level="mean_field").residual_energy.values
    return np.array([predicted[2 * depth - 1] / depth**2 for depth in depths])


def test_energies_tend_to_the_constant_where_directions_never_settle():
    """By a power of the depth, which three depths tell; settled directions would give 2, 19 % more."""
    first, second, third = _ratios((64, 512, 4096), activation="swiglu")
    limit = third - (third - second) ** 2 / (third - 2 * second + first)
    assert limit == pytest.approx(growth_constant(_net(activation="swiglu")), rel=3e-3)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_settled_directions_reach_the_size_of_an_increment_slowly(activation):
    """As powers of 1/ln D: from below, by less at every depth."""
    ratios = _ratios((16, 128, 1024), activation=activation)
    assert growth_constant(_net(activation=activation)) == pytest.approx(2)
    assert (np.diff(ratios) > 0).all()
    assert 1.8 < ratios[-1] < 2


@pytest.mark.parametrize("options", [{"tied": False}, {"norm": "post"}, {"tokens": 2}])
def test_other_streams_have_no_constant(options):
    with pytest.raises(ValueError, match="the constant of growth is that of one token"):
        growth_constant(_net(**options))


def test_where_directions_settle_apart_from_each_other_the_constant_is_the_integral():
    """Of GELU, whose hidden units have a mean, so that far streams correlate by 0 < C < 1, as energy is conserved:
    q = 2 int_C^1 S dc / (1 - C^2) and q C = S(C), S(c) = c of attention and E s s' / gain of hidden units."""
    sigma, grid = ACTIVATIONS["gelu"], np.linspace(0.0, 1.0, 4001)
    one = np.ones_like(grid)
    product = sigma.product(one, one, grid)
    added = grid + product / sigma.gain
    above = np.append(np.cumsum(((added[1:] + added[:-1]) / 2 * np.diff(grid))[::-1])[::-1], 0.0)
    constant = 2 * above[:-1] / (1 - grid[:-1] ** 2)
    (place,) = np.flatnonzero(np.diff(np.sign(grid[:-1] * constant - added[:-1])[:-40]))
    assert 0.1 < grid[place] < 0.99
    assert growth_constant(_net(activation="gelu")) == pytest.approx(constant[place], rel=1e-3)
