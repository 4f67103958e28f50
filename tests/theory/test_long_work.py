"""Predictions that would take long: in closed form, refused with what they would take, or with a bar."""

import io
import threading
import time
from functools import partial

import numpy as np
import pytest
from tqdm import tqdm

import meanfield as mf
from meanfield.common import machine
from meanfield.common.machine import progress, says_how_long, seconds_refusal
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
    with pytest.warns(mf.PremiseWarning, match="tuned rates of loops"):
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal shows, which hears of work after a twentieth of a second."""
    monkeypatch.setattr(machine, "UNSAID_SECONDS", 0.05)
    monkeypatch.setattr(machine, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(machine, "tqdm", partial(tqdm, file=(shown := Terminal())))
    return shown


@says_how_long
def working(seconds, inner=None):
    time.sleep(seconds)
    return inner and inner()


@says_how_long
def inner():
    time.sleep(0.3)
    return "made"


def test_long_work_says_so_on_a_terminal_before_its_first_step_ends(terminal):
    """The outermost of two alone, once it has taken its time; and clears the line behind it."""
    assert working(0.3, inner) == "made"
    shown = terminal.getvalue()
    assert "working: 00:00" in shown
    assert "inner" not in shown
    assert shown.endswith("\r")
    with pytest.raises(ZeroDivisionError):
        working(0.0, lambda: 1 / 0)
    assert inner() == "made", "which is the outermost again"
    assert "inner: 00:00" in terminal.getvalue()


def test_short_work_and_what_is_no_terminal_hear_nothing(terminal, monkeypatch):
    working(0.0)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(machine, "tqdm", partial(tqdm, file=(pipe := io.StringIO())))
    threads = threading.active_count()
    working(0.3, lambda: threads >= threading.active_count() or pytest.fail("a thread counts seconds"))
    assert pipe.getvalue() == ""


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("family", [mf.MLP, mf.ResidualMLP])
def test_predictions_and_carried_rates_say_so_while_units_are_listed(family, optimizer, terminal, monkeypatch):
    """Before any walk begins, as of 100,000 layers it takes seconds to list them."""
    nets = [family(depth=depth, width=64) for depth in (2, 3)]
    slow = property(lambda net: time.sleep(0.3) or 64)
    monkeypatch.setattr(family, "first_channels", slow)
    mf.predict(nets[0], level="mean_field", optimizer=optimizer)
    assert "predict: 00:00" in terminal.getvalue()
    mf.explain_transfer(0.1, *nets, optimizer=optimizer)
    assert "explain_transfer: 00:00" in terminal.getvalue()


DEEP_STREAM = mf.ResidualMLP(depth=10**6, width=4)


def test_blocks_that_remember_too_many_gates_are_refused_before_the_first(monkeypatch):
    monkeypatch.setattr(layers, "white_product", lambda *given: pytest.fail("layers are walked"))
    words = (
        r"1,000,000 blocks, each of which meets the gates of all above it, takes about 4.2 hours .* lower depth to 489,"
    )
    with pytest.raises(ValueError, match=words):
        mf.predict(DEEP_STREAM, level="mean_field")
    shallow = DEEP_STREAM.replace(depth=4)
    for pair in ((shallow, DEEP_STREAM), (DEEP_STREAM, shallow)):
        with pytest.raises(ValueError, match=rf"{words}.*; rule 'power_law' does"):
            mf.explain_transfer(0.1, *pair)
    assert not layers.memory_of_gates_refusal(mf.ResidualMLP(depth=10**5, width=4))
    grids = [
        mf.ResidualConvNet(depth=10**4, channels=4, grid=(30,), padding=padding) for padding in ("circular", "zero")
    ]
    assert [bool(layers.memory_of_gates_refusal(net)) for net in grids] == [False, False]
    assert layers.memory_of_gates_refusal(grids[1].replace(grid=(60,)))
    assert not layers.memory_of_gates_refusal(mf.MLP(depth=10**6, width=4))


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_the_power_of_the_depth_serves_blocks_that_are_not_followed():
    deep = DEEP_STREAM.replace(block_depth=3)
    carried = mf.explain_transfer(0.1, deep.replace(depth=4), deep, rule="power_law")
    assert carried.rate == pytest.approx(0.1 * (10**6 / 4))


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

    def bar(steps=None, **how):
        if (how.get("unit"), how.get("total")) == walked:
            raise Begun
        return tqdm(disable=True) if steps is None else steps

    monkeypatch.setattr(machine, "tqdm", bar)
    with pytest.raises(Begun):
        mf.predict(net, level="mean_field")
