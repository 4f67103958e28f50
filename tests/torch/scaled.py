"""A GPT whose hyperparameters follow a table, with cells that may be broken on purpose, and its AdamW."""

from collections import defaultdict

import torch
from torch import nn

import meanfield as mf
from tests.torch import models

BASE_WIDTH, BASE_DEPTH, HEAD, VOCABULARY, LENGTH = 32, 2, 8, 11, 8
RATE = 0.004
ROLES = ("input", "hidden", "output", "input_bias", "hidden_bias")
# Of the base model, in which output weights move the outputs more than all others do. The tables have no initial
# variance of gains and biases, which begin at 1 and 0.
BASE_VALUES = {
    "block_multiplier": dict(zip(ROLES, (1.0, 1 / BASE_DEPTH, 1 / BASE_WIDTH, 1.0, 1 / BASE_DEPTH), strict=True)),
    "initial_variance": dict(zip(ROLES, (0.5, 1 / BASE_WIDTH, 1.0, 0.0, 0.0), strict=True)),
    "learning_rate": dict(zip(ROLES, (RATE, RATE, 32 * RATE, RATE, RATE), strict=True)),
    "adamw_epsilon": 1e-12,
}


def by_role(width, depth, parameterization="spectral", broken=None, epsilon=1e-12):
    """role -> hyperparameters; ``broken``: (role, hyperparameter) -> the power of r_n and of r_L by which it is off."""
    sizes = {"width": width, "depth": depth, "base_width": BASE_WIDTH, "base_depth": BASE_DEPTH}
    how = {"base_values": BASE_VALUES | {"adamw_epsilon": epsilon}, "block_depth": 2}
    values = mf.transfer_hyperparameters("adamw", **sizes, **how, parameterization=parameterization)
    if parameterization == "standard":
        values["hidden"]["initial_variance"] = 1 / width  # as programs draw them
    for (role, name), (in_width, in_depth) in (broken or {}).items():
        values[role][name] *= (width / BASE_WIDTH) ** in_width * (depth / BASE_DEPTH) ** in_depth
    return values


def role_of(name):
    """Gains and biases are hidden biases."""
    if name.startswith(("wte", "wpe")):
        return "input"
    if name.startswith("lm_head"):
        return "output"
    return "hidden_bias" if "ln_" in name or name.endswith("bias") else "hidden"


class Branches(models.Block):
    """A block whose branches are multiplied."""

    def __init__(self, width, multiplier):
        super().__init__(width, width // HEAD, 0.0)
        self.multiplier = multiplier

    def forward(self, x):
        x = x + self.multiplier * self.attn(self.ln_1(x))
        return x + self.multiplier * self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """With heads of one size, an untied head, and initial weights and multipliers by a table."""

    def __init__(self, width, depth, **how):
        super().__init__()
        values = by_role(width, depth, **how)
        self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(LENGTH, width)
        self.h = nn.ModuleList([Branches(width, values["hidden"]["block_multiplier"]) for _ in range(depth)])
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        self.multiplier = values["output"]["block_multiplier"]
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "ln_" not in name:
                fan_in = parameter.shape[1] / width if role_of(name) == "hidden" else 1.0
                nn.init.normal_(parameter, std=(values[role_of(name)]["initial_variance"] / fan_in) ** 0.5)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.multiplier * self.lm_head(self.ln_f(x))


def adamw(model, width, depth, **how):
    """With a group for every role."""
    groups, values = defaultdict(list), by_role(width, depth, **how)
    for name, parameter in model.named_parameters():
        groups[role_of(name)].append(parameter)
    listed = [
        {"params": own, "lr": values[role]["learning_rate"], "eps": values[role]["adamw_epsilon"]}
        for role, own in groups.items()
    ]
    return torch.optim.AdamW(listed, weight_decay=0.0)


def batches(count=16, samples=8):
    return [models.tokens(samples, LENGTH, VOCABULARY, seed=seed) for seed in range(count)]
