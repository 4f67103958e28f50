"""The printed report on the cells of hyperparameter tables."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import table_cells as claims
from sims.common.report import answer, report
from sims.common.table import number, slope, table

QUESTION = "Does a slope move where one cell of a hyperparameter table stays at its standard value?"
# Part of the name of a cell -> why no slope moves with it.
REASONS = {
    "weight decay of output": "initial outputs fall as n^(-1/2), and so does what their decay takes",
    "weight decay": "too little decays in so few steps",
    "epsilon": "epsilons are small beside these gradients",
    "": "its effect is smaller than what counts as a move",
}
WORDS = {
    "standard": "the cell that stays at its value in the base model at all sizes; all others follow the table.",
    "move": "of the slope of log y in log x along a ladder, draw by draw: with the cell at its value in the base model "
    "at all sizes, less with the whole table. The table has that of the number y that tells most.",
    "Delta": "the change since training began, of h_0 behind the input weights, h_(L/2) behind half of the L blocks, "
    "h_L behind all of them, or the outputs f.",
}


def text(dataset: xr.Dataset) -> str:
    """A line for every cell: what moves most, by how much, and whether it counts."""
    lines = []
    moves = [move for name in claims.run_optimizers(dataset) for move in claims.moves(dataset, name)]
    for move in moves:
        at = f"{move.number.symbol}, step {move.number.step}"
        lines.append([move.cell, move.direction, _move(move), at, _seen(move)])
    findings = claims.findings(dataset)
    seen = sum(move.distance > 0 for move in moves)
    parts = [table(["standard", "ladder", "move", "of the slope of", "seen"], lines), *_reasons(moves)]
    head = answer(findings, f"{seen} of {len(moves)} cells move one by {number(claims.MOVED)} or more")
    return report(QUESTION, head, parts, findings, WORDS)


def _move(move: claims.Move) -> str:
    return slope(move.change, move.stderr) if abs(move.change) < float("inf") else "leaves the floats"


def _reasons(moves: Sequence[claims.Move]) -> list[str]:
    """Why this run does not see a cell."""
    lines = ["What this run cannot see"]
    for move in moves:
        if move.distance <= 0:
            reason = next(reason for words, reason in REASONS.items() if words in move.cell)
            lines.append(f"  {move.cell}: {reason}")
    return ["\n".join(lines)] if len(lines) > 1 else []


def _seen(move: claims.Move) -> str:
    return "yes" if move.distance > 0 else "no"
