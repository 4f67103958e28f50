"""Nets of blocks under hyperparameter tables: what the simulations of P1's conditions share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meanfield.nets import BlockNet

# P1's tables for blocks of k >= 2 layers (condition 3.1), of one layer (condition B.1), and none: nothing scales.
TABLES = {"many": "k >= 2 table", "one": "k = 1 table", "standard": "standard"}

BASE_WIDTH, BASE_DEPTH = 64, 2
INPUT_WIDTH = 16

# Base learning rates at which the first update moves the stream of the base model by about a tenth of itself.
RATES = {
    "sgd": 0.2,
    "adamw": 0.002,
    "lion": 0.002,
    "sophia": 0.002,
    "muon": 0.06,
    "muon_kimi": 0.04,
    "shampoo": 0.6,
    "soap": 0.03,
    "sso": 0.06,
}
# SOAP needs an epsilon, of which P1 gives no row: a turned basis has slots where the momentum is not small and no
# squared gradient has come in yet. It stands beside singular values of gradients, Shampoo's beside their squares.
SOAP_EPSILON = 0.002
# Of a typical element (AdamW) or squared singular value (Shampoo) of the base model's gradients, a millionth or less.
EPSILONS = {"adamw": {"adamw_epsilon": 1e-10}, "shampoo": {"shampoo_epsilon": 1e-12}}


def hyperparameters(
    optimizer: str, table: str, width: int, depth: int, *, rate: float | None = None, biases: bool = False
) -> dict[str, dict[str, float]]:
    """role -> hyperparameters by a table. The base model is of width 64 and depth 2, its streams and outputs O(1)."""
    from meanfield.parameterizations import ROLES, WEIGHTS, transfer_hyperparameters

    roles = ROLES if biases else WEIGHTS
    multiplier = {"input": 1.0, "hidden": 1.0 / BASE_DEPTH, "output": 1.0 / BASE_WIDTH}
    variance = {"input": 1.0 / INPUT_WIDTH, "hidden": 1.0 / BASE_WIDTH, "output": 1.0}
    if biases:
        multiplier |= {"input_bias": multiplier["input"], "hidden_bias": multiplier["hidden"]}
        variance |= {"input_bias": 1.0, "hidden_bias": 1.0}
    base: dict[str, Any] = {"block_multiplier": multiplier, "initial_variance": variance}
    base |= {"learning_rate": RATES[optimizer] if rate is None else rate, **EPSILONS.get(optimizer, {})}
    shared: dict[str, Any] = {"width": width, "depth": depth, "base_width": BASE_WIDTH, "base_depth": BASE_DEPTH}
    shared |= {"block_depth": 1 if table == "one" else 2, "roles": roles}
    shared |= {"parameterization": "standard" if table == "standard" else "spectral"}
    found = transfer_hyperparameters(optimizer, base_values=base, **shared)
    if optimizer == "soap":
        squares = transfer_hyperparameters("shampoo", base_values={"shampoo_epsilon": SOAP_EPSILON**2}, **shared)
        for role in roles:
            found[role]["soap_epsilon"] = squares[role]["shampoo_epsilon"] ** 0.5
    return found


def block_net(by_role: Mapping[str, Mapping[str, float]], width: int, depth: int, **options: Any) -> BlockNet:
    """The net whose multipliers and variances these hyperparameters give."""
    from meanfield.nets import ROLES, BlockNet

    multipliers, variances = (
        tuple(by_role[role][name] for role in ROLES) for name in ("block_multiplier", "initial_variance")
    )
    if options.get("biases"):
        options = options | {"bias_variance": by_role["hidden_bias"]["initial_variance"]}
    shared: dict[str, Any] = {"input_width": INPUT_WIDTH, "multipliers": multipliers, "variances": variances}
    return BlockNet(width=width, depth=depth, **(shared | options))
