"""The printed report on looped Transformers: energies before and after training, slopes, split, increments, updates."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from sims.common.report import Report, answer
from sims.common.tables import Column, Grid, Table, against, drawn, fitted, number, predicted, rows, table
from sims.looped_transformer.claims import (
    DEEPER,
    JUDGES,
    RULES,
    energy,
    energy_slope,
    judge_loops_bounded,
    update_slope,
)

WORDS = {
    "H": "|h_L|^2 / N, the mean square of the stream before the last normalisation; 1 before the first block.",
    "C": "|h_L - h_0|^2 / N; B: (2 / N) <h_0, h_L - h_0>; H = H_0 + B + C.",
    "looped": "one block, applied L times; deep: L blocks with weights of their own.",
    "none": "eps = 1; sqrt: eps = (2 L)^(-1/2); linear: eps = 1 / (2 L). A loop adds attention and FFN, and eps counts "
    "both; the paper's eps counts loops, which changes constants and no exponent.",
    "isotropic": "an update of random signs over sqrt(fan_in), independent of the weights; aligned: minus the signs of "
    "the true gradient, as Adam's first step has them.",
    "un-normalised": "the loop of equation 1, h <- h + eps W relu(h), of as many additions, at infinite width.",
    "increments": "what one loop adds to the stream.",
    "rivals": "ReZero and DeepNorm, trained on a third as many seeds.",
    "ReZero": "h + g f(norm h), with one gain g for all branches, which learns from 0.",
    "DeepNorm": "post-norm blocks norm(alpha h + f(h)), alpha = (2 L)^(1/4), with smaller initial weights; H = 1 by "
    "construction, and what can move is the direction of h.",
}
TITLES = {"looped": "Looped: one block for all loops", "deep": "Deep: weights for every block"}
STEPS = [
    ("--rate 0.003", "all nets trained at another rate"),
    ("--times 2", "half the variances"),
    ("python -m sims.looped_rates", "the rate tuned over loops"),
]
SCALINGS = ("none", "sqrt", "linear")
# Columns of the comparison with rivals: the model, its scaling, and how the names of its numbers start.
RIVALS = {
    "looped sqrt": ("looped", "sqrt", ""),
    "looped linear": ("looped", "linear", ""),
    "looped ReZero": ("looped", "sqrt", "rezero_"),
    "looped DeepNorm": ("looped", "sqrt", "deepnorm_"),
    "deep sqrt": ("deep", "sqrt", ""),
    "deep linear": ("deep", "linear", ""),
    "deep DeepNorm": ("deep", "sqrt", "deepnorm_"),
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    at_most = dataset["residual_energy"].sel(model="looped").isel(loops=-1, update=-1)
    linear, sqrt = (float(at_most.sel(scaling=name)) for name in ("linear", "sqrt"))
    slope = energy_slope(energy(dataset, "looped", "sqrt", -1)).exponent
    words = f"H at {int(at_most['loops'])} loops is {linear:.3g} under 1/L, {sqrt:.3g} under L^(-1/2), as L^{slope:.2f}"
    return answer([judge_loops_bounded(dataset)], words)


def _before(dataset: xr.Dataset) -> list[Grid]:
    def column(scaling: str) -> Column:
        header = [f"H, {scaling}", "mean field", "s.e."]
        return Column(header, lambda at: against(at.sel(scaling=scaling), "residual_energy"))

    return _by_model(dataset.isel(update=0), "before training", column)


def _after(dataset: xr.Dataset) -> list[Grid]:
    def column(scaling: str) -> Column:
        return Column(f"H, {scaling}", lambda at: drawn(at.sel(scaling=scaling), "residual_energy"))

    return _by_model(dataset.isel(update=-1), "after {steps} Adam steps", column)


def _by_model(at: xr.Dataset, when: str, column: Callable[[str], Column]) -> list[Grid]:
    """A table of either model, with a column for each scaling."""
    columns = [*map(column, SCALINGS)]
    tables = {model: Table(when, f"{title}, {when}", ["loops"], "loops", columns) for model, title in TITLES.items()}
    return [made(at.sel(model=model)) for model, made in tables.items()]


SLOPE_TABLE = Table(
    "slope table",
    f"Slopes of H in L over the last {DEEPER} numbers of loops",
    ["model", "scaling"],
    ["model", "eps"],
    [
        Column("before", lambda at: fitted(energy_slope(at.isel(update=0)))),
        Column("after", lambda at: fitted(energy_slope(at.isel(update=-1)))),
    ],
)
SPLIT_TABLE = Table(
    "split table",
    lambda at: f"The split at {int(at['loops'])} loops, and the loss",
    ["model", "scaling", "update"],
    ["model", "eps", "training"],
    [
        Column("H_0", "initial_energy"),
        Column("B", "cross_term"),
        Column("C", "correlation_term"),
        Column("loss", lambda at: predicted(at, "loss")),
    ],
)


def _split_table(dataset: xr.Dataset) -> Grid:
    return SPLIT_TABLE(dataset.isel(loops=-1, update=[0, -1]).assign_coords(update=["before", "after"]))


def _rate_columns(scaling: str) -> list[Column]:
    """Before training, and after it."""

    def column(header: str, state: str) -> Column:
        return Column(header, lambda at: drawn(at.sel(scaling=scaling, state=state), "energy_by_rate"))

    return [column(f"H, {scaling}", "before"), column("after", "after")]


RATE_TABLE = Table(
    "rate table",
    "Looped, {rate_loops} loops: H before and after {steps} steps, by learning rate",
    ["rate"],
    "rate",
    [*map(_rate_columns, SCALINGS[1:])],
)
GAIN_TABLE = Table(
    "gain table",
    "Looped, ReZero: every branch times a gain that learns from 0, after {steps} steps",
    ["loops"],
    "loops",
    [
        Column("H", lambda at: drawn(at.isel(update=-1), "rezero_residual_energy")),
        Column("C", lambda at: drawn(at.isel(update=-1), "rezero_correlation_term")),
    ],
)


def _increments(dataset: xr.Dataset) -> Grid:
    count, lines = dataset.sizes["increment"], []
    for model, distance in product(TITLES, (1, count // 2, count - 1)):
        by_state = dataset["increment_correlation"].sel(model=model).values
        lines.append([model, str(distance), *(number(np.diagonal(matrix, distance).mean()) for matrix in by_state)])
    title = f"Correlation of increments at a distance, mean over {count} loops (looped: linear, deep: sqrt)"
    return table(["model", "distance", "before", "after"], lines, title)


def _update_table(dataset: xr.Dataset) -> Grid:
    def cells(at: xr.Dataset) -> list[str]:
        return [drawn(at.sel(rule=rule, scaling=name), "first_order_change") for rule in RULES for name in SCALINGS[1:]]

    slopes = [fitted(update_slope(dataset, rule, name)) for rule in RULES for name in SCALINGS[1:]]
    lines = [*rows(dataset, ["loops"], cells), ["slope", *slopes]]
    header = ["loops", *([f"{rule}, sqrt", "linear"] for rule in RULES)]
    return table(header, lines, "Looped: |dh_L|^2 / N under one update at learning rate 1, to first order")


def _rivals(dataset: xr.Dataset) -> list[Grid]:
    def compared(name: str, update: int, title: str) -> Grid:
        def column(header: str) -> Column:
            model, scaling, start = RIVALS[header]
            return Column(header, lambda at: drawn(at.sel(model=model, scaling=scaling), start + name))

        made = Table("rivals", f"Rivals: {title}", ["loops"], "loops", [*map(column, RIVALS)])
        return made(dataset.isel(update=update))

    steps = dataset.attrs["steps"]
    change = "change of the stream, |h_L({t}) - h_L(0)|^2 / N, after Adam step {t}"
    return [
        *(compared("stream_change", update, change.format(t=update)) for update in sorted({1, steps})),
        compared("loss", steps, f"loss after Adam step {steps}"),
    ]


REPORT = Report(
    question="Does eps = 1/L keep the energy of looped Transformers flat, and L^(-1/2) not?",
    answer=_answer,
    heading="pre-norm Transformers, causal, rotary, SwiGLU: width {width}, {heads} heads, {tokens} random tokens of "
    "{vocabulary}\n{draws} seeds ({fewer_draws} of deep nets that no verdict compares), seed {seed}; Adam without "
    "decay, learning rate {rate}, one sequence a seed",
    parts=[
        _before,
        _after,
        SLOPE_TABLE,
        _split_table,
        RATE_TABLE,
        GAIN_TABLE,
        _increments,
        _update_table,
        _rivals,
    ],
    steps=STEPS,
    findings=JUDGES.findings,
    heavy=["residual_energy", "first_order_change"],
    words=WORDS,
)
