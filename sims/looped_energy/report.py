"""The printed report on the residual energy of loops."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from sims.common.report import Report, answer
from sims.common.tables import Column, Table, against, drawn, number, table
from sims.looped_energy.claims import JUDGES, judge_printed_growth

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
    return answer([judge_printed_growth(dataset)], at_end)


def _energy_column(scaling: str) -> Column:
    header = [f"ln H, {EPS[scaling]}", "mean field", "s.e."]
    return Column(header, lambda at: against(at.sel(scaling=scaling), "log_energy"))


def _energy_tables(dataset: xr.Dataset) -> list[str]:
    columns = [*map(_energy_column, EPS)]
    tables = {model: Table("energy table", title, ["loops"], "loops", columns) for model, title in TITLES.items()}
    return [made(dataset.sel(model=model)) for model, made in tables.items()]


def _far_column(model: str, scaling: str) -> Column:
    at_net = {"model": model, "scaling": scaling}
    return Column(f"{model}, {scaling}", lambda at: number(float(at["log_energy_far"].sel(at_net))))


FAR_TABLE = Table(
    "far table",
    "ln H of the mean field, far up",
    ["far_loops"],
    "loops",
    [_far_column(*net) for net in product(TITLES, EPS)],
)


def _far_table(dataset: xr.Dataset) -> str:
    """At every other number of loops."""
    return FAR_TABLE(dataset.isel(far_loops=slice(None, None, 2)))


def _correlations(dataset: xr.Dataset) -> str:
    count, lines = dataset.sizes["increment"], []
    for model, distance in product(TITLES, (1, count // 2, count - 1)):
        at = dataset.sel(model=model)
        both = (at[f"increment_correlation{end}"].values for end in ("", "_mean_field"))
        lines.append([model, str(distance), *(number(np.diagonal(matrix, distance).mean()) for matrix in both)])
    title = f"Correlation of increments at a distance, mean over {count} steps (looped: 1/L, deep: L^(-1/2))"
    return table(["model", "distance", "drawn", "mean field"], lines, title)


def _cross_table(along: str, key: str, where: str, *times: Column) -> Table:
    """The spread of B along one of its sizes; ``times`` another column, in units that make it constant."""
    spread = Column("spread of B", f"{along}_spread")
    return Table("cross tables", f"Cross term B_L of one draw, looped: {where}", [along], key, [spread, *times])


def _in_powers(header: str, along: str, power: float) -> Column:
    return Column(header, lambda at: drawn(at, f"{along}_spread", float(at[along]) ** power))


CROSS_TABLES = [
    _cross_table(
        "cross_width", "width N", "{fixed_loops} loops, eps = 1/L", _in_powers("times sqrt(N)", "cross_width", 0.5)
    ),
    _cross_table("cross_loops", "loops L", "width {fixed_width}, eps = 1/L"),
    _cross_table(
        "cross_eps_loops",
        "eps L",
        "{fixed_loops} loops, width {fixed_width}",
        _in_powers("over eps L", "cross_eps_loops", -1.0),
    ),
]

REPORT = Report(
    question="Does the energy of weight-tied loops under eps = L^(-1/2) grow as L (Wang et al. 2026)?",
    answer=_answer,
    heading="h <- h + eps W phi(h), width {width}, phi {activation}, sigma_W^2 {weight_variance}\n"
    "{draws} draws for each net, seed {seed}",
    parts=[_energy_tables, _far_table, _correlations, *CROSS_TABLES],
    findings=JUDGES.findings,
    words=WORDS,
)
