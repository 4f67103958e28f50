"""Plain tables that a person can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

MISSING = "-"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Right-aligned columns under a header, with an optional title line."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    body = [line(header), "  ".join("-" * width for width in widths), *map(line, rows)]
    return "\n".join([title, *body] if title else body)


def number(value: float) -> str:
    """Four significant digits, or the mark of a missing value."""
    return MISSING if math.isnan(value) else f"{value:.4g}"


def measured(value: float, stderr: float) -> str:
    """value +- standard error, the error with two digits."""
    return MISSING if math.isnan(value) else f"{value:.4g} +- {stderr:.2g}"


def slope(value: float, stderr: float) -> str:
    """An exponent +- its standard error, three decimals each: rounding of exact ones does not show."""
    return MISSING if math.isnan(value) else f"{value:+.3f} +- {stderr:.3f}"


def signed(value: float) -> str:
    """A difference in standard errors."""
    return MISSING if math.isnan(value) else f"{value:+.1f}"


def fraction(value: float) -> str:
    """An exponent as papers print it: -3/2, 0, +1."""
    return MISSING if math.isnan(value) else f"{'+' if value > 0 else ''}{Fraction(value).limit_denominator(100)}"


def exponents(by_paper: Mapping[str, float]) -> str:
    """Printed exponents with their papers, or the mark of a missing value."""
    return ", ".join(f"{fraction(value)} ({paper})" for paper, value in by_paper.items()) or MISSING


def from_log(log: float) -> str:
    """Four significant digits of a positive number given by its natural logarithm, at any size."""
    if math.isnan(log):
        return MISSING
    power = log / math.log(10)
    if abs(power) < 300:
        return number(math.exp(log))
    exponent = math.floor(power)
    mantissa = f"{10 ** (power - exponent):.3f}"
    return f"1.000e{exponent + 1:+d}" if mantissa == "10.000" else f"{mantissa}e{exponent:+d}"
