"""The printed report on zero against circular padding."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import padding as claims
from sims.common.report import Report, answer
from sims.common.tables import MISSING, against, fitted, label, measured, number, predicted, rows, table, value

WORDS = {
    "bdry": "boundary fraction, by enumeration; closed form: 1 - prod(1 - (k - 1)/N).",
    "lambda": "largest eigenvalue of the transport of a kernel through a layer; 1 under circular padding.",
}
PADDINGS = ("zero", "circular")
LANDMARKS = ("half_depth", "lost_power_depth", "turning_depth")
# Layers at which the share lost is shown.
SHOWN = (1, 2, 4, 8, 16, 32, 64)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    grids = [str(name) for name in dataset["grid"].values if str(name).isdigit()]
    laws = {grid: claims.ratio_slope(dataset.sel(grid=grid)) for grid in (grids[0], grids[-1])}
    moved = ", ".join(f"{law.exponent:.3f} +- {law.stderr:.3f} ({grid} sites)" for grid, law in laws.items())
    return answer([claims.judge_exponent(dataset), claims.judge_uniform_correction(dataset)], f"it moves by {moved}")


def _grid_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        eigenvalue, fractions = float(at["transport_eigenvalue"]), ("boundary_fraction", "boundary_fraction_closed")
        decays = [f"{decay:.4f}" for decay in (float(np.log(eigenvalue)), claims.theory_layer_decay(at))]
        bdry = [predicted(at, name) for name in fractions]
        return [*bdry, f"{eigenvalue:.5f}", *decays, measured(*claims.layer_decay(at))]

    layers = dataset.sizes["layer"]
    header = ["grid", "bdry", "closed form", "lambda", "ln lambda", "mean field", "drawn"]
    title = (
        f"Grids; last columns: decay of B zero / circular per layer, over layers {layers // 2} .. {layers} of one net, "
        "which tends to ln lambda"
    )
    return table(header, rows(dataset, ["grid"], cells), title)


def _energy_table(dataset: xr.Dataset) -> str:
    """At the depths' layers of the deepest nets: both paddings against their mean fields, and the ratios."""

    def cells(at: xr.Dataset) -> list[str]:
        terms = [cell for padding in PADDINGS for cell in against(at.sel(padding=padding), "label_term")]
        limit = number(_quotient(at["label_term_mean_field"]))
        return [*terms, _ratio(at, "label_term"), limit, _ratio(at, "update_energy")]

    by_layer = dataset.drop_dims("depth").sel(layer=dataset["depth"].values)
    theory = ("mean field", "s.e.")
    header = [["grid", "layer"], ["B zero", *theory], ["B circular", *theory], ["B ratio", "mean field", "S ratio"]]
    title = f"Energies in nets of {dataset.sizes['layer']} layers, and ratios zero / circular"
    return table(header, rows(by_layer, ["grid", "layer"], cells), title)


def _quotient(values: xr.DataArray) -> float:
    return float(values.sel(padding="zero") / values.sel(padding="circular"))


def _ratio(at: xr.Dataset, name: str) -> str:
    ratio = _quotient(at[name])
    relative = (at[f"{name}_stderr"] / at[name]).values
    return measured(ratio, ratio * float(np.hypot(*relative)))


def _scale_table(dataset: xr.Dataset) -> str:
    name, depths = claims.LABEL_SCALE, dataset["depth"].values

    def cells(at: xr.Dataset) -> list[str]:
        by_depth = [at.sel(depth=depth) for depth in depths]
        ratios = [(_ratio(at_depth, name), number(_quotient(at_depth[f"{name}_mean_field"]))) for at_depth in by_depth]
        slopes = fitted(claims.ratio_slope(at)), number(claims.theory_ratio_slope(at))
        return [cell for pair in (*ratios, slopes) for cell in pair]

    header = ["grid", *([f"L = {depth}", "mean field"] for depth in depths), ["slope in L", "mean field"]]
    title = (
        "eta* of B, zero / circular, one independent set of nets per depth (Zhang et al. 2026: a constant 1 + O(bdry), "
        "of slope 0)"
    )
    return table(header, rows(dataset, ["grid"], cells), title)


def _far_table(dataset: xr.Dataset) -> str:
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


def _correction_table(dataset: xr.Dataset) -> str:
    """(1 - F zero / circular) / bdry by layer on the largest line, which the paper's remark has constant."""
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"]).isel(sites=-1)
    fraction, lines = value(at, "far_boundary_fraction"), []
    for wanted in SHOWN:
        near = int(np.nanargmin(np.abs(at["far_layer"].values - wanted)))
        lost = 1 - float(at["far_ratio"][near])
        lines.append([f"{at['far_layer'].values[near]:.0f}", number(lost), number(lost / fraction)])
    title = f"1D ReLU, {int(at['sites'])} sites, bdry {number(fraction)}: share of F lost"
    return table(["layer", "1 - ratio", "over bdry"], lines, title)


def _papers_grid(dataset: xr.Dataset) -> str:
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


def _missing_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        torus, reached = float(at["missing_circular"]), float(at["missing_largest"] / at["missing_bound"])
        names = ("set_sites", "set_taps", "missing_worst", "missing_largest", "missing_bound")
        on_torus = MISSING if np.isnan(torus) else f"{torus:.0e}"
        return [*(predicted(at, name) for name in names), number(reached), on_torus]

    header = ["set", "sites", "k", "random f", "constant f", "k bdry", "reached", "on a torus"]
    title = "Zhang et al. 2026, Lemma 3 for |f| <= 1: terms that zero padding misses, and their bound"
    return table(header, rows(dataset, ["set"], cells), title)


text = Report(
    question="Does zero padding leave the depth exponent of eta* as it is under circular padding?",
    answer=_answer,
    heading="ConvNet: {channels} channels, 3 taps an axis, relu, convolutional readout; {draws} draws, seed {seed}\n"
    "B: label term, F: overlap energy, S: update energy; learning rate 1",
    parts=[_grid_table, _energy_table, _scale_table, _far_table, _correction_table, _papers_grid, _missing_table],
    findings=claims.findings,
    heavy=["label_term", "update_energy"],
    words=WORDS,
).text
