"""Rules whose rate leaves the range of floats, beside others that answer."""

import math

import pytest

import meanfield as mf


def mlps(*depths, width):
    return [mf.MLP(depth=depth, width=width) for depth in depths]


def test_rules_without_a_rate_leave_the_others_to_answer():
    """Of 64 layers of 8 units one drawn net in ten has died, so that the typical rate has no upper end."""
    nets = mlps(2, 64, width=8)
    transfer = mf.explain_transfer(0.1, *nets)
    assert transfer.rule == "whole_update"
    assert transfer.rate == mf.explain_transfer(0.1, *nets, rule="whole_update").rate
    assert "drawn nets have died" in transfer.refusals["typical"]
    assert any("drawn nets have died" in sentence for sentence in transfer.warnings)
    assert set(transfer.rates) == {"finite_depth", "power_law", "whole_update", "exact"}
    asked = mf.explain_transfer(0.1, *nets, rule="typical")
    assert asked.interval[1] == math.inf
    assert math.isfinite(asked.rate)
    with pytest.raises(ValueError, match="half or more of the drawn nets of depth 40 have died"):
        mf.explain_transfer(0.1, *mlps(1, 40, width=2), rule="typical")


@pytest.mark.parametrize("depth", [32, 64])
def test_the_way_down_is_the_way_up_read_backwards(depth):
    """The same rule in both directions, and rates that multiply to 1; the end whose nets have died is named."""
    nets = mlps(2, depth, width=8)
    up, down = mf.explain_transfer(0.1, *nets), mf.explain_transfer(0.1, *reversed(nets))
    assert up.rule == down.rule != "typical"
    assert up.rate * down.rate == pytest.approx(0.01)
    assert up.refusals["typical"] == down.refusals["typical"]
    for transfer in (up, down):
        named = [sentence for sentence in transfer.warnings if "drawn nets have died" in sentence]
        assert named == [f"drawn nets have died, one in ten or more of depth {depth}, and no rate moves those"]


def test_both_ends_are_named_where_nets_of_both_have_died():
    warned = mf.explain_transfer(0.1, *mlps(48, 64, width=8)).warnings
    assert any("one in ten or more of depth 48 and 64, and no rate" in sentence for sentence in warned)


def test_where_no_rule_has_a_rate_the_first_says_why():
    nets = [mf.ResidualMLP(depth=depth, width=8, scaling="none") for depth in (1, 700)]
    with pytest.raises(ValueError, match=r"no rule has a rate for these nets .*outside what a float holds"):
        mf.explain_transfer(0.1, *nets)


def test_warnings_of_nets_far_deeper_than_wide_hold_in_floats():
    warned = mf.explain_transfer(0.1, *mlps(2, 500, width=2), rule="finite_depth").warnings
    assert any("about 1e+304 times its mean field" in sentence for sentence in warned)
