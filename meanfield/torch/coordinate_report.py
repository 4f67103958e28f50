"""A coordinate check in words: its question, the answer, all slopes with their verdicts, and what could be wrong."""

from collections.abc import Iterator
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.validation import takes
from meanfield.verification import Verdict, announced

# Characters of a line of sentences.
WIDTH = 110
# The direction whose size stays as the other grows.
OTHER = {"width": "depth", "depth": "width"}
HOW = "slope s of log y = a + s log x + c / x, draw by draw; plain: of a straight line"
FALLING = "\nbefore training outputs may fall with the width, which counts as flat"
EACH_ALONE = (
    "What could be wrong, by the slopes that are not flat: any one of these cells, if it is off by this factor against "
    "the least size, or several that add up to it. In brackets is how the table scales it with that size."
)
OF_FALLS = (
    "A sum falls only where all of its parts do: where a change falls, the cells of all weights that move it are off."
)


@takes(xr.Dataset)
def coordinate_report(dataset: xr.Dataset) -> str:
    """What a coordinate check has found, in words.

    Args:
        dataset: of `coordinate_check`.

    Returns:
        Lines of text: the question, the answer, which models were trained, a table of slopes with their verdicts, and
        the cells of the table that could be wrong, for every value or change by the first of its steps that is not
        flat; ``dataset.suspects`` has those of later steps.

    Raises:
        TypeError, ValueError: what is no such dataset.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     hidden = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), *hidden, nn.Linear(width, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> how = {"optimizer": torch.optim.AdamW, "widths": [32, 64, 128, 256], "depths": 2, "steps": 1, "draws": 8}
        >>> checked = mft.coordinate_check(model, nn.functional.cross_entropy, batches, **how)
        >>> print(mft.coordinate_report(checked).splitlines()[0])
        Do the values and outputs of Sequential stay flat in width under AdamW?
    """
    if "suspects" not in dataset:
        raise ValueError("the dataset holds no slopes that were judged; give one that coordinate_check has made")
    directions = [along for along in ("width", "depth") if along in dataset.sizes]
    family, optimizer = dataset.attrs["family"], dataset.attrs["optimizer"]
    question = f"Do the values and outputs of {family} stay flat in {' and '.join(directions)} under {optimizer}?"
    parts = [f"{question}\n{_answer(dataset)}", _heading(dataset, directions), _slopes(dataset)]
    return "\n\n".join([*parts, *_suspects(dataset)])


def _answer(dataset: xr.Dataset) -> str:
    verdicts = dataset["verdict"].values
    counts = {verdict: int(np.sum(verdicts == verdict)) for verdict in Verdict}
    said = f"{dataset.attrs['verdict']}: of {len(verdicts)} slopes {counts[Verdict.CONFIRMED]} are flat"
    said += f", {counts[Verdict.REFUTED]} are not flat" * bool(counts[Verdict.REFUTED])
    if not counts[Verdict.INCONCLUSIVE]:
        return f"{said}."
    needed = np.nan_to_num(dataset["draws_needed"].values[verdicts == Verdict.INCONCLUSIVE], nan=np.inf)
    half = announced(float(np.median(needed)))
    many = "more draws, or sizes farther apart," if half is None else f"{half:g} draws"
    return f"{said}; undecided: {counts[Verdict.INCONCLUSIVE]}, half of which {many} would decide."


def _heading(dataset: xr.Dataset, directions: list[str]) -> str:
    others = {along: f"at {other} {dataset.attrs[f'least_{other}']}" for along, other in OTHER.items()}
    sizes = ", ".join(f"{along}s {' '.join(map(str, dataset[along].values))} {others[along]}" for along in directions)
    run = "{draws} draws, seed {seed}; {steps} steps in {precision}, loss {loss}".format_map(dataset.attrs)
    table = f"; table of {dataset.attrs['table']}" if dataset.attrs["table"] else ""
    falling = FALLING if "width" in directions else ""
    return f"{sizes}; {run}\n{HOW}; flat: within {dataset.attrs['flat']:g}{table}{falling}"


def _slopes(dataset: xr.Dataset) -> str:
    header = ["along", "of", "at", "step", "slope", "plain", "verdict", "refuted from"]
    lines = [
        [
            *(str(row[name].values) for name in ("along", "of", "at", "after")),
            _slope(row),
            _number(row["plain_slope"], "+.3f"),
            str(row["verdict"].values),
            _number(row["refuted_from"], ".2f"),
        ]
        for row in _rows(dataset)
    ]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, *lines)
    )


def _suspects(dataset: xr.Dataset) -> Iterator[str]:
    """Of the first step that is not flat, for each value and change."""
    first: dict[tuple[str, ...], xr.Dataset] = {}
    for row in _rows(dataset):
        if row["verdict"] == Verdict.REFUTED:
            first.setdefault(tuple(str(row[name].values) for name in ("along", "of", "at")), row)
    if not first:
        return
    yield fill(EACH_ALONE, WIDTH)
    for (along, of, at), row in first.items():
        when = "before training" if of == "value" else f"after step {row['after'].values}"
        cells = (str(row["suspects"].values) or "no cell alone, by the other slopes").split("; ")
        lines = [fill(cell, WIDTH, initial_indent="    ", subsequent_indent="        ") for cell in cells]
        yield "\n".join([f"{of} of {at} {when}, in {along}: {_slope(row)}", *lines])
    if any(row["of"] == "change" and row["slope"] < 0 for row in first.values()):
        yield fill(OF_FALLS, WIDTH)


def _rows(dataset: xr.Dataset) -> list[xr.Dataset]:
    rows = dataset.drop_dims([dim for dim in dataset.dims if dim != "row"])
    return [rows.isel(row=place) for place in range(rows.sizes["row"])]


def _slope(row: xr.Dataset) -> str:
    if row["slope"].isnull():
        return str(row["evidence"].values)
    return f"{float(row['slope']):+.3f} +- {float(row['slope_stderr']):.3f}"


def _number(value: Any, digits: str) -> str:
    return f"{float(value):{digits}}" if np.isfinite(value) else "-"
