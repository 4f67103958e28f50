"""Tuning a learning rate, and carrying it from one net to another."""

from .other_questions import PRE_NORM_TRAINED as PRE_NORM_TRAINED
from .premises import depth_over_width as depth_over_width
from .rivals import RIVALS as RIVALS
from .rivals import GivenPower as GivenPower
from .rivals import StableRate as StableRate
from .rules import RULES as RULES
from .rules import Rule as Rule
from .tuning import tune_all as tune_all
from .tuning_task import Tuning as Tuning
