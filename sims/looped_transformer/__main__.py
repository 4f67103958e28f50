"""Residual energy of looped Transformers in their first training steps, against the number of loops.

Pre-norm Transformers of one block, applied L times (looped) or with weights for every block (deep), are trained for a
few Adam steps on one sequence of random tokens, next-token cross-entropy over all of them, under three residual
scalings: the protocol of figure 1 of Wang et al. 2026. H_L, the mean square of the stream before the last
normalisation, is split into H_0 + B + C after every step, beside the correlations of the increments (figure 2) and how
far one update moves the stream to first order (theorem 2). Two rivals train beside: ReZero, whose branches have gains
that start at 0, and post-norm blocks with the constants of DeepNorm.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, Array, terminable
from meanfield.execution import Run, interrupts_held, one_thread, pool
from meanfield.nets import TiedLoop, Transformer
from meanfield.simulation import StreamUpdates, TrainedResidualEnergies
from meanfield.theory import log_update_energies
from meanfield.verification import Finding
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, over, seeded_run
from sims.common.loops import HEATMAPS, INCREMENTS
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, against, drawn, fitted, number, predicted, rows, table
from sims.looped_transformer.claims import (
    CLAIMS,
    DEEPER,
    JUDGES,
    MORE,
    NAME,
    RULES,
    energy,
    energy_slope,
    judge_loops_bounded,
    update_slope,
)

LISTED = "whether looped Transformers keep their energy as they begin to train"

# What is asked for.

OPTIONS = (
    Option(
        "loops",
        "numbers of loops, three or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(3, "a growth law", maximum=MOST_LAYERS // 2, why="numbers of loops"),
    ),
    Option("width", "channels of a token", int, metavar="N"),
    Option("heads", "heads of attention", int, 4),
    Option("tokens", "tokens of the sequence", int, metavar="T"),
    Option("vocabulary", "tokens that there are", int, metavar="V", check=counted("tokens that there are", minimum=2)),
    Option("steps", "Adam steps", int, 10, group="training"),
    Option("rate", "learning rate of all weights; the paper names none", float, 1e-3, group="training"),
)
LOOPS = [1, 2, 4, 8, 16, 32, 64]
PRESETS = {
    "smoke": Preset("10 s", loops=[1, 4, 8, 16], width=32, tokens=16, vocabulary=32, draws=20),
    "default": Preset("70 s", loops=LOOPS, width=64, tokens=64, vocabulary=64, draws=16),
    "paper": Preset("3 h", loops=LOOPS, width=512, tokens=128, vocabulary=512, draws=20),
}

# What is measured.

SHARED = ("width", "heads", "tokens", "vocabulary")
MODELS = ("looped", "deep")
# eps by its name in the library. One loop makes two additions, of attention and of the FFN, and eps counts additions.
SCALINGS = {"none": "none", "sqrt": "multiplier_sqrt", "linear": "multiplier_linear"}
# What training says of the end of the stream.
ENERGIES = {
    "residual_energy": "residual energy H_L",
    "initial_energy": "initial energy H_0",
    "cross_term": "cross term B_L",
    "correlation_term": "correlation term C_L",
    "stream_change": "change of the end of the stream by training",
    "loss": "loss",
}
# Increments are correlated in nets of at most so many loops.
HEATMAP_LOOPS = 16
# Loops up to which the mean field is followed: its time and memory grow as their square.
MEAN_FIELD_LOOPS = 64
# Rates, over that of all other trainings, under which looped nets of at most so many loops are followed, too.
RATE_FACTORS = (3.0, 30.0)
# The paper's blocks are Llama's: their gated FFN of 8/3 has as many weights as an ungated one of 4.
LLAMA: dict[str, Any] = {
    **{"normalisation": "rms", "causal": True, "rotary": True, "activation": "swiglu", "ffn": 8 / 3},
    **{"readout": "every", "head": "fan_in"},
}

VARIABLES = (
    Variable("stream_change", ENERGIES["stream_change"], "|h_L - h_L(0)|^2 / N"),
    *(Variable(f"rezero_{name}", f"{words} of looped ReZero nets") for name, words in ENERGIES.items()),
    *(
        Variable(f"deepnorm_{name}", f"{ENERGIES[name]} of post-norm nets with the constants of DeepNorm")
        for name in ("residual_energy", "initial_energy", "stream_change", "loss")
    ),
    Variable(
        "increment_correlation",
        "correlation coefficient of what two loops add to the stream",
        source="Wang et al. 2026, figure 2",
    ),
    Variable("energy_by_rate", "residual energy H_L of looped nets by learning rate"),
    Variable("first_order_change", "change of a looped stream under one update", "|dh_L|^2 / N at learning rate 1"),
    Variable("log_toy_correlation_term", "ln C_L of the un-normalised loop, mean field"),
    Variable("log_toy_first_order_change", "ln |dh_L|^2 / N of the un-normalised loop, isotropic updates"),
    Variable("model", "looped, one block for all loops; deep, weights for every block"),
    Variable("rate", "learning rate"),
    Variable("rule", "update of the weights"),
    Variable("update", "updates of training so far"),
    Variable("state", "before training, or after it"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of loops, the looped net of the most, and the measure of its training."""
    training = TrainedResidualEnergies(rate=options.rate, steps=options.steps, precision="float32")
    run = seeded_run(options, _net(options, options.loops[-1], "looped", "none"), training, "")
    run.require_memory(options.workers.here)
    return {"loops": options.loops, "net": run.net, "training": run.measure}


def _net(options: argparse.Namespace, depth: int, model: str, scaling: str) -> Transformer:
    """A Llama-style language model of so many loops, or of as many blocks with weights of their own.

    ``scaling`` is one of `SCALINGS`, or another of the library's by its own name; "deepnorm" is post-norm.
    """
    return Transformer(
        **attributes(options, *SHARED),
        depth=depth,
        tied=model == "looped",
        scaling=SCALINGS.get(scaling, scaling),
        norm="post" if scaling == "deepnorm" else "pre",
        outputs=options.vocabulary,
        **LLAMA,
    )


def measure(
    options: argparse.Namespace,
    results: Results,
    loops: list[int],
    net: Transformer,
    training: TrainedResidualEnergies,
) -> xr.Dataset:
    """Energies by update; correlations before and after training; one update to first order; the toy loop's laws."""
    axes: Axes = {"model": MODELS, "scaling": list(SCALINGS), "loops": loops}
    rates: Axes = {"scaling": ("sqrt", "linear"), "rate": [factor * options.rate for factor in RATE_FACTORS]}
    post_norm: Axes = {"model": MODELS, "loops": loops}
    moves: Axes = {"rule": RULES, "scaling": ("sqrt", "linear"), "loops": loops}

    def run(made: Any, what: Any, *label: Any, draws: int = options.draws) -> Run:
        return seeded_run(options, made, what, " ".join(map(str, label)), draws)

    shown = _shown(loops)
    correlated = {(*at, shown): replace(training, correlations=True) for at in HEATMAPS.items()}
    nets = list(product(*axes.values()))
    draws = {at: _draws(options, loops, at[0], at[2]) for at in nets}
    trained = [run(_net(options, at[2], *at[:2]), correlated.get(at, training), *at, draws=draws[at]) for at in nets]
    few = max(options.draws // 3, 2)  # no verdict rests on the rivals
    gated = [run(_net(options, depth, "looped", "rezero"), training, "rezero", depth, draws=few) for depth in loops]
    deepnorm = [
        run(_net(options, depth, model, "deepnorm"), training, "deepnorm", model, depth, draws=few)
        for model, depth in product(*post_norm.values())
    ]
    hastened = [
        run(_net(options, shown, "looped", scaling), replace(training, rate=rate), "rate", scaling, rate)
        for scaling, rate in product(*rates.values())
    ]
    streams = [(rule, scaling, _stream(options, depth, scaling)) for rule, scaling, depth in product(*moves.values())]
    moved = [
        run(stream, StreamUpdates(update=rule), rule, scaling, len(stream.units), draws=times * options.draws)
        for rule, scaling, stream in streams
        for times in [MORE.get((rule, scaling), 1)]
    ]
    drawn = iter(results.draw([*trained, *gated, *deepnorm, *hastened, *moved]))
    by_net = {at: next(drawn) for at in nets}
    parts = [
        over(axes, [_energies(measured) for measured in by_net.values()], "update"),
        over(axes, _mean_fields(options, nets)),
        over({"model": MODELS}, [_correlations(by_net[at]) for at in correlated], "state", *INCREMENTS),
        over({"loops": loops}, [_energies(next(drawn), "rezero_") for _ in gated], "update"),
        over(post_norm, [_energies(next(drawn), "deepnorm_") for _ in deepnorm], "update"),
        over(rates, [_by_rate(next(drawn)) for _ in hastened], "state").reindex(scaling=axes["scaling"]),
        over(moves, [_last_change(next(drawn)) for _ in moved]).reindex(scaling=axes["scaling"]),
        over({"loops": loops}, [_toy(options, depth) for depth in loops]),
    ]
    coords = {"update": range(options.steps + 1), "state": ["before", "after"]}
    attrs = attributes(options, *SHARED, "steps", "rate")
    attrs |= {"rate_loops": shown, "fewer_draws": min(draws.values())}
    return xr.merge(parts).assign_coords(coords).assign_attrs(attrs)


def _shown(loops: list[int]) -> int:
    """Of the net whose heatmaps are shown, and that is followed at other rates."""
    return max((depth for depth in loops if depth <= HEATMAP_LOOPS), default=loops[0])


def _draws(options: argparse.Namespace, loops: list[int], model: str, depth: int) -> int:
    """All of them, or fewer of deep nets between those that judges compare and whose heatmaps are shown."""
    compared = {loops[0], _shown(loops), *loops[-DEEPER :: DEEPER - 1]}
    return int(options.draws if model == "looped" or depth in compared else max(5 * options.draws // 8, 2))


def _stream(options: argparse.Namespace, depth: int, scaling: str) -> mf.Chain:
    """The blocks of a looped net alone, from embedded tokens on."""
    embedded = replace(_net(options, depth, "looped", scaling), vocabulary=None)
    return mf.Chain.of(embedded, readout_unit=None)


def _energies(measured: xr.Dataset, start: str = "") -> dict[str, Array]:
    """What training says of the end of the stream, after every update, under names with this start."""
    at_end = measured.isel(step=-1)
    given = [name for name in ENERGIES if f"trained_{name}" in at_end]
    return {start + name + end: at_end[f"trained_{name}{end}"].values for name, end in product(given, ENDS)}


def _correlations(measured: xr.Dataset) -> dict[str, Array]:
    """Correlation coefficients of the increments of whole loops, before and after training: (2, L, L)."""
    name = "increment_correlation"
    overlaps = measured[f"trained_{name}"].isel(update=[0, -1]).values
    loops = overlaps.shape[1] // 2  # a loop adds attention and FFN
    by_loop = overlaps.reshape(2, loops, 2, loops, 2).sum(axis=(2, 4))
    sizes = np.sqrt(np.einsum("aii->ai", by_loop))
    return {name: by_loop / (sizes[:, :, None] * sizes[:, None, :])}


def _mean_fields(options: argparse.Namespace, nets: list[tuple[str, str, int]]) -> list[dict[str, float]]:
    """`_mean_field` of every net, by as many processes of this machine as draws have: one net takes seconds."""
    made = [
        replace(_net(options, depth, model, scaling), vocabulary=None, readout="last") for model, scaling, depth in nets
    ]
    if options.workers.here == 1:
        return list(map(_mean_field, made))
    with terminable(), pool(options.workers.here, one_thread) as executor:
        with interrupts_held():
            longest_first = {net: executor.submit(_mean_field, net) for net in sorted(made, key=lambda net: -net.depth)}
        return [longest_first[net].result() for net in made]


def _mean_field(net: Transformer) -> dict[str, float]:
    """H_L before training at infinite width, of white tokens; NaN beyond `MEAN_FIELD_LOOPS`."""
    energy = float("nan")
    if net.depth <= MEAN_FIELD_LOOPS:
        energy = float(mf.predict(net, level="mean_field")["residual_energy"][-1])
    return {"residual_energy_mean_field": energy}


def _by_rate(measured: xr.Dataset) -> dict[str, Array]:
    """H_L before training and after it."""
    at_ends = measured.isel(step=-1, update=[0, -1])
    return {f"energy_by_rate{end}": at_ends[f"trained_residual_energy{end}"].values for end in ENDS}


def _last_change(measured: xr.Dataset) -> dict[str, float]:
    """|dh_L|^2 / N."""
    return {f"first_order_change{end}": float(measured[f"stream_update_energy{end}"][-1]) for end in ENDS}


def _toy(options: argparse.Namespace, depth: int) -> dict[str, float]:
    """ln C_L and ln |dh_L|^2 / N of the un-normalised loop of equation 1, of as many additions, at alpha = 1/2."""
    loop = TiedLoop(depth=2 * depth, width=options.width, alpha="sqrt")
    theory = mf.predict(loop, level="mean_field").isel(step=-1)
    return {
        "log_toy_correlation_term": float(theory["log_correlation_term"]),
        "log_toy_first_order_change": float(log_update_energies(loop)[-1]),
    }


# What is printed.

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
SCALED = list(SCALINGS)[1:]
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
    [*map(_rate_columns, SCALED)],
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
        return [drawn(at.sel(rule=rule, scaling=name), "first_order_change") for rule in RULES for name in SCALED]

    slopes = [fitted(update_slope(dataset, rule, name)) for rule in RULES for name in SCALED]
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


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command("looped_transformer")
