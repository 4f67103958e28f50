"""Claims on eta*(L) of residual nets and tied loops, judged on the mean field's local slope at the deepest net."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification.verdicts import Finding, judge_computed
from meanfield.verification.zhang_2026.plain_nets.depth_laws import (
    LIMIT_TOLERANCE,
    TRANSFER_EXPONENT,
    local_slopes,
    plain_families,
    scale_of,
)

# Below this distance two exponents are one law.
SAME = 1e-9


def findings(scales: xr.Dataset) -> list[Finding]:
    """One per exponent that a paper prints for a residual net, and for a tied loop whose eta* is a power of L.

    P2 quotes its rule for stacks from updates that point one way; isotropic ones are no test of it. Where tied loops
    grow exponentially, `loop_updates` judges by draws.
    """
    plain = plain_families(scales)
    residual = [str(name) for name in scales["family"].values if name not in plain]
    powers = scales["loop"][np.isfinite(scales["loop_exponent"].values)].values
    loops = [str(name) for name in powers if str(name).startswith("looped")]
    return [judge_printed(scales, name, paper) for name in (*residual, *loops) for paper in printed_for(scales, name)]


def law_of(scales: xr.Dataset, name: str) -> float:
    """Exponent that the scale of a family or loop tends to; NaN where it is no power of the depth."""
    dim = "family" if name in scales["family"].values else "loop"
    return float(scales[f"{dim}_exponent"].sel({dim: name}))


def printed_for(scales: xr.Dataset, name: str) -> dict[str, float]:
    """Exponents that papers print for a family or loop, by paper."""
    dim = "family" if name in scales["family"].values else "loop"
    printed = scales[f"{dim}_printed"].sel({dim: name})
    return {str(paper): float(printed.sel(paper=paper)) for paper in printed["paper"].values[np.isfinite(printed)]}


def judge_printed(scales: xr.Dataset, name: str, paper: str) -> Finding:
    """eta* ~ L^x, x as the paper prints it; rival: the family's own law or, where they agree, that of plain nets."""
    claimed, law = printed_for(scales, name)[paper], law_of(scales, name)
    agree = abs(claimed - law) < SAME
    rival = TRANSFER_EXPONENT if agree else law
    slope = local_slopes(scales["depth"].values, scale_of(scales, name).values)[-1]
    return Finding(
        claim=f"{name}: eta* goes as L^{claimed:g} ({paper}), mean field",
        rival=f"L^{rival:g}, {'the law of plain nets' if agree else 'its own law'}",
        verdict=judge_computed(slope, claimed, rival, LIMIT_TOLERANCE),
        evidence=f"local slope {slope:+.3f} at L = {int(scales['depth'][-1])}",
    )
