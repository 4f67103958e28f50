"""How hyperparameters scale with width and depth under every optimizer: P1's tables as data, and numbers from them."""

from meanfield.parameterizations.premises import PREMISES, unmet_premises
from meanfield.parameterizations.resolution import resolve
from meanfield.parameterizations.scalings import CONSTANT, Scaling
from meanfield.parameterizations.tables import (
    BIASES,
    HYPERPARAMETERS,
    OPTIMIZERS,
    PARAMETERIZATIONS,
    ROLES,
    TABLES,
    WEIGHTS,
    Table,
    scaling,
    table_of,
)

__all__ = [
    "BIASES",
    "CONSTANT",
    "HYPERPARAMETERS",
    "OPTIMIZERS",
    "PARAMETERIZATIONS",
    "PREMISES",
    "ROLES",
    "TABLES",
    "WEIGHTS",
    "Scaling",
    "Table",
    "resolve",
    "scaling",
    "table_of",
    "unmet_premises",
]
