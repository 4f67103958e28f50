"""Zhang et al. 2026, 2025 on finite channels: how the label term's correction goes with channels and depth."""

from typing import Any

import numpy as np
import xarray as xr

from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.series import effective_draws, largest_share
from meanfield.verification.verdicts import Deviation

CORRECTION = "finite_channel_correction"
# Corrections per C that a function of L/C leaves open: of one layer (3/C for ReLU, see `finite_width`), as sites differ
# in the first layers; and of the Gram matrix of S sites seen through k taps, (S + 1) / (C k).
ONE_LAYER = 3.0

# Judges of `sims.cnn_finite_channels`, of so many findings in all.
CHANNEL_FINDINGS = 8
JUDGES = Judges(
    "Zhang et al. 2026",
    findings=CHANNEL_FINDINGS,
    effective=lambda dataset: effective_draws(dataset, "label_term"),
    largest_share=lambda dataset: largest_share(dataset, CORRECTION),
)
findings = JUDGES.findings


@JUDGES.decide
def judge_uniform_in_depth(dataset: xr.Dataset) -> Contest:
    """Corrections are O(1/C) uniformly in depth: at fixed C they do not grow with L; rival: they grow as L; source:
    section 3.3, eq. 27; measured: means over channels, least against greatest L/C."""
    return _ends(dataset, "depth_over_channels", "channels").contest(0.0, 1.0, "L")


@JUDGES.decide
def judge_function_of_ratio(dataset: xr.Dataset) -> Contest:
    """Corrections are a function of L/C: at fixed L/C they do not change with C; rival: corrections fall as 1/C,
    uniformly in depth (Zhang et al. 2026, section 3.3; Zhang et al. 2025, theorem 2); measured: means over L/C in
    proportion to it, fewest against most channels."""
    return _ends(dataset, "channels", "depth_over_channels").contest(0.0, -1.0, "C")


@JUDGES.decide
def judge_one_site_law(dataset: xr.Dataset) -> Contest:
    """Sites do not count as channels do: the correction is that of one site with C units, but for terms of 1/C;
    rival: that of C x sites units, the paper's effective width; measured: means over channels at each L/C."""
    means = dataset.mean("channels")
    drawn, one_site, effective = (means[f"{CORRECTION}{end}"].values for end in ("", "_one_site", "_effective_width"))
    stderr = ((dataset[f"{CORRECTION}_stderr"] ** 2).sum("channels") ** 0.5).values / dataset.sizes["channels"]
    open_terms = ONE_LAYER + gram_term(float(dataset.attrs["sites"]), float(dataset.attrs["taps"]))
    slack = open_terms * float((1 / dataset["channels"]).mean()) * (1 + one_site)
    return contest(drawn, stderr, claimed=one_site, rival=effective, allowance=slack)


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

    def contest(self, claimed: float, rival: float, letter: str) -> Contest:
        """Two power laws between the ends; what one site's exact law lacks of a function of L/C is granted to both."""
        slack = min(self._lack(claimed), self._lack(rival))
        sides = (self._deviation(exponent, slack) for exponent in (claimed, rival))
        apart, back = (self.drawn[0] * (self.factor**steeper - 1) for steeper in (rival - claimed, claimed - rival))
        return Contest(*sides, shown=self._shown(letter), apart=apart, back=back)

    def _deviation(self, exponent: float, slack: float) -> Deviation:
        """High over factor^exponent, less low: linear in the draws, so that no correction need be positive."""
        scale = np.array([-1.0, self.factor**-exponent])
        return Deviation(scale @ self.drawn, np.hypot(*(scale * self.stderr)), slack)

    def _lack(self, exponent: float) -> float:
        """How far the exact correction of one site is from the power law between the same ends."""
        return float(abs(self.factor**-exponent * self.one_site[1] - self.one_site[0]))

    def _shown(self, letter: str) -> str:
        """Drawn ends, and the exponent between them where it exists."""
        low, high = self.drawn
        both = low > 0 and high > 0
        exponent = f", as {letter}^{np.log(high / low) / np.log(self.factor):+.2f}" if both else ""
        (a, b), (da, db) = self.drawn, self.stderr
        return f"from {a:.3g} +- {da:.2g} to {b:.3g} +- {db:.2g}{exponent}"


def _ends(dataset: xr.Dataset, along: str, over: str) -> _Ends:
    """Ends of an axis of independent points averaged over another, over L/C in proportion to it."""
    weight: Any = 1 / dataset[over] if over == "depth_over_channels" else xr.ones_like(dataset[over])
    corrections = dataset[[name for name in dataset.data_vars if str(name).startswith(CORRECTION)]] * weight
    stderr = np.sqrt((corrections[f"{CORRECTION}_stderr"] ** 2).sum(over)) / dataset.sizes[over]
    means = corrections.mean(over).assign({f"{CORRECTION}_stderr": stderr})
    axis = dataset[along]
    return _Ends(means.isel({along: 0}), means.isel({along: -1}), float(axis[-1] / axis[0]))
