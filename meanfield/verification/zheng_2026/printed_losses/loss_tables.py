"""The losses that Zheng et al. 2026 print (tables 15 - 40), as data, with their scatter, their optima and drifts.

Every table has the final validation loss of GPT-2 models by size (width n or depth L) and by log2 of one base value, a
learning rate or a weight decay, from one run each. The paper gives no error. Its tables do: at the base model (n = 256,
L = 4) all parameterizations prescribe the same hyperparameters, so that tables of one setting repeat its runs.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.seeds import stream

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
    for table in tables:
        if table["setting"] == setting:
            losses = table["losses"][table["sizes"].index(BASE[table["direction"]])]
            for value, loss in zip(table["log2_values"], losses, strict=True):
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
    doublings = np.log2(sizes)
    slope, error = weighted_slope(doublings, optimum, spread)
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
        "drift": slope * np.ptp(doublings),
        "drift_stderr": error * np.ptp(doublings),
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


def weighted_slope(x: Array, y: Array, stderr: Array) -> tuple[float, float]:
    """Slope of the weighted line through points, its error raised by the root of chi^2 per degree of freedom above 1.

    So points that no line fits count as less certain than their errors say.
    """
    weights = stderr**-2.0
    centred = x - np.sum(weights * x) / np.sum(weights)
    information = float(np.sum(weights * centred**2))
    slope = float(np.sum(weights * centred * y)) / information
    level = np.sum(weights * (y - slope * centred)) / np.sum(weights)
    excess = float(np.sum(weights * (y - level - slope * centred) ** 2)) / (len(x) - 2)
    return slope, float(np.sqrt(max(excess, 1.0) / information))
