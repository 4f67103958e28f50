"""The printed report on one update of a loop's weights."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import loop_updates
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

QUESTION = "Does one update move a loop's stream by (eta eps L)^2, so that eta ~ L^(alpha - 1)?"


def text(dataset: xr.Dataset) -> str:
    """Energies by update, alpha and loops, slopes beside the theorem's, widths, verdicts."""
    notes = heavy_tail_notes(dataset, ["update_energy"])
    parts = [_heading(dataset), _energy_table(dataset), _slope_table(dataset), _width_table(dataset), *notes]
    return report(QUESTION, _answer(dataset), parts, loop_updates.findings(dataset))


def _answer(dataset: xr.Dataset) -> str:
    alphas = [float(alpha) for alpha in dataset["alpha"].values]
    exponents = (loop_updates.drawn_slope(dataset, "isotropic", alpha).exponent for alpha in alphas)
    slopes = ", ".join(f"{found:.2f} (alpha = {alpha:g})" for found, alpha in zip(exponents, alphas, strict=True))
    judged = [loop_updates.judge_stable(dataset, "isotropic"), loop_updates.judge_below_threshold(dataset)]
    return answer(judged, f"slopes in L {slopes}")


def _heading(dataset: xr.Dataset) -> str:
    spec = (
        "h <- h + eps W phi(h), one W, eps = L^-alpha, width {ladder_width}, {activation}, sigma_W^2 {weight_variance}"
    )
    run = "{draws} draws, seed {seed}; |dh_L|^2 / N at learning rate 1, to first order: quadratic in it"
    return f"{spec}\n{run}".format_map(dataset.attrs)


def _energy_table(dataset: xr.Dataset) -> str:
    rows = []
    for alpha in dataset["alpha"].values:
        for loops in dataset["loops"].values:
            at = dataset.sel(alpha=alpha, loops=loops)
            cells = [
                measured(float(one["update_energy"]), float(one["update_energy_stderr"]))
                for one in (at.sel(update=update) for update in dataset["update"].values)
            ]
            theory, isotropic = float(np.exp(at["log_update_energy_mean_field"])), at.sel(update="isotropic")
            score = (float(isotropic["update_energy"]) - theory) / float(isotropic["update_energy_stderr"])
            rows.append([f"{alpha:g}", str(loops), cells[0], number(theory), signed(score), *cells[1:]])
    first, *others = map(str, dataset["update"].values)
    return table([["alpha", "loops"], [first, "mean field", "s.e."], *others], rows)


def _slope_table(dataset: xr.Dataset) -> str:
    rows = []
    for alpha in map(float, dataset["alpha"].values):
        laws = [loop_updates.drawn_slope(dataset, str(update), alpha) for update in dataset["update"].values]
        theory = number(loop_updates.theory_slope(dataset, alpha))
        printed = f"{loop_updates.printed_exponent(alpha):+g}"
        cells = [measured(law.exponent, law.stderr) for law in laws]
        rows.append([f"{alpha:g}", cells[0], theory, *cells[1:], printed])
    first, *others = map(str, dataset["update"].values)
    header = ["alpha", [first, "mean field"], *others, "(eps L)^2"]
    return table(header, rows, "Slopes of |dh_L|^2 in L (eta for a fixed change: minus half of it)")


def _width_table(dataset: xr.Dataset) -> str:
    rows = []
    for update in dataset["update"].values:
        at, law = dataset.sel(update=update), loop_updates.width_slope(dataset, str(update))
        pairs = zip(at["by_width"].values, at["by_width_stderr"].values, strict=True)
        rows.append([str(update), *(measured(*map(float, pair)) for pair in pairs), measured(law.exponent, law.stderr)])
    header = ["update", *(f"N = {width}" for width in dataset["width"].values), "slope in N"]
    return table(header, rows, f"By width, alpha = 1, {dataset.attrs['width_loops']} loops")
