"""Slopes of tuned learning rates over depth, or over the number of loops, against what is claimed of them.

A tuned rate is the minimum of the training loss over learning rates; every depth has seeds of its own, so that the
errors of depths are independent. Slopes are those of a line through log10 of the rate over log10 of the depth with
equal weights: weights by the spreads of a few seeds, as Zhang et al. 2026 have them, are themselves random. Theory's
slope is that of the same line through the same depths. Logarithms of the rates of seeds have no skewness to speak of
(0.23 +- 0.11 of 528 nets that learn under AdamW, excess kurtosis -0.2), so that Student's t counts all of them.

A net learns where its loss at the tuned rate is below a third of that of equal probabilities; others count nothing.
Families by groups have a scale of one step whose slope theirs is held to.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.power_laws import PowerLaw
from meanfield.common.validation import Array
from meanfield.verification.judges import Contest, Ruling, slope_contest
from meanfield.verification.series import shown_laws, span
from meanfield.verification.verdicts import Verdict

# A relative difference of exponents that is an effect: Zhang et al. 2026, section 4.5, name one of 10 to 12 %, that of
# the optimizer.
EFFECT = 0.1
# Runs that train nets take minutes to hours, and no suite makes them a million times: one in a thousand may refute what
# is true. Chosen after the first run of nets that learn, under AdamW, had been seen, and before those of others.
TRAINED_BUDGET = 1e-3
# A net learns where its loss is below so much of that of equal probabilities.
LEARNED = 1 / 3
# Families, and the scale whose slope their tuned rates are held to.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "residual nets": (
        "outputs",
        (
            "residual mlp init",
            "residual mlp multiplier",
            "residual mlp k=2",
            "residual mlp k=3",
            "residual cnn init on mnist",
            "residual cnn multiplier on mnist",
        ),
    ),
    "plain nets": ("relative", ("mlp", "cnn on mnist")),
    "normalised nets": ("relative", ("residual cnn init batch norm on mnist",)),
    "loops": ("relative", ("loop linear", "loop sqrt")),
}
# Between a family and its data, where it has its own; and before it, between it and how many times as wide it is.
ON, TIMES = " on ", " x"
# Families of no group, and their scale.
OTHERS, OTHERWISE = "other nets", "outputs"
# Scales of a step with AdamW's weights moved as far as in noise, and the one by which it is held to tuned rates.
NOISE = "noise_"
NOISE_SCALE = f"{NOISE}relative_scale"
# Slopes that differ by no more are one: a factor of 1.4 over eight times the depth.
ALLOWED = 0.15
# A rival's slope lies at least so far from the claimed one.
APART = 0.4


def family_at(dataset: xr.Dataset, family: str) -> xr.Dataset:
    """One family at the depths where two seeds or more have a minimum."""
    return with_minima(dataset.sel(family=family))


def with_minima(at: xr.Dataset) -> xr.Dataset:
    """The same of one family's dataset."""
    return at.isel(depth=np.flatnonzero(np.isfinite(at["tuned_rate_log10_stderr"].values)))


def learning(dataset: xr.Dataset) -> xr.DataArray:
    """Which nets learn, (family, depth): the mean over seeds of the least loss is below a third of chance."""
    least = dataset["final_loss"].min("rate").mean("draw")
    return least < LEARNED * dataset["chance_loss"]


def learned_at(dataset: xr.Dataset, family: str) -> xr.Dataset:
    """A family at the depths where it learns and has a tuned rate."""
    at = dataset.sel(family=family)
    return with_minima(at.isel(depth=np.flatnonzero(learning(dataset).sel(family=family).values)))


@dataclass(frozen=True)
class FamilyName:
    """What a name such as "residual mlp init x4 on mnist" says.

    Attributes:
        kind: which nets; ``times``: how many times as wide as those of the run; ``data``: on which data, empty for
            those of the run.
    """

    kind: str
    times: float
    data: str

    @classmethod
    def of(cls, family: str) -> "FamilyName":
        """Of this name; a number of times that is none stays in the kind, which no family has then."""
        nets, _, data = family.partition(ON)
        kind, written, times = nets.rpartition(TIMES)
        try:
            return cls(kind, float(times), data) if written else cls(nets, 1.0, data)
        except ValueError:
            return cls(nets, 1.0, data)

    @property
    def narrow(self) -> str:
        """The name of the same nets at the width of the run."""
        return self.kind + (f"{ON}{self.data}" if self.data else "")


def group_of(family: str) -> tuple[str, str]:
    """The group of a family on any data, and the scale that its slope is held to."""
    named = {FamilyName.of(name).kind: (group, of) for group, (of, families) in GROUPS.items() for name in families}
    return named.get(FamilyName.of(family).kind, (OTHERS, OTHERWISE))


def slope_weights(at: xr.Dataset) -> Array:
    """Those of the depths in the slope of a line through equally weighted points."""
    logs = np.log10(at["depth"].values)
    centred = logs - logs.mean() if logs.size else logs
    return np.asarray(centred / max(float(centred @ centred), np.finfo(float).tiny))


def tuned_slope(at: xr.Dataset) -> PowerLaw:
    """The slope of tuned rates with its standard error; NaN where fewer than two depths have a tuned rate."""
    if at.sizes["depth"] < 2:
        return PowerLaw(float("nan"), float("nan"), float("nan"))
    weights, logs = slope_weights(at), at["tuned_rate_log10"].values
    slope = float(weights @ logs)
    error = float(np.sqrt(weights**2 @ at["tuned_rate_log10_stderr"].values ** 2))
    return PowerLaw(slope, error, 10.0 ** float(logs.mean() - slope * np.log10(at["depth"].values).mean()))


def drawn_slope(at: xr.Dataset, scale: str) -> tuple[float, float]:
    """The slope of a drawn scale through the same depths, and its standard error; NaN where they are fewer than two."""
    if at.sizes["depth"] < 2:
        return float("nan"), float("nan")
    weights, values = slope_weights(at), at[scale].values
    errors = at[f"{scale}_stderr"].values / (values * np.log(10))
    return float(weights @ np.log10(values)), float(np.sqrt(weights**2 @ errors**2))


def counted(at: xr.Dataset, learns: xr.DataArray) -> xr.Dataset:
    """One family at the depths through which its slope goes: of those with a tuned rate the ones that learn.

    All with a tuned rate, where fewer than two of them learn.
    """
    learned = with_minima(at.isel(depth=np.flatnonzero(learns.values)))
    return learned if learned.sizes["depth"] > 1 else with_minima(at)


def variance_of_nets(at: xr.Dataset) -> xr.DataArray:
    """The part of the squared errors of log10 of tuned rates that is the scatter of nets, which more nets reduce.

    All of them where single nets are not known.
    """
    if "seed_tuned_rate_log10" not in at:
        return at["tuned_rate_log10_stderr"] ** 2
    seeds = at["seed_tuned_rate_log10"]
    over_nets = set(seeds.dims) - set(at["tuned_rate_log10"].dims)
    return seeds.var(over_nets, ddof=1) / seeds.notnull().sum(over_nets)


def of_seeds(at: xr.Dataset, seeds: slice) -> xr.Dataset:
    """One family's dataset with the tuned rates of these seeds alone, where two of them or more have a minimum.

    Errors are those of a mean over seeds, and of the rates that were tried, which do not fall with seeds.
    """
    names = ("seed_tuned_rate_log10", "seed_tuned_rate_log10_stderr")
    chosen, coarse = (at[name].isel(draw=seeds) for name in names)
    count = chosen.notnull().sum("draw")
    many = count.where(count > 1)
    mean = chosen.sum("draw") / many
    error = (((chosen - mean) ** 2).sum("draw") / (many * (many - 1)) + (coarse.sum("draw") / many) ** 2) ** 0.5
    return with_minima(at.assign(tuned_rate_log10=mean, tuned_rate_log10_stderr=error))


def fixed_share(at: xr.Dataset, stderr: float, weights: Array | None = None) -> float:
    """The share of this error's square that is not the scatter of nets, so that more of them leave it as it is.

    ``stderr`` is that of a sum of log10 of tuned rates over depths, by ``weights`` (default: that of their slope), or
    holds it. All nets are tried at the same rates, whose distance bounds where minima lie; an error of one step, whose
    draws are always as many, does not fall either.
    """
    over_depths = slope_weights(at) if weights is None else weights
    falling = float(over_depths**2 @ variance_of_nets(at).values)
    return float(np.clip(1 - falling / max(stderr**2, np.finfo(float).tiny), 0.0, 1.0))


def freedom(at: xr.Dataset) -> float:
    """Degrees of freedom of the slope's error, by Welch and Satterthwaite: at least those of a single depth."""
    shares = (slope_weights(at) * at["tuned_rate_log10_stderr"].values) ** 2
    least = at["located"].values - 1
    return float(shares.sum() ** 2 / max((shares**2 / least).sum(), np.finfo(float).tiny)) if shares.size else 0.0


def slope_ruling(
    at: xr.Dataset,
    claimed: float,
    rival: float,
    *,
    error: float = 0.0,
    allowance: float = 0.0,
    sizes: str = "depths",
) -> Contest | Ruling:
    """The slope of a family's tuned rates against that of a theory at the same depths, and against the rival's.

    ``at``: the family at the depths that count. ``error``: of the claimed slope, where it was drawn. ``allowance``:
    what a statement leaves open of the slope. ``sizes``: what the evidence calls the depths.
    """
    words = {name: slope for name, slope in {"claimed": claimed, "rival": rival}.items() if np.isfinite(slope)}
    if at.sizes["depth"] < 2:
        evidence = f"no slope was met: fewer than two {sizes} have a tuned rate"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no slope")
    law = tuned_slope(at)
    together = PowerLaw(law.exponent, float(np.hypot(law.stderr, error)), law.prefactor)
    counts: dict[str, Any] = {"draws": int(at["located"].max()), "effective": freedom(at) + 1, "gaussian": True}
    counts["fixed"] = fixed_share(at, together.stderr)
    made = slope_contest(together, claimed=claimed, rival=rival, allowance=allowance, **counts)
    return made.saying(f"slope {shown_laws(law)} over {sizes} {span(at['depth'])}", **words)
