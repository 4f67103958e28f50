"""Parameter groups by the tables: roles and numbers of a GPT and a ResNet, edits that are made, and refusals."""

import json
from copy import deepcopy
from functools import partial
from math import sqrt

import numpy as np
import pytest

import meanfield as mf

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from meanfield.torch.edits import multiplier_of  # noqa: E402
from meanfield.torch.parameter_groups import ParameterGroups  # noqa: E402
from tests.torch import models  # noqa: E402

nn = torch.nn
SIZES = {"width": 128, "depth": 8, "base_width": 32, "base_depth": 2, "block_depth": 2}
GIVEN = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-8}
UNTIED = {"transformer.wte.weight": "embedding"}


def gpt(width, depth, heads=None, **how):
    return models.GPT(depth=depth, width=width, heads=heads or width // 16, **how)


def untied(width, depth):
    model = gpt(width, depth)
    model.lm_head.weight = nn.Parameter(torch.randn_like(model.lm_head.weight) * 0.1)
    return model


@pytest.fixture
def both():
    return gpt(128, 8), gpt(32, 2)


def by_name(groups):
    return {group.name: group for group in groups.groups}


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "lion"])
@pytest.mark.parametrize("condition", ["3.1", "B.1"])
def test_numbers_are_those_of_the_library(optimizer, condition):
    """Of every role, by `mf.transfer_hyperparameters`; gains and biases do not decay."""
    groups = mft.parameter_groups(untied(128, 8), untied(32, 2), optimizer=optimizer, condition=condition, **GIVEN)
    sizes = SIZES | {"block_depth": {"3.1": 2, "B.1": 1}[condition]}
    epsilon = {"adamw_epsilon": 1e-8} if optimizer == "adamw" else {}
    base = {"learning_rate": 0.01, "weight_decay": 0.1} | epsilon
    expected = mf.transfer_hyperparameters(optimizer, base_values=base, **sizes)
    columns = {"embedding": "input", "position": "input", "head": "output", "ffn": "hidden", "projection": "hidden"}
    columns |= {"query key value": "hidden", "bias": "hidden_bias", "norm gain": "hidden_bias"}
    columns |= {"norm bias": "hidden_bias", "norm gain outside blocks": "input_bias"}
    columns |= {"norm bias outside blocks": "input_bias"}
    assert set(by_name(groups)) == set(columns)
    for name, group in by_name(groups).items():
        numbers = expected[columns[name]]
        assert group.learning_rate == pytest.approx(numbers["learning_rate"], rel=1e-12)
        assert group.epsilon == (pytest.approx(numbers["adamw_epsilon"], rel=1e-12) if epsilon else None)
        decays = columns[name] in ("input", "hidden", "output")
        assert group.weight_decay == pytest.approx(numbers["weight_decay"] if decays else 0, rel=1e-12)


def test_every_parameter_has_one_group(both):
    groups = mft.parameter_groups(*both, **GIVEN)
    names = [name for group in groups.groups for name in group.parameters]
    assert sorted(names) == sorted(name for name, _ in both[0].named_parameters())
    assert groups.labels()["transformer.h.3.attn.c_proj.weight"] == "projection"
    assert groups.labels()["transformer.ln_f.weight"] == "norm gain outside blocks"
    assert groups.numbers()["ffn"] == {
        "optimizer": "adamw",
        "learning_rate": 0.0025,
        "weight_decay": 0.4,
        "epsilon": 6.25e-10,
    }
    assert groups.sizes == "width x 4 (r_n), depth 2 -> 8 blocks (r_L = 4)"


def test_edits_are_made_once_a_branch(both):
    """Standard deviations on the base model's own; one multiplier a branch, however many matrices it has."""
    model, base = both
    groups = mft.parameter_groups(model, base, **GIVEN)
    multipliers = {edit.where: edit for edit in groups.edits if edit.what == "multiplier"}
    assert {where: (edit.value, len(edit.places)) for where, edit in multipliers.items()} == {
        "lm_head": (0.25, 1),
        "transformer.h.*.attn.c_proj": (0.25, 8),
        "transformer.h.*.mlp.2": (0.25, 8),
    }
    groups.apply()
    once = deepcopy(model.state_dict())
    groups.apply()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, once[name], rtol=1e-6, atol=0)
    std = torch.cat([block.attn.c_attn.weight.flatten() for block in model.transformer.h]).square().mean().sqrt()
    of_base = torch.cat([block.attn.c_attn.weight.flatten() for block in base.transformer.h]).square().mean().sqrt()
    assert std.item() == pytest.approx(of_base.item() / 2, rel=1e-5)
    assert model.lm_head.weight.std().item() == pytest.approx(base.lm_head.weight.std().item(), rel=0.2)
    assert multiplier_of(model.transformer.h[3].mlp[2]) == 0.25


def test_multipliers_act_on_branches_and_outputs():
    """The model by hand: x + attn / r_L, x + mlp / r_L, outputs over r_n."""
    model, base = gpt(64, 4).double(), gpt(32, 2).double()
    groups = mft.parameter_groups(model, base, **GIVEN)
    plain = deepcopy(model)
    groups.apply_multipliers()
    inputs, _ = models.tokens()
    x = plain.transformer.wte(inputs) + plain.transformer.wpe(torch.arange(inputs.shape[1]))
    for block in plain.transformer.h:
        x = x + block.attn(block.ln_1(x)) / 2
        x = x + block.mlp(block.ln_2(x)) / 2
    expected = plain.lm_head(plain.transformer.ln_f(x)) / 2
    torch.testing.assert_close(model(inputs), expected, rtol=1e-12, atol=1e-14)


def test_a_head_with_a_bias_keeps_it():
    def model(width):
        return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))

    large, inputs = model(64), torch.randn(5, 8)
    groups = mft.parameter_groups(large, model(16), **GIVEN)
    hidden = large[:2](inputs)
    expected = hidden @ large[2].weight.T / 4 + large[2].bias
    groups.apply_multipliers()
    torch.testing.assert_close(large(inputs), expected)
    head_bias = by_name(groups)["head bias"]
    assert (head_bias.learning_rate, head_bias.weight_decay, head_bias.epsilon) == (0.01, 0.0, 1e-8)


def test_groups_go_through_a_step_of_adamw(both):
    model, base = both
    groups = mft.parameter_groups(model, base, **GIVEN)
    groups.apply()
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    inputs, targets = models.tokens()
    models.token_loss(model(inputs), targets).backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        group = by_name(groups)[groups.labels()[name]]
        slope = parameter.grad
        step = slope / (slope.abs() + group.epsilon)
        expected = before[name] * (1 - group.learning_rate * group.weight_decay) - group.learning_rate * step
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-7)


def test_weight_decay_is_multiplied_by_the_rate():
    """By AdamW and Muon of PyTorch, as the table's row has it: W <- W - lr (A + decay W). Adam's is another."""
    matched = partial(torch.optim.Muon, adjust_lr_fn="match_rms_adamw")
    for kind in (torch.optim.AdamW, torch.optim.Muon, matched):
        weight = nn.Parameter(torch.ones(4, 4))
        optimizer = kind([weight], lr=0.1, weight_decay=0.5)
        weight.grad = torch.zeros(4, 4)
        optimizer.step()
        torch.testing.assert_close(weight.detach(), torch.full((4, 4), 0.95))
    weight = nn.Parameter(torch.ones(4, 4))
    weight.grad = torch.zeros(4, 4)
    torch.optim.Adam([weight], lr=0.1, weight_decay=0.5).step()
    assert float(weight.detach()[0, 0]) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("other", ["table", "standard"])
def test_the_first_step_moves_outputs_alike_at_every_width_by_the_table_alone(other):
    """Outputs move by the same at widths 32 and 256 under the table, and by several times as much under the base's."""
    moved = []
    for width in (32, 256):
        torch.manual_seed(1)
        model, base = gpt(width, 2).double(), gpt(32, 2).double()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
        if other == "table" and width > 32:
            groups = mft.parameter_groups(model, base, lr=0.01)
            groups.apply()
            optimizer = torch.optim.AdamW(groups)
        inputs, targets = models.tokens(samples=8)
        outputs = model(inputs)
        models.token_loss(outputs, targets).backward()
        optimizer.step()
        moved.append(float((model(inputs) - outputs).square().mean().sqrt().detach()))
    assert (0.6 < moved[1] / moved[0] < 1.6) == (other == "table")
    assert moved[1] / moved[0] < 1.6 or moved[1] / moved[0] > 3


def test_muon_and_adamw_share_a_model():
    model, base = gpt(64, 4), gpt(32, 2)
    groups = mft.parameter_groups(
        model, base, optimizer="muon-adamw", lr={"muon": 0.02, "adamw": 0.001}, weight_decay=0.1, eps=1e-10
    )
    handed = groups.by_optimizer()
    muon, adamw = torch.optim.Muon(handed["muon"]), torch.optim.AdamW(handed["adamw"])
    assert {group["name"] for group in muon.param_groups} == {"query key value", "projection", "ffn"}
    assert {group["lr"] for group in muon.param_groups} == {0.02}
    assert {group["lr"] for group in adamw.param_groups} == {0.001}
    assert {group["eps"] for group in adamw.param_groups} == {0.5e-10, 0.25e-10}
    with pytest.raises(ValueError, match=r"adamw and muon step these groups; give each its own: groups\.by_optimizer"):
        torch.optim.AdamW(groups)
    one_rate = mft.parameter_groups(model, base, optimizer="muon_kimi-adamw", lr=0.01)
    assert by_name(one_rate)["ffn"].learning_rate == pytest.approx(0.01 / sqrt(2))
    with pytest.raises(ValueError, match="lr is one number for muon and adamw, whose steps are of other sizes"):
        mft.parameter_groups(model, base, optimizer="muon-adamw", lr=0.02)


def test_depth_alone_keeps_matrices_outside_of_blocks_from_muon():
    """No width differs, and the order of the modules tells the head."""
    model, base = untied(32, 4), untied(32, 2)
    groups = mft.parameter_groups(model, base, optimizer="muon-adamw", lr={"muon": 0.02, "adamw": 0.001})
    assert by_name(groups)["head"].optimizer == "adamw"
    assert {edit.where for edit in groups.edits} == {"transformer.h.*.attn.c_proj", "transformer.h.*.mlp.2"}


def test_numbers_by_role_and_by_optimizer():
    rates = {"embedding": 0.3, "output": 0.004, "adamw": 0.001}
    groups = by_name(mft.parameter_groups(untied(64, 2), untied(32, 2), lr=rates))
    assert [groups[name].learning_rate for name in ("embedding", "head", "ffn")] == [0.3, 0.004, 0.0005]


def test_a_multiplier_of_the_base_model_is_kept():
    """A base that was itself carried: factors multiply, also where only the width grows from there."""
    small, middle, large = gpt(32, 2), gpt(64, 4), gpt(128, 4)
    mft.parameter_groups(middle, small, **GIVEN).apply()
    groups = mft.parameter_groups(large, middle, **GIVEN)
    values = {edit.where: edit.value for edit in groups.edits if edit.what == "multiplier"}
    assert values == {"lm_head": 0.25, "transformer.h.*.attn.c_proj": 0.5, "transformer.h.*.mlp.2": 0.5}


def test_a_resnet_has_its_multiplier_behind_its_normalisation():
    large, small = models.ResNet(depth=4, channels=16), models.ResNet(depth=2, channels=4)
    groups = mft.parameter_groups(large, small, optimizer="sgd", lr=0.1)
    values = {edit.where: edit.value for edit in groups.edits if edit.what == "multiplier"}
    assert values == {"fc": 0.25, "layer1.*.bn2": 0.5, "layer2.*.bn2": 0.5}
    labels = groups.labels()
    assert [labels[name] for name in ("conv1.weight", "fc.weight", "fc.bias")] == ["input", "head", "head bias"]
    found = [labels[f"layer2.0.{name}"] for name in ("conv2.weight", "downsample.0.weight")]
    assert found == ["projection", "hidden outside blocks"]


def test_pytorch_s_own_transformer_layers():
    """Its attention calls no output layer of its own, so that the multiplier stands on the attention."""

    def model(width, depth):
        layers = [nn.TransformerEncoderLayer(width, width // 8, 4 * width, dropout=0.0) for _ in range(depth)]
        return nn.Sequential(nn.Linear(5, width), *layers, nn.Linear(width, 3))

    large = model(32, 4)
    groups = mft.parameter_groups(large, model(16, 2), **GIVEN)
    places = {module for edit in groups.edits if edit.what == "multiplier" for module in edit.places}
    assert {f"{block}.{end}" for block in "1234" for end in ("self_attn", "linear2")} | {"5"} == places
    assert groups.labels()["1.self_attn.in_proj_weight"] == "query key value"
    plain = deepcopy(large)
    groups.apply_multipliers()
    inputs = torch.randn(7, 2, 5)
    assert not torch.allclose(large(inputs), plain(inputs))


def test_patches_and_heads_in_a_row_are_no_blocks():
    class Patches(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.project = nn.Linear(5, width)

        def forward(self, x):
            return self.project(x)

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x):
            return x + self.narrow(torch.relu(self.wide(x)))

    def model(width, depth):
        return nn.Sequential(Patches(width), *[Residual(width) for _ in range(depth)], nn.Linear(width, 2))

    groups = mft.parameter_groups(model(32, 6), model(16, 2), **GIVEN)
    assert groups.sizes.endswith("depth 2 -> 6 blocks (r_L = 3)")
    assert {edit.where for edit in groups.edits if edit.what == "multiplier"} == {"*.narrow", "7"}


def test_a_block_that_is_listed_several_times_counts_as_often():
    """A loop of one block's weights."""

    def model(width, loops):
        block = models.Block(width, width // 8, 0.0)
        return nn.Sequential(nn.Linear(5, width), *[block] * loops, nn.Linear(width, 3))

    groups = mft.parameter_groups(model(32, 6), model(16, 2), **GIVEN)
    assert groups.sizes.endswith("depth 2 -> 6 blocks (r_L = 3)")
    factors = {edit.where: edit.value for edit in groups.edits if edit.what == "multiplier"}
    assert factors == {"1.attn.c_proj": pytest.approx(1 / 3), "1.mlp.2": pytest.approx(1 / 3), "7": 0.5}


def test_json_comes_back(both):
    groups = mft.parameter_groups(*both, **GIVEN)
    read = ParameterGroups.from_json(groups.to_json(), both[0])
    assert read == groups
    assert json.loads(groups.to_json())["sizes"] == groups.sizes
    assert [group["lr"] for group in read] == [group["lr"] for group in groups]
    with pytest.raises(ValueError, match=r"do not have the same parameters: 'transformer.h.2.attn.c_attn.bias'"):
        ParameterGroups.from_json(groups.to_json(), both[1])


def without(field, of=None):
    """Of the JSON of groups, that lacks a field, or the first group or edit lacks it."""

    def changed(held):
        del (held if of is None else held[of][0])[field]
        return held

    return changed


def put(value, *path):
    def changed(held):
        inner = held
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return held

    return changed


BAD_JSON = {
    "null": (lambda held: None, "the whole is null and no object"),
    "a list": (lambda held: [], r"the whole is \[\] and no object"),
    "a number": (lambda held: 3, "the whole is 3 and no object"),
    "no groups": (lambda held: {}, "the whole has no 'groups'; it needs 'groups', 'edits', 'sizes', 'premises'"),
    "no sizes": (without("sizes"), "the whole has no 'sizes'"),
    "no rate": (without("learning_rate", "groups"), r"groups\[0\] has no 'learning_rate'; it needs 'name', "),
    "no places": (without("places", "edits"), r"edits\[0\] has no 'places'"),
    "unknown": (put(1, "groups", 0, "lr"), r"groups\[0\] has 'lr', which none has"),
    "groups are a number": (put(3, "groups"), "the whole has 'groups' 3, which must be a list of objects"),
    "a rate is a word": (put("x", "groups", 0, "learning_rate"), "'learning_rate' \"x\", which must be a number"),
    "a rate is infinite": (put(float("inf"), "groups", 0, "learning_rate"), "'learning_rate' Infinity, which must be"),
    "an edit of nothing": (put("x", "edits", 0, "what"), "'what' \"x\", which must be 'initial_std' or 'multiplier'"),
    "premises are none": (put(None, "premises"), "'premises' null, which must be a list of strings"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_other_json_is_refused(case):
    change, sentence = BAD_JSON[case]
    model = linear(32)
    held = json.loads(mft.parameter_groups(model, linear(16), **GIVEN).to_json())
    with pytest.raises(ValueError, match=f"the text is no JSON of parameter groups: .*{sentence}.*; give what groups"):
        ParameterGroups.from_json(json.dumps(change(held)), model)


def test_no_json_and_parameters_twice_are_refused():
    model = linear(32)
    held = json.loads(mft.parameter_groups(model, linear(16), **GIVEN).to_json())
    with pytest.raises(ValueError, match=r"no JSON of parameter groups: Expecting property name.*; give what groups"):
        ParameterGroups.from_json("{", model)
    with pytest.raises(ValueError, match=r"'0.bias', '0.weight', '2.bias', '2.weight' stand in several groups"):
        ParameterGroups.from_json(json.dumps(held | {"groups": held["groups"] * 2}), model)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("condition", ["3.1", "B.1"])
def test_groups_say_which_branches_their_table_is_for(layers, condition):
    """And ask for the other one where branches have another number of layers."""

    class Branch(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])

        def forward(self, x):
            return x + self.layers(x)

    def model(width, depth):
        blocks = torch.nn.ModuleList(Branch(width) for _ in range(depth))
        return torch.nn.ModuleDict(
            {"stem": torch.nn.Linear(3, width), "blocks": blocks, "head": torch.nn.Linear(width, 2)}
        )

    premises = mft.parameter_groups(model(32, 8), model(8, 2), lr=0.01, condition=condition).premises
    assert premises[0].startswith(f"condition {condition} of Zheng et al. 2026, for branches of")
    asked = [each for each in premises if "give condition=" in each]
    fits = (condition == "B.1") is (layers == 1)
    assert asked == ([] if fits else [asked[0]])
    assert fits or f"give condition={'B.1' if layers == 1 else '3.1'!r}" in asked[0]


def test_it_prints_what_to_set(both):
    lines = str(mft.parameter_groups(*both, **GIVEN)).splitlines()
    assert "  ffn (adamw, 8 tensors): lr 0.0025, weight decay 0.4, eps 6.25e-10" in lines
    branch = "  SET transformer.h.*.attn.c_proj: multiply what it gives, its bias included, by 0.25 (once in each of 8)"
    assert branch in lines
    assert "  SET lm_head: multiply what it reads by 0.25" in lines
    assert any("depth counts residual blocks, of a Transformer its layers" in line for line in lines)
    (read,) = (line for line in lines if "branches are read from the modules of blocks" in line)
    assert "not from what forward() makes of them: a norm behind a branch or behind the sum (post-norm), and" in read
    assert not any("branches are read" in line for line in mft.parameter_groups(linear(32), linear(16), lr=1).premises)


def test_weights_that_start_as_the_table_says_are_left_alone():
    """PyTorch's own law is 1/sqrt(fan in), which hidden weights keep."""

    def model(width):
        return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 64))

    groups = mft.parameter_groups(model(256), model(64), **GIVEN)
    stds = {edit.where: edit.value / edit.was for edit in groups.edits if edit.what == "initial_std"}
    assert set(stds) == {"3.weight", "2.bias", "3.bias"}
    np.testing.assert_allclose(stds["3.weight"], 2, rtol=0.05)


def test_heads_that_grow_are_warned_of():
    with pytest.warns(mf.PremiseWarning, match="the head size is 4 times the base model's"):
        groups = mft.parameter_groups(gpt(128, 2, heads=2), gpt(32, 2, heads=2), **GIVEN)
    assert any("the head size is 4 times" in premise for premise in groups.premises)


def test_the_root_of_depth_of_gpt_2_is_warned_of_and_taken_out():
    model, base = gpt(64, 8), gpt(32, 2)
    with torch.no_grad():
        for block in model.transformer.h:
            for layer in (block.attn.c_proj, block.mlp[2]):
                layer.weight /= sqrt(2 * 8)
    with pytest.warns(mf.PremiseWarning, match=r"over sqrt\(2 L\), as in GPT-2.*drop it"):
        groups = mft.parameter_groups(model, base, **GIVEN)
    groups.apply()
    assert model.transformer.h[0].mlp[2].weight.std().item() == pytest.approx(0.1 / sqrt(2), rel=0.05)


def test_outputs_that_no_layer_makes_are_left_to_the_user_aloud():
    class Functional(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.wte, self.hidden = nn.Embedding(7, width), nn.Linear(width, width)

        def forward(self, x):
            return self.hidden(self.wte(x)) @ self.wte.weight.T

    with pytest.warns(mf.PremiseWarning, match=r"no layer was found that makes the outputs.*by 0\.5 yourself"):
        mft.parameter_groups(Functional(32), Functional(16), **GIVEN)
    with pytest.warns(mf.PremiseWarning, match="'wte.weight' belongs to no layer that could be multiplied"):
        groups = mft.parameter_groups(Functional(32), Functional(16), roles={"wte.weight": "tied"}, **GIVEN)
    assert by_name(groups)["tied"].learning_rate == 0.01


class Oddity(nn.Module):
    """A matrix within a block that has one width alone."""

    def __init__(self, width):
        super().__init__()
        self.router, self.wide = nn.Linear(width, 3), nn.Linear(width, width)

    def forward(self, x):
        return x + self.wide(x) * self.router(x).sum()


def linear(width, outputs=3):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, outputs))


def zeros(width):
    model = linear(width)
    nn.init.zeros_(model[2].weight)
    return model


REFUSED = {
    "several ratios": (linear(32), linear(16, 4), {}, "differs by one ratio of widths alone"),
    "one size": (linear(16), linear(16), {}, "both models are of one size"),
    "other models": (gpt(32, 2), linear(16), {}, "has no counterpart that trains in the base model"),
    "no shape": (gpt(32, 2), gpt(16, 2), {"roles": {"*.ln_1.weight": "ffn"}}, "taken for 'ffn', but is"),
    "zero weights": (zeros(32), linear(16), {}, "'2.weight' starts at 0"),
    "unknown role": (linear(32), linear(16), {"roles": {"*": "core"}}, "the role of '\\*' is 'core'; choose one of"),
    "no such name": (linear(32), linear(16), {"roles": {"core": "head"}}, "no parameter that trains fits 'core'"),
    "optimizer of matrices": (linear(32), linear(16), {"optimizer": "muon"}, "name who steps the vectors, too: 'muon-"),
    "unknown optimizer": (linear(32), linear(16), {"optimizer": "adam"}, "optimizer is 'adam'; choose one of"),
    "condition": (linear(32), linear(16), {"condition": "3.2"}, "condition is '3.2'; choose one of '3.1', 'B.1'"),
    "negative rate": (linear(32), linear(16), {"lr": -1.0}, "lr is -1; it must be at least 0"),
    "unknown name of a rate": (linear(32), linear(16), {"lr": {"core": 1.0}}, "a name in lr is 'core'; choose one of"),
    "missing rate": (linear(32), linear(16), {"lr": {"head": 1.0}}, "lr has no number for '0.weight': give one for"),
    "one epsilon": (
        gpt(32, 2),
        gpt(16, 2),
        {"optimizer": "shampoo-adamw", "lr": {"shampoo": 1.0, "adamw": 0.1}},
        "eps is one number for shampoo and adamw",
    ),
    "tied": (gpt(32, 2), gpt(16, 2), {"lr": {"embedding": 0.1, "head": 0.2, "adamw": 0.1}}, "untie them, or give one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    model, base, how, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence):
        mft.parameter_groups(model, base, **GIVEN | how)


def test_blocks_without_an_end_are_refused():
    class Bare(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.scale, self.inner = nn.Parameter(torch.ones(width)), nn.LayerNorm(width)

    def model(width, depth):
        return nn.Sequential(nn.Linear(5, width), *[Bare(width) for _ in range(depth)], nn.Linear(width, 2))

    with pytest.raises(ValueError, match="no layer was found that ends a branch of every block"):
        mft.parameter_groups(model(32, 4), model(16, 2), depth=(2, 4), **GIVEN)
    with pytest.raises(TypeError, match="depth is 3; give two numbers of blocks"):
        mft.parameter_groups(model(32, 4), model(16, 2), depth=3, **GIVEN)


def test_roles_may_name_what_the_base_model_lacks():
    roles = {"transformer.h.3.attn.c_attn.weight": "value", "transformer.ln_f.weight": "bias"}
    groups = mft.parameter_groups(gpt(32, 4), gpt(16, 2), roles=roles, **GIVEN)
    assert groups.labels()["transformer.h.3.attn.c_attn.weight"] == "value"
    assert groups.labels()["transformer.ln_f.weight"] == "bias outside blocks"


def test_a_matrix_of_one_width_in_a_block_has_no_column():
    with pytest.raises(ValueError, match=r"say what it is, roles=\{'0.router.weight': ROLE\}"):
        mft.parameter_groups(*(nn.Sequential(Oddity(width)) for width in (32, 16)), **GIVEN)


def test_edits_of_another_model_are_refused(both):
    groups = mft.parameter_groups(*both, **GIVEN)
    with pytest.raises(ValueError, match=r"has no parameters 'transformer.h.2.attn.c_attn.weight'.*give the model of"):
        groups.apply(both[1])
    with pytest.raises(TypeError, match="model is 3; give a"):
        groups.apply(3)


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: torch.compile(model, backend="eager"), deepcopy])
def test_a_head_that_is_called_by_keyword_is_multiplied_alike(wrap):
    model, base, inputs = linear(32), linear(16), torch.ones(2, 32)
    mft.parameter_groups(model, base, **GIVEN).apply()
    head = wrap(model[2])
    torch.testing.assert_close(head(input=inputs), head(inputs))
    torch.testing.assert_close(head(input=inputs), inputs @ model[2].weight.T / 2 + model[2].bias)
    mft.parameter_groups(model, base, **GIVEN).apply()
    assert len(model[2]._forward_pre_hooks) == len(model[2]._forward_pre_hooks_with_kwargs) == 1


def test_a_multiplier_on_no_tensor_is_refused():
    class Head(nn.Linear):
        def forward(self, x, scale=1.0):
            return scale * super().forward(x)

    def model(width):
        return nn.Sequential(nn.Linear(8, width), Head(width, 3))

    large = model(32)
    mft.parameter_groups(large, model(16), **GIVEN).apply()
    with pytest.raises(TypeError, match="reads or gives nothing by position, nor its first input by name"):
        large[1](scale=2.0)
    with pytest.raises(TypeError, match="its module reads or gives a list"):
        large[1](x=[1.0])


class OddAttention(nn.Module):
    """Whose layers stand in another order than they are called in."""

    def __init__(self, width):
        super().__init__()
        self.out_proj, self.v_proj, self.k_proj, self.q_proj = (nn.Linear(width, width) for _ in range(4))


class OddBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(width), OddAttention(width)
        self.mid = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU())
        self.out = nn.Sequential(nn.Linear(4 * width, width), nn.Dropout(0.0))


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner


def odd(width, depth, wrap=lambda block: block):
    row = nn.Sequential(*[wrap(OddBlock(width)) for _ in range(depth)])
    return nn.Sequential(nn.Linear(8, width), row, nn.Linear(width, 3))


@pytest.mark.parametrize("wrap", [lambda block: block, Wrapped])
def test_branches_end_where_the_stream_is_given(wrap):
    """By names within attention, in two modules of one branch as BERT has them, and within wrappers."""
    groups = mft.parameter_groups(odd(64, 4, wrap), odd(16, 2, wrap), lr=0.01)
    ends = {place for edit in groups.edits if edit.what == "multiplier" and not edit.of_input for place in edit.places}
    inner = "inner." if wrap is Wrapped else ""
    assert ends == {f"1.{block}.{inner}{end}" for block in range(4) for end in ("attn.out_proj", "out.0")}


def test_shortcuts_have_no_factor_of_depth():
    """They have no multiplier, which rates of descent go against."""

    def rates(depth):
        target, base = (models.ResNet(depth=each) for each in (depth, 2))
        groups = mft.parameter_groups(target, base, optimizer="sgd", lr=0.1)
        return {name: group.learning_rate for group in groups.groups for name in group.parameters}

    found = rates(16)
    around = {name: rate for name, rate in found.items() if "downsample" in name}
    assert set(around.values()) == {0.1}
    assert found["layer2.0.conv1.weight"] == pytest.approx(0.8)


def test_a_branch_that_ends_in_no_layer_is_refused():
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, 4 * width)
            self.out = nn.Parameter(torch.randn(4 * width, width))

    def model(width, depth):
        return nn.Sequential(
            nn.Linear(8, width), nn.Sequential(*[Block(width) for _ in range(depth)]), nn.Linear(width, 3)
        )

    with pytest.raises(ValueError, match="no layer was found that ends a branch of every block"):
        mft.parameter_groups(model(64, 4), model(16, 2), lr=0.01)


def test_what_the_base_model_has_beside_is_refused():
    """As a head of its own, where the model's is tied."""
    base = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3))
    with pytest.raises(ValueError, match=r"'2\.weight' of the base model has no counterpart"):
        mft.parameter_groups(nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 64)), base, lr=0.01)


def test_muon_is_told_of_convolutions():
    large, small = models.ResNet(depth=4), models.ResNet(depth=2)
    with pytest.warns(mf.PremiseWarning, match="torch.optim.Muon steps matrices alone, and 'layer1.0.conv1.weight'"):
        mft.parameter_groups(large, small, optimizer="muon-adamw", lr={"muon": 0.02, "adamw": 0.001})


def test_multipliers_of_another_model_are_refused():
    groups = mft.parameter_groups(odd(64, 4), odd(16, 2), lr=0.01)
    with pytest.raises(ValueError, match=r"the model has no modules '1\.0\.attn\.out_proj'"):
        groups.apply_multipliers(nn.Linear(3, 3))
    with pytest.raises(TypeError, match="model"):
        groups.apply_multipliers(5)


class Numbered(nn.Module):
    """Blocks that stand in no list."""

    def __init__(self, width, depth):
        super().__init__()
        self.lift, self.head = nn.Linear(8, width), nn.Linear(width, 3)
        for number in range(depth):
            setattr(self, f"block{number}", models.Block(width, width // 8, 0.0))


class Row(nn.Sequential):
    """A class of one's own."""


def rows(width, depth):
    blocks = [models.Block(width, width // 8, 0.0) for _ in range(depth)]
    return nn.Sequential(nn.Linear(8, width), Row(*blocks), nn.Linear(width, 3))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            Numbered,
            r"'block2.ln_1.weight' has no counterpart .*: none has this name, .*'block0.ln_1.weight' of the base model "
            r"differs by a number alone, as blocks do. Blocks are .* nn.ModuleList, nn.Sequential or nn.ModuleDict "
            r"holds, .*found none. Keep all blocks in one such list, as self.blocks = nn.ModuleList\(\[...\]\)",
        ),
        (rows, r"none is called '\*.2.ln_1.weight'.*'1.0.ln_1.weight' .* no class made from these; .* and found '\*'"),
    ],
)
def test_blocks_that_are_not_found_are_told(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        mft.parameter_groups(make(32, 4), make(16, 2), **GIVEN)


def test_tokens_that_are_learned_take_the_column_of_positions():
    class Classified(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.cls_token, self.lift = nn.Parameter(torch.randn(1, width)), nn.Linear(5, width)
            self.head = nn.Linear(width, 3)

    groups = mft.parameter_groups(Classified(32), Classified(16), **GIVEN)
    assert groups.labels()["cls_token"] == "position"
    assert [edit.where for edit in groups.edits if edit.what == "multiplier"] == ["head"]


def test_heads_of_keys_that_do_not_grow_are_refused_with_a_remedy():
    class Grouped(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, 8)
            self.v_proj, self.o_proj = nn.Linear(width, 8), nn.Linear(width, width)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.self_attn = Grouped(width)

    with pytest.raises(ValueError, match=r"'0.self_attn.k_proj.weight' is taken for 'key'.*by more heads of keys and"):
        mft.parameter_groups(*(nn.Sequential(Layer(width), nn.Linear(width, 3)) for width in (32, 16)), **GIVEN)
