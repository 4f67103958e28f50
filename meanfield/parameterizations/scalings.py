"""A hyperparameter's factor against the base model: exact powers of the width ratio and of the depth ratio."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

_FACTOR = re.compile(r"(sqrt\()?(r_[nL])\)?(?:\^(\d+))?")


@dataclass(frozen=True)
class Scaling:
    """r_n^width r_L^depth, with r_n = n / n_base and r_L = L / L_base (Zheng et al. 2026, section 4.4).

    Exponents are exact fractions; products, quotients and rational powers of scalings are scalings.
    """

    width: Fraction = Fraction(0)
    depth: Fraction = Fraction(0)

    @classmethod
    def of(cls, width: int | str | Fraction = 0, depth: int | str | Fraction = 0) -> Scaling:
        """From exponents that `Fraction` reads: 1, "-1/2", Fraction(1, 2)."""
        return cls(Fraction(width), Fraction(depth))

    @classmethod
    def read(cls, printed: str) -> Scaling:
        """From a cell as `str` prints it, such as "r_n" or "1/(r_n sqrt(r_L))"; ValueError for any other text."""
        exponents = {"r_n": Fraction(0), "r_L": Fraction(0)}
        for sign, part in zip((1, -1), printed.split("/"), strict=False):
            for root, name, power in _FACTOR.findall(part):
                exponents[name] += sign * Fraction(power or 1) / (2 if root else 1)
        scaling = cls(exponents["r_n"], exponents["r_L"])
        if str(scaling) != printed:
            raise ValueError(f"the cell {printed!r} reads as {scaling}; write it so")
        return scaling

    def __mul__(self, other: Scaling) -> Scaling:
        return Scaling(self.width + other.width, self.depth + other.depth)

    def __truediv__(self, other: Scaling) -> Scaling:
        return Scaling(self.width - other.width, self.depth - other.depth)

    def __pow__(self, power: int | Fraction) -> Scaling:
        return Scaling(self.width * power, self.depth * power)

    def at(self, width_ratio: float, depth_ratio: float) -> float:
        """The factor at given ratios.

        Raises:
            ValueError: a ratio that is not positive and finite.
        """
        for name, ratio in (("width", width_ratio), ("depth", depth_ratio)):
            if not (ratio > 0 and math.isfinite(ratio)):
                raise ValueError(
                    f"the {name} ratio is {ratio!r}; it must be positive and finite, the {name} over the base model's"
                )
        return float(width_ratio ** float(self.width) * depth_ratio ** float(self.depth))

    def __str__(self) -> str:
        """In plain letters: 1, r_n, 1/sqrt(r_L), sqrt(r_n)/r_L^2."""
        factors = [("r_n", self.width), ("r_L", self.depth)]
        above = [_power(name, exponent) for name, exponent in factors if exponent > 0]
        below = [_power(name, -exponent) for name, exponent in factors if exponent < 0]
        if not below:
            return " ".join(above) or "1"
        divisor = below[0] if len(below) == 1 else f"({' '.join(below)})"
        return f"{' '.join(above) or '1'}/{divisor}"


CONSTANT = Scaling()


def _power(name: str, exponent: Fraction) -> str:
    if exponent == Fraction(1, 2):
        return f"sqrt({name})"
    power = str(exponent) if exponent.denominator == 1 else f"({exponent})"
    return name if exponent == 1 else f"{name}^{power}"
