"""The optimizers by name, as they are run and as Zheng et al. 2026 analyse them."""

from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.elementwise import SGD, AdamW, Lion, Sophia
from meanfield.optimizers.muon import Muon, MuonKimi
from meanfield.optimizers.shampoo import Shampoo
from meanfield.optimizers.soap import SOAP
from meanfield.optimizers.sso import SSO

# How closely SSO keeps to its sphere, in first steps and in runs of many steps: every trial costs a norm of the matrix.
SPHERE, RUNNING = 1e-5, 1e-3

# With momentum, as they are run.
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

# Without momentum, as the paper analyses the first step; an epsilon of zero goes with it.
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

# These step every element by itself, biases included; the others leave biases to AdamW, as the paper does.
ELEMENTWISE = tuple(name for name, optimizer in OPTIMIZERS.items() if optimizer.elementwise)
