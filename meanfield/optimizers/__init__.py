"""Optimizers as pure functions of a state and a gradient, by the names that hyperparameter tables use."""

from meanfield.optimizers.base import Gradient, Optimizer, Place
from meanfield.optimizers.by_name import (
    FIRST_STEPS,
    FROM_REST,
    HYBRIDS,
    IN_NOISE,
    OPTIMIZERS,
    Hybrid,
    optimizer_of_role,
    require_optimizer,
)
from meanfield.optimizers.elementwise import SGD, AdamW, AdamWInNoise, Lion, Sophia
from meanfield.optimizers.matrices import SOAP, SSO, Muon, MuonKimi, Shampoo

__all__ = [
    "FIRST_STEPS",
    "FROM_REST",
    "HYBRIDS",
    "IN_NOISE",
    "OPTIMIZERS",
    "SGD",
    "SOAP",
    "SSO",
    "AdamW",
    "AdamWInNoise",
    "Gradient",
    "Hybrid",
    "Lion",
    "Muon",
    "MuonKimi",
    "Optimizer",
    "Place",
    "Shampoo",
    "Sophia",
    "optimizer_of_role",
    "require_optimizer",
]
