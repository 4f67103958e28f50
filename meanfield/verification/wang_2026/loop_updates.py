"""Claims on one update of a loop's weights: how |dh_L|^2 / N scales with loops, residual scaling and width."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, weigh
from meanfield.verification.wang_2026.loop_growth import FINITE_WIDTH

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 5
# What an exponent over a few doublings of the width may still lack of its limit.
NEAR = 0.1


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.looped_update`."""
    return [
        judge_recursion(dataset),
        judge_stable(dataset, "isotropic"),
        judge_stable(dataset, "aligned"),
        judge_below_threshold(dataset),
        judge_width(dataset),
    ]


def printed_exponent(alpha: float) -> float:
    """Exponent in L of (eta eps L)^2 (P2 eq. 3), from which eta ~ L^(alpha - 1) follows (eq. 4)."""
    return 2 * (1 - alpha)


def drawn_slope(dataset: xr.Dataset, update: str, alpha: float) -> PowerLaw:
    """Slope in L of what was drawn."""
    at = dataset.sel(update=update, alpha=alpha)
    return fit_power_law(at["loops"].values, at["update_energy"].values, at["update_energy_stderr"].values)


def theory_slope(dataset: xr.Dataset, alpha: float) -> float:
    """Slope in L of the recursion for isotropic updates, its points weighted as the drawn ones."""
    at = dataset.sel(update="isotropic", alpha=alpha)
    weights = (at["update_energy"] / at["update_energy_stderr"]).values
    logs = at["log_update_energy_mean_field"].values
    return float(np.polyfit(np.log(at["loops"].values), logs, 1, w=weights)[0])


def width_slope(dataset: xr.Dataset, update: str) -> PowerLaw:
    """Slope in N at alpha = 1."""
    at = dataset.sel(update=update)
    return fit_power_law(at["width"].values, at["by_width"].values, at["by_width_stderr"].values)


def judge_recursion(dataset: xr.Dataset) -> Finding:
    """Isotropic updates at alpha >= 1 by the recursion; rival: the update alone, nothing carried from step to step."""
    at = dataset.sel(update="isotropic", alpha=dataset["alpha"] >= 1)
    energy, stderr = at["update_energy"].values, at["update_energy_stderr"].values
    theory = np.exp(at["log_update_energy_mean_field"].values)
    slack = FINITE_WIDTH / float(dataset.attrs["ladder_width"]) * theory
    own = np.exp(at["log_own_energy_mean_field"].values)
    claim, rival = (Deviation((energy - x).ravel(), stderr.ravel(), slack.ravel()) for x in (theory, own))
    titles = (
        "isotropic updates at alpha >= 1 move the stream as the recursion says",
        "no step carries what others moved",
    )
    return _finding(dataset, titles, claim, rival)


def judge_stable(dataset: xr.Dataset, update: str) -> Finding:
    """|dh_L|^2 / N = Theta((eta eps L)^2) at alpha >= 1 (P2 theorem 2); rival: the sign of its other print."""
    alphas = [float(alpha) for alpha in dataset["alpha"].values if alpha >= 1]
    laws = [drawn_slope(dataset, update, alpha) for alpha in alphas]
    printed = np.array([printed_exponent(alpha) for alpha in alphas])
    # Energies of a relative correction 1/L have slopes that differ by 1/L, at most by that at the fewest loops.
    slack = np.full(printed.size, 1 / float(dataset["loops"][0]))
    slope, stderr = np.array([law.exponent for law in laws]), np.array([law.stderr for law in laws])
    claim, rival = (Deviation(slope - sign * printed, stderr, slack) for sign in (1, -1))
    titles = (
        f"{update} updates scale as (eta eps L)^2 at alpha >= 1, so eta ~ L^(alpha-1) (P2 eq. 3, 4)",
        "eta ~ L^(1-alpha), as the introduction prints",
    )
    shown = ", ".join(
        f"{law.exponent:.3f} +- {law.stderr:.3f} at alpha = {a:g}" for law, a in zip(laws, alphas, strict=True)
    )
    return _finding(dataset, titles, claim, rival, f"slopes {shown}")


def judge_below_threshold(dataset: xr.Dataset) -> Finding:
    """The same law at alpha = 1/2, where the premise H = O(1) fails; rival: the recursion's slope."""
    law, theory = drawn_slope(dataset, "isotropic", 0.5), theory_slope(dataset, 0.5)
    slack = FINITE_WIDTH / float(dataset.attrs["ladder_width"]) * theory
    claim, rival = (_slope(law, value, slack) for value in (printed_exponent(0.5), theory))
    titles = "isotropic updates scale as (eta eps L)^2 = eta^2 L at alpha = 1/2 too", "exponentially in sqrt(L)"
    shown = f"slope {law.exponent:.2f} +- {law.stderr:.2f}, recursion {theory:.2f}"
    return _finding(dataset, titles, claim, rival, shown)


def judge_width(dataset: xr.Dataset) -> Finding:
    """|Delta W| = Theta(eta) for the sign of the true gradient (premise 1 of theorem 2); rival: eta sqrt(N)."""
    law, isotropic = width_slope(dataset, "aligned"), width_slope(dataset, "isotropic")
    claim, rival = (_slope(law, value, NEAR) for value in (0.0, 1.0))
    titles = "sign updates of the true gradient move the stream alike at every width", "as N: their norm is eta sqrt(N)"
    shown = f"slope in N {law.exponent:.3f} +- {law.stderr:.3f}, of isotropic signs {isotropic.exponent:.3f}"
    return _finding(dataset, titles, claim, rival, shown)


def _slope(law: PowerLaw, value: float, slack: ArrayLike) -> Deviation:
    return Deviation(np.array([law.exponent - value]), np.array([law.stderr]), np.atleast_1d(slack))


def _finding(
    dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str = ""
) -> Finding:
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws"]
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, shown=shown)
