"""Rates to start from, and the medians over draws by which first steps name them."""

import math
import warnings

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.common.estimates import quantiles
from meanfield.optimizers import SGD, AdamW, Hybrid, Muon
from meanfield.quantities.registry import SHARES
from meanfield.quantities.step_scales import median_over_draws, median_scale
from meanfield.transfer.law_quantities import statistic_of
from meanfield.transfer.starting import (
    against_width,
    beyond_widths,
    departures,
    differ_in_width,
    misses,
    other_batch,
    rate_stays,
    widens,
)
from meanfield.transfer.trials import CALIBRATIONS, CONNECTED, CONVOLUTIONAL, SCALES, TRANSFORMER
from meanfield.verification.laws import OF_OUTER_QUANTILES

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((64, 8)), RNG.integers(0, 3, 64)
NET = mf.ResidualMLP(depth=3, width=16, stem=1, input_width=8, outputs=3)
TRAINED = {"batch_size": 16, "draws": 16}


def started(net=NET, data=DATA, **options):
    """The dataset, and the sentences of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = mf.starting_rate(net, data, **TRAINED | options)
    return found, [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("optimizer", "scale"),
    [("sgd", "output"), ("sgd_momentum", "output"), ("adamw", "last"), ("lion", "last")],
)
def test_the_rate_is_the_median_of_a_scale_over_a_constant(optimizer, scale):
    """By the draws of `step_scales`; the scale of all layers in its place gives a rate that is off by more than 5 %."""
    found, _ = started(optimizer=optimizer)
    drawn = mf.step_scales(NET, DATA, optimizer=optimizer, **TRAINED).sel(quantile=0.5)
    constant = {"sgd": 0.63, "sgd_momentum": 4.6, "adamw": 4.5, "lion": 25}[optimizer]
    assert float(found["rate"]) == float(drawn[f"{scale}_learning_rate_scale_quantile"]) / constant
    assert abs(math.log(float(drawn["learning_rate_scale_quantile"]) / constant / float(found["rate"]))) > 0.05
    assert found.attrs["scale"] == f"{scale}_learning_rate_scale"
    assert found.attrs["scale_over_rate"] == constant
    assert "that learn, depths 2 .. 16, 896 steps" in found.attrs["rests_on"]
    assert all(scale in found for scale in SCALES.values())


def test_descent_with_momentum_has_a_constant_of_its_own_and_a_warning():
    found, sentences = started(optimizer=SGD(0.9))
    assert found.drop_attrs().identical(started(optimizer="sgd_momentum")[0].drop_attrs())
    assert [each for each in sentences if each.startswith("few nets were trained by descent with momentum")]
    assert "descent with momentum 0.9" in found.attrs["premises"]
    assert "under descent peaks of a warmup" in found.attrs["premises"]


def test_muon_beside_adamw_is_named_by_a_step_as_long_as_later_ones():
    """Which is as long as the first in hidden matrices, and shorter in all else, so that its scale is larger."""
    found, _ = started(optimizer="muon-adamw")
    first, later = (
        mf.step_scales(NET, DATA, optimizer=name, **TRAINED).sel(quantile=0.5)["last_learning_rate_scale_quantile"]
        for name in ("muon-adamw", "muon-adamw-in-noise")
    )
    assert float(found["rate"]) == float(later) / 74
    assert float(later) > 1.2 * float(first)
    assert found.identical(started(optimizer="muon-adamw-in-noise")[0])
    assert math.log(float(later / first)) < math.log(1 / 0.229)
    assert "Muon with momentum 0.95 on hidden matrices and AdamW on all else, both at this" in found.attrs["premises"]


def test_constants_of_signs_are_those_of_kinds_of_nets():
    """Convolutional nets have one six times as small as that of nets without sites."""
    nets = {NET: DATA, IMAGES: IMAGE_DATA}
    constants = [started(net, data, optimizer="adamw")[0].attrs["scale_over_rate"] for net, data in nets.items()]
    assert constants == [4.5, 0.79]


def test_the_interval_holds_the_trials_and_the_error_of_the_median():
    few, many = (started(optimizer="adamw", draws=draws)[0] for draws in (4, 256))
    halves = [math.log(float(found["high"] / found["rate"])) for found in (few, many)]
    for found, half in zip((few, many), halves, strict=True):
        assert math.log(float(found["rate"] / found["low"])) == pytest.approx(half)
        median, error = median_scale(found, "last_learning_rate_scale")
        assert median == pytest.approx(4.5 * float(found["rate"]))
        assert half == pytest.approx(math.hypot(math.log(2.4), 2 * error))
    assert halves[0] > halves[1] > math.log(CALIBRATIONS["adamw"][CONNECTED].factor)


def test_nets_of_which_a_tenth_die_have_no_interval():
    found, sentences = started(mf.MLP(depth=6, width=3, input_width=8, outputs=3), optimizer="adamw", batch_size=2)
    assert float(found["low"]) == 0
    assert 0 < float(found["rate"]) < float(found["high"]) == math.inf
    assert "trials had batches of 16, and this one has 2: " in sentences.pop()
    assert sentences == [
        "a tenth or more of the drawn nets do not move at their first step, as their gradients are 0 "
        "and units have died: their rates have no end, and so has the interval; give a larger width or a smaller depth"
    ]


def test_the_same_step_has_the_same_rate_by_name_and_by_optimizer():
    for name, optimizer in (("sgd", SGD(0.0)), ("adamw", AdamW())):
        assert float(started(optimizer=name)[0]["rate"]) == pytest.approx(
            float(started(optimizer=optimizer)[0]["rate"])
        )


LOOP = mf.TiedLoop(depth=3, width=8, alpha="sqrt")
LOOP_DATA = RNG.standard_normal((32, 8)), RNG.integers(0, 8, 32)
TOKENS = {"depth": 2, "width": 8, "heads": 2, "tokens": 4, "outputs": 3}
TOKEN_DATA = RNG.standard_normal((32, 8, 4)), RNG.integers(0, 3, 32)
CHARACTERS = mf.Transformer(**TOKENS | {"outputs": 5}, norm="post", vocabulary=5, readout="last")
CHARACTER_DATA = np.eye(5)[RNG.integers(0, 5, (32, 4))].swapaxes(1, 2), RNG.integers(0, 5, 32)


IMAGES = mf.ConvNet(depth=2, channels=4, grid=(3, 3), kernel=(3, 3), input_channels=1, outputs=3, head="fan_in")
IMAGE_DATA = RNG.standard_normal((32, 1, 3, 3)), RNG.integers(0, 3, 32)
GPTS_ALONE = "the constant for Transformers is of pre-norm GPTs of 32 and 48 channels"
PRE_NORM_FELL = "where its first step says L^(-0.57) to L^(-1.13)"
POST_NORM_FELL = "fell as L^(-1.00) under sgd in trials on MNIST"


@pytest.mark.parametrize(
    ("net", "data", "optimizer", "words"),
    [
        (NET, DATA, "sgd", []),
        (NET, DATA, "adamw", []),
        (NET, DATA, "lion", []),
        (NET, DATA, "muon", ["0.8 to 29 times"]),
        (NET, DATA, "muon-adamw", []),
        (IMAGES, IMAGE_DATA, "muon-adamw", []),
        (mf.MLP(depth=8, width=8, input_width=8, outputs=3), DATA, "adamw", []),
        (
            mf.MLP(depth=8, width=8, input_width=8, outputs=3),
            DATA,
            "lion",
            ["plain fully-connected nets fell as L^(-1.08)"],
        ),
        (IMAGES, IMAGE_DATA, "adamw", []),
        (IMAGES, IMAGE_DATA, "sgd", ["0.73 to 6.2 times the tuned", "convolutional nets fell as L^(-2.47) under sgd"]),
        (mf.MLP(depth=2, width=8, input_width=8, outputs=3), DATA, "sgd", ["0.73 to 6.2 times the tuned"]),
        (
            mf.Transformer(**TOKENS, norm="pre"),
            TOKEN_DATA,
            "adamw",
            [GPTS_ALONE, "pre-norm Transformers fell as L^(-0.64) under"],
        ),
        (mf.Transformer(**TOKENS, norm="pre"), TOKEN_DATA, "sgd", ["1.3 to 3 times the tuned", PRE_NORM_FELL]),
        (mf.Transformer(**TOKENS, norm="post"), TOKEN_DATA, "adamw", [GPTS_ALONE]),
        (mf.Transformer(**TOKENS, norm="post"), TOKEN_DATA, "sgd", ["1.7 to 4.1 times the tuned", POST_NORM_FELL]),
        (CHARACTERS, CHARACTER_DATA, "adamw", [GPTS_ALONE, "GPTs of characters that learn"]),
        (CHARACTERS, CHARACTER_DATA, "lion", ["no Transformer was trained by Lion", "GPTs of characters that learn"]),
        (LOOP, LOOP_DATA, "adamw", ["loops of factor L^(-1/2) fell as L^(-0.75)"]),
        (LOOP, LOOP_DATA, "muon-adamw", ["loops of factor L^(-1/2) fell as L^(-0.72) under muon-adamw in trials"]),
        (LOOP, LOOP_DATA, "lion", ["loops of factor L^(-1/2) fell as L^(-0.21)"]),
        (LOOP.replace(alpha="linear"), LOOP_DATA, "adamw", ["loops of factor 1/L fell as L^(-0.26)"]),
    ],
)
def test_warnings_come_where_the_trials_failed_and_nowhere_else(net, data, optimizer, words):
    found, sentences = started(net, data, optimizer=optimizer)
    assert len(sentences) == len(words)
    for sentence, expected in zip(sentences, words, strict=True):
        assert expected in sentence
    assert found.attrs["warnings"] == "; ".join(sentences)
    of, in_steps = {
        "sgd": ("descent", "0.01 +- 0.03"),
        "muon": ("Muon with AdamW", "-0.35 +- 0.04"),
        "muon-adamw": ("Muon with AdamW", "-0.35 +- 0.04"),
    }.get(optimizer, ("AdamW", "-0.15 +- 0.03"))
    expected = f"tuned rates of {of}, in nets of 4 units, went as T^({in_steps}) with batches of 16"
    assert expected in found.attrs["premises"]
    of_batches = isinstance(net, mf.Transformer)
    assert ("as many steps as in the trials, of batches of 16" in found.attrs["premises"]) is not of_batches


@pytest.mark.parametrize(
    ("optimizer", "batch_size", "factors"),
    [
        ("sgd", 64, ("1.6", "1.7")),
        ("sgd", 4, ("0.61", "0.57")),
        ("sgd", 32, ()),
        ("adamw", 64, ("1.7", "1")),
        ("lion", 64, ("1.7", "1")),
        ("adamw", 32, ()),
        ("muon", 64, ("1.6", "0.76")),
        ("muon-adamw", 64, ("1.6", "0.76")),
    ],
)
def test_batches_unlike_those_of_the_trials_are_said_to_move_the_rate(optimizer, batch_size, factors):
    _, sentences = started(optimizer=optimizer, batch_size=batch_size)
    said = [sentence for sentence in sentences if "trials had batches of 16" in sentence]
    assert len(said) == bool(factors)
    if factors:
        short, long = factors
        assert f"and this one has {batch_size:,}: " in said[0]
        assert (
            f"is {short} times this rate after 128 steps, and {long} times after 2,048 (E3a to E3c, docs/findings.md)"
            in said[0]
        )
        assert ("how that in noise goes with the batch was not tried" in said[0]) is (optimizer == "muon-adamw")
        assert ("if that goes on beyond them, which was not tried" in said[0]) is (batch_size == 4)


def test_batches_beyond_those_that_were_tried_are_said_to_be():
    beyond = "if that goes on beyond them, which was not tried"
    assert beyond in other_batch("sgd", 257, tokens=False)
    assert beyond not in other_batch("sgd", 256, tokens=False) != ""


def test_nothing_is_said_of_the_batches_of_transformers():
    _, sentences = started(mf.Transformer(**TOKENS, norm="post"), TOKEN_DATA, batch_size=2)
    assert not [sentence for sentence in sentences if "batches of 16" in sentence]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimizer": "shampoo"}, "no trial has a constant for shampoo: there are starting rates for 'sgd'"),
        ({"optimizer": "muon_kimi-adamw"}, "constant for muon_kimi-adamw: .*, 'muon', 'muon-adamw' .descent without"),
        (
            {"net": mf.Transformer(**TOKENS, norm="pre"), "data": TOKEN_DATA, "optimizer": "muon-adamw"},
            "no trial has a constant for Transformers under muon-adamw; take another optimizer",
        ),
        (
            {"optimizer": Hybrid(Muon(), AdamW())},
            "the first step of muon-adamw names no rate: give the name 'muon-adamw-in-noise'",
        ),
        ({"optimizer": SGD(0.8)}, r"no trial has a constant for SGD\(momentum=0.8\)"),
        ({"optimizer": "adam"}, "optimizer is 'adam'; choose one of"),
        ({"optimizer": 5}, "optimizer is 5; give a name"),
        (
            {"optimizer": "muon", "epsilon": 1e-8},
            "epsilon is 1e-08, and muon divides no weight of this net by the size",
        ),
        ({"batch_size": 65}, "batch_size is 65; it must be at most 64"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"data": (np.zeros((64, 8)), DATA[1])}, "nothing moves in any of the 16 draws, .*: all inputs are 0"),
        (
            {"net": mf.MLP(depth=4, width=2, input_width=8, outputs=3), "batch_size": 2},
            "half or more of the drawn nets do not move",
        ),
        ({"net": mf.MLP(depth=2, width=4)}, "inputs"),
        ({"net": "net"}, "net is of type"),
        ({"data": 5}, "data"),
    ],
)
def test_bad_input_is_refused_in_one_line(options, words):
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        started(**options)
    assert "\n" not in str(refusal.value)


def test_an_epsilon_that_eats_the_step_is_warned_of():
    assert started(optimizer="adamw", epsilon=1e-12)[1] == started(optimizer="muon-adamw", epsilon=1e-12)[1] == []
    (sentence,) = started(optimizer="adamw", epsilon=10.0)[1]
    assert "epsilon 10 leaves 0.00" in sentence


def test_wide_nets_are_warned_of_under_descent():
    """Plain ones, by units and not by inputs; AdamW's constant kept its factor there."""
    wide, narrow = (mf.MLP(depth=2, width=width, input_width=8, outputs=3) for width in (128, 96))
    many = mf.MLP(depth=2, width=16, input_width=200, outputs=3)
    images = RNG.standard_normal((64, 200)), DATA[1]

    def told(**options):
        return [each for each in started(**options)[1] if "at width 256" in each]

    assert len(told(net=wide)) == len(told(net=wide, optimizer="sgd_momentum")) == 1
    assert not [*told(net=narrow), *told(net=many, data=images), *told(net=wide, optimizer="adamw")]
    sites = mf.ConvNet(depth=2, channels=32, grid=(3, 3), kernel=(3, 3), input_channels=1, outputs=3)
    assert len(told(net=sites, data=IMAGE_DATA)) == 1
    assert not told(net=sites.replace(channels=31), data=IMAGE_DATA)
    for optimizer in ("adamw", "lion"):
        said = [
            started(net=net, data=IMAGE_DATA, optimizer=optimizer)[1] for net in (sites, sites.replace(channels=31))
        ]
        assert [sum("0.59 and 0.67 times" in each for each in sentences) for sentences in said] == [1, 0]


def test_wide_residual_nets_are_named_by_the_width_of_the_trials_under_descent():
    """As tuned rates stayed over the width (claim E1j), and the outputs' scale does not."""
    wide, trial = (mf.ResidualMLP(depth=2, width=width, stem=1, input_width=8, outputs=3) for width in (128, 64))
    for optimizer in ("sgd", "sgd_momentum"):
        found, said = started(net=wide, optimizer=optimizer)
        expected, _ = started(net=trial, optimizer=optimizer)
        assert float(found["rate"]) == float(expected["rate"])
        assert "scales are of the net with width=64, the width of the trials" in found.attrs["premises"]
        assert not [each for each in said if "width" in each]
        assert "stays over the width" not in expected.attrs["premises"]
    assert float(started(net=wide, optimizer="adamw")[0]["rate"]) != float(
        started(net=trial, optimizer="adamw")[0]["rate"]
    )
    sites = mf.ResidualConvNet(depth=2, channels=20, grid=(3, 3), kernel=(3, 3), stem=1, input_channels=1, outputs=3)
    rates = [float(started(net=net, data=IMAGE_DATA)[0]["rate"]) for net in (sites, sites.replace(channels=16))]
    assert rates[0] == rates[1]
    of_inputs = mf.ResidualMLP(depth=2, width=80, outputs=3)
    inputs = RNG.standard_normal((64, 80)), DATA[1]
    found, _ = started(net=of_inputs, data=inputs)
    assert "stays over the width" not in found.attrs["premises"]


def of_widths(*widths, depth=2, build=mf.ResidualMLP, **options):
    return [build(depth=depth, width=width, input_width=8, outputs=3, **options) for width in widths]


def carried(*pair, **options):
    """As `explain_transfer` has it on data, by few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mf.explain_transfer(0.1, *pair, **{"data": DATA, "draws": 4} | options)


@pytest.mark.parametrize(
    ("optimizer", "words"), [("sgd", "leave the rate over widths"), ("adamw", "give of='relative' over widths")]
)
def test_outputs_that_carry_over_widths_are_warned_of(optimizer, words):
    nets = of_widths(16, 32, stem=1)

    def told(*pair, **options):
        return [each for each in carried(*pair, optimizer=optimizer, **options).warnings if "width 64 to 256" in each]

    (sentence,) = told(*nets, of="outputs")
    assert words in sentence
    assert not [*told(*nets), *told(nets[0], nets[0].replace(depth=4), of="outputs")]
    assert bool(told(*nets, of="relative")) is (optimizer == "sgd")


def test_widths_that_no_trial_has_tried_are_warned_of():
    """Of plain nets and of hybrids; on data, where the widths differ."""

    def told(*pair, **options):
        return [each for each in carried(*pair, **options).warnings if "their width" in each]

    plain, residual = of_widths(16, 32, build=mf.MLP), of_widths(16, 32, stem=1)
    (sentence,) = told(*plain, optimizer="adamw")
    assert sentence.startswith("how tuned rates of such nets go with their width under adamw was not tried")
    (sentence,) = told(*residual, optimizer="muon-adamw")
    assert "under muon-adamw was not tried" in sentence
    assert not told(plain[0], plain[0].replace(depth=4))
    assert not told(*residual, optimizer="adamw")


def test_nets_differ_in_width_by_any_of_their_layers():
    sites = {"grid": (4, 4), "kernel": (3, 3), "stem": 1, "input_channels": 1}
    dense = mf.DenseNet(depth=2, growth=4, width=8)
    staged = mf.StagedResidualConvNet(depth=4, stages=2, channels=(4, 4), padding="zero", **sites)
    plain = mf.MLP(depth=3, width=(8, 8, 8))
    for start, end in (
        (dense, dense.replace(growth=16)),
        (staged, staged.replace(channels=(4, 16))),
        (plain, plain.replace(width=(8, 32, 32))),
        of_widths(8, 16, build=mf.MLP),
    ):
        assert differ_in_width(start, end)
        assert differ_in_width(end, start)
    same = (dense, dense.replace(depth=3)), (plain, mf.MLP(depth=5, width=8)), (staged, staged.replace(depth=6))
    assert not [pair for pair in same if differ_in_width(*pair)]
    assert differ_in_width(*map(mf.with_batch_normalisation, of_widths(8, 16, build=mf.MLP)))


@pytest.mark.parametrize(
    ("optimizer", "kind", "residual", "of", "told"),
    [
        ("adamw", TRANSFORMER, False, "last", "went by -1.66"),
        ("muon-adamw-in-noise", TRANSFORMER, False, "last", "went by -0.54"),
        ("muon-adamw", TRANSFORMER, False, "relative", "went by -0.54"),
        ("lion", TRANSFORMER, False, "relative", "under lion was not tried"),
        ("sgd", TRANSFORMER, False, "outputs", "under descent was not tried"),
        ("adamw", CONNECTED, True, "outputs", "give of='relative'"),
        ("adamw", CONNECTED, True, "absolute", "give of='relative'"),
        ("adamw", CONNECTED, False, "relative", "under adamw was not tried"),
        ("sgd", CONVOLUTIONAL, True, "relative", "leave the rate"),
        ("muon", CONNECTED, True, "outputs", "under muon was not tried"),
    ],
)
def test_what_trials_say_over_the_width(optimizer, kind, residual, of, told):
    assert told in against_width(of, optimizer, kind, residual=residual)


@pytest.mark.parametrize(
    ("optimizer", "kind", "widths", "branch", "told"),
    [
        ("adamw", CONVOLUTIONAL, (16, 32), 1, False),
        ("sgd", CONNECTED, (64, 256), 1, False),
        ("sgd", CONNECTED, (64, 512), 1, True),
        ("sgd", CONVOLUTIONAL, (16, 64), 1, True),
        ("sgd", CONNECTED, (64, 256), 3, True),
        ("sgd_momentum", CONNECTED, (64, 256), 1, True),
        ("lion", CONNECTED, (64, 256), 1, True),
    ],
)
def test_rates_over_widths_that_trials_did_not_follow_are_warned_of(optimizer, kind, widths, branch, told):
    assert bool(beyond_widths(optimizer, kind, widths, branch=branch)) is told


def test_rates_that_stay_over_widths_say_where_that_was_not_tried():
    for widths, depth, told in (((64, 128), 1, False), ((64, 512), 1, True), ((64, 128), 3, True)):
        nets = of_widths(*widths, stem=1, block_depth=depth)
        transfer = carried(*nets, optimizer="sgd")
        assert transfer.rate == 0.1
        assert bool([each for each in transfer.warnings if "this is beyond" in each]) is told


def test_gpts_over_the_width_are_warned_of_what_they_did():
    sizes = {"depth": 1, "heads": 2, "tokens": 4, "vocabulary": 5, "outputs": 5, "head": "fan_in", "readout": "every"}
    pair = [mf.Transformer(width=width, causal=True, **sizes) for width in (8, 16)]
    tokens = RNG.integers(5, size=(2, 16, 4))
    data = np.eye(5)[tokens[0]].swapaxes(1, 2), tokens[1]
    said = carried(*pair, data=data, optimizer="adamw").warnings
    assert [each for each in said if "went by -1.66" in each]


def test_residual_nets_of_two_widths_are_warned_of_without_data():
    """As descent's rates stay, which only transfers on data know (claim E1j)."""
    start, end = of_widths(16, 32, stem=1)
    found = mf.explain_transfer(0.1, start, end)
    assert found.rate < 0.09
    assert any("keep the rate over the width, or give data=" in each for each in found.warnings)
    kept = mf.explain_transfer(0.1, start, end, rule="power_law")
    assert (kept.rate, [each for each in kept.warnings if "over the width" in each]) == (0.1, [])
    deeper = mf.explain_transfer(0.1, start, start.replace(depth=4))
    assert not [each for each in deeper.warnings if "over the width" in each]
    signs = mf.explain_transfer(0.1, start, end, optimizer="adamw", of="outputs")
    assert any("give of='relative' over widths" in each for each in signs.warnings)
    assert not mf.explain_transfer(0.1, start, start.replace(depth=4), optimizer="adamw", of="outputs").warnings
    plain = mf.explain_transfer(0.1, *of_widths(16, 32, build=mf.MLP))
    assert not [each for each in plain.warnings if "over the width" in each]


@pytest.mark.parametrize(("alpha", "tuned"), [(1.0, ("-0.26", "-0.31")), (0.5, ("-0.75", "-1.69")), (0.75, ())])
def test_loops_are_warned_of_without_data(alpha, tuned):
    """Their tuned rates left one step under AdamW and descent (claim E1d), over steps and not over widths."""
    loop = mf.TiedLoop(depth=4, width=64, alpha=alpha)
    sentences = mf.explain_transfer(0.1, loop, loop.replace(depth=16)).warnings
    assert all("GivenPower.through" in sentence for sentence in sentences)
    for sentence, slope in zip(sentences, tuned or ["this one was not"], strict=True):
        assert (f"fell as L^({slope})" if tuned else slope) in sentence
    (over_width,) = mf.explain_transfer(0.1, loop, loop.replace(width=128)).warnings
    assert "with their width under AdamW was not tried" in over_width


VIT = {"depth": 4, "width": 16, "heads": 2, "tokens": 4, "outputs": 5, "head": "fan_in"}
GPT = VIT | {"vocabulary": 5, "causal": True, "readout": "every"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (GPT, ("fell as L^(-0.64)", "with 1/(2 L) they nearly stayed")),
        (GPT | {"scaling": "multiplier_linear"}, ("with 1/(2 L) they nearly stayed",)),
        (GPT | {"scaling": "multiplier_sqrt", "tied": True}, ("looped GPTs",)),
        (VIT, ("fell as L^(-0.64)",)),
        (VIT | {"scaling": "multiplier_linear"}, ("with 1/(2 L) they nearly stayed",)),
    ],
)
def test_transformers_are_told_of_those_like_them(options, told):
    """Of pre-norm ones without factors on branches, of GPTs of characters, which had some, and of looped ones."""
    said = departures(mf.Transformer(**options), "adamw")
    assert len(said) == len(told)
    assert all(any(words in each for each in said) for words in told)


@pytest.mark.parametrize(("layers", "slope", "first"), [(2, "-0.27", "L^(0.20) to"), (3, "-0.41", "L^(1.26) to")])
def test_residual_convolutional_nets_with_deep_branches_leave_one_step(layers, slope, first):
    """With data and without it, whose rule is of descent; under other optimizers they were not tried."""
    net = mf.ResidualConvNet(depth=4, grid=(4,), kernel=(3,), channels=16, block_depth=layers, readout="convolution")
    (said,) = departures(net, "sgd")
    assert f"fell as L^({slope}) under sgd" in said
    assert f"says {first}" in said
    assert [each for each in mf.explain_transfer(0.1, net, net.replace(depth=16)).warnings if each.startswith(said)]
    for optimizer in ("adamw", "lion"):
        (untold,) = departures(net, optimizer)
        assert f"branches of {'two' if layers == 2 else 'three'} layers go over depth was tried under descent" in untold
    assert not any(departures(net.replace(block_depth=1), name) for name in ("sgd", "adamw", "lion"))


@pytest.mark.parametrize(("layers", "low", "high"), [(2, "1.4", "3.9"), (3, "2.9", "7.4")])
def test_starting_rates_of_deep_convolutional_branches_are_too_high(layers, low, high):
    """Under descent, with branches of two and three layers and variance 1/K, and no other."""
    net = mf.ResidualConvNet(depth=4, grid=(4,), kernel=(3,), channels=16, block_depth=layers)
    (said,) = misses(net, "sgd")
    assert f"this rate would have been {low} to {high} times the tuned one" in said
    others = net.replace(block_depth=1), net.replace(block_depth=4), net.replace(scaling="multiplier_sqrt")
    assert not any(misses(other, "sgd") for other in others)
    assert not misses(net, "adamw")


def test_residual_convolutional_nets_are_told_of_trials_without_data():
    """Over the depth, of variance 1/K and branches of one layer, and of no other."""
    sizes = {"grid": (4,), "kernel": (3,), "channels": 64, "readout": "convolution"}
    net = mf.ResidualConvNet(depth=4, **sizes)
    (sentence,) = mf.explain_transfer(0.1, net, net.replace(depth=16)).warnings
    assert "up to 2 times too large" in sentence
    others = net.replace(scaling="multiplier_sqrt"), mf.ResidualMLP(depth=4, width=64)
    for other in others:
        assert not [said for said in mf.explain_transfer(0.1, other, other.replace(depth=16)).warnings if "1/K" in said]


def test_nets_that_differ_in_more_than_sizes_are_told_so():
    net = mf.ResidualMLP(depth=4, width=64)
    for change, told in (({"scaling": "none"}, "scaling"), ({"activation": "gelu"}, "activation"), ({"depth": 8}, "")):
        for options in ({}, {"optimizer": "adamw"}):
            said = mf.explain_transfer(0.1, net, net.replace(**change), **options).warnings
            kinds = [each for each in said if each.startswith("the nets differ in")]
            assert [each.split(",")[0] for each in kinds] == ([f"the nets differ in {told}"] if told else [])


def test_plain_nets_are_told_that_widths_were_not_tried():
    net = mf.MLP(depth=4, width=512)
    (sentence,) = mf.explain_transfer(0.1, net, net.replace(width=2048)).warnings
    assert "with their width under descent was not tried" in sentence
    assert not mf.explain_transfer(0.1, net, net.replace(depth=8)).warnings


def test_residual_nets_with_batch_normalisation_go_by_the_outputs():
    """As those without; plain ones by the relative change, with it and without."""
    start = of_widths(16, stem=1)[0]
    normalised = [mf.with_batch_normalisation(net) for net in (start, start.replace(depth=4))]
    transfer = carried(*normalised, optimizer="adamw", batch_size=16)
    assert transfer.of == "outputs"
    assert [each for each in transfer.warnings if "is open (E1c)" in each]
    assert not [each for each in carried(start, start.replace(depth=4), optimizer="adamw").warnings if "E1c" in each]
    plain = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
    normalised = [mf.with_batch_normalisation(net) for net in (plain, plain.replace(depth=4))]
    assert carried(*normalised, batch_size=16).of == "relative"


@pytest.mark.parametrize(
    ("optimizer", "normalise", "told"),
    [("lion", True, True), ("lion", False, False), ("adamw", True, False), ("sgd", True, False)],
)
def test_the_constant_of_lion_misses_batch_normalised_convolutional_nets(optimizer, normalise, told):
    net = mf.ResidualConvNet(depth=2, stem=1, channels=4, grid=(3, 3), kernel=(3, 3), input_channels=1, outputs=3)
    net = mf.with_batch_normalisation(net) if normalise else net
    _, sentences = started(net, IMAGE_DATA, optimizer=optimizer, batch_size=16)
    assert bool([each for each in sentences if "0.26 to 0.45 times the tuned" in each]) is told


def test_over_widths_rates_of_residual_nets_stay_under_descent():
    """And go with the depth as the outputs at the width of the first; those that are asked for otherwise do not."""
    start, end = of_widths(16, 32, stem=1)
    assert carried(start, end).rate == 0.1
    assert carried(start, end).error == 0
    deeper, wider = start.replace(depth=5), end.replace(depth=5)
    over_depth = carried(start, deeper)
    for optimizer in ("sgd", "sgd_momentum"):
        both = carried(start, wider, optimizer=optimizer)
        assert (both.of, both.rate, both.error) == ("outputs", over_depth.rate, over_depth.error)
        assert [each for each in both.premises if "stays over the width" in each]
    assert not [each for each in over_depth.premises if "stays over the width" in each]
    assert carried(start, end, of="outputs").rate < 0.09


def test_over_widths_rates_of_residual_nets_go_by_the_relative_change_under_signs():
    start, end = of_widths(16, 32, stem=1)
    for optimizer in ("adamw", "lion"):
        found = carried(start, end, optimizer=optimizer)
        assert (found.of, found.rate) == ("relative", carried(start, end, optimizer=optimizer, of="relative").rate)
        assert carried(start, start.replace(depth=4), optimizer=optimizer).of == "outputs"
    assert carried(start, end, optimizer="muon-adamw").of == "last"


def test_over_widths_other_nets_keep_their_change():
    """And are warned of where they go by the outputs, as only residual nets like those of the trials were tried."""
    plain = of_widths(16, 32, build=mf.MLP)
    assert carried(*plain).of == "relative"
    assert carried(*plain).rate != 0.1
    staged = {"stages": 2, "stem": 1, "grid": (3, 3), "kernel": (3, 3), "input_channels": 1, "padding": "zero"}
    others = {
        "stages": [mf.StagedResidualConvNet(depth=4, channels=size, outputs=3, **staged) for size in (4, 8)],
        "dense": [mf.DenseNet(depth=2, growth=4, width=size, stem=1, input_width=8, outputs=3) for size in (8, 16)],
        "chain": [mf.with_dropout(net, 0.1) for net in of_widths(8, 16, stem=1)],
    }
    for name, nets in others.items():
        for optimizer in ("sgd", "adamw"):
            data = IMAGE_DATA if name == "stages" else DATA
            found = carried(*nets, optimizer=optimizer, data=data)
            assert (found.of, found.rate) == (
                "outputs",
                carried(*nets, optimizer=optimizer, data=data, of="outputs").rate,
            )
            assert [each for each in found.warnings if "other nets were not tried" in each]
            assert not [each for each in found.premises if "stays over the width" in each]
    deeper = [others["dense"][0], others["dense"][0].replace(depth=4)]
    assert not [each for each in carried(*deeper).warnings if "width 64 to 256" in each]


def test_over_widths_transformers_are_not_like_the_nets_of_the_trials():
    streams = [mf.Transformer(depth=1, width=width, tokens=4, heads=2, outputs=3) for width in (8, 16)]
    assert widens(*of_widths(8, 16, stem=1))
    assert not widens(*streams)
    assert not any(rate_stays(*streams, optimizer) for optimizer in ("sgd", "adamw"))


def test_a_momentum_of_ones_own_is_carried_by_a_change_that_is_asked_for():
    """Its first step is that of descent, and trials had momentum of 0.9 alone, as PyTorch models are told."""
    start, end = of_widths(16, 32, stem=1)
    with pytest.raises(ValueError, match=r"no trial has trained by SGD\(momentum=0.5\)"):
        carried(start, end, optimizer=SGD(0.5))
    assert [each for each in carried(start, end, optimizer=SGD(0.5), of="outputs").warnings if "64 to 256" in each]


def test_wide_nets_of_other_families_take_their_own_step():
    sizes = {"depth": 3, "channels": 8, "stages": 3, "stem": 1, "input_channels": 1, "outputs": 3, "padding": "zero"}
    staged = mf.StagedResidualConvNet(grid=(4, 4), kernel=(3, 3), **sizes)
    dense = mf.DenseNet(depth=6, growth=12, width=16, stem=1, input_width=8, outputs=3)
    images = RNG.standard_normal((32, 1, 4, 4)), IMAGE_DATA[1]
    for net, data in ((dense, DATA), (staged, images)):
        found, _ = started(net=net, data=data)
        assert "stays over the width" not in found.attrs["premises"]


def test_a_muon_of_ones_own_is_muon():
    assert started(optimizer=Muon(0.9, None))[0].attrs["scale_over_rate"] == CALIBRATIONS["muon"][CONNECTED].ratio


REPEATS = 2000


def dataset(values):
    found = quantiles(values, np.array(SHARES))
    numbers = {"eta_quantile": ("quantile", found.value), "eta_quantile_stderr": ("quantile", found.stderr)}
    return xr.Dataset(numbers, attrs={"draws": len(values)})


def log_normal(draws, spread):
    """Datasets of runs of log-normal draws, the true median of which is 1."""
    rng = np.random.default_rng(draws)
    return [dataset(np.exp(spread * rng.standard_normal(draws))) for _ in range(REPEATS)]


def held(medians, errors):
    """The share of repeats whose median is within two errors of the truth, by their logarithms."""
    return np.mean(np.abs(np.log(medians)) <= 2 * errors / medians)


@pytest.mark.parametrize("draws", [16, 32, 64, 512])
@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_two_errors_hold_the_median(draws, spread):
    """Between 0.92 and 0.97 of the repeats; the error of `quantiles` holds fewer at 32 draws, 0.87, and is left."""
    runs = log_normal(draws, spread)
    assert 0.92 < held(*np.transpose([median_over_draws(run, "eta") for run in runs])) < 0.97
    if draws == 32:
        middle = [run.isel(quantile=1) for run in runs]
        assert held(*np.transpose([(run["eta_quantile"], run["eta_quantile_stderr"]) for run in middle])) < 0.9


def test_the_error_is_known_as_well_as_the_judges_say():
    draws = 64
    medians, errors, shares = np.transpose(
        [statistic_of(run, "eta", "median") for run in log_normal(draws, spread=0.3)]
    )
    assert errors.mean() == pytest.approx(medians.std(), rel=0.1)
    # As many draws as are said to carry it: those of a standard deviation of equal scatter.
    freedom = 1 / (2 * np.var(np.log(errors / medians)))
    assert freedom == pytest.approx(OF_OUTER_QUANTILES * draws, rel=0.15)
    assert set(shares) == {1 / draws}


def test_nets_that_nothing_moves_leave_no_error_and_at_last_no_median():
    values = np.exp(np.random.default_rng(0).standard_normal(40))
    for dead, has_error in ((3, True), (5, False)):
        values[:dead] = np.inf
        median, error = median_over_draws(dataset(values), "eta")
        assert np.isfinite(median)
        assert np.isfinite(error) == has_error
    values[:21] = np.inf
    with pytest.raises(ValueError, match="half or more of the drawn nets do not move"):
        median_scale(dataset(values), "eta")
