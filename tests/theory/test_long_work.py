"""Predictions that would take long: in closed form, refused with what they would take, or with a bar."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.common import machine
from meanfield.common.machine import progress, seconds_refusal
from meanfield.nets import net as any_net
from meanfield.theory import learning_rate, loops
from meanfield.theory.mean_field import layers
from meanfield.transfer import rules

DEEP = 10**6


def counted(monkeypatch, module, name):
    """Depths of the nets that a function is called with."""
    met, own = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda net, *given, **how: met.append(net.depth) or own(net, *given, **how))
    return met


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("options", [{}, {"head": "fan_in", "outputs": 3}])
def test_the_closed_scale_of_deep_nets_is_that_of_the_walk(activation, options, monkeypatch):
    net = mf.MLP(depth=60, width=9, activation=activation, **options)
    walked = learning_rate.log_scale(net)
    monkeypatch.setattr(learning_rate, "DEEPEST_WALKED", 10)
    monkeypatch.setattr(learning_rate, "mean_field_profiles", lambda *given: pytest.fail("layers are walked"))
    np.testing.assert_allclose(learning_rate.log_scale(net), walked, atol=1e-12)


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=60, width=9, activation="gelu"),
        mf.MLP(depth=60, width=9, inputs=2),
        mf.MLP(depth=60, width=9, input_width=3),
        mf.MLP(depth=60, width=9, weight_variance=1.9),
        mf.ResidualMLP(depth=60, width=9),
        mf.ConvNet(depth=60, channels=9, grid=(3,), kernel=(3,), readout="convolution"),
    ],
)
def test_other_nets_are_walked_whatever_their_depth(net, monkeypatch):
    walked = learning_rate.log_scale(net)
    monkeypatch.setattr(learning_rate, "DEEPEST_WALKED", 10)
    assert learning_rate.log_scale(net) == walked


def test_a_rate_is_carried_to_many_layers_without_meeting_them(monkeypatch):
    """Rules that walk say that they do not; the share of outputs is that of few layers."""
    monkeypatch.setattr(rules, "DEEPEST_SHARE", 50)
    met = counted(monkeypatch, rules, "mean_field_terms"), counted(monkeypatch, layers, "plain_terms")
    rules.log_means.cache_clear()
    depth, width = 2 * rules.DEEPEST_FOLLOWED, 10**8
    carried = mf.explain_transfer(0.1, mf.MLP(depth=4, width=width), mf.MLP(depth=depth, width=width))
    assert all(met)
    assert max(map(max, met)) <= 50
    assert f"{rules.DEEPEST_FOLLOWED:,} layers" in carried.refusals["whole_update"]
    law = ((depth + 1) * (depth**2 + depth + 1) / (5 * 21)) ** -0.5
    np.testing.assert_allclose(carried.rates["finite_depth"], 0.1 * law, rtol=1e-12)


def test_the_output_share_of_deep_nets_is_that_of_shallower_ones():
    shares = [np.diff(rules.log_means(mf.MLP(depth=depth, width=10**6)))[0] for depth in (150, 300)]
    np.testing.assert_allclose(*shares, atol=0.02)


def test_many_layers_at_few_units_are_no_overflow(monkeypatch):
    """What is said of the mean is bounded by what a float holds."""
    monkeypatch.setattr(rules, "DEEPEST_SHARE", 50)
    with pytest.warns(mf.PremiseWarning) as said:
        mf.transfer_learning_rate(0.1, mf.MLP(depth=4, width=8), mf.MLP(depth=10**4, width=8), rule="finite_depth")
    assert "the mean label term is about 1e+304 times" in str(said[0].message)


def test_loops_of_a_million_tied_steps_are_refused_before_the_first(monkeypatch):
    monkeypatch.setattr(loops, "PairSum", lambda *given: pytest.fail("steps begin"))
    monkeypatch.setattr(any_net, "shapes_by_value", lambda *given: pytest.fail("units are listed"))
    deep = mf.TiedLoop(depth=DEEP, width=4)
    with pytest.raises(ValueError, match=r"1,000,000 tied steps takes about \d+ hours .* lower depth to 120,000, or"):
        mf.predict(deep, level="mean_field")
    with pytest.raises(ValueError, match="rule 'power_law' does"):
        mf.transfer_learning_rate(0.1, deep.replace(depth=4), deep)
    assert mf.transfer_learning_rate(0.1, deep.replace(depth=4), deep, rule="power_law") == 0.1
    assert not loops.time_refusal(deep.replace(depth=10**5))
    assert "18,973" in loops.time_refusal(deep.replace(depth=10**5, activation="gelu"))
    assert not loops.time_refusal(deep.replace(tied=False))


@pytest.mark.parametrize(
    ("net", "error", "message"),
    [
        (mf.ConvNet(depth=2, channels=4, grid=(10**10,)), MemoryError, "all displacements needs about .* lower grid"),
        (
            mf.ConvNet(depth=1000, channels=4, grid=(60, 60), kernel=(3, 3), padding="zero"),
            ValueError,
            r"12,960,000 pairs of sites at 1,000 layers takes about 4.3 hours .* circular padding",
        ),
    ],
)
def test_grids_beyond_memory_or_time_are_refused_before_the_first_array(net, error, message, monkeypatch):
    monkeypatch.setattr(layers, "white_product", lambda *given: pytest.fail("arrays are made"))
    with pytest.raises(error, match=message):
        mf.predict(net, level="mean_field")


def test_an_hour_is_granted():
    assert seconds_refusal(machine.LONGEST_SECONDS, "it", "do less") == ""
    assert seconds_refusal(2 * machine.LONGEST_SECONDS, "it", "do less") == (
        "it takes about 2 hours of a processor; more than 1 is refused: do less"
    )


def test_a_bar_shows_after_two_seconds_and_changes_nothing(monkeypatch):
    made = []
    monkeypatch.setattr(machine, "tqdm", lambda steps, **how: made.append(how) or steps)
    assert list(progress(range(3), 3, "layer")) == [0, 1, 2]
    assert made == [{"total": 3, "unit": "layer", "delay": 2, "disable": None, "leave": False}]
    assert progress([1], 1, "layer") == [1]


@pytest.mark.parametrize(
    "net",
    [
        mf.MLP(depth=3, width=4),
        mf.ResidualMLP(depth=3, width=4),
        mf.ConvNet(depth=3, channels=4, grid=(3,), kernel=(3,), padding="zero"),
        mf.TiedLoop(depth=3, width=4),
        mf.Transformer(depth=2, width=8, tokens=2, causal=True, outputs=1, attention_scale="inverse"),
    ],
    ids=lambda net: type(net).__name__,
)
def test_every_walk_has_a_bar(net, monkeypatch):
    """Of its layers, steps or units, as which it begins."""
    walked = {"TiedLoop": ("step", 3), "Transformer": ("unit", 4)}.get(type(net).__name__, ("layer", 3))

    class Begun(Exception): ...

    def bar(steps, **how):
        if (how["unit"], how["total"]) == walked:
            raise Begun
        return steps

    monkeypatch.setattr(machine, "tqdm", bar)
    with pytest.raises(Begun):
        mf.predict(net, level="mean_field")
