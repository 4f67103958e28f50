"""The registry of quantities, and the datasets that hold them."""

from meanfield.nets.lattice import missing_terms
from meanfield.quantities.registry import QUANTITIES, predicted_dataset

__all__ = [
    "QUANTITIES",
    "missing_terms",
    "predicted_dataset",
]
