"""The printed report on the residual energy of loops."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import loop_growth as claims
from sims.common.report import Report, answer
from sims.common.tables import against, drawn, number, predicted, rows, table

WORDS = {
    "ln H": "logarithm of |h_L|^2 / N, 0 at the start.",
    "none": "eps = 1; sqrt: eps = L^(-1/2); linear: eps = 1/L.",
    "spread of B": "standard deviation over draws of the cross term B_L = 2 <h_0, h_L - h_0> / N, the part of "
    "H_L - H_0 that is linear in the change of the stream.",
}
TITLES = {"looped": "Looped: one matrix for all steps", "deep": "Deep: a matrix for every step"}
EPS = {"none": "eps = 1", "sqrt": "eps = L^(-1/2)", "linear": "eps = 1/L"}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    last = dataset["log_energy"].sel(model="looped").isel(loops=-1)
    grown, bounded = (float(last.sel(scaling=name)) for name in ("sqrt", "linear"))
    at_end = f"after {int(last['loops'])} steps ln(H_L / H_0) = {grown:.3g}; under 1/L it is {bounded:.3g}"
    return answer([claims.judge_printed_growth(dataset)], at_end)


def _energy_tables(dataset: xr.Dataset) -> list[str]:
    def cells(at: xr.Dataset) -> list[str]:
        return [cell for scaling in EPS for cell in against(at.sel(scaling=scaling), "log_energy")]

    header = ["loops", *([f"ln H, {eps}", "mean field", "s.e."] for eps in EPS.values())]
    return [table(header, rows(dataset.sel(model=model), ["loops"], cells), TITLES[model]) for model in TITLES]


def _far_table(dataset: xr.Dataset) -> str:
    nets = list(product(TITLES, EPS))

    def cells(at: xr.Dataset) -> list[str]:
        return [predicted(at.sel(model=model, scaling=scaling), "log_energy_far") for model, scaling in nets]

    header = ["loops", *(f"{model}, {scaling}" for model, scaling in nets)]
    every_other = dataset.isel(far_loops=slice(None, None, 2))
    return table(header, rows(every_other, ["far_loops"], cells), "ln H of the mean field, far up")


def _correlations(dataset: xr.Dataset) -> str:
    count, lines = dataset.sizes["increment"], []
    for model, distance in product(TITLES, (1, count // 2, count - 1)):
        at = dataset.sel(model=model)
        both = (at[f"increment_correlation{end}"].values for end in ("", "_mean_field"))
        lines.append([model, str(distance), *(number(np.diagonal(matrix, distance).mean()) for matrix in both)])
    title = f"Correlation of increments at a distance, mean over {count} steps (looped: 1/L, deep: L^(-1/2))"
    return table(["model", "distance", "drawn", "mean field"], lines, title)


def _cross_tables(dataset: xr.Dataset) -> list[str]:
    where = "width {fixed_width}".format_map(dataset.attrs)
    loops = "{fixed_loops} loops".format_map(dataset.attrs)
    titles = {
        "cross_width": (["width N", "spread of B", "times sqrt(N)"], f"{loops}, eps = 1/L", 0.5),
        "cross_loops": (["loops L", "spread of B"], f"{where}, eps = 1/L", None),
        "cross_eps_loops": (["eps L", "spread of B", "over eps L"], f"{loops}, {where}", -1.0),
    }

    def lines(along: str, power: float | None) -> list[list[str]]:
        def cells(at: xr.Dataset) -> list[str]:
            factors = [1.0] if power is None else [1.0, float(at[along]) ** power]
            return [drawn(at, f"{along}_spread", factor) for factor in factors]

        return rows(dataset, [along], cells)

    return [
        table(header, lines(along, power), f"Cross term B_L of one draw, looped: {title}")
        for along, (header, title, power) in titles.items()
    ]


text = Report(
    question="Does the energy of weight-tied loops under eps = L^(-1/2) grow as L (Wang et al. 2026)?",
    answer=_answer,
    heading="h <- h + eps W phi(h), width {width}, phi {activation}, sigma_W^2 {weight_variance}\n"
    "{draws} draws for each net, seed {seed}",
    parts=[_energy_tables, _far_table, _correlations, _cross_tables],
    findings=claims.findings,
    words=WORDS,
).text
