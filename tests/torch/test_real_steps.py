"""Changes against central differences of the steps that optimizers of PyTorch make, in double precision.

What groups of parameters move alone, against steps in which all others stand still.
"""

import re
from copy import deepcopy
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield as mf  # noqa: E402
import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402

SMALL = 1e-8
cross_entropy = torch.nn.functional.cross_entropy


def made(kind, seed=0, **sizes):
    torch.manual_seed(seed)
    return kind(**sizes)


def values_of(model, inputs, names):
    """The values of modules of a model, and its outputs."""
    kept, hooks = {}, []
    for name in names:
        keep = partial(lambda name, _module, _inputs, value: kept.update({name: value.detach().clone()}), name)
        hooks.append(model.get_submodule(name).register_forward_hook(keep))
    with torch.no_grad():
        kept[""] = model(inputs)
    for hook in hooks:
        hook.remove()
    return kept


def central_differences(model, loss, batch, make, names):
    """S of every module and of the outputs: half the difference of the values where a small real step goes and back."""
    model = deepcopy(model).double()
    inputs, targets = batch[0].double() if batch[0].is_floating_point() else batch[0], batch[1]
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    loss(model(inputs), targets).backward()
    optimizers = make(model)
    optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        group["lr"], group["weight_decay"] = group["lr"] * SMALL / optimizers[0].defaults["lr"], 0.0
    for optimizer in optimizers:
        optimizer.step()
    steps = {name: start[name] - parameter.detach() for name, parameter in model.named_parameters()}
    sides = []
    for sign in (1, -1):
        moved = deepcopy(model)
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                parameter.copy_(start[name] + sign * steps[name])
        sides.append(values_of(moved, inputs, names))
    differences = {name: (sides[0][name] - sides[1][name]) / (2 * SMALL) for name in sides[0]}
    return {name: float(change.square().mean()) for name, change in differences.items()}


def of_one_class(kind, **options):
    return lambda model: kind(model.parameters(), **options)


def with_groups(model):
    """Vectors at a tenth of the rate of matrices."""
    parts = [[p for p in model.parameters() if (p.dim() > 1) == is_matrix] for is_matrix in (True, False)]
    return torch.optim.AdamW([{"params": parts[0]}, {"params": parts[1], "lr": 1e-4}], lr=1e-3, eps=1e-4)


def muon_and_adamw(model):
    hidden = [p for name, p in model.named_parameters() if p.dim() == 2 and "transformer.h." in name]
    others = [p for p in model.parameters() if all(p is not each for each in hidden)]
    return [torch.optim.Muon(hidden, lr=0.02), torch.optim.AdamW(others, lr=1e-3, eps=1e-4)]


OPTIMIZERS = {
    "sgd": of_one_class(torch.optim.SGD, lr=0.1),
    "nesterov": of_one_class(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "adamw": of_one_class(torch.optim.AdamW, lr=1e-3, eps=1e-4, weight_decay=0.3),
    "groups": with_groups,
    "adagrad": of_one_class(torch.optim.Adagrad, lr=1e-2),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_resnet_with_batch_normalisation(optimizer):
    model, batch = made(models.ResNet), models.images()
    names = ["layer1.0", "layer2.0", "fc"]
    expected = central_differences(model, cross_entropy, batch, OPTIMIZERS[optimizer], names)
    how = {"optimizer": OPTIMIZERS[optimizer], "reinit": None, "draws": 2}
    measured = mft.step_scales(model, cross_entropy, [batch], modules=names, **how)
    np.testing.assert_allclose(measured.update_energy, [expected[name] for name in names], rtol=1e-5)
    np.testing.assert_allclose(measured.output_update_energy, expected[""], rtol=1e-5)
    assert measured.attrs["last_layer"] == "layer2.0"


@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, "muon and adamw"])
def test_a_gpt_with_tied_embeddings(optimizer):
    model, batch = made(models.GPT), models.tokens()
    make = muon_and_adamw if optimizer == "muon and adamw" else OPTIMIZERS[optimizer]
    names = ["transformer.wte", "transformer.h.0", "transformer.h.1", "transformer.ln_f"]
    expected = central_differences(model, models.token_loss, batch, make, names)
    how = {"optimizer": make, "reinit": None, "draws": 2}
    measured = mft.step_scales(model, models.token_loss, [batch], modules=names, **how)
    rtol = 1e-2 if optimizer == "muon and adamw" else 1e-5  # orthogonal factors are made in bfloat16
    np.testing.assert_allclose(measured.update_energy, [expected[name] for name in names], rtol=rtol)
    np.testing.assert_allclose(measured.output_update_energy, expected[""], rtol=rtol)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {"eps": 1e-6, "weight_decay": 0.1}),
        (torch.optim.Adafactor, {}),
    ],
)
def test_a_live_optimizer_steps_from_its_state(kind, options):
    """The same as its next step, which it can still make; a scheduler steps neither."""
    model, batch = made(models.GPT).double(), models.tokens()
    optimizer = kind(model.parameters(), lr=1e-3, **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for seed in range(3):
        inputs, targets = models.tokens(seed=seed + 1)
        optimizer.zero_grad()
        models.token_loss(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()
    before, state = deepcopy(model.state_dict()), deepcopy(optimizer.state_dict())
    names = ["transformer.h.0", "transformer.h.1"]
    optimizer.zero_grad()
    how = {"optimizer": optimizer, "reinit": None, "draws": 2}
    measured = mft.step_scales(model, models.token_loss, [batch], modules=names, **how)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert str(optimizer.state_dict()) == str(state)

    def own(copied):
        again = kind(copied.parameters(), lr=1e-3, **options)
        again.load_state_dict(deepcopy(optimizer.state_dict()))
        for group in again.param_groups:
            group["lr"] = again.defaults["lr"]
        return again

    expected = central_differences(model, models.token_loss, batch, own, names)
    np.testing.assert_allclose(measured.update_energy, [expected[name] for name in names], rtol=1e-4)


def test_a_name_is_the_class_of_pytorch_without_epsilon():
    batches = [models.images(seed=seed) for seed in range(3)]
    how = {"draws": 3, "seed": 5}
    for name, optimizer in {
        "sgd": torch.optim.SGD,
        "adamw": partial(torch.optim.AdamW, eps=1e-14),
    }.items():
        by_name, by_class = (
            mft.step_scales(models.ResNet, cross_entropy, batches, optimizer=each, **how) for each in (name, optimizer)
        )
        np.testing.assert_allclose(by_name.update_energy, by_class.update_energy, rtol=1e-6, atol=1e-12)


NAMES = ["transformer.h.0", "transformer.h.1", "transformer.ln_f", "lm_head"]
GROUPS = {"norms": ["*.ln_?.*"], "tied table": "transformer.wte.weight", "all": "*"}
HOW = {"optimizer": torch.optim.AdamW, "reinit": None, "modules": NAMES, "draws": 2}


def moved(**options):
    model = made(models.GPT)
    return mft.step_scales(model, models.token_loss, [models.tokens()], **HOW | options)


def test_a_group_moves_what_its_own_step_moves():
    scales = moved(groups=GROUPS)
    energy = scales.update_energy_of_group
    assert energy.dims == ("group", "layer")
    assert energy.group.values.tolist() == list(GROUPS)
    np.testing.assert_allclose(energy.sel(group="all"), scales.update_energy, rtol=1e-12)
    model, batch = made(models.GPT), models.tokens()

    def norms_alone(own):
        for name, parameter in own.named_parameters():
            if ".ln_" not in name:
                parameter.grad = None
        return torch.optim.AdamW(own.parameters(), lr=1e-3)

    expected = central_differences(model, models.token_loss, batch, norms_alone, NAMES)
    np.testing.assert_allclose(energy.sel(group="norms"), [expected[name] for name in NAMES], rtol=1e-5)
    assert (scales.update_energy_of_group_stderr == 0).all()


def test_it_is_a_quantity_of_the_registry_as_all_others():
    """And no variable of the dataset is none, or has no words."""
    scales = moved(groups=GROUPS)
    own = {name for name in map(str, scales.data_vars) if not re.search("_(stderr|largest_share|covariance)$", name)}
    assert "update_energy_of_group" in own
    assert own <= set(mf.QUANTITIES)
    entry, attrs = mf.QUANTITIES["update_energy_of_group"], scales["update_energy_of_group"].attrs
    assert scales["update_energy_of_group"].dims == entry.dims
    assert (attrs["symbol"], attrs["definition"], attrs["units"]) == (entry.symbol, entry.definition, "1")
    assert scales["update_energy_of_group_largest_share"].values == pytest.approx(0.5)


def test_what_stands_below_a_group_does_not_move():
    energy = moved(groups={"last": "transformer.ln_f.weight"}).update_energy_of_group[0]
    assert energy.values[:2].tolist() == [0, 0]
    assert (energy[2:] > 0).all()


@pytest.mark.parametrize(
    ("refusal", "sentence", "groups"),
    [
        (ValueError, "no parameter that trains fits 'gains'", {"norms": ["*.ln_?.*", "gains"]}),
        (TypeError, "give a mapping from labels to patterns", ["*.bias"]),
        (TypeError, "give names of parameters", {"norms": 3}),
        (TypeError, "give names of parameters", {"norms": [3]}),
    ],
)
def test_groups_that_are_none_are_refused(refusal, sentence, groups):
    with pytest.raises(refusal, match=sentence):
        moved(groups=groups)
