"""The printed report on the cells of hyperparameter tables."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import coordinate_checks
from meanfield.verification import table_cells as claims
from sims.common.report import answer, report
from sims.common.tables import slope, table

QUESTION = "Do the cells of hyperparameter tables have the powers that norms ask for?"
HEADING = """\
L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}, L = {depths} at width {width}
{samples} samples, {outputs} outputs; before the first step; {draws} draws, seed {seed}
A line for every cell of {of} that scales along a ladder, as printed or as measured: the power of the table, and
the power at which what the cell is a factor of is flat, by log y = a + s log x + c / x (depths from 2: + d / L^2)."""
WORDS = {
    "multipliers": "are asked to keep a |W| flat, in blocks of k layers a |W|^k over 1/L (k = 1: 1/sqrt(L)).",
    "variances": "are asked to keep |W|^2 flat, of output weights over n^2.",
    "learning rates": "are asked to keep a rate |A| |W|^(k - 1) flat, in blocks over 1/L, A the first direction.",
    "weight decays": "are asked to keep decay |W| / |A| flat.",
    "epsilons": "are asked to keep pace with what they are added to: elements of gradients, Shampoo's squared norms.",
    "*": "another half or whole power is nearer.",
}


def text(dataset: xr.Dataset) -> str:
    """What was run, then for every ladder a line for every cell that scales: its power as printed and as measured."""
    cells = claims.measured_cells(dataset, *claims.run_optimizers(dataset))
    findings = claims.findings(dataset)
    stand = sum(cell.stands for cell in cells)
    tables = [_table(cells, direction) for direction in coordinate_checks.DIRECTIONS]
    head = answer(findings, f"for {stand} of {len(cells)} powers the printed one is the nearest")
    of = "biases" if dataset.attrs["biases"] else "weights"
    return report(
        QUESTION, head, [HEADING.format_map({**dataset.attrs, "of": of}), *tables, _others(cells)], findings, WORDS
    )


def _table(cells: Sequence[claims.Cell], direction: str) -> str:
    along = [cell for cell in cells if cell.direction == direction]
    lines = [
        [cell.name, f"{cell.printed:+g}", slope(cell.needed, cell.stderr) + "*" * (not cell.stands)]
        for cell in along
        if cell.printed or not cell.stands
    ]
    return table(["cell", "printed", "measured"], lines, f"Powers of the {direction}")


def _others(cells: Sequence[claims.Cell]) -> str:
    """Of the cells that are printed without a power and have none."""
    still = [abs(cell.off) for cell in cells if not cell.printed and cell.stands]
    return f"The other {len(still)} powers are printed as 0; measured they are {max(still, default=0.0):.2f} at most."
