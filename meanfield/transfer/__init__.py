"""Tuning a learning rate, and carrying it from one net to another."""

from meanfield.quantities.step_scales import median_over_draws, median_scale
from meanfield.transfer.carry import depth_over_width
from meanfield.transfer.depth_law import LawQuestion
from meanfield.transfer.law_quantities import LAW_QUANTITIES
from meanfield.transfer.one_step import OneStep
from meanfield.transfer.range_test import RangeTest
from meanfield.transfer.rules import RIVALS, RULES, GivenPower, Rule, StableRate
from meanfield.transfer.starting import (
    calibration_of_kind,
    change_that_carries,
    named_rate,
    naming_net,
    rate_stays,
    slopes_part,
    step_that_names,
    untried,
    widens,
)
from meanfield.transfer.trials import (
    CALIBRATIONS,
    CONNECTED,
    CONVOLUTIONAL,
    PRE_NORM,
    PRE_NORM_TRAINED,
    SCALES,
    TRANSFORMER,
    TRIAL_WIDTHS,
)
from meanfield.transfer.tuning import CURVATURE_DRAWS, Tuning, tune_all

__all__ = [
    "CALIBRATIONS",
    "CONNECTED",
    "CONVOLUTIONAL",
    "CURVATURE_DRAWS",
    "LAW_QUANTITIES",
    "PRE_NORM",
    "PRE_NORM_TRAINED",
    "RIVALS",
    "RULES",
    "SCALES",
    "TRANSFORMER",
    "TRIAL_WIDTHS",
    "GivenPower",
    "LawQuestion",
    "OneStep",
    "RangeTest",
    "Rule",
    "StableRate",
    "Tuning",
    "calibration_of_kind",
    "change_that_carries",
    "depth_over_width",
    "median_over_draws",
    "median_scale",
    "named_rate",
    "naming_net",
    "rate_stays",
    "slopes_part",
    "step_that_names",
    "tune_all",
    "untried",
    "widens",
]
