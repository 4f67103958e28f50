"""Printed tables of what the exact recursions say of depth: energies, finite width, and the output term's share."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import (
    Finding,
    judge_drawn_share,
    judge_negligible_output_term,
    judge_output_term_growth,
    judge_uniform_correction,
)
from sims.common.table import from_log, measured, number, signed, table

ENERGIES = {"update_energy": "S", "output_term": "A", "label_term": "B", "overlap_energy": "F"}
LEVELS = {"mean_field": "mean field", "law": "minima"}
SHOWN_DEPTHS = (10, 100, 1000, 10_000, 100_000)


def tables(dataset: xr.Dataset) -> list[str]:
    """All tables, in order."""
    energies = [_energy_table(dataset, layers) for layers in ("last", "mean")]
    return [*energies, _width_table(dataset), _share_table(dataset), _drawn_share_table(dataset)]


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
    chosen = dataset.sel(layers=layers)
    rows = []
    for depth in chosen["net_depth"].values:
        at = chosen.sel(net_depth=depth)
        exact = {name: float(at["log_energy"].sel(energy=name)) for name in ENERGIES}
        limits = [float(at[f"log_energy_{level}"].sel(energy="overlap_energy")) for level in LEVELS]
        cells = [from_log(log) for log in (*exact.values(), *limits)]
        cells.append(from_log(exact["overlap_energy"] - limits[0]))
        if layers == "mean":
            label_limits = [float(at[f"log_energy_{level}"].sel(energy="label_term")) for level in LEVELS]
            logs = (exact["update_energy"], exact["label_term"], *label_limits)
            cells += [from_log(-0.5 * log) for log in logs]
        rows.append([str(depth), *cells])
    others = [*(f"F, {name}" for name in LEVELS.values()), "F / mean field"]
    header: list[str | list[str]] = ["depth L", list(ENERGIES.values()), others]
    if layers == "mean":
        header.append(["eta*", "eta* of B", *(f"eta* of B, {name}" for name in LEVELS.values())])
    place = "of the last layer" if layers == "last" else "averaged over layers, and eta* = (mean S)^(-1/2)"
    return table(header, rows, f"Exact energies {place}, width {dataset.attrs['width']}, by depth of the net")


def _width_table(dataset: xr.Dataset) -> str:
    rows = []
    for width in dataset["width"].values:
        at = dataset.sel(width=width)
        cells = [number(float(value)) for name in ("excess_at_share", "excess_at_layer") for value in at[name].values]
        rows.append([str(width), *cells])
    shares = [f"l/n = {share:g}" for share in dataset["depth_over_width"].values]
    header = ["width n", *shares, [f"l = {layer}" for layer in dataset["fixed_layer"].values]]
    title = "Finite width: exact F_l over its leading order, less 1 (O(1/n) uniform in depth: columns fall as 1/n)"
    return table(header, rows, title)


def _share_table(dataset: xr.Dataset) -> str:
    rows = []
    for head in dataset["head"].values:
        for outputs in dataset["outputs"].values:
            row = [str(head), f"{outputs:g}"]
            for depth in SHOWN_DEPTHS:
                at = dataset.sel(head=head, outputs=outputs, share_depth=depth)
                row.append(f"{from_log(float(at['log_output_over_label']))} ({float(at['scale_slope']):.3f})")
            rows.append(row)
    width = dataset["outputs"].values.max()
    title = f"A/B at the last layer (local slope of eta*), exact, width {width:g}"
    return table([["head", "outputs"], *(f"L = {depth}" for depth in SHOWN_DEPTHS)], rows, title)


def _drawn_share_table(dataset: xr.Dataset) -> str:
    rows = []
    names = [f"drawn_share{end}" for end in ("", "_stderr", "_exact", "_largest_draw", "_converged")]
    stacked = dataset[names].stack(net=("head", "drawn_outputs", "drawn_depth"))
    for place in range(stacked.sizes["net"]):
        at = stacked.isel(net=place)
        share, stderr, exact, largest, converged = (float(at[name]) for name in names)
        score = signed((share - exact) / stderr) if converged else "not converged"
        head, outputs, depth = at["net"].item()
        rows.append([head, str(outputs), str(depth), measured(share, stderr), number(exact), score, f"{largest:.0%}"])
    draws = int(np.max(dataset["drawn_share_draws"]))
    header = [["head", "outputs", "depth"], ["A/B, drawn", "exact", "s.e."], "largest draw"]
    return table(header, rows, f"A/B at the last layer, {draws} draws of nets of width {dataset.attrs['sweep_width']}")
