"""Claims on overlaps of parameter directions in residual nets (P0 appendix C.1), judged on draws.

Gates and tangents of a stream depend on each other at order 1/n. What P0 states up to o(1) is granted so much, in
multiples of 1/n, stated here, of the overlap that a direction has with itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, Verdict, weigh
from meanfield.verification.zhang_2026.plain_nets.overlap_conservation import (
    deviation,
    effective_overlap_draws,
    finding,
)

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 5

# Multiple of 1/n by which the next order may change a leading one.
NEXT_ORDER = 2.0

# Standard errors from 0 beyond which a logarithm says something, and widths that a slope needs.
RESOLVED = 4.0
LEAST_WIDTHS = 3


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, over all pairs and units of a run of `sims.residual_overlap`."""
    found = [judge_one_block(dataset), judge_mean_law(dataset)]
    if _across_blocks(dataset).any():
        found.append(judge_one_unit(dataset))
    if has_gates(dataset):
        found.append(judge_vanishing_deviation(dataset))
        if dataset["gate_deviation_law"].notnull().any():
            found.append(judge_deviation_law(dataset))
    return found


def has_gates(dataset: xr.Dataset) -> bool:
    """Whether there is a gate deviation at all."""
    return bool(dataset.attrs["gain"] < 1)


def judge_one_block(dataset: xr.Dataset) -> Finding:
    """P0 eq. 31, the mean over one block given all below; rival: gates ignored, in linear nets an overlap that stays.

    Held against nets that are fixed up to a unit, with what stands above redrawn, and in all units of nets redrawn.
    """
    gates = has_gates(dataset)
    given = deviation(dataset, "overlap", dataset["gated_overlap_below"], suffix="_given")
    redrawn = deviation(dataset, "overlap_innovation", xr.zeros_like(dataset["overlap"]))
    claim = Deviation(*(np.concatenate(parts) for parts in zip(_parts(given), _parts(redrawn), strict=True)))
    rival = deviation(dataset, "overlap", dataset["ungated_below" if gates else "overlap_below"], suffix="_given")
    titles = (
        "mean overlap over one block, given all below it, is T + (c/K) T~ (P0 eq. 31)",
        "T (1 + c/K), gates ignored" if gates else "T, as in plain nets",
    )
    return finding(dataset, titles, claim, rival, FINDINGS)


def judge_mean_law(dataset: xr.Dataset) -> Finding:
    """P0 eq. 35, in paired differences; rival: gates ignored, in linear nets no growth.

    Exact without gates. With gates epsilon is granted: the scale of the overlap, times its log-growth, over n.
    """
    gates, growth = has_gates(dataset), dataset["growth"]
    granted = gates * dataset["overlap_scale"] * np.log(dataset["growth_bound"]) / dataset.attrs["width"]
    claim = deviation(dataset, "overlap_excess", xr.zeros_like(growth), allowance=granted)
    at_birth = (dataset["overlap"] - dataset["overlap_excess"]) / growth
    other = dataset["growth_ungated"] if gates else xr.ones_like(growth)
    # Two means of the same draws: at most their errors add up.
    error = dataset["overlap_excess_stderr"] + abs(other / growth - 1) * dataset["overlap_stderr"]
    rival = deviation(dataset.assign(overlap_stderr=error), "overlap", other * at_birth, allowance=granted)
    titles = (
        f"mean overlap grows by r = (1 + cq/K)^blocks since it began{', up to O(1/n)' * gates} (P0 eq. 35)",
        "r = (1 + c/K)^blocks, gates ignored" if gates else "r = 1, as in plain nets",
    )
    found = finding(dataset, titles, claim, rival, FINDINGS)
    return replace(found, evidence=found.evidence + _bound_kept(dataset, at_birth))


def _bound_kept(dataset: xr.Dataset, at_birth: xr.DataArray) -> str:
    """r <= e^(cq) in words, for the pair of one unit that comes nearest at the top; nothing where there is none."""
    one_unit = dataset.isel(pair=np.flatnonzero(dataset["on_one_unit"]), layer=-1)
    if one_unit.sizes["pair"] == 0:
        return ""
    grown = (one_unit["overlap"] / at_birth.isel(layer=-1)).sel(pair=one_unit["pair"])
    nearest = one_unit.assign(grown=grown).isel(pair=int(np.argmax((grown / one_unit["growth_bound"]).values)))
    return f"; at the top {float(nearest['grown']):.4g} times, bound e^(cq) = {float(nearest['growth_bound']):.4g}"


def judge_one_unit(dataset: xr.Dataset) -> Finding:
    """Directions of one unit of the stream in different blocks; rival: they begin at 0, as in plain nets."""
    chosen = dataset.isel(pair=np.flatnonzero(_across_blocks(dataset)))
    scale = chosen["overlap_scale"]
    granted = scale * (NEXT_ORDER + np.log(chosen["growth_bound"])) / dataset.attrs["width"]
    claim = deviation(chosen, "overlap", scale, allowance=granted)
    rival = deviation(chosen, "overlap", xr.zeros_like(scale), allowance=granted)
    titles = "directions of one unit in different blocks overlap like one with itself, up to O(1/n)", "they begin at 0"
    return finding(dataset, titles, claim, rival, FINDINGS)


def judge_vanishing_deviation(dataset: xr.Dataset) -> Finding:
    """P0 eq. 34, epsilon = o(1) with the width: as 1/n, by its log-log slope at the top unit; rival: it stays."""
    slopes = width_slopes(dataset)
    resolved = [law for law in slopes.values() if law is not None]
    shown = ", ".join(f"{name}: {law.exponent:.3f} +- {law.stderr:.3f}" for name, law in slopes.items() if law)
    left = ", ".join(name for name, law in slopes.items() if law is None)
    evidence = f"slopes by pair: {shown or 'none'}" + (f"; not resolved: {left}" if left else "")
    titles = "epsilon = E T~ - q E T vanishes with the width, as 1/n (P0 eq. 34: o(1))", "it does not vanish"
    if not resolved:
        return Finding(*titles, Verdict.INCONCLUSIVE, evidence)
    # The next order weighs most at the least width: a law 1/n (1 + NEXT_ORDER / n) has slopes off by so much.
    least = dataset["width"].values[:LEAST_WIDTHS]
    slack = np.log1p(NEXT_ORDER / least[0]) / np.log(least[-1] / least[0])
    slope, error = (np.array([getattr(law, name) for law in resolved]) for name in ("exponent", "stderr"))
    claim, rival = (Deviation(slope - value, error, np.full_like(slope, slack)) for value in (-1.0, 0.0))
    return weigh(
        titles,
        claim,
        rival,
        comparisons=FINDINGS * len(slope),
        draws=dataset.attrs["draws"],
        effective=effective_overlap_draws(dataset),
        shown=f"{evidence}; allowance {slack:.3f}",
    )


def width_slopes(dataset: xr.Dataset) -> dict[str, PowerLaw | None]:
    """By pair, the power of the width that epsilon at the top goes as, over the widths up to the last resolved one.

    None where fewer than LEAST_WIDTHS narrow widths in a row are RESOLVED standard errors from 0.
    """
    found: dict[str, PowerLaw | None] = {}
    for pair in dataset["pair"].values:
        at = dataset.sel(pair=pair)
        value, stderr = (at[f"gate_deviation{part}_by_width"].values for part in ("", "_stderr"))
        count = int(np.cumprod(value > RESOLVED * stderr).sum())
        chosen = slice(count)
        is_enough = count >= LEAST_WIDTHS
        law = fit_power_law(dataset["width"].values[chosen], value[chosen], stderr[chosen]) if is_enough else None
        found[str(pair)] = law
    return found


def judge_deviation_law(dataset: xr.Dataset) -> Finding:
    """Epsilon of two units, by the gates at which they meet; rival: none, gates independent of tangents."""
    law = dataset["gate_deviation_law"].where(dataset["gate_deviation_law"] != 0)
    granted = NEXT_ORDER * law / dataset.attrs["width"]
    claim = deviation(dataset, "gate_deviation", law, allowance=granted)
    rival = deviation(dataset, "gate_deviation", 0.0 * law, allowance=granted)
    titles = "epsilon of two units is what they meet of each other's gates, at leading order", "epsilon is 0"
    return finding(dataset, titles, claim, rival, FINDINGS)


def _across_blocks(dataset: xr.Dataset) -> np.ndarray:
    """Pairs of one unit of the stream whose directions begin in different depth units."""
    return np.asarray((dataset["on_one_unit"] == 1) & (dataset["across"] == 1))


def _parts(one: Deviation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return one.difference, one.stderr, one.allowance
