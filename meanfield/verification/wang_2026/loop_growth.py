"""Wang et al. 2026 on the residual energy of loops: its growth, what increments share, its cross term."""

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw
from meanfield.verification.claims import Claim, checks
from meanfield.verification.drawn_slopes import drawn_law, shown, span, theory_slope
from meanfield.verification.judges import Contest, Judges, contest, joined, slope_contest
from meanfield.verification.verdicts import Deviation

# Relative deviation from infinite width that is granted per 1/N: a step's energy fluctuates by 5/N (ReLU), and in loops
# the same matrix is met again at every step, so that fluctuations add up in amplitude while eps L is of order one.
FINITE_WIDTH = 10.0
# A correlation coefficient below this is none.
UNCORRELATED = 0.05
# Models and scalings under which energies stay bounded.
BOUNDED = (("looped", "linear"), ("deep", "sqrt"), ("deep", "linear"))

# The judges of `sims.looped_energy`.
JUDGES = Judges(
    "Wang et al. 2026", largest_share=lambda dataset: float(dataset["largest_share"].sel(scaling="linear").max())
)
findings = JUDGES.findings


@JUDGES.decide
def judge_mean_field(dataset: xr.Dataset) -> Contest:
    """Energies follow the infinite-width covariance recursion; rival: that of stacks, every step with its own
    weights; measured: ln H_L, wherever energies are bounded."""
    parts = []
    for model, scaling in BOUNDED:
        at, stack = (dataset.sel(model=kind, scaling=scaling) for kind in (model, "deep"))
        energy, stderr = at["log_energy"].values, at["log_energy_stderr"].values
        expected = {"claimed": at["log_energy_mean_field"].values, "rival": stack["log_energy_mean_field"].values}
        parts.append(contest(energy, stderr, **expected, allowance=_finite_width(dataset)))
    return joined(parts)


@JUDGES.decide
def judge_tied_bounded(dataset: xr.Dataset) -> Contest:
    """Tied loops stay bounded under eps = 1/L; rival: they stay so under eps = L^(-1/2) too; source: theorem 1."""
    return _bounded(dataset, "looped", "linear", "sqrt")


@JUDGES.decide
def judge_independent_bounded(dataset: xr.Dataset) -> Contest:
    """Independent stacks stay bounded under eps = L^(-1/2); rival: they stay so unscaled too; source: appendix B."""
    return _bounded(dataset, "deep", "sqrt", "none")


@JUDGES.decide
def judge_independent_growth(dataset: xr.Dataset) -> Contest:
    """Independent stacks grow as (1 + c eps^2)^L; rival: they grow as tied loops do; source: appendix B; measured:
    ln H_L, c = sigma_W^2 / 2 for ReLU; not of unscaled stacks, as rare draws make their mean."""
    scaled = dataset.sel(scaling=["sqrt", "linear"])
    drawn, stderr = (scaled[f"log_energy{end}"].sel(model="deep").values.ravel() for end in ("", "_stderr"))
    own, tied = (scaled["log_energy_mean_field"].sel(model=model).values.ravel() for model in ("deep", "looped"))
    return contest(drawn, stderr, claimed=own, rival=tied, allowance=_finite_width(dataset))


def _bounded(dataset: xr.Dataset, model: str, scaling: str, looser: str) -> Contest:
    """H at most doubles over the deeper half of the loops; rival: the same of the looser scaling."""
    growth, stderr = _growth(dataset.sel(model=model, scaling=scaling))
    unbounded, error = _growth(dataset.sel(model=model, scaling=looser))
    twice = np.log(2.0)
    words = f"ln H grows by {growth:.3f} +- {stderr:.3f} over the deeper half of the loops, under the looser scaling by"
    claim, rival = Deviation(max(growth, 0.0), stderr, twice), Deviation(unbounded, error, twice)
    return Contest(claim, rival, shown=f"{words} {unbounded:.3g}")


@JUDGES.decide
def judge_printed_growth(dataset: xr.Dataset) -> Contest:
    """Tied loops under eps = L^(-1/2) grow as eps^2 L^2 = L; rival: they grow exponentially in sqrt(L), as in the
    mean field; source: theorem 1, whose premise is H = O(1); measured: the slope in L of C_L over the deeper half of
    the loops."""
    at = dataset.sel(model="looped", scaling="sqrt").isel(loops=_deeper_half(dataset))
    law = drawn_law(at, "loops", "correlation_term")
    far = theory_slope(at, "loops", "correlation_term", at["log_correlation_term_mean_field"].values)
    words = f"slope {shown(law)} over {span(at['loops'])}, mean field {far:.3f}"
    return slope_contest(law, claimed=1.0, rival=far, allowance=_finite_width(dataset), shown=words)


@JUDGES.decide
def judge_correlations(dataset: xr.Dataset) -> Contest:
    """Increments correlate at all distances in loops, on the diagonal alone in deep stacks; rival: they do not
    correlate in loops either; source: figure 2; measured: correlation coefficients of two steps, none below
    `UNCORRELATED`."""
    apart = ~np.eye(dataset.sizes["increment"], dtype=bool)
    (looped, error), (deep, stderr) = (_correlations(dataset.sel(model=m), apart) for m in ("looped", "deep"))
    least = int(np.argmin(looped - error))
    lacking = Deviation(np.maximum(UNCORRELATED - looped, 0.0), error)
    claim = Deviation.joined([Deviation(deep, stderr, UNCORRELATED), lacking])
    words = f"least in loops {looped[least]:.3f} +- {error[least]:.3f}, largest in stacks {np.abs(deep).max():.3f}"
    return Contest(claim, Deviation(looped, error, UNCORRELATED), shown=words)


def _correlations(at: xr.Dataset, steps: Array) -> tuple[Array, Array]:
    mean, stderr = (at[f"increment_correlation{end}"].values[steps] for end in ("", "_stderr"))
    return mean, stderr


@JUDGES.decide
def judge_cross_bound(dataset: xr.Dataset) -> Contest:
    """The cross term B_L is O(eps L), whatever the width; rival: it grows as N^(1/2); source: appendix C.2;
    measured: the slope in N at fixed eps L; a bound allows for one that falls."""
    law = _cross_law(dataset)
    from_bound, from_rival = max(law.exponent, 0.0), law.exponent - 0.5
    return Contest(*(Deviation(x, law.stderr) for x in (from_bound, from_rival)), shown=f"exponent {shown(law)}")


@JUDGES.decide
def judge_cross_term(dataset: xr.Dataset) -> Contest:
    """The cross term B_L vanishes with the width, as N^(-1/2); rival: it is eps L times a constant."""
    law = _cross_law(dataset)
    return slope_contest(law, claimed=-0.5, rival=0.0, shown=f"exponent {shown(law)}")


def _cross_law(dataset: xr.Dataset) -> PowerLaw:
    return drawn_law(dataset, "cross_width", "cross_term_spread")


def _growth(at: xr.Dataset) -> tuple[float, float]:
    """ln H at the most loops less ln H at half as many or the next fewer, and its standard error."""
    start = _deeper_half(at).start
    energy, stderr = at["log_energy"].values, at["log_energy_stderr"].values
    return float(energy[-1] - energy[start]), float(np.hypot(stderr[-1], stderr[start]))


def _deeper_half(dataset: xr.Dataset) -> slice:
    """The last three numbers of loops."""
    return slice(dataset.sizes["loops"] - 3, dataset.sizes["loops"])


def _finite_width(dataset: xr.Dataset) -> float:
    return FINITE_WIDTH / float(dataset.attrs["width"])


CLAIMS = (
    Claim(
        id="L1",
        source="Wang et al. 2026, theorem 1",
        statement="H_L = H_0 + O(eps L) + Theta(eps^2 L^2) in tied loops, bounded if and only if alpha >= 1",
        checks=checks("looped_energy", judge_tied_bounded, judge_printed_growth),
        replaced_by="below alpha = 1 the energy grows like exp(c L^(1 - alpha)); bounded at and above it, as claimed",
        premise="H = O(1), which the proof takes as given, fails below alpha = 1",
    ),
    Claim(
        id="L2",
        source="Wang et al. 2026, appendix B",
        statement="H_L = (1 + c eps^2)^L H_0 with independent weights, bounded if and only if alpha >= 1/2",
        checks=checks("looped_energy", judge_independent_growth, judge_independent_bounded),
    ),
    Claim(
        id="L3",
        source="Wang et al. 2026, figure 2, appendix C.1",
        statement="increments correlate at all distances in loops, and on the diagonal alone in deep stacks",
        checks=checks("looped_energy", judge_correlations, judge_mean_field),
    ),
    Claim(
        id="L4",
        source="Wang et al. 2026, appendix C.2",
        statement="the cross term B_L is at most of order eps L (it even vanishes with the width, as N^(-1/2))",
        checks=checks("looped_energy", judge_cross_bound, judge_cross_term),
    ),
)
