"""Zhang et al. 2026, appendix C.1, on overlaps of parameter directions in residual nets, judged on draws.

Gates and tangents of a stream depend on each other at order 1/n. What the paper states up to o(1) is granted so much,
in multiples of 1/n, stated here, of the overlap that a direction has with itself.
"""

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Contest, Judges, Ruling, between, slope_contest
from meanfield.verification.power import needing
from meanfield.verification.series import shown_laws
from meanfield.verification.verdicts import Deviation, Finding, Verdict
from meanfield.verification.zhang_2026.plain_nets.overlap_conservation import deviation, effective_overlap_draws

# Multiple of 1/n by which the next order may change a leading one.
NEXT_ORDER = 2.0

# Standard errors from 0 beyond which a logarithm says something, and widths that a slope needs.
RESOLVED = 4.0
LEAST_WIDTHS = 3

# The judges of `sims.residual_overlap`, on all pairs and units.
JUDGES = Judges("Zhang et al. 2026", effective=effective_overlap_draws)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every claim that this net can decide."""
    has_law = has_gates(dataset) and bool(dataset["gate_deviation_law"].notnull().any())
    judges = {
        judge_one_block: True,
        judge_mean_law: True,
        judge_one_unit: bool(_across_blocks(dataset).any()),
        judge_vanishing_deviation: has_gates(dataset),
        judge_deviation_law: has_law,
    }
    return [judge(dataset) for judge, can_decide in judges.items() if can_decide]


def has_gates(dataset: xr.Dataset) -> bool:
    """Whether there is a gate deviation at all."""
    return bool(dataset.attrs["gain"] < 1)


@JUDGES.decide
def judge_one_block(dataset: xr.Dataset) -> Contest:
    """Mean overlap over one block, given all below it, is T + (c/K) T~; rival: {ungated}; source: eq. 31; measured:
    nets fixed up to a unit and redrawn above it, and all units of nets redrawn."""
    gates = has_gates(dataset)
    given = deviation(dataset, "overlap", dataset["gated_overlap_below"], "_given")
    redrawn = deviation(dataset, "overlap_innovation", xr.zeros_like(dataset["overlap"]))
    rival = deviation(dataset, "overlap", dataset["ungated_below" if gates else "overlap_below"], "_given")
    ungated = "T (1 + c/K), gates ignored" if gates else "T, as in plain nets"
    apart = np.concatenate([given.difference - rival.difference, np.zeros_like(redrawn.difference)])
    return Contest(Deviation.joined([given, redrawn]), rival, words={"ungated": ungated}, apart=apart)


@JUDGES.decide
def judge_mean_law(dataset: xr.Dataset) -> Contest:
    """Mean overlap grows by r = (1 + cq/K)^blocks since it began{up_to}; rival: {ungated}; source: eq. 35; measured:
    means over draws of the overlap less r times its first value, of every pair at every depth unit.

    In paired differences. Exact without gates.

    With gates epsilon is granted: the scale of the overlap, times its log-growth, over n.
    """
    gates, growth = has_gates(dataset), dataset["growth"]
    granted = gates * dataset["overlap_scale"] * np.log(dataset["growth_bound"]) / dataset.attrs["width"]
    at_birth = (dataset["overlap"] - dataset["overlap_excess"]) / growth
    rival_growth = dataset["growth_ungated"] if gates else xr.ones_like(growth)
    # Two means of the same draws: at most their errors add up.
    error = dataset["overlap_excess_stderr"] + abs(rival_growth / growth - 1) * dataset["overlap_stderr"]
    claim = deviation(dataset, "overlap_excess", xr.zeros_like(growth), allowance=granted)
    rival = deviation(dataset.assign(overlap_stderr=error), "overlap", rival_growth * at_birth, allowance=granted)
    ungated = "r = (1 + c/K)^blocks, gates ignored" if gates else "r = 1, as in plain nets"
    words = {"up_to": ", up to O(1/n)" * gates, "ungated": ungated}
    return between(claim, rival, note=_bound_kept(dataset, at_birth), words=words)


def _bound_kept(dataset: xr.Dataset, at_birth: xr.DataArray) -> str:
    """r <= e^(cq) in words, for the pair of one unit that comes nearest at the top; nothing where there is none."""
    one_unit = dataset.isel(pair=np.flatnonzero(dataset["on_one_unit"]), layer=-1)
    if one_unit.sizes["pair"] == 0:
        return ""
    grown = (one_unit["overlap"] / at_birth.isel(layer=-1)).sel(pair=one_unit["pair"])
    nearest = one_unit.assign(grown=grown).isel(pair=int(np.argmax((grown / one_unit["growth_bound"]).values)))
    return f"; at the top {float(nearest['grown']):.4g} times, bound e^(cq) = {float(nearest['growth_bound']):.4g}"


@JUDGES.decide
def judge_one_unit(dataset: xr.Dataset) -> Contest:
    """Directions of one unit in different blocks overlap like one with itself, up to O(1/n); rival: they begin at 0, as
    in plain nets; measured: mean overlaps of every pair of directions of one unit in different blocks, at every depth
    unit."""
    pairs = dataset.isel(pair=np.flatnonzero(_across_blocks(dataset)))
    scale = pairs["overlap_scale"]
    granted = scale * (NEXT_ORDER + np.log(pairs["growth_bound"])) / dataset.attrs["width"]
    return between(*(deviation(pairs, "overlap", value, allowance=granted) for value in (scale, 0 * scale)))


@JUDGES.decide
def judge_vanishing_deviation(dataset: xr.Dataset) -> Contest | Ruling:
    """epsilon = E T~ - q E T vanishes with the width, as 1/n; rival: it does not vanish; source: eq. 34: o(1);
    measured: slopes in the width at the top unit, of every pair where it is resolved."""
    slopes = width_slopes(dataset)
    resolved = {name: law for name, law in slopes.items() if law is not None}
    words = ", ".join(f"{name}: {shown_laws(law)}" for name, law in resolved.items()) or "none"
    left = ", ".join(name for name in slopes if name not in resolved)
    evidence = f"slopes by pair: {words}" + (f"; not resolved: {left}" if left else "")
    if not resolved:
        made = float(dataset.attrs["draws"])
        evidence += needing(made * _times_to_resolve(dataset), made)
        return Ruling(Verdict.INCONCLUSIVE, evidence, power="none: no slope is met")
    # The next order weighs most at the least width: a law 1/n (1 + NEXT_ORDER / n) has slopes off by so much.
    least = dataset["width"].values[:LEAST_WIDTHS]
    slack = np.log1p(NEXT_ORDER / least[0]) / np.log(least[-1] / least[0])
    evidence += f"; allowance {slack:.3f}"
    return slope_contest(*resolved.values(), claimed=-1.0, rival=0.0, allowance=slack, shown=evidence)


def width_slopes(dataset: xr.Dataset) -> dict[str, PowerLaw | None]:
    """By pair, the power of the width that epsilon at the top goes as, over the widths up to the last resolved one.

    None where fewer than LEAST_WIDTHS narrow widths in a row are RESOLVED standard errors from 0.
    """
    slopes: dict[str, PowerLaw | None] = {}
    for pair in map(str, dataset["pair"].values):
        at = dataset.sel(pair=pair)
        value, stderr = (at[f"gate_deviation{end}_by_width"].values for end in ("", "_stderr"))
        count = int(np.cumprod(value > RESOLVED * stderr).sum())
        columns = (column[:count] for column in (dataset["width"].values, value, stderr))
        slopes[pair] = fit_power_law(*columns) if count >= LEAST_WIDTHS else None
    return slopes


def _times_to_resolve(dataset: xr.Dataset) -> float:
    """How many times the draws resolve the LEAST_WIDTHS narrowest widths of the pair that takes the fewest.

    A mean within one standard error of 0, of which nothing is known but that, counts as one.
    """
    narrow = dataset.isel(width=slice(LEAST_WIDTHS))
    seen = narrow["gate_deviation_by_width"] / narrow["gate_deviation_stderr_by_width"]
    return float((RESOLVED / seen.clip(min=1.0).min("width").max()) ** 2)


@JUDGES.decide
def judge_deviation_law(dataset: xr.Dataset) -> Contest:
    """epsilon of two units is what they meet of each other's gates, at leading order; rival: epsilon is 0, gates
    independent of tangents; measured: epsilon = E T~ - q E T, T~ the gated overlap, of pairs of directions of two
    units, wherever its law is not 0."""
    law = dataset["gate_deviation_law"].where(dataset["gate_deviation_law"] != 0)
    granted = NEXT_ORDER * law / dataset.attrs["width"]
    return between(*(deviation(dataset, "gate_deviation", value, allowance=granted) for value in (law, 0.0 * law)))


def _across_blocks(dataset: xr.Dataset) -> Array:
    """Pairs of one unit of the stream whose directions begin in different depth units."""
    return np.asarray((dataset["on_one_unit"] == 1) & (dataset["across"] == 1))


CLAIMS = (
    Claim(
        id="A12",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, lemma 6, eq. 31-35",
        statement="overlaps obey the one-block identity, and grow in mean by (1 + c q / K)^l, at most e^(c q)",
        printed='"E[T_l(mu_1, mu_2) | F_(l-1)] = T_(l-1)(mu_1, mu_2) + (c/K) T_tilde_(l-1)(mu_1, mu_2) ... r_l <= r_K '
        '= (1 + cq/K)^K <= e^(cq)" (lemma 6, eq. 31, and corollary of appendix C.1)',
        hypotheses="blocks z + W sigma(z) with weights of variance c / (K n); gates independent of tangents up to o(1)",
        checks=checks("residual_overlap", judge_one_block, judge_mean_law, judge_vanishing_deviation),
    ),
)
