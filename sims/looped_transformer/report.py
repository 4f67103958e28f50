"""The printed report on looped Transformers: energies before and after training, slopes, split, increments, updates."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import looped_transformers as claims
from sims.common.report import Report, answer
from sims.common.tables import against, drawn, fitted, number, predicted, rows, table

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
NEXT = (
    "Next: --rate 0.003 trains all nets at another rate, --times 2 halves variances, and python -m sims.looped_rates "
    "tunes the rate over loops."
)
SCALINGS = ("none", "sqrt", "linear")
ENDS = {0: "before", -1: "after"}
RULES = ("isotropic", "aligned")
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
    slope = claims.energy_slope(dataset, "looped", "sqrt", -1).exponent
    words = f"H at {int(at_most['loops'])} loops is {linear:.3g} under 1/L, {sqrt:.3g} under L^(-1/2), as L^{slope:.2f}"
    return answer([claims.judge_loops_bounded(dataset)], words)


def _before(dataset: xr.Dataset) -> list[str]:
    def cells(at: xr.Dataset) -> list[str]:
        return [cell for name in SCALINGS for cell in against(at.sel(scaling=name), "residual_energy")]

    header = ["loops", *([f"H, {name}", "mean field", "s.e."] for name in SCALINGS)]
    begun = dataset.isel(update=0)
    return [_by_loops(begun.sel(model=model), header, cells, f"{TITLES[model]}, before training") for model in TITLES]


def _after(dataset: xr.Dataset) -> list[str]:
    def cells(at: xr.Dataset) -> list[str]:
        return [drawn(at.sel(scaling=name), "residual_energy") for name in SCALINGS]

    header, end = ["loops", *(f"H, {name}" for name in SCALINGS)], f"after {dataset.attrs['steps']} Adam steps"
    trained = dataset.isel(update=-1)
    return [_by_loops(trained.sel(model=model), header, cells, f"{TITLES[model]}, {end}") for model in TITLES]


def _by_loops(
    at: xr.Dataset, header: Sequence[str | Sequence[str]], cells: Callable[[xr.Dataset], list[str]], title: str
) -> str:
    return table(header, rows(at, ["loops"], cells), title)


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
        return [drawn(last, "rezero_residual_energy"), drawn(last, "rezero_correlation_term")]

    title = f"Looped, ReZero: every branch times a gain that learns from 0, after {dataset.attrs['steps']} steps"
    return table(["loops", "H", "C"], rows(dataset, ["loops"], cells), title)


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


def _rivals(dataset: xr.Dataset) -> list[str]:
    def compared(name: str, update: int, title: str) -> str:
        def cells(at: xr.Dataset) -> list[str]:
            last = at.isel(update=update)
            return [
                drawn(last.sel(model=model, scaling=scaling), start + name) for model, scaling, start in RIVALS.values()
            ]

        return _by_loops(dataset, ["loops", *RIVALS], cells, f"Rivals: {title}")

    steps = dataset.attrs["steps"]
    change = "change of the stream, |h_L({t}) - h_L(0)|^2 / N, after Adam step {t}"
    return [
        *(compared("stream_change", update, change.format(t=update)) for update in sorted({1, steps})),
        compared("loss", steps, f"loss after Adam step {steps}"),
    ]


text = Report(
    question="Does eps = 1/L keep the energy of looped Transformers flat, and L^(-1/2) not?",
    answer=_answer,
    heading="pre-norm Transformers, causal, rotary, SwiGLU: width {width}, {heads} heads, {tokens} random tokens of "
    "{vocabulary}\n{draws} seeds ({fewer_draws} of deep nets that no verdict compares), seed {seed}; Adam without "
    "decay, learning rate {rate}, one sequence a seed",
    parts=[
        _before,
        _after,
        _slope_table,
        _split_table,
        _rate_table,
        _gain_table,
        _increments,
        _update_table,
        _rivals,
        NEXT,
    ],
    findings=claims.findings,
    heavy=["residual_energy", "first_order_change"],
    words=WORDS,
).text
