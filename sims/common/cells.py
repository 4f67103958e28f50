"""Cells and rows of printed tables, read off datasets: what was drawn, what is predicted, how far apart they are."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import NUMBERS_FAIL
from meanfield.verification import rounding_of, score
from sims.common.table import LostRow, measured, number, signed

HEAVY_SHARE = 0.1


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
