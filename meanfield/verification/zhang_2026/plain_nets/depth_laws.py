"""Claims on depth laws in the limit, judged on what theory computes without draws, and on slopes of trained nets."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from meanfield.common.estimates import PowerLaw, critical_z, fit_power_law
from meanfield.theory.laws.plain import single_site_overlap
from meanfield.verification.published import COMMON_SWEEP, P0_EXPONENT, MeasuredSlope, judged_slopes
from meanfield.verification.verdicts import DOUBT, WIDEST_BAND, Bands, Deviation, Finding, judge, judge_computed

Array = NDArray[np.float64]

TRANSFER_EXPONENT = P0_EXPONENT
# Scale of nets whose channels share no overlaps: B_l ~ l^2.
NO_OVERLAP_EXPONENT = -1.0
# Scale of nets in which the output term, a factor of order l above the label term, dominates: mean_l A_l ~ L^4.
OUTPUT_EXPONENT = -2.0

# Tolerances of exponents: a tenth where the rivals are half a unit or more apart, less where they are closer.
TOLERANCE = 0.1
CLOSE_TOLERANCE = 0.03
LIMIT_TOLERANCE = 0.05

# Depths at which nets of width 10^6 are deep and depth over width is still small.
DEEP_AND_WIDE = (100, 1000)


def judge_uniform_correction(excess: xr.Dataset) -> Finding:
    """P0 section 3.3, P3 theorem 2: the finite-width correction is O(1/n) with a constant that no depth changes.

    Taken at fixed l/n it must then fall as 1/n; the rival, a function of l/n, leaves it as it is.
    """
    widest = excess.isel(width=[-2, -1])
    fixed = float(_exponent_in_width(widest["excess_at_layer"])[0])
    exponents = _exponent_in_width(widest["excess_at_share"])
    largest = float(excess["excess_at_share"].isel(width=-1).sel(depth_over_width=1.0))
    span = f"n^({exponents.min():+.3f}) .. n^({exponents.max():+.3f})"
    parts = [
        f"at l/n = {_span(excess['depth_over_width'].values)} the correction goes as {span}",
        f"it is {largest:.1f} at l = n",
        f"at fixed l = {int(excess['fixed_layer'][0])} it does go as n^({fixed:+.3f})",
    ]
    return Finding(
        claim="finite channels correct F by O(1/n), uniformly in depth (P0 section 3.3, P3 theorem 2)",
        rival="a function of l/n",
        verdict=judge_computed(exponents, -1.0, 0.0, TOLERANCE),
        evidence="; ".join(parts),
    )


def judge_output_term_growth(share: xr.Dataset) -> Finding:
    """P0 eq. 21, A_l = O(l^2) under B_l of order l^3: A/B falls as 1/L. Rival: A/B does not fall."""
    one = share.sel(head="he", outputs=1, share_depth=list(DEEP_AND_WIDE))
    logs = one["log_output_over_label"].values
    exponent = float((logs[1] - logs[0]) / np.log(DEEP_AND_WIDE[1] / DEEP_AND_WIDE[0]))
    at_depth = share["log_output_over_label"].sel(outputs=1, share_depth=DEEP_AND_WIDE[0])
    by_head = ", ".join(f"{np.exp(float(at_depth.sel(head=head))):.2g} ({head})" for head in share["head"].values)
    return Finding(
        claim="output term is O(l^2) under a label term of order l^3, so A/B falls as 1/L (P0 eq. 21)",
        rival="A/B does not fall",
        verdict=judge_computed(exponent, -1.0, 0.0, TOLERANCE),
        evidence=f"one output, he head: A/B goes as L^({exponent:+.3f}); A/B at L = {DEEP_AND_WIDE[0]}: {by_head}",
    )


def judge_negligible_output_term(share: xr.Dataset) -> Finding:
    """P0 eq. 21 with outputs as many as the width: eta* follows the label term's -3/2; rival: -2, the output term's."""
    many = share.sel(head="he", outputs=share["outputs"].values.max())
    slopes = many["scale_slope"].sel(share_depth=list(DEEP_AND_WIDE)).values
    shown = ", ".join(f"{slope:.3f} at L = {depth}" for slope, depth in zip(slopes, DEEP_AND_WIDE, strict=True))
    return Finding(
        claim="output term is negligible with as many outputs as units: eta* falls as L^(-3/2) (P0 eq. 21)",
        rival="eta* falls as L^-2",
        verdict=judge_computed(slopes, TRANSFER_EXPONENT, OUTPUT_EXPONENT, TOLERANCE),
        evidence=f"width 10^6, he head: local slope {shown}",
    )


def judge_asymptote(scales: xr.Dataset) -> Finding:
    """P0 section 3.3, P3 theorem 1: eta* = kappa L^(-3/2), as a limit of depth, after that of many channels."""
    plain = scales.sel(family=plain_families(scales))
    slopes = local_slopes(plain["depth"].values, plain["label_learning_rate_scale"].values)[:, -1]
    shown = ", ".join(f"{slope:.3f} ({name})" for name, slope in zip(plain["family"].values, slopes, strict=True))
    width = json.loads(scales.attrs["architectures"])[0]["width"]
    finite = f"exact at width {width}, output term included: {float(scales['exact_slope'][-1]):.3f} (mlp)"
    return Finding(
        claim="eta* of the label term tends to kappa L^(-3/2) (P0 section 3.3, P3 theorem 1), mean field",
        rival="slope -1, no overlaps between channels",
        verdict=judge_computed(slopes, TRANSFER_EXPONENT, NO_OVERLAP_EXPONENT, LIMIT_TOLERANCE),
        evidence=f"local slope at L = {int(scales['depth'][-1])}: {shown}; {finite}",
    )


def judge_power_law_in_use(scales: xr.Dataset) -> Finding:
    """The same law taken at its word over the depths of common nets, for the ReLU families.

    Rival: sqrt(24 / ((L + 1)(L^2 + L + 1))), the finite-depth law of one site (docs/theory.md section 6).
    """
    chosen = plain_families(scales, "relu")
    slopes = np.array([fitted_law(scales, name, COMMON_SWEEP).exponent for name in chosen])
    rival = finite_depth_slope(COMMON_SWEEP)
    shown = ", ".join(f"{slope:.3f} ({name})" for name, slope in zip(chosen, slopes, strict=True))
    return Finding(
        claim=f"eta* of the label term is kappa L^(-3/2) at depths {_span(COMMON_SWEEP)}, mean field",
        rival=f"slope {rival:.3f} of the finite-depth law sqrt(24/((L+1)(L^2+L+1)))",
        verdict=judge_computed(slopes, TRANSFER_EXPONENT, rival, CLOSE_TOLERANCE),
        evidence=f"fitted slopes {shown}",
    )


def judge_table_1(scales: xr.Dataset) -> Finding:
    """A21: the mean of P0's nine measured slopes, against the finite-depth law over 3 .. 30."""
    first, *_ = judged = judged_slopes()
    return judge_measured_slope(first, len(judged))


def judge_measured_slope(measured: MeasuredSlope, comparisons: int) -> Finding:
    """A slope that a paper measured, against the finite-depth law over the same depths, no constant fitted.

    Nothing but the scatter of the printed numbers says how certain they are; more cannot be drawn. Claim and rival are
    therefore held to the same band, left once in a hundred papers.
    """
    expected = finite_depth_slope(measured.depths)
    claim, rival = (
        Deviation(np.array([measured.slope - slope]), np.array([measured.stderr]), np.zeros(1))
        for slope in (expected, TRANSFER_EXPONENT)
    )
    band = critical_z(2 * comparisons, measured.freedom + 1, DOUBT)
    reach = "too few rates are printed for a band"
    if band <= WIDEST_BAND:
        reach = f"band {band:.2g} s.e., left once in a hundred papers"
    differences = f"{measured.slope - expected:+.3f} from it, {measured.slope - TRANSFER_EXPONENT:+.3f} from -3/2"
    return Finding(
        claim=f"{measured.source}: the slope is that of the finite-depth law over the same depths, {expected:.3f}",
        rival="-3/2",
        verdict=judge(claim, rival, Bands(doubt=band, alarm=band)),
        evidence=f"measured {measured.slope:.3f} +- {measured.stderr:.3f}: {differences}; {reach}",
    )


def finite_depth_slope(depths: ArrayLike) -> float:
    """Slope that a fit finds in the finite-depth law of ReLU nets of one site, over these depths."""
    deepest = int(np.max(depths))
    mean = np.cumsum(single_site_overlap(np.arange(1, deepest + 1), "relu")) / np.arange(1, deepest + 1)
    return fit_power_law(depths, mean[np.asarray(depths) - 1] ** -0.5).exponent


def plain_families(scales: xr.Dataset, *activations: str) -> list[str]:
    """Families without skip connections, of these activations if any are given."""
    nets = zip(scales["family"].values, json.loads(scales.attrs["architectures"]), strict=True)
    return [
        str(name)
        for name, net in nets
        if "block_depth" not in net and net["activation"] in (activations or (net["activation"],))
    ]


def fitted_law(scales: xr.Dataset, name: str, depths: ArrayLike) -> PowerLaw:
    """The power law that a fit finds in the scale of a family, or of a loop, over these depths."""
    return fit_power_law(depths, scale_of(scales, name).sel(depth=list(np.asarray(depths))).values)


def scale_of(scales: xr.Dataset, name: str) -> xr.DataArray:
    """Scale by depth: of a family's label term, or of a loop's stream."""
    if name in scales["family"].values:
        return scales["label_learning_rate_scale"].sel(family=name)
    return scales["stream_learning_rate_scale"].sel(loop=name)


def local_slopes(depths: ArrayLike, scales: ArrayLike) -> Array:
    """d ln eta* / d ln L along the last axis, of the cubic spline through the logarithms at all depths."""
    logs = np.log(np.asarray(scales, dtype=float))
    return np.asarray(CubicSpline(np.log(np.asarray(depths, dtype=float)), logs, axis=-1)(np.log(depths), 1))


def _exponent_in_width(excess: xr.DataArray) -> Array:
    """Log-log slope in the width between two widths."""
    narrow, wide = (np.log(excess.isel(width=end).values) for end in (0, 1))
    return np.asarray((wide - narrow) / np.log(float(excess["width"][1] / excess["width"][0])))


def _span(values: ArrayLike) -> str:
    found = np.asarray(values)
    return f"{found[0]:g} .. {found[-1]:g}"
