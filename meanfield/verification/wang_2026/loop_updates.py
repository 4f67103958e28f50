"""Wang et al. 2026 on one update of a loop's weights: how |dh_L|^2 / N goes with loops, residual scaling and width."""

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw
from meanfield.verification import series
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Contest, Judges, contest, slope_contest
from meanfield.verification.series import drawn_law, limit_law, shown_laws, span
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
    return series.theory_slope(at, "loops", "update_energy", at["log_update_energy_mean_field"].values)


def far_slope(dataset: xr.Dataset, alpha: float) -> float:
    """Slope in L of the recursion for isotropic updates between the two numbers of loops that are far up."""
    rise = np.diff(dataset["log_update_energy_far"].sel(alpha=alpha).values)[0]
    return float(rise / np.diff(np.log(dataset["far_loops"].values))[0])


def width_slope(dataset: xr.Dataset, update: str) -> PowerLaw:
    """Slope in N at alpha = 1."""
    return drawn_law(dataset.sel(update=update), "width", "by_width")


@JUDGES.decide
def judge_recursion(dataset: xr.Dataset) -> Contest:
    """Isotropic updates at alpha >= 1 move the stream as the recursion says; rival: no step carries what others moved;
    measured: drawn |dh_L|^2 / N at every number of loops, for every alpha of at least 1."""
    at = dataset.sel(update="isotropic", alpha=dataset["alpha"] >= 1)
    theory, own = (np.exp(at[f"log_{name}_energy_mean_field"].values).ravel() for name in ("update", "own"))
    energy, stderr = at["update_energy"].values.ravel(), at["update_energy_stderr"].values.ravel()
    return contest(energy, stderr, claimed=theory, rival=own, allowance=_finite_width(dataset) * theory)


@JUDGES.decide
def judge_theorem(dataset: xr.Dataset) -> Contest:
    """Isotropic updates scale as (eta eps L)^2 at alpha >= 1, so eta ~ L^(alpha-1); rival: as eta^2 eps^2 L, steps
    adding up as independent ones; source: theorem 2, eq. 3, 4; measured: slopes in L, less what the recursion's slope
    over these loops lacks of that over {far} loops."""
    alphas = _stable_alphas(dataset)
    laws = [drawn_slope(dataset, "isotropic", alpha) for alpha in alphas]
    printed = np.array([printed_exponent(alpha) for alpha in alphas])
    lacking = np.array([theory_slope(dataset, alpha) - far_slope(dataset, alpha) for alpha in alphas])
    slope, stderr = series.exponents_of(*laws)
    words = ", ".join(
        f"{shown_laws(law)} at alpha = {alpha:g}, of which {gap:+.3f} is of finite loops"
        for law, alpha, gap in zip(laws, alphas, lacking, strict=True)
    )
    far = {"far": span(dataset["far_loops"])}
    return contest(slope - lacking, stderr, claimed=printed, rival=printed - 1, shown=f"slopes {words}", words=far)


@JUDGES.decide
def judge_aligned(dataset: xr.Dataset) -> Contest:
    """Signs of the true gradient move the stream as (eta eps L)^2 in L at alpha >= 1 too; rival: as eta^2 eps^2 L;
    source: theorem 2, eq. 3, beyond its first premise; measured: limits of slopes in L where finite loops correct by
    c / L, as steps of a differential equation and powers of (eps L)^2 do; granted what the same fit leaves of the
    recursion of isotropic updates."""
    alphas = _stable_alphas(dataset)
    laws = [limit_law(dataset.sel(update="aligned", alpha=alpha), "loops", "update_energy") for alpha in alphas]
    printed = np.array([printed_exponent(alpha) for alpha in alphas])
    left = [abs(_recursion_limit(dataset, alpha) - far_slope(dataset, alpha)) for alpha in alphas]
    words = ", ".join(f"{shown_laws(law)} at alpha = {alpha:g}" for law, alpha in zip(laws, alphas, strict=True))
    return slope_contest(*laws, claimed=printed, rival=printed - 1, allowance=left, shown=f"limits of slopes {words}")


def _stable_alphas(dataset: xr.Dataset) -> list[float]:
    return [float(alpha) for alpha in dataset["alpha"].values if alpha >= 1]


def _recursion_limit(dataset: xr.Dataset, alpha: float) -> float:
    """What the fit of `judge_aligned` makes of the recursion, its points weighted as the drawn ones."""
    at = dataset.sel(update="aligned", alpha=alpha)
    theory = np.exp(at["log_update_energy_mean_field"])
    stderr = theory * at["update_energy_stderr"] / at["update_energy"]
    return limit_law(at.assign(theory=theory, theory_stderr=stderr), "loops", "theory").exponent


@JUDGES.decide
def judge_below_threshold(dataset: xr.Dataset) -> Contest:
    """Isotropic updates scale as (eta eps L)^2 = eta^2 L at alpha = 1/2, outside the premise eps L = O(1), too; rival:
    exponentially in sqrt(L), as the recursion says; source: the formula of theorem 2; measured: the slope in L of drawn
    |dh_L|^2 / N."""
    law, theory = drawn_slope(dataset, "isotropic", 0.5), theory_slope(dataset, 0.5)
    words, slack = f"slope {shown_laws(law, digits=2)}, recursion {theory:.2f}", _finite_width(dataset) * theory
    return slope_contest(law, claimed=printed_exponent(0.5), rival=theory, allowance=slack, shown=words)


@JUDGES.decide
def judge_width(dataset: xr.Dataset) -> Contest:
    """Signs of the true gradient have |Delta W| = Theta(eta), and move the stream alike at every width; rival: their
    norm is eta sqrt(N), and they move it as N; source: theorem 2, premise 1; measured: the slope in N of
    drawn |dh_L|^2 / N."""
    law, isotropic = width_slope(dataset, "aligned"), width_slope(dataset, "isotropic")
    words = f"slope in N {shown_laws(law)}, of isotropic signs {isotropic.exponent:.3f}"
    return slope_contest(law, claimed=0.0, rival=1.0, allowance=NEAR, shown=words)


def _finite_width(dataset: xr.Dataset) -> float:
    return FINITE_WIDTH / float(dataset.attrs["ladder_width"])


CLAIMS = (
    Claim(
        id="L5a",
        kind=Kind.AS_STATED,
        source="Wang et al. 2026, theorem 2",
        statement="|dh_L|^2 / N = Theta((eta eps L)^2) under one isotropic update where eps L = O(1), so that "
        "eta ~ L^(alpha - 1) (the list of contributions prints L^(1 - alpha))",
        printed='"E |Delta h_L|^2 / N = Theta((eta eps L)^2) (up to L-independent constants)" (theorem 2)',
        hypotheses="signs with |dW| = Theta(eta), |phi(h_l)|^2 / N = Theta(1), eps L = O(1)",
        checks=checks("looped_update", judge_theorem),
    ),
    Claim(
        id="L5b",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, section 1, which has eta ~ L^(alpha - 1) without a condition; theorem 2 has it where "
        "eps L = O(1)",
        statement="below alpha = 1 too, |dh_L|^2 / N goes as (eta eps L)^2",
        printed='"Then (1/N) E[|Delta h_L|^2] = Theta((eta eps L)^2) (up to L-independent constants)" (theorem 2)',
        hypotheses="those of L5a without eps L = O(1)",
        checks=checks("looped_update", judge_below_threshold),
        replaced_by="|dh_L|^2 grows exponentially with the stream, as eta^2 L^(1 - alpha) |h_L|^2",
        premise="eps L = O(1) and H = O(1), which the theorem asks for and section 1 leaves out, fail below alpha = 1",
    ),
    Claim(
        id="L5c",
        kind=Kind.PREMISE,
        source="Wang et al. 2026, theorem 2, premise 1",
        statement="sign updates have |dW| = Theta(eta): held against the signs of the gradient of one sample",
        printed='"Assume: 1. sign-normalized update scale Delta W_ij = (eta / sqrt(N)) S_ij and |Delta W| = '
        'Theta(eta)" (theorem 2)',
        hypotheses="it is one: theorem 2 assumes it",
        checks=checks("looped_update", judge_width),
        replaced_by="they have |dW| = eta sqrt(N) and move the stream by eta^2 N, which asks for eta ~ N^(-1/2)",
        premise="the gradient of a sample is a sum of few outer products, so that its signs are far from isotropic",
    ),
    Claim(
        id="L5d",
        kind=Kind.BEYOND,
        source="Wang et al. 2026, theorem 2 without its premise on |dW|",
        statement="in L, signs of the true gradient too give (eta eps L)^2 where eps L = O(1), so that "
        "eta ~ L^(alpha - 1) at a fixed width",
        printed='"(1/N) E[|Delta h_L|^2] = Theta((eta eps L)^2) ... So depth-invariant one-step output change '
        'requires eta eps L = Theta(1) <=> eta ~ L^(alpha - 1)" (theorem 2)',
        hypotheses="those of L5a without |dW| = Theta(eta)",
        checks=checks("looped_update", judge_aligned),
    ),
)
