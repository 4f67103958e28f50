"""Premises of carried rates, where two nets break them, and rates that no float holds."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory import scales_at
from meanfield.transfer import GivenPower, StableRate
from meanfield.transfer.carry import is_plain_pre_norm
from meanfield.transfer.rules import STEM_PREMISE, log_channel_correction


def streams(*depths, family=mf.Transformer, **options):
    return [family(depth=depth, **({"width": 128, "heads": 8, "tokens": 4} | options)) for depth in depths]


def test_a_rate_of_another_batch_size_is_another_question():
    nets = [mf.MLP(depth=depth, width=64, inputs=inputs) for depth, inputs in ((4, 1), (8, 36))]
    with pytest.raises(ValueError, match=r"batches of 1 and 36 samples, .* B / sqrt\(1 \+ \(B - 1\) f\)"):
        mf.explain_transfer(0.1, *nets)
    asked = mf.explain_transfer(0.1, *nets, rule="whole_update")
    assert any("batches of 1 and 36 samples" in sentence for sentence in asked.warnings)
    assert not any("same data, batch size" in premise for premise in asked.premises)
    assert any("batches of 1 and 36 samples" in premise for premise in asked.premises)
    kept = mf.explain_transfer(0.1, *nets, rule="unchanged")
    assert kept.rate == 0.1
    assert any("batches of 1 and 36 samples" in sentence for sentence in kept.warnings)
    alike = mf.explain_transfer(0.1, *(net.replace(inputs=36) for net in nets))
    assert any("same data, batch size" in premise for premise in alike.premises)
    assert not any("batches of" in words for words in (*alike.warnings, *alike.premises))


RULES = {
    "adamw": {"optimizer": "adamw"},
    "muon of outputs": {"optimizer": "muon", "of": "last"},
    "unchanged": {"rule": "unchanged"},
    "whole update": {"rule": "whole_update"},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_premise_says_what_the_sizes_of_batches_contradict(rule):
    for inputs, same in (((1, 4), False), ((4, 4), True)):
        nets = [mf.MLP(depth=depth, width=64, inputs=count) for depth, count in zip((4, 8), inputs, strict=True)]
        told = mf.explain_transfer(0.1, *nets, **rule)
        assert any("same data, batch size" in premise for premise in told.premises) == same
        assert any("training time, batches of 1 and 4 samples" in premise for premise in told.premises) != same
        assert any("batches of 1 and 4 samples" in sentence for sentence in told.warnings) != same


def test_no_premise_of_loops_says_what_their_widths_contradict():
    for widths in ((8, 8), (8, 16)):
        told = mf.explain_transfer(0.1, *(mf.TiedLoop(depth=4, width=width) for width in widths))
        assert ("the same width and batch at both ends" in told.premises) == (widths[0] == widths[1])


@pytest.mark.parametrize(("inputs", "correlated"), [((2, 32), False), ((32, 512), True)])
def test_what_is_said_of_other_batches_is_what_the_mean_field_has(inputs, correlated):
    """eta* goes as B while samples share little of the kernel, and as sqrt(B) in large batches."""
    nets = [mf.MLP(depth=4, width=10**6, inputs=count, head="mup") for count in inputs]
    measured = mf.explain_transfer(1.0, *nets, rule="whole_update").rate / (inputs[1] / inputs[0])
    root = (inputs[0] / inputs[1]) ** 0.5
    assert root * 0.95 < measured < 1
    assert (abs(measured / root - 1) < 0.2) == correlated


def test_pre_norm_transformers_are_refused_over_depth_and_obeyed_where_asked():
    nets = streams(1, 3, heads=2, tokens=2, outputs=1)
    message = r"fell as L\^\(-0\.57 \+- 0\.06\) .* L\^\(-1\.48\): carried rates were 6 to 15 times too small"
    for pair in (nets, nets[::-1]):
        with pytest.raises(ValueError, match=message):
            mf.transfer_learning_rate(0.1, *pair)
    first, second = (float(mf.predict(net, level="mean_field").label_learning_rate_scale) for net in nets)
    with pytest.warns(mf.PremiseWarning, match=r"fell as L\^\(-0\.57"):
        rate = mf.transfer_learning_rate(0.1, *nets, rule="finite_depth")
    assert rate == pytest.approx(0.1 * second / first)


def test_only_plain_pre_norm_over_depth_is_refused():
    others = [
        streams(1, 6, norm="post"),
        streams(1, 6, scaling="multiplier_sqrt"),
        [*streams(4), *streams(4, width=64)],
    ]
    for nets in others:
        assert "-0.57" not in " ".join(mf.explain_transfer(0.1, *nets).warnings)
    assert not mf.explain_transfer(0.1, *streams(1, 6), rule="three_halves").warnings


@dataclass(frozen=True, kw_only=True)
class Damped(mf.Transformer):
    """Branches of 1/L, whose field ``scaling`` says nothing of it."""

    @property
    def multiplier(self):
        return 1 / self.depth


@dataclass(frozen=True, kw_only=True)
class Undamped(mf.Transformer):
    """Branches without a factor, whose field ``scaling`` says otherwise."""

    scaling: str = "multiplier_sqrt"

    @property
    def multiplier(self):
        return 0.5


@dataclass(frozen=True, kw_only=True)
class Ungoverned(mf.Transformer):
    """No normalisation, whose field ``norm`` says that there is one."""

    @cached_property
    def _normalised(self):
        return ()


@pytest.mark.parametrize(
    ("nets", "plain"),
    [
        (streams(1, 6), True),
        (streams(6, 1), True),
        (streams(1, 6, family=Damped), False),
        (streams(1, 6, family=Undamped), True),
        (streams(1, 6, family=Ungoverned), False),
        (streams(1, 6, scaling="init"), False),
        (streams(1, 6, scaling="rezero"), False),
        (streams(1, 6, normalisation="none"), False),
        (streams(1, 6, norm="post"), False),
        (streams(6, 6), False),
        ([mf.MLP(depth=depth, width=8) for depth in (1, 6)], False),
    ],
)
def test_pre_norm_is_read_off_the_units(nets, plain):
    assert is_plain_pre_norm(*nets) == plain


def test_other_rules_on_other_grounds_serve_pre_norm_nets():
    nets = streams(1, 4)
    assert mf.explain_transfer(0.1, *nets, rule=GivenPower(-0.5)).rate == pytest.approx(0.05)
    assert StableRate(((), ())).refusal(*nets) == ""


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


def test_finite_channels_change_a_carried_rate_as_exact_expectations_say():
    """From the shallow net to the deep one, not back."""
    nets = [mf.MLP(depth=depth, width=64, outputs=8) for depth in (4, 8)]
    exact, limit = (np.log(mf.explain_transfer(1.0, *nets, rule=rule).rate) for rule in ("exact", "whole_update"))
    assert abs(exact - limit) > 0.01
    assert log_channel_correction(*nets) == pytest.approx(exact - limit)


def test_a_warning_says_by_what_factor_the_mean_exceeds_its_mean_field():
    """exp(3 L / n) in the label term."""
    nets = [mf.MLP(depth=depth, width=20) for depth in (2, 5)]
    said = mf.explain_transfer(0.1, *nets, rule="finite_depth").warnings
    assert any(f"is about {np.exp(3 * 5 / 20):.2g} times its mean field" in words for words in said)


@pytest.mark.parametrize(("width", "drawn"), [(140, True), (160, False)])
def test_nets_are_drawn_from_a_fiftieth_of_the_width_on(width, drawn):
    nets = [mf.MLP(depth=depth, width=width) for depth in (2, 3)]
    assert ("typical" in mf.explain_transfer(0.1, *nets).rates) == drawn


def test_grids_that_differ_are_refused_where_the_output_term_would_tell():
    """On more sites the outputs add up otherwise than the labels do, which the label term alone does not follow."""
    small = mf.ConvNet(depth=4, channels=64, grid=(3,), kernel=(3,), outputs=64, readout="convolution")
    large = small.replace(grid=(48,))
    with pytest.raises(ValueError, match="the nets differ in grid, and the output term"):
        mf.transfer_learning_rate(0.1, small, large, rule="finite_depth")
    assert mf.explain_transfer(0.1, small, small.replace(depth=8), rule="finite_depth").rate < 0.1


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
