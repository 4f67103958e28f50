"""The output term over the label term of drawn nets, held against the exact expectations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from meanfield.verification.convergence import LABEL_SPREAD, draws_needed, is_converged
from meanfield.verification.verdicts import Deviation, Finding, Verdict, effective_draws, weigh

TERMS = ("output_term", "label_term")


def share_at_top(measured: xr.Dataset) -> tuple[float, float]:
    """A/B at the last layer and its standard error, with the covariance of A and B.

    A and B rise and fall together from draw to draw. As S = A + B holds draw by draw, their covariance is half of what
    the variance of S has beyond theirs.
    """
    top = measured.isel(layer=-1)
    output, label = (float(top[name]) for name in TERMS)
    variances = [float(top[f"{name}_stderr"]) ** 2 for name in (*TERMS, "update_energy")]
    covariance = 0.5 * (variances[2] - variances[0] - variances[1])
    relative = variances[0] / output**2 + variances[1] / label**2 - 2 * covariance / (output * label)
    return output / label, output / label * float(np.sqrt(max(relative, 0.0)))


def share_row(measured: xr.Dataset) -> dict[str, float]:
    """What a sweep keeps of one net that was drawn, its exact expectation and the exact spread of B being beside."""
    top = measured.isel(layer=-1)
    share, stderr = share_at_top(measured)
    return {
        "drawn_share": share,
        "drawn_share_stderr": stderr,
        "drawn_share_exact": float(np.exp(top["log_output_term_exact"] - top["log_label_term_exact"])),
        "drawn_share_effective_draws": effective_draws(top, *TERMS),
        "drawn_share_converged": float(all(bool(is_converged(measured, name)[-1]) for name in TERMS)),
        "drawn_share_largest_draw": max(float(top[f"{name}_largest_share"]) for name in TERMS),
        "drawn_share_draws_needed": float(draws_needed(top[LABEL_SPREAD])),
        "drawn_share_draws": float(measured.attrs["draws"]),
    }


def is_share_planned(rows: xr.Dataset) -> xr.DataArray:
    """Nets of which enough draws were made, by the exact spread of the label term."""
    return rows["drawn_share_draws_needed"] <= rows["drawn_share_draws"]


def judge_drawn_share(rows: xr.Dataset) -> Finding:
    """A/B of all nets that the draws suffice for; rival: infinite width, where outputs do not matter."""
    planned = is_share_planned(rows).values
    titles = (
        "output over label term at the last layer is the exact ratio, for every head and number of outputs",
        "that of one output, whatever their number",
    )
    if not planned.any():
        return Finding(*titles, Verdict.INCONCLUSIVE, "no net has draws enough")
    share, stderr, exact = (rows[f"drawn_share{end}"].values[planned] for end in ("", "_stderr", "_exact"))
    one_output = np.broadcast_to(rows["drawn_share_exact"].isel({"drawn_outputs": [0]}).values, planned.shape)[planned]
    nothing = np.zeros_like(share)
    claim, rival = (Deviation(share - value, stderr, nothing) for value in (exact, one_output))
    left_out = f"; {np.sum(~planned)} nets left out, not converged" if not planned.all() else ""
    stray = int(np.sum(rows["drawn_share_converged"].values[planned] == 0))
    if stray:
        missed = f"worst {claim.worst:.1f} s.e., rival {rival.worst:.1f} s.e."
        return Finding(*titles, Verdict.INCONCLUSIVE, f"{missed}; {stray} nets have not converged{left_out}")
    draws, effective = (
        float(rows[f"drawn_share_{name}"].values[planned].min()) for name in ("draws", "effective_draws")
    )
    found = weigh(titles, claim, rival, comparisons=2 * share.size, draws=draws, effective=effective)
    return replace(found, evidence=found.evidence + left_out)
