"""The printed losses with what follows from them; nothing is drawn."""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_choice
from meanfield.verification import loss_tables
from sims.common.results import Results


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The tables, and those of them that are printed whole."""
    tables = loss_tables()
    for number in options.tables:
        require_choice("--tables", number, tables["table"].values.tolist())
    return {"tables": options.tables}


def measure(options: argparse.Namespace, results: Results, tables: list[int]) -> xr.Dataset:
    """All tables, whichever are printed."""
    return loss_tables().assign_attrs(shown=" ".join(map(str, tables)))
