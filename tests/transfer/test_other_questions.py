"""Pairs that "auto" refuses, since one step names no rate that trains well: two batch sizes, pre-norm over depth."""

from dataclasses import dataclass
from functools import cached_property

import pytest

import meanfield as mf
from meanfield.transfer import GivenPower, StableRate
from meanfield.transfer.carry import is_plain_pre_norm


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
