"""The losses of GPT-2 that Zheng et al. 2026 print (tables 15 - 40), and what they say of the paper's own claims.

Nothing is trained. Of every table: the best base value at every size, by a parabola; how far it moves over the
ladder, in octaves from end to end; what the base model's best value costs the largest net, and what it costs under
one rule for the depth more than under the other; and the least losses, table beside table. The scatter of a loss
comes from the base model, which several tables have trained alike. --tables prints whole tables.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, require_choice, stream
from meanfield.verification import Finding
from sims.common.command import Option, Preset
from sims.common.datasets import Variable
from sims.common.report import Report
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Grid, number, slope, table
from sims.reported_losses.claims import (
    BY_CONDITION,
    CLAIMS,
    DEPTH_MANY,
    DEPTH_ONE,
    NAME,
    NAMES,
    WIDTH_MANY,
    WIDTH_STANDARD,
    carried,
    findings,
)

LISTED = "what the losses that Zheng et al. 2026 print say of its own claims"


def _known(written: str, given: list[int]) -> list[int]:
    """Numbers of tables, in the order given."""
    for wanted in given:
        require_choice(written, wanted, [printed["number"] for printed in printed_tables()])
    return given


OPTIONS = (
    Option(
        "tables",
        "tables to print whole, with an error for every optimum (default: none; paper: all)",
        int,
        metavar="NUMBER",
        many="*",
        check=_known,
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


PRINTED = Path(__file__).with_name("loss_tables.json")
BASE = {"width": 256, "depth": 4}

LABELS = ("setting", "parameterization", "direction")

# Repeats further than this above the least loss of the base model are of unstable or of hardly trained nets, whose
# scatter is not that near the optimum.
NEAR = 0.5
# Repetitions of a table with noise of this scatter, from which the errors of optima come.
NOISY_COPIES = 1000


def printed_tables() -> list[dict[str, Any]]:
    """The 26 tables: number, setting, parameterization, direction, sizes, log2_values, losses (None: not a number)."""
    tables: list[dict[str, Any]] = json.loads(PRINTED.read_text())
    return tables


def loss_tables() -> xr.Dataset:
    """All tables over ``table``, ``size`` (place in the ladder) and ``value`` (place in the grid), nan where none is.

    Beside ``loss``: ``ladder`` and ``log2_value``, the sizes and the grid; ``scatter`` of a loss, from repeats, with
    their degrees of freedom ``repeats``; ``optimum`` (log2) by size with its standard error, and ``bracketed``, false
    where the least loss is at an end of the grid; ``least_loss``; ``carried_cost``, what the value that is best for the
    base model costs a size above its own best; ``drift`` of the optimum, in octaves over the whole ladder, and its
    standard error.
    """
    tables = printed_tables()
    scatter = {table["setting"]: base_scatter(tables, table["setting"]) for table in tables}
    rows = [_row(table, *scatter[table["setting"]]) for table in tables]
    coords = {name: ("table", [str(table[name]) for table in tables]) for name in LABELS}
    dims = {"loss": ("size", "value"), "log2_value": ("value",)}
    dims |= dict.fromkeys(("ladder", "optimum", "optimum_stderr", "bracketed", "least_loss", "carried_cost"), ("size",))
    variables = {name: (("table", *dims.get(name, ())), _stacked([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(variables, {"table": [table["number"] for table in tables], **coords})


def _stacked(arrays: list[Any]) -> Array:
    """Arrays of several shapes as one, filled up with nan."""
    parts = [np.asarray(array, float) for array in arrays]
    shape = np.max([part.shape for part in parts], axis=0).astype(int)
    whole = np.full((len(parts), *shape), np.nan)
    for place, part in enumerate(parts):
        whole[place, ...][tuple(slice(length) for length in part.shape)] = part
    return whole


def base_scatter(tables: list[dict[str, Any]], setting: str) -> tuple[float, int]:
    """Standard deviation of a loss near the optimum, pooled over repeats of the base model, and degrees of freedom.

    (nan, 0) where fewer than two values of the grid have repeats.
    """
    repeats: dict[int, list[float]] = {}
    for printed in tables:
        if printed["setting"] == setting:
            losses = printed["losses"][printed["sizes"].index(BASE[printed["direction"]])]
            for value, loss in zip(printed["log2_values"], losses, strict=True):
                repeats.setdefault(value, []).append(np.nan if loss is None else loss)
    least = min(min(losses) for losses in repeats.values())
    near = [losses for losses in repeats.values() if len(losses) > 1 and max(losses) < least + NEAR]
    freedom = sum(len(losses) - 1 for losses in near)
    squares = sum(float(np.var(losses)) * len(losses) for losses in near)
    return (float(np.sqrt(squares / freedom)), freedom) if len(near) > 1 else (np.nan, 0)


def _row(table: dict[str, Any], scatter: float, freedom: int) -> dict[str, Any]:
    """What `loss_tables` says of one table."""
    losses = np.array([[np.inf if loss is None else loss for loss in row] for row in table["losses"]])
    grid, sizes = np.array(table["log2_values"], float), np.array(table["sizes"], float)
    optimum, bracketed = optima(grid, losses)
    noise = stream(0, "scatter of printed losses", table["number"]).normal(0, scatter, (NOISY_COPIES, *losses.shape))
    copies = optima(grid, losses + np.nan_to_num(noise))[0]
    spread = np.sqrt(np.mean((copies - optimum) ** 2, axis=0)) if freedom else np.full(len(sizes), np.nan)
    least = losses.min(axis=1)
    carried = int(losses[table["sizes"].index(BASE[table["direction"]])].argmin())
    moved, others = displacements(np.log2(sizes), optimum), displacements(np.log2(sizes), copies)
    noise_of_move = np.sqrt(np.mean((others[0] - moved[0]) ** 2)) if freedom else np.nan
    return {
        "loss": np.where(np.isfinite(losses), losses, np.nan),
        "log2_value": grid,
        "ladder": sizes,
        "scatter": scatter,
        "repeats": freedom,
        "optimum": optimum,
        "optimum_stderr": spread,
        "bracketed": bracketed,
        "least_loss": least,
        "carried_cost": losses[:, carried] - least,
        "drift": moved[0],
        "drift_stderr": np.hypot(noise_of_move, np.max(np.abs(moved - moved[0]))),
        "drift_is_bound": not bracketed[[0, -1]].all(),
    }


def optima(grid: Array, losses: Array) -> tuple[Array, Array]:
    """Place of the least loss along the last axis, by the parabola through it and its neighbours; whether it has two.

    At an end of the grid, or beside a run that diverged, the place is the grid's own.
    """
    losses = np.where(np.isfinite(losses), losses, np.inf)
    place = losses.argmin(axis=-1)
    inside = (place > 0) & (place < len(grid) - 1)
    inner = np.clip(place, 1, len(grid) - 2)
    below, least, above = (np.take_along_axis(losses, (inner + i)[..., None], -1)[..., 0] for i in (-1, 0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (below - above) / (2 * (below - 2 * least + above))
    return grid[place] + np.where(inside & np.isfinite(shift), shift, 0.0), inside


def displacements(doublings: Array, optima: Array) -> Array:
    """How far optima (..., sizes) move over the ladder in octaves, by three estimators: (3, ...).

    From the smallest size to the largest; by the straight line of least squares; and by the median of the slopes
    between any two sizes. None weights sizes by their errors: where nets are small, valleys are flat and optima poorly
    known, so that a line through the others would say nothing of the base model, from which a rate is carried.
    """
    ends = optima[..., -1] - optima[..., 0]
    centred = doublings - doublings.mean()
    line = optima @ centred / np.sum(centred**2)
    first, second = np.triu_indices(len(doublings), 1)
    slopes = (optima[..., second] - optima[..., first]) / (doublings[second] - doublings[first])
    return np.stack([ends, *(slope * np.ptp(doublings) for slope in (line, np.median(slopes, axis=-1)))])


# What is printed.

EDGE = "*"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    """How far optima move by rule and direction."""
    groups = (WIDTH_STANDARD, WIDTH_MANY, DEPTH_ONE, DEPTH_MANY)
    moves = [f"{float(abs(dataset['drift'].sel(table=list(at))).mean()):.1f}" for at in groups]
    in_width = f"over widths {moves[0]} octaves in the standard parameterization and {moves[1]} under condition 3.1"
    return f"Best rates move {in_width}; over depths {moves[2]} under condition B.1 and {moves[3]} under 3.1."


# Rules of each ladder, and their names in a header.
LADDERS = (("width", "standard"), ("width", "many"), ("depth", "standard"), ("depth", "one"), ("depth", "many"))


def _brief_table(dataset: xr.Dataset) -> Grid:
    """The drifts of all tables, by setting and rule."""
    drifts: dict[str, dict[tuple[str, str], str]] = {}
    for at in (dataset.sel(table=place) for place in dataset["table"].values):
        setting, rule, direction = (str(at[name].values) for name in ("setting", "parameterization", "direction"))
        drift, stderr = float(at["drift"]), float(at["drift_stderr"])
        error = f" +- {stderr:.1f}" if np.isfinite(stderr) else ""
        shown = f"{drift:+.1f}{error}{EDGE if at['drift_is_bound'] else ''}"
        drifts.setdefault(setting, {})[direction, rule] = shown
    lines = [[setting, *(of.get(ladder, MISSING) for ladder in LADDERS)] for setting, of in drifts.items()]
    header = ["setting", *(f"{direction}, {NAMES[rule]}" for direction, rule in LADDERS)]
    return table(header, lines, "Octaves by which the best base value drifts from the smallest model to the largest")


def _drifts(dataset: xr.Dataset) -> Grid:
    """A line for every table: what it follows, its optimum at both ends, its drift, what carrying costs."""
    lines = []
    for at in (dataset.sel(table=place) for place in dataset["table"].values):
        ends = np.flatnonzero(np.isfinite(at["ladder"].values))[[0, -1]]
        words = [str(at[name].values) for name in ("setting", "parameterization", "direction")]
        drift, stderr, cost = float(at["drift"]), float(at["drift_stderr"]), float(at["carried_cost"][ends[-1]])
        moved = slope(drift, stderr) if np.isfinite(stderr) else f"{drift:+.2f}"
        lines.append([str(int(at["table"])), *words, *(_optimum(at, int(end)) for end in ends), moved, f"{cost:.3f}"])
    header = [["table", "setting", "rule", "along"], ["smallest", "largest", "drift", "carried costs"]]
    how = (
        "Best log2 of the base value at both ends, its drift from end to end (with an error that holds the choice of "
        "estimator), and nats that the base model's best costs the largest"
    )
    return table(header, lines, how)


def _carried(dataset: xr.Dataset) -> Grid:
    """What a user pays for condition B.1 instead of 3.1, at the base model's best rate."""
    lines = []
    for above, below in BY_CONDITION:
        made = carried(dataset, above, below)
        each = ", ".join(f"{mean:+.3f} at {value:g}" for value, mean in made.choices.items())
        name, mean = str(dataset["setting"].sel(table=above).values), f"{made.mean:+.3f} +- {made.stderr:.3f}"
        lines.append([name, f"{made.value:g}", mean, f"{made.last:+.3f}", each])
    header = ["setting", "base model's best", "B.1 less 3.1", "at 256 blocks", "at rates that are alike there"]
    how = "Nats that condition B.1 costs against 3.1 at the base model's best rate (log2), mean over 8 .. 256 blocks"
    return table(header, lines, how)


def _optimum(at: xr.Dataset, place: int) -> str:
    return f"{float(at['optimum'][place]):.2f}{'' if at['bracketed'][place] else EDGE}"


def _scatter(dataset: xr.Dataset) -> Grid:
    """What repeats of the base model say of the error of a loss."""
    lines = {}
    for at in (dataset.sel(table=place) for place in dataset["table"].values):
        repeats = int(at["repeats"])
        lines[str(at["setting"].values)] = [number(float(at["scatter"])), str(repeats or MISSING)]
    rows = [[name, *cells] for name, cells in lines.items()]
    return table(
        ["setting", "s.d. of a loss", "degrees of freedom"], rows, "Repeats of the base model near its optimum"
    )


def _whole(dataset: xr.Dataset) -> list[Grid]:
    """The tables that were asked for."""
    return [_printed(dataset.sel(table=int(shown))) for shown in dataset.attrs["shown"].split()]


def _printed(at: xr.Dataset) -> Grid:
    grid = at["log2_value"].values
    inside = np.isfinite(grid)
    lines = []
    for place in np.flatnonzero(np.isfinite(at["ladder"].values)):
        losses = [MISSING if np.isnan(loss) else f"{loss:g}" for loss in at["loss"].values[place, inside]]
        best = [_optimum(at, int(place)), number(float(at["optimum_stderr"][place]))]
        lines.append([f"{float(at['ladder'][place]):g}", *losses, *best])
    words = ", ".join(str(at[name].values) for name in ("setting", "parameterization"))
    header = [str(at["direction"].values), *(f"{value:g}" for value in grid[inside]), "best", "s.e."]
    return table(header, lines, f"Table {int(at['table'])}: {words}; columns are log2 of the base value")


REPORT = Report(
    question="What do the losses that Zheng et al. 2026 print say of its claims on transfer?",
    answer=_answer,
    heading="GPT-2 on OpenWebText, one run a cell, base model of width 256 and depth 4 (appendix E); rules: standard "
    "parameterization, 3.1 (many): condition 3.1 (k >= 2), B.1 (one): condition B.1 (k = 1)\n"
    f"{EDGE}: the least loss is at an end of the grid, and the optimum may lie beyond; below: in the least loss",
    brief=_brief_table,
    steps=[("--tables 18 19", "losses of these tables, with an error for every optimum")],
    parts=[_drifts, _carried, _scatter, _whole],
    findings=findings,
)


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


if __name__ == "__main__":
    run_as_command("reported_losses")
