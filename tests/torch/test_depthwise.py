"""Convolutions of every channel by itself, as a ConvNeXt has them: refused with a role, which keeps their change."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

from torch import nn  # noqa: E402

import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402

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
