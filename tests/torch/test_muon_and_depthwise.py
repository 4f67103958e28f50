"""Muon's rates from those of AdamW, by as large a change of every matrix.

Convolutions of every channel by itself, as a ConvNeXt has them: refused with a role, which keeps their change.
"""

from functools import partial
from math import sqrt

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402

import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402


def gpt(width, depth):
    return models.GPT(depth=depth, width=width, heads=width // 16)


def by_name(groups):
    return {group.name: group for group in groups.groups}


@pytest.mark.parametrize("condition", ["3.1", "B.1"])
def test_muon_takes_its_rate_from_adamw_s(condition):
    """At the base model its steps are 0.2 lr of AdamW's in the root of the mean square, and beyond it Muon-Kimi's."""
    base, models_of = gpt(32, 2), [gpt(64, 4), gpt(64, 4)]
    models_of[1].load_state_dict(models_of[0].state_dict())
    given = {"weight_decay": 0.1, "condition": condition}
    rates = {"adamw": 0.001, "muon": "match_rms_adamw"}
    made = mft.parameter_groups(models_of[0], base, optimizer="muon-adamw", lr=rates, **given)
    of_kimi = mft.parameter_groups(models_of[1], base, optimizer="muon_kimi-adamw", lr=0.001, **given)
    factor = 1 if condition == "3.1" else 1 / sqrt(2)
    groups = by_name(made)
    of_branches = {"query key value", "ffn", "projection of 64 columns", "projection of 256 columns"}
    assert {name for name, group in groups.items() if group.optimizer == "muon"} == of_branches
    for name, columns in {"ffn": 32, "projection of 64 columns": 32, "projection of 256 columns": 128}.items():
        assert groups[name].learning_rate == pytest.approx(0.001 * 0.2 * sqrt(columns) * factor, rel=1e-12)
    assert made.labels().keys() == of_kimi.labels().keys()
    assert len(made.numbers()) == len(made.groups)
    muons = [
        torch.optim.Muon(made.by_optimizer()["muon"]),
        torch.optim.Muon(of_kimi.by_optimizer()["muon_kimi"], adjust_lr_fn="match_rms_adamw"),
    ]
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        for sides in zip(*(model.parameters() for model in models_of), strict=True):
            sides[0].grad = sides[1].grad = torch.randn(sides[0].shape, generator=generator)
        for muon in muons:
            muon.step()
    for sides in zip(*(model.parameters() for model in models_of), strict=True):
        torch.testing.assert_close(sides[0], sides[1], rtol=1e-5, atol=1e-8)
    assert any("adjust_lr_fn='match_rms_adamw'" in premise for premise in made.premises)
    assert not any("adjust_lr_fn" in premise for premise in of_kimi.premises)


def test_matrices_change_by_as_large_a_share_under_muon_as_under_adamw():
    """At the base model's sizes, with AdamW's elements 0.2 of its rate in the root of their mean square."""
    base, deeper = gpt(32, 2), gpt(32, 4)
    rates = {"adamw": 0.001, "muon": "match_rms_adamw"}
    groups = mft.parameter_groups(deeper, base, optimizer="muon-adamw", lr=rates)
    before = {name: parameter.detach().clone() for name, parameter in deeper.named_parameters()}
    for parameter in deeper.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    torch.optim.Muon(groups.by_optimizer()["muon"], ns_steps=12, ns_coefficients=(2, -1.5, 0.5)).step()
    stepped = [name for group in groups.groups if group.optimizer == "muon" for name in group.parameters]
    sizes = [float((deeper.get_parameter(name).detach() - before[name]).square().mean().sqrt()) for name in stepped]
    assert len(sizes) == 16
    np.testing.assert_allclose(sizes, 0.2 * 0.001, rtol=0.1)


def test_muon_s_rate_of_a_role_stands_beside_those_made_from_adamw_s():
    rates = {"adamw": 0.001, "muon": "match_rms_adamw", "ffn": 0.02}
    decayed = {"lr": rates, "weight_decay": 0.1, "optimizer": "muon-adamw"}
    groups = by_name(mft.parameter_groups(gpt(64, 2), gpt(32, 2), **decayed))
    assert (groups["ffn"].learning_rate, groups["ffn"].weight_decay) == (0.02, 0.1)
    made = groups["query key value"]
    assert made.learning_rate * made.weight_decay == pytest.approx(0.001 * 0.1, rel=1e-12)


@pytest.mark.parametrize(
    ("sentence", "how"),
    [
        ("'match_rms_adamw' in place of Muon's number makes it from AdamW's", {"lr": 0.02}),
        ("which takes the number of 'adamw', and there is none: give", {"lr": {"muon": "match_rms_adamw"}}),
        (
            "which takes the number of 'adamw', and there is none: give optimizer='muon-adamw'",
            {"lr": {"muon": "match_rms_adamw", "sgd": 0.1}, "optimizer": "muon-sgd"},
        ),
    ],
)
def test_what_has_no_rate_to_take_is_refused(sentence, how):
    with pytest.raises(ValueError, match=sentence):
        mft.parameter_groups(gpt(32, 2), gpt(16, 2), **{"optimizer": "muon-adamw"} | how)


@pytest.mark.parametrize("rates", [{"muon": "original", "adamw": 0.1}, {"muon": 0.1, "adamw": "match_rms_adamw"}])
def test_other_words_are_no_rates(rates):
    with pytest.raises(TypeError, match=r"lr of '(muon|adamw)' is '\w+'"):
        mft.parameter_groups(gpt(32, 2), gpt(16, 2), optimizer="muon-adamw", lr=rates)


WIDTHS = 8, 64
ROLES = {"*.depthwise.weight": "norm_gain"}


class Block(nn.Module):
    """As in a ConvNeXt, with a gain of its own behind the branch."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.norm, self.wide = nn.LayerNorm(channels), nn.Linear(channels, 4 * channels)
        self.narrow, self.gamma = nn.Linear(4 * channels, channels), nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x):
        branch = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        branch = self.gamma * self.narrow(nn.functional.gelu(self.wide(branch)))
        return x + branch.permute(0, 3, 1, 2)


def convnext(width, depth=2):
    ends = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(width), nn.Linear(width, 3)
    return nn.Sequential(nn.Conv2d(1, width, 2, 2), nn.Sequential(*[Block(width) for _ in range(depth)]), *ends)


def test_the_refusal_names_the_role_of_a_depthwise_kernel():
    with pytest.raises(ValueError, match=r"\(depthwise\) scales as a gain does, 'norm_gain': say what it is, roles="):
        mft.parameter_groups(convnext(32), convnext(16), lr=0.01)


def test_a_depthwise_kernel_as_a_gain_moves_outputs_alike_at_every_width():
    """In one step of AdamW by the table; its own rate over r_n, as hidden matrices have it, makes it fall."""
    small = convnext(WIDTHS[0])

    def made(width):
        model = convnext(width)
        if width != WIDTHS[0]:
            mft.parameter_groups(model, small, lr=0.01, roles=ROLES).apply()
        return model

    def stepped(model, power):
        """By the table, but for kernels, whose rate has this power of the width."""
        if model[0].out_channels == WIDTHS[0]:
            return torch.optim.AdamW(model.parameters(), lr=0.01)
        optimizer = torch.optim.AdamW(mft.parameter_groups(model, small, lr=0.01, roles=ROLES))
        for group in optimizer.param_groups:
            if any(parameter.dim() == 4 and parameter.shape[1:] == (1, 3, 3) for parameter in group["params"]):
                group["lr"] *= (model[0].out_channels / WIDTHS[0]) ** power
        return optimizer

    def moved(width, power):
        how = {"draws": 8, "groups": {"kernels": "*.depthwise.weight"}, "modules": ["1.1"], "precision": "float32"}
        batches = [models.images(seed=seed) for seed in range(4)]
        make = partial(stepped, power=power)
        found = mft.step_scales(partial(made, width), nn.functional.cross_entropy, batches, optimizer=make, **how)
        return float(found.update_energy_of_group.sel(group="kernels")[0]) ** 0.5

    by_table = [moved(width, 0) for width in WIDTHS]
    np.testing.assert_allclose(by_table, by_table[0], rtol=0.2)
    assert moved(WIDTHS[-1], -1) < by_table[0] / 4


@pytest.mark.filterwarnings("error")
def test_four_times_as_many_inputs_are_no_root_of_depth():
    """PyTorch draws the last layer of a branch at half the size of the first, as two blocks of GPT-2 would have it."""
    mft.parameter_groups(convnext(64), convnext(32), lr=0.01, roles=ROLES)
