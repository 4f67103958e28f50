"""The printed report on one update of a loop's weights."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import loop_updates as claims
from sims.common.report import Report, answer
from sims.common.tables import against, drawn, fitted, number, rows, table

WORDS = {
    "isotropic": "an update of random signs, independent of the weights.",
    "aligned": "the signs of the true gradient.",
    "gradient": "the gradient itself.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    alphas = [float(alpha) for alpha in dataset["alpha"].values]
    exponents = {alpha: claims.drawn_slope(dataset, "isotropic", alpha).exponent for alpha in alphas}
    slopes = ", ".join(f"{exponent:.2f} (alpha = {alpha:g})" for alpha, exponent in exponents.items())
    judged = [claims.judge_theorem(dataset), claims.judge_below_threshold(dataset)]
    return answer(judged, f"slopes in L {slopes}")


def _updates(dataset: xr.Dataset) -> list[str]:
    return list(map(str, dataset["update"].values))


def _energy_table(dataset: xr.Dataset) -> str:
    first, *further_updates = _updates(dataset)
    theory = dataset.assign(update_energy_mean_field=np.exp(dataset["log_update_energy_mean_field"]))

    def cells(at: xr.Dataset) -> list[str]:
        by_update = [drawn(at.sel(update=update), "update_energy") for update in further_updates]
        return [*against(at.sel(update=first), "update_energy"), *by_update]

    header = [["alpha", "loops"], [first, "mean field", "s.e."], *further_updates]
    return table(header, rows(theory, ["alpha", "loops"], cells), "|dh_L|^2 / N by update, alpha and loops")


def _slope_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        alpha = float(at["alpha"])
        slopes = [fitted(claims.drawn_slope(dataset, update, alpha)) for update in _updates(dataset)]
        theory = number(claims.theory_slope(dataset, alpha))
        return [slopes[0], theory, *slopes[1:], f"{claims.printed_exponent(alpha):+g}"]

    first, *further_updates = _updates(dataset)
    header = ["alpha", [first, "mean field"], *further_updates, "(eps L)^2"]
    title = "Slopes of |dh_L|^2 in L (the eta of a fixed change has minus half the slope)"
    return table(header, rows(dataset, ["alpha"], cells), title)


def _width_table(dataset: xr.Dataset) -> str:
    widths = dataset["width"].values

    def cells(at: xr.Dataset) -> list[str]:
        law = claims.width_slope(dataset, str(at["update"].values))
        return [*(drawn(at.sel(width=width), "by_width") for width in widths), fitted(law)]

    header = ["update", *(f"N = {width}" for width in widths), "slope in N"]
    title = f"By width, alpha = 1, {dataset.attrs['width_loops']} loops"
    return table(header, rows(dataset, ["update"], cells), title)


text = Report(
    question="Does one update move a loop's stream by (eta eps L)^2, so that eta ~ L^(alpha - 1)?",
    answer=_answer,
    heading="h <- h + eps W phi(h), one W, eps = L^-alpha, width {ladder_width}, "
    "{activation}, sigma_W^2 {weight_variance}\n"
    "{draws} draws, seed {seed}; |dh_L|^2 / N at learning rate 1, to first order: quadratic in it",
    parts=[_energy_table, _slope_table, _width_table],
    findings=claims.findings,
    heavy=["update_energy"],
    words=WORDS,
).text
