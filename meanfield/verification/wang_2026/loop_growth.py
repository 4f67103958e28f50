"""Claims on the residual energy of loops: how it grows, what its increments share, and how large its cross term is."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law
from meanfield.verification.verdicts import Deviation, Finding, weigh

Array = NDArray[np.float64]

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 8
# Relative deviation from infinite width that is granted per 1/N: a step's energy fluctuates by 5/N (ReLU), and in loops
# the same matrix is met again at every step, so that fluctuations add up in amplitude while eps L is of order one.
FINITE_WIDTH = 10.0
# A correlation coefficient below this is none.
UNCORRELATED = 0.05


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One finding per claim, on a run of `sims.looped_energy`."""
    return [
        judge_mean_field(dataset),
        judge_tied_bounded(dataset),
        judge_independent_bounded(dataset),
        judge_independent_growth(dataset),
        judge_printed_growth(dataset),
        judge_correlations(dataset),
        judge_cross_bound(dataset),
        judge_cross_term(dataset),
    ]


def judge_mean_field(dataset: xr.Dataset) -> Finding:
    """ln H_L by the covariance recursion, wherever energies are bounded; rival: tied weights treated as independent."""
    bounded = [("looped", "linear"), ("deep", "sqrt"), ("deep", "linear")]
    slack = FINITE_WIDTH / float(dataset.attrs["width"])
    claims, rivals = [], []
    for model, scaling in bounded:
        at = dataset.sel(model=model, scaling=scaling)
        claims.append(at["log_energy"].values - at["log_energy_mean_field"].values)
        rivals.append(
            at["log_energy"].values - dataset["log_energy_mean_field"].sel(model="deep", scaling=scaling).values
        )
    stderr = np.concatenate([dataset["log_energy_stderr"].sel(model=m, scaling=s).values for m, s in bounded])
    claim, rival = (Deviation(np.concatenate(d), stderr, np.full(stderr.size, slack)) for d in (claims, rivals))
    titles = "energies follow the infinite-width covariance recursion", "every step with weights of its own"
    return _finding(dataset, titles, claim, rival)


def judge_tied_bounded(dataset: xr.Dataset) -> Finding:
    """H = O(1) for tied loops at alpha = 1 (P2 theorem 1), and not at 1/2."""
    return _bounded(dataset, "looped", "linear", "sqrt", "tied loops stay bounded under eps = 1/L (P2 theorem 1)")


def judge_independent_bounded(dataset: xr.Dataset) -> Finding:
    """H = O(1) for independent stacks at alpha = 1/2 (P2 appendix B), and not at 0."""
    words = "independent stacks stay bounded under eps = L^(-1/2) (P2 app. B)"
    return _bounded(dataset, "deep", "sqrt", "none", words)


def judge_independent_growth(dataset: xr.Dataset) -> Finding:
    """H_L = H_0 (1 + c eps^2)^L for stacks, c = sigma_W^2 / 2 for ReLU (P2 appendix B); rival: growth as in loops.

    Unscaled stacks are left out, as rare draws make their mean.
    """
    chosen = dataset.sel(scaling=["sqrt", "linear"])
    deep, stderr = (chosen[f"log_energy{end}"].sel(model="deep").values.ravel() for end in ("", "_stderr"))
    own, tied = (chosen["log_energy_mean_field"].sel(model=model).values.ravel() for model in ("deep", "looped"))
    slack = np.full(deep.size, FINITE_WIDTH / float(dataset.attrs["width"]))
    claim, rival = (Deviation(deep - values, stderr, slack) for values in (own, tied))
    titles = "independent stacks grow as (1 + c eps^2)^L (P2 app. B)", "as tied loops do"
    return _finding(dataset, titles, claim, rival)


def _bounded(dataset: xr.Dataset, model: str, scaling: str, looser: str, words: str) -> Finding:
    """H at most doubles over the deeper half of the loops; rival: it does not grow under the looser scaling either."""
    growth, stderr = _growth(dataset.sel(model=model, scaling=scaling))
    unbounded, error = _growth(dataset.sel(model=model, scaling=looser))
    claim = Deviation(np.array([max(growth, 0.0)]), np.array([stderr]), np.array([np.log(2.0)]))
    rival = Deviation(np.array([unbounded]), np.array([error]), np.array([np.log(2.0)]))
    shown = (
        f"ln H grows by {growth:.3f} +- {stderr:.3f} over the deeper half, under the looser scaling by {unbounded:.3g}"
    )
    return _finding(dataset, (words, "nor under the looser one"), claim, rival, shown)


def judge_printed_growth(dataset: xr.Dataset) -> Finding:
    """C_L = Theta(eps^2 L^2) for tied loops under L^(-1/2) (P2 theorem 1): slope 1; rival: the mean field's."""
    at = dataset.sel(model="looped", scaling="sqrt").isel(loops=_deeper_half(dataset))
    law, far = (
        _slope(at, at["correlation_term"].values),
        _slope(at, np.exp(at["log_correlation_term_mean_field"].values)),
    )
    slack = np.array([FINITE_WIDTH / float(dataset.attrs["width"])])
    claim, rival = (
        Deviation(np.array([law.exponent - value]), np.array([law.stderr]), slack) for value in (1.0, far.exponent)
    )
    titles = (
        "tied loops under eps = L^(-1/2) grow as eps^2 L^2 = L (P2 theorem 1, whose premise is H = O(1))",
        "exponentially in sqrt(L), as the mean field does",
    )
    shown = f"slope {law.exponent:.3f} +- {law.stderr:.3f} over {_loops(at)}, mean field {far.exponent:.3f}"
    return _finding(dataset, titles, claim, rival, shown)


def judge_correlations(dataset: xr.Dataset) -> Finding:
    """Increments of loops correlate at all distances, those of deep stacks on the diagonal alone (P2 figure 2)."""
    off = ~np.eye(dataset.sizes["increment"], dtype=bool)
    looped, deep = (dataset.sel(model=model) for model in ("looped", "deep"))
    mean, stderr = (deep[f"increment_correlation{part}"].values[off] for part in ("", "_stderr"))
    shared, error = (looped[f"increment_correlation{part}"].values[off] for part in ("", "_stderr"))
    least = int(np.argmin(shared - error))
    lacking = np.maximum(UNCORRELATED - shared, 0.0)
    claim = Deviation(
        np.concatenate([mean, lacking]), np.concatenate([stderr, error]), np.repeat([UNCORRELATED, 0.0], mean.size)
    )
    rival = Deviation(shared, error, np.full(shared.size, UNCORRELATED))
    titles = "increments correlate at all distances in loops, on the diagonal alone in deep stacks", "alike in both"
    shown = f"least in loops {shared[least]:.3f} +- {error[least]:.3f}, largest in stacks {np.abs(mean).max():.3f}"
    return _finding(dataset, titles, claim, rival, shown)


def judge_cross_bound(dataset: xr.Dataset) -> Finding:
    """|B_L| = O(eps L), a bound that no width breaks (P2 C.2); rival: it grows as N^(1/2)."""
    law = _cross_law(dataset)
    titles = "the cross term B_L is O(eps L), whatever the width (P2 C.2)", "it grows as N^(1/2)"
    return _judge_cross(dataset, titles, max(law.exponent, 0.0), law.exponent - 0.5)


def judge_cross_term(dataset: xr.Dataset) -> Finding:
    """|B_L| vanishes as N^(-1/2), at fixed eps L; rival: it stays as the bound of P2 C.2."""
    law = _cross_law(dataset)
    titles = "the cross term B_L vanishes with the width, as N^(-1/2)", "it is eps L times a constant"
    return _judge_cross(dataset, titles, law.exponent + 0.5, law.exponent)


def _cross_law(dataset: xr.Dataset) -> PowerLaw:
    names = ("cross_term_spread", "cross_term_spread_stderr")
    return fit_power_law(dataset["cross_width"].values, *(dataset[name].values for name in names))


def _judge_cross(dataset: xr.Dataset, titles: tuple[str, str], from_claim: float, from_rival: float) -> Finding:
    law = _cross_law(dataset)
    claim, rival = (Deviation(np.array([x]), np.array([law.stderr]), np.zeros(1)) for x in (from_claim, from_rival))
    return _finding(dataset, titles, claim, rival, f"exponent {law.exponent:.3f} +- {law.stderr:.3f}")


def _growth(at: xr.Dataset) -> tuple[float, float]:
    """ln H at the most loops less ln H at half as many or the next fewer, and its standard error."""
    start = _deeper_half(at).start
    energy, stderr = at["log_energy"].values, at["log_energy_stderr"].values
    return float(energy[-1] - energy[start]), float(np.hypot(stderr[-1], stderr[start]))


def _slope(at: xr.Dataset, energies: Array) -> PowerLaw:
    """Log-log slope of energies in L, weighted by the errors of the drawn ones."""
    relative = at["correlation_term_stderr"].values / at["correlation_term"].values
    return fit_power_law(at["loops"].values, energies, relative * energies)


def _deeper_half(dataset: xr.Dataset) -> slice:
    """The last three numbers of loops."""
    return slice(dataset.sizes["loops"] - 3, dataset.sizes["loops"])


def _loops(at: xr.Dataset) -> str:
    return " .. ".join(str(int(at["loops"][end])) for end in (0, -1))


def _finding(
    dataset: xr.Dataset, titles: tuple[str, str], claim: Deviation, rival: Deviation, shown: str = ""
) -> Finding:
    comparisons, draws = FINDINGS * claim.difference.size, dataset.attrs["draws"]
    share = float(dataset["largest_share"].sel(scaling="linear").max())
    return weigh(titles, claim, rival, comparisons=comparisons, draws=draws, largest_share=share, shown=shown)
