"""From tuned values of a small base model to the numbers for every layer of a larger one."""

from collections.abc import Mapping, Sequence

from meanfield.common.validation import require_choice, require_count, require_finite, require_instances
from meanfield.parameterizations.tables import hyperparameter_table, scaling

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
) -> dict[str, dict[str, float]]:
    """The hyperparameters of every role: base value times r_n^a r_L^b, with the exponents of `hyperparameter_table`.

    Args:
        optimizer: one of `OPTIMIZERS`.
        width, depth: n and L of the net to be trained, L its number of residual blocks.
        base_width, base_depth: those of the base model, on which the base values were tuned.
        base_values: hyperparameter -> value, one for all roles or a mapping role -> value. Keys are those wanted of
            "block_multiplier", "initial_variance", "learning_rate", "weight_decay", "adamw_epsilon" and
            "shampoo_epsilon", as far as the optimizer has them.
        block_depth: layers k of a residual branch: 1 takes tables 9 .. 13, 2 or more tables 3 .. 7.
        parameterization: "spectral" (the conditions of the paper) or "standard" (nothing scales with the net).
        roles: of "input", "hidden", "output", "input_bias", "hidden_bias"; default all that the table has.
        input_dimension: d_0 of dense inputs such as images, by which the initial variance of the input weights is
            divided; leave it out for one-hot inputs (language), or where the base value has the division already.

    Returns:
        role -> hyperparameter -> number, dimensionless. To mix optimizers, take each role from the optimizer that
        steps it.

    Raises:
        TypeError, ValueError: an unknown name; a width or depth that is no count; a base value that is negative or not
            finite; roles or hyperparameters that the table does not define.

    Source: Zheng et al. 2026, sections 4.1 and 4.4, tables 1, 3 .. 7 and 9 .. 13.
    """
    table = hyperparameter_table(optimizer, block_depth)
    width_ratio = require_count("width", width) / require_count("base_width", base_width)
    depth_ratio = require_count("depth", depth) / require_count("base_depth", base_depth)
    divisor = 1 if input_dimension is None else require_count("input_dimension", input_dimension)
    wanted = table.roles if roles is None else require_instances("roles", roles, str, "words such as 'hidden'")
    if not isinstance(base_values, Mapping):
        raise TypeError(f"base_values is {base_values!r}; it must map hyperparameters to values")
    values: dict[str, dict[str, float]] = {role: {} for role in wanted}
    for hyperparameter, given in base_values.items():
        for role in wanted:
            cell = scaling(optimizer, role, hyperparameter, block_depth=block_depth, parameterization=parameterization)
            value = base_value(hyperparameter, given, role, wanted) * cell.at(width_ratio, depth_ratio)
            divided = hyperparameter == "initial_variance" and role == "input"
            values[role][hyperparameter] = value / divisor if divided else value
    return values


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
