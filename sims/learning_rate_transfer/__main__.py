"""Zero-shot transfer: a learning rate is tuned on one net and carried to deeper ones, which are trained at it.

Nets of every family are tuned at every depth. From the first depth the tuned rate is carried to the others by each
rule: unchanged, by L^(-3/2), by the family's own power, by the finite-depth rule, by PathSum, by a power through two
tuned depths, by 2 / lambda_max, by one step of the optimizer that trains, and with the wrong sign. Nets that were not
tuned on are trained at each of these rates and at the rate tuned at their own depth, on the same mini-batches from the
same weights. The report says by how many decades each rule misses the tuned rate, and what that costs in training loss.
With --across width, over widths.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, Array, derived_seed
from meanfield.execution import scales_run, simulate_all, training_run
from meanfield.nets import Net
from meanfield.transfer import (
    SCALES,
    GivenPower,
    Rule,
    Tuning,
    change_that_carries,
    median_scale,
    named_rate,
    naming_net,
    rate_stays,
    step_that_names,
    tune_all,
    widens,
)
from meanfield.verification import Finding
from sims.common.command import TRAINED_ON, Option, Preset, counted, ladder
from sims.common.datasets import Variable, over
from sims.common.images import DataShape, require_installed
from sims.common.report import Report, answer, folded
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import MISSING, Column, Grid, Table, number, predicted, table
from sims.common.training_data import InputsAndTargets, shared_training_data, trained_net
from sims.common.tuned_nets import RESIDUAL, STEP_DRAWS, TUNING_SEEDS, losses_at
from sims.learning_rate_transfer import claims, first_steps
from sims.learning_rate_transfer.claims import CLAIMS, TUNED, UNCHANGED, loss_costs, mean_and_error

LISTED = "what a carried rate costs in training, rule by rule"

# The rules of a run, in the order of reports; some know the depth alone.
# By what one step of the optimizer that trains moves.
OF_STEP = {"step_outputs": "outputs", "step_relative": "relative", "step_absolute": "absolute"}
# These, and as `mf.transfer_learning_rate` has it on data where nothing more is asked for.
BY_STEP = ("one_step", *OF_STEP)
EVERYWHERE = (
    "unchanged",
    "finite_depth",
    "auto",
    *BY_STEP,
    "starting",
    "two_anchors",
    "stable_ratio",
    "stable_rate",
    "wrong_sign",
)
OF_DEPTH = ("three_halves", "power_law", "path_sum")
RULES = {"depth": (EVERYWHERE[0], *OF_DEPTH, *EVERYWHERE[1:]), "width": EVERYWHERE}
# Slopes of losses are taken over so many decades on either side.
REACH = 1 / 8
# Negative controls: plain nets need smaller rates the deeper they are, and no net a larger one as n^(1/2).
WRONG_SIGN = {"depth": GivenPower(1.5), "width": GivenPower(0.5, "width")}


def _steps_of(optimizer: str) -> tuple[str, str]:
    """The first step of an optimizer, and the one that carries its rates, which is mostly the same."""
    return optimizer, step_that_names(optimizer)


@dataclass(frozen=True)
class Ladder:
    """Nets that differ in depth or in width, from the smallest, and `mf.tuned_rate` of each.

    Attributes:
        across: "depth" or "width".
        segment: so many sizes share two anchors, their first two.
        chance: the loss of equal probabilities, as which losses above it count.
        optimizer: that trains.
        steps: `mf.step_scales` of its first step, net by net.
        carrying: the same of the step that carries its rates: of Muon beside AdamW that in noise.
        naming: the same of the net that names its rate with nothing tuned, mostly itself.
    """

    nets: Sequence[Any]
    tuned: Sequence[xr.Dataset]
    across: str
    segment: int
    chance: float
    optimizer: str = "sgd"
    steps: Sequence[xr.Dataset] = ()
    carrying: Sequence[xr.Dataset] = ()
    naming: Sequence[xr.Dataset] = ()

    def seeds_tuned(self, place: int) -> Array:
        """log10 of the tuned rate of each seed: (seed,); NaN where training showed no minimum."""
        return np.asarray(self.tuned[place]["seed_tuned_rate_log10"])

    def carried(self, rule: str, place: int) -> Array:
        """log10 of the rate that a rule gives for one net from what every seed found on the others: (seed,).

        Raises:
            TypeError, ValueError: the rule does not serve these nets.
        """
        first = self.seeds_tuned(0)
        if rule == "stable_rate":
            return np.full(len(first), self._log_stable(place))
        if rule == "stable_ratio":
            return first + self._log_stable(place) - self._log_stable(0)
        if rule == "two_anchors":
            return self._from_anchors(place)
        if rule == "starting":
            return np.full(len(first), np.log10(self._named(place)[0]))
        if rule == "one_step" and self._stays(place):
            return first
        if rule in BY_STEP:
            end, start = (self._scale(self._moved(rule, place), at)[0] for at in (place, 0))
            return first + np.log10(end / start)
        known: str | Rule = WRONG_SIGN[self.across] if rule == "wrong_sign" else rule
        return first + np.log10(self._ratio(known, 0, place))

    def carried_error(self, rule: str, place: int) -> float:
        """Standard error of `carried` from the draws of the stable rate, or of the first step, in decades."""
        used = {"stable_rate": [place], "stable_ratio": [0, place]}.get(rule, [])
        relative = [float(self.tuned[at]["stable_rate_stderr"] / self.tuned[at]["stable_rate"]) for at in used]
        if rule == "starting":
            relative = [self._named(place)[1]]
        elif rule in BY_STEP and not (rule == "one_step" and self._stays(place)):
            relative = [self._scale(self._moved(rule, place), at)[1] for at in (0, place)]
        return float(np.hypot.reduce([0.0, *relative]) / np.log(10))

    def loss_slope(self, place: int, log_rate: float) -> float:
        """d(loss) / d(log10 rate) at a rate: over a quarter of a decade of the mean loss of the nets that were tuned.

        Between rates that a seed was tried at its loss is interpolated; beyond them it is constant.
        """
        ends = [log_rate - REACH, log_rate + REACH]
        below, above = losses_at(ends, self.tuned[place]["final_loss"], self.chance).mean(axis=0)
        return float(above - below) / (2 * REACH)

    @property
    def _step(self) -> str:
        """The step that carries and names rates."""
        return _steps_of(self.optimizer)[-1]

    def _named(self, place: int) -> tuple[float, float]:
        """The starting rate and its relative error."""
        return named_rate(self.naming[place], self.nets[place], self._step)

    def _moved(self, rule: str, place: int) -> tuple[str, bool]:
        """What a step moves by which a rule carries to a net, and whether it is the first step of the optimizer."""
        if rule in OF_STEP:
            return OF_STEP[rule], True
        widened = widens(self.nets[0], self.nets[place])
        return change_that_carries(self.nets[place], self._step, widened=widened), False

    def _scale(self, moved: tuple[str, bool], place: int) -> tuple[float, float]:
        """The scale of one step of a net, and its relative error."""
        of, is_first = moved
        return median_scale((self.steps if is_first else self.carrying)[place], SCALES[of])

    def _stays(self, place: int) -> bool:
        """Whether a rate that is carried on data stays, as it does over widths of some nets."""
        return rate_stays(self.nets[0], self.nets[place], self._step)

    def _log_stable(self, place: int) -> float:
        return float(np.log10(self.tuned[place]["stable_rate"]))

    def _from_anchors(self, place: int) -> Array:
        """By the power through the first two sizes of the segment, seed by seed."""
        low = place - place % self.segment
        if place - low < 2:
            raise ValueError("it is tuned here, at an anchor")
        carried = []
        for rates in zip(self.seeds_tuned(low), self.seeds_tuned(low + 1), strict=True):
            if np.isfinite(rates).all():
                first, second = zip(10.0 ** np.array(rates), self.nets[low : low + 2], strict=True)
                carried.append(rates[0] + np.log10(self._ratio(GivenPower.through(first, second), low, place)))
            else:
                carried.append(np.nan)
        return np.array(carried)

    def _ratio(self, rule: str | Rule, start: int, end: int) -> float:
        """Rate at one net over that at another; what a premise warns of is for those who use the rate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mf.PremiseWarning)
            return mf.transfer_learning_rate(1.0, self.nets[start], self.nets[end], rule=rule)


# What is asked for.

OPTIONS = (
    Option("families", "families of nets (quote names of several words)", metavar="NAME", many="+", group="nets"),
    Option("across", "what grows", default="depth", choices=("depth", "width"), group="nets"),
    Option("depths", "depths; the rate is carried from the first of them", int, metavar="L", many="+", group="nets"),
    Option("widths", "widths or channels, with --across width", int, metavar="N", many="+", group="nets"),
    Option("depth", "depth, with --across width", int, 4, metavar="L", group="nets"),
    Option("width", "width or channels, with --across depth", int, 32, metavar="N", group="nets"),
    Option(
        "segment",
        "sizes of a segment; its first two are tuned",
        int,
        4,
        metavar="K",
        check=counted("two anchors and a net to carry to", minimum=3),
        group="nets",
    ),
    Option(
        "data", "digits, mnist, text (Transformers), or a .npz or .nc file with inputs and labels", group="training"
    ),
    Option("samples", "of the data (default: all)", int, group="training"),
    Option("epochs", "passes over the data", int, check=counted("passes over the data"), group="training"),
    Option("batch_size", "samples of a mini-batch", int, metavar="B", check=counted("samples"), group="training"),
    Option("optimizer", "sgd (default), or another of the library's optimizers", default="sgd", group="training"),
    Option(
        "schedule",
        "constant (default) or warmup_cosine, of which a rate is the peak",
        default="constant",
        group="training",
    ),
    TUNING_SEEDS,
    Option("spacing", "finest steps between rates that are tried, in decades", float, group="training"),
    Option("precision", "of weights", default="float32", choices=("float32", "float64"), group="training"),
    TRAINED_ON,
)
PRESETS = {
    "smoke": Preset(
        "6 s",
        families=["mlp", "residual mlp init"],
        depths=[2, 4, 8],
        widths=[16, 32, 64],
        data="digits",
        samples=600,
        tuning_seeds=2,
        spacing=0.25,
        draws=8,
        epochs=1,
        batch_size=32,
    ),
    "default": Preset(
        "70 s",
        families=["mlp", "cnn", "residual mlp init", "residual mlp multiplier"],
        depths=[3, 5, 8, 12],
        widths=[16, 32, 64],
        data="digits",
        samples=1024,
        tuning_seeds=12,
        spacing=0.125,
        draws=16,
        epochs=1,
        batch_size=32,
    ),
    "evidence": Preset(
        "60 min",
        "nets that learn: under descent a rate carried by what one step moves of the outputs cost 0.011 +- 0.009 "
        "nats, an unchanged one 0.258, L^(-3/2) 0.068; more in docs/findings.md",
        families=["mlp", *RESIDUAL, "residual cnn init", "residual cnn multiplier"],
        depths=[2, 4, 8, 16],
        widths=[16, 32, 64],
        data="digits",
        samples=1792,
        tuning_seeds=8,
        spacing=0.25,
        draws=16,
        epochs=8,
        batch_size=16,
    ),
    "paper": Preset(
        "20 h",
        families=[
            "mlp",
            "cnn",
            "residual cnn init",
            "residual cnn multiplier",
            "transformer pre",
            "transformer post",
            "loop linear",
            "loop sqrt",
        ],
        depths=[3, 5, 8, 12, 18, 27],
        widths=[16, 32, 64, 128],
        data="mnist",
        samples=None,
        tuning_seeds=16,
        spacing=0.125,
        draws=32,
        epochs=1,
        batch_size=32,
    ),
}

# What is measured.

# What a dataset says of the run.
NAMES = ("across", "depths", "widths", "depth", "width", "segment", "data", "samples", "tuning_seeds", "spacing")

VARIABLES = (
    Variable("rate_log10", "log10 of the learning rate that a rule carries", "NaN where the rule does not serve"),
    Variable("decades_off", "log10 of the carried rate over the tuned one", "mean over the nets that were tuned"),
    Variable(
        "loss_slope",
        "change of the final loss per decade of the learning rate, at the carried rate",
        "of the nets that were tuned, losses above that of equal probabilities counted as that",
    ),
    Variable("family", "family of nets"),
    Variable("rule", "rule that carries a rate"),
    Variable("size", "depth or width, whichever grows"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """Nets and data of every family over the sizes, and how they are trained."""
    require_installed(options.data)
    option, most = f"--{options.across}s", MOST_LAYERS if options.across == "depth" else None
    given = options.depths if options.across == "depth" else options.widths
    options.sizes = ladder(option, given, 2, "carrying a rate", maximum=most)
    options.families = list(dict.fromkeys(options.families))
    nets = {family: [_net(options, family, size) for size in options.sizes] for family in options.families}
    how = {"samples": options.samples, "seed": options.seed}
    data = {family: shared_training_data(options.data, of_family, **how) for family, of_family in nets.items()}
    names = ("epochs", "batch_size", "optimizer", "schedule", "precision", "backend")
    training = {name: getattr(options, name) for name in names}
    for family, of_family in nets.items():
        for net, pair in zip(of_family, data[family], strict=True):
            _tuning(options, family, net, pair, training)
    described = {name: getattr(options, name) for name in NAMES}
    return {"nets": nets, "data": data, "training": training, "described": described}


def _net(options: argparse.Namespace, family: str, size: int) -> Net:
    sizes = {"depth": options.depth, "width": options.width} | {options.across: size}
    return trained_net(family, sizes["depth"], sizes["width"], options.data)


def _tuning(
    options: argparse.Namespace, family: str, net: Net, data: InputsAndTargets, training: dict[str, Any]
) -> Tuning:
    """The search for the best rate of one net; nets of a family share their seeds, and so the mini-batches."""
    seeds = _seeds(options, f"tuned {family}", options.tuning_seeds)
    return Tuning(net=net, data=data, training=training, seeds=seeds, spacing=options.spacing)


def _seeds(options: argparse.Namespace, label: str, count: int) -> list[int]:
    return [derived_seed(options.seed, f"{label} {number}") for number in range(count)]


def measure(
    options: argparse.Namespace,
    results: Results,
    nets: dict[str, list[Net]],
    data: dict[str, list[InputsAndTargets]],
    training: dict[str, Any],
    described: dict[str, Any],
) -> xr.Dataset:
    """Tuned and carried rates by family and size, and losses at them by draw."""
    pairs = [(family, net, pair) for family in nets for net, pair in zip(nets[family], data[family], strict=True)]
    searches = [_tuning(options, family, net, pair, training) for family, net, pair in pairs]
    tuned = iter(tune_all(searches, workers=options.workers, store=results.pieces))
    first, later = _steps_of(options.optimizer)
    namers = [replace(search, net=naming_net(search.net, later)) for search in searches]
    asked = {first: searches, later: [*searches, *namers]}
    drawn = {step: _steps(options, results, of_step, step) for step, of_step in asked.items()}
    steps, carrying, naming = map(iter, (drawn[first], drawn[later], drawn[later][len(searches) :]))
    shared = options.across, options.segment, _chance(options), options.optimizer
    ladders = {
        family: Ladder(
            of_family,
            [next(tuned) for _ in of_family],
            *shared,
            steps=[next(steps) for _ in of_family],
            carrying=[next(carrying) for _ in of_family],
            naming=[next(naming) for _ in of_family],
        )
        for family, of_family in nets.items()
    }
    rates = xr.merge([_tuned_rates(options, ladders), _carried_rates(options, ladders)])
    losses = _losses(options, results, rates["rate_log10"], nets, data, training)
    said: dict[str, Any] = {name: str(value) for name, value in (described | training).items()}
    said |= {"refusals": json.dumps(_refusals(ladders)), "chance_loss": _chance(options)}
    return rates.assign(loss=losses).assign_attrs(said | {"samples": len(pairs[0][2][1])})


def _steps(options: argparse.Namespace, results: Results, searches: Sequence[Tuning], step: str) -> list[xr.Dataset]:
    """`mf.step_scales` of every net by a step, on the data and in the batches of training; of equal nets once."""
    how = {"draws": STEP_DRAWS, "seed": options.seed, "optimizer": step}
    how |= {"batch_size": options.batch_size, "precision": options.precision}
    runs = {search.net: scales_run(search.net, search.data, **how) for search in searches}
    made = dict(
        zip(runs, simulate_all(list(runs.values()), workers=options.workers, store=results.pieces), strict=True)
    )
    return [made[search.net] for search in searches]


def _chance(options: argparse.Namespace) -> float:
    """The loss where all classes of the data have the same probability."""
    return float(np.log(DataShape.of(options.data).classes))


def _tuned_rates(options: argparse.Namespace, ladders: dict[str, Ladder]) -> xr.Dataset:
    """Tuned rates and stable rates with their errors."""
    names = ("tuned_rate_log10", "tuned_rate_log10_stderr", "stable_rate", "stable_rate_stderr")
    rows = [{name: float(tuned[name]) for name in names} for rungs in ladders.values() for tuned in rungs.tuned]
    return over({"family": list(ladders), "size": options.sizes}, rows)


def _carried_rates(options: argparse.Namespace, ladders: dict[str, Ladder]) -> xr.Dataset:
    """log10 of carried rates, by how much they miss the tuned one, and how steep the loss is there.

    NaN where a rule does not serve.
    """
    rules, places = [TUNED, *RULES[options.across]], range(len(options.sizes))
    rows = [_carried(rungs, rule, place) for rungs in ladders.values() for rule in rules for place in places]
    return over({"family": list(ladders), "rule": rules, "size": options.sizes}, rows)


def _carried(rungs: Ladder, rule: str, place: int) -> dict[str, float]:
    own = rungs.seeds_tuned(place)
    try:
        carried = own if rule == TUNED else rungs.carried(rule, place)
    except (TypeError, ValueError):
        carried = np.full(len(own), np.nan)
    missed = carried - own
    known = np.isfinite(missed)
    if known.sum() < 2 or (place == 0 and rule not in (TUNED, "stable_rate", "starting")):
        return dict.fromkeys(("rate_log10", "decades_off", "decades_off_stderr", "loss_slope"), np.nan)
    error = np.hypot(missed[known].std(ddof=1) / known.sum() ** 0.5, rungs.carried_error(rule, place))
    rate = float(carried[np.isfinite(carried)].mean())
    values = {"rate_log10": rate, "decades_off": missed[known].mean(), "decades_off_stderr": error}
    return values | {"loss_slope": rungs.loss_slope(place, rate)}


def _refusals(ladders: dict[str, Ladder]) -> dict[str, dict[str, str]]:
    """Why a rule does not serve the last net of a family."""
    refusals: dict[str, dict[str, str]] = {family: {} for family in ladders}
    for family, rungs in ladders.items():
        for rule in RULES[rungs.across]:
            try:
                rungs.carried(rule, len(rungs.nets) - 1)
            except (TypeError, ValueError) as error:
                refusals[family][rule] = str(error)
    return refusals


def _losses(
    options: argparse.Namespace,
    results: Results,
    rates_log10: xr.DataArray,
    nets: dict[str, list[Net]],
    data: dict[str, list[InputsAndTargets]],
    training: dict[str, Any],
) -> xr.DataArray:
    """Final losses by family, rule, size and draw: every net under all its rates, from weights nothing was tuned on."""
    places = [(family, place) for family in nets for place in range(1, len(options.sizes))]
    runs, columns = [], []
    for family, place in places:
        wanted = rates_log10.sel(family=family).isel(size=place).values
        rates, of_rule = np.unique(wanted[np.isfinite(wanted)], return_inverse=True)
        seeds = _seeds(options, f"trained {family} {options.sizes[place]}", options.draws)
        net, pair = nets[family][place], data[family][place]
        runs.append(training_run(net, pair, rates=list(10.0**rates), seeds=seeds, **training))
        columns.append((np.flatnonzero(np.isfinite(wanted)), of_rule))
    losses = xr.full_like(rates_log10.expand_dims(draw=options.draws, axis=-1), np.nan).copy()
    for (family, place), (rules, of_rule), run in zip(places, columns, results.draw(runs), strict=True):
        index = {"family": list(nets).index(family), "size": place, "rule": rules}
        losses[index] = run["final_loss"].values[of_rule]
    return losses


# What is printed.

TITLES = {
    "unchanged": "the tuned rate as it is",
    "three_halves": "L^(-3/2)",
    "power_law": "the family's own power",
    "finite_depth": "finite-depth rule",
    "auto": "the library's choice",
    "path_sum": "PathSum",
    "one_step": "one step, as on data",
    "step_outputs": "one step: outputs",
    "step_relative": "one step: layers, relative",
    "step_absolute": "one step: layers",
    "starting": "one step, nothing tuned",
    "two_anchors": "power through two tuned sizes",
    "stable_ratio": "ratio of 2 / lambda_max",
    "stable_rate": "2 / lambda_max, nothing tuned",
    "wrong_sign": "wrong sign (control)",
}
# The rule beside the unchanged rate in the papers' table: the first that serves the family.
CARRIED = ("finite_depth", "power_law", "stable_ratio")
WORDS = {
    "carries by": "rules from theory and 2 / lambda_max are about plain gradient descent, whatever optimizer trains.",
    "one step": "of the optimizer that trains, on the data and in the batches of training: the rate goes as the one at "
    "which that step moves the outputs, or the layers (relative: each over its own size), by 1 in mean squares. As on "
    "data: the change and the step that `mf.transfer_learning_rate` takes where data are given. With nothing tuned: "
    "`mf.starting_rate`.",
    "miss": "log10 of the carried rate less log10 of the tuned one, in decades; mean over the nets that were tuned.",
    "cost": "training loss at the carried rate less that at the rate tuned at this size, of the same nets, which were "
    "not tuned on; losses above chance, that of equal probabilities, count as chance.",
    "init": "residual nets of K blocks, whose branches begin with variance 1/K; multiplier: times K^(-1/2).",
    "raw": "the unchanged rate, as Zhang et al. 2026 call it.",
    "stable": "2 / lambda_max, above which gradient descent leaves a minimum of the curvature at initialisation.",
}


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    costs = {rule: cost for rule, (_, cost, _) in _by_rule(dataset).items()}
    shown = {"unchanged": "unchanged", "three_halves": "by L^(-3/2)", "finite_depth": "by finite depth"}
    parts = [f"{costs[rule]:.2f} {words}" for rule, words in shown.items() if rule in costs]
    return answer(findings[:1], f"mean training loss above that at the tuned rate is {', '.join(parts)}")


def _rules(dataset: xr.Dataset) -> list[str]:
    """Those of the run, in the order of the tables."""
    return [rule for rule in TITLES if rule in dataset["rule"].values]


def _by_rule(dataset: xr.Dataset) -> dict[str, tuple[float, float, float]]:
    """Rule -> median |miss|, mean cost, share of nets at chance or above, over families and sizes that it serves."""
    trained = dataset.isel(size=slice(1, None))
    costs, chance = loss_costs(trained), trained.attrs["chance_loss"]
    numbers = {}
    for rule in _rules(dataset):
        at, loss = trained.sel(rule=rule), trained["loss"].sel(rule=rule)
        if at["rate_log10"].notnull().any():
            at_chance = float((loss >= chance).sum() / loss.notnull().sum())
            numbers[rule] = float(abs(at["decades_off"]).median()), float(costs.sel(rule=rule).mean()), at_chance
    return numbers


def _rule_table(dataset: xr.Dataset) -> Grid:
    rows = []
    trained = dataset["rate_log10"].isel(size=slice(1, None))
    for rule, (missed, cost, at_chance) in _by_rule(dataset).items():
        served = int(trained.sel(rule=rule).notnull().sum())
        rows.append([rule, TITLES[rule], str(served), f"{missed:.2f}", f"{cost:.3f}", f"{at_chance:.0%}"])
    header = ["rule", "carries by", "nets", "median |miss|", "mean cost", "at chance"]
    return table([header[:2], header[2:]], rows, "All families and sizes that a rule serves")


def _brief_table(dataset: xr.Dataset) -> Grid:
    """What every rule misses and costs, with what that means."""
    title = (
        "miss: decades from the rate tuned at that size; cost: training loss above that at the tuned rate;\n"
        "at chance: share of nets that end no better than guessing"
    )
    return replace(_rule_table(dataset), title=title)


def _paper_tables(dataset: xr.Dataset) -> list[Grid]:
    """A table for each family, in the layout of Zhang et al. 2026, table 5."""
    loss = dataset["loss"].mean("draw", skipna=False)
    by_family = dataset.drop_vars("loss").assign(mean_loss=loss)
    return [_paper_table(by_family.sel(family=family)) for family in dataset["family"].values]


def _paper_table(family: xr.Dataset) -> Grid:
    rule = next((name for name in CARRIED if family["rate_log10"].sel(rule=name).notnull().any()), UNCHANGED)
    misses = {"miss raw": UNCHANGED, "miss carried": rule}
    losses = {"loss raw": UNCHANGED, "loss carried": rule, "loss tuned": TUNED}
    columns = [
        Column("tuned rate", _tuned_rate),
        Column("stable", lambda at: predicted(at, "stable_rate")),
        Column("carried", lambda at: number(10.0 ** _under(at, "rate_log10", rule))),
        *(Column(header, partial(_missed, rule=name)) for header, name in misses.items()),
        *(Column(header, partial(_mean_loss, rule=name)) for header, name in losses.items()),
    ]
    title = f"{family['family'].values}, by {TITLES[rule]}"
    return Table("paper table", title, ["size"], family.attrs["across"], columns)(family)


def _under(at: xr.Dataset, name: str, rule: str) -> float:
    return float(at[name].sel(rule=rule))


def _tuned_rate(at: xr.Dataset) -> str:
    tuned = 10.0 ** float(at["tuned_rate_log10"])
    return f"{tuned:.3g} +- {tuned * np.log(10) * float(at['tuned_rate_log10_stderr']):.1g}"


def _missed(at: xr.Dataset, rule: str) -> str:
    missed = _under(at, "decades_off", rule)
    return MISSING if np.isnan(missed) else f"{missed:+.2f}"


def _mean_loss(at: xr.Dataset, rule: str) -> str:
    return number(_under(at, "mean_loss", rule))


def _by_size(variable: str) -> Callable[[xr.Dataset], list[list[Column]]]:
    """A column for every size of a family but the first, whose rate is carried."""

    def cell(at: xr.Dataset, family: str, size: int) -> str:
        value, error = (float(at[name].sel(family=family, size=size)) for name in (variable, f"{variable}_stderr"))
        return MISSING if np.isnan(value) else f"{value:+.2f} +- {error:.2f}"

    return lambda dataset: [
        [Column(f"{family} {size}", partial(cell, family=family, size=size)) for size in dataset["size"].values[1:]]
        for family in dataset["family"].values
    ]


MISSES = Table("misses", "Miss in decades, by {across}", ["rule"], "rule", _by_size("decades_off"))
COSTS = Table("costs", "Cost in training loss, by {across}", ["rule"], "rule", _by_size("cost"))


def _misses(dataset: xr.Dataset) -> Grid:
    return MISSES(dataset.sel(rule=_rules(dataset)))


def _costs(dataset: xr.Dataset) -> Grid:
    mean, stderr = mean_and_error(loss_costs(dataset))
    return COSTS(dataset.assign(cost=mean, cost_stderr=stderr).sel(rule=_rules(dataset)))


def _refused(dataset: xr.Dataset) -> str:
    by_family = json.loads(dataset.attrs["refusals"])
    lines = [
        f"{family}: {rule} is not served: {why}"
        for family, refused in by_family.items()
        for rule, why in refused.items()
    ]
    return "\n".join(folded(line, "", 2) for line in lines)


def _advice(dataset: xr.Dataset) -> str:
    """What an engineer may take from the numbers of this run."""
    numbers = _by_rule(dataset)

    def cost_and_miss(rule: str) -> str:
        missed, cost, _ = numbers[rule]
        return f"{cost:+.3f} and {missed:.2f}"

    def by_rules(*rules: str) -> str:
        return "; ".join(f"{TITLES[rule]}: {cost_and_miss(rule)}" for rule in rules if rule in numbers)

    words = (
        "For nets like these, mean cost in loss and median miss in decades of one tuned rate that is carried: "
        f"{by_rules('one_step', 'finite_depth', 'stable_ratio', 'three_halves', 'unchanged')}. "
        f"With nothing tuned: {by_rules('starting', 'stable_rate')}. A cost within its error of 0 is that of the tuned "
        "rate itself."
    )
    return folded(words, "", 0)


def _findings(dataset: xr.Dataset) -> list[Finding]:
    return [*claims.findings(dataset), *first_steps.findings(dataset)]


REPORT = Report(
    question="Does a carried learning rate train other nets better than the same rate unchanged?",
    answer=_answer,
    heading="Trained on {data}: {samples} samples, {epochs} epoch(s) of batches of {batch_size}, {optimizer}, "
    "{schedule} rate. The {across} grows (else width {width}, depth {depth}); rates are tuned on {tuning_seeds} nets "
    "of each size and carried from the smallest; losses are of {draws} other nets; seed {seed}",
    brief=_brief_table,
    steps=[("--across width", "rates carried over the width instead of the depth")],
    parts=[_rule_table, _paper_tables, _misses, _costs, _refused, _advice],
    findings=_findings,
    words=WORDS,
)


STUDY = Study(
    name="learning_rate_transfer",
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="6 s",
    require_installed=lambda: require_installed("digits"),
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=(*CLAIMS, *first_steps.CLAIMS),
)


if __name__ == "__main__":
    run_as_command("learning_rate_transfer")
