"""The learning rate that trains best, over depth: does it follow the one-step scale eta*(L)?

For every family and depth, nets are trained on real data under many learning rates from several seeds, and the rate
that minimises the training loss is searched for (Zhang et al. 2026, section 4.1). Its slope in depth stands beside that
of the one-step theory over the same depths, the papers' slopes, 2 / lambda_max of the loss's curvature at
initialisation, and the scales of one step of the optimizer that trains, on the data, the loss and the batches of
training. The last two are rates in absolute terms, with nothing tuned.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import nan
from typing import Any

import numpy as np
import xarray as xr

from meanfield import Chain
from meanfield.common import require_positive
from meanfield.execution import Run, scales_run, simulate_all
from meanfield.nets import Net, ResidualConvNet
from meanfield.theory import scales_at
from meanfield.transfer import Tuning, tune_all
from meanfield.verification import RESNET_BATCH_NORM_SLOPE, RESNET_DROPOUT_SLOPE, TABLE_1
from sims.common import images
from sims.common.command import TRAINED_ON, Option, Preset, ladder_of
from sims.common.datasets import Variable, attributes, over
from sims.common.results import Results
from sims.common.study import Study
from sims.common.training_data import shared_training_data, trained_net
from sims.common.tuned_nets import MOVED, STEP_DRAWS, mean_scale, median_scales, own_seeds
from sims.learning_rate_search import first_steps, printed_tables
from sims.learning_rate_search.claims import CLAIMS, NAME
from sims.learning_rate_search.report import REPORT

LISTED = "whether the rate that trains best follows the one-step scale"

# What is asked for.

NETS, TRAINING = "nets", "training"
OPTIONS = (
    Option(
        "families",
        "families of nets (quote names of several words), of --data, or each 'FAMILY on SOURCE'",
        metavar="NAME",
        many="+",
        check=lambda written, given: list(dict.fromkeys(given)),
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
    Option("wider", "times so many channels and units (default: 1)", float, 1.0, metavar="M", group=NETS),
    Option(
        "data",
        "digits (default; needs the extra data), mnist, text, or FILE.npz with inputs and labels",
        default="digits",
        metavar="SOURCE",
        group=TRAINING,
    ),
    Option("samples", "samples of the data", int, group=TRAINING),
    Option("batch_size", "samples of a mini-batch", int, 16, metavar="B", group=TRAINING),
    Option("epochs", "passes over the data", int, group=TRAINING),
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
    Option("spacing", "finest steps between rates, in decades", float, 0.25, group=TRAINING),
    Option(
        "grid",
        "train under N rates from 10^-4 to 10 instead of searching (papers: 80)",
        int,
        metavar="N",
        group=TRAINING,
    ),
    TRAINED_ON,
)
RESIDUAL = ["residual mlp init", "residual mlp multiplier", "residual mlp k=2"]
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
LEARNING = [
    "mlp",
    *RESIDUAL,
    "residual mlp k=3",
    "loop linear",
    "loop sqrt",
    "cnn on mnist",
    "residual cnn init on mnist",
    "residual cnn multiplier on mnist",
    "residual cnn init batch norm on mnist",
]
PRESETS = {
    "smoke": Preset("15 s", families=ALL, depths=[2, 4], channels=4, width=16, draws=2, samples=96, epochs=1),
    "default": Preset(
        "2 min", families=ALL, depths=[2, 4, 8, 16], channels=16, width=64, draws=20, samples=1792, epochs=1
    ),
    "evidence": Preset(
        "60 min",
        families=LEARNING,
        depths=[2, 4, 8, 16],
        channels=16,
        width=64,
        draws=12,
        samples=1792,
        epochs=8,
    ),
    "paper": Preset(
        "20 h",
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

# Between a family and its data.
ON = " on "
# Architectures of table 1 of Zhang et al. 2026, by how the names of families here begin.
TRANSFORMER = "transformer"
PRINTED = {"cnn": "CNN", "residual cnn": "ResNet", TRANSFORMER: "ViT"}
NARROW = tuple(PRINTED)
# Table 3, on CIFAR-10; for plain nets it has neither.
TABLE_3 = {"residual cnn init batch norm": RESNET_BATCH_NORM_SLOPE, "residual cnn init dropout": RESNET_DROPOUT_SLOPE}
TABLE_3 |= {"cnn batch norm": nan, "cnn dropout": nan}
# What every seed has of its own.
SEEDS = ("seed_tuned_rate_log10", "seed_tuned_rate_log10_stderr")
# One step of whose optimizer a scale is of.
STEPS = {"": "one step of the optimizer that trains", "descent_": "one step of gradient descent"}

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
    Variable("chance_loss", "loss where all classes have the same probability"),
    Variable("printed_slope", "slope of tuned rates in depth that is printed", source="Zhang et al. 2026, tables 1, 3"),
    Variable("family", "family of nets"),
    Variable("rate", "learning rate"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """What is tuned, family by family through all depths."""
    places = list(product(options.families, options.depths))
    nets = [_net(options, *place) for place in places]
    data: dict[int, tuple[Any, Any]] = {}
    for source in dict.fromkeys(_source(options, family) for family in options.families):
        of_source = [place for place, (family, _) in enumerate(places) if _source(options, family) == source]
        how: dict[str, Any] = {"samples": options.samples, "seed": options.seed}
        data |= zip(of_source, shared_training_data(source, [nets[at] for at in of_source], **how), strict=True)
    tunings = [_tuning(options, *place, nets[at], data[at]) for at, place in enumerate(places)]
    return {"tunings": tunings, "depths": options.depths}


def _source(options: argparse.Namespace, family: str) -> str:
    """The data of a family: those that its name ends with, or those of the run."""
    return family.partition(ON)[2] or str(options.data)


def _sizes(options: argparse.Namespace) -> dict[str, int]:
    """Channels and width as they are run."""
    wider = require_positive("--wider", options.wider, why="nets have a channel or more")
    times = {name: wider * getattr(options, name) for name in ("channels", "width")}
    for name, size in times.items():
        if size != round(size):
            raise ValueError(f"--wider {wider:g} makes {size:g} of --{name}; give a factor that makes a whole number")
    return {name: round(size) for name, size in times.items()}


def _net(options: argparse.Namespace, family: str, depth: int) -> Net:
    width = _sizes(options)["channels" if family.startswith(NARROW) else "width"]
    return trained_net(family.partition(ON)[0], _blocks(family, [depth])[0], width, _source(options, family))


def _tuning(options: argparse.Namespace, family: str, depth: int, net: Net, data: tuple[Any, Any]) -> Tuning:
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
        over(axes, [{"one_step_scale": scale} for scale in _one_step(tunings, options.families, depths)]),
        over({"family": options.families}, [_of_family(options, family) for family in options.families]),
    ]
    described = attributes(
        options, "data", "samples", "batch_size", "epochs", "optimizer", "schedule", "channels", "width", "spacing"
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


def _step_scales(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning]) -> list[dict[str, float]]:
    """Medians over drawn nets of the four scales of one step, and of one of descent, with their errors, net by net.

    Of the change of the layers the scale of the mean stands beside, which rare nets make where nets are deep.
    """
    methods = dict.fromkeys([options.optimizer, "sgd"])
    runs = [_scales_run(options, tuning, method) for method in methods for tuning in tunings]
    made = simulate_all(runs, workers=options.workers, store=results.pieces)
    own, of_descent = made[: len(tunings)], made[-len(tunings) :]
    return [
        median_scales(of_net) | mean_scale(of_net) | median_scales(descended, "descent_")
        for of_net, descended in zip(own, of_descent, strict=True)
    ]


def _scales_run(options: argparse.Namespace, tuning: Tuning, optimizer: str) -> Run:
    """Of nets that are not among those that train."""
    shared = {"optimizer": optimizer, "batch_size": options.batch_size, "precision": tuning.training["precision"]}
    return scales_run(tuning.net, tuning.data, draws=STEP_DRAWS, seed=options.seed, **shared)


def _of_family(options: argparse.Namespace, family: str) -> dict[str, float]:
    chance = float(np.log(images.DataShape.of(_source(options, family)).classes))
    return {"printed_slope": _printed(family), "chance_loss": chance}


def _one_step(tunings: Sequence[Tuning], families: Sequence[str], depths: Sequence[int]) -> Iterator[float]:
    """Mean-field eta* of the label term on white inputs; of residual nets on grids under a convolutional readout.

    NaN for nets with batch normalisation or dropout, which theory does not serve.
    """
    for family, tuning in zip(families, tunings[:: len(depths)], strict=True):
        net: Any = tuning.net
        if isinstance(net, ResidualConvNet):
            net = net.replace(readout="convolution")
        yield from [nan] * len(depths) if isinstance(net, Chain) else scales_at(net, _blocks(family, depths))


def _printed(family: str) -> float:
    """Mean slope of table 1 over its data sets, or that of table 3; NaN for what they do not have."""
    if (alone := family.partition(ON)[0]) in TABLE_3:
        return TABLE_3[alone]
    kinds = [TABLE_1[kind] for begin, kind in PRINTED.items() if family.startswith(begin)]
    return float(np.mean(kinds[0])) if kinds else float("nan")


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
    claims=(*CLAIMS, *first_steps.CLAIMS, *printed_tables.CLAIMS),
    # The images of a run without --data.
    require_installed=partial(images.require_installed, "digits"),
)
