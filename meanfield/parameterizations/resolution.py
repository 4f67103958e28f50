"""From tuned values of a small base model to the numbers for every layer of a larger one.

Muon as programs run it is the polar factor times a number that depends on the shape, which changes them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from meanfield.common.validation import require_choice, require_count, require_finite, require_instances
from meanfield.parameterizations.tables import (
    OPTIMIZER_NAMES,
    ROLES,
    WEIGHTS,
    hyperparameter_table,
    hyperparameters_of,
    scaling,
)

BaseValues = Mapping[str, float | Mapping[str, float]]


def transfer_hyperparameters(
    optimizer: str,
    *,
    width: int,
    depth: int,
    base_width: int,
    base_depth: int,
    base_values: BaseValues,
    block_depth: int,
    parameterization: str = "spectral",
    roles: Sequence[str] | None = None,
    input_dimension: int | None = None,
    output_dimension: int | None = None,
    muon_variant: str = "plain",
) -> dict[str, dict[str, float]]:
    """The hyperparameters of every role: base value times r_n^a r_L^b, with the exponents of `hyperparameter_table`.

    `meanfield.parameterizations.unmet_premises` says what the numbers leave open, such as that by "standard" none of
    them knows the depth. `python -m sims.hyperparameters` prints both.

    Args:
        optimizer: one of `OPTIMIZER_NAMES`, or a hybrid HIDDEN-OTHERS of two of them, such as "muon-adamw", of which
            the first steps hidden weights and the second all other parameters.
        width, depth: n and L of the net to be trained, L its number of residual blocks.
        base_width, base_depth: those of the base model, on which the base values were tuned.
        base_values: hyperparameter -> value, one for all roles or a mapping role -> value. Keys are those wanted of
            "block_multiplier", "initial_variance", "learning_rate", "weight_decay", "adamw_epsilon",
            "shampoo_epsilon", and of `UNPRINTED`, "sophia_epsilon" and "soap_epsilon", as far as the optimizer has
            them. An epsilon goes to the roles of its optimizer alone.
        block_depth: layers k of a residual branch: 1 takes tables 9 .. 13, 2 or more tables 3 .. 7.
        parameterization: "spectral" (the conditions of the paper) or "standard" (nothing scales with the net).
        roles: of "input", "hidden", "output", "input_bias", "hidden_bias"; default all that the table has.
        input_dimension: d_0 of dense inputs such as images, by which the initial variance of the input weights is
            divided; leave it out for one-hot inputs (language), or where the base value has the division already.
        output_dimension: d_(L+1), on which factors of Muon's variants depend.
        muon_variant: what Muon's step is multiplied by (`MUON_VARIANTS`), which changes rates and decays by
            `muon_variant_factors`; one-hot inputs count as many channels as there are outputs.

    Returns:
        role -> hyperparameter -> number, dimensionless.

    Raises:
        TypeError, ValueError: an unknown name; a width or depth that is no count; a base value that is negative or not
            finite; roles or hyperparameters that the table does not define; a variant of Muon where Muon steps
            nothing, where nothing scales, or without the dimensions that it depends on.

    Source: Zheng et al. 2026, sections 4.1 and 4.4, tables 1, 3 .. 7 and 9 .. 13.

    Examples:
        >>> import meanfield as mf
        >>> sizes = {"width": 1024, "depth": 64, "base_width": 256, "base_depth": 16, "block_depth": 2}
        >>> carried = mf.transfer_hyperparameters("adamw", **sizes, base_values={"learning_rate": 0.01})
        >>> carried["hidden"]
        {'learning_rate': 0.0025}
    """
    by_role = optimizers_by_role(optimizer, block_depth, roles)
    width_ratio = require_count("width", width) / require_count("base_width", base_width)
    depth_ratio = require_count("depth", depth) / require_count("base_depth", base_depth)
    divisor = 1 if input_dimension is None else require_count("input_dimension", input_dimension)
    if not isinstance(base_values, Mapping):
        raise TypeError(f"base_values is {base_values!r}; it must map hyperparameters to values")
    of_muon = [role for role, stepped_by in by_role.items() if stepped_by == "muon"]
    _require_variant(muon_variant, of_muon, parameterization)
    shapes: dict[str, Any] = {"width": width, "base_width": base_width, "output_dimension": output_dimension}
    shapes["input_dimension"] = input_dimension or output_dimension  # one-hot inputs
    steps = {} if muon_variant == "plain" else muon_variant_factors(muon_variant, roles=of_muon, **shapes)
    values: dict[str, dict[str, float]] = {role: {} for role in by_role}
    for hyperparameter, given in base_values.items():
        taking = _taking(hyperparameter, by_role, block_depth)
        for role in taking:
            cell = scaling(
                by_role[role], role, hyperparameter, block_depth=block_depth, parameterization=parameterization
            )
            step = steps.get(role, 1.0)
            own = {"learning_rate": step, "weight_decay": 1 / step}.get(hyperparameter, 1.0)
            value = base_value(hyperparameter, given, role, taking) * cell.at(width_ratio, depth_ratio) * own
            divided = hyperparameter == "initial_variance" and role == "input"
            values[role][hyperparameter] = value / divisor if divided else value
    return values


def optimizers_by_role(optimizer: str, block_depth: int, roles: Sequence[str] | None = None) -> dict[str, str]:
    """role -> which of `OPTIMIZER_NAMES` steps it, in the order of ``roles``.

    Args:
        optimizer: one of `OPTIMIZER_NAMES`, or a hybrid HIDDEN-OTHERS of two of them.
        block_depth: layers of a residual branch.
        roles: those wanted; if left out, all for which the tables of these optimizers have columns.

    Raises:
        TypeError, ValueError: a name that is neither; a block depth that is no count.

    Source: Zheng et al. 2026, section 5.1.
    """
    hidden, _, others = str(optimizer).partition("-")
    for name in (hidden, others or hidden):
        require_choice("optimizer", name, OPTIMIZER_NAMES)
    stepped_by = {role: hidden if role == "hidden" else others or hidden for role in ROLES}
    if roles is not None:
        wanted = require_instances("roles", roles, str, "words such as 'hidden'")
        return {role: stepped_by.get(role, hidden) for role in wanted}
    return {role: name for role, name in stepped_by.items() if role in hyperparameter_table(name, block_depth).roles}


def _require_variant(variant: str, of_muon: Sequence[str], parameterization: str) -> None:
    """Refuse a variant of Muon that changes nothing here."""
    require_choice("muon_variant", variant, MUON_VARIANTS)
    if variant != "plain" and not of_muon:
        raise ValueError(f"Muon's variant is {variant!r}, of muon, which steps nothing here; drop it")
    if variant != "plain" and parameterization == "standard":
        raise ValueError(
            f"Muon's variant is {variant!r}, which changes how rates scale; by standard none does, drop it"
        )


def _taking(hyperparameter: str, by_role: Mapping[str, str], block_depth: int) -> tuple[str, ...]:
    """The roles that a base value is for: all, but of an epsilon in a hybrid those of the optimizer that has it."""
    having = tuple(role for role, name in by_role.items() if hyperparameter in hyperparameters_of(name, block_depth))
    return having or tuple(by_role)


def base_value(hyperparameter: str, given: float | Mapping[str, float], role: str, roles: tuple[str, ...]) -> float:
    """The base value for a role, refused unless it is a finite number, at least 0."""
    name = f"base value of {hyperparameter}"
    if isinstance(given, Mapping):
        for named in given:
            require_choice(f"role of the {name}", named, roles)
        if role not in given:
            raise ValueError(f"{name} is given for {', '.join(map(repr, given))} and not for {role!r}; give them all")
        name, given = f"{name} for {role!r}", given[role]
    value = require_finite(name, given, "a number, finite and at least 0")
    if value < 0:
        raise ValueError(f"{name} is {value}; it must be finite and at least 0")
    return value


# What an n_out x n_in step U V^T is multiplied by. `original` and `match_rms_adamw` are the settings of adjust_lr_fn in
# torch.optim.Muon, `original` its default; `match_rms_adamw` is Muon-Kimi (Zheng et al. 2026, section 4.2).
MUON_VARIANTS = {
    "plain": "1",
    "spectral": "sqrt(n_out/n_in)",
    "original": "sqrt(max(1, n_out/n_in))",
    "match_rms_adamw": "0.2 sqrt(max(n_out, n_in))",
}


def muon_step_size(variant: str, outputs: int, inputs: int) -> float:
    """Spectral norm of the variant's step for a matrix of ``outputs`` rows and ``inputs`` columns.

    Raises:
        ValueError: an unknown variant; TypeError, ValueError: a size that is no count.
    """
    require_choice("Muon's variant", variant, MUON_VARIANTS)
    rows, columns = require_count("outputs", outputs), require_count("inputs", inputs)
    return {
        "plain": 1.0,
        "spectral": math.sqrt(rows / columns),
        "original": math.sqrt(max(1.0, rows / columns)),
        "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
    }[variant]


def muon_variant_factors(
    variant: str,
    *,
    width: int,
    base_width: int,
    roles: Sequence[str] = WEIGHTS,
    input_dimension: int | None = None,
    output_dimension: int | None = None,
) -> dict[str, float]:
    """What table 4's (k = 1: table 10's) learning rates must be multiplied by under a variant of Muon, by role.

    The tables are for the step U V^T. A variant multiplies it by s(n_out, n_in) (`MUON_VARIANTS`), so that the same
    update needs

        eta_variant / eta_table = s(base shape) / s(shape) ,

    exactly, at any sizes: also where a vocabulary exceeds the width, and the larger side of a matrix is not the one
    that grows. Weight decays are divided by the same factor, where the step is W <- W - eta (A + lambda W), so that
    eta lambda is the table's. Hidden matrices keep their aspect, and count as square.

    Args:
        variant: of `MUON_VARIANTS`.
        width, base_width: of the net and of its base model.
        roles: of "input", "hidden" and "output".
        input_dimension, output_dimension: d_0 and d_(L+1), for these roles; of a language model both the vocabulary.

    Raises:
        TypeError, ValueError: an unknown variant or role, a size that is no count or is missing.

    Source: Zheng et al. 2026, eqs. 16, 17, tables 3, 4; docs/theory.md section 14.
    """
    dimensions = {"input": input_dimension, "output": output_dimension}
    factors = {}
    for role in roles:
        require_choice("role", role, WEIGHTS)
        if role != "hidden" and dimensions[role] is None:
            raise ValueError(f"the factor of {role} weights depends on {role}_dimension, which is missing; give it")
        shapes = []
        for units in (require_count("base_width", base_width), require_count("width", width)):
            shapes.append(
                {"input": (units, input_dimension), "output": (output_dimension, units)}.get(role, (units,) * 2)
            )
        base, wanted = (muon_step_size(variant, *shape) for shape in shapes)  # type: ignore[arg-type]
        factors[role] = base / wanted
    return factors
