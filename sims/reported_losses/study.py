"""The losses of GPT-2 that Zheng et al. 2026 print (tables 15 - 40), and what they say of the paper's own claims.

Nothing is trained. Of every table: the best base value at every size, by a parabola; how far it moves over the ladder,
in octaves from end to end; what the base model's best value costs the largest net, and what it costs under one rule
for the depth more than under the other; and the least losses, table beside table. The
scatter of a loss comes from the base model, which several tables have trained alike. --tables prints whole tables.
"""

import argparse
from typing import Any

import xarray as xr

from meanfield.common import require_choice
from sims.common.command import Option, Preset
from sims.common.datasets import Variable
from sims.common.results import Results
from sims.common.study import Study
from sims.reported_losses.claims import CLAIMS, NAME
from sims.reported_losses.loss_tables import loss_tables, printed_tables
from sims.reported_losses.report import REPORT


def _printed(written: str, given: list[int]) -> list[int]:
    """Numbers of tables, in the order given."""
    for number in given:
        require_choice(written, number, [table["number"] for table in printed_tables()])
    return given


OPTIONS = (
    Option(
        "tables",
        "tables to print whole, with an error for every optimum (default: none; paper: all)",
        int,
        metavar="NUMBER",
        many="*",
        check=_printed,
        group="",
    ),
)
PRESETS = {
    "smoke": Preset("3 s", tables=[]),
    "default": Preset("3 s", tables=[]),
    "paper": Preset("3 s", tables=[*range(15, 41)]),
}
VARIABLES = (
    Variable("table", "number of the table in Zheng et al. 2026"),
    Variable("setting", "model, optimizer and tuned hyperparameter"),
    Variable("parameterization", "rule: standard parameterization, condition 3.1 (many) or condition B.1 (one)"),
    Variable("direction", "what grows over the ladder: width or depth"),
    Variable("loss", "final validation loss of one run, in nats", "NaN where the run diverged"),
    Variable("log2_value", "log2 of the base value, by its place in the grid"),
    Variable("ladder", "width or depth of a model, by its place in the ladder"),
    Variable("scatter", "standard deviation of a loss near the optimum", "from repeats of the base model"),
    Variable("repeats", "degrees of freedom of that scatter"),
    Variable("optimum", "log2 of the best base value of a size", "by the parabola through the least loss"),
    Variable("bracketed", "whether a worse value lies on either side of the best one"),
    Variable("least_loss", "least loss of a size over the grid"),
    Variable("carried_cost", "nats that the base model's best value costs a size above its own best"),
    Variable("drift", "octaves that the best base value moves over the ladder"),
    Variable("drift_is_bound", "whether an end of that move lies at an end of the grid, so that it may be larger"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The tables that are printed whole."""
    return {"tables": options.tables}


def measure(options: argparse.Namespace, results: Results, tables: list[int]) -> xr.Dataset:
    """All tables, whichever are printed."""
    return loss_tables().assign_attrs(shown=" ".join(map(str, tables)))


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
    draws=False,
)
