"""Plain tables that a person can read."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from textwrap import fill

MISSING = "-"
# Characters of a line: what screens, mails and pages side by side show without breaking it.
LINE = 100
GAP = "  "

Column = tuple[str, ...]


class LostRow(list[str]):
    """What a row would be about, and why it has no cells: `table` says so below its lines."""


def row_or_reason(key: str, cells: Callable[[], Iterable[str]]) -> list[str]:
    """A row of a table; where its numbers make none, the reason in its place, so that the other rows are not lost."""
    from meanfield.common import NUMBERS_FAIL

    try:
        return [key, *cells()]
    except NUMBERS_FAIL as error:
        return LostRow([key, str(error)])


def table(header: Sequence[str | Sequence[str]], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Right-aligned columns under a header, with an optional title; in several tables where one would be too wide.

    ``header``: one name, or a list of names that stay beside each other. The first of them say what a row is about,
    and begin every table. Of a `LostRow` the reason stands below.
    """
    lost = ["\n".join(": ".join(row) for row in rows if isinstance(row, LostRow))]
    rows = [row for row in rows if not isinstance(row, LostRow)]
    named = [[names] if isinstance(names, str) else list(names) for names in header]
    columns = zip(*([name for names in named for name in names], *rows), strict=True)
    keys, *groups = [list(islice(columns, len(names))) for names in named]
    tables = [_lines(columns_of_part) for columns_of_part in _parted(keys, groups)]
    return "\n".join([*_title(title), "\n\n".join(tables), *filter(None, lost)])


def _parted(keys: list[Column], groups: list[list[Column]]) -> list[list[Column]]:
    """The fewest tables that lines take, none much wider than the others; a group that no line takes is parted."""
    parts = []
    for group in groups:
        parts += [group] if _width([*keys, *group]) <= LINE else [[column] for column in group]
    fewest = len(_packed(keys, parts, LINE))
    line = bisect_left(range(LINE), -fewest, key=lambda line: -len(_packed(keys, parts, line)))
    return _packed(keys, parts, line)


def _packed(keys: list[Column], parts: list[list[Column]], line: int) -> list[list[Column]]:
    """Tables of the keys and as many parts, in order, as a line of so many characters takes, but at least one."""
    tables = [keys]
    for part in parts:
        if tables[-1] != keys and _width([*tables[-1], *part]) > line:
            tables.append(keys)
        tables[-1] = [*tables[-1], *part]
    return tables


def _width(columns: Sequence[Column]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(GAP) * (len(columns) - 1)


def _lines(columns: Sequence[Column]) -> str:
    widths = [max(map(len, column)) for column in columns]
    rule = GAP.join("-" * width for width in widths)
    head, *body = (
        GAP.join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in zip(*columns, strict=True)
    )
    return "\n".join([head, rule, *body])


def _title(title: str) -> list[str]:
    return [fill(line, LINE, break_on_hyphens=False) for line in title.splitlines()]


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
