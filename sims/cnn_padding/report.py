"""The printed report on zero against circular padding."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import padding as claims
from meanfield.verification import score
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

QUESTION = "Does zero padding leave the depth exponent of eta* as it is under circular padding?"

WORDS = {
    "bdry": "boundary fraction, by enumeration; closed form: 1 - prod(1 - (k - 1)/N).",
    "lambda": "largest eigenvalue of the transport of a kernel through a layer; 1 under circular padding.",
}


def text(dataset: xr.Dataset) -> str:
    """Grids, energies under both paddings, learning rates, far depths, missing terms, verdicts."""
    parts = [_heading(dataset), _grid_table(dataset), _energy_table(dataset), _scale_table(dataset)]
    parts += heavy_tail_notes(dataset, ["label_term", "update_energy"])
    parts += [_far_table(dataset), _correction_table(dataset), _papers_grid(dataset), _missing_table(dataset)]
    return report(QUESTION, _answer(dataset), parts, claims.findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    grids = [str(name) for name in dataset["grid"].values if str(name).isdigit()]
    laws = {grid: claims.ratio_slope(dataset.sel(grid=grid)) for grid in (grids[0], grids[-1])}
    moved = ", ".join(f"{law.exponent:.3f} +- {law.stderr:.3f} ({grid} sites)" for grid, law in laws.items())
    return answer([claims.judge_exponent(dataset, place) for place in (0, -1)], f"it moves by {moved}")


def _heading(dataset: xr.Dataset) -> str:
    run = "ConvNet: {channels} channels, 3 taps an axis, relu, convolutional readout; {draws} draws, seed {seed}"
    return f"{run.format_map(dataset.attrs)}\nB: label term, F: overlap energy, S: update energy; learning rate 1"


def _grid_table(dataset: xr.Dataset) -> str:
    rows = []
    for grid in map(str, dataset["grid"].values):
        at = dataset.sel(grid=grid)
        log_eigenvalue = float(np.log(at["transport_eigenvalue"]))
        drawn = claims.layer_decay(at)
        rows.append(
            [
                grid,
                number(float(at["boundary_fraction"])),
                number(float(at["boundary_fraction_closed"])),
                f"{float(at['transport_eigenvalue']):.5f}",
                f"{log_eigenvalue:.4f}",
                f"{claims.theory_layer_decay(at):.4f}",
                measured(*drawn),
            ]
        )
    layers = dataset.sizes["layer"]
    header = ["grid", "bdry", "closed form", "lambda", "ln lambda", "mean field", "drawn"]
    title = (
        f"Grids; last columns: decay of B zero / circular per layer, over layers {layers // 2} .. {layers} of one net, "
        "which tends to ln lambda"
    )
    return table(header, rows, title)


def _energy_table(dataset: xr.Dataset) -> str:
    """At the depths' layers of the deepest nets: both paddings against their mean fields, and the ratios."""
    rows = []
    for grid in map(str, dataset["grid"].values):
        for layer in dataset["depth"].values:
            at = dataset.sel(grid=grid, layer=layer)
            cells = [grid, str(layer)]
            for padding in ("zero", "circular"):
                one = at.sel(padding=padding)
                value, stderr, theory = (one[f"label_term{end}"] for end in ("", "_stderr", "_mean_field"))
                cells += [measured(float(value), float(stderr)), number(float(theory))]
                cells.append(signed(float(score(value, stderr, theory))))
            cells += [_ratio(at, "label_term"), number(_quotient(at["label_term_mean_field"]))]
            rows.append([*cells, _ratio(at, "update_energy")])
    beside = ("mean field", "s.e.")
    header = [["grid", "layer"], ["B zero", *beside], ["B circular", *beside], ["B ratio", "mean field", "S ratio"]]
    return table(header, rows, f"Energies in nets of {dataset.sizes['layer']} layers, and ratios zero / circular")


def _quotient(values: xr.DataArray) -> float:
    return float(values.sel(padding="zero") / values.sel(padding="circular"))


def _ratio(at: xr.Dataset, name: str) -> str:
    ratio = _quotient(at[name])
    relative = (at[f"{name}_stderr"] / at[name]).values
    return measured(ratio, ratio * float(np.hypot(*relative)))


def _scale_table(dataset: xr.Dataset) -> str:
    name, rows = claims.LABEL_SCALE, []
    for grid in map(str, dataset["grid"].values):
        at = dataset.sel(grid=grid)
        cells = [grid]
        for depth in dataset["depth"].values:
            one = at.sel(depth=depth)
            cells += [_ratio(one, name), number(_quotient(one[f"{name}_mean_field"]))]
        law = claims.ratio_slope(at)
        rows.append([*cells, measured(law.exponent, law.stderr), number(claims.theory_ratio_slope(at))])
    depths = [[f"L = {depth}", "mean field"] for depth in dataset["depth"].values]
    title = "eta* of B, zero / circular, one independent set of nets per depth (P0: a constant 1 + O(bdry), slope 0)"
    return table(["grid", *depths, ["slope in L", "mean field"]], rows, title)


def _far_table(dataset: xr.Dataset) -> str:
    rows = []
    for family in map(str, dataset["family"].values):
        for sites in dataset["sites"].values:
            at = dataset.sel(family=family, sites=sites)
            if np.isnan(at["far_eigenvalue"]):
                continue
            doubled = 2 * float(np.log(at["far_eigenvalue"]))
            depths = [number(float(at[name])) for name in ("half_depth", "lost_power_depth", "turning_depth")]
            turned = not np.isnan(at["turning_depth"])
            decay = f"{float(at['decay']):.4g}" if turned else "-"
            rows.append([family, str(sites), *depths, number(-3 / doubled), decay, f"{doubled:.4g}"])
        names = ("half_depth", "lost_power_depth", "turning_depth")
        exponents = [number(claims.size_exponent(dataset, family, name)) for name in names]
        rows.append([family, "exponent", *exponents, "", "", ""])
    header = [
        "mean field",
        "N",
        "F halved at l",
        "a power lost",
        "growth ends",
        "3/(-2 ln lambda)",
        "decay",
        "2 ln lambda",
    ]
    title = (
        "Where zero padding breaks the cubic law of F: ratio zero / circular 1/2; growth exponent one below circular; "
        "growth exponent 0; then ln of the ratio per layer. Exponents in N + 1 between the two largest grids"
    )
    return table(header, rows, title)


def _correction_table(dataset: xr.Dataset) -> str:
    """(1 - F zero / circular) / bdry by layer on the largest line, which P0's remark has constant."""
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"]).isel(sites=-1)
    rows = []
    for wanted in (1, 2, 4, 8, 16, 32, 64):
        near = int(np.nanargmin(np.abs(at["far_layer"].values - wanted)))
        lost = 1 - float(at["far_ratio"][near])
        rows.append(
            [f"{at['far_layer'].values[near]:.0f}", number(lost), number(lost / float(at["far_boundary_fraction"]))]
        )
    title = f"1D ReLU, {int(at['sites'])} sites, bdry {number(float(at['far_boundary_fraction']))}: share of F lost"
    return table(["layer", "1 - ratio", "over bdry"], rows, title)


def _papers_grid(dataset: xr.Dataset) -> str:
    depths, side = dataset["papers_depth"].values, dataset.attrs["papers_side"]
    rows = []
    for padding in ("zero", "circular"):
        scale = dataset["papers_scale"].sel(padding=padding).values
        slope = np.log(scale[-1] / scale[0]) / np.log(depths[-1] / depths[0])
        rows.append([padding, *(number(value / scale[0]) for value in scale), number(float(slope))])
    ratio = dataset["papers_scale"].sel(padding="zero") / dataset["papers_scale"].sel(padding="circular")
    change = float(np.log(ratio[-1] / ratio[0]) / np.log(depths[-1] / depths[0]))
    rows.append(["zero / circular", *(number(float(value)) for value in ratio), number(change)])
    header = [f"{side} x {side}", *(f"L = {depth}" for depth in depths), "slope"]
    return table(header, rows, "eta* of B over the depths that P0 trains, mean field (paddings relative to the first)")


def _missing_table(dataset: xr.Dataset) -> str:
    rows = []
    for name in map(str, dataset["set"].values):
        at = dataset.sel(set=name)
        values = [float(at[column]) for column in ("missing_worst", "missing_largest", "missing_bound")]
        torus = float(at["missing_circular"])
        cells = [str(int(at["set_sites"])), str(int(at["set_taps"])), *map(number, values)]
        rows.append([name, *cells, number(values[1] / values[2]), "-" if np.isnan(torus) else f"{torus:.0e}"])
    header = ["set", "sites", "k", "random f", "constant f", "k bdry", "reached", "on a torus"]
    return table(header, rows, "P0's Lemma 3 for |f| <= 1: terms that zero padding misses, and their bound")
