"""Rules beside the one-step theory: powers that are given or fitted, PathSum, the stable rate."""

import math
import warnings
from itertools import product

import numpy as np
import pytest

import meanfield as mf
from meanfield.transfer.rules import RIVALS, GivenPower, StableRate


def carried(start, end, rule):
    return mf.transfer_learning_rate(0.1, start, end, rule=rule)


NETS = {
    "mlp": lambda depth: mf.MLP(depth=depth, width=32),
    "cnn": lambda depth: mf.ConvNet(depth=depth, channels=8, grid=(4,)),
    "residual": lambda depth: mf.ResidualMLP(depth=depth - 2, width=32, stem=1, tail=1),
    "transformer": lambda depth: mf.Transformer(depth=depth, width=32, tokens=4),
    "loop": lambda depth: mf.TiedLoop(depth=depth, width=32),
}


@pytest.mark.parametrize("family", NETS)
def test_given_powers_serve_every_family(family):
    """Plain layers below and above blocks count as blocks do: from m + K = 4 to 16."""
    start, end = NETS[family](4), NETS[family](16)
    assert carried(start, end, "unchanged") == 0.1
    assert carried(start, end, "three_halves") == pytest.approx(0.1 / 8)
    assert carried(start, end, GivenPower(1.5)) == pytest.approx(0.8)
    assert carried(end, start, GivenPower(-0.5)) == pytest.approx(0.2)


def test_powers_of_the_width_count_it_and_nothing_else():
    narrow, wide, deep = (mf.MLP(depth=depth, width=width) for depth, width in [(4, 16), (4, 64), (8, 64)])
    assert carried(narrow, wide, GivenPower(-0.5, "width")) == pytest.approx(0.05)
    assert carried(narrow, wide, "three_halves") == 0.1
    with pytest.raises(ValueError, match="differ in depth, and a power of the width"):
        carried(narrow, deep, GivenPower(-0.5, "width"))


@pytest.mark.parametrize("along", ["depth", "width"])
def test_the_power_through_two_anchors_meets_both(along):
    nets = [mf.ConvNet(**{"depth": 4, "channels": 8, {"width": "channels"}.get(along, along): n}) for n in (4, 6, 24)]
    rule = GivenPower.through((0.3, nets[0]), (0.1, nets[1]))
    assert (rule.name, rule.along) == ("two_anchors", along)
    assert mf.transfer_learning_rate(0.3, nets[0], nets[1], rule=rule) == pytest.approx(0.1)
    slope = math.log(1 / 3) / math.log(1.5)
    assert mf.transfer_learning_rate(0.1, nets[1], nets[2], rule=rule) == pytest.approx(0.1 * 4**slope)


@pytest.mark.parametrize(("stem", "block_depth"), [(0, 1), (0, 2), (1, 1), (1, 2)])
def test_path_sum_counts_the_layers_of_all_paths(stem, block_depth):
    """Against every path written out: each block is passed by its skip or by its branch."""

    def scale(blocks):
        ways = product((0, block_depth), repeat=blocks)
        return sum((stem + sum(layers)) ** 3 for layers in ways) ** -0.5

    nets = [mf.ResidualMLP(depth=blocks, width=8, stem=stem, block_depth=block_depth) for blocks in (2, 6)]
    assert carried(*nets, "path_sum") == pytest.approx(0.1 * scale(6) / scale(2))


def test_path_sum_of_plain_nets_is_the_power_of_zhang():
    nets = [mf.ConvNet(depth=depth, channels=8) for depth in (3, 12)]
    assert carried(*nets, "path_sum") == pytest.approx(carried(*nets, "three_halves"))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    return rng.normal(size=(16, 12)), rng.integers(0, 3, 16)


def classifier(depth, **options):
    return mf.MLP(**{"depth": depth, "width": 12, "outputs": 3, "head": "fan_in"} | options)


@pytest.mark.parametrize("level", [None, "mean_field"])
def test_the_stable_rate_carries_by_its_ratio(data, level):
    nets = classifier(2), classifier(6)
    rule = StableRate(data, draws=8, seed=5, level=level)
    stable = [mf.stable_rate(net, data, draws=8, seed=5, level=level) for net in nets]
    transfer = mf.explain_transfer(0.1, *nets, rule=rule)
    assert transfer.rate == pytest.approx(0.1 * float(stable[1].stable_rate / stable[0].stable_rate))
    assert (transfer.error > 0) == (level is None)
    assert transfer.rule == "stable_rate"
    assert any("2 / lambda_max" in premise for premise in transfer.premises)
    assert not transfer.warnings


def test_rivals_are_not_chosen_and_claim_no_premise_of_one_step():
    nets = [mf.MLP(depth=depth, width=4096) for depth in (3, 12)]
    assert not set(mf.explain_transfer(0.1, *nets).rates) & set(RIVALS)
    for name in RIVALS:
        transfer = mf.explain_transfer(0.1, *nets, rule=name)
        assert set(transfer.rates) == {name}
        assert not any("one step" in premise for premise in transfer.premises)


def test_rivals_warn_of_no_premise_that_they_do_not_have():
    nets = [mf.MLP(depth=depth, width=64) for depth in (12, 100)]
    with pytest.warns(mf.PremiseWarning):
        carried(*nets, "finite_depth")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carried(*nets, "three_halves")


PLAIN = mf.MLP(depth=4, width=8), mf.MLP(depth=8, width=8)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: GivenPower(-1.5, "head"), "'depth', 'width'"),
        (lambda: GivenPower(math.inf), "the exponent is inf; give a finite number"),
        (lambda: GivenPower.through((0.1, PLAIN[0]), (0.2, PLAIN[0])), "the two anchors differ in nothing"),
        (
            lambda: GivenPower.through((0.1, PLAIN[0]), (0.2, mf.MLP(depth=8, width=9))),
            "differ in width, depth|depth, w",
        ),
        (lambda: GivenPower.through((0.0, PLAIN[0]), (0.2, PLAIN[1])), "the rate of an anchor is 0"),
        (lambda: carried(PLAIN[0], PLAIN[1].replace(head="mup"), "three_halves"), "differ in head"),
        (lambda: carried(PLAIN[0], PLAIN[1].replace(head="mup"), "path_sum"), "lengths of paths alone"),
        (lambda: carried(NETS["loop"](2), NETS["loop"](4), "path_sum"), "it says nothing of a TiedLoop"),
        (lambda: carried(*PLAIN, "path"), "'path_sum'"),
    ],
)
def test_what_a_rule_cannot_follow_is_refused(refused, message):
    with pytest.raises(ValueError, match=message):
        refused()
