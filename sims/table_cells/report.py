"""The printed report on the cells of hyperparameter tables."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import coordinate_checks
from meanfield.verification import table_cells as claims
from sims.common.blocks.ladders import trained_in
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
HEADING = """\
L blocks of {block_depth} matrices, {activation}; widths {widths} at L = {depth}, L = {depths} at width {width}
{samples} samples, {outputs} outputs; {steps} steps in {trained}, {draws} draws, seed {seed}
Nets train under the whole table of an optimizer, and again with one cell of {of} kept at the
value of the base model at all sizes: a line for every cell, by the ladder along which it scales."""
WORDS = {
    "move": "the slope of log y in log x along the ladder with the cell kept, less that with the whole table, draw by "
    "draw; of the number y on the line, which is the one of all watched that tells most.",
    "alone": "the change of h_L or f if no weights but those of this role had moved.",
    "Delta": "the change since training began, of h_0 behind the input weights, h_(L/2) behind half of the L blocks, "
    "h_L behind all of them, or the outputs f.",
    "leaves the floats": "nets with the cell kept overflow.",
}


def text(dataset: xr.Dataset) -> str:
    """What was run, then for every ladder a line for every cell: what moves most, by how much, whether it counts."""
    moves = claims.moves(dataset, *claims.run_optimizers(dataset))
    findings = claims.findings(dataset)
    seen = sum(move.distance > 0 for move in moves)
    tables = [_table(dataset, moves, direction) for direction in coordinate_checks.DIRECTIONS]
    head = answer(findings, f"{seen} of {len(moves)} cells move one by {number(claims.MOVED)} or more")
    of = "biases" if dataset.attrs["biases"] else "weights"
    heading = HEADING.format_map({**dataset.attrs, "of": of, "trained": trained_in(dataset.attrs)})
    return report(QUESTION, head, [heading, *tables, *_reasons(moves)], findings, WORDS)


def _table(dataset: xr.Dataset, moves: Sequence[claims.Move], direction: str) -> str:
    lines = [
        [move.cell, _move(move), f"{move.number.symbol.replace(' weights alone', ' alone')}, step {move.number.step}"]
        for move in moves
        if move.direction == direction
    ]
    first, *_, last = dataset[direction].values
    title = f"Moves of slopes in {direction}, {first} .. {last}"
    return table(["cell kept as in the base model", "move", "of the slope of"], lines, title)


def _move(move: claims.Move) -> str:
    return slope(move.change, move.stderr) if abs(move.change) < float("inf") else "leaves the floats"


def _reasons(moves: Sequence[claims.Move]) -> list[str]:
    """Why this run does not see a cell."""
    lines = ["Cells that this run cannot see: no slope moves as much"]
    for move in moves:
        if move.distance <= 0:
            reason = next(reason for words, reason in REASONS.items() if words in move.cell)
            lines.append(f"  {move.cell}: {reason}")
    return ["\n".join(lines)] if len(lines) > 1 else []
