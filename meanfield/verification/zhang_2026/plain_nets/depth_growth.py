"""Zhang et al. 2026 on growth with depth, judged on one measured net and on a ladder of depths.

A growth law with a free prefactor is held against the data by contrasts with an anchor layer a: m_l - (law_l / law_a)
m_a has mean zero under the law, whatever its prefactor, and its error follows from the covariance of the layers.
"""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.verification.claims import Claim, checks
from meanfield.verification.comparison import ROUNDING
from meanfield.verification.drawn_slopes import drawn_law, shown, span, theory_slope
from meanfield.verification.judges import Contest, Judges, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.verdicts import Deviation, Finding
from meanfield.verification.zhang_2026.plain_nets import stencil_slopes

# The terms whose mean a learning-rate scale is the inverse root of.
SCALED_TERM = {"learning_rate_scale": "mean_update_energy", "label_learning_rate_scale": "label_term"}

# The judges of `sims.cnn_overlap`.
JUDGES = Judges("Zhang et al. 2026")


def against_values(dataset: xr.Dataset, name: str, expected: Array) -> Deviation:
    """Deviation from a prediction without free constants."""
    allowance = (dataset["finite_width_allowance"].values + ROUNDING) * expected
    return Deviation(dataset[name].values - expected, dataset[f"{name}_stderr"].values, allowance)


def against_growth(dataset: xr.Dataset, name: str, growth: Array) -> Deviation:
    """Deviation from a growth law with a free prefactor: contrasts of the layers above the anchor with the anchor."""
    start = int(dataset[f"{name}_law"].attrs["anchor_layer"]) - 1
    mean, covariance = dataset[name].values[start:], dataset[f"{name}_covariance"].values[start:, start:]
    ratio = growth[start + 1 :] / growth[start]
    variance = np.diagonal(covariance)[1:] - 2 * ratio * covariance[0, 1:] + ratio**2 * covariance[0, 0]
    allowance = dataset["finite_width_allowance"].values[start + 1 :] * ratio * mean[0]
    return Deviation(mean[1:] - ratio * mean[0], np.sqrt(np.maximum(variance, 0)), allowance)


def growth_exponent(dataset: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope over the deeper half of the layers, with correlated errors."""
    deep = _deeper_half(dataset.sizes["layer"])
    layer = dataset["layer"].values[deep]
    return log_slope(layer, dataset[name].values[deep], dataset[f"{name}_covariance"].values[deep, deep])


def exponent_of(growth: Array) -> float:
    """The same slope of a law or prediction over layers 1 .. L."""
    deep = _deeper_half(len(growth))
    return float(np.polyfit(np.log(np.arange(1, len(growth) + 1)[deep]), np.log(growth[deep]), 1)[0])


def scale_slope(ladder: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope of a measured learning-rate scale over a ladder of depths."""
    return drawn_law(ladder, "depth", name)


def predicted_scale_slope(ladder: xr.Dataset, level: str) -> float:
    """The same slope of the predicted scale of the label term, its points weighted as the measured ones.

    Where the label term has no prediction (pooled readouts of smooth gates with edges), the overlap energy's mean over
    layers stands in for it.
    """
    name = "label_learning_rate_scale"
    if f"{name}_{level}" in ladder:
        predicted = ladder[f"{name}_{level}"]
    else:
        predicted = ladder[f"overlap_energy_{level}"].mean("layer") ** -0.5
    return theory_slope(ladder, "depth", name, np.log(predicted.values))


def findings(ladder: xr.Dataset) -> list[Finding]:
    """One for every law, from a ladder of depths measured with its predictions (NAME_mean_field) beside.

    Growth is judged on the deepest net: on the label term where it is predicted, else on the overlap energy.
    """
    ends = ("", "_mean_field", "_law")
    predicted = [name for name in ("label_term", "overlap_energy") if {name + end for end in ends} <= set(ladder)]
    growth = [judge(ladder, name) for name in predicted[:1] for judge in (judge_mean_field, judge_sum_of_minima)]
    label_scales = [judge_label_scale(ladder)] if "label_learning_rate_scale_mean_field" in ladder else []
    return [*growth, judge_output_term(ladder), judge_transfer_rule(ladder), *label_scales]


@JUDGES.decide
def judge_mean_field(dataset: xr.Dataset, name: str) -> Contest:
    """{title} follows the mean field, no constant fitted; rival: sum of minima, prefactor free."""
    deepest = dataset.isel(depth=-1)
    claim = against_values(deepest, name, deepest[f"{name}_mean_field"].values)
    return _by_layer(deepest, name, claim, against_growth(deepest, name, deepest[f"{name}_law"].values))


@JUDGES.decide
def judge_sum_of_minima(dataset: xr.Dataset, name: str) -> Contest:
    """{title} is proportional to the sum of minima{form}; rival: l^2, no overlaps between channels; source: eq. 22,
    23; measured: contrasts with a running sum of squared kernels; the rival is its last summand."""
    deepest = dataset.isel(depth=-1)
    law = deepest[f"{name}_law"].values
    growths = (law, np.diff(law, prepend=0.0))
    return _by_layer(deepest, name, *(against_growth(deepest, name, growth) for growth in growths))


def _by_layer(dataset: xr.Dataset, name: str, claim: Deviation, rival: Deviation) -> Contest:
    """On every layer of one quantity."""
    form = "" if dataset[f"{name}_law"].attrs["equal_layers"] else ", layers weighted by their input channels"
    made = Contest(claim, rival, comparisons=len(JUDGES) * dataset.sizes["layer"])
    title = name.replace("_", " ")
    return made.carried_by(dataset, name).shared_in(dataset, name).saying("", title=title, form=form)


@JUDGES.decide
def judge_output_term(dataset: xr.Dataset) -> Contest:
    """Output term grows no faster than l^2; rival: it grows like the label term; source: eq. 21; measured: growth
    exponents over the deeper half of the layers."""
    deepest, terms = dataset.isel(depth=-1), ("output_term", "label_term")
    output, label = (growth_exponent(deepest, name) for name in terms)
    deep = np.log1p(deepest["finite_width_allowance"].values[_deeper_half(deepest.sizes["layer"])])
    slack = float((deep[-1] - deep[0]) / np.log(2))
    ratio = float(deepest["output_term"].values[-1] / deepest["label_term"].values[-1])
    claim = Deviation(max(output.exponent - 2.0, 0.0), output.stderr, slack)
    rival = Deviation(output.exponent - label.exponent, np.hypot(output.stderr, label.stderr), slack)
    words = f"exponents: output {shown(output)}, label {shown(label)}; A/B = {ratio:.3g} at the last layer"
    return Contest(claim, rival).carried_by(deepest, *terms).shared_in(deepest, *terms).saying(words)


@JUDGES.decide
def judge_transfer_rule(dataset: xr.Dataset) -> Contest:
    """eta* falls as L^(-3/2) between depths {depths}; rival: slope {other:.3f}, the mean field's; source: section
    3.3; measured: the slope of eta*, the rule being taken at its word."""
    rival = predicted_scale_slope(dataset, "mean_field")
    return _over_depths(dataset, "learning_rate_scale", PAPERS_EXPONENT, rival)


@JUDGES.decide
def judge_label_scale(dataset: xr.Dataset) -> Contest:
    """eta* of the label term alone falls with the mean field's slope {claimed:.3f}; rival: slope -3/2."""
    expected = predicted_scale_slope(dataset, "mean_field")
    return _over_depths(dataset, "label_learning_rate_scale", expected, PAPERS_EXPONENT)


def _over_depths(ladder: xr.Dataset, name: str, claimed: float, rival: float) -> Contest:
    """A slope over the ladder; finite width may steepen a scale by half the slope of its allowance."""
    depths = ladder["depth"].values
    excess = np.log1p([float(ladder["finite_width_allowance"].sel(depth=depth, layer=depth)) for depth in depths])
    slack = float(0.5 * (excess[-1] - excess[0]) / np.log(depths[-1] / depths[0]))
    law = scale_slope(ladder, name)
    made = slope_contest(law, claimed=claimed, rival=rival, allowance=slack)
    made = made.carried_by(ladder, SCALED_TERM[name]).shared_in(ladder, name)
    words = {"claimed": claimed, "other": rival, "depths": span(depths)}
    return made.saying(f"measured slope {shown(law)}, allowance {slack:.3f}", **words)


def first_deep_layer(depth: int) -> int:
    """First layer of the deeper half, over which growth exponents are fitted."""
    return max(depth // 2, 1)


def _deeper_half(depth: int) -> slice:
    return slice(first_deep_layer(depth) - 1, depth)


CLAIMS = (
    Claim(
        id="A3",
        source="Zhang et al. 2026, eq. 22, 23",
        statement="B_l is proportional to the sum of minima, l(l+1)(2l+1)/6, with one prefactor",
        checks=(
            *checks("cnn_overlap", partial(judge_sum_of_minima, name="label_term")),
            *checks("cnn_finite_channels", stencil_slopes.judge_one_prefactor),
        ),
        replaced_by="the mean field, l(2l^2+1)/12 for ReLU nets of one site; its prefactor goes as 1/taps",
        premise="a gate passes two tangents at one unit with chance 1/2 and at two units with 1/4; one factor is taken "
        "for both",
    ),
)
