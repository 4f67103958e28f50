"""Carrying a learning rate from one net to another."""

from .premises import depth_over_width as depth_over_width
from .rules import RULES as RULES
