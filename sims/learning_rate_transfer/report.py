"""The printed report on carried rates: by rule, by how much they miss the tuned rate and what that costs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from sims.common.report import Report, answer, folded
from sims.common.tables import MISSING, Column, Grid, Table, number, predicted, table
from sims.learning_rate_transfer import claims, first_steps
from sims.learning_rate_transfer.claims import TUNED, UNCHANGED, loss_costs, mean_and_error

TITLES = {
    "unchanged": "the tuned rate as it is",
    "three_halves": "L^(-3/2)",
    "power_law": "the family's own power",
    "finite_depth": "finite-depth rule",
    "auto": "the library's choice",
    "path_sum": "PathSum",
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
    "which that step moves the outputs, or the layers (relative: each over its own size), by 1 in mean squares; with "
    "nothing tuned, `mf.starting_rate`.",
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


def _refusals(dataset: xr.Dataset) -> str:
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

    carried = [rule for rule in ("unchanged", "three_halves", "finite_depth", "stable_ratio") if rule in numbers]
    by_rule = "; ".join(f"{TITLES[rule]}: {cost_and_miss(rule)}" for rule in carried)
    words = (
        "For nets like these, mean cost in loss and median miss in decades of one tuned rate that is carried: "
        f"{by_rule}. With nothing tuned, by 2 / lambda_max: {cost_and_miss('stable_rate')}. A cost within its error of "
        "0 is that of the tuned rate itself."
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
    parts=[_rule_table, _paper_tables, _misses, _costs, _refusals, _advice],
    findings=_findings,
    words=WORDS,
)
