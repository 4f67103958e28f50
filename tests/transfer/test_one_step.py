"""A rate carried by the first step of the optimizer that trains: exponents, theory beside draws, and refusals."""

import json
import math
import warnings

import numpy as np
import pytest

import meanfield as mf
from meanfield.optimizers import SGD, AdamW
from meanfield.quantities.step_scales import median_scale
from meanfield.transfer import GivenPower
from meanfield.transfer.trials import SCALES
from tests.statistics import consistent

RNG = np.random.default_rng(0)
INPUTS = RNG.standard_normal((256, 64))
CLASSES, WHITE = RNG.integers(0, 10, 256), RNG.standard_normal((256, 10))
BLOCKS = [mf.ResidualMLP(depth=depth, width=64, scaling="multiplier_sqrt") for depth in (4, 16)]
ON_CLASSES = {"data": (INPUTS, CLASSES), "batch_size": 16, "draws": 64}
SIZES = {"depth": 16, "width": 64}


def explained(*nets, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        return mf.explain_transfer(1.0, *nets, **options)


@pytest.mark.parametrize("of", SCALES)
def test_branches_times_root_k_carry_by_another_power_under_each_optimizer(of):
    """Slopes -1/2 of AdamW and about -1/5 of descent, which tends to 0; a rate by the other's is off by 1.4 or more."""
    slopes, errors = {}, {}
    for optimizer in ("sgd", "adamw"):
        carried = explained(*BLOCKS, optimizer=optimizer, of=of, **ON_CLASSES | {"draws": 512})
        slopes[optimizer], errors[optimizer] = math.log(carried.rate, 4), carried.error / math.log(4)
    expected = {"absolute": -0.5, "relative": -0.5, "last": -0.6, "outputs": -0.5}[of]
    assert consistent(slopes["adamw"] - expected, errors["adamw"], 512, 0.06)
    assert not consistent(slopes["sgd"] - expected, errors["sgd"], 512, 0.06)
    assert 4 ** (slopes["sgd"] - slopes["adamw"]) > 1.4


@pytest.mark.parametrize("of", SCALES)
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_theory_carries_plain_nets_as_draws_do(optimizer, of):
    """On white data with labels of variance 1, one sample a batch; the median net and the width are granted 3 L/n."""
    nets = [mf.MLP(depth=depth, width=64) for depth in (3, 9)]
    predicted = explained(*nets, optimizer=optimizer, of=of)
    drawn = explained(*nets, optimizer=optimizer, of=of, data=(INPUTS, WHITE), loss="squared", batch_size=1, draws=512)
    assert (predicted.rule, predicted.error) == ("one_step", 0)
    assert consistent(math.log(drawn.rate / predicted.rate), drawn.error, 512, 3 * 9 / 64)
    other = explained(*nets, optimizer=optimizer, of="outputs" if of == "last" else "last")
    assert abs(math.log(other.rate / predicted.rate)) > 0.15


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(("scaling", "power"), [("init", -1), ("multiplier_sqrt", -0.5), ("multiplier_linear", 0)])
def test_theory_carries_residual_nets_by_the_laws_of_signs_and_polar_factors(scaling, power, optimizer):
    """K^-1, K^-1/2 and K^0 from 16 to 64 blocks, where descent has K^-1, K^0 and K^1: off by 1.5 or more."""
    nets = [mf.ResidualMLP(depth=depth, width=4096, scaling=scaling) for depth in (16, 64)]
    assert math.log(explained(*nets, optimizer=optimizer, of="relative").rate, 4) == pytest.approx(power, abs=0.06)
    descent = math.log(explained(*nets, rule="finite_depth").rate, 4)
    if scaling != "init":
        assert 4 ** abs(descent - power) > 1.5


def test_signs_and_gradients_differ_in_width():
    """Rates of AdamW fall as 1/n, those of Muon stay: one optimizer's rule is off by the factor of the widths."""
    nets = [mf.MLP(depth=4, width=width) for width in (128, 512)]
    assert explained(*nets, optimizer="adamw").rate == pytest.approx(1 / 4, rel=0.02)
    assert explained(*nets, optimizer="muon").rate == pytest.approx(1, rel=0.02)


def test_descent_in_all_layers_is_what_it_was():
    nets = [mf.MLP(depth=depth, width=512) for depth in (3, 6)]
    plain = explained(*nets)
    assert plain == explained(*nets, optimizer="sgd", of="absolute", data=None)
    assert plain.rates == explained(*nets, optimizer=SGD(0.0)).rates
    assert (plain.rule, plain.optimizer, plain.of) == ("finite_depth", "sgd", "absolute")
    drawn = explained(*BLOCKS, **ON_CLASSES)
    assert (drawn.rule, drawn.optimizer, drawn.of) == ("one_step", "sgd", "outputs")


def test_draws_are_those_of_step_scales():
    drawn = [
        mf.step_scales(net, (INPUTS, CLASSES), optimizer=AdamW(), batch_size=16, draws=8, seed=3) for net in BLOCKS
    ]
    carried = explained(*BLOCKS, optimizer=AdamW(), of="last", **ON_CLASSES | {"draws": 8, "seed": 3})
    (_, start, _), (_, end, _) = (scales["last_learning_rate_scale_quantile"].values for scales in drawn)
    assert carried.rate == pytest.approx(end / start)
    errors = [median_scale(scales, "last_learning_rate_scale")[1] for scales in drawn]
    assert carried.error == pytest.approx(math.hypot(*errors))


@pytest.mark.parametrize("of", ["relative", "last", "outputs"])
@pytest.mark.parametrize("nets", [BLOCKS, [mf.MLP(depth=depth, width=512, outputs=4) for depth in (2, 4)]])
def test_descent_moves_layers_relative_to_themselves_by_theory(nets, of):
    """As drawn networks do, whose draws have labels of the same law."""
    name = f"{of.removesuffix('s')}_learning_rate_scale"
    carried = explained(*nets, of=of).rate
    start, end = (mf.predict(net, level="mean_field", scales=True)[name] for net in nets)
    assert carried == pytest.approx(float(end / start))
    drawn = [mf.simulate(net, draws=48, seed=0, measure=mf.Energies(scales=True)) for net in nets]
    error = math.hypot(*(float(data[f"{name}_stderr"] / data[name]) for data in drawn))
    assert abs(math.log(carried * float(drawn[0][name] / drawn[1][name]))) < 3 * error + 0.02


def test_premises_name_optimizer_and_scale():
    carried = explained(*BLOCKS, optimizer="shampoo", of="outputs", **ON_CLASSES)
    assert "tuned rates of shampoo keep their ratio to the rate at which its first step moves the outputs by 1" in (
        carried.premises
    )
    assert any("no trial has trained nets by shampoo" in premise for premise in carried.premises)
    assert any("batches of 16 samples of the given data, cross_entropy loss" in premise for premise in carried.premises)
    hybrid = explained(*BLOCKS, optimizer="muon-adamw", **ON_CLASSES)
    assert "the weights of both optimizers take one rate" in hybrid.premises
    assert json.dumps(carried.reason) == '"first step of shampoo, outputs: median of draws on data"'


TOKENS = [mf.Transformer(depth=depth, width=8, heads=2, tokens=4, outputs=3) for depth in (1, 2)]
TOKEN_DATA = RNG.standard_normal((32, 8, 4)), RNG.integers(0, 3, 32)


def test_nets_that_trials_speak_against_carry_with_a_warning():
    with pytest.warns(mf.PremiseWarning, match="pre-norm Transformers fell as"):
        mf.transfer_learning_rate(0.01, *TOKENS, optimizer="adamw", data=TOKEN_DATA, draws=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posts = [net.replace(norm="post") for net in TOKENS]
        mf.transfer_learning_rate(0.01, *posts, optimizer="adamw", data=TOKEN_DATA, draws=4)
        wider = TOKENS[0].replace(norm="pre", ffn=5)
        mf.transfer_learning_rate(0.01, TOKENS[0], wider, optimizer="adamw", data=TOKEN_DATA, draws=4)


def test_what_no_trial_has_trained_is_carried_by_a_scale_that_is_asked_for():
    """As `meanfield.torch.carry` has it: a rate of one's own optimizer needs the scale to be chosen."""
    with pytest.raises(ValueError, match="which scale names rates of Transformers under muon-adamw: tune at two"):
        mf.transfer_learning_rate(0.01, *TOKENS, optimizer="muon-adamw", data=TOKEN_DATA, draws=4)
    with pytest.raises(ValueError, match=r"no trial has trained by shampoo.*give of"):
        mf.transfer_learning_rate(0.01, *BLOCKS, optimizer="shampoo", **ON_CLASSES)
    assert explained(*TOKENS, optimizer="muon-adamw", of="last", data=TOKEN_DATA, draws=4).rate > 0


def test_a_rise_without_a_stem_is_warned_of():
    """Under AdamW rates of branches times K^(-3/2) rise, and those of K^(-1/2) fall."""
    rising = [net.replace(scaling=1.5) for net in BLOCKS]
    for nets, rises in ((rising, True), (rising[::-1], True), (BLOCKS, False)):
        warned = explained(*nets, optimizer="adamw", of="last", **ON_CLASSES).warnings
        assert any("stops every rise" in sentence for sentence in warned) == rises
    stem = [net.replace(stem=1, input_width=64) for net in rising]
    assert not explained(*stem, optimizer="adamw", of="last", **ON_CLASSES).warnings


@pytest.mark.parametrize(
    ("nets", "options", "words"),
    [
        (BLOCKS, {"optimizer": "adam"}, "optimizer is 'adam'; choose one of 'sgd'"),
        (BLOCKS, {"optimizer": None}, "optimizer is None; give a name"),
        (BLOCKS, {"of": "all"}, "of is 'all'; choose one of 'absolute', 'relative', 'last', 'outputs'"),
        (BLOCKS, {"draws": 8}, "draws is for draws on data, and no data are given: give data="),
        (BLOCKS, {"draws": 8, "seed": 1}, "draws, seed are for draws on data"),
        (BLOCKS, {"darws": 8}, "'darws' is no option here; those of draws on data are loss"),
        (TOKENS, {"of": "relative"}, "no theory has this step of sgd.*nets of layers.*give data="),
        (BLOCKS, {"optimizer": "sophia"}, "no theory has this step of sophia.*give data="),
        (TOKENS, {"optimizer": "adamw"}, "no theory has this step of adamw.*give data="),
        (BLOCKS, {"optimizer": "adamw", "rule": "finite_depth"}, "rule 'finite_depth' is given beside optimizer"),
        (BLOCKS, {"optimizer": "adamw", "rule": GivenPower(-0.5)}, "rule 'given_power' is given beside optimizer"),
        (BLOCKS, {"data": (INPUTS, CLASSES), "rule": "unchanged"}, "rule 'unchanged' is given beside"),
        (BLOCKS, {"data": (INPUTS[:, :5], CLASSES)}, "inputs"),
        (BLOCKS, {"data": (INPUTS, CLASSES + 1)}, "output"),
        (BLOCKS, {"data": (INPUTS, CLASSES), "batch_size": 300}, "batch_size is 300; it must be at most 256"),
        (BLOCKS, {"data": (0 * INPUTS, CLASSES)}, "nothing moves in any of the 32 draws"),
        (BLOCKS, {"data": 5}, "data"),
        ([BLOCKS[0], mf.MLP(**SIZES)], {"optimizer": "adamw"}, "the nets are of two families"),
    ],
)
def test_bad_input_is_refused_in_one_line(nets, options, words):
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        explained(*nets, **options)
    assert "\n" not in str(refusal.value)
