"""Tables that a person can read: columns, each a header beside what makes its cells, over the rows of a dataset.

A `Table` declares one, a `Grid` is one that is made, and is written as text, Markdown, LaTeX or CSV; as HTML by
`sims.common.markup`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice, product
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import NUMBERS_FAIL
from meanfield.verification import Verdict, rounding_of, score

MISSING = "-"
# Characters of a line: what screens, mails and pages side by side show without breaking it.
LINE = 100
GAP = "  "
# Of a mean, from which on a note says that one draw makes so much of it.
HEAVY_SHARE = 0.1
# Between a mean and its standard error, in a cell.
WITHIN = " +- "
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table: its header, and what makes the cell of a row from the dataset at the row's place.

    ``cell``: a function of that dataset; or the name of a variable, drawn (with its error) where it has one. With
    several headers it is several columns that stay beside each other, whose cells one function makes.
    """

    header: str | Sequence[str]
    cell: str | Callable[[xr.Dataset], str | Sequence[str]]

    @property
    def headers(self) -> list[str]:
        return [self.header] if isinstance(self.header, str) else list(self.header)

    def cells(self, at: xr.Dataset) -> list[str]:
        """As many as there are headers."""
        if isinstance(self.cell, str):
            return [drawn(at, self.cell) if f"{self.cell}_stderr" in at else predicted(at, self.cell)]
        made = self.cell(at)
        return [made] if isinstance(made, str) else list(made)


# A column, or columns that stay beside each other where a table is parted.
ColumnGroup = Column | Sequence[Column]


@dataclass(frozen=True)
class Table:
    """A part of a report: a row for every place on some dims, and columns.

    Attributes:
        name: what a report calls it where it cannot be made.
        title: with {NAME} for an attribute of the dataset; or made from the dataset.
        dims: of the rows, the last one running first.
        keys: headers of the columns that say what a row is about: one for each dim, or one with ``key``.
        columns: groups of columns; or made from the dataset.
        key: of a row's coordinates, one by one, what stands in its place in a single column.
        known: a variable that is NaN at places which have no row.
        shown: of a dim, the words that stand for its coordinates.
    """

    name: str
    title: str | Callable[[xr.Dataset], str]
    dims: Sequence[str]
    keys: str | Sequence[str]
    columns: Sequence[ColumnGroup] | Callable[[xr.Dataset], Sequence[ColumnGroup]]
    key: Callable[..., str] | None = None
    known: str = ""
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __call__(self, dataset: xr.Dataset) -> Grid:
        groups = self.columns(dataset) if callable(self.columns) else self.columns
        parts = [[group] if isinstance(group, Column) else list(group) for group in groups]
        columns = [column for part in parts for column in part]
        count = len(self.dims)

        def cells(at: xr.Dataset) -> list[str]:
            return [cell for column in columns for cell in column.cells(at)]

        lines = [
            row if isinstance(row, LostRow) else [*self._key_cells(row[:count]), *row[count:]]
            for row in rows(dataset, self.dims, cells, self.known)
        ]
        header = [self.keys, *([name for column in part for name in column.headers] for part in parts)]
        title = self.title(dataset) if callable(self.title) else self.title.format_map(dataset.attrs)
        return table(header, lines, title)

    def _key_cells(self, coordinates: Sequence[str]) -> list[str]:
        places = zip(self.dims, coordinates, strict=True)
        words = [self.shown.get(dim, {}).get(coordinate, coordinate) for dim, coordinate in places]
        return words if self.key is None else [self.key(*words)]


class LostRow(list[str]):
    """What a row would be about, and why it has no cells: `table` says so below its lines."""


def row_or_reason(key: str, cells: Callable[[], Iterable[str]]) -> list[str]:
    """A row of a table; where its numbers make none, the reason in its place, so that the other rows are not lost."""
    try:
        return [key, *cells()]
    except NUMBERS_FAIL as error:
        return LostRow([key, str(error)])


def table(header: Sequence[str | Sequence[str]], rows: Sequence[Sequence[str]], title: str = "") -> Grid:
    """Columns under a header, with an optional title; the reasons of each `LostRow` stand below.

    ``header``: one name, or a list of names that stay beside each other. The first of them say what a row is about.
    """
    groups = [(names,) if isinstance(names, str) else tuple(names) for names in header]
    lost = [": ".join(row) for row in rows if isinstance(row, LostRow)]
    return Grid(groups, [list(row) for row in rows if not isinstance(row, LostRow)], title, lost)


@dataclass(frozen=True)
class Grid:
    """A table that is made: rows of words under a header; a cell that is a `Verdict` stands out.

    Attributes:
        groups: headers that stay beside each other where lines are too short for all; the first are those of the keys.
        rows: cells, as many as there are headers.
        title: what it shows.
        lost: what rows would be about that have no cells, and why.
    """

    groups: Sequence[Sequence[str]]
    rows: Sequence[Sequence[str]]
    title: str = ""
    lost: Sequence[str] = ()

    @property
    def header(self) -> list[str]:
        return [name for names in self.groups for name in names]

    def thinned(self, count: int) -> Grid:
        """So many of its rows at most, the first and the last among them, as evenly spaced as they can be."""
        if count >= len(self.rows):
            return self
        places = np.unique(np.linspace(0, len(self.rows) - 1, count).round().astype(int))
        title = f"{self.title} ({len(places)} of {len(self.rows)} rows)".lstrip()
        return replace(self, rows=[self.rows[place] for place in places], title=title)

    def narrowed(self) -> Grid:
        """The columns that one line takes, from the first."""
        count = len(self.groups)
        while count > 2 and len(_parted(*self._columns(count))) > 1:
            count -= 1
        width = sum(map(len, self.groups[:count]))
        return replace(self, groups=self.groups[:count], rows=[row[:width] for row in self.rows])

    def text(self) -> str:
        """Right-aligned columns, in several tables where one would be too wide; the keys begin every one."""
        tables = [_lines(columns_of_part) for columns_of_part in _parted(*self._columns(len(self.groups)))]
        return "\n".join([*_title(self.title), "\n\n".join(tables), *self.lost])

    def _columns(self, count: int) -> tuple[list[Cells], list[list[Cells]]]:
        """The columns of the keys, and those of each group beside them, of so many groups in all."""
        columns = zip(*(self.header, *self.rows), strict=True)
        keys, *groups = [list(islice(columns, len(names))) for names in self.groups[:count]]
        return keys, groups

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *([markdown_of(cell) for cell in row] for row in self.rows)]
        rows = [f"| {' | '.join(cells)} |" for cells in lines]
        return "\n".join([*([f"{self.title}\n"] if self.title else []), *rows, *self.lost])

    def latex(self) -> str:
        """A table environment in the rules of the package booktabs."""
        aligned = "l" * len(self.groups[0]) + "r" * (len(self.header) - len(self.groups[0]))
        head, *body = (" & ".join(map(latex_of, cells)) + r" \\" for cells in (self.header, *self.rows))
        lines = [r"\begin{table}", rf"\caption{{{latex_of(self.title)}}}", rf"\begin{{tabular}}{{{aligned}}}"]
        lines += [r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines)

    def csv(self) -> str:
        """A line for every row; a mean and its standard error are two columns, and a missing value is an empty cell."""
        columns: list[list[str]] = []
        for name, *marked in zip(self.header, *self.rows, strict=True):
            cells = ["" if cell == MISSING else cell for cell in marked]
            if any(WITHIN in cell for cell in cells):
                means, errors = zip(*(cell.partition(WITHIN)[::2] for cell in cells), strict=True)
                columns += [[name, *means], [f"{name} s.e.", *errors]]
            else:
                columns.append([name, *cells])
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(zip(*columns, strict=True))
        return lines.getvalue().rstrip("\n")


def markdown_of(cell: str, shown: str = "") -> str:
    """A verdict in bold; other words without what Markdown would take for columns or emphasis."""
    escaped = (shown or cell).replace("|", "\\|").replace("*", "\\*")
    return f"**{escaped}**" if isinstance(cell, Verdict) else escaped


# What LaTeX reads as commands.
LATEX = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def latex_of(cell: str) -> str:
    """Words, and a mean with its error, as LaTeX sets them."""
    words = "".join(LATEX.get(character, character) for character in cell)
    return re.sub(r"\s*\+-\s*", r" $\\pm$ ", words)


def _parted(keys: list[Cells], groups: list[list[Cells]]) -> list[list[Cells]]:
    """The fewest tables that lines take, none much wider than the others; a group that no line takes is parted."""
    parts = []
    for group in groups:
        parts += [group] if _width([*keys, *group]) <= LINE else [[column] for column in group]
    fewest = len(_packed(keys, parts, LINE))
    line = bisect_left(range(LINE), -fewest, key=lambda line: -len(_packed(keys, parts, line)))
    return _packed(keys, parts, line)


def _packed(keys: list[Cells], parts: list[list[Cells]], line: int) -> list[list[Cells]]:
    """Tables of the keys and as many parts, in order, as a line of so many characters takes, but at least one."""
    tables = [keys]
    for part in parts:
        if tables[-1] != keys and _width([*tables[-1], *part]) > line:
            tables.append(keys)
        tables[-1] = [*tables[-1], *part]
    return tables


def _width(columns: Sequence[Cells]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(GAP) * (len(columns) - 1)


def _lines(columns: Sequence[Cells]) -> str:
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
    return MISSING if math.isnan(value) else f"{value:.4g}{WITHIN}{stderr:.2g}"


def slope(value: float, stderr: float) -> str:
    """An exponent +- its standard error, three decimals each: rounding of exact ones does not show."""
    return MISSING if math.isnan(value) else f"{value:+.3f}{WITHIN}{stderr:.3f}"


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


def rows(
    dataset: xr.Dataset, dims: Sequence[str], cells: Callable[[xr.Dataset], Iterable[str]], known: str = ""
) -> list[list[str]]:
    """A row for every place on these dims, through the last one first: its coordinates, and the cells of what is there.

    A place whose numbers make no cells has a `LostRow`.

    ``known``: a variable that is NaN at places which have no row.
    """
    lines = []
    for place in product(*(dataset[dim].values for dim in dims)):
        at = dataset.sel(dict(zip(dims, place, strict=True)))
        if not known or at[known].notnull():
            keys = list(map(label, place))
            try:
                lines.append([*keys, *cells(at)])
            except NUMBERS_FAIL as error:
                lines.append(LostRow([" ".join(keys), str(error)]))
    return lines


def label(coordinate: Any) -> str:
    """A coordinate as a cell: numbers in full where they are whole."""
    return f"{coordinate:g}" if isinstance(coordinate, float | np.floating) else str(coordinate)


def value(at: xr.Dataset, name: str) -> float:
    """A number of the dataset; NaN where it has none of that name."""
    return float(at.variables[name].values) if name in at else float("nan")


def predicted(at: xr.Dataset, name: str) -> str:
    """A number without an error."""
    return number(value(at, name))


def drawn(at: xr.Dataset, name: str, factor: float = 1.0) -> str:
    """A mean over draws with its standard error, in units of 1 / ``factor``."""
    return measured(factor * value(at, name), factor * value(at, f"{name}_stderr"))


def against(at: xr.Dataset, name: str, level: str = "mean_field") -> list[str]:
    """Drawn; predicted, NAME_level; drawn minus predicted in standard errors."""
    has_theory = {name, f"{name}_stderr", f"{name}_{level}"} <= set(at.variables)
    mean, error, theory = (value(at, column) for column in (name, f"{name}_stderr", f"{name}_{level}"))
    off = float(score(mean, error, theory, rounding_of(at))) if has_theory else float("nan")
    return [drawn(at, name), predicted(at, f"{name}_{level}"), signed(off)]


def fitted(law: Any) -> str:
    """The exponent of a fitted law with its standard error."""
    return measured(law.exponent, law.stderr)


def heavy_tail_notes(dataset: xr.Dataset, names: Iterable[str]) -> str:
    """A line for every measured mean of which a single draw makes a large share."""
    shares = {name: float(dataset[f"{name}_largest_share"].max()) for name in names if name in dataset}
    return "\n".join(
        f"Heavy tail: one draw makes {share:.0%} of a mean {name.replace('_', ' ')}; its error is a lower bound."
        for name, share in shares.items()
        if share > HEAVY_SHARE
    )
