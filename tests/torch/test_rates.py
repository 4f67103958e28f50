"""Rates of models: those of the library for the same nets, and what is refused or warned of."""

import doctest
import warnings
from functools import partial

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402

import meanfield.torch as mft  # noqa: E402
from meanfield.torch.rates import kind_of  # noqa: E402
from meanfield.torch.scales import width_of  # noqa: E402
from meanfield.transfer import SCALES, step_that_names  # noqa: E402
from tests.torch import models, twins  # noqa: E402
from tests.torch.test_twins import FAMILIES, batches_of, data_of  # noqa: E402

cross_entropy = nn.functional.cross_entropy
KINDS = {"mlp": "connected", "residual": "connected", "conv": "convolutional", "pre-norm": "transformer"}
KINDS |= {"post-norm": "transformer"}
MUON = "muon-adamw"
OF_TRIALS = {"sgd": "sgd", "adamw": torch.optim.AdamW, "lion": "lion", "muon": "muon", MUON: MUON}


def sentences_of(call, *args, **options):
    """What a call gives, and the sentences of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = call(*args, **options)
    return made, {str(each.message) for each in caught if issubclass(each.category, mf.PremiseWarning)}


# Transformers were not trained by Muon beside AdamW.
TRIED = [(family, name) for family in KINDS for name in OF_TRIALS if (KINDS[family], name) != ("transformer", MUON)]


@pytest.mark.parametrize(("family", "optimizer"), TRIED)
def test_a_rate_to_start_from_is_that_of_the_same_net(family, optimizer):
    net, make = FAMILIES[family]
    data = data_of(net, np.random.default_rng(0))
    expected, said = sentences_of(mf.starting_rate, net, data, optimizer=optimizer, draws=6)
    pairs = batches_of(net, data)
    how = {"optimizer": partial(torch.optim.AdamW, eps=1e-14) if optimizer == "adamw" else optimizer, "draws": 6}
    factory = twins.factory(net, lambda _: make(net))
    measured, also_said = sentences_of(mft.starting_rate, factory, cross_entropy, pairs, modules="layers.?", **how)
    for name in ("rate", "low", "high"):
        assert float(measured[name]) == pytest.approx(float(expected[name]), rel=1e-5), name
    for name in ("scale", "scale_over_rate", "factor", "rests_on"):
        assert measured.attrs[name] == expected.attrs[name]
    assert measured.attrs["kind"] == KINDS[family]
    # A module does not tell whether it skips.
    plain = {each for each in said | also_said if "plain nets" in each or "plain convolutional nets" in each}
    assert also_said - plain == said - plain
    assert measured.attrs["premises"].startswith(expected.attrs["premises"])


def test_a_function_makes_no_model_that_is_not_measured():
    """One a draw, whose classes tell the kind; and one for its classes where all is measured already."""
    made = []

    def counted(depth):
        made.append(depth)
        return models.GPT(depth=depth)

    small, large = partial(counted, 1), partial(counted, 2)
    data, how = (models.token_loss, [models.tokens()]), {"optimizer": torch.optim.AdamW, "draws": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        mft.starting_rate(small, *data, **how)
        assert made == [1] * 3
        mft.carry(0.1, small, large, *data, **how)
        assert made[3:] == [1] * 3 + [2] * 3
        both = tuple(mft.step_scales(factory, *data, **how) for factory in (small, large))
        made.clear()
        mft.starting_rate(small, *data, measured=both[0], **how)
        mft.carry(0.1, small, large, *data, measured=both, **how)
    assert made == [1, 1]


@pytest.mark.parametrize(
    ("optimizer", "of"),
    [("sgd", "outputs"), ("adamw", "outputs"), ("muon", "outputs"), (MUON, "last"), ("muon-adamw-in-noise", "last")],
)
def test_a_carried_rate_is_that_of_the_same_nets(optimizer, of):
    """By the scale that the trials say, and by all others beside it."""
    small = FAMILIES["residual"][0]
    nets = small, small.replace(depth=5)
    data = data_of(small, np.random.default_rng(0))
    how = {"optimizer": optimizer, "draws": 5}
    factories = [twins.factory(net, twins.residual_mlp) for net in nets]
    pairs = batches_of(small, data)
    measured, said = sentences_of(mft.carry, 0.3, *factories, cross_entropy, pairs, modules="layers.?", **how)
    assert measured.attrs["of"] == of
    assert said == set()
    assert mf.explain_transfer(0.3, *nets, data=data, **how).of == of
    how["optimizer"] = step_that_names(optimizer)
    for each in SCALES:
        expected = mf.explain_transfer(0.3, *nets, of=each, data=data, **how)
        assert float(measured["rates"].sel(of=each)) == pytest.approx(expected.rate, rel=1e-9)
        if each == of:
            assert float(measured["rate"]) == pytest.approx(expected.rate, rel=1e-9)
            half = 2 * expected.error
            assert float(np.log(measured["high"] / measured["rate"])) == pytest.approx(half, rel=1e-6)
            assert float(np.log(measured["rate"] / measured["low"])) == pytest.approx(half, rel=1e-6)


def gpt(depth):
    return partial(models.GPT, depth=depth)


def test_carried_rates_of_pre_norm_transformers_are_warned_of():
    how = {"optimizer": torch.optim.AdamW, "draws": 3}
    carried, said = sentences_of(mft.carry, 0.1, gpt(1), gpt(3), models.token_loss, [models.tokens()], **how)
    assert len(said) == 2
    assert "pre-norm Transformers fell as L^(-0.64)" in carried.attrs["warnings"]
    assert "GPTs of characters that learn" in carried.attrs["warnings"]
    same, said = sentences_of(mft.carry, 0.1, gpt(2), gpt(2), models.token_loss, [models.tokens()], **how)
    assert not said
    # PyTorch adds in another order where memory is aligned otherwise, which is one rounding in some runs.
    assert same["rates"].values == pytest.approx(0.1, rel=1e-12)


def test_what_has_been_measured_is_not_measured_again():
    data = models.token_loss, [models.tokens()]
    how = {"optimizer": torch.optim.AdamW, "draws": 3}
    both = tuple(mft.step_scales(gpt(depth), *data, **how) for depth in (1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        started = [mft.starting_rate(gpt(1), *data, measured=given, **how) for given in (None, both[0])]
        carried = [mft.carry(0.1, gpt(1), gpt(3), *data, measured=given, **how) for given in (None, both)]
    assert started[0].identical(started[1])
    assert carried[0].identical(carried[1])
    assert both[1].attrs["block_names"].split() == [f"transformer.h.{block}" for block in range(3)]
    with pytest.raises(TypeError, match="measured is 3; give the dataset of step_scales"):
        mft.starting_rate(gpt(1), *data, measured=3, **how)
    with pytest.raises(TypeError, match="an entry of measured is 3; give datasets of step_scales"):
        mft.carry(0.1, gpt(1), gpt(3), *data, measured=(both[0], 3), **how)


def test_one_block_is_a_last_layer_as_many_are():
    scales = mft.step_scales(gpt(1), models.token_loss, [models.tokens()], optimizer="adamw", draws=2)
    assert scales.attrs["last_layer"] == "transformer.h.0"
    with pytest.raises(ValueError, match="the last layer is a Linear of one model and a BasicBlock of the other"):
        mft.carry(0.1, Flat, models.ResNet, cross_entropy, [models.images()], optimizer="adamw", draws=2)


class Flat(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3))


def test_a_last_layer_that_starts_at_zero_has_no_rate_of_its_own():
    def from_zero():
        model = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Linear(8, 3))
        nn.init.zeros_(model[1].weight)
        nn.init.zeros_(model[1].bias)
        return model

    how = {"optimizer": torch.optim.AdamW, "draws": 2}
    with pytest.raises(ValueError, match="the value of the last layer, '1', starts at 0"):
        mft.starting_rate(from_zero, cross_entropy, [models.images()], **how)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("SGD with momentum", partial(torch.optim.SGD, momentum=0.8)),
        ("SGD with momentum", partial(torch.optim.SGD, momentum=0.9, nesterov=True)),
        ("Adagrad", torch.optim.Adagrad),
        ("shampoo", "shampoo"),
        ("muon_kimi-adamw", "muon_kimi-adamw"),
        ("SGD and SGD", lambda model: [torch.optim.SGD([each]) for each in model[1].parameters()]),
    ],
)
def test_optimizers_without_a_trial_are_refused(name, optimizer):
    batches = [models.images()]
    with pytest.raises(ValueError, match=f"no trial has a constant for {name}"):
        mft.starting_rate(Flat, cross_entropy, batches, optimizer=optimizer, draws=2)
    with pytest.raises(ValueError, match=f"no trial has trained by {name}.*give of"):
        mft.carry(0.1, Flat, Flat, cross_entropy, batches, optimizer=optimizer, draws=2)


def test_scales_of_the_first_step_of_muon_name_no_rate():
    """The constant of Muon beside AdamW is that of the step in noise."""
    batches, how = [models.images()], {"optimizer": MUON, "draws": 2}
    measured = mft.step_scales(Flat, cross_entropy, batches, **how)
    with pytest.raises(ValueError, match="of one step of muon-adamw; the rate goes by 'muon-adamw-in-noise': measure"):
        mft.starting_rate(Flat, cross_entropy, batches, measured=measured, **how)
    later = how | {"optimizer": "muon-adamw-in-noise", "measured": (measured, measured)}
    with pytest.raises(ValueError, match="of one step of muon-adamw; the rate goes by 'muon-adamw-in-noise': measure"):
        mft.carry(0.1, Flat, Flat, cross_entropy, batches, **later)


def test_muon_and_adamw_of_pytorch_are_the_pair_of_the_trials():
    def made(model):
        others = [each for each in model.parameters() if each is not model[1].weight]
        return [torch.optim.Muon([model[1].weight]), torch.optim.AdamW(others)]

    given = 0.1, Flat, Flat, cross_entropy, [models.images()]
    with pytest.raises(
        ValueError, match=r"first step of muon-adamw does not tell .* give optimizer='muon-adamw-in-noise'"
    ):
        mft.carry(*given, optimizer=made, draws=2)
    assert float(mft.carry(*given, optimizer="muon-adamw-in-noise", draws=2)["rate"]) == 0.1
    assert (
        mft.carry(*given, optimizer=made, of="last", draws=2).attrs["premises"].startswith("tuned rates of muon-adamw")
    )


@pytest.mark.parametrize(("optimizer", "is_said"), [("muon-adamw", True), ("muon-adamw-in-noise", False)])
def test_the_first_step_of_muon_beside_adamw_is_warned_of_over_depth(optimizer, is_said):
    small = FAMILIES["residual"][0]
    factories = [twins.factory(net, twins.residual_mlp) for net in (small, small.replace(depth=5))]
    pairs = batches_of(small, data_of(small, np.random.default_rng(0)))
    how = {"optimizer": optimizer, "of": "last", "draws": 2, "modules": "layers.?"}
    carried, said = sentences_of(mft.carry, 0.3, *factories, cross_entropy, pairs, **how)
    assert ["K^(-0.83) in residual nets" in each for each in said] == [True] * is_said
    trained = "tuned rates of muon-adamw keep their ratio to the rate at which"
    assert carried.attrs["premises"].startswith(f"{trained} {'its first' if is_said else 'this'} step moves")


def test_a_scale_that_is_asked_for_serves_any_optimizer():
    how = {"optimizer": torch.optim.Adagrad, "of": "outputs", "draws": 2}
    carried = mft.carry(0.1, Flat, Flat, cross_entropy, [models.images()], **how)
    assert float(carried["rate"]) == 0.1
    assert "no trial has trained nets by Adagrad" in carried.attrs["premises"]


@pytest.mark.parametrize(
    ("sentence", "how"),
    [
        ("rate is -1", {"rate": -1.0}),
        ("of is 'inputs'", {"of": "inputs"}),
        ("kind is 'gpt'", {"kind": "gpt"}),
        ("draws is 1;", {"draws": 1}),
    ],
)
def test_what_cannot_be_carried_is_refused(sentence, how):
    rate = how.pop("rate", 0.1)
    with pytest.raises(ValueError, match=sentence):
        mft.carry(rate, Flat, Flat, cross_entropy, [models.images()], optimizer="adamw", **how)


@pytest.mark.filterwarnings("ignore:trials had batches of 16")
def test_the_kind_is_read_off_the_modules_or_given():
    how = {"optimizer": "adamw", "draws": 2}
    kinds = {
        kind: mft.starting_rate(models.ResNet, cross_entropy, [models.images()], kind=kind, **how)
        for kind in (None, "convolutional", "connected")
    }
    assert [found.attrs["kind"] for found in kinds.values()] == ["convolutional", "convolutional", "connected"]
    assert float(kinds[None]["rate"]) == float(kinds["convolutional"]["rate"])
    assert float(kinds["connected"]["rate"] / kinds[None]["rate"]) == pytest.approx(0.79 / 4.5)


@pytest.mark.parametrize("name", mft.__all__)
def test_public_names_have_an_example_that_runs(name):
    example = doctest.DocTestParser().get_doctest(getattr(mft, name).__doc__, {}, name, None, None)
    assert example.examples
    report = []
    assert not doctest.DocTestRunner().run(example, out=report.append).failed, "".join(report)


def test_an_epsilon_that_takes_the_signs_is_said():
    """What Adam's epsilon leaves of its first step is that of the library, and little of it a warning."""
    net, make = FAMILIES["mlp"]
    data = data_of(net, np.random.default_rng(0))
    pairs, large = batches_of(net, data), partial(torch.optim.AdamW, eps=0.1)
    expected, said = sentences_of(mf.starting_rate, net, data, optimizer="adamw", epsilon=0.1, draws=4)
    factory = twins.factory(net, lambda _: make(net))
    measured, also_said = sentences_of(mft.starting_rate, factory, cross_entropy, pairs, optimizer=large, draws=4)
    assert measured.attrs["kept_share"] == pytest.approx(expected.attrs["kept_share"], rel=1e-6)
    assert measured.attrs["epsilon"] == 0.1
    softened = {each for each in said if each.startswith("epsilon 0.1 leaves")}
    assert len(softened) == 1
    assert softened <= also_said
    _, of_scales = sentences_of(mft.step_scales, partial(make, net), cross_entropy, pairs, optimizer=large, draws=2)
    assert any("of the first step of AdamW" in each for each in of_scales)
    quiet, unsaid = sentences_of(
        mft.starting_rate, partial(make, net), cross_entropy, pairs, optimizer=torch.optim.AdamW, draws=4
    )
    assert quiet.attrs["kept_share"] > 0.99
    assert not any("epsilon" in each for each in unsaid)


def test_models_of_tokens_are_told_of_trials_of_characters():
    how = {"loss": models.token_loss, "batches": [models.tokens()], "optimizer": torch.optim.AdamW, "draws": 2}
    _, said = sentences_of(mft.starting_rate, gpt(2), **how)
    assert any("GPTs of characters that learn" in each for each in said)
    carried, said = sentences_of(mft.carry, 0.1, gpt(2), partial(models.GPT, depth=2, width=16), **how)
    assert carried.attrs["of"] == "outputs"
    assert [each for each in said if "went by -1.66" in each]
    assert not [each for each in said if "in residual nets" in each]


def test_values_that_start_far_below_one_are_said():
    """As in GPTs with weights of 0.02, of which trials say that the rate is a fraction of the tuned one."""

    def small():
        model = models.GPT(depth=1)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(0.2)
        return model

    data = models.token_loss, [models.tokens()]
    _, said = sentences_of(mft.starting_rate, small, *data, optimizer=torch.optim.AdamW, draws=2)
    assert any("starts at a mean square of 0.0" in each for each in said)
    _, said = sentences_of(mft.starting_rate, small, *data, optimizer=torch.optim.SGD, draws=2)  # by the outputs
    assert not any("starts at a mean square" in each for each in said)
    how = {"optimizer": torch.optim.AdamW, "draws": 2}
    _, said = sentences_of(mft.starting_rate, models.ResNet, cross_entropy, [models.images()], **how)
    assert not any("starts at a mean square" in each for each in said)


def test_a_head_that_starts_at_zero_is_named():
    def model():
        made = models.ResNet()
        nn.init.zeros_(made.fc.weight)
        return made

    with pytest.raises(ValueError, match=r"'layer2\.0', does not move in the first step, and the outputs do"):
        mft.starting_rate(model, cross_entropy, [models.images()], optimizer=torch.optim.AdamW, draws=2)


@pytest.mark.parametrize(
    ("groups", "norm", "optimizer", "told"),
    [
        (1, nn.BatchNorm2d, "adamw", False),
        (4, nn.BatchNorm2d, "adamw", True),
        (1, partial(nn.GroupNorm, 1), "adamw", True),
        (4, partial(nn.GroupNorm, 1), "lion", True),
        (4, partial(nn.GroupNorm, 1), "sgd", False),
    ],
)
def test_convolutional_models_unlike_those_of_the_trials_are_told_so(groups, norm, optimizer, told):
    def model():
        stem = nn.Conv2d(1, 4, 3), norm(4), nn.ReLU()
        return nn.Sequential(*stem, nn.Conv2d(4, 4, 3, groups=groups), nn.Flatten(), nn.Linear(64, 3))

    pictures = [(torch.randn(8, 1, 8, 8), torch.randint(3, (8,)))] * 4
    _, said = sentences_of(mft.starting_rate, model, cross_entropy, pictures, optimizer=optimizer, draws=4)
    assert any("ConvNeXt" in sentence for sentence in said) is told


class Residual(nn.Sequential):
    """A branch that is added to what it reads."""

    def forward(self, x):
        return x + super().forward(x)


def fully_connected(width, depth=2, skips=True):
    block = Residual if skips else nn.Sequential
    hidden = [block(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), *hidden, nn.Linear(width, 3))


PAIRS = [(torch.randn(8, 5), torch.randint(3, (8,)))]


@pytest.mark.parametrize(("optimizer", "of"), [(torch.optim.AdamW, "relative"), (torch.optim.SGD, "outputs")])
def test_rates_go_over_widths_as_trials_said(optimizer, of):
    """Under Adam by the relative change; under descent they stay, and none is given where the depth differs, too."""
    how = {"optimizer": partial(optimizer, lr=0.1), "draws": 2}
    narrow, wide, deep = (partial(fully_connected, *sizes) for sizes in ((64,), (128,), (64, 4)))
    wider, said = sentences_of(mft.carry, 0.1, narrow, wide, cross_entropy, PAIRS, **how)
    assert (wider.attrs["of"], said) == (of, set())
    if of == "outputs":
        assert float(wider["low"]) == float(wider["rate"]) == float(wider["high"]) == 0.1
        assert "the rate stays over the width" in wider.attrs["premises"]
    asked, said = sentences_of(mft.carry, 0.1, narrow, wide, cross_entropy, PAIRS, of="outputs", **how)
    assert [each for each in said if "leave the rate over widths" in each or "give of='relative' over widths" in each]
    assert float(asked["rate"]) == float(asked["rates"].sel(of="outputs")) != 0.1
    both = (0.1, narrow, partial(fully_connected, 128, 4), cross_entropy, PAIRS)
    if of == "outputs":
        with pytest.raises(ValueError, match="no scale carries a rate at once under descent"):
            mft.carry(*both, **how)
    assert sentences_of(mft.carry, *both, of=of, **how)[0].attrs["stays"] == ""
    assert wider.attrs["stays"] == ("width" if of == "outputs" else "")
    deeper, said = sentences_of(mft.carry, 0.1, narrow, deep, cross_entropy, PAIRS, **how)
    assert deeper.attrs["of"] == "outputs"
    assert not any("over widths" in each for each in said)
    _, said = sentences_of(mft.starting_rate, partial(fully_connected, 128), cross_entropy, PAIRS, **how)
    assert any("0.17 to 0.33 times at width 256" in each for each in said) is (of == "outputs")


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_widths_beyond_those_of_the_trials_are_said(optimizer):
    nets = partial(fully_connected, 64), partial(fully_connected, 512)
    _, (sentence,) = sentences_of(mft.carry, 0.1, *nets, cross_entropy, PAIRS, optimizer=optimizer, draws=2)
    assert "from 64 to 256 units" in sentence


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_models_without_skip_connections_go_by_the_relative_change(optimizer):
    """As plain nets of the trials, over widths too, where that was not tried."""
    how = {"optimizer": partial(optimizer, lr=0.1), "draws": 2}
    narrow, wide, deep = (partial(fully_connected, *sizes, skips=False) for sizes in ((8,), (16,), (8, 4)))
    deeper, said = sentences_of(mft.carry, 0.1, narrow, deep, cross_entropy, PAIRS, **how)
    assert (deeper.attrs["of"], said) == ("relative", set())
    wider, (sentence,) = sentences_of(mft.carry, 0.1, narrow, wide, cross_entropy, PAIRS, **how)
    assert wider.attrs["of"] == "relative"
    assert "was not tried with nets that learn" in sentence


def test_plain_convolutional_models_are_told_of_those_of_the_trials():
    def model(depth):
        hidden = [part for _ in range(depth) for part in (nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())]
        return nn.Sequential(nn.Conv2d(1, 4, 3), *hidden, nn.Flatten(), nn.Linear(64, 3))

    pictures = [(torch.randn(8, 1, 6, 6), torch.randint(3, (8,)))]
    nets, how = (partial(model, 2), partial(model, 4)), {"draws": 2}
    said = {
        optimizer: sentences_of(mft.carry, 0.1, *nets, cross_entropy, pictures, optimizer=optimizer, **how)[1]
        for optimizer in ("sgd", "adamw")
    }
    assert "plain convolutional nets" in " ".join(said["sgd"])
    assert said["adamw"] == set()


def test_batch_normalised_models_over_depth_are_told_that_it_is_open():
    how = {"optimizer": "adamw", "draws": 2}
    for deep, told in ((2, True), (1, False)):
        nets = models.ResNet, partial(models.ResNet, deep, channels=8 // deep)
        _, said = sentences_of(mft.carry, 0.1, *nets, cross_entropy, [models.images()], **how)
        assert bool([each for each in said if "is open (E1c)" in each]) is told


def test_means_over_layers_are_of_the_stream():
    """Blocks and layers outside of them, below the head; of a plain model its layers; or what is chosen."""
    data = cross_entropy, PAIRS
    how = {"optimizer": "adamw", "draws": 3}
    for skips, stream in ((True, ["0", "2", "3"]), (False, ["0", "2.0", "3.0"])):
        model = fully_connected(8, skips=skips)
        found = mft.step_scales(model, *data, **how)
        chosen = mft.step_scales(model, *data, modules=stream, **how)
        assert chosen.attrs["counted"].split() == stream
        assert found.attrs["counted"].split() == stream
        for name in ("learning_rate_scale", "relative_learning_rate_scale_quantile", "mean_update_energy"):
            np.testing.assert_allclose(found[name], chosen[name])
        everything = mft.step_scales(model, *data, modules=nn.Module, **how)
        assert float(everything["relative_learning_rate_scale"]) != float(found["relative_learning_rate_scale"])


def test_a_rate_carried_to_its_own_model_is_exact():
    scales = mft.step_scales(fully_connected(8), cross_entropy, PAIRS, optimizer="adamw", draws=3)
    same = partial(fully_connected, 8)
    carried = mft.carry(0.1, same, same, cross_entropy, PAIRS, optimizer="adamw", measured=(scales, scales))
    assert float(carried["low"]) == float(carried["rate"]) == float(carried["high"]) == 0.1


class Joined(nn.Sequential):
    """What it reads, and what it makes of that behind it, as in a DenseNet."""

    def forward(self, x):
        return torch.cat([x, super().forward(x)], 1)


def headed(*layers, head=None):
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), *layers, head or nn.Linear(8, 3))


def zero_head():
    head = nn.Linear(8, 3)
    nn.init.zeros_(head.weight)
    return head


class Towers(nn.Module):
    """Two layers side by side, and one above both."""

    def __init__(self):
        super().__init__()
        self.first, self.left, self.right = nn.Linear(5, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.above, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.first(x)
        return self.head(self.above(self.left(x) + self.right(x)))


class Standardised(nn.Linear):
    """Weights less their mean over their spread, which zeros have not."""

    def forward(self, x):
        return x @ ((self.weight - self.weight.mean()) / self.weight.std()).T


class Asserting(nn.Module):
    def forward(self, x):
        assert x.abs().max() > 0, "dead"
        return x


def frozen(model):
    model[0].requires_grad_(False)
    return model


def orthogonal(model):
    torch.nn.utils.parametrizations.orthogonal(model[2])
    return model


def layers(number, build=nn.Linear):
    return [build(8, 8, bias=False) for _ in range(number)]


@pytest.mark.parametrize(
    ("model", "inputs", "found"),
    [
        (lambda: headed(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)), PAIRS[0][0], "no"),
        (lambda: headed(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8)), PAIRS[0][0], "no"),
        (lambda: frozen(headed(nn.Linear(8, 8), nn.ReLU())), PAIRS[0][0], "no"),
        (lambda: headed(*layers(2, Standardised)), PAIRS[0][0], "no"),
        (lambda: headed(*[nn.Linear(8, 8)] * 3), PAIRS[0][0], "no"),  # one layer, three times
        (lambda: headed(*layers(20)), PAIRS[0][0], "no"),
        (headed, PAIRS[0][0], "no"),
        (lambda: nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 3)), torch.arange(8), "no"),
        (
            lambda: headed(nn.Linear(8, 8), Residual(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))),
            PAIRS[0][0],
            "yes",
        ),
        (lambda: headed(Residual(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))), PAIRS[0][0], "yes"),
        (lambda: headed(Joined(nn.Linear(8, 4)), head=nn.Linear(12, 3)), PAIRS[0][0], "yes"),
        (models.ResNet, models.images()[0], "yes"),  # around shortcuts that are layers
        (lambda: models.ResNet(2), models.images()[0], "yes"),
        (Towers, PAIRS[0][0], "unknown"),
        (lambda: headed(nn.Linear(8, 8), head=zero_head()), PAIRS[0][0], "unknown"),
        (lambda: headed(*layers(1), Asserting(), *layers(1)), PAIRS[0][0], "unknown"),
        (lambda: orthogonal(headed(nn.Linear(8, 8))), PAIRS[0][0], "unknown"),
    ],
)
def test_skip_connections_are_what_leads_around_layers(model, inputs, found):
    """Whatever the model is made of; and its weights stay as they are, and random numbers outside."""
    torch.manual_seed(0)
    made = model()
    before, state = [parameter.clone() for parameter in made.parameters()], torch.get_rng_state()
    pairs = [(inputs, torch.randint(3, (len(inputs),), generator=torch.Generator().manual_seed(0)))]
    scales = mft.step_scales(made, cross_entropy, pairs, optimizer="sgd", draws=2, reinit=None)
    assert scales.attrs["skips"] == found
    assert all(map(torch.equal, made.parameters(), before))
    assert torch.equal(torch.get_rng_state(), state)


def test_models_whose_skip_connections_are_not_found_are_told_so():
    how = {"optimizer": "adamw", "draws": 2}
    carried, said = sentences_of(mft.carry, 0.1, Towers, Towers, cross_entropy, PAIRS, **how)
    assert carried.attrs["of"] == "outputs"
    assert [each for each in said if "could not be told" in each]
    _, said = sentences_of(mft.carry, 0.1, Towers, Towers, cross_entropy, PAIRS, of="relative", **how)
    assert not [each for each in said if "could not be told" in each]


def convolutions(layers, blocks=2, norm=nn.Identity):
    """A residual net of blocks of so many convolutions."""

    def block():
        inside = [each for _ in range(layers) for each in (norm(4), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))]
        return Residual(*inside)

    return nn.Sequential(
        nn.Conv2d(3, 4, 1), nn.Sequential(*[block() for _ in range(blocks)]), nn.Flatten(), nn.Linear(64, 3)
    )


IMAGES = [(torch.randn(4, 3, 4, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2, 0]))]


@pytest.mark.parametrize(("layers", "told"), [(1, ""), (2, "1.4 to 3.9 times"), (3, "2.9 to 7.4 times"), (4, "")])
def test_convolutional_branches_of_two_and_three_layers_leave_one_step_of_descent(layers, told):
    """As nets of the library are told, and without normalisation alone, which no trial of such blocks had."""
    how = {"optimizer": "sgd", "draws": 2}
    _, said = sentences_of(mft.starting_rate, partial(convolutions, layers), cross_entropy, IMAGES, **how)
    assert [each for each in said if "branches of" in each and told in each] if told else not of_branches(said)
    _, said = sentences_of(
        mft.starting_rate, partial(convolutions, layers, norm=nn.BatchNorm2d), cross_entropy, IMAGES, **how
    )
    assert not of_branches(said)
    _, said = sentences_of(
        mft.carry, 0.1, partial(convolutions, layers), partial(convolutions, layers, 4), cross_entropy, IMAGES, **how
    )
    assert bool([each for each in of_branches(said) if "L^(-0.27)" in each]) is (layers == 2)


@pytest.mark.parametrize(
    ("optimizer", "norm", "told"),
    [("lion", nn.BatchNorm2d, True), ("lion", None, False), ("adamw", nn.BatchNorm2d, False)],
)
def test_batch_normalised_blocks_are_told_that_the_constant_of_lion_misses(optimizer, norm, told):
    model = partial(convolutions, 1, **({"norm": norm} if norm else {}))
    _, said = sentences_of(mft.starting_rate, model, cross_entropy, IMAGES, optimizer=optimizer, draws=2)
    missed = "residual convolutional nets with batch normalisation of the trials this rate would have been 0.26 to 0.45"
    assert bool([each for each in said if missed in each]) is told


def of_branches(said):
    return [each for each in said if "convolutional nets with branches of" in each]


class Inline(nn.Module):
    """A residual net whose blocks are no modules of their own."""

    def __init__(self, depth=2):
        super().__init__()
        self.first, self.head = nn.Linear(5, 8), nn.Linear(8, 3)
        self.hidden = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        for layer in self.hidden:
            x = x + layer(torch.relu(x))
        return self.head(x)


def test_branches_that_are_no_blocks_are_warned_of_where_the_scale_is_of_layers():
    how = {"optimizer": "adamw", "draws": 2}
    for of, told in (("relative", True), ("outputs", False)):
        _, said = sentences_of(mft.carry, 0.1, Inline, partial(Inline, 4), cross_entropy, PAIRS, of=of, **how)
        assert bool([each for each in said if "stand in no block" in each]) is told
    _, said = sentences_of(mft.starting_rate, Inline, cross_entropy, PAIRS, **how)  # by the last layer
    assert [each for each in said if "stand in no block" in each]
    _, said = sentences_of(mft.starting_rate, partial(fully_connected, 8), cross_entropy, PAIRS, **how)
    assert not [each for each in said if "stand in no block" in each]


def test_measured_scales_are_of_the_step_that_is_asked_for():
    scales = mft.step_scales(fully_connected(8), cross_entropy, PAIRS, optimizer=torch.optim.AdamW, draws=2)
    for asked in ("sgd", "adamw"):
        with pytest.raises(ValueError, match=f"measured is of one step of AdamW; the rate goes by '{asked}'"):
            mft.starting_rate(fully_connected(8), cross_entropy, PAIRS, optimizer=asked, measured=scales, draws=2)
    del scales.attrs["skips"]
    how = {"optimizer": torch.optim.AdamW, "draws": 2}
    with pytest.raises(ValueError, match="of another version of the library"):
        mft.carry(0.1, fully_connected(8), fully_connected(8), cross_entropy, PAIRS, measured=(scales, scales), **how)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (lambda: nn.Sequential(nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 3)), "connected"),
        (lambda: nn.Sequential(nn.Embedding(9, 8), nn.Conv1d(8, 8, 1), nn.LayerNorm(8)), "convolutional"),
        (models.GPT, "transformer"),
        (lambda: nn.Sequential(nn.Embedding(9, 8), Residual(nn.LayerNorm(8), nn.Linear(8, 8))), "transformer"),
    ],
)
def test_the_kind_of_a_model_is_read_off_its_modules(model, kind):
    assert kind_of(model(), None) == kind


def test_the_width_of_a_model_is_what_most_matrices_have():
    """Whatever stands first or last: heads, embeddings, flattened sites, kernels of single channels."""
    flat = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(16, 3))
    depthwise = nn.Sequential(nn.Conv2d(1, 8, 1), nn.Conv2d(8, 8, 3, groups=8), nn.Conv2d(8, 8, 1), nn.Linear(8, 3))
    embedded = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 16), nn.Linear(16, 3))
    assert [width_of(model) for model in (flat, depthwise, embedded)] == [4, 8, 16]
    assert [width_of(models.GPT(depth=depth, width=8)) for depth in (1, 3)] == [8, 8]
    assert [width_of(models.ResNet(depth, 4)) for depth in (1, 2)] == [8, 8]
    assert width_of(nn.LayerNorm(3)) == 0


def test_scales_that_say_no_width_are_taken():
    """As they were measured before; nothing is said of the width then."""
    pairs = [(torch.randn(8, 5), torch.randint(3, (8,)))]

    def model(width):
        return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 3))

    how = {"optimizer": "sgd", "draws": 2}
    both = [mft.step_scales(partial(model, width), cross_entropy, pairs, **how) for width in (8, 256)]
    for scales in both:
        del scales.attrs["width"]
    given = 0.1, partial(model, 8), partial(model, 256), cross_entropy, pairs
    carried, said = sentences_of(mft.carry, *given, optimizer="sgd", measured=tuple(both))
    assert carried.attrs["of"] == "relative"
    assert not any("over widths" in each for each in said)
    _, said = sentences_of(
        mft.starting_rate, partial(model, 256), cross_entropy, pairs, measured=both[1], optimizer="sgd"
    )
    assert not any("at width 256" in each for each in said)
