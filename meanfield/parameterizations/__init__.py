"""How hyperparameters scale with width and depth under every optimizer: tables as data, and numbers from them."""

from meanfield.parameterizations.recipe_check import RecipeReport, judge_recipe
from meanfield.parameterizations.recipes import CONDITIONS, RECIPE_ROLES, Recipe, read_recipe
from meanfield.parameterizations.resolution import (
    MUON_VARIANTS,
    muon_step_size,
    muon_variant_factors,
    optimizers_by_role,
    transfer_hyperparameters,
)
from meanfield.parameterizations.tables import (
    BIASES,
    CONSTANT,
    HYPERPARAMETERS,
    OPTIMIZER_NAMES,
    PARAMETERIZATIONS,
    PREMISES,
    ROLES,
    TABLES,
    UNPRINTED,
    WEIGHTS,
    Scaling,
    Table,
    hyperparameter_table,
    hyperparameters_of,
    scaling,
    unmet_premises,
)

__all__ = [
    "BIASES",
    "CONDITIONS",
    "CONSTANT",
    "HYPERPARAMETERS",
    "MUON_VARIANTS",
    "OPTIMIZER_NAMES",
    "PARAMETERIZATIONS",
    "PREMISES",
    "RECIPE_ROLES",
    "ROLES",
    "TABLES",
    "UNPRINTED",
    "WEIGHTS",
    "Recipe",
    "RecipeReport",
    "Scaling",
    "Table",
    "hyperparameter_table",
    "hyperparameters_of",
    "judge_recipe",
    "muon_step_size",
    "muon_variant_factors",
    "optimizers_by_role",
    "read_recipe",
    "scaling",
    "transfer_hyperparameters",
    "unmet_premises",
]
