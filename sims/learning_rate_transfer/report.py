"""The printed report on carried rates: by rule, by how much they miss the tuned rate and what that costs."""

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import Finding
from meanfield.verification import carried_rates as claims
from sims.common.report import Report, answer, folded
from sims.common.tables import MISSING, number, table

TITLES = {
    "unchanged": "the tuned rate as it is",
    "three_halves": "L^(-3/2)",
    "power_law": "the family's own power",
    "finite_depth": "finite-depth rule",
    "auto": "the library's choice",
    "path_sum": "PathSum",
    "two_anchors": "power through two tuned sizes",
    "stable_ratio": "ratio of 2 / lambda_max",
    "stable_rate": "2 / lambda_max, nothing tuned",
    "wrong_sign": "wrong sign (control)",
}
# The rule beside the unchanged rate in the papers' table: the first that serves the family.
CARRIED = ("finite_depth", "power_law", "stable_ratio")
WORDS = {
    "carries by": "rules from theory and 2 / lambda_max are about plain gradient descent, whatever optimizer trains.",
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
    return answer(findings[:1], f"costs {', '.join(parts)}")


def _rules(dataset: xr.Dataset) -> list[str]:
    """Those of the run, in the order of the tables."""
    return [rule for rule in TITLES if rule in dataset["rule"].values]


def _by_rule(dataset: xr.Dataset) -> dict[str, tuple[float, float, float]]:
    """Rule -> median |miss|, mean cost, share of nets at chance or above, over families and sizes that it serves."""
    trained = dataset.isel(size=slice(1, None))
    costs, chance = claims.loss_costs(trained), trained.attrs["chance_loss"]
    numbers = {}
    for rule in _rules(dataset):
        at, loss = trained.sel(rule=rule), trained["loss"].sel(rule=rule)
        if at["rate_log10"].notnull().any():
            at_chance = float((loss >= chance).sum() / loss.notnull().sum())
            numbers[rule] = float(abs(at["decades_off"]).median()), float(costs.sel(rule=rule).mean()), at_chance
    return numbers


def _rule_table(dataset: xr.Dataset) -> str:
    rows = []
    trained = dataset["rate_log10"].isel(size=slice(1, None))
    for rule, (missed, cost, at_chance) in _by_rule(dataset).items():
        served = int(trained.sel(rule=rule).notnull().sum())
        rows.append([rule, TITLES[rule], str(served), f"{missed:.2f}", f"{cost:.3f}", f"{at_chance:.0%}"])
    header = ["rule", "carries by", "nets", "median |miss|", "mean cost", "at chance"]
    return table([header[:2], header[2:]], rows, "All families and sizes that a rule serves")


def _paper_table(dataset: xr.Dataset, family: str) -> str:
    """One family in the layout of Zhang et al. 2026, table 5."""
    at, across = dataset.sel(family=family), dataset.attrs["across"]
    rule = next((name for name in CARRIED if at["rate_log10"].sel(rule=name).notnull().any()), "unchanged")
    losses = at["loss"].mean("draw", skipna=False)
    rows = []
    for size in at["size"].values:
        here, loss = at.sel(size=size), losses.sel(size=size)
        tuned = 10.0 ** float(here["tuned_rate_log10"])
        error = tuned * np.log(10) * float(here["tuned_rate_log10_stderr"])
        misses = [_signed(float(here["decades_off"].sel(rule=name))) for name in ("unchanged", rule)]
        ends = [number(float(loss.sel(rule=name))) for name in ("unchanged", rule, "tuned")]
        carried = number(10.0 ** float(here["rate_log10"].sel(rule=rule)))
        rows.append(
            [str(size), f"{tuned:.3g} +- {error:.1g}", number(float(here["stable_rate"])), carried, *misses, *ends]
        )
    header = [across, "tuned rate", "stable", "carried", "miss raw", "miss carried"]
    return table([*header, "loss raw", "loss carried", "loss tuned"], rows, f"{family}, by {TITLES[rule]}")


def _paper_tables(dataset: xr.Dataset) -> list[str]:
    return [_paper_table(dataset, str(family)) for family in dataset["family"].values]


def _signed(value: float) -> str:
    return MISSING if np.isnan(value) else f"{value:+.2f}"


def _table_of(dataset: xr.Dataset, mean: xr.DataArray, stderr: xr.DataArray, title: str) -> str:
    """A row for every rule, a column for every size of a family."""
    families = list(map(str, dataset["family"].values))
    sizes = dataset["size"].values[1:]
    rows = []
    for rule in _rules(dataset):
        cells = []
        for family in families:
            for size in sizes:
                value, error = (float(part.sel(family=family, rule=rule, size=size)) for part in (mean, stderr))
                cells.append(MISSING if np.isnan(value) else f"{value:+.2f} +- {error:.2f}")
        rows.append([rule, *cells])
    return table(["rule", *([f"{family} {size}" for size in sizes] for family in families)], rows, title)


def _misses(dataset: xr.Dataset) -> str:
    across = dataset.attrs["across"]
    return _table_of(dataset, dataset["decades_off"], dataset["decades_off_stderr"], f"Miss in decades, by {across}")


def _costs(dataset: xr.Dataset) -> str:
    mean, stderr = claims.mean_and_error(claims.loss_costs(dataset))
    return _table_of(dataset, mean, stderr, f"Cost in training loss, by {dataset.attrs['across']}")


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

    def told(rule: str) -> str:
        missed, cost, _ = numbers[rule]
        return f"{TITLES[rule]}: {cost:+.3f} and {missed:.2f}"

    carried = [rule for rule in ("unchanged", "three_halves", "finite_depth", "stable_ratio") if rule in numbers]
    words = "For nets like these, mean cost in loss and median miss in decades of one tuned rate that is carried: "
    words += f"{'; '.join(map(told, carried))}. With nothing tuned, by 2 / lambda_max: "
    words += told("stable_rate").split(": ")[1] + ". A cost within its error of 0 is that of the tuned rate itself."
    return folded(words, "", 0)


text = Report(
    question="Does a carried learning rate train other nets better than the same rate unchanged?",
    answer=_answer,
    heading="{data}, {samples} samples, {epochs} epoch(s) of batches of {batch_size}, {optimizer}; sizes: {across}; "
    "rates tuned on {tuning_seeds} nets of each size and carried from the first; losses of {draws} other nets; "
    "seed {seed}",
    parts=[_rule_table, _paper_tables, _misses, _costs, _refusals, _advice],
    findings=claims.findings,
    words=WORDS,
).text
