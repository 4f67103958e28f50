"""The learning rate that trains best, over depth: does it follow the one-step scale eta*(L)?

For every family and depth, nets are trained on real data under many learning rates from several seeds, and the rate
that minimises the training loss is searched for (Zhang et al. 2026, section 4.1). Its slope in depth stands beside that
of the one-step theory over the same depths, the papers' slopes, 2 / lambda_max of the loss's curvature at
initialisation, and the scales of one step of the optimizer that trains, on the data, the loss and the batches of
training. The last two are rates in absolute terms, with nothing tuned.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, product
from math import nan
from typing import Any

import numpy as np
import xarray as xr

from meanfield import Chain
from meanfield.common import Array, require_choice
from meanfield.execution import Run, scales_run, simulate_all
from meanfield.nets import Net, ResidualConvNet
from meanfield.optimizers import IN_NOISE
from meanfield.simulation import WITH_STABLE_RATE
from meanfield.theory import scales_at
from meanfield.transfer import CURVATURE_DRAWS, RangeTest, Tuning, tune_all
from meanfield.verification import Finding, span, tuned_rates
from sims.common import images
from sims.common.command import TRAINED_ON, Option, Preset, counted, ladder_of
from sims.common.datasets import Variable, attributes, over
from sims.common.report import Report, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Table, fitted, number, signed
from sims.common.training_data import (
    FAMILIES,
    OF_CHANNELS,
    TRANSFORMER,
    InputsAndTargets,
    shared_training_data,
    trained_net,
)
from sims.common.tuned_nets import (
    DATA_OPTIONS,
    MOVED,
    OF,
    RESIDUAL,
    SPACING,
    STEP_DRAWS,
    WIDER,
    decades,
    mean_scale,
    median_scales,
    own_seeds,
    times_as_wide,
)
from sims.learning_rate_search import claims, conclusions, first_steps, named_rates, over_widths, printed_tables
from sims.learning_rate_search.claims import CLAIMS, NAME

LISTED = "whether the rate that trains best follows the one-step scale"

# What is asked for.


def _each_once(written: str, given: Sequence[str]) -> list[str]:
    """The families that are asked for by their own names or together."""
    for asked in given:
        kind = tuned_rates.FamilyName.of(asked).kind
        require_choice(written, kind, [*FAMILIES, *first_steps.TOGETHER])
        if kind in first_steps.TOGETHER and asked not in first_steps.TOGETHER:
            member = first_steps.TOGETHER[kind][0]
            raise ValueError(
                f"{written} is {asked!r}; {kind!r} are several, taken as they are: name each, as {member!r}"
            )
    return list(dict.fromkeys(name for asked in given for name in first_steps.TOGETHER.get(asked, (asked,))))


NETS, TRAINING = "nets", "training"
OPTIONS = (
    Option(
        "families",
        "families of nets (quote names of several words), of --data, or each 'FAMILY on SOURCE'; 'FAMILY xM' are M "
        "times as wide; several at once are "
        f"{', '.join(map(repr, first_steps.TOGETHER))}",
        metavar="NAME",
        many="+",
        check=_each_once,
        group=NETS,
    ),
    Option(
        "depths",
        "layers, blocks, steps, or twice the blocks of Transformers",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a slope", why="layers, blocks or steps of the nets"),
        group=NETS,
    ),
    Option("channels", "channels of convolutional nets and of Transformers", int, metavar="C", group=NETS),
    Option("width", "units of fully-connected nets and of loops", int, metavar="N", group=NETS),
    replace(WIDER, group=NETS),
    *DATA_OPTIONS,
    Option("batch_size", "samples of a mini-batch", int, 16, metavar="B", check=counted("samples"), group=TRAINING),
    Option("epochs", "passes over the data", int, check=counted("passes over the data"), group=TRAINING),
    Option(
        "optimizer",
        "sgd (default, without momentum) or another name that meanfield.train takes",
        default="sgd",
        group=TRAINING,
    ),
    Option(
        "schedule",
        "constant (default) or warmup_cosine, of which a rate is the peak",
        default="constant",
        group=TRAINING,
    ),
    SPACING,
    Option(
        "grid",
        "train under N rates from 10^-4 to 10 instead of searching (papers: 80)",
        int,
        metavar="N",
        group=TRAINING,
    ),
    Option(
        "curvature_draws",
        f"nets of which the stable rate is the median (default: {CURVATURE_DRAWS})",
        int,
        CURVATURE_DRAWS,
        metavar="N",
        check=counted("one net has no standard error", minimum=2),
    ),
    TRAINED_ON,
)
OTHERS = ["transformer pre", "transformer post", "loop linear", "loop sqrt"]
ABLATIONS = [
    "cnn zero",
    "cnn gelu",
    "cnn 4x4",
    "cnn 5x5",
    "residual cnn init",
    "residual cnn multiplier",
    "residual cnn k=2",
]
ALL = ["mlp", "cnn", *RESIDUAL, *OTHERS]
# Nets that learn in 896 steps of batches of 16 on 1,792 samples.
CONNECTED = ["mlp", *RESIDUAL, "residual mlp k=3", "loop linear", "loop sqrt"]
CONVOLUTIONAL = [
    "cnn on mnist",
    "residual cnn init on mnist",
    "residual cnn multiplier on mnist",
    "residual cnn init batch norm on mnist",
]
UNTIL_THEY_LEARN: dict[str, Any] = {
    "depths": [2, 4, 8, 16],
    "channels": 16,
    "width": 64,
    "draws": 12,
    "samples": 1792,
    "epochs": 8,
}
PRESETS = {
    "smoke": Preset("15 s", families=ALL, depths=[2, 4], channels=4, width=16, draws=2, samples=96, epochs=1),
    "default": Preset("3 min", "the fully-connected nets of evidence", families=CONNECTED, **UNTIL_THEY_LEARN),
    "evidence": Preset(
        "60 min",
        "convolutional nets, too: under descent rates of residual nets went with the depth as one step says, those of "
        "loops did not; more in docs/findings.md",
        families=[*CONNECTED, *CONVOLUTIONAL],
        **UNTIL_THEY_LEARN,
    ),
    "paper": Preset(
        "20 h",
        "one epoch, as the papers train, after which small nets hardly learn",
        families=[*ALL, *ABLATIONS],
        depths=[2, 4, 6, 8, 12, 16, 24, 32],
        channels=32,
        width=128,
        draws=32,
        samples=1792,
        epochs=1,
    ),
}

# What is measured.

# What every seed has of its own.
SEEDS = ("seed_tuned_rate_log10", "seed_tuned_rate_log10_stderr")
# The learning-rate finder that nets are put to, and so many tests, of a hundred steps each, for each net that is tuned.
FINDER, TESTS = RangeTest(), 4
# Optimizers with a stable rate that is not that of descent.
OWN_STABLE_RATES = set(WITH_STABLE_RATE) - {"sgd"}
# One step of whose optimizer a scale is of.
STEPS = {
    "": "one step of the optimizer that trains",
    "descent_": "one step of gradient descent",
    tuned_rates.NOISE: "one step of the optimizer that trains, with AdamW's as long as in noise,",
}

VARIABLES = (
    Variable("complete", "whether the search of every seed has ended"),
    Variable("located", "seeds that have a minimum"),
    Variable("one_step_scale", "label term's eta*, mean field, of white inputs and labels", "of loops, of the stream"),
    *(
        Variable(
            f"{whose}{of}_scale",
            f"rate at which {step} moves {moved} by 1",
            "median over drawn nets, on the data, loss and batches of training",
        )
        for (whose, step), (of, moved) in product(STEPS.items(), MOVED.items())
    ),
    Variable("absolute_mean_scale", f"rate at which {STEPS['']} moves the layers by 1", "mean over drawn nets"),
    *(
        Variable(
            f"seed_{name}_rate",
            f"rate that a range test suggests: {which} smoothed loss",
            "of every range test; NaN where the loss does not fall",
        )
        for name, which in named_rates.SUGGESTIONS.items()
    ),
    Variable(
        named_rates.OWN_STABLE,
        "largest stable rate of the optimizer that trains",
        "median over drawn nets, at initialisation; where it is not descent and a limit is known",
    ),
    Variable("chance_loss", "loss where all classes have the same probability"),
    Variable("printed_slope", "slope of tuned rates in depth that is printed", source="Zhang et al. 2026, tables 1, 3"),
    Variable("family", "family of nets"),
    Variable("rate", "learning rate"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned, family by family through all depths."""
    places = list(product(options.families, options.depths))
    nets = [_net(options, *place) for place in places]
    data: dict[int, InputsAndTargets] = {}
    for source in dict.fromkeys(_source(options, family) for family in options.families):
        of_source = [place for place, (family, _) in enumerate(places) if _source(options, family) == source]
        how: dict[str, Any] = {"samples": options.samples, "seed": options.seed}
        data |= zip(of_source, shared_training_data(source, [nets[at] for at in of_source], **how), strict=True)
    tunings = [_tuning(options, *place, nets[at], data[at]) for at, place in enumerate(places)]
    return {"tunings": tunings, "depths": options.depths}


def _source(options: argparse.Namespace, family: str) -> str:
    """The data of a family: those that its name ends with, or those of the run."""
    return tuned_rates.FamilyName.of(family).data or str(options.data)


def _sizes(options: argparse.Namespace) -> dict[str, int]:
    """Channels and width as they are run."""
    wider = options.wider
    written = f"--wider {wider:g}"
    return {name: times_as_wide(written, wider, name, getattr(options, name)) for name in ("channels", "width")}


def _net(options: argparse.Namespace, family: str, depth: int) -> Net:
    name, of = tuned_rates.FamilyName.of(family), "channels" if family.startswith(OF_CHANNELS) else "width"
    width = times_as_wide(f"--families {family!r}", name.times, of, _sizes(options)[of])
    return trained_net(name.kind, _blocks(family, [depth])[0], width, _source(options, family), options.sides)


def _tuning(options: argparse.Namespace, family: str, depth: int, net: Net, data: InputsAndTargets) -> Tuning:
    """With seeds that no other family or depth has, so that errors of different depths are independent."""
    names = ("epochs", "batch_size", "optimizer", "schedule", "backend")
    training = {name: getattr(options, name) for name in names}
    return Tuning(
        net=net,
        data=data,
        training=training | {"precision": "float32"},
        seeds=own_seeds(options.seed, f"{family} {depth}", options.draws),
        spacing=options.spacing,
        grid=options.grid,
        curvature_draws=options.curvature_draws,
    )


def _blocks(family: str, depths: Sequence[int]) -> list[int]:
    """What nets of these depths are made of: layers, blocks, steps; a block of a Transformer counts as two."""
    if not family.startswith(TRANSFORMER):
        return list(depths)
    if odd := [depth for depth in depths if depth % 2]:
        raise ValueError(f"--depths has {odd[0]}; a block of a Transformer is two units deep, so give even depths")
    return [depth // 2 for depth in depths]


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], depths: list[int]) -> xr.Dataset:
    """Minima and losses over (family, depth, draw), stable rates, one-step scales, slopes that papers print."""
    tuned = tune_all(tunings, workers=options.workers, store=results.pieces)
    rates = sorted(set(np.concatenate([of_net["rate"].values for of_net in tuned])))
    axes = {"family": options.families, "depth": depths}
    parts = [
        over(axes, _step_scales(options, results, tunings)),
        over(axes, [_row(of_net, rates) for of_net in tuned], "rate", "draw").assign_coords(rate=rates),
        over(axes, [{name: of_net[name].values for name in SEEDS} for of_net in tuned], "draw"),
        over(axes, _range_tests(options, results, tunings), "test"),
        over(axes, [{"one_step_scale": scale} for scale in _one_step(tunings, options.families, depths)]),
        over({"family": options.families}, [_of_family(options, family) for family in options.families]),
    ]
    if options.optimizer in OWN_STABLE_RATES:
        own = [tuning.own_curvature() for tuning in tunings]
        parts.append(over(axes, _own_stable_rates(simulate_all(own, workers=options.workers, store=results.pieces))))
    described = attributes(
        options,
        *("data", "sides", "samples", "batch_size", "epochs", "optimizer", "schedule", "channels", "width", "spacing"),
        "curvature_draws",
    )
    described |= _sizes(options)
    places = map("{0[0]} {0[1]}".format, product(options.families, depths))
    reasons = {place: of_net.attrs["without_minimum"] for place, of_net in zip(places, tuned, strict=True)}
    said = {"without_minimum": json.dumps({place: reason for place, reason in reasons.items() if reason})}
    return xr.merge(parts).assign_attrs(described | said)


def _row(of_net: xr.Dataset, rates: Sequence[float]) -> dict[str, Any]:
    """One net: losses at all rates of the run, NaN where it was not trained; its tuned and its stable rate."""
    row: dict[str, Any] = {"final_loss": of_net["final_loss"].reindex(rate=rates).values}
    row |= {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    stable = of_net.sel(quantile=0.5)
    ends = ("", "_stderr")
    row |= {f"stable_rate{end}": float(stable[f"stable_rate_quantile{end}"]) for end in ends}
    return row | {name: of_net.attrs[name] for name in ("complete", "located")}


def _own_stable_rates(drawn: Iterable[xr.Dataset]) -> list[dict[str, float]]:
    """Medians over drawn nets of the stable rate of the optimizer that trains, with their errors."""
    typical = [of_net.sel(quantile=0.5) for of_net in drawn]
    return [
        {f"{named_rates.OWN_STABLE}{end}": float(of_net[f"stable_rate_quantile{end}"]) for end in ("", "_stderr")}
        for of_net in typical
    ]


def _step_scales(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning]) -> list[dict[str, float]]:
    """Medians over drawn nets of the four scales of the steps of `STEPS`, with their errors, net by net.

    Of the change of the layers the scale of the mean stands beside, which rare nets make where nets are deep.
    """
    steps = {"": options.optimizer, "descent_": "sgd"}
    if options.optimizer in IN_NOISE:
        steps[tuned_rates.NOISE] = IN_NOISE[options.optimizer]
    methods = dict.fromkeys(steps.values())
    runs = [_scales_run(options, tuning, method) for method in methods for tuning in tunings]
    made = iter(simulate_all(runs, workers=options.workers, store=results.pieces))
    of_method = {method: list(islice(made, len(tunings))) for method in methods}
    rows = [mean_scale(of_net) for of_net in of_method[options.optimizer]]
    for whose, method in steps.items():
        rows = [row | median_scales(of_net, whose) for row, of_net in zip(rows, of_method[method], strict=True)]
    return rows


def _scales_run(options: argparse.Namespace, tuning: Tuning, optimizer: str) -> Run:
    """Of nets that are not among those that train."""
    shared = {"optimizer": optimizer, "batch_size": options.batch_size, "precision": tuning.training["precision"]}
    return scales_run(tuning.net, tuning.data, draws=STEP_DRAWS, seed=options.seed, **shared)


def _range_tests(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning]) -> list[dict[str, Array]]:
    """The rates that a range test suggests, net by net for seeds that train in no search."""
    places = map("range test {0[0]} {0[1]}".format, product(options.families, options.depths))
    shared = {"batch_size": options.batch_size, "optimizer": options.optimizer, "precision": "float32"}
    runs = [
        FINDER.run(tuning.net, tuning.data, seeds=own_seeds(options.seed, place, TESTS * options.draws), **shared)
        for place, tuning in zip(places, tunings, strict=True)
    ]
    tested = map(FINDER.suggested, simulate_all(runs, workers=options.workers, store=results.pieces))
    names = [f"seed_{name}_rate" for name in named_rates.SUGGESTIONS]
    return [{name: of_net[name].values for name in names} for of_net in tested]


def _of_family(options: argparse.Namespace, family: str) -> dict[str, float]:
    chance = float(np.log(images.DataShape.of(_source(options, family)).classes))
    return {"printed_slope": printed_tables.printed_slope(family), "chance_loss": chance}


def _one_step(tunings: Sequence[Tuning], families: Sequence[str], depths: Sequence[int]) -> Iterator[float]:
    """Mean-field eta* of the label term on white inputs; of residual nets on grids under a convolutional readout.

    NaN for nets with batch normalisation or dropout, which theory does not serve.
    """
    for family, tuning in zip(families, tunings[:: len(depths)], strict=True):
        net: Any = tuning.net
        if isinstance(net, ResidualConvNet):
            net = net.replace(readout="convolution")
        yield from [nan] * len(depths) if isinstance(net, Chain) else scales_at(net, _blocks(family, depths))


# What is printed.

WORDS = {
    "depths": "through which a slope goes: those with a tuned rate that learn, or all with one if fewer than two do.",
    "tuned rate": "the learning rate that minimises the loss on all training data after the last step: the vertex of a "
    "parabola of ln(loss) over log10(rate) for every seed, or without one the rate of the least loss; and the "
    "geometric mean of these over seeds.",
    "one step": "slope of the rate at which one step of the optimizer that trains, on its data, loss and batches, "
    "moves something by 1 (mean square, median over drawn nets): outputs; relative, the layers, each over its own "
    "size; last, the last layer over its size; absolute, the layers, as Zhang et al. 2026 have it.",
    "in noise": "one step of Muon with AdamW of which AdamW's layers move by 0.23 of the rate, as they do once "
    "gradients are noise: sqrt((1 - beta1) / (1 + beta1)).",
    "white": "the mean field's learning-rate scale eta* of the label term, of white inputs and labels, under plain "
    "gradient descent; of loops, of the stream. Images, labels, loss and optimizer of the nets that train are others.",
    "law": "the finite-depth law of plain ReLU nets of equal layers, docs/theory.md section 6.",
    "stable": "2 / lambda_max of the loss's curvature on up to 256 samples at initialisation, the median over "
    "16 nets, or --curvature-draws: the largest stable rate of descent, also where another optimizer trains. But in "
    "runs of AdamW it is 38 over the curvature in units of its second moments, those of mini-batches at "
    "initialisation, and in runs with momentum of 0.9 it is 3.8 / lambda_max.",
    "steepest, tenth": "rates that a range test (learning-rate finder) suggests, over the tuned one: one run of 100 "
    "steps from 1e-7 to 10; of the steepest descent of the smoothed loss, and a tenth of the rate of its least; "
    "medians over four tests for each tuned net, of those that have one.",
    "least mean loss": "over the seeds, of the rates at which all of them were trained and none has diverged.",
    "weighted": "the papers' fit, weights inversely proportional to the variances over seeds, where none is 0.",
    "init": "residual nets whose branches have variance 1/K at initialisation; multiplier: branches times K^(-1/2); "
    "k=2: init, with two layers in a branch; x4: of four times as many units or channels.",
}
HEADING = (
    "Trained on {data}: images of at most {sides} pixels a side on grids and in rows, {samples} samples, batches of "
    "{batch_size}, {epochs} epoch(s), {optimizer}, {schedule} rate; {draws} seeds at every depth; {channels} channels "
    "of convolutional nets and Transformers, width {width} of the others"
)


def _slope_column(header: str, cell: Callable[[xr.Dataset], str]) -> Column:
    """Through the depths that count."""
    return Column(header, lambda at: cell(tuned_rates.counted(at, tuned_rates.learning(at))))


def _law_cell(at: xr.Dataset) -> str:
    return number(claims.law_slope(at) if str(at["family"].values) in claims.PLAIN else np.nan)


def _depths(at: xr.Dataset) -> str:
    return span(at["depth"]) if at.sizes["depth"] else MISSING


SLOPE_TABLE = Table(
    "slope table",
    "Slopes in depth (papers: means over the data sets of table 1)",
    ["family"],
    "family",
    [
        _slope_column("depths", _depths),
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        _slope_column("one step", lambda at: number(claims.scale_slope(at, conclusions.own_scale(at)))),
        _slope_column("off", lambda at: signed(conclusions.distance(at))),
        _slope_column("white", lambda at: number(claims.scale_slope(at, "one_step_scale"))),
        _slope_column("weighted", lambda at: fitted(claims.weighted_slope(at))),
        _slope_column("law", _law_cell),
        _slope_column("stable", lambda at: number(claims.scale_slope(at, named_rates.stable_name(at)))),
        Column("papers", "printed_slope"),
    ],
)


def _brief_title(dataset: xr.Dataset) -> str:
    return f"Slope of the tuned rate in depth, beside one step of {dataset.attrs['optimizer']}"


BRIEF = Table(
    "brief table",
    _brief_title,
    ["family"],
    "family",
    [
        _slope_column("depths", _depths),
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        _slope_column("one step", lambda at: number(claims.scale_slope(at, conclusions.own_scale(at)))),
        _slope_column("off", lambda at: signed(conclusions.distance(at))),
        _slope_column("white", lambda at: number(claims.scale_slope(at, "one_step_scale"))),
        Column("papers", "printed_slope"),
    ],
)


def _local_columns(dataset: xr.Dataset) -> list[Column]:
    """From every depth to the next, with standard errors, beside those of one step."""

    def column(low: int, high: int) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            pair = tuned_rates.with_minima(at.sel(depth=[low, high]))
            return [
                fitted(tuned_rates.tuned_slope(pair)),
                number(claims.scale_slope(pair, conclusions.own_scale(pair))),
            ]

        return Column([f"{low} .. {high}", "one step"], cells)

    return [column(*step) for step in pairwise(dataset["depth"].values)]


LOCAL_TABLE = Table("local table", "Local slopes of the tuned rate", ["family"], "family", _local_columns)


def _halves_columns(dataset: xr.Dataset) -> list[Column]:
    middle = dataset.sizes["draw"] // 2

    def cells(at: xr.Dataset) -> list[str]:
        parts = (tuned_rates.of_seeds(at, seeds) for seeds in (slice(middle), slice(middle, None)))
        first, second = map(tuned_rates.tuned_slope, parts)
        with np.errstate(divide="ignore", invalid="ignore"):  # of seeds that agree exactly
            apart = np.abs(first.exponent - second.exponent) / np.hypot(first.stderr, second.stderr)
        return [fitted(first), fitted(second), number(float(apart))]

    return [Column(["first half", "second half", "apart, s.e."], cells)]


HALVES_TABLE = Table(
    "halves table",
    "Slopes of the tuned rate by two disjoint halves of the seeds",
    ["family"],
    "family",
    _halves_columns,
)


def _tuned_over_stable(at: xr.Dataset) -> str:
    return number(10.0 ** float(at["tuned_rate_log10"]) / float(at[named_rates.stable_name(at)]))


def _least_mean_loss(at: xr.Dataset) -> str:
    curve = at["final_loss"].where(np.isfinite(at["final_loss"])).mean("draw", skipna=False)
    return number(float(curve.min()))


RATE_TABLE = Table(
    "rate table",
    "Rates in absolute terms",
    ["family", "depth"],
    "net",
    [
        Column("tuned rate", lambda at: number(10.0 ** float(at["tuned_rate_log10"]))),
        Column("+- decades", decades),
        Column("stable", lambda at: number(float(at[named_rates.stable_name(at)]))),
        Column("tuned/stable", _tuned_over_stable),
        Column("least mean loss", _least_mean_loss),
        Column("seeds", lambda at: f"{int(at['located'])} of {at.sizes['draw']}"),
    ],
    key=lambda family, depth: f"{family} {depth}",
)


def _step_column(of: str, whose: str = "") -> Column:
    return _slope_column(
        f"{HEADERS[whose]}{of}",
        lambda at: number(claims.scale_slope(at, f"{whose}{of}_scale")),
    )


def _step_columns(dataset: xr.Dataset) -> list[Column]:
    """Slopes of all scales of one step that this run has."""
    others = [("descent_", "outputs"), ("descent_", "relative"), *product([tuned_rates.NOISE], OF)]
    return [
        _slope_column("depths", _depths),
        _slope_column("tuned rate", lambda at: fitted(tuned_rates.tuned_slope(at))),
        *map(_step_column, OF),
        *(_step_column(of, whose) for whose, of in others if f"{whose}{of}_scale" in dataset),
    ]


HEADERS = {"": "", "descent_": "descent: ", tuned_rates.NOISE: "in noise: "}
STEP_TABLE = Table(
    "step table",
    lambda dataset: (
        f"Slopes in depth of tuned rates beside those of one step of {dataset.attrs['optimizer']} on the data, by what "
        "it moves"
    ),
    ["family"],
    "family",
    _step_columns,
)


def _learns(at: xr.Dataset) -> str:
    least = float(at["final_loss"].min("rate").mean("draw"))
    return f"{least:.2f}{'' if least < tuned_rates.LEARNED * float(at['chance_loss']) else ' *'}"


def _over_tuned(at: xr.Dataset, name: str) -> str:
    return number(float(at[name]) / 10.0 ** float(at["tuned_rate_log10"]))


def _suggested(at: xr.Dataset, name: str) -> str:
    log_rate, _ = named_rates.suggestion(at, name)
    return number(10.0 ** (float(log_rate) - float(at["tuned_rate_log10"])))


def _named_columns(dataset: xr.Dataset) -> list[Column]:
    names = {f"{HEADERS[whose]}{of}": f"{whose}{of}_scale" for whose in ("", tuned_rates.NOISE) for of in OF}
    names = {header: name for header, name in names.items() if name in dataset} | {
        "stable": named_rates.stable_name(dataset)
    }
    return [
        Column("loss", _learns),
        *(Column(header, partial(_over_tuned, name=name)) for header, name in names.items()),
        *(Column(name, partial(_suggested, name=name)) for name in named_rates.SUGGESTIONS),
    ]


NAMED_TABLE = Table(
    "named table",
    "Scales of one step and rates of a range test over the tuned rate (* loss above a third of chance: hardly learns)",
    ["family", "depth"],
    "net",
    _named_columns,
    key=lambda family, depth: f"{family} {depth}",
)


def _without_parabola(dataset: xr.Dataset) -> str:
    """Minima that are rates of the search, and nets that no rate trains, each with the reason."""
    errors = dataset["seed_tuned_rate_log10_stderr"]
    coarse, every = int((errors > 0).sum()), int(errors.notnull().sum())
    words = (
        f"{coarse} of {every} seeds have a minimum without a parabola, as beside a cliff: it is the rate of the least "
        "loss, and its error, the distance of its neighbours over sqrt(12), is part of the net's. A finer --spacing "
        "makes that smaller, and more seeds do not."
    )
    lost = json.loads(dataset.attrs["without_minimum"])
    return "\n".join(
        [*[folded(words, "", 2)] * bool(coarse), *(folded(f"{n}: {why}", "", 2) for n, why in lost.items())]
    )


def _findings(dataset: xr.Dataset) -> list[Finding]:
    return [
        *claims.findings(dataset),
        *first_steps.findings(dataset),
        *named_rates.findings(dataset),
        *over_widths.findings(dataset),
        *printed_tables.findings(dataset),
    ]


TABLES = [SLOPE_TABLE, STEP_TABLE, NAMED_TABLE, LOCAL_TABLE, HALVES_TABLE, RATE_TABLE]
REPORT = Report(
    question="Do tuned rates fall over depth as one step of the optimizer that trains says?",
    answer=conclusions.answer_of,
    heading=HEADING,
    brief=BRIEF,
    parts=[*TABLES, over_widths.table_of, _without_parabola, conclusions.advice],
    findings=_findings,
    words=WORDS,
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="12 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=(*CLAIMS, *first_steps.CLAIMS, *named_rates.CLAIMS, *over_widths.CLAIMS, *printed_tables.CLAIMS),
    # The images of a run without --data.
    require_installed=partial(images.require_installed, "digits"),
)


if __name__ == "__main__":
    run_as_command("learning_rate_search")
