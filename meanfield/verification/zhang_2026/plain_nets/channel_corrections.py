"""Claims on finite channels: how the label term's correction scales in channels and depth, and what it is."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.verification.verdicts import Deviation, Finding, effective_draws, weigh
from meanfield.verification.zhang_2026.plain_nets import overlap_conservation

Array = NDArray[np.float64]

CORRECTION = "finite_channel_correction"
# Findings of one run of `sims.cnn_finite_channels`, over which its false-alarm budget is split.
FINDINGS = 9
# Corrections per C that a function of L/C leaves open: of one layer (3/C for ReLU, see `finite_width`), as sites differ
# in the first layers; and of the Gram matrix of S sites seen through k taps, (S + 1) / (C k).
ONE_LAYER = 3.0

# P0 Lemmas 1 and 5 on convolutional nets, within this run's budget.
judge_conditional_mean = partial(overlap_conservation.judge_conditional_mean, findings=FINDINGS)
judge_added_variance = partial(overlap_conservation.judge_added_variance, findings=FINDINGS)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim on corrections and on what a layer does to an overlap."""
    return [
        judge_uniform_in_depth(dataset),
        judge_function_of_ratio(dataset),
        judge_one_site_law(dataset),
        judge_conditional_mean(dataset),
        judge_added_variance(dataset),
    ]


def judge_uniform_in_depth(dataset: xr.Dataset) -> Finding:
    """At fixed channels, averaged over them, least against greatest L/C: as the papers say, no growth; rival: as L."""
    ends = _ends(dataset.mean("channels"), dataset, "depth_over_channels", "channels")
    titles = (
        "corrections are O(1/C) uniformly in depth: at fixed C they do not grow with L (P0 section 3.3, eq. 27)",
        "they grow as L",
    )
    return _scaling(dataset, titles, ends, 0.0, 1.0, "L")


def judge_function_of_ratio(dataset: xr.Dataset) -> Finding:
    """At fixed L/C, averaged over it in proportion, fewest against most channels: no change; rival: 1/C, uniformly."""
    share = dataset["depth_over_channels"]
    names = [name for name in dataset.data_vars if str(name).startswith(CORRECTION)]
    ends = _ends((dataset[names] / share).mean("depth_over_channels"), dataset, "channels", "depth_over_channels")
    titles = (
        "corrections are a function of L/C: at fixed L/C they do not change with C",
        "they fall as 1/C, uniformly in depth (P0 section 3.3, P3 theorem 2)",
    )
    return _scaling(dataset, titles, ends, 0.0, -1.0, "C")


def judge_one_site_law(dataset: xr.Dataset) -> Finding:
    """At each L/C, averaged over channels: exact for one site of C units; rival: of C x sites, P0's effective width."""
    means = dataset.mean("channels")
    drawn, one_site, effective = (means[f"{CORRECTION}{end}"].values for end in ("", "_one_site", "_effective_width"))
    stderr = ((dataset[f"{CORRECTION}_stderr"] ** 2).sum("channels") ** 0.5).values / dataset.sizes["channels"]
    open_terms = ONE_LAYER + gram_term(float(dataset.attrs["sites"]), float(dataset.attrs["taps"]))
    slack = open_terms * float((1 / dataset["channels"]).mean()) * (1 + one_site)
    claim, rival = (Deviation(drawn - expected, stderr, slack) for expected in (one_site, effective))
    titles = (
        "sites do not count as channels do: the correction is that of one site with C units, but for terms of 1/C",
        "that of C x sites units, P0's effective width",
    )
    return _finding(dataset, titles, claim, rival, "")


def gram_term(sites: float, taps: float) -> float:
    """C times the relative excess of the mean squared Gram matrix of white inputs (see `finite_width`)."""
    return (sites + 1) / taps


class _Ends:
    """Mean corrections at two ends of an axis, a ``factor`` apart."""

    def __init__(self, low: xr.Dataset, high: xr.Dataset, factor: float) -> None:
        self.factor = factor
        self.drawn, self.stderr, self.one_site = (
            np.array([float(end[CORRECTION + name]) for end in (low, high)]) for name in ("", "_stderr", "_one_site")
        )

    def deviation(self, exponent: float, slack: float) -> Deviation:
        """High over factor^exponent, less low: linear in the draws, so that no correction need be positive."""
        scale = np.array([-1.0, self.factor**-exponent])
        difference, stderr = scale @ self.drawn, np.hypot(*(scale * self.stderr))
        return Deviation(np.array([difference]), np.array([stderr]), np.array([slack]))

    def lack(self, exponent: float) -> float:
        """How far the exact correction of one site is from the power law between the same ends."""
        return float(abs(self.factor**-exponent * self.one_site[1] - self.one_site[0]))

    def shown(self, letter: str) -> str:
        """Drawn ends, and the exponent between them where it exists."""
        low, high = self.drawn
        both = low > 0 and high > 0
        exponent = f", as {letter}^{np.log(high / low) / np.log(self.factor):+.2f}" if both else ""
        (a, b), (da, db) = self.drawn, self.stderr
        return f"from {a:.3g} +- {da:.2g} to {b:.3g} +- {db:.2g}{exponent}"


def _ends(means: xr.Dataset, dataset: xr.Dataset, along: str, over: str) -> _Ends:
    """Ends of an axis of independent points averaged over another."""
    weight = 1 / dataset["depth_over_channels"] if over == "depth_over_channels" else xr.ones_like(dataset[over])
    variance = ((dataset[f"{CORRECTION}_stderr"] * weight) ** 2).sum(over)
    means = means.assign({f"{CORRECTION}_stderr": np.sqrt(variance) / dataset.sizes[over]})
    axis = dataset[along]
    return _Ends(means.isel({along: 0}), means.isel({along: -1}), float(axis[-1] / axis[0]))


def _scaling(
    dataset: xr.Dataset, titles: tuple[str, str], ends: _Ends, claimed: float, other: float, letter: str
) -> Finding:
    """Two power laws between the ends; what the exact law of one site lacks of a function of L/C is granted to both."""
    slack = min(ends.lack(claimed), ends.lack(other))
    claim, rival = (ends.deviation(exponent, slack) for exponent in (claimed, other))
    return _finding(dataset, titles, claim, rival, ends.shown(letter))


def _finding(dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str) -> Finding:
    return weigh(
        titles,
        claim,
        rival,
        comparisons=FINDINGS * claim.difference.size,
        draws=dataset.attrs["draws"],
        effective=effective_draws(dataset, "label_term"),
        largest_share=float(dataset[f"{CORRECTION}_largest_share"].max()),
        shown=shown,
    )
