"""The registry of quantities, and the datasets that hold them."""

from .datasets import predicted_dataset as predicted_dataset
from .stencil_sums import missing_terms as missing_terms
from .registry import QUANTITIES as QUANTITIES
