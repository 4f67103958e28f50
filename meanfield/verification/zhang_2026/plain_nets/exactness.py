"""Drawn nets against the exact finite-width expectation: no allowance, no fitted constant, and which means to trust.

At depths of the order of the width a mean is made by draws so rare that no run sees them; the spread of the draws that
it does see then says nothing. The exact spreads of the overlap energy and of the label term are known beforehand, and
with them how many draws a mean takes. The output term spreads further than the label term, so what is asked of B is a
least number of draws for A and S.
"""

from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from meanfield.common.validation import takes
from meanfield.verification.comparison import ROUNDING
from meanfield.verification.judges import Contest, Judges, Ruling, contest
from meanfield.verification.power import UNCONVERGED, draws_to_converge, needing
from meanfield.verification.series import effective_draws, largest_share
from meanfield.verification.verdicts import CONVERGED_SHARE, Verdict

OVERLAP_SPREAD = "overlap_energy_relative_spread"
LABEL_SPREAD = "label_term_relative_spread"
TERMS = ("output_term", "label_term")

# A mean whose standard error is a larger part of it than this counts as not converged.
PRECISION = 0.1

# Judges of `sims.mlp_depth`: two quantities of one net, or one of many nets, share its budget.
JUDGES = Judges(findings=2)


def draws_needed(spread: ArrayLike, precision: float = PRECISION) -> NDArray[np.float64]:
    """Draws after which a mean has the relative standard error ``precision``: (spread / precision)^2."""
    return np.ceil((np.asarray(spread, dtype=float) / precision) ** 2)


@takes(xr.Dataset, str)
def is_planned(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers of which the run has draws enough for NAME; decided by theory, never by the draws."""
    spread = _spread(measured, name)
    return spread.copy(data=draws_needed(spread) <= measured.attrs["draws"])


def _spread(measured: xr.Dataset, name: str) -> xr.DataArray:
    """The exact relative spread that stands for NAME's, by layer."""
    return measured[OVERLAP_SPREAD if name == "overlap_energy" else LABEL_SPREAD]


@takes(xr.Dataset, str)
def is_converged(measured: xr.Dataset, name: str) -> xr.DataArray:
    """Layers that are planned for, and where neither the error nor the largest draw is much of the mean of NAME."""
    precise = measured[f"{name}_stderr"] <= PRECISION * measured[name]
    return is_planned(measured, name) & precise & (measured[f"{name}_largest_share"] <= CONVERGED_SHARE)


def layer_ranges(layers: ArrayLike) -> str:
    """Layer numbers in words: "3, 5 .. 9"."""
    numbers = np.asarray(layers)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} .. {run[-1]}" for run in runs)


@JUDGES.decide
def judge_exact(dataset: xr.Dataset, name: str) -> Contest | Ruling:
    """{title} is the exact finite-width expectation; rival: infinite width{few}; measured: means over draws, at the
    layers that the draws suffice for.

    The rival is the mean field of the overlap energy or of the label term. At leading order in 1/n and few outputs the
    output term equals the label term, so both have the same rival. Layers that the draws do not suffice for, by an
    exact spread, are left out; which ones does not depend on the draws, so that nothing is selected. Where a layer that
    was planned for does not converge all the same, the whole claim stays undecided: means of output terms fall short of
    such tails by many of their own errors.
    """
    words = {"title": name.replace("_", " "), "few": " and few outputs" if name == "output_term" else ""}
    planned = is_planned(dataset, name)
    kept, left_out = dataset.sel(layer=planned), dataset["layer"].values[~planned.values]
    if kept.sizes["layer"] == 0:
        least = needing(draws_needed(_spread(dataset, name)).min(), dataset.attrs["draws"])
        evidence = f"draws for {PRECISION:.0%} of the mean at no layer{least}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, "none: no layer is judged")
    note = f"; layers {layer_ranges(left_out)} left out, not converged" if len(left_out) else ""
    limit = "overlap_energy" if name == "overlap_energy" else "label_term"
    mean, stderr, exact, wide = (
        kept[column].values for column in (name, f"{name}_stderr", f"{name}_exact", f"{limit}_mean_field")
    )
    effective = effective_draws(kept, name)
    made = contest(mean, stderr, claimed=exact, rival=wide, allowance=ROUNDING * mean, effective=effective, note=note)
    if not is_converged(kept, name).all():
        missed = f"worst {made.claim.worst:.1f} s.e., rival {made.rival.worst:.1f} s.e."
        evidence = f"{missed}; its mean has not converged{_lacking(kept, name)}{note}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, words, UNCONVERGED)
    return replace(made, words=words)


def _lacking(measured: xr.Dataset, name: str) -> str:
    """The draws after which NAME would be converged at all of these layers, in words."""
    made = float(measured.attrs["draws"])
    by_error = draws_needed(np.sqrt(made) * measured[f"{name}_stderr"] / measured[name]).max()
    by_share = draws_to_converge(largest_share(measured, name), made)
    return needing(max(by_error, by_share), made)


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


@takes(xr.Dataset)
def share_row(measured: xr.Dataset) -> dict[str, float]:
    """What a sweep keeps of a net that was drawn, with its exact expectation and the exact spread of B."""
    top = measured.isel(layer=-1)
    share, stderr = share_at_top(measured)
    return {
        "drawn_share": share,
        "drawn_share_stderr": stderr,
        "drawn_share_exact": float(np.exp(top["log_output_term_exact"] - top["log_label_term_exact"])),
        "drawn_share_effective_draws": effective_draws(top, *TERMS),
        "drawn_share_converged": float(all(bool(is_converged(measured, name)[-1]) for name in TERMS)),
        "drawn_share_largest_draw": largest_share(top, *TERMS),
        "drawn_share_draws_needed": float(draws_needed(top[LABEL_SPREAD])),
        "drawn_share_draws": float(measured.attrs["draws"]),
    }


@JUDGES.decide
def judge_drawn_share(dataset: xr.Dataset) -> Contest | Ruling:
    """Output over label term at the last layer is the exact ratio, for every head and number of outputs; rival: that
    of one output, whatever their number; measured: A/B of all nets that the draws suffice for, by the exact spread
    of B."""
    planned = (dataset["drawn_share_draws_needed"] <= dataset["drawn_share_draws"]).values
    if not planned.any():
        least = dataset.isel(dataset["drawn_share_draws_needed"].argmin(...))
        more = needing(float(least["drawn_share_draws_needed"]), float(least["drawn_share_draws"]))
        return Ruling(Verdict.INCONCLUSIVE, f"no net has draws enough{more}", power="none: no net is judged")
    share, stderr, exact, converged, draws, effective = (
        dataset[f"drawn_share{end}"].values[planned]
        for end in ("", "_stderr", "_exact", "_converged", "_draws", "_effective_draws")
    )
    one_output = np.broadcast_to(dataset["drawn_share_exact"].isel(drawn_outputs=[0]).values, planned.shape)[planned]
    left_out = f"; {np.sum(~planned)} nets left out, not converged" if not planned.all() else ""
    counts = {"draws": float(draws.min()), "effective": float(effective.min())}
    made = contest(share, stderr, claimed=exact, rival=one_output, note=left_out, **counts)
    stray = int(np.sum(converged == 0))
    if stray:
        missed = f"worst {made.claim.worst:.1f} s.e., rival {made.rival.worst:.1f} s.e."
        largest = dataset["drawn_share_largest_draw"].values[planned]
        # Effective draws as many as PRECISION asks for, and no draw that makes more than its share.
        by_error = draws * draws_needed(1.0) / effective
        needed = np.maximum(by_error, [draws_to_converge(*of) for of in zip(largest, draws, strict=True)])
        more = needing(float(needed[converged == 0].max()), counts["draws"])
        evidence = f"{missed}; {stray} nets have not converged{more}{left_out}"
        return Ruling(Verdict.INCONCLUSIVE, evidence, power=UNCONVERGED)
    return made
