"""Base values of nets of blocks, and their hyperparameters at other sizes, each by the table of its optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from meanfield.common import require_choice, require_positive
from meanfield.nets import WEIGHT_ROLES, BlockNet
from meanfield.optimizers import optimizer_of_role
from meanfield.parameterizations import transfer_hyperparameters
from sims.common.command import Option

BASE_WIDTH, BASE_DEPTH = 64, 2
INPUT_WIDTH = 16
# Of the base model, by role: the multiplier and the variance of an element. Biases are multiplied with their weights.
BASE_SCALES = {
    "input": (1.0, 1.0 / INPUT_WIDTH),
    "hidden": (1.0 / BASE_DEPTH, 1.0 / BASE_WIDTH),
    "output": (1.0 / BASE_WIDTH, 1.0),
}
BIAS_OF = {"input_bias": "input", "hidden_bias": "hidden"}

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
# Base learning rates without momentum, at which ten steps move the stream by about itself. At lower ones the first
# step's overlaps of independent vectors, which fall with the width, still outweigh what further steps add to terms of
# higher order; at higher ones changes grow among each other, as (1 + c / L)^L, whose approach to its limit over L looks
# like a slope. Without momentum AdamW and Lion take one step, the sign, as Sophia does unless curvature is large; and
# Muon, Shampoo and SOAP take another.
PLAIN_RATES = {"sgd": 0.4, "adamw": 0.001, "muon": 0.06, "muon_kimi": 0.04, "sso": 0.06}
PLAIN_RATES |= dict.fromkeys(("lion", "sophia"), 0.001) | dict.fromkeys(("shampoo", "soap"), 0.06)

# SOAP needs an epsilon, of which the paper gives no row: a turned basis has slots where the momentum is not small and
# no squared gradient has come in yet, as gradients of eight samples have a rank of eight or less. There the momentum is
# divided by epsilon alone, so that steps are as large as epsilon is small. It stands beside singular values of
# gradients, Shampoo's beside their squares. The usual value is that of programs, which train on batches of full rank.
SOAP_EPSILON, USUAL_SOAP_EPSILON = 0.002, 1e-8
# Of a typical element (AdamW) or squared singular value (Shampoo) of the base model's gradients, a millionth or less.
EPSILONS = {"adamw": {"adamw_epsilon": 1e-10}, "shampoo": {"shampoo_epsilon": 1e-12}}
# What makes every cell of a table act in the base model: epsilons as large as those elements and squared singular
# values are with eight samples and four outputs; decay that takes this share of a weight in a step; and an output
# learning rate that is so many times the others', as output weights are eight times as large as hidden ones. And biases
# of the hidden weights' variance: their decay would hide all else of those of variance 1.
ACTING_EPSILON, ACTING_DECAY, ACTING_OUTPUT, ACTING_BIAS = 0.006, 0.02, 32.0, 1 / BASE_WIDTH

# Role -> hyperparameter -> number, and (role, hyperparameter). Every role has those of the optimizer that steps it.
Values = dict[str, dict[str, float]]
Cell = tuple[str, str]


def hyperparameters(
    optimizer: str,
    table: str,
    width: int,
    depth: int,
    *,
    rate: float | None = None,
    rates: Mapping[str, float] = RATES,
    biases: bool = False,
    acting: bool = False,
    own: Mapping[Cell, float] | None = None,
    soap_epsilon: float = SOAP_EPSILON,
) -> Values:
    """role -> hyperparameters, each by the table of the optimizer that steps it.

    The base model is of width 64 and depth 2, its streams and outputs O(1).

    Args:
        optimizer: one for all roles or a hybrid, as `optimizer_of_role` takes it.
        rate: base learning rate of all roles; if left out, by optimizer from ``rates``.
        acting: whether weights decay, epsilons are as large as gradients of the base model, output weights alone move
            the outputs, and biases are small; otherwise there is no decay and epsilons are negligible.
        own: base values of single roles in place of these. Decays keep their share of a step unless given as well.
        soap_epsilon: SOAP's in the base model; it scales as the root of Shampoo's.
    """
    of_roles = {role: optimizer_of_role(optimizer, role) for role in (*BASE_SCALES, *(BIAS_OF if biases else ()))}
    given = _by_role(own or {}, list(of_roles))
    chosen = rates if rate is None else dict.fromkeys(rates, rate)
    base = {role: _base_values(role, by, chosen[by], acting, given[role]) for role, by in of_roles.items()}
    return {role: _resolved(role, by, table, width, depth, base[role], soap_epsilon) for role, by in of_roles.items()}


def _by_role(own: Mapping[Cell, float], roles: Sequence[str]) -> Values:
    """The base values given for every role; refuses roles and cells that nets of blocks do not have."""
    for role, name in own:
        require_choice(f"the role of --base {role}.{name}", role, roles)
        if name == "block_multiplier" and role in BIAS_OF:
            weights = f"{BIAS_OF[role]}.{name}"
            raise ValueError(f"--base {role}.{name}: biases are multiplied with their weights; give {weights} alone")
    return {role: {name: value for (place, name), value in own.items() if place == role} for role in roles}


def _base_values(role: str, optimizer: str, rate: float, acting: bool, given: Mapping[str, float]) -> dict[str, float]:
    """Hyperparameters of one role of the base model, those given in place of the usual ones."""
    multiplier, variance = BASE_SCALES[BIAS_OF.get(role, role)]
    rate = given.get("learning_rate", rate * (ACTING_OUTPUT if acting and role == "output" else 1.0))
    if role in BIAS_OF:
        variance = ACTING_BIAS if acting else 1.0
    base = {"block_multiplier": multiplier, "initial_variance": variance}
    epsilons = EPSILONS.get(optimizer, {})
    base |= {"learning_rate": rate} | epsilons
    if acting:
        base |= {"weight_decay": ACTING_DECAY / rate if rate else 0.0} | dict.fromkeys(epsilons, ACTING_EPSILON)
    return {**base, **given}


def _resolved(
    role: str, optimizer: str, table: str, width: int, depth: int, base: Mapping[str, float], soap_epsilon: float
) -> dict[str, float]:
    """One role's, by a table of the paper, or as in the base model."""
    shared: dict[str, Any] = {"width": width, "depth": depth, "base_width": BASE_WIDTH, "base_depth": BASE_DEPTH}
    shared |= {"block_depth": 1 if table == "one" else 2, "roles": (role,)}
    shared |= {"parameterization": "standard" if table == "standard" else "spectral"}
    resolved = transfer_hyperparameters(optimizer, base_values=base, **shared)[role]
    if optimizer == "soap":
        squares = transfer_hyperparameters("shampoo", base_values={"shampoo_epsilon": soap_epsilon**2}, **shared)
        resolved["soap_epsilon"] = squares[role]["shampoo_epsilon"] ** 0.5
    return resolved


# Of `given_soap_epsilon`.
SOAP_EPSILON_OPTION = Option(
    "soap_epsilon",
    f"of SOAP in the base model, beside singular values of gradients (default: {SOAP_EPSILON:g}; programs take "
    f"{USUAL_SOAP_EPSILON:g} for batches of full rank)",
    float,
    metavar="E",
    group="training",
)


def base_option(example: str) -> Option:
    """Of `own_values`."""
    words = f"base value of one role alone, such as {example} (several may follow)"
    return Option("base", words, default=[], metavar="ROLE.NAME=VALUE", many="+", group="training")


def given_soap_epsilon(given: float | None, optimizers: Iterable[str]) -> dict[str, Any]:
    """{"soap_epsilon": of the base model} where SOAP steps any weights, nothing where it does not.

    Raises:
        ValueError: one that is given and not positive, or where no optimizer is SOAP.
    """
    if not any("soap" in optimizer.split("-") for optimizer in optimizers):
        if given is not None:
            raise ValueError(f"--soap-epsilon {given:g} is SOAP's alone; give soap as an optimizer, or leave it out")
        return {}
    why = "SOAP divides momenta by it where a batch has no gradient"
    return {"soap_epsilon": SOAP_EPSILON if given is None else require_positive("--soap-epsilon", given, why=why)}


def own_values(given: Iterable[str]) -> dict[Cell, float]:
    """(role, hyperparameter) -> its own base value, of words ROLE.NAME=VALUE."""
    values: dict[Cell, float] = {}
    for word in given:
        try:
            place, value = word.split("=")
            role, name = place.split(".")
            number = float(value)
        except ValueError:
            raise ValueError(f"--base {word} is not ROLE.NAME=VALUE, such as hidden_bias.initial_variance=0") from None
        if (role, name) in values:
            raise ValueError(f"--base {word} gives {place} a second value; give it once")
        if name == "block_multiplier":
            require_positive(f"--base {place}", number, why="at 0 these weights pass nothing on and never learn")
        values[role, name] = number
    return values


def block_net(by_role: Mapping[str, Mapping[str, float]], width: int, depth: int, **options: Any) -> BlockNet:
    """The net whose multipliers and variances these hyperparameters give."""
    multipliers, variances = (
        tuple(by_role[role][name] for role in WEIGHT_ROLES) for name in ("block_multiplier", "initial_variance")
    )
    if options.get("biases"):
        first, bias_variance = (by_role[role]["initial_variance"] for role in BIAS_OF)
        if first != bias_variance:
            raise ValueError(
                f"initial_variance of input_bias is {first:g} and of hidden_bias {bias_variance:g}; nets of blocks "
                "have one for both: give both the same"
            )
        options = options | {"bias_variance": bias_variance}
    shared: dict[str, Any] = {"input_width": INPUT_WIDTH, "multipliers": multipliers, "variances": variances}
    return BlockNet(width=width, depth=depth, **(shared | options))
