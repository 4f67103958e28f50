"""Rates that rise with the number of blocks, and the stem that stops the rise."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory import scales_at
from meanfield.transfer.rules import STEM_PREMISE

STOPPED = "stops the rise"


def blocks(depth=4, **options):
    return mf.ResidualMLP(depth=depth, **({"width": 256, "block_depth": 3} | options))


def said(net, depth, **options):
    return mf.explain_transfer(0.003, net, net.replace(depth=depth), **options)


@pytest.mark.parametrize("rule", ["auto", "finite_depth", "power_law"])
@pytest.mark.parametrize("depths", [(4, 64), (64, 4)])
def test_a_rise_without_a_stem_is_said_with_the_factor_that_a_stem_leaves(rule, depths):
    carried = said(blocks(depths[0]), depths[1], rule=rule)
    (warning,) = (sentence for sentence in carried.warnings if STOPPED in sentence)
    assert STEM_PREMISE in carried.premises
    with_stem = said(blocks(depths[0], stem=1), depths[1], rule="finite_depth")
    assert f"on a stem of 256 channels the factor is {with_stem.rate / 0.003:.3g}" in warning


@pytest.mark.parametrize(
    ("net", "depth"),
    [
        (blocks(stem=1), 64),
        (blocks(stem=1, input_width=16), 64),
        (blocks(block_depth=1), 64),
        (blocks(scaling="multiplier_sqrt", block_depth=1), 64),
        (blocks(block_depth=2), 64),
        (blocks(), 4),
        (mf.MLP(depth=4, width=256), 8),
    ],
)
def test_nets_with_a_stem_and_falling_rates_are_not_warned_of_it(net, depth):
    assert STOPPED not in " ".join(said(net, depth, rule="finite_depth").warnings)


def test_nets_with_a_stem_have_no_premise_of_none():
    assert STEM_PREMISE not in said(blocks(stem=1), 8).premises
    assert STEM_PREMISE not in said(mf.MLP(depth=4, width=256), 8, rule="finite_depth").premises


@pytest.mark.parametrize(
    "net",
    [
        mf.TiedLoop(depth=4, width=64, tied=False),
        mf.Transformer(depth=2, width=64, heads=4, tokens=4, scaling="multiplier_linear"),
    ],
    ids=["stack", "Transformer"],
)
def test_stacks_and_transformers_have_the_same_premise(net):
    carried = said(net, 4 * net.depth)
    assert carried.rate > 1.1 * 0.003
    assert any(STOPPED in sentence and "a rate of its own" in sentence for sentence in carried.warnings)


@pytest.mark.parametrize(("scaling", "block_depth"), [("init", 3), ("multiplier_linear", 2), ("multiplier_linear", 3)])
def test_a_rise_ends_where_the_stem_outweighs_the_blocks(scaling, block_depth):
    """At K = k n / C_0 blocks eta* is two thirds of what it tends to; without a stem it goes on as K.

    With (1 + K_0 / 2K)^(-1) for two thirds, 8 times as many blocks have (3/2) / (17/16) of the rate, not 8.
    """
    net = blocks(block_depth=block_depth, scaling=scaling, stem=1, input_width=16)
    end = block_depth * 256 // 16
    near, half, far = scales_at(net, (end, 4 * end, 8 * end))
    assert far / near == pytest.approx(24 / 17, abs=0.1)
    assert np.log2(far / half) < 0.15
    bare = scales_at(net.replace(stem=0, input_width=None), (end, 8 * end))
    assert bare[1] / bare[0] == pytest.approx(8, rel=0.1)
