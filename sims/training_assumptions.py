"""What Zheng et al. 2026 assume of training, measured: assumptions G.1 - G.3 and alignments F.1, F.2 on real images.

The paper's ReLU nets (eq. 28) of L blocks of two matrices, under its table for k >= 2, learn to tell two classes of
images by binary cross-entropy on the full batch (appendix G.2). Every draw has new weights and the same images. As in
the paper, the ratios are taken at the first step, half-way and at the last of 200, in the input layer and in both
layers of the last block; besides, as means over all blocks. The paper varies the depth alone, 4 .. 256 blocks, at
width 256, on 200 images of 3072 numbers (CIFAR-10), by gradient descent of rate 0.001. --preset paper has these
sizes, on MNIST's images of 784 numbers; CIFAR-10 is not installed with any extra and goes in by --input FILE. The
default is smaller, so that many draws take minutes: up to 64 blocks, width 64, 20 digits of 64 numbers, ten times the
rate.

G.1, G.2 and F.1 are said of every optimizer. G.3 is of updates that are sums over samples, and F.2 of gradients: of
--optimizer they are measured under sgd alone.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import MOST_LAYERS, Array, require_positive
from meanfield.execution import Run
from meanfield.parameterizations import OPTIMIZER_NAMES, WEIGHTS, transfer_hyperparameters
from meanfield.simulation import TrainingAssumptions
from meanfield.verification import (
    OFF,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    LadderRow,
    Verdict,
    against_conditions,
    checks,
    ladder_slope,
)
from sims.common import images as labelled
from sims.common.blocks import DIRECTIONS, RATES, SOAP_EPSILON_OPTION, Values, block_net, given_soap_epsilon, worded
from sims.common.blocks import hyperparameters as table_hyperparameters
from sims.common.command import Option, Preset, chosen_of, counted, ladder_of
from sims.common.datasets import Variable
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Grid, measured, number, slope, table

NAME = "training_assumptions"
LISTED = "what Zheng et al. 2026 assume of training, measured on images"

# What is asked for.


def _batches(written: str, given: list[int]) -> list[int]:
    """Images of the ladder in batch size, each of which can be half of either class."""
    batches = ladder_of(3, SLOPE)(written, given)
    for size in batches:
        _require_even(size)
    return batches


def _even(written: str, given: int) -> int:
    _require_even(counted()(written, given))
    return given


def _require_even(size: int) -> None:
    if size % 2:
        raise ValueError(f"a batch of {size} images cannot be half of either class; give even numbers")


SLOPE = "a slope with its correction"
OPTIONS = (
    Option(
        "widths",
        "widths of the ladder in width, three or more",
        int,
        metavar="N",
        many="+",
        check=ladder_of(3, SLOPE),
        group="nets",
    ),
    Option(
        "depths",
        "numbers of blocks of the ladder in depth, three or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(3, SLOPE, maximum=MOST_LAYERS),
        group="nets",
    ),
    Option(
        "batches",
        "images of the ladder in batch size, even, three or more",
        int,
        metavar="B",
        many="+",
        check=_batches,
        group="nets",
    ),
    Option("width", "width of the other ladders (see the preset)", int, check=counted(), group="nets"),
    Option("depth", "blocks of the other ladders", int, check=counted(), group="nets"),
    Option("batch", "images of the other ladders, half of them of either class", int, check=_even, group="nets"),
    Option("steps", "steps of training (default: 200)", int, check=counted(), group="training"),
    Option(
        "optimizer",
        "sgd, without momentum (default), or any of the others",
        default="sgd",
        metavar="NAME",
        check=chosen_of(OPTIMIZER_NAMES),
        group="training",
    ),
    Option(
        "rate",
        "base learning rate (default: sgd 0.001, on digits 0.01; others by the base model)",
        float,
        group="training",
    ),
    SOAP_EPSILON_OPTION,
    Option("precision", "of weights and passes (see the preset)", choices=("float64", "float32"), group="training"),
    Option(
        "input",
        "digits, mnist (see the preset; they need the extra data) or a .npy, .npz, .nc FILE of images",
        group="training",
    ),
    Option(
        "labels",
        "with --input FILE: the class of every image, FILE::ARRAY of several arrays",
        metavar="FILE",
        group="training",
    ),
    Option("grid", "with --input FILE: size of an image, as 32 32", int, many="+", group="training"),
    Option("classes", "the two to tell apart (default: 3 8)", int, [3, 8], metavar="C", many=2, group="training"),
)
PRESETS = {
    "smoke": Preset(
        "5 s",
        **{"widths": [16, 32, 64], "depths": [1, 2, 4], "batches": [4, 8, 16], "draws": 18, "steps": 10},
        **{"width": 32, "depth": 2, "batch": 16, "input": "digits", "precision": "float64"},
    ),
    "default": Preset(
        "30 s",
        **{"widths": [16, 24, 32, 48, 256], "depths": [1, 2, 4, 8, 12, 64], "batches": [10, 20, 40, 80]},
        **{"width": 64, "depth": 4, "batch": 20, "steps": 200, "draws": 12, "input": "digits", "precision": "float32"},
    ),
    "paper": Preset(
        "30 min",
        **{"widths": [64, 128, 256, 512], "depths": [4, 8, 16, 32, 64, 128, 256], "batches": [26, 50, 100, 200]},
        **{"width": 256, "depth": 4, "batch": 200, "steps": 200, "draws": 8, "input": "mnist", "precision": "float32"},
    ),
}

# What is measured.

VARIABLES = (Variable("batch", "images of the batch B"),)
# Every ladder, and the option that gives its sizes.
LADDERS = {"width": "widths", "depth": "depths", "batch": "batches"}
# The paper's base rate on images of 3072 numbers; ten times as much on digits of 64. Other optimizers take a tenth of
# that at which one step moves the stream of the base model by a tenth: two hundred steps learn the images with it.
PAPER_RATE, DIGITS_RATE, SHARE = 0.001, 0.01, 0.1


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The ladders, and (images, labels) of as many images as the largest batch has."""
    if options.rate is None:
        options.rate = _own_rate(options.optimizer, options.input)
    require_positive("--rate", options.rate, why="it is a learning rate")
    grid = None if options.grid is None else tuple(options.grid)
    each = max(*options.batches, options.batch) // 2
    classes = tuple(options.classes)
    images = labelled.two_classes(options.input, options.labels, grid, classes, each, options.seed)
    names = (*LADDERS, *LADDERS.values(), "steps", "rate", "input", "classes", "optimizer", "precision")
    described = {name: getattr(options, name) for name in names}
    return {"described": described | given_soap_epsilon(options.soap_epsilon, [options.optimizer]), "images": images}


def measure(
    options: argparse.Namespace, results: Results, described: dict[str, Any], images: tuple[Array, Array]
) -> xr.Dataset:
    """Every ratio by ladder, place in the net, step and draw; by batch size under gradient descent alone."""
    ladders = LADDERS if options.optimizer == "sgd" else ("width", "depth")
    rungs = {name: getattr(options, LADDERS[name]) for name in ladders}
    own = {name: getattr(options, name) for name in LADDERS}
    runs = [_run_of(options, images, own | {name: size}) for name, sizes in rungs.items() for size in sizes]
    measured = iter(results.draw(runs))
    parts: dict[str, xr.DataArray] = {}
    for name, sizes in rungs.items():
        joined = xr.concat([places_of(next(measured)) for _ in sizes], dim=name).assign_coords({name: sizes})
        parts |= {f"{variable!s}_by_{name}": values for variable, values in joined.items()}
    return xr.Dataset(parts, {"step": looks(options.steps)}, worded(described) | {"numbers": len(images[0])})


def _run_of(options: argparse.Namespace, images: tuple[Array, Array], size: dict[str, int]) -> Run:
    inputs, labels = (values[..., : size["batch"]].copy() for values in images)
    soap_epsilon = given_soap_epsilon(options.soap_epsilon, [options.optimizer])
    given = hyperparameters(size["width"], size["depth"], len(inputs), options.rate, options.optimizer, **soap_epsilon)
    shape = {"input_width": len(inputs), "samples": size["batch"], "activation": "relu"}
    net = block_net(given, size["width"], size["depth"], **shape)
    how = {"optimizer": options.optimizer, "precision": options.precision, "steps": looks(options.steps)}
    training = TrainingAssumptions(hyperparameters=given, inputs=inputs, labels=labels, **how)
    return Run(net, training, options.draws, options.seed)


def looks(steps: int) -> list[int]:
    """The steps that the paper looks at: the first, the one half-way and the last."""
    return sorted({1, max(1, steps // 2), steps})


def _own_rate(optimizer: str, source: str) -> float:
    if optimizer == "sgd":
        return DIGITS_RATE if source == "digits" else PAPER_RATE
    return SHARE * RATES[optimizer]


def hyperparameters(
    width: int, depth: int, numbers: int, rate: float, optimizer: str = "sgd", **soap_epsilon: Any
) -> Values:
    """Multipliers 1, 1/L, 1/n, variances 2/d_0, 2/n, 2 and learning rates by the table for k >= 2.

    Those of gradient descent are eta n, eta L, eta n, as appendix G.2 prints them. Those of the others are ``rate`` in
    the base model, of width 64 and depth 2.
    """
    if optimizer == "sgd":
        base = {"block_multiplier": 1.0, "initial_variance": 2.0, "learning_rate": rate}
        shared: dict[str, Any] = {"base_values": base, "base_width": 1, "base_depth": 1, "block_depth": 2}
        return transfer_hyperparameters(
            "sgd", width=width, depth=depth, input_dimension=numbers, roles=WEIGHTS, **shared
        )
    given = table_hyperparameters(optimizer, "many", width, depth, rate=rate, **soap_epsilon)
    variances = {"input": 2 / numbers, "hidden": 2 / width, "output": 2.0}
    return {role: given[role] | {"initial_variance": variance} for role, variance in variances.items()}


def places_of(measured: xr.Dataset) -> xr.Dataset:
    """The ratios at ``PLACES``, nan where they are not defined, and the loss.

    The input layer and both layers of the last block are those of the paper's figures 10 - 13. The output matrix is
    left out: it gives one number, of which a ratio between two can be as large as it likes.

    Source: Zheng et al. 2026, appendix G.2, "Verification of Assumptions".
    """
    places = {"training_loss": measured["training_loss"]}
    for name in RATIOS:
        if name not in measured:
            continue
        values = measured[name]
        within = str(values.dims[-1])
        inside = values.isel({within: slice(1, -1 if within == "matrix" else None)})
        at = {"input": values.isel({within: 0}), LAST: inside.isel({within: -1}), "all blocks": inside.mean(within)}
        at[FIRST] = np.nan * at[LAST] if FIRST not in places_for(name) else inside.isel({within: -2})
        places[name] = xr.concat([at[place] for place in PLACES], dim="place").assign_attrs(values.attrs)
    return xr.Dataset(places, {"place": list(PLACES)})


# What each assumption says is of order one, and in words.
ASSUMPTIONS = {
    "G.1 weights": ("weight_step_ratio", "weight_travel_ratio"),
    "G.1 features": ("feature_step_ratio", "feature_travel_ratio"),
    "G.2": ("activation_ratio",),
    "G.3": ("sample_update_ratio",),
    "F.1": ("weight_alignment",),
    "F.2": ("update_alignment",),
}
WORDS = {
    "G.1 weights": "weights do not lose to their updates (G.1)",
    "G.1 features": "features do not lose to their updates (G.1)",
    "G.2": "activations keep the order of what they are given (G.2)",
    "G.3": "a batch moves features as a sample's own part does (G.3)",
    "F.1": "weights reach a fixed share of their norm (F.1)",
    "F.2": "updates reach a fixed share of their norm (F.2)",
}
RATIOS = tuple(name for names in ASSUMPTIONS.values() for name in names)
# What the paper says of updates that are sums over samples, and of gradients; the rest it says of any update.
OF_GRADIENTS = ("G.3", "F.2")
# Where the paper looks (appendix G.2), and the mean over what all blocks have: the assumptions are of every layer.
FIRST, LAST = "last block, layer 1", "last block, layer 2"
PLACES = ("input", FIRST, LAST, "all blocks")
# Where G.3 is judged: in single layers its denominator scatters so much that hundreds of draws leave it undecided.
STEADY = ("input", "all blocks")
# Slopes of ratios that are all but exactly 1 are not told from zero by less.
EXACT = 1e-3
# What independence leaves of |W| + |D|: a large square matrix W of Gaussians, of norm 2 in units of its edge, plus D of
# rank one and norm d has the norm d + 1/d where d > 1, else 2; least against 2 + d at the golden ratio.
# Source: Benaych-Georges and Nadakuditi 2012.
INDEPENDENT = (5**0.5 - 1) / 2

JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """What the paper says of the run's optimizer, and under gradient descent that G.3 needs no premise."""
    is_descent = bool(ladders_of(dataset, ASSUMPTIONS["G.3"]))
    stated = [name for name in ASSUMPTIONS if is_descent or name not in OF_GRADIENTS]
    assumed = [judge_assumption(dataset, name) for name in stated]
    return [*assumed, judge_batch(dataset)] if is_descent else assumed


@JUDGES.decide(
    claim="Under {optimizer}, {claimed}, at any width, depth and step",
    brief="At every size and step {claimed}",
    rival="half a power of width or depth or more",
    measured="slopes in width and in depth of the ratios that the assumption bounds, by place, after the first, middle "
    "and last step",
    cases=[{"name": name} for name in ASSUMPTIONS],
)
def judge_assumption(dataset: xr.Dataset, name: str) -> Contest:
    ratios = rows(dataset, ASSUMPTIONS[name])
    if name == "G.3":
        ratios = [row for row in ratios if row.place in STEADY]
    return _of_order_one(dataset, ratios, WORDS[name])


@JUDGES.decide(
    claim="G.3 holds at any batch size, so that it needs no premise",
    rival="half a power of batch or more",
    measured="slopes in B of the ratio of a sample's own part, divided by B, to the whole update, by place and step",
)
def judge_batch(dataset: xr.Dataset) -> Contest:
    return _of_order_one(dataset, rows(dataset, ASSUMPTIONS["G.3"], ("batch",)))


def _of_order_one(dataset: xr.Dataset, ratios: list[LadderRow], claimed: str = "") -> Contest:
    lost = [row for row in ratios if np.isnan(row.slope.settled)]
    if lost:
        raise ValueError(f"{lost[0].where}: ratios are zero or not finite at too many sizes for a slope")
    claim, rival = against_conditions(ratios)
    hardest = int(np.argmax(claim.excess))
    worst, far = (ratios[place].slope for place in (hardest, int(np.argmax(np.abs(claim.difference)))))
    words = (
        f"{len(ratios)} slopes, hardest {worst} ({ratios[hardest].where}), "
        f"allowance {claim.allowance[hardest]:.3f}; farthest {far}"
    )
    made = Contest(claim, rival, comparisons=len(ratios), apart=OFF, gaussian=True)
    return made.saying(words, claimed=claimed, optimizer=dataset.attrs["optimizer"])


def rows(dataset: xr.Dataset, names: tuple[str, ...], directions: tuple[str, ...] = DIRECTIONS) -> list[LadderRow]:
    """Slopes of ratios at every place and step."""
    slopes = []
    for direction in directions:
        for name in names:
            at = dataset[f"{name}_by_{direction}"].transpose("place", "step", direction, "draw")
            for place in places_for(name):
                granted = EXACT + input_grant(dataset, name, place, direction)
                for step, values in zip(map(int, at["step"].values), at.sel(place=place).values, strict=True):
                    sizes, words = dataset[direction].values, name.replace("_", " ")
                    row = LadderRow(words, direction, ladder_slope(sizes, values), place=place, step=step)
                    slopes.append(replace(row, granted=granted, may_fall=travel_grant(name, sizes, values)))
    return slopes


def places_for(name: str) -> tuple[str, ...]:
    """The places at which a ratio is defined: features are those behind whole blocks, the last one's at ``LAST``."""
    return tuple(place for place in PLACES if place != FIRST or not name.startswith("feature"))


def ladders_of(dataset: xr.Dataset, names: tuple[str, ...] = RATIOS) -> tuple[str, ...]:
    """Those of some ratios that the run has: under gradient descent all of them."""
    return tuple(name for name in names if f"{name}_by_depth" in dataset)


def input_grant(dataset: xr.Dataset, name: str, place: str, direction: str) -> float:
    """The slope that the norm of a Gaussian input matrix leaves in width.

    |W_0|_R of n x d_0 elements is its limit times 1 + sqrt(d_0 / n), and a fit of c / n does not take the root away.
    """
    if (place, direction) != ("input", "width") or not name.startswith("weight"):
        return 0.0
    sizes = dataset["width"].values
    norm = 1 + np.sqrt(float(dataset.attrs["numbers"]) / sizes)
    return abs(ladder_slope(sizes, np.stack([norm, norm], axis=1)).settled)


def travel_grant(name: str, sizes: Array, values: Array) -> float:
    """The slope by which weights may fall against the sum of the norms that they and their change have.

    Weights that keep what they began with, and a change that forgets it as nets grow, end independent of one another,
    which is no cancellation: from the ratio of the smallest nets down to `INDEPENDENT` over the whole ladder.
    """
    if name != "weight_travel_ratio":
        return 0.0
    smallest = float(np.mean(np.log(values[0])))
    return max(smallest - np.log(INDEPENDENT), 0.0) / float(np.log(sizes[-1] / sizes[0]))


# One optimizer of elements and one of matrices, of which the paper assumes G.1 and G.2 and shows nothing; and ladders
# on which they take a quarter of what the default ones take.
OTHERS = ("adamw", "muon")
SHORTER = ("--widths", "16", "24", "32", "48", "128", "--depths", "1", "2", "4", "8", "32", "--times", "2")
# What the default preset trains.
NETS = "ReLU nets of eq. 28 on two classes of digits, 200 full-batch steps"

CLAIMS = (
    Claim(
        id="S7a",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumptions G.1, G.2, G.3, figures 10-13",
        statement="under gradient descent no update cancels, no activation collapses, and the share of a sample's own "
        "update by which a batch (here of 20) moves its features depends on neither width, depth nor step",
        brief="under gradient descent no update cancels, and a batch's share of one is constant",
        printed='"three key assumptions ... we formally restate these assumptions and empirically verify their '
        'validity in the width-depth scaling context" (appendix G)',
        hypotheses=f"G.3: B is of order one, here 20. {NETS}, widths 16 .. 256 at 4 blocks and 1 .. 64 blocks at width "
        "64",
        checks=checks(
            NAME,
            *(partial(judge_assumption, name=name) for name in ASSUMPTIONS if name.startswith("G")),
            arguments=("--times", "3"),
        ),
    ),
    Claim(
        id="S7b",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumptions G.1, G.2",
        statement="under AdamW and Muon no update cancels and no activation collapses",
        printed='"Delta W_l does not destructively cancel out the existing weight W_l ... the activation function '
        'preserves the asymptotic order of the feature norms" (appendix G.1)',
        hypotheses=f"{NETS}, widths 16 .. 128 at 4 blocks and 1 .. 32 blocks at width 64",
        checks=tuple(
            check
            for optimizer in OTHERS
            for check in checks(
                NAME,
                *(partial(judge_assumption, name=name) for name in ("G.1 weights", "G.1 features", "G.2")),
                arguments=("--optimizer", optimizer, *SHORTER),
            )
        ),
    ),
    Claim(
        id="S7c",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, assumption G.3 beyond its premise, a batch of order one",
        statement="under gradient descent a batch of any size B moves a sample's features as 1/B of the sample's own "
        "update does",
        brief="under gradient descent a batch of B moves a sample's features by 1/B of its own",
        printed='"the batch size satisfies B = Theta(1), ... |Delta W_l h_(l-1)(x^(i))|_R = Theta(1/B |Delta W_l^(i) '
        'h_(l-1)(x^(i))|_R)" (assumption G.3)',
        hypotheses=f"{NETS}, width 64, 4 blocks, B = 10 .. 80",
        checks=checks(NAME, judge_batch, arguments=("--times", "3")),
        replaced_by="it moves them by a share of the sample's own update that falls with B slowly or not at all (0.06 "
        "to 0.3 for B = 10 .. 80), not as 1/B: the ratio falls as B^(-0.8) to B^(-1.1)",
        premise="that batches are of order one, which the paper says; samples of larger ones move features alike",
    ),
)


TITLES = {
    "weight_step_ratio": "a step: |W + dW|/(|W| + |dW|)",
    "weight_travel_ratio": "the same since the start",
    "feature_step_ratio": "a step: |h + dh|/(|h| + |dh|)",
    "feature_travel_ratio": "the same since the start",
    "activation_ratio": "|phi(W z)| / |W z|",
    "sample_update_ratio": "|dW^(i) z^(i)|/(B |dW z^(i)|)",
    "weight_alignment": "|W z| / (|W| |z|)",
    "update_alignment": "|dW z| / (|dW| |z|)",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    names = ("(G.1)", "(G.2)", "(G.3)")
    assumed = [finding for finding in findings if any(name in finding.claim for name in names)]
    kept = sum(finding.verdict is Verdict.CONFIRMED for finding in assumed)
    return answer(assumed, f"{kept} of {len(assumed)} are confirmed")


def _losses(dataset: xr.Dataset) -> Grid:
    lines = []
    for direction in _ladders(dataset):
        for size in dataset[direction].values[[0, -1]]:
            means = dataset[f"training_loss_by_{direction}"].sel({direction: size}).mean("draw")
            lines.append([f"{direction} {size}", *(number(float(mean)) for mean in means)])
    return table(["before step", *map(str, dataset["step"].values)], lines, "Binary cross-entropy, mean over draws")


def _over_steps(dataset: xr.Dataset) -> Grid:
    """Ratios at the largest width, mean +- standard error over draws, in the first, a middle and the last look."""

    def cell(name: str, place: str, step: int) -> str:
        values = dataset[f"{name}_by_width"].isel(width=-1).sel(place=place, step=step).values
        return measured(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))

    return _by_step(dataset, cell, f"Over training, width {dataset['width'].values[-1]}")


def _slope_tables(dataset: xr.Dataset) -> list[Grid]:
    return [_slopes(dataset, direction) for direction in _ladders(dataset)]


def _slopes_in_width(dataset: xr.Dataset) -> Grid:
    return _slopes(dataset, "width")


def _ladders(dataset: xr.Dataset) -> list[str]:
    return [name for name in (*DIRECTIONS, "batch") if name in dataset.coords]


def _slopes(dataset: xr.Dataset, direction: str) -> Grid:
    def cell(name: str, place: str, step: int) -> str:
        law = laws[name, place, step]
        return slope(law.settled, law.settled_stderr)

    laws = {
        (name, row.place, row.step): row.slope
        for name in ladders_of(dataset)
        for row in rows(dataset, (name,), (direction,))
    }
    how = "s of log y = a + s log x + c / x, draw by draw"
    return _by_step(dataset, cell, f"Slopes in {'batch size' if direction == 'batch' else direction}: {how}")


def _by_step(dataset: xr.Dataset, cell: Callable[[str, str, int], str], title: str) -> Grid:
    """A line for every assumption, without its words, ratio and place; a cell for each of a few steps."""
    steps = _shown(dataset)
    lines = [
        [key.split()[0], TITLES[name], place, *(cell(name, place, step) for step in steps)]
        for key, names in ASSUMPTIONS.items()
        for name in ladders_of(dataset, names)
        for place in places_for(name)
    ]
    return table([["", "ratio", "of"], *(f"step {step}" for step in steps)], lines, title)


def _shown(dataset: xr.Dataset) -> list[int]:
    steps = [int(step) for step in dataset["step"].values]
    return list(dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1])))


def _soap(dataset: xr.Dataset) -> list[str]:
    """SOAP's epsilon, where it trains the nets."""
    epsilon = dataset.attrs.get("soap_epsilon")
    return [] if epsilon is None else [f"SOAP's epsilon is {epsilon:g} in the base model."]


REPORT = Report(
    question="Does training meet what Zheng et al. 2026 assume of it (G.1 - G.3), at any size?",
    answer=_answer,
    heading="ReLU nets of L blocks of two matrices under {optimizer}; widths {widths} and depths {depths} "
    "(width {width}, depth {depth} otherwise), batches {batches} ({batch})\n"
    "classes {classes} of {input}, {numbers} numbers an image; {steps} full-batch steps, base rate {rate}\n"
    "{draws} draws of weights, seed {seed}, {precision}; |W| RMS operator norms, |h| root mean squares; means over "
    "samples",
    parts=[_soap, _losses, _over_steps, _slope_tables],
    findings=findings,
    brief=_slopes_in_width,
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
    require_installed=lambda: labelled.require_installed("digits"),
)


if __name__ == "__main__":
    run_as_command(NAME)
