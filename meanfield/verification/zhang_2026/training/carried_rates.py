"""Zhang et al. 2026, appendix E.4: a carried rate trains better than an unchanged one, and how much worse than a tuned.

The judges read `sims.learning_rate_transfer`. Losses above that of a net that gives all classes the same probability
count as that one: nobody keeps a net that is worse, and no draw that diverges decides a mean. Errors are those over the
nets that are trained at the carried rates: verdicts hold for the rate that was tuned on a few others, whose own error
is no part of them.
"""

import numpy as np
import xarray as xr

from meanfield.verification.claims import Claim, checks
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.verdicts import Deviation, Finding

TUNED, UNCHANGED = "tuned", "unchanged"
# Two rates are compared at the sizes where they differ by more than so many decades.
APART = 0.2

# The judges of `sims.learning_rate_transfer`.
JUDGES = Judges("Zhang et al. 2026")


def loss_costs(dataset: xr.Dataset) -> xr.DataArray:
    """Final loss less that at the rate tuned at this size, draw by draw, losses above chance counted as chance."""
    chance, loss = dataset.attrs["chance_loss"], dataset["loss"]
    bounded = loss.where(loss.isnull() | (loss < chance), chance)
    return bounded - bounded.sel(rule=TUNED, drop=True)


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Over draws."""
    return values.mean("draw"), values.std("draw", ddof=1) / values.sizes["draw"] ** 0.5


def savings(dataset: xr.Dataset, rule: str, against: str = UNCHANGED) -> xr.Dataset:
    """What a rule saves against another one, by family: mean loss over the sizes at which their rates differ.

    Only of families in which they differ somewhere: ``saved`` with ``saved_stderr``, ``over_tuned``, what is left
    against the tuned rate, with ``over_tuned_stderr``, and ``nets``, those that were trained at each rate.
    """
    costs, rates = loss_costs(dataset), dataset["rate_log10"]
    differ = xr.DataArray(np.abs(rates.sel(rule=rule, drop=True) - rates.sel(rule=against, drop=True)) > APART)
    own, other = (costs.sel(rule=name, drop=True).where(differ) for name in (rule, against))
    sizes = differ.sum("size")
    values = {"nets": sizes * costs.sizes["draw"]}
    for name, difference in {"saved": other - own, "over_tuned": own}.items():
        mean, stderr = mean_and_error(difference)
        values |= {name: mean.mean("size"), f"{name}_stderr": (stderr**2).sum("size") ** 0.5 / sizes}
    return xr.Dataset(values).isel(family=(sizes > 0).values)


def _costs_less(dataset: xr.Dataset, rule: str, against: str = UNCHANGED, *, on_average: bool = False) -> Contest:
    """The rule saves loss in every family, or on average over families; the rival: it saves none in the weakest one."""
    by_family = savings(dataset, rule, against)
    families = by_family.sizes["family"]
    if not families:
        none = Contest(Deviation(0.0, 1.0), Deviation(0.0, 1.0), note="; the rates differ in no family")
        return none.saying("", across=dataset.attrs["across"])
    saved, stderr, nets = (by_family[name].values for name in ("saved", "saved_stderr", "nets"))
    if on_average:
        saved, stderr = saved.mean(keepdims=True), np.hypot.reduce(stderr, keepdims=True) / families
    with np.errstate(divide="ignore"):
        weakest = int(np.argmin(saved / stderr))
    rival = Deviation(max(saved[weakest], 0.0), stderr[weakest])
    made = Contest(
        Deviation(np.maximum(-saved, 0.0), stderr), rival, effective=float(nets.sum() if on_average else nets.min())
    )
    return made.saying(_in_words(by_family), across=dataset.attrs["across"])


def _in_words(by_family: xr.Dataset) -> str:
    columns = ("family", "saved", "saved_stderr", "over_tuned", "over_tuned_stderr")
    return "; ".join(
        f"{family}: saves {saved:.3f} +- {error:.2g}, {left:.3f} +- {left_error:.2g} above tuned"
        for family, saved, error, left, left_error in zip(*(by_family[name].values for name in columns), strict=True)
    )


@JUDGES.decide
def judge_three_halves(dataset: xr.Dataset) -> Contest:
    """A rate carried by L^(-3/2) costs less training loss than the unchanged rate in every family; rival: in some
    family it costs as much or more; source: appendix E.4, table 5; measured: means over the sizes at which the two
    rates differ by a factor of 1.6 and more, each family by itself, given the rate that was tuned."""
    return _costs_less(dataset, "three_halves")


@JUDGES.decide
def judge_finite_depth(dataset: xr.Dataset) -> Contest:
    """A rate carried over {across} by the finite-depth rule costs less training loss than the unchanged rate, on
    average over families; rival: it costs as much or more; measured: as that of L^(-3/2)."""
    return _costs_less(dataset, "finite_depth", on_average=True)


@JUDGES.decide
def judge_stable_ratio(dataset: xr.Dataset) -> Contest:
    """A rate carried over {across} by the ratio of 2 / lambda_max costs less training loss than the unchanged rate, on
    average over families; rival: it costs as much or more; measured: as that of L^(-3/2)."""
    return _costs_less(dataset, "stable_ratio", on_average=True)


@JUDGES.decide
def judge_wrong_sign(dataset: xr.Dataset) -> Contest:
    """Negative control: the tuned rate costs less training loss than one carried over {across} with the wrong sign in
    every family; rival: in some family it costs as much or more; measured: as that of L^(-3/2)."""
    return _costs_less(dataset, TUNED, "wrong_sign")


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every rule of the run; L^(-3/2) knows no width."""
    judges = (judge_finite_depth, judge_stable_ratio, judge_wrong_sign)
    return [judge(dataset) for judge in ((judge_three_halves,) if dataset.attrs["across"] == "depth" else ()) + judges]


CLAIMS = (
    Claim(
        id="T6a",
        source="Zhang et al. 2026, appendix E.4, table 5",
        statement="a learning rate carried by L^(-3/2) costs less training loss than an unchanged one, in every "
        "family, given the rate that was tuned",
        checks=checks("learning_rate_transfer", judge_three_halves),
        replaced_by="each family has a law of its own: where branches are multiplied by K^(-1/2), the tuned rate keeps "
        "its size, and L^(-3/2) adds 0.06 to 0.6 to the loss over 5 to 12 blocks",
        premise="one exponent is taken for all families, and a multiplier for a factor in the initialisation",
    ),
    Claim(
        id="T6b",
        source="docs/theory.md section 15",
        statement="a rate carried by the finite-depth rule costs less training loss than an unchanged one, on average, "
        "given the rate that was tuned",
        checks=checks("learning_rate_transfer", judge_finite_depth),
    ),
    Claim(
        id="T6c",
        source="docs/theory.md section 21",
        statement="a rate carried by the ratio of 2 / lambda_max costs less training loss than an unchanged one, on "
        "average, given the rate that was tuned",
        checks=checks("learning_rate_transfer", judge_stable_ratio, judge_wrong_sign),
    ),
)
