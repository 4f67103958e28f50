"""Branches that are multiplied by a power of their number: any exponent, by a number or by its name."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.recognised import as_family
from meanfield.nets.scalings import NAMED_EXPONENTS, branch_multiplier, settled_scaling

ALPHAS = st.floats(-2, 4, allow_nan=False)
CONVOLUTIONAL = {"channels": 4, "grid": (4,)}
TOKENS = {"width": 8, "tokens": 3, "heads": 2}
FAMILIES = {
    "mlp": lambda depth, scaling: mf.ResidualMLP(depth=depth, width=4, block_depth=2, scaling=scaling, stem=1),
    "convolutional": lambda depth, scaling: mf.ResidualConvNet(depth=depth, scaling=scaling, **CONVOLUTIONAL),
    "pre-norm": lambda depth, scaling: mf.Transformer(depth=depth, scaling=scaling, **TOKENS),
    "looped, post-norm": lambda depth, scaling: mf.Transformer(
        depth=depth, scaling=scaling, norm="post", tied=True, **TOKENS
    ),
}
families = st.sampled_from(sorted(FAMILIES))


def _additions(net):
    """Units that add to a stream."""
    return sum(unit.skip is not None for unit in net.units)


@given(families, st.integers(1, 40), ALPHAS)
def test_every_branch_is_multiplied_by_a_power_of_their_number(family, depth, alpha):
    net, unscaled = (FAMILIES[family](depth, scaling) for scaling in (alpha, "none"))
    factors = [unit.multiplier for unit in net.units if unit.skip is not None]
    np.testing.assert_allclose(factors, float(_additions(net)) ** -alpha, rtol=1e-12)
    assert net.weight_variances == unscaled.weight_variances


@given(st.integers(1, 40), ALPHAS)
def test_a_loop_means_the_same_by_its_alpha(depth, alpha):
    """Its steps are blocks of one layer, each with the factor of a residual net of as many blocks."""
    loop, net = mf.TiedLoop(depth=depth, width=3, alpha=alpha), mf.ResidualMLP(depth=depth, width=3, scaling=alpha)
    np.testing.assert_allclose(*([unit.multiplier for unit in each.units] for each in (loop, net)), rtol=1e-15)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("name", "alpha"), NAMED_EXPONENTS.items())
def test_a_number_with_a_name_is_the_net_of_that_name(family, name, alpha):
    """One spec, one key of a run, and the same draws to the bit; another number has another key."""
    named = FAMILIES[family](3, name)
    for same in (alpha, np.float32(alpha), Fraction(alpha), int(alpha) if alpha != 0.5 else alpha):
        net = FAMILIES[family](3, same)
        assert (net, hash(net), net.scaling) == (named, hash(named), name)
        assert net.describe() == named.describe()
    other = FAMILIES[family](3, alpha + 1e-6)
    assert other != named
    drawn, again, apart = (mf.simulate(each, draws=3, seed=0) for each in (named, net, other))
    assert drawn.equals(again)
    assert not drawn.equals(apart)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("alpha", [-0.5, 0.25, 0.75, 0.123456789, 1.5])
def test_draws_follow_the_factor_and_not_its_origin(family, alpha):
    """A chain with the factor written out draws the very same numbers."""
    net = FAMILIES[family](3, alpha)
    drawn, chained = (mf.simulate(each, draws=3, seed=0) for each in (net, mf.Chain.of(net)))
    assert drawn["update_energy"].equals(chained["update_energy"])


@given(families, st.integers(2, 60), ALPHAS.filter(lambda alpha: abs(alpha) > 0.01))
def test_a_chain_is_read_back_with_its_exponent(family, depth, alpha):
    alpha = round(alpha, 6)
    net = FAMILIES[family](depth, alpha)
    assert as_family(mf.Chain.of(net)) == net


def test_blocks_of_different_factors_are_no_family():
    net = FAMILIES["mlp"](3, 0.75)
    units = [*net.units[:-1], mf.ResidualMLP(depth=3, width=4, block_depth=2, scaling=0.7, stem=1).units[-1]]
    chain = mf.Chain.of(net, units=units)
    assert as_family(chain) is chain


WHAT = r"choose one of 'init', 'multiplier_sqrt', 'multiplier_linear', 'none'.*, or give a finite number alpha"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        (-np.inf, ValueError),
        ("0.5", ValueError),
        ("sqrt", ValueError),
        (True, TypeError),
        (np.True_, TypeError),
        (None, TypeError),
        (1j, TypeError),
        ([0.5], TypeError),
        (np.array([0.5]), TypeError),
    ],
    ids=repr,
)
def test_what_is_neither_a_name_nor_a_number_is_refused(family, given, error):
    with pytest.raises(error, match=WHAT) as told:
        FAMILIES[family](3, given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("family", "branches"), [("mlp", 4), ("pre-norm", 8)])
def test_a_factor_outside_floats_is_refused_with_the_largest_that_is_not(family, branches):
    largest = 100 / np.log(branches)
    assert FAMILIES[family](4, np.floor(largest)).multiplier > 0
    with pytest.raises(ValueError, match=rf"of {branches} branches give an alpha within \+-{largest:.3g}"):
        FAMILIES[family](4, -largest - 0.01)


def test_names_keep_their_factors_to_the_bit():
    for count in (1, 2, 3, 49, 1000):
        assert branch_multiplier("multiplier_linear", count) == 1.0 / count
        assert branch_multiplier("multiplier_sqrt", count) == count**-0.5
        assert branch_multiplier("init", count) == branch_multiplier("none", count) == 1.0
    assert settled_scaling(-0.0) == "none"
    assert settled_scaling(0.75) == 0.75
