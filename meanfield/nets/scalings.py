"""How residual nets keep their branches small: by a name, or by the exponent alpha of the factor on a branch.

A net that adds A branches, one for each of K blocks, 2 D in a Transformer of D blocks, multiplies each by a:

    "init"               a = 1, and every weight of a branch has its variance divided by A
    "none"               a = 1, which is alpha = 0
    "multiplier_sqrt"    a = A^(-1/2), which is alpha = 1/2
    "multiplier_linear"  a = 1/A, which is alpha = 1
    a number alpha       a = A^(-alpha), with weights of the variances that they have under "none"

A net has one spec: a number that has a name is settled to it. An alpha below 0 makes branches larger the more there
are, as no one would train them; it is allowed, as in `TiedLoop`, because laws of alpha are drawn on both sides of 0.
"""

from collections.abc import Iterable
from math import isfinite, log
from numbers import Real
from typing import Any

SCALINGS = ("init", "multiplier_sqrt", "multiplier_linear", "none")
NAMED_EXPONENTS = {"none": 0.0, "multiplier_sqrt": 0.5, "multiplier_linear": 1.0}

# |ln a| at most, as energies hold a^2 and their squares are summed.
LARGEST_LOG_FACTOR = 100.0


def settled_scaling(value: Any, additions: int = 1, choices: Iterable[str] = SCALINGS) -> str | float:
    """The name of this scaling, or its exponent alpha where that has no name.

    Raises:
        TypeError, ValueError: neither one of these names nor a finite number, or an alpha that leaves a no place among
            the floats.
    """
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not isfinite(value):
        kind = ValueError if is_number or isinstance(value, str) else TypeError
        raise kind(
            f"scaling is {value!r}; choose one of {', '.join(map(repr, names))}, or give a finite number alpha, which "
            "multiplies every branch by (number of branches)^(-alpha)"
        )
    exponent = float(value)
    require_factor("scaling", exponent, additions)
    return next((name for name, alpha in NAMED_EXPONENTS.items() if alpha == exponent), exponent)


def require_factor(name: str, exponent: float, additions: int) -> None:
    """Raise ValueError where additions^(-exponent) leaves the range of floats, or its powers would."""
    if abs(exponent) * log(additions) > LARGEST_LOG_FACTOR:
        raise ValueError(
            f"{name} is {exponent:g}, and the factor {additions}^({-exponent:g}) on a branch leaves the range of "
            f"floats; of {additions} branches give an alpha within +-{LARGEST_LOG_FACTOR / log(additions):.3g}"
        )


def branch_multiplier(scaling: str | float, additions: int) -> float:
    """a, the factor on each of so many branches."""
    if scaling == "multiplier_linear":
        return 1.0 / additions
    return float(additions ** -scaling_exponent(scaling))


def branch_factors(scaling: str | float, additions: int) -> tuple[float, float]:
    """a, and the factor on the fan-in variance of the weights of each of so many branches."""
    return branch_multiplier(scaling, additions), 1.0 / additions if scaling == "init" else 1.0


def scaling_exponent(scaling: str | float) -> float:
    """alpha of a = A^(-alpha)."""
    return NAMED_EXPONENTS.get(scaling, 0.0) if isinstance(scaling, str) else scaling
