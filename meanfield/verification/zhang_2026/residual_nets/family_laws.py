"""What papers print of eta*(L) of residual nets and tied loops, judged on the mean field's slope at the deepest net."""

import numpy as np
import xarray as xr

from meanfield.verification.judges import Judges, Ruling, computed
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.verdicts import Finding
from meanfield.verification.zhang_2026.plain_nets.depth_laws import (
    LIMIT_TOLERANCE,
    local_slopes,
    plain_families,
    scale_of,
)

# Below this distance two exponents are one law.
SAME = 1e-9

JUDGES = Judges()


def findings(scales: xr.Dataset) -> list[Finding]:
    """One per exponent that a paper prints for a residual net, and for a tied loop whose eta* is a power of L.

    Wang et al. 2026 quote their rule for stacks from updates that point one way; isotropic ones are no test of it.
    Where tied loops grow exponentially, `loop_updates` judges by draws.
    """
    plain = plain_families(scales)
    residual = [str(name) for name in scales["family"].values if name not in plain]
    powers = scales["loop"][np.isfinite(scales["loop_exponent"].values)].values
    loops = [str(name) for name in powers if str(name).startswith("looped")]
    return [judge_printed(scales, name, paper) for name in (*residual, *loops) for paper in printed_for(scales, name)]


def law_of(scales: xr.Dataset, name: str) -> float:
    """Exponent that the scale of a family or loop tends to; NaN where it is no power of the depth."""
    return float(_of(scales, name, "exponent"))


def printed_for(scales: xr.Dataset, name: str) -> dict[str, float]:
    """Exponents that papers print for a family or loop, by paper."""
    printed = _of(scales, name, "printed").dropna("paper")
    return {str(paper): float(printed.sel(paper=paper)) for paper in printed["paper"].values}


def _of(scales: xr.Dataset, name: str, quantity: str) -> xr.DataArray:
    dim = "family" if name in scales["family"].values else "loop"
    return scales[f"{dim}_{quantity}"].sel({dim: name})


@JUDGES.decide
def judge_printed(scales: xr.Dataset, name: str, paper: str) -> Ruling:
    """{name}: eta* goes as L^{claimed:g} ({paper}), mean field; rival: L^{rival:g}, {whose}; measured: the local
    slope at the deepest net."""
    claimed, law = printed_for(scales, name)[paper], law_of(scales, name)
    agree = abs(claimed - law) < SAME
    rival, whose = (PAPERS_EXPONENT, "the law of plain nets") if agree else (law, "its own law")
    slope = local_slopes(scales["depth"].values, scale_of(scales, name).values)[-1]
    evidence = f"local slope {slope:+.3f} at L = {int(scales['depth'][-1])}"
    words = {"claimed": claimed, "rival": rival, "whose": whose}
    return computed(slope, claimed, rival, LIMIT_TOLERANCE, evidence, words)
