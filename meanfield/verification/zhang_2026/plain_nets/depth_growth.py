"""Claims on growth with depth, judged on one measured net and on a ladder of depths.

A growth law with a free prefactor is held against the data by contrasts with an anchor layer a: m_l - (law_l / law_a)
m_a has mean zero under the law, whatever its prefactor, and its error follows from the covariance of the layers.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.estimates import PowerLaw, fit_power_law, log_slope
from meanfield.verification.comparison import ROUNDING
from meanfield.verification.verdicts import Deviation, Finding, effective_draws, weigh

Array = NDArray[np.float64]

TRANSFER_EXPONENT = -1.5

# The terms whose mean a learning-rate scale is the inverse root of.
SCALED_TERM = {"learning_rate_scale": "mean_update_energy", "label_learning_rate_scale": "label_term"}

# Findings of one run, over which its false-alarm budget is split.
FINDINGS = 5


def against_values(measured: xr.Dataset, name: str, expected: Array) -> Deviation:
    """Deviation from a prediction without free constants."""
    difference = measured[name].values - expected
    allowance = (measured["finite_width_allowance"].values + ROUNDING) * expected
    return Deviation(difference, measured[f"{name}_stderr"].values, allowance)


def against_growth(measured: xr.Dataset, name: str, growth: Array) -> Deviation:
    """Deviation from a growth law with a free prefactor: contrasts of the layers above the anchor with the anchor."""
    start = int(measured[f"{name}_law"].attrs["anchor_layer"]) - 1
    mean, covariance = measured[name].values[start:], measured[f"{name}_covariance"].values[start:, start:]
    ratio = growth[start + 1 :] / growth[start]
    variance = np.diagonal(covariance)[1:] - 2 * ratio * covariance[0, 1:] + ratio**2 * covariance[0, 0]
    allowance = measured["finite_width_allowance"].values[start + 1 :] * ratio * mean[0]
    return Deviation(mean[1:] - ratio * mean[0], np.sqrt(np.maximum(variance, 0)), allowance)


def growth_exponent(measured: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope over the deeper half of the layers, with correlated errors."""
    deep = _deeper_half(measured.sizes["layer"])
    layer = measured["layer"].values[deep]
    return log_slope(layer, measured[name].values[deep], measured[f"{name}_covariance"].values[deep, deep])


def exponent_of(growth: Array) -> float:
    """The same slope of a law or prediction over layers 1 .. L."""
    deep = _deeper_half(len(growth))
    return float(np.polyfit(np.log(np.arange(1, len(growth) + 1)[deep]), np.log(growth[deep]), 1)[0])


def scale_slope(ladder: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope of a measured learning-rate scale over a ladder of depths."""
    return fit_power_law(ladder["depth"], ladder[name], ladder[f"{name}_stderr"])


def predicted_scale_slope(ladder: xr.Dataset, level: str) -> float:
    """The same slope of the predicted scale of the label term, its points weighted as the measured ones.

    Under a pooled readout the label term has no prediction; the overlap energy's mean over layers stands in for it.
    """
    name = "label_learning_rate_scale"
    if f"{name}_{level}" in ladder:
        predicted = ladder[f"{name}_{level}"]
    else:
        predicted = ladder[f"overlap_energy_{level}"].mean("layer") ** -0.5
    relative = ladder[f"{name}_stderr"] / ladder[name]
    return fit_power_law(ladder["depth"], predicted, relative * predicted).exponent


def findings(ladder: xr.Dataset) -> list[Finding]:
    """One finding per law, from a ladder of depths measured with its predictions (NAME_mean_field) beside.

    Growth is judged on the deepest net: on the label term where it is predicted, else on the overlap energy.
    """
    deepest = ladder.isel(depth=-1)
    predicted = [
        name for name in ("label_term", "overlap_energy") if name in deepest and f"{name}_mean_field" in deepest
    ]
    growth = [judge(deepest, name) for name in predicted[:1] for judge in (judge_mean_field, judge_sum_of_minima)]
    scales = [judge_transfer_rule(ladder)]
    if "label_learning_rate_scale_mean_field" in ladder:
        scales.append(judge_label_scale(ladder))
    return [*growth, judge_output_term(deepest), *scales]


def judge_mean_field(measured: xr.Dataset, name: str) -> Finding:
    """The mean field's values, layer by layer, against the sum of minima with a free prefactor."""
    claim = against_values(measured, name, measured[f"{name}_mean_field"].values)
    rival = against_growth(measured, name, measured[f"{name}_law"].values)
    titles = f"{_title(name)} follows the mean field, no constant fitted", "sum of minima, prefactor free"
    return _finding(measured, name, titles, claim, rival)


def judge_label_minima(ladder: xr.Dataset) -> Finding:
    """The sum of minima for the label term of the deepest net of a ladder."""
    return judge_sum_of_minima(ladder.isel(depth=-1), "label_term")


def judge_deepest_output_term(ladder: xr.Dataset) -> Finding:
    """The growth of the output term in the deepest net of a ladder."""
    return judge_output_term(ladder.isel(depth=-1))


def judge_sum_of_minima(measured: xr.Dataset, name: str) -> Finding:
    """The sum of minima with a free prefactor (P0 eq. 22, 23), against l^2, no overlaps between channels.

    The law is a running sum of the squared kernels K_h^2; without the overlaps only its last summand is left.
    """
    law = measured[f"{name}_law"].values
    claim = against_growth(measured, name, law)
    rival = against_growth(measured, name, np.diff(law, prepend=0.0))
    form = "" if measured[f"{name}_law"].attrs["equal_layers"] else ", layers weighted by their input channels"
    claimed = f"{_title(name)} is proportional to the sum of minima (P0 eq. 22-23{form})"
    titles = claimed, "l^2, no overlaps between channels"
    return _finding(measured, name, titles, claim, rival)


def judge_output_term(measured: xr.Dataset) -> Finding:
    """A_l = O(l^2) (P0 eq. 21), by the growth exponent over the deeper half; rival: as steep as the label term."""
    output, label = growth_exponent(measured, "output_term"), growth_exponent(measured, "label_term")
    allowance = measured["finite_width_allowance"].values
    deep = np.log1p(allowance[_deeper_half(len(allowance))])
    slack = float((deep[-1] - deep[0]) / np.log(2))
    claim = _slope_deviation(max(output.exponent - 2.0, 0.0), output.stderr, slack)
    rival = _slope_deviation(output.exponent - label.exponent, float(np.hypot(output.stderr, label.stderr)), slack)
    share = max(_largest_share(measured, name) for name in ("output_term", "label_term"))
    ratio = float(measured["output_term"].values[-1] / measured["label_term"].values[-1])
    return weigh(
        ("output term grows no faster than l^2 (P0 eq. 21)", "it grows like the label term"),
        claim,
        rival,
        comparisons=FINDINGS,
        draws=measured.attrs["draws"],
        effective=effective_draws(measured, "output_term", "label_term"),
        largest_share=share,
        shown=f"exponents: output {_pm(output)}, label {_pm(label)}; A/B = {ratio:.3g} at the last layer",
    )


def judge_transfer_rule(ladder: xr.Dataset) -> Finding:
    """The transfer rule eta* ~ L^(-3/2), taken at its word between the measured depths (P0 sections 3.3, 5).

    Rival: the finite-depth slope of the mean field, of the label term or, where that has none, of the overlap energy.
    """
    name = "learning_rate_scale"
    rival = predicted_scale_slope(ladder, "mean_field")
    claim = f"eta* falls as L^(-3/2) between depths {_depths(ladder)} (P0 section 3.3)"
    return _slope_finding(ladder, name, (claim, f"slope {rival:.3f}, the mean field's"), TRANSFER_EXPONENT, rival)


def judge_label_scale(ladder: xr.Dataset) -> Finding:
    """The learning-rate scale of the label term alone, by the mean field's finite-depth slope; rival: -3/2."""
    name = "label_learning_rate_scale"
    expected = predicted_scale_slope(ladder, "mean_field")
    claim = f"eta* of the label term alone falls with the mean field's slope {expected:.3f}"
    return _slope_finding(ladder, name, (claim, "slope -3/2"), expected, TRANSFER_EXPONENT)


def _slope_finding(ladder: xr.Dataset, name: str, titles: tuple[str, str], claimed: float, rival: float) -> Finding:
    """A finding on a slope over the ladder; finite width may steepen a scale by half the slope of its allowance."""
    depths = ladder["depth"].values
    excess = np.log1p([float(ladder["finite_width_allowance"].sel(depth=depth, layer=depth)) for depth in depths])
    slack = float(0.5 * (excess[-1] - excess[0]) / np.log(depths[-1] / depths[0]))
    measured = scale_slope(ladder, name)
    sides = [_slope_deviation(measured.exponent - value, measured.stderr, slack) for value in (claimed, rival)]
    return weigh(
        titles,
        *sides,
        comparisons=FINDINGS,
        draws=ladder.attrs["draws"],
        effective=effective_draws(ladder, SCALED_TERM[name]),
        largest_share=_largest_share(ladder, name),
        shown=f"measured slope {_pm(measured)}, allowance {slack:.3f}",
    )


def _depths(ladder: xr.Dataset) -> str:
    return " .. ".join(str(int(ladder["depth"][end])) for end in (0, -1))


def _finding(measured: xr.Dataset, name: str, titles: tuple[str, str], claim: Deviation, rival: Deviation) -> Finding:
    """A finding on every layer of one quantity; ``titles`` name the claim and its rival."""
    return weigh(
        titles,
        claim,
        rival,
        comparisons=FINDINGS * measured.sizes["layer"],
        draws=measured.attrs["draws"],
        effective=effective_draws(measured, name),
        largest_share=_largest_share(measured, name),
    )


def _slope_deviation(difference: float, stderr: float, slack: float) -> Deviation:
    return Deviation(np.array([difference]), np.array([stderr]), np.array([slack]))


def first_deep_layer(depth: int) -> int:
    """First layer of the deeper half, over which growth exponents are fitted."""
    return max(depth // 2, 1)


def _deeper_half(depth: int) -> slice:
    return slice(first_deep_layer(depth) - 1, depth)


def _largest_share(measured: xr.Dataset, name: str) -> float:
    return float(measured[f"{name}_largest_share"].max())


def _title(name: str) -> str:
    return name.replace("_", " ")


def _pm(law: PowerLaw) -> str:
    return f"{law.exponent:.3f} +- {law.stderr:.3f}"
