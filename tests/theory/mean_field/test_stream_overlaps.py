"""Mean overlaps at leading order: exact in plain nets, and against draws of residual ones."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.directions import unit_shares
from meanfield.theory.mean_field.stream_overlaps import growth_bound, growth_since_birth, mean_overlap
from tests.statistics import consistent

DRAWS = 16384
TWO_UNITS = (((1, 1), (1, 2)), ((1, 1), (2, 2)), ((2, 1), (3, 2)))


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("pair", [((2, 1), (2, 1)), ((2, 1), (2, 2)), ((1, 1), (3, 1)), ((2, 2), (3, 1))])
def test_plain_nets_have_the_exact_mean(activation, pair):
    """With no stream to sit on, what is left out is nothing: widths of their own, and a step for two layers."""
    net = mf.MLP(depth=4, width=(3, 5, 2, 6), activation=activation, input_width=4)
    exact = mf.predict(net, level="exact", pairs=[pair]).overlap[0]
    np.testing.assert_allclose(mean_overlap(net, pair).mean, exact, rtol=1e-13)


@pytest.fixture(
    scope="module",
    params=[
        mf.ResidualMLP(depth=6, width=8, stem=1, tail=1, scaling="multiplier_sqrt"),
        mf.ResidualMLP(depth=4, width=8, block_depth=2, scaling="none"),
    ],
    ids=lambda net: f"{net.scaling}-{net.block_depth}",
)
def followed(request):
    net = request.param
    return net, mf.simulate(net, measure=mf.PairOverlaps(pairs=TWO_UNITS, weights="dense"), draws=DRAWS, seed=6)


def test_two_units_meet_behind_the_gates_they_share(followed):
    """Epsilon and the mean that it makes, next order granted at 1/n of them; no epsilon is seen to fail."""
    net, drawn = followed
    laws = [mean_overlap(net, pair) for pair in TWO_UNITS]
    for name, law in (("gate_deviation", [law.deviation for law in laws]), ("overlap", [law.mean for law in laws])):
        expected = np.array(law)
        known = np.isfinite(expected) & (expected != 0)
        mean, stderr, expected = drawn[name].values[known], drawn[f"{name}_stderr"].values[known], expected[known]
        assert consistent(mean - expected, stderr, DRAWS, expected / net.width)
        assert not consistent(mean, stderr, DRAWS, expected / net.width)
        if name == "gate_deviation":  # as if of two directions only one met the other
            assert not consistent(mean - expected / 2, stderr, DRAWS, expected / net.width)


def test_two_directions_of_one_unit_overlap_in_whatever_blocks_they_begin(followed):
    """At leading order the mean is that of one direction with itself, and not 0 as in plain nets."""
    net, _ = followed
    pair = ((1, 1), (3, 1))
    law = mean_overlap(net, pair)
    assert law.on_one_unit
    assert np.isnan(law.deviation).all()
    drawn = mf.simulate(net, measure=mf.PairOverlaps(pairs=[pair]), draws=1024, seed=7)
    known = np.isfinite(law.mean)
    gap = (drawn.overlap[0] - law.mean)[known]
    assert consistent(gap, drawn.overlap_stderr[0][known], 1024, 3 / net.width * law.scale[known])
    assert not consistent(drawn.overlap[0][known], drawn.overlap_stderr[0][known], 1024)


def test_smooth_gates_are_refused():
    with pytest.raises(ValueError, match="'relu', 'linear'"):
        mean_overlap(mf.ResidualMLP(depth=2, width=4, activation="gelu"), TWO_UNITS[0])


def test_the_bound_of_growth_counts_blocks_alone():
    """e^(c q blocks / K), c q / K the share that a block carries: plain layers above the blocks add nothing to it."""
    net, pair = mf.ResidualMLP(depth=6, width=8, scaling="multiplier_sqrt", tail=2), ((1, 1), (1, 2))
    growth, bound = growth_since_birth(net, pair), growth_bound(net, pair)
    shares = np.array([share.carried for share in unit_shares(net)])
    blocks = np.array([share.kept for share in unit_shares(net)])
    assert list(blocks) == [1.0] * 6 + [0.0] * 2
    np.testing.assert_allclose(bound, np.exp(np.append(0.0, np.cumsum((shares * blocks)[1:]))))
    np.testing.assert_allclose(bound[-2:], bound[5])
    assert np.all(growth <= bound * (1 + 1e-12))
