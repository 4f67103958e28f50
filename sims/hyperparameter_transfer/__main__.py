"""Does a base learning rate that was tuned on a small net stay the best of wider and deeper ones, table by table?

Residual nets of two layers a branch learn digits, and GPT-like nets the next character of English text, by AdamW, or by
Muon on hidden weights and AdamW on all others. A table of Zheng et al. 2026 says every weight's variance, multiplier,
rate and decay as factors on those of a base model: under condition 3.1 (for branches of two and more layers), condition
B.1 (of one), or the standard parameterization, in which nothing scales. The base rate is tuned at every size; of the
base model with every weight decay that is given, of which the best one is carried to all sizes by the tables. Other
nets are then trained at the rate tuned at their size and at the base model's, the carried one. Rates are constant in
training, where the paper has a warm-up and a decay.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, require_count, require_positive
from meanfield.execution import Workers
from meanfield.transfer import Tuning, tune_all
from meanfield.verification import Finding, span
from sims.common.command import Option, Preset, chosen_of, counted, ladder_of
from sims.common.datasets import Axes, Variable, attributes, over
from sims.common.gpts import require_whole_heads
from sims.common.images import require_installed
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Grid, label, measured, number, table
from sims.common.training_data import MOST_TRAINED, InputsAndTargets
from sims.common.tuned_nets import SPACING, own_seeds
from sims.hyperparameter_transfer.claims import CLAIMS, DIRECTIONS, NAME, findings, has_learned, lacks_of, moves_of
from sims.hyperparameter_transfer.nets import (
    BASE_EPSILON,
    CONDITIONS,
    DIGIT_IMAGES,
    FAMILIES,
    GPT,
    OPTIMIZERS,
    RESIDUAL,
    NetPlace,
    chance_loss,
    data_of,
    learned_loss,
    net_of,
    role_factors_of,
)

LISTED = "whether tuned base rates stay over width and depth, by table"

# What is asked for.


def decays_of(written: str, given: Sequence[float]) -> list[float]:
    """Positive numbers in order, each once: without a decay a table has nothing to carry."""
    return sorted({require_positive(written, decay, why="it is a weight decay, which tables carry") for decay in given})


NETS, TRAINING = "nets", "training"
OPTIONS = (
    Option("families", "residual nets, gpt or both", metavar="NAME", many="+", check=chosen_of(FAMILIES), group=NETS),
    Option(
        "optimizers",
        f"of {', '.join(OPTIMIZERS)}: of a hybrid the first steps hidden weights",
        metavar="NAME",
        many="+",
        check=chosen_of(OPTIMIZERS),
        group=NETS,
    ),
    Option(
        "tables",
        "of many (condition 3.1, for branches of two and more layers), one (condition B.1), standard (default: all)",
        default=list(CONDITIONS),
        metavar="NAME",
        many="+",
        check=chosen_of(CONDITIONS),
        group=NETS,
    ),
    Option(
        "widths",
        "widths at the fewest blocks; the least is the base model's",
        int,
        metavar="N",
        many="+",
        check=ladder_of(2, "a move over the width"),
        group=NETS,
    ),
    Option(
        "depths",
        "numbers of blocks at the least width; the least is the base model's",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, "a move over the depth", maximum=MOST_TRAINED, why="blocks"),
        group=NETS,
    ),
    Option(
        "larger",
        "times so many units, and blocks, in all nets but the base model (default: 1)",
        int,
        1,
        metavar="M",
        check=counted("a factor on sizes"),
        group=NETS,
    ),
    Option("tokens", "characters of a window of text", int, 16, metavar="T", check=counted("characters"), group=NETS),
    Option("samples", "digits that are trained on (default: all)", int, group=TRAINING),
    Option("steps", "steps of training; windows of text are met once", int, check=counted("steps"), group=TRAINING),
    Option(
        "batch_size",
        "samples of a mini-batch",
        int,
        8,
        metavar="B",
        check=counted("samples of a batch"),
        group=TRAINING,
    ),
    Option(
        "decays",
        "weight decays of the base model, of which the best is carried",
        float,
        metavar="D",
        many="+",
        check=decays_of,
        group=TRAINING,
    ),
    Option(
        "tuning_seeds",
        "nets that every rate is tuned on, 2 or more",
        int,
        metavar="S",
        check=counted("one seed has no standard error", minimum=2),
        group=TRAINING,
    ),
    SPACING,
)
BOTH: dict[str, Any] = {"optimizers": ["adamw", "muon-adamw"]}
DECAYS = [0.0625, 0.25, 1.0]
PRESETS = {
    "smoke": Preset(
        "10 s",
        **BOTH | {"families": ["residual"], "widths": [32, 64], "depths": [2, 4], "decays": [0.0625, 0.25]},
        **{"samples": 400, "steps": 32, "batch_size": 16, "tuning_seeds": 3, "draws": 4},
    ),
    "default": Preset(
        "4 min",
        **BOTH | {"families": ["residual"], "widths": [32, 128], "depths": [4, 32], "decays": DECAYS},
        **{"samples": 1024, "steps": 96, "batch_size": 16, "tuning_seeds": 12, "draws": 8},
    ),
    "evidence": Preset(
        "85 min",
        "nets that learn: base rates of GPTs stay over the depth under condition 3.1, and over the width by "
        "AdamW; by Muon they move by -0.58 octaves to width 128; more in docs/findings.md",
        **BOTH | {"families": ["residual", "gpt"], "widths": [32, 128], "depths": [4, 16], "decays": DECAYS},
        **{"samples": None, "steps": 448, "batch_size": 8, "tuning_seeds": 8, "draws": 6},
    ),
    "paper": Preset(
        "60 h",
        **BOTH | {"families": ["residual", "gpt"], "widths": [32, 64, 128, 256], "depths": [4, 8, 16, 32]},
        **{"decays": DECAYS, "samples": None, "steps": 1000, "batch_size": 8, "tuning_seeds": 12, "draws": 12},
    ),
}

# What is measured.

OF_SIZES = {
    "tuned_rate_log10": ("log10 of the base rate that minimises the training loss", ""),
    "located": ("nets whose loss has a minimum over the rates", ""),
    "tuned_loss": ("training loss at the tuned rate", "of nets that it was not tuned on"),
    "carried_loss": ("training loss at the rate tuned on the base model", "of the same nets"),
}
VARIABLES = (
    *(
        Variable(f"{name}_by_{direction}", words, f"{definition}; over the {direction}".removeprefix("; "))
        for name, (words, definition) in OF_SIZES.items()
        for direction in DIRECTIONS
    ),
    Variable("decay_rate_log10", "log10 of the tuned rate of the base model, by weight decay"),
    Variable("decay_loss", "training loss of the base model at that rate", "of nets that it was not tuned on"),
    Variable("base_decay", "weight decay of the base model with the least mean loss, which is carried"),
    Variable("chance_loss", "loss of equal probabilities"),
    Variable("learned_loss", "loss below which a net has learned"),
    Variable("family", "family of nets"),
    Variable("decay", "weight decay of the base model"),
)


def base_of(options: argparse.Namespace) -> tuple[int, int]:
    """Width and blocks of the base model."""
    return options.widths[0], options.depths[0]


def sizes_of(options: argparse.Namespace, direction: str) -> list[tuple[int, int]]:
    """(width, depth) of every net of one ladder: all but the base model are ``--larger``."""
    width, depth = base_of(options)
    if direction == "width":
        return [(width, depth), *((options.larger * wider, depth) for wider in options.widths[1:])]
    return [(width, depth), *((width, options.larger * deeper) for deeper in options.depths[1:])]


def grid(options: argparse.Namespace, direction: str) -> list[NetPlace]:
    """Every place of one ladder, sizes running first."""
    axes = (options.families, options.optimizers, options.tables, sizes_of(options, direction))
    return [NetPlace(family, optimizer, table, *size) for family, optimizer, table, size in product(*axes)]


def distinct_places(options: argparse.Namespace) -> list[NetPlace]:
    """Those of both ladders, of those where tables give the same numbers the first."""
    every = (place.first_alike(base_of(options)) for direction in DIRECTIONS for place in grid(options, direction))
    return list(dict.fromkeys(every))


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The search at every distinct place, with the least of the weight decays."""
    require_installed(DIGIT_IMAGES)
    deepest = sizes_of(options, "depth")[-1][1]
    require_count(f"--depths times --larger {options.larger}", deepest, maximum=MOST_TRAINED, why="blocks")
    if GPT in options.families:
        for width, _ in sizes_of(options, "width"):
            require_whole_heads(width)
    base, windows = base_of(options), options.steps * options.batch_size
    data = {}
    for family in options.families:
        net = net_of(NetPlace(family, options.optimizers[0], "many", *base), base, options.tokens)
        data[family] = data_of(family, net, options.samples, windows, options.seed)
    tunings = [_tuning(options, place, data[place.family]) for place in distinct_places(options)]
    for tuning in tunings:
        tuning.checked.require_memory(Workers.of(options.workers).here)
    return {"tunings": tunings, "decays": options.decays}


def _tuning(options: argparse.Namespace, place: NetPlace, data: InputsAndTargets) -> Tuning:
    """With seeds that all tables share, so that their losses compare, and no other size has."""
    base = base_of(options)
    label = f"{place.family} by {place.optimizer}, {place.width} x {place.depth}"
    training = attributes(options, "steps", "batch_size") | {"optimizer": place.optimizer, "precision": "float32"}
    training |= {"epsilon": BASE_EPSILON, "weight_decay": options.decays[0]}
    return Tuning(
        net=net_of(place, base, options.tokens),
        data=data,
        training=training | {"role_factors": role_factors_of(place, base)},
        seeds=own_seeds(options.seed, label, options.tuning_seeds),
        spacing=options.spacing,
        curvature_draws=0,
    )


def _decaying(tuning: Tuning, decay: float) -> Tuning:
    return replace(tuning, training={**tuning.training, "weight_decay": decay})


def measure(options: argparse.Namespace, results: Results, tunings: list[Tuning], decays: list[float]) -> xr.Dataset:
    """Tuned rates of all sizes and losses at them and at the carried rate, under the best decay of the base model."""
    searches = dict(zip(distinct_places(options), tunings, strict=True))
    models = [NetPlace(*names, "many", *base_of(options)) for names in product(options.families, options.optimizers)]
    on_base = _on_base(options, results, [searches[model] for model in models])
    decaying, carried = [], []
    for place, tuning in searches.items():
        of_base = on_base.sel(family=place.family, optimizer=place.optimizer)
        decay = float(of_base["base_decay"])
        decaying.append(_decaying(tuning, decay))
        carried.append(10.0 ** float(of_base["decay_rate_log10"].sel(decay=decay)))
    tuned = tune_all(decaying, workers=options.workers, store=results.pieces)
    rates = [[float(of_net["tuned_rate"]), rate] for of_net, rate in zip(tuned, carried, strict=True)]
    losses = _losses(options, results, decaying, rates)
    rows = {
        place: {name: float(of_net[name]) for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
        | {"located": of_net.attrs["located"], "tuned_loss": at_tuned, "carried_loss": at_carried}
        for place, of_net, (at_tuned, at_carried) in zip(searches, tuned, losses, strict=True)
    }
    ladders = [_ladder(options, direction, rows) for direction in DIRECTIONS]
    data = {model.family: searches[model].data for model in models}
    of_families = [
        {"chance_loss": chance_loss(family), "learned_loss": learned_loss(family, of_family)}
        for family, of_family in data.items()
    ]
    said = attributes(options, "tokens", "steps", "batch_size", "tuning_seeds", "spacing")
    return xr.merge([*ladders, on_base, over({"family": list(data)}, of_families)]).assign_attrs(said)


def _on_base(options: argparse.Namespace, results: Results, tunings: Sequence[Tuning]) -> xr.Dataset:
    """Tuned rates and losses of the base models by weight decay, and the decay with the least mean loss."""
    axes: Axes = {"family": options.families, "optimizer": options.optimizers, "decay": options.decays}
    decaying = [_decaying(tuning, decay) for tuning, decay in product(tunings, options.decays)]
    tuned = tune_all(decaying, workers=options.workers, store=results.pieces)
    losses = _losses(options, results, decaying, [[float(of_net["tuned_rate"])] for of_net in tuned])
    names = {"decay_rate_log10": "tuned_rate_log10", "decay_rate_log10_stderr": "tuned_rate_log10_stderr"}
    rows = [
        {name: float(of_net[own]) for name, own in names.items()} | {"decay_loss": loss}
        for of_net, (loss,) in zip(tuned, losses, strict=True)
    ]
    dataset = over(axes, rows, "draw")
    means = dataset["decay_loss"].mean("draw", skipna=False).fillna(np.inf)
    return dataset.assign(base_decay=dataset["decay"][means.argmin("decay")].drop_vars("decay"))


def _losses(
    options: argparse.Namespace, results: Results, tunings: Sequence[Tuning], rates: Sequence[Sequence[float]]
) -> list[list[Array]]:
    """Losses of nets that were not tuned on, (draws,) at each rate of a net, so that none is chosen; NaN without it."""
    runs = []
    for tuning, wanted in zip(tunings, rates, strict=True):
        after = tuning.each_seed[-1] + 1
        if known := sorted({rate for rate in wanted if np.isfinite(rate)}):
            runs.append(replace(tuning, seeds=range(after, after + options.draws)).run(known))
    made = iter(results.draw(runs))
    nothing = np.full(options.draws, np.nan)
    losses = []
    for wanted in rates:
        trained = next(made)["final_loss"] if np.isfinite(wanted).any() else None
        losses.append(
            [nothing if trained is None or np.isnan(rate) else trained.sel(rate=rate).values for rate in wanted]
        )
    return losses


def _ladder(options: argparse.Namespace, direction: str, rows: Mapping[NetPlace, Mapping[str, Any]]) -> xr.Dataset:
    """NAME_by_width or NAME_by_depth of all that a row has, over the families, optimizers, tables and sizes."""
    axes: Axes = {"family": options.families, "optimizer": options.optimizers, "table": options.tables}
    axes |= {direction: [size[DIRECTIONS.index(direction)] for size in sizes_of(options, direction)]}
    base = base_of(options)
    made = over(axes, [rows[place.first_alike(base)] for place in grid(options, direction)], "draw")
    names = {name: name.removesuffix("_stderr") for name in map(str, made.data_vars)}
    return made.rename({name: f"{own}_by_{direction}{name.removeprefix(own)}" for name, own in names.items()})


# What is printed.

WORDS = {
    "base rate": "the learning rate of the base model's hidden weights, which the table multiplies for every other; "
    "the tuned one minimises the training loss after the last step.",
    "move": "log2 of the base rate tuned at a size over the one tuned at the base model.",
    "loss": "training loss at the rate tuned at this size, of nets that were not tuned on.",
    "lack": "loss of the same nets at the carried rate, the base model's tuned one, less that loss; what is above "
    "chance counts as chance.",
    "not learned": "the mean loss is above a third of chance (digits), or above what a pair of letters tells of the "
    "next one (text); such sizes count for no verdict.",
    "condition": "tables of Zheng et al. 2026 for branches of two and more layers (3.1), and of one (B.1): muP under "
    "scaling of width and depth.",
    "the standard": "the standard parameterization (SP): no hyperparameter scales with the net, the variance of hidden "
    "weights included.",
}
HEADER = ["tuned rate", "move, octaves", "loss", "lack"]
NOT_LEARNED = "*"
NOTE = f" ({NOT_LEARNED} not learned)"


def _answer(dataset: xr.Dataset, judged: Sequence[Finding]) -> str:
    stays = [finding for finding in judged if "stays within" in finding.claim]
    every = {words: _at_largest(dataset, name) for name, words in CONDITIONS.items()}
    ends = {words: pairs for words, pairs in every.items() if pairs}
    if not ends:
        return answer(stays, "none of the largest nets has learned beside its base model")
    moves = ", ".join(f"{words} {_farthest([move for move, _ in pairs], 1)}" for words, pairs in ends.items())
    lacks = ", ".join(f"{words} {_farthest([lack for _, lack in pairs], 3)}" for words, pairs in ends.items())
    return answer(
        stays,
        f"from the base model to the largest nets the tuned rate moves most by (in octaves, factors of 2): {moves}; "
        f"training them at the carried rate costs most (in the loss): {lacks}",
    )


# A number and its error.
Measured = tuple[float, float]


def _at_largest(dataset: xr.Dataset, name: str) -> list[tuple[Measured, Measured]]:
    """Moves and lacks of a table at the largest sizes, of nets that have learned there and at the base model."""
    pairs = []
    for family, optimizer, direction, of_table in _places(dataset):
        moves = moves_of(dataset, family, optimizer, of_table, direction)
        if of_table == name and moves.counted[-1]:
            lacks, errors = lacks_of(dataset.sel(family=family, optimizer=optimizer, table=name), direction)
            move = float(moves.octaves[-1]), float(moves.stderr[-1])
            pairs.append((move, (float(lacks[-1]), float(errors[-1]))))
    return pairs


def _farthest(every: Sequence[Measured], digits: int) -> str:
    """The number that lies farthest from 0, with its error."""
    value, error = max(every, key=lambda each: abs(each[0]))
    return f"{value:+.{digits}f} +- {error:.{digits}f}"


def _ends(dataset: xr.Dataset) -> Grid:
    """Every table at the largest size of each ladder."""
    lines = []
    for family, optimizer, direction, name in _places(dataset):
        _, *cells = _cells(dataset, family, optimizer, direction, name)[-1]
        lines.append([family, optimizer, direction, CONDITIONS[name], *cells])
    ladders = (f"{direction} {span(dataset[direction].values)}" for direction in DIRECTIONS)
    return table(
        [["nets", "by", "over", "table"], HEADER], lines, f"At the largest size, of {', '.join(ladders)}{NOTE}"
    )


def _places(dataset: xr.Dataset) -> list[tuple[str, str, str, str]]:
    """Family, optimizer, direction and table; of tables that give the same numbers over the width, the first."""
    families, optimizers, tables = (map(str, dataset[dim].values) for dim in ("family", "optimizer", "table"))
    every = product(families, optimizers, DIRECTIONS, tables)
    return [place for place in every if place[2:] != ("width", "one") or "many" not in dataset["table"].values]


def _cells(dataset: xr.Dataset, family: str, optimizer: str, direction: str, name: str) -> list[list[str]]:
    """Of every size of a ladder: the size, the tuned rate, its move, the loss at it, and what the carried one lacks."""
    at = dataset.sel(family=family, optimizer=optimizer, table=name)
    moves = moves_of(dataset, family, optimizer, name, direction)
    octaves, errors = (np.concatenate([[np.nan], values]) for values in (moves.octaves, moves.stderr))
    losses, learned = at[f"tuned_loss_by_{direction}"].mean("draw", skipna=False).values, has_learned(at, direction)
    lines = []
    for place, (size, lack, error) in enumerate(zip(at[direction].values, *lacks_of(at, direction), strict=True)):
        rate = number(10.0 ** float(at[f"tuned_rate_log10_by_{direction}"][place]))
        moved = MISSING if np.isnan(octaves[place]) else f"{octaves[place]:+.2f} +- {errors[place]:.2f}"
        loss = number(losses[place]) + ("" if learned[place] else NOT_LEARNED)
        lines.append([label(size), rate, moved, loss, MISSING if np.isnan(lack) else f"{lack:+.3f} +- {error:.3f}"])
    return lines


def _ladders(dataset: xr.Dataset) -> list[Grid]:
    """Every size, a table for each ladder of each kind of net."""
    grids = []
    for family, optimizer, direction in dict.fromkeys(place[:3] for place in _places(dataset)):
        lines = [
            [CONDITIONS[name], *cells]
            for *at, name in _places(dataset)
            if tuple(at) == (family, optimizer, direction)
            for cells in _cells(dataset, family, optimizer, direction, name)
        ]
        title = f"{FAMILIES[family]} by {optimizer}, over the {direction}{NOTE}"
        grids.append(table([["table", direction], HEADER], lines, title))
    return grids


def _decays(dataset: xr.Dataset) -> Grid:
    """Rates and losses of the base models under every weight decay."""
    lines = []
    for family, optimizer in product(*(map(str, dataset[dim].values) for dim in ("family", "optimizer"))):
        at = dataset.sel(family=family, optimizer=optimizer)
        for decay in at["decay"].values:
            rate, losses = (
                number(10.0 ** float(at["decay_rate_log10"].sel(decay=decay))),
                at["decay_loss"].sel(decay=decay),
            )
            error = float(losses.std("draw", ddof=1)) / np.sqrt(losses.size)
            chosen = "carried" if decay == float(at["base_decay"]) else ""
            lines.append(
                [
                    family,
                    optimizer,
                    label(decay),
                    rate,
                    measured(float(losses.mean("draw", skipna=False)), error),
                    chosen,
                ]
            )
    return table(
        ["nets", "by", "decay", "tuned rate", "loss at it", "to all sizes"], lines, "Weight decays of the base models"
    )


ON_DATA = {RESIDUAL: "residual nets on digits", GPT: "GPTs on text, {tokens} characters a window"}


def _heading(dataset: xr.Dataset) -> str:
    nets = "; ".join(ON_DATA[str(family)] for family in dataset["family"].values)
    return (
        f"{nets}: {{steps}} steps of batches of {{batch_size}} at a constant rate;\nevery rate is tuned on "
        "{tuning_seeds} nets, and {draws} others train at it and at the base model's; seed {seed}"
    )


REPORT = Report(
    question="Does a tuned base rate stay the best of larger nets under muP (condition 3.1)?",
    answer=_answer,
    heading=_heading,
    brief=_ends,
    parts=[_ends, _ladders, _decays],
    findings=findings,
    words=WORDS,
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    require_installed=lambda: require_installed(DIGIT_IMAGES),
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command("hyperparameter_transfer")
