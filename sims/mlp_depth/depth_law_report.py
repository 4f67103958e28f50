"""Printed tables of what the exact recursions say of depth: energies, finite width, and the output term's share."""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification import (
    Finding,
    judge_drawn_share,
    judge_negligible_output_term,
    judge_output_term_growth,
    judge_uniform_correction,
)
from sims.common.report import Part
from sims.common.tables import against, from_log, number, rows, table, value

ENERGIES = {"update_energy": "S", "output_term": "A", "label_term": "B", "overlap_energy": "F"}
LEVELS = {"mean_field": "mean field", "law": "minima"}
SHOWN_DEPTHS = (10, 100, 1000, 10_000, 100_000)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Verdicts on what the tables show."""
    return [
        judge_uniform_correction(dataset),
        judge_output_term_growth(dataset),
        judge_negligible_output_term(dataset),
        judge_drawn_share(dataset),
    ]


def _energy_table(dataset: xr.Dataset, layers: str) -> str:
    """One row per depth. B over F is the same at every level, so that the predictions of F serve both."""

    def cells(at: xr.Dataset) -> list[str]:
        exact, *by_level = (
            dict(zip(at["energy"].values, at.variables[name].values, strict=True))
            for name in ("log_energy", *(f"log_energy_{level}" for level in LEVELS))
        )
        limits, labels = ([logs[name] for logs in by_level] for name in ("overlap_energy", "label_term"))
        logs = [*(exact[name] for name in ENERGIES), *limits, exact["overlap_energy"] - limits[0]]
        if layers == "mean":
            logs += [-0.5 * log for log in (exact["update_energy"], exact["label_term"], *labels)]
        return list(map(from_log, logs))

    overlaps = [*(f"F, {name}" for name in LEVELS.values()), "F / mean field"]
    header: list[str | list[str]] = ["depth L", list(ENERGIES.values()), overlaps]
    if layers == "mean":
        header.append(["eta*", "eta* of B", *(f"eta* of B, {name}" for name in LEVELS.values())])
    place = "of the last layer" if layers == "last" else "averaged over layers, and eta* = (mean S)^(-1/2)"
    title = f"Exact energies {place}, width {dataset.attrs['width']}, by depth of the net"
    return table(header, rows(dataset.sel(layers=layers), ["net_depth"], cells), title)


def _width_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        return [number(float(excess)) for name in ("excess_at_share", "excess_at_layer") for excess in at[name].values]

    shares = [f"l/n = {share:g}" for share in dataset["depth_over_width"].values]
    header = ["width n", *shares, [f"l = {layer}" for layer in dataset["fixed_layer"].values]]
    title = "Finite width: exact F_l over its leading order, less 1 (O(1/n) uniform in depth: columns fall as 1/n)"
    return table(header, rows(dataset, ["width"], cells), title)


def _share_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        by_depth = [at.sel(share_depth=depth) for depth in SHOWN_DEPTHS]
        return [
            f"{from_log(value(at_depth, 'log_output_over_label'))} ({value(at_depth, 'scale_slope'):.3f})"
            for at_depth in by_depth
        ]

    title = f"A/B at the last layer (local slope of eta*), exact, width {dataset['outputs'].values.max():g}"
    header = [["head", "outputs"], *(f"L = {depth}" for depth in SHOWN_DEPTHS)]
    return table(header, rows(dataset, ["head", "outputs"], cells), title)


def _drawn_share_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        *shares, off = against(at, "drawn_share", "exact")
        largest = f"{value(at, 'drawn_share_largest_draw'):.0%}"
        return [*shares, off if at["drawn_share_converged"] else "not converged", largest]

    draws = int(np.max(dataset["drawn_share_draws"]))
    header = [["head", "outputs", "depth"], ["A/B, drawn", "exact", "s.e."], "largest draw"]
    title = f"A/B at the last layer, {draws} draws of nets of width {dataset.attrs['sweep_width']}"
    return table(header, rows(dataset, ["head", "drawn_outputs", "drawn_depth"], cells), title)


# All tables, in order.
TABLES: list[Part] = [
    *(partial(_energy_table, layers=layers) for layers in ("last", "mean")),
    _width_table,
    _share_table,
    _drawn_share_table,
]
