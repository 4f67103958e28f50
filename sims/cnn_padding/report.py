"""The printed report on zero against circular padding."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification import Finding, Series
from sims.cnn_padding import claims
from sims.cnn_padding.theory import PADDINGS
from sims.common.report import Report, answer
from sims.common.tables import (
    MISSING,
    Column,
    Grid,
    Group,
    Table,
    against,
    fitted,
    label,
    measured,
    number,
    predicted,
    rows,
    table,
    value,
)

WORDS = {
    "bdry": "boundary fraction, by enumeration; closed form: 1 - prod(1 - (k - 1)/N).",
    "lambda": "largest eigenvalue of the transport of a kernel through a layer; 1 under circular padding.",
}
LANDMARKS = ("half_depth", "lost_power_depth", "turning_depth")
# Layers at which the share lost is shown.
SHOWN = (1, 2, 4, 8, 16, 32, 64)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    lines = claims.lines_of(dataset)
    laws = {grid: claims.ratio_slope(dataset.sel(grid=grid)) for grid in (lines[0], lines[-1])}
    moved = ", ".join(f"{law.exponent:.3f} +- {law.stderr:.3f} ({grid} sites)" for grid, law in laws.items())
    return answer([claims.judge_exponent(dataset), claims.judge_uniform_correction(dataset)], f"it moves by {moved}")


def _grid_title(dataset: xr.Dataset) -> str:
    layers = dataset.sizes["layer"]
    return (
        f"Grids; last columns: decay of B zero / circular per layer, over layers {layers // 2} .. {layers} of one net, "
        "which tends to ln lambda"
    )


GRID_TABLE = Table(
    "grid table",
    _grid_title,
    ["grid"],
    "grid",
    [
        Column("bdry", "boundary_fraction"),
        Column("closed form", "boundary_fraction_closed"),
        Column("lambda", lambda at: f"{float(at['transport_eigenvalue']):.5f}"),
        Column("ln lambda", lambda at: f"{float(np.log(at['transport_eigenvalue'])):.4f}"),
        Column("mean field", lambda at: f"{claims.theory_layer_decay(at):.4f}"),
        Column("drawn", lambda at: measured(*claims.layer_decay(at))),
    ],
)


def _terms(padding: str, at: xr.Dataset) -> list[str]:
    return against(at.sel(padding=padding), "label_term")


def _quotient(values: xr.DataArray) -> float:
    return float(values.sel(padding="zero") / values.sel(padding="circular"))


def _ratio(at: xr.Dataset, name: str) -> str:
    """Zero over circular, drawn, with its error."""
    series = Series.of(at, name)
    ratio = _quotient(series.value)
    return measured(ratio, ratio * float(np.hypot(*series.relative_error.values)))


ENERGIES: list[Group] = [
    *(Column([f"B {padding}", "mean field", "s.e."], partial(_terms, padding)) for padding in PADDINGS),
    [
        Column("B ratio", lambda at: _ratio(at, "label_term")),
        Column("mean field", lambda at: number(_quotient(at["label_term_mean_field"]))),
        Column("S ratio", lambda at: _ratio(at, "update_energy")),
    ],
]


def _energy_table(dataset: xr.Dataset) -> Grid:
    """At the depths' layers of the deepest nets: both paddings against their mean fields, and the ratios."""
    by_layer = dataset.drop_dims("depth").sel(layer=dataset["depth"].values)
    title = f"Energies in nets of {dataset.sizes['layer']} layers, and ratios zero / circular"
    return Table("energy table", title, ["grid", "layer"], ["grid", "layer"], ENERGIES)(by_layer)


def _scale_columns(dataset: xr.Dataset) -> list[Column]:
    slopes = Column(
        ["slope in L", "mean field"],
        lambda at: [fitted(claims.ratio_slope(at)), number(claims.theory_ratio_slope(at))],
    )
    depths = dataset["depth"].values
    return [*(Column([f"L = {depth}", "mean field"], partial(_scales, depth)) for depth in depths), slopes]


def _scales(depth: int, at: xr.Dataset) -> list[str]:
    name, at_depth = claims.LABEL_SCALE, at.sel(depth=depth)
    return [_ratio(at_depth, name), number(_quotient(at_depth[f"{name}_mean_field"]))]


SCALE_TABLE = Table(
    "scale table",
    "eta* of B, zero / circular, one independent set of nets per depth (Zhang et al. 2026: a constant 1 + O(bdry), "
    "of slope 0)",
    ["grid"],
    "grid",
    _scale_columns,
)


def _far_table(dataset: xr.Dataset) -> Grid:
    def cells(at: xr.Dataset) -> list[str]:
        doubled = 2 * float(np.log(at["far_eigenvalue"]))
        return [*(predicted(at, name) for name in (*LANDMARKS, "decay")), number(-3 / doubled), number(doubled)]

    lines, turned = [], dataset.assign(decay=dataset["decay"].where(dataset["turning_depth"].notnull()))
    for family in map(str, dataset["family"].values):
        followed = turned.sel(family=[family]).dropna("sites", subset=["far_eigenvalue"])
        lines += rows(followed, ["family", "sites"], cells)
        exponents = [number(claims.size_exponent(dataset, family, name)) for name in LANDMARKS]
        lines.append([family, "exponent", *exponents, "", "", ""])
    landmarks = ["F halved at l", "a power lost", "growth ends"]
    header = ["mean field", "N", *landmarks, "decay", "3/(-2 ln lambda)", "2 ln lambda"]
    title = (
        "Layers where zero padding breaks the cubic law of F: where the ratio zero / circular is 1/2, the growth "
        "exponent is one below that under circular padding, and growth ends, near 3/(-2 ln lambda); then the decay, ln "
        "of the ratio per layer, which tends to 2 ln lambda. Exponents in N + 1 between the two largest grids"
    )
    return table(header, lines, title)


def _correction_table(dataset: xr.Dataset) -> Grid:
    """(1 - F zero / circular) / bdry by layer on the largest line, which the paper's remark has constant."""
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"]).isel(sites=-1)
    fraction, lines = value(at, "far_boundary_fraction"), []
    for wanted in SHOWN:
        near = int(np.nanargmin(np.abs(at["far_layer"].values - wanted)))
        lost = 1 - float(at["far_ratio"][near])
        lines.append([f"{at['far_layer'].values[near]:.0f}", number(lost), number(lost / fraction)])
    title = f"1D ReLU, {int(at['sites'])} sites, bdry {number(fraction)}: share of F lost"
    return table(["layer", "1 - ratio", "over bdry"], lines, title)


def _papers_grid(dataset: xr.Dataset) -> Grid:
    depths = dataset["papers_depth"].values
    scales = [dataset["papers_scale"].sel(padding=padding).values for padding in PADDINGS]
    columns = {padding: scale / scale[0] for padding, scale in zip(PADDINGS, scales, strict=True)}
    columns["zero / circular"] = scales[0] / scales[1]
    lines = [
        [name, *map(number, column), number(np.log(column[-1] / column[0]) / np.log(depths[-1] / depths[0]))]
        for name, column in columns.items()
    ]
    side = dataset.attrs["papers_side"]
    header = [f"{side} x {side}", *(f"L = {label(depth)}" for depth in depths), "slope"]
    title = "eta* of B over the depths of Zhang et al. 2026, mean field (each padding relative to the first depth)"
    return table(header, lines, title)


def _on_a_torus(at: xr.Dataset) -> str:
    torus = float(at["missing_circular"])
    return MISSING if np.isnan(torus) else f"{torus:.0e}"


MISSING_TABLE = Table(
    "missing table",
    "Zhang et al. 2026, Lemma 3 for |f| <= 1: terms that zero padding misses, and their bound",
    ["set"],
    "set",
    [
        Column("sites", "set_sites"),
        Column("k", "set_taps"),
        Column("random f", "missing_worst"),
        Column("constant f", "missing_largest"),
        Column("k bdry", "missing_bound"),
        Column("reached", lambda at: number(float(at["missing_largest"] / at["missing_bound"]))),
        Column("on a torus", _on_a_torus),
    ],
)

REPORT = Report(
    question="Does zero padding leave the depth exponent of eta* as it is under circular padding?",
    answer=_answer,
    heading="ConvNet: {channels} channels, 3 taps an axis, relu, convolutional readout; {draws} draws, seed {seed}\n"
    "B: label term, F: overlap energy, S: update energy; learning rate 1",
    parts=[GRID_TABLE, _energy_table, SCALE_TABLE, _far_table, _correction_table, _papers_grid, MISSING_TABLE],
    findings=claims.JUDGES.findings,
    heavy=["label_term", "update_energy"],
    words=WORDS,
)
