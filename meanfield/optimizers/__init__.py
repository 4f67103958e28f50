"""Optimizers as pure functions of a state and a gradient, by the names that hyperparameter tables use."""

from __future__ import annotations

from meanfield.optimizers.adamw import AdamW
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.lion import Lion
from meanfield.optimizers.muon import Muon
from meanfield.optimizers.muon_kimi import MuonKimi
from meanfield.optimizers.sgd import SGD
from meanfield.optimizers.shampoo import Shampoo
from meanfield.optimizers.soap import SOAP
from meanfield.optimizers.sophia import Sophia
from meanfield.optimizers.sso import SSO

# How well first steps and runs of many steps keep to SSO's sphere: every trial costs a norm of the matrix.
SPHERE, RUNNING = 1e-5, 1e-3

# As they are run: with momentum.
OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": SGD(),
    "adamw": AdamW(),
    "lion": Lion(),
    "sophia": Sophia(),
    "muon": Muon(),
    "muon_kimi": MuonKimi(),
    "shampoo": Shampoo(),
    "soap": SOAP(),
    "sso": SSO(tolerance=RUNNING),
}

# As P1 analyses them: the first step, without momentum; an epsilon of zero goes with it.
FIRST_STEPS: dict[str, Optimizer] = {
    "sgd": SGD(0.0),
    "adamw": AdamW(0.0, 0.0),
    "lion": Lion(0.0, 0.0),
    "sophia": Sophia(0.0, 0.0),
    "muon": Muon(0.0, None),
    "muon_kimi": MuonKimi(0.0, None),
    "shampoo": Shampoo(0.0, 0.0),
    "soap": SOAP(0.0, 0.0, 0.0),
    "sso": SSO(0.0, SPHERE),
}

# Optimizers that take every element by itself, and so biases too; the others leave biases to AdamW, as P1 has it.
ELEMENTWISE = tuple(name for name, one in OPTIMIZERS.items() if one.elementwise)
