"""The exact finite-width expectation held against draws: no allowance, no fitted constant."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification.verdicts import Bands, Deviation, Finding, effective_draws, judge


def judge_exact(measured: xr.Dataset, name: str) -> Finding:
    """NAME against NAME_exact; rival: infinite width, the label term's mean field.

    At leading order in 1/n and few outputs the output term equals the label term, so both have the same rival.
    """
    mean, stderr = measured[name].values, measured[f"{name}_stderr"].values
    nothing = np.zeros_like(mean)
    claim = Deviation(mean - measured[f"{name}_exact"].values, stderr, nothing)
    rival = Deviation(mean - measured["label_term_mean_field"].values, stderr, nothing)
    bands = Bands.of(2 * mean.size, effective_draws(measured, name))
    share = float(measured[f"{name}_largest_share"].max())
    return Finding(
        claim=f"{name.replace('_', ' ')} is the exact finite-width expectation",
        rival="infinite width and few outputs",
        verdict=judge(claim, rival, bands, share),
        evidence=f"worst {claim.worst:.1f} s.e., rival {rival.worst:.1f} s.e., band {bands.alarm:.3g}",
    )
