"""Zhang et al. 2026 on depth laws in the limit, judged on what theory computes without draws, and on trained nets."""

import json

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from meanfield.common.estimates import PowerLaw, critical_z, fit_power_law
from meanfield.common.validation import Array, takes
from meanfield.nets.layered import MLP
from meanfield.theory.laws import single_site_overlap
from meanfield.theory.prediction import predict
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Judges, Ruling, between, computed
from meanfield.verification.published import COMMON_SWEEP, PAPERS_EXPONENT, MeasuredSlope, judged_slopes
from meanfield.verification.series import span
from meanfield.verification.verdicts import DOUBT, WIDEST_BAND, Bands, Deviation, Finding, judge

# Scales of nets whose channels share no overlaps (B_l ~ l^2), and of nets in which the output term dominates, a factor
# of order l above the label term (mean_l A_l ~ L^4).
NO_OVERLAP_EXPONENT, OUTPUT_EXPONENT = -1.0, -2.0

# Tolerances of exponents: a tenth where the rivals are half a unit or more apart, less where they are closer.
TOLERANCE, CLOSE_TOLERANCE, LIMIT_TOLERANCE = 0.1, 0.03, 0.05

# Depths at which nets of width 10^6 are deep and depth over width is still small.
DEEP_AND_WIDE = (100, 1000)
# Widths at which a net of this depth is wide, and the power of the width that He's rule leaves in its scale.
WIDE, WIDE_DEPTH, OFF = (256, 1024), 8, -0.5

JUDGES = Judges("Zhang et al. 2026")


@JUDGES.decide
def judge_uniform_correction(excess: xr.Dataset) -> Ruling:
    """Finite channels correct F by O(1/n), uniformly in depth; rival: a function of l/n; source: section 3.3; Zhang
    et al. 2025, theorem 2; measured: the exact correction's power of n at fixed l/n."""
    widest = excess.isel(width=[-2, -1])
    fixed = float(_exponent_in_width(widest["excess_at_layer"])[0])
    exponents = _exponent_in_width(widest["excess_at_share"])
    largest = float(excess["excess_at_share"].isel(width=-1).sel(depth_over_width=1.0))
    parts = [
        f"at l/n = {span(excess['depth_over_width'])} the correction goes as n^({exponents.min():+.3f}) .. "
        f"n^({exponents.max():+.3f})",
        f"it is {largest:.1f} at l = n",
        f"at fixed l = {int(excess['fixed_layer'][0])} it does go as n^({fixed:+.3f})",
    ]
    return computed(exponents, -1.0, 0.0, TOLERANCE, "; ".join(parts))


@JUDGES.decide
def judge_output_term_growth(share: xr.Dataset) -> Ruling:
    """Output term is O(l^2) under a label term of order l^3, so A/B falls as 1/L; rival: A/B does not fall; source:
    eq. 21; measured: exact A/B of one output."""
    logs = share["log_output_over_label"].sel(head="he", outputs=1, share_depth=list(DEEP_AND_WIDE)).values
    exponent = float((logs[1] - logs[0]) / np.log(DEEP_AND_WIDE[1] / DEEP_AND_WIDE[0]))
    at_depth = share["log_output_over_label"].sel(outputs=1, share_depth=DEEP_AND_WIDE[0])
    by_head = ", ".join(f"{np.exp(float(at_depth.sel(head=head))):.2g} ({head})" for head in share["head"].values)
    evidence = f"one output, he head: A/B goes as L^({exponent:+.3f}); A/B at L = {DEEP_AND_WIDE[0]}: {by_head}"
    return computed(exponent, -1.0, 0.0, TOLERANCE, evidence)


@JUDGES.decide
def judge_negligible_output_term(share: xr.Dataset) -> Ruling:
    """Output term is negligible with as many outputs as units: eta* falls as L^(-3/2); rival: eta* falls as L^-2, as
    the output term has it; source: eq. 21; measured: local slopes of the exact eta*."""
    many = share.sel(head="he", outputs=share["outputs"].values.max())
    slopes = many["scale_slope"].sel(share_depth=list(DEEP_AND_WIDE)).values
    words = ", ".join(f"{slope:.3f} at L = {depth}" for slope, depth in zip(slopes, DEEP_AND_WIDE, strict=True))
    evidence = f"width 10^6, he head: local slope {words}"
    return computed(slopes, PAPERS_EXPONENT, OUTPUT_EXPONENT, TOLERANCE, evidence)


@JUDGES.decide
def judge_asymptote(scales: xr.Dataset) -> Ruling:
    """eta* of the label term tends to kappa L^(-3/2), mean field; rival: slope -1, no overlaps between channels;
    source: section 3.3; Zhang et al. 2025, theorem 1; measured: local slopes of plain families."""
    plain = scales.sel(family=plain_families(scales))
    slopes = local_slopes(plain["depth"].values, plain["label_learning_rate_scale"].values)[:, -1]
    evidence = f"local slope at L = {int(scales['depth'][-1])}: {_by_family(slopes, plain['family'].values)}"
    return computed(slopes, PAPERS_EXPONENT, NO_OVERLAP_EXPONENT, LIMIT_TOLERANCE, evidence)


@JUDGES.decide
def judge_power_law_in_use(scales: xr.Dataset) -> Ruling:
    """eta* of the label term is kappa L^(-3/2) at depths {depths}, mean field; rival: slope {rival:.3f} of the
    finite-depth law sqrt(24/((L+1)(L^2+L+1))); measured: fitted slopes of ReLU nets; the rival is the law of one
    site, docs/theory.md section 6."""
    families, rival = plain_families(scales, "relu"), finite_depth_slope(COMMON_SWEEP)
    slopes = np.array([fitted_law(scales, name, COMMON_SWEEP).exponent for name in families])
    words = {"depths": span(COMMON_SWEEP), "rival": rival}
    evidence = f"fitted slopes {_by_family(slopes, families)}"
    return computed(slopes, PAPERS_EXPONENT, rival, CLOSE_TOLERANCE, evidence, words)


@JUDGES.decide
def judge_width(dataset: xr.Dataset) -> Ruling:
    """eta* of the label term does not depend on the width at a given depth; rival: it falls as n^(-1/2); source:
    section 3.2; Zhang et al. 2025, theorem 1; measured: exact slopes in n of fully-connected ReLU nets of {depth}
    layers by He's rule, over n = {widths}."""
    slopes = {head: _slope_in_width(head) for head in ("he", "mup")}
    evidence = f"slope {slopes['he']:+.3f}; with a head of variance 1/n^2 (muP) {slopes['mup']:+.3f}"
    return computed(slopes["he"], 0.0, OFF, TOLERANCE, evidence, {"depth": WIDE_DEPTH, "widths": span(WIDE)})


def _slope_in_width(head: str) -> float:
    nets = [MLP(depth=WIDE_DEPTH, width=width, head=head) for width in WIDE]
    scales = [float(predict(net, level="exact")["label_learning_rate_scale"]) for net in nets]
    return float(np.diff(np.log(scales))[0] / np.diff(np.log(WIDE))[0])


def _by_family(slopes: Array, families: ArrayLike) -> str:
    return ", ".join(f"{slope:.3f} ({name})" for name, slope in zip(np.asarray(families), slopes, strict=True))


def judge_table_1(scales: xr.Dataset) -> Finding:
    """The mean of the nine measured slopes, against the finite-depth law over 3 .. 30."""
    first, *_ = slopes = judged_slopes()
    return judge_measured_slope(first, len(slopes))


@JUDGES.decide
def judge_measured_slope(measured: MeasuredSlope, comparisons: int) -> Ruling:
    """{measured.source}: the slope is that of plain nets' finite-depth law over depths {depths}, {expected:.3f}; rival:
    -3/2; measured: our mean of the printed slopes, or our fit through the printed rates; the error is from the scatter.

    A slope that a paper measured, no constant fitted.

    Nothing but the scatter of the printed numbers says how certain they are; more cannot be drawn. Claim and rival are
    therefore held to the same band, left once in a hundred papers.
    """
    expected = finite_depth_slope(measured.depths)
    apart, from_rival = (measured.slope - slope for slope in (expected, PAPERS_EXPONENT))
    band = critical_z(2 * comparisons, measured.freedom + 1, DOUBT)
    made = between(*(Deviation(distance, measured.stderr) for distance in (apart, from_rival)))
    bands = Bands(doubt=band, alarm=band, freedom=measured.freedom)
    reach = "too few rates are printed for a band"
    if band <= WIDEST_BAND:
        reach = f"band {band:.2g} s.e., left once in a hundred papers"
    differences = f"{apart:+.3f} from it, {from_rival:+.3f} from -3/2"
    evidence = f"measured {measured.slope:.3f} +- {measured.stderr:.3f}: {differences}; {reach}"
    assumed = ", assumed as none are printed" if measured.depths == COMMON_SWEEP else ""
    words = {"expected": expected, "depths": span(measured.depths) + assumed}
    return Ruling(judge(made.claim, made.rival, bands), evidence, words, *made.powers(bands, bands))


def finite_depth_slope(depths: ArrayLike) -> float:
    """Slope that a fit finds in the finite-depth law of ReLU nets of one site, over these depths."""
    layers = np.arange(1, int(np.max(depths)) + 1)
    mean = np.cumsum(single_site_overlap(layers, "relu")) / layers
    return fit_power_law(depths, mean[np.asarray(depths) - 1] ** -0.5).exponent


@takes(xr.Dataset)
def plain_families(scales: xr.Dataset, *activations: str) -> list[str]:
    """Families without skip connections, of these activations if any are given."""
    nets = zip(scales["family"].values, json.loads(scales.attrs["architectures"]), strict=True)
    plain = ((name, net["activation"]) for name, net in nets if "block_depth" not in net)
    return [str(name) for name, activation in plain if activation in (activations or (activation,))]


def fitted_law(scales: xr.Dataset, name: str, depths: ArrayLike) -> PowerLaw:
    """The power law that a fit finds in the scale of a family, or of a loop, over these depths."""
    return fit_power_law(depths, scale_of(scales, name).sel(depth=list(np.asarray(depths))).values)


@takes(xr.Dataset, str)
def scale_of(scales: xr.Dataset, name: str) -> xr.DataArray:
    """Scale by depth: of a family's or a Transformer's label term, or of a loop's stream."""
    if name in scales["family"].values:
        return scales["label_learning_rate_scale"].sel(family=name)
    if name in scales["transformer"].values:
        return scales["transformer_learning_rate_scale"].sel(transformer=name)
    return scales["stream_learning_rate_scale"].sel(loop=name)


@takes(list | np.ndarray | xr.DataArray)
def local_slopes(depths: ArrayLike, scales: ArrayLike) -> Array:
    """d ln eta* / d ln L along the last axis, of the cubic spline through the logarithms at all depths."""
    logs = np.log(np.asarray(scales, dtype=float))
    return np.asarray(CubicSpline(np.log(np.asarray(depths, dtype=float)), logs, axis=-1)(np.log(depths), 1))


def _exponent_in_width(excess: xr.DataArray) -> Array:
    """Log-log slope in the width between two widths."""
    narrow, wide = (np.log(excess.isel(width=end).values) for end in (0, 1))
    return np.asarray((wide - narrow) / np.log(float(excess["width"][1] / excess["width"][0])))


CLAIMS = (
    Claim(
        id="A23a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2025, theorem 1; Zhang et al. 2026, section 3.2 ('width-robust')",
        statement="kappa in eta* = kappa L^(-3/2) does not depend on the width (judged: the label term)",
        printed='"A learning rate tuned at one width transfers to any other width without retuning" (Zhang et al. '
        "2025, theorem 1)",
        hypotheses="ReLU, weights by He's fan-in rule, of which the head is taken to be one, gradient descent",
        checks=checks("learning_rate_scale", judge_width),
        replaced_by="kappa ~ n^(-1/2); with a head of variance 1/n^2 (muP) it stays",
        premise="He's rule keeps values, not their changes: the change by a layer's weights is a sum over n inputs",
    ),
    Claim(
        id="A21",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, table 1, figure 3",
        statement="measured slopes of -1.18 .. -1.57, mean -1.38, deviate from -1.5 because depth is finite (judged: "
        "their mean over nine nets, residual nets and ViTs among them, against the law of plain nets; the paper "
        "also names stems, heads and constants of architectures)",
        printed='"the empirical exponents range from -1.18 to -1.57, with a mean of -1.38 ... reflecting finite-depth '
        'offsets, fixed stem/head components, and architecture-dependent constants" (section 4.1)',
        hypotheses="depths of 3 .. 30, assumed, as the paper does not print those of table 1; nine independent slopes",
        checks=checks("learning_rate_scale", judge_table_1),
    ),
)
