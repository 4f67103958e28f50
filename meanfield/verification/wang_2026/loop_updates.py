"""Wang et al. 2026 on one update of a loop's weights: how |dh_L|^2 / N goes with loops, residual scaling and width."""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw
from meanfield.verification import drawn_slopes
from meanfield.verification.claims import Claim, checks
from meanfield.verification.drawn_slopes import drawn_law, shown
from meanfield.verification.judges import Contest, Judges, contest, slope_contest
from meanfield.verification.wang_2026.loop_growth import FINITE_WIDTH

# What an exponent over a few doublings of the width may still lack of its limit.
NEAR = 0.1

# The judges of `sims.looped_update`.
JUDGES = Judges("Wang et al. 2026")
findings = JUDGES.findings


def printed_exponent(alpha: float) -> float:
    """Exponent in L of (eta eps L)^2 (eq. 3), from which eta ~ L^(alpha - 1) follows (eq. 4)."""
    return 2 * (1 - alpha)


def drawn_slope(dataset: xr.Dataset, update: str, alpha: float) -> PowerLaw:
    """Slope in L of what was drawn."""
    return drawn_law(dataset.sel(update=update, alpha=alpha), "loops", "update_energy")


def theory_slope(dataset: xr.Dataset, alpha: float) -> float:
    """Slope in L of the recursion for isotropic updates, its points weighted as the drawn ones."""
    at = dataset.sel(update="isotropic", alpha=alpha)
    return drawn_slopes.theory_slope(at, "loops", "update_energy", at["log_update_energy_mean_field"].values)


def width_slope(dataset: xr.Dataset, update: str) -> PowerLaw:
    """Slope in N at alpha = 1."""
    return drawn_law(dataset.sel(update=update), "width", "by_width")


@JUDGES.decide
def judge_recursion(dataset: xr.Dataset) -> Contest:
    """Isotropic updates at alpha >= 1 move the stream as the recursion says; rival: no step carries what others
    moved."""
    at = dataset.sel(update="isotropic", alpha=dataset["alpha"] >= 1)
    theory, own = (np.exp(at[f"log_{name}_energy_mean_field"].values).ravel() for name in ("update", "own"))
    energy, stderr = at["update_energy"].values.ravel(), at["update_energy_stderr"].values.ravel()
    return contest(energy, stderr, claimed=theory, rival=own, allowance=_finite_width(dataset) * theory)


@JUDGES.decide_each({"update": "isotropic"}, {"update": "aligned"})
def judge_stable(dataset: xr.Dataset, update: str) -> Contest:
    """{update} updates scale as (eta eps L)^2 at alpha >= 1, so eta ~ L^(alpha-1); rival: eta ~ L^(1-alpha), as the
    introduction prints; source: eq. 3, 4; measured: slopes in L, which a relative correction 1/L puts off by 1/L."""
    alphas = [float(alpha) for alpha in dataset["alpha"].values if alpha >= 1]
    laws = [drawn_slope(dataset, update, alpha) for alpha in alphas]
    printed = np.array([printed_exponent(alpha) for alpha in alphas])
    words = ", ".join(f"{shown(law)} at alpha = {alpha:g}" for law, alpha in zip(laws, alphas, strict=True))
    slack = 1 / float(dataset["loops"][0])
    return slope_contest(*laws, claimed=printed, rival=-printed, allowance=slack, shown=f"slopes {words}")


@JUDGES.decide
def judge_below_threshold(dataset: xr.Dataset) -> Contest:
    """Isotropic updates scale as (eta eps L)^2 = eta^2 L at alpha = 1/2 too; rival: exponentially in sqrt(L), as the
    recursion says."""
    law, theory = drawn_slope(dataset, "isotropic", 0.5), theory_slope(dataset, 0.5)
    words, slack = f"slope {shown(law, digits=2)}, recursion {theory:.2f}", _finite_width(dataset) * theory
    return slope_contest(law, claimed=printed_exponent(0.5), rival=theory, allowance=slack, shown=words)


@JUDGES.decide
def judge_width(dataset: xr.Dataset) -> Contest:
    """Sign updates of the true gradient move the stream alike at every width; rival: they move it as N: their norm
    is eta sqrt(N); source: theorem 2, premise 1: |Delta W| = Theta(eta)."""
    law, isotropic = width_slope(dataset, "aligned"), width_slope(dataset, "isotropic")
    words = f"slope in N {shown(law)}, of isotropic signs {isotropic.exponent:.3f}"
    return slope_contest(law, claimed=0.0, rival=1.0, allowance=NEAR, shown=words)


def _finite_width(dataset: xr.Dataset) -> float:
    return FINITE_WIDTH / float(dataset.attrs["ladder_width"])


CLAIMS = (
    Claim(
        id="L5",
        source="Wang et al. 2026, theorem 2",
        statement="|dh_L|^2 / N = Theta((eta eps L)^2) under one update, so that eta ~ L^(alpha - 1)",
        checks=checks(
            "looped_update",
            *(partial(judge_stable, update=update) for update in ("isotropic", "aligned")),
            judge_below_threshold,
            judge_width,
        ),
        replaced_by="holds for alpha >= 1; below, |dh_L|^2 grows exponentially with the stream. The signs of the true "
        "gradient move the stream by eta^2 N, which asks for eta ~ N^(-1/2) L^(alpha - 1)",
        premise="H = O(1) fails below alpha = 1, and |dW| = O(eta) fails for the signs of the true gradient",
    ),
)
