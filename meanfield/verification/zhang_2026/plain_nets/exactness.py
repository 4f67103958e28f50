"""The exact finite-width expectation held against draws: no allowance, no fitted constant."""

from __future__ import annotations

from dataclasses import replace

import xarray as xr

from meanfield.verification.comparison import ROUNDING
from meanfield.verification.convergence import PRECISION, is_converged, is_planned, layer_ranges
from meanfield.verification.verdicts import Deviation, Finding, Verdict, effective_draws, weigh


def judge_exact(measured: xr.Dataset, name: str) -> Finding:
    """NAME against NAME_exact; rival: infinite width, by the mean field of the overlap energy or of the label term.

    At leading order in 1/n and few outputs the output term equals the label term, so both have the same rival. Layers
    that the draws do not suffice for, by an exact spread, are left out; which ones does not depend
    on the draws, so that nothing is selected. Where a layer that was planned for does not converge all the same, the
    whole claim stays undecided: means of output terms fall short of such tails by many of their own errors.
    """
    planned = is_planned(measured, name)
    kept, left_out = measured.sel(layer=planned), measured["layer"].values[~planned.values]
    rival_title = "infinite width" + (" and few outputs" if name == "output_term" else "")
    titles = f"{name.replace('_', ' ')} is the exact finite-width expectation", rival_title
    note = f"; layers {layer_ranges(left_out)} left out, not converged" if len(left_out) else ""
    if kept.sizes["layer"] == 0:
        return Finding(*titles, Verdict.INCONCLUSIVE, f"draws for {PRECISION:.0%} of the mean at no layer")
    mean, stderr = kept[name].values, kept[f"{name}_stderr"].values
    limit = "overlap_energy" if name == "overlap_energy" else "label_term"
    expected = (kept[f"{name}_exact"].values, kept[f"{limit}_mean_field"].values)
    claim, rival = (Deviation(mean - values, stderr, ROUNDING * mean) for values in expected)
    draws, effective = measured.attrs["draws"], effective_draws(kept, name)
    found = weigh(titles, claim, rival, comparisons=2 * mean.size, draws=draws, effective=effective)
    if not is_converged(kept, name).all():
        missed = f"worst {claim.worst:.1f} s.e., rival {rival.worst:.1f} s.e."
        return Finding(*titles, Verdict.INCONCLUSIVE, f"{missed}; its mean has not converged{note}")
    return replace(found, evidence=found.evidence + note)
