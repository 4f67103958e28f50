"""Scales of residual nets and loops over depth: against exact expectations, closed forms and the laws they tend to."""

import math
from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.scalings import SCALINGS
from meanfield.theory.learning_rate import learning_rate_exponent, log_scale, scales_at
from tests.statistics import consistent

PLAIN_NETS = -1.5
ENERGY = "stream_update_energy"


def blocks(depth=1, **options):
    return mf.ResidualMLP(depth=depth, **({"width": 64} | options))


def loop(depth=1, **options):
    return mf.TiedLoop(depth=depth, width=64, **options)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("block_depth", [1, 2])
def test_residual_scales_are_the_limit_of_exact_ones(scaling, block_depth):
    """Linear nets: what the exact expectation at finite width lacks of the scale goes as 1/n."""
    distances = []
    for width in (10**4, 10**5):
        net = blocks(width=width, block_depth=block_depth, scaling=scaling, activation="linear")
        exact = [
            float(mf.predict(replace(net, depth=depth), level="exact").log_label_learning_rate_scale)
            for depth in (3, 10)
        ]
        distances.append(np.array(exact) - np.log(scales_at(net, (3, 10))))
    np.testing.assert_allclose(distances[0], 10 * distances[1], rtol=0.02)
    assert np.all(np.abs(distances[0]) < 0.01)


def test_two_scalings_of_one_function_differ_by_the_number_of_blocks():
    """a^2 f^k is 1/K^2 for both: the same nets, whose parameters are K^(1/2) times as steep in one of them."""
    depths = (1, 3, 20)
    predicted = [scales_at(blocks(block_depth=2, scaling=scaling), depths) for scaling in ("init", "multiplier_linear")]
    np.testing.assert_allclose(predicted[1], np.array(depths) * predicted[0], rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_scales_of_stacks_are_the_closed_form(activation):
    """E|dh_L|^2 / N = L eps^2 q (1 + x)^(L - 1): one step's own change, carried by all others."""
    depths, gain = np.array([1, 5, 30]), {"relu": 0.5, "linear": 1.0}[activation]
    step = depths**-0.5
    moved = depths * step**2 * gain * (1 + 1.3 * gain * step**2) ** (depths - 1)
    net = loop(alpha="sqrt", tied=False, activation=activation, weight_variance=1.3)
    np.testing.assert_allclose(scales_at(net, depths), moved**-0.5, rtol=1e-12)


def test_scales_of_tied_linear_loops_are_the_closed_form():
    """d/d sigma_W^2 of the sum of squared binomials: one of the j factors of W^j is the update."""
    depths, predicted = (1, 4, 25), scales_at(loop(activation="linear", weight_variance=1.3), (1, 4, 25))
    moved = [sum(math.comb(d, j) ** 2 * j * 1.3 ** (j - 1) * d ** (-2 * j) for j in range(1, d + 1)) for d in depths]
    np.testing.assert_allclose(predicted, np.array(moved) ** -0.5, rtol=1e-10)


@pytest.mark.parametrize(
    ("net", "exponent"),
    [
        (blocks(), -1),
        (blocks(block_depth=2), 0),
        (blocks(block_depth=3), 1),
        (blocks(block_depth=3, stem=1), 0),
        (blocks(block_depth=3, tail=1), 0.5),
        (blocks(scaling="multiplier_sqrt"), 0),
        (blocks(block_depth=2, scaling="multiplier_linear"), 1),
        (mf.ResidualConvNet(depth=1, channels=16, grid=(4,), kernel=(3,), readout="convolution"), -1),
        (loop(alpha=1.0), 0),
        (loop(alpha=1.5), 0.5),
        (loop(alpha=0.5, tied=False), 0),
        (loop(alpha=1.0, tied=False), 0.5),
    ],
    ids=str,
)
def test_laws_are_reached_as_one_over_depth(net, exponent):
    """Slopes over two octaves, extrapolated; what they lack of the law halves from one to the next. None is -3/2."""
    assert learning_rate_exponent(net) == exponent
    slopes = np.diff(np.log(scales_at(net, (100, 200, 400)))) / np.log(2)
    assert 2 * slopes[1] - slopes[0] == pytest.approx(exponent, abs=2e-3)
    assert abs(slopes[1] - exponent) < 0.6 * abs(slopes[0] - exponent)
    assert abs(slopes[1] - PLAIN_NETS) > 0.4


@pytest.mark.parametrize("net", [blocks(scaling="none"), loop(alpha=0.5), loop(alpha=0.3, tied=False)], ids=str)
def test_exponential_families_have_no_law(net):
    assert math.isnan(learning_rate_exponent(net))
    logs = np.log(scales_at(net, (20, 40, 80)))
    assert np.diff(logs)[1] < 1.2 * np.diff(logs)[0] < 0
    with pytest.raises(ValueError, match="no power of its depth"):
        mf.transfer_learning_rate(0.1, net, replace(net, depth=4), rule="power_law")


@pytest.mark.filterwarnings("ignore:.*tuned rates of loops")
@pytest.mark.parametrize("net", [blocks(block_depth=2), loop(alpha="linear")], ids=str)
def test_transfer_is_the_ratio_of_scales(net):
    ends = [replace(net, depth=depth) for depth in (4, 32)]
    first, second = scales_at(net, (4, 32))
    assert mf.transfer_learning_rate(0.3, *ends) == pytest.approx(0.3 * second / first, rel=1e-12)
    assert mf.transfer_learning_rate(0.3, *ends, rule="power_law") == 0.3


@pytest.mark.parametrize(("head", "agree"), [("mup", True), ("he", False)])
def test_transfer_by_exact_scales_of_linear_blocks(head, agree):
    """Vanishing outputs leave the label term alone; those of order one move blocks as much as labels do, unevenly."""
    ends = [blocks(depth=depth, activation="linear", width=10**6, head=head) for depth in (4, 32)]
    finite, exact = (mf.transfer_learning_rate(1.0, *ends, rule=rule) for rule in ("finite_depth", "exact"))
    assert (exact == pytest.approx(finite, rel=1e-4)) == agree
    assert exact != pytest.approx(8**PLAIN_NETS, rel=0.1)


@pytest.mark.parametrize(
    ("start", "end", "rule", "message"),
    [
        (blocks(), blocks(4, scaling="multiplier_sqrt"), "power_law", "differ in scaling .'init' and"),
        (blocks(), blocks(4, stem=1), "power_law", "differ in stem .0 and 1"),
        (loop(), loop(4, alpha=2.0), "power_law", "differ in alpha"),
        (loop(), loop(4, tied=False), "finite_depth", "of tied=True and TiedLoop of tied=False"),
        (loop(), loop(4), "exact", "this is a TiedLoop of tied=True"),
        (blocks(), mf.MLP(depth=4, width=64), "finite_depth", "two families, ResidualMLP and MLP"),
        (blocks(scaling="none"), blocks(1200, scaling="none"), "finite_depth", "outside what a float holds"),
    ],
)
def test_what_a_rule_does_not_serve_is_refused(start, end, rule, message):
    with pytest.raises(ValueError, match=message):
        mf.transfer_learning_rate(0.1, start, end, rule=rule)


def test_scales_at_are_those_of_each_net_where_depths_share_no_recursion():
    """Zero padding: every depth is predicted by itself; on circular grids one recursion gives the same numbers."""
    for padding in ("zero", "circular"):
        net = mf.ConvNet(depth=1, channels=16, grid=(6,), kernel=(3,), padding=padding, readout="convolution")
        each = [math.exp(log_scale(replace(net, depth=depth))) for depth in (2, 7)]
        np.testing.assert_allclose(scales_at(net, (2, 7)), each, rtol=1e-12)


@pytest.mark.parametrize(("update", "claimed", "rival"), [("aligned", 1.0, 0.0), ("isotropic", 0.0, 1.0)])
def test_stacks_add_up_aligned_changes_and_isotropic_ones_in_squares(update, claimed, rival):
    """|dh_L|^2 in stacks of alpha = 1/2 goes as L under aligned signs (Wang et al. 2026), else as L^0.

    Corrections of order 1/L are granted as the largest that theory has for isotropic signs over these steps.
    """
    depths, draws, octaves = (8, 32), 64, 2
    datasets = [
        mf.simulate(
            loop(depth, alpha="sqrt", tied=False), measure=mf.StreamUpdates(update=update), draws=draws, seed=depth
        )
        for depth in depths
    ]
    energy, stderr = (
        np.array([float(dataset[name][-1]) for dataset in datasets]) for name in (ENERGY, f"{ENERGY}_stderr")
    )
    slope, error = np.log2(energy[1] / energy[0]) / octaves, np.hypot(*(stderr / energy)) / np.log(2) / octaves
    correction = abs(2 * np.diff(np.log2(scales_at(loop(alpha="sqrt", tied=False), depths)))[0]) / octaves
    assert consistent(slope - claimed, error, draws, correction)
    assert not consistent(slope - rival, error, draws, correction)
