"""Residual energy of looped Transformers in their first training steps, against the number of loops.

Pre-norm Transformers of one block, applied L times (looped) or with weights for every block (deep), are trained for a
few Adam steps on one sequence of random tokens, next-token cross-entropy over all of them, under three residual
scalings: the protocol of figure 1 of Wang et al. 2026. H_L, the mean square of the stream before the last
normalisation, is split into H_0 + B + C after every step, beside the correlations of the increments (figure 2) and how
far one update moves the stream to first order (theorem 2). Two rivals train beside: ReZero, whose branches have gains
that start at 0, and post-norm blocks with the constants of DeepNorm.
"""

import argparse
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
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, over, seeded_run
from sims.common.results import Results
from sims.common.study import Study
from sims.looped_transformer.claims import CLAIMS, DEEPER, MORE, NAME, RULES
from sims.looped_transformer.report import REPORT

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
# The scaling of each model under which increments are correlated, in its net of at most so many loops.
HEATMAPS = {"looped": "linear", "deep": "sqrt"}
HEATMAP_LOOPS = 16
INCREMENTS = ("increment", "increment_other")
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
