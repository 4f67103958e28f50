"""What a run of tuned rates says: whether slopes are those of one step, and what an engineer may do."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.transfer import CALIBRATIONS, step_that_names, untried
from meanfield.transfer import TRANSFORMER as TRANSFORMERS
from meanfield.verification import Finding, Verdict, combined, tuned_rates
from sims.common.report import answer, folded
from sims.common.training_data import TRANSFORMER
from sims.learning_rate_search import claims, named_rates

# The precision of a tuned rate that the report names the seeds for, in decades.
PRECISE = 0.02
# What stands before the advice of a run that trains for too short a time.
HARDLY = (
    "No net of this run ends below a third of the loss of chance, so that tuned rates here say little of nets that "
    "learn: those are trained by the presets default and evidence, whose findings are in docs/findings.md."
)
# A slope this many standard errors from theory's is called another one.
APART = 3.0
# How families begin whose tuned rates left one step in trials (T4, E1d, E1e), and those that did under an optimizer and
# without normalisation (E1b, E1m).
LEAVING = (TRANSFORMER, "loop")
LEAVING_UNDER = {
    **dict.fromkeys(("sgd", "sgd_momentum"), ("cnn", "residual cnn k=")),
    **dict.fromkeys(("lion", "muon-adamw"), ("mlp",)),
}
NORMALISED = "batch norm"

BEGIN, SEARCH = "to begin a search take mf.starting_rate", "search widely (mf.tuned_rate)"


def answer_of(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    followed = [finding for finding in findings if "the slopes of one step" in finding.claim] or list(findings)
    is_yes = combined(finding.verdict for finding in followed) is Verdict.CONFIRMED
    taken = "taken together; but " if is_yes and _apart(dataset) else ""
    return answer(followed, f"{taken}{_where(dataset)}")


def _where(dataset: xr.Dataset) -> str:
    """The families whose slopes are not those of one step, and those that have none."""
    off, none = _apart(dataset), _unmet(dataset)
    words = f"more than {APART:g} s.e. beyond {tuned_rates.ALLOWED:g} from one step"
    parts = [f"the slopes of {', '.join(off)} lie {words}"] if off else []
    parts += [f"no slope was met in {', '.join(none)}"] if none else []
    return "; ".join(parts) or f"no slope lies {words}"


def _families(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    """At the depths through which slopes go."""
    learns = tuned_rates.learning(dataset)
    return {
        str(family): tuned_rates.counted(dataset.sel(family=family), learns.sel(family=family))
        for family in dataset["family"].values
    }


def own_scale(at: xr.Dataset) -> str:
    """The scale that the slope of a family is held to."""
    _, of = tuned_rates.group_of(str(at["family"].values))
    return f"{of}_scale"


def distance(at: xr.Dataset) -> float:
    """By how much the tuned slope is off one step's; NaN without a slope."""
    return tuned_rates.tuned_slope(at).exponent - claims.scale_slope(at, own_scale(at))


def _apart(dataset: xr.Dataset) -> list[str]:
    """Families that are surely off."""
    beyond = {
        name: (abs(distance(at)) - tuned_rates.ALLOWED) / tuned_rates.tuned_slope(at).stderr
        for name, at in _families(dataset).items()
    }
    return [family for family, off in beyond.items() if off > APART]


def _unmet(dataset: xr.Dataset) -> list[str]:
    """Families in which fewer than two depths have a tuned rate."""
    return [family for family, at in _families(dataset).items() if at.sizes["depth"] < 2]


def advice(dataset: xr.Dataset) -> str:
    """What an engineer may do, in the numbers of this run."""
    ratio = claims.log_ratio(dataset, stable := named_rates.stable_name(dataset))
    if not (known := np.isfinite(ratio)).any():
        least = "two seeds or more must have a minimum between the least and the largest rate that was tried"
        return folded(f"No net of this run has a tuned rate: {least}.", "", 0)
    learns = "" if tuned_rates.learning(dataset).any() else HARDLY
    families = list(map(str, dataset["family"].values))
    words = [
        learns,
        f"In practice: {to_do(families, dataset.attrs['optimizer'])}",
        f"Here {_where(dataset)}.",
        with_nothing_tuned(families, dataset.attrs["optimizer"], stable, 10 ** ratio[known]),
        f"A tuned rate from one seed is uncertain by {np.median(spreads(dataset)):.2f} decades in the median net:"
        f" losses are rugged where training is barely stable. {seeds_needed(dataset)}",
    ]
    return folded(" ".join(filter(None, words)), "", 0)


def to_do(families: list[str], optimizer: str) -> str:
    """How to tune nets of these families, as nets that learn say."""
    under = LEAVING_UNDER.get(optimizer, ())
    leaving = [
        family
        for family in families
        if family.startswith(LEAVING) or (family.startswith(under) and NORMALISED not in family)
    ]
    normalised = [family for family in families if NORMALISED in family]
    words = []
    if len(leaving) < len(families):
        others = " but for those below" if leaving else ""
        words.append(
            f"tune at one depth{others}, and carry the rate by one step of your own optimizer on your own data "
            "(mf.transfer_learning_rate with optimizer= and data=)."
        )
    if leaving:
        words.append(
            f"Tune {', '.join(leaving)} at two depths that are far apart: in trials their rates left one step."
        )
    if normalised:
        words.append(
            f"Check {', '.join(normalised)} at a second depth: trials have not decided whether one step says how rates "
            "go with batch normalisation."
        )
    if (few := untried(optimizer)) and len(leaving) < len(families):
        words.append(f"Check at a second depth: {few}.")
    return " ".join(words)


def with_nothing_tuned(families: list[str], optimizer: str, stable: str, ratio: Array) -> str:
    """How to begin a search, and what a stable rate says."""
    begin = BEGIN if all(is_named(family, optimizer) for family in families) else SEARCH
    if stable != named_rates.OWN_STABLE and optimizer != "sgd":
        none = f"2 / lambda_max (mf.stable_rate), of gradient descent, says nothing of {optimizer}"
        return f"With nothing tuned: {begin}; {none}."
    named = "2 / lambda_max" if optimizer == "sgd" else f"the stable rate of {optimizer} at initialisation"
    return (
        f"With nothing tuned: the tuned rate is {ratio.min():.2g} to {ratio.max():.2g} times {named} (mf.stable_rate) "
        f"over all nets of this run that have a minimum, in the median {np.median(ratio):.2g} times; {begin}."
    )


def is_named(family: str, optimizer: str) -> bool:
    """Whether `meanfield.starting_rate` has a constant for nets of this family."""
    kind = TRANSFORMERS if family.startswith(TRANSFORMER) else named_rates.KINDS[named_rates.kind_of(family)]
    return kind in CALIBRATIONS.get(step_that_names(optimizer), {})


def spreads(dataset: xr.Dataset) -> Array:
    """Standard deviations of single seeds in decades, of the nets of which two have a minimum."""
    spreads = dataset["seed_tuned_rate_log10"].std("draw", ddof=1).values
    errors: xr.DataArray = dataset["seed_tuned_rate_log10_stderr"]
    coarse = ((errors**2).mean("draw") ** 0.5).values
    return np.asarray(np.hypot(spreads, coarse)[np.isfinite(spreads)])


def seeds_needed(dataset: xr.Dataset) -> str:
    """How many seeds give a standard error of `PRECISE`, in the median net and in that of the widest spread."""
    needed = np.ceil((spreads(dataset) / PRECISE) ** 2)
    return (
        f"A standard error of {PRECISE:g} decades takes {np.median(needed):.0f} seeds in the median net, and"
        f" {needed.max():.0f} where seeds scatter most."
    )
