"""The printed report on looped Transformers: energies before and after training, slopes, split, increments, updates."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import looped_transformers as claims
from sims.common.cells import drawn, fitted, predicted, rows
from sims.common.report import Report, answer
from sims.common.table import number, table

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
}
TITLES = {"looped": "Looped: one block for all loops", "deep": "Deep: weights for every block"}
SCALINGS = ("none", "sqrt", "linear")
ENDS = {0: "before", -1: "after"}
RULES = ("isotropic", "aligned")


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    at_most = dataset["residual_energy"].sel(model="looped").isel(loops=-1, update=-1)
    linear, sqrt = (float(at_most.sel(scaling=name)) for name in ("linear", "sqrt"))
    first = float(dataset["residual_energy"].sel(model="looped", scaling="linear").isel(loops=0, update=-1))
    loops, steps = int(at_most["loops"]), dataset.attrs["steps"]
    slope = claims.energy_slope(dataset, "looped", "sqrt", -1).exponent
    words = f"after {steps} steps H is {linear:.3g} at {loops} loops under 1/L ({first:.3g} at the fewest)"
    return answer([claims.judge_loops_bounded(dataset)], f"{words}; under L^(-1/2) it is {sqrt:.3g}, as L^{slope:.2f}")


def _energy_tables(dataset: xr.Dataset) -> list[str]:
    def cells(at: xr.Dataset) -> list[str]:
        return [drawn(at.sel(scaling=name).isel(update=end), "residual_energy") for name in SCALINGS for end in ENDS]

    header = ["loops", *([f"H, {name}", "after"] for name in SCALINGS)]
    end = f"before training and after {dataset.attrs['steps']} Adam steps"
    return [
        table(header, rows(dataset.sel(model=model), ["loops"], cells), f"{TITLES[model]}, {end}") for model in TITLES
    ]


def _slope_table(dataset: xr.Dataset) -> str:
    lines = [
        [model, scaling, *(fitted(claims.energy_slope(dataset, model, scaling, end)) for end in ENDS)]
        for model, scaling in product(TITLES, SCALINGS)
    ]
    title = f"Slopes of H in L over the last {claims.DEEPER} numbers of loops"
    return table(["model", "eps", "before", "after"], lines, title)


def _split_table(dataset: xr.Dataset) -> str:
    lines = []
    for model, scaling, end in product(TITLES, SCALINGS, ENDS):
        at = claims.energy(dataset, model, scaling, end).isel(loops=-1)
        names = ("initial_energy", "cross_term", "correlation_term")
        lines.append([model, scaling, ENDS[end], *(drawn(at, name) for name in names), predicted(at, "loss")])
    title = f"The split at {int(dataset['loops'][-1])} loops, and the loss"
    return table(["model", "eps", "training", "H_0", "B", "C", "loss"], lines, title)


def _rate_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        return [
            drawn(at.sel(scaling=name, state=end), "energy_by_rate") for name in SCALINGS[1:] for end in ENDS.values()
        ]

    header = ["rate", *([f"H, {name}", "after"] for name in SCALINGS[1:])]
    loops, steps = dataset.attrs["rate_loops"], dataset.attrs["steps"]
    title = f"Looped, {loops} loops: H before and after {steps} steps, by learning rate"
    return table(header, rows(dataset, ["rate"], cells), title)


def _gain_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        last = at.isel(update=-1)
        return [
            drawn(last, "rezero_residual_energy"),
            drawn(last, "rezero_correlation_term"),
            predicted(last, "rezero_loss"),
        ]

    title = f"Looped, ReZero: every branch times a gain that learns from 0, after {dataset.attrs['steps']} steps"
    return table(["loops", "H", "C", "loss"], rows(dataset, ["loops"], cells), title)


def _increments(dataset: xr.Dataset) -> str:
    count, lines = dataset.sizes["increment"], []
    for model, distance in product(TITLES, (1, count // 2, count - 1)):
        by_state = dataset["increment_correlation"].sel(model=model).values
        lines.append([model, str(distance), *(number(np.diagonal(matrix, distance).mean()) for matrix in by_state)])
    title = f"Correlation of increments at a distance, mean over {count} loops (looped: linear, deep: sqrt)"
    return table(["model", "distance", "before", "after"], lines, title)


def _update_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        return [drawn(at.sel(rule=rule, scaling=name), "first_order_change") for rule in RULES for name in SCALINGS[1:]]

    slopes = [fitted(claims.update_slope(dataset, rule, name)) for rule in RULES for name in SCALINGS[1:]]
    lines = [*rows(dataset, ["loops"], cells), ["slope", *slopes]]
    header = ["loops", *([f"{rule}, sqrt", "linear"] for rule in RULES)]
    return table(header, lines, "Looped: |dh_L|^2 / N under one update at learning rate 1, to first order")


def _first_steps(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        first = at.isel(update=1)
        return [
            drawn(first.sel(model=model, scaling=name), "stream_change") for model in TITLES for name in SCALINGS[1:]
        ]

    header = ["loops", *([f"{model}, sqrt", "linear"] for model in TITLES)]
    return table(
        header, rows(dataset, ["loops"], cells), "Change of the stream, |h_L(1) - h_L(0)|^2 / N, by the first Adam step"
    )


text = Report(
    question="Does eps = 1/L keep the residual energy of looped Transformers flat, and does L^(-1/2) let it explode?",
    answer=_answer,
    heading="pre-norm Transformers, causal, rotary, SwiGLU: width {width}, {heads} heads, {tokens} random tokens of "
    "{vocabulary}\n{draws} seeds, seed {seed}; Adam without decay, learning rate {rate}, one sequence a seed",
    parts=[
        _energy_tables,
        _slope_table,
        _split_table,
        _rate_table,
        _gain_table,
        _increments,
        _update_table,
        _first_steps,
    ],
    findings=claims.findings,
    heavy=["residual_energy", "first_order_change"],
    words=WORDS,
).text
