"""Tuning a learning rate, and carrying it from one net to another."""

from meanfield.transfer.premises import PRE_NORM_TRAINED, depth_over_width
from meanfield.transfer.rules import RIVALS, RULES, GivenPower, Rule, StableRate
from meanfield.transfer.tuning import CURVATURE_DRAWS, Tuning, tune_all

__all__ = [
    "CURVATURE_DRAWS",
    "PRE_NORM_TRAINED",
    "RIVALS",
    "RULES",
    "GivenPower",
    "Rule",
    "StableRate",
    "Tuning",
    "depth_over_width",
    "tune_all",
]
