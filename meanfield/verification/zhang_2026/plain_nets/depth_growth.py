"""Zhang et al. 2026 on growth with depth, judged on one measured net and on a ladder of depths.

Terms that theory knows at infinitely many channels are held against it there (`many_channels`), in standard errors
alone.

A growth law with a free prefactor is held against the data by contrasts with an anchor layer a: m_l - (law_l / law_a)
m_a has mean zero under the law, whatever its prefactor, and its error follows from the covariance of the layers.
"""

import json
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.estimates import PowerLaw, log_slope
from meanfield.nets import ConvNet
from meanfield.theory import learning_rate_exponent
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.comparison import ROUNDING
from meanfield.verification.drawn_slopes import drawn_law, shown, span, theory_slope
from meanfield.verification.judges import Contest, Judges, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.verdicts import Bands, Deviation, Finding, effective_draws
from meanfield.verification.zhang_2026.plain_nets.many_channels import LABEL_SCALE, SCALES, best

# Growth laws need so many layers.
LEAST_DEPTH = 3
# No law: of means that few draws have left below 0.
NO_LAW = PowerLaw(np.nan, np.nan, np.nan)

# The judges of `sims.cnn_overlap`.
JUDGES = Judges("Zhang et al. 2026")


def against_values(dataset: xr.Dataset, name: str, expected: Array) -> Deviation:
    """Deviation at infinitely many channels from a prediction without free constants, layer by layer."""
    limit = f"{name}_limit"
    allowance = (_allowance(dataset) + ROUNDING) * expected
    return Deviation(dataset[limit].values - expected, dataset[f"{limit}_stderr"].values, allowance)


def against_growth(dataset: xr.Dataset, name: str, growth: Array) -> Deviation:
    """Deviation from a growth law with a free prefactor: contrasts of the layers above the anchor with the anchor."""
    start = int(dataset[f"{name}_law"].attrs["anchor_layer"]) - 1
    limit = f"{name}_limit"
    mean, covariance = dataset[limit].values[start:], dataset[f"{limit}_covariance"].values[start:, start:]
    ratio = growth[start + 1 :] / growth[start]
    variance = np.diagonal(covariance)[1:] - 2 * ratio * covariance[0, 1:] + ratio**2 * covariance[0, 0]
    allowance = (_allowance(dataset)[start + 1 :] + ROUNDING) * ratio * mean[0]
    return Deviation(mean[1:] - ratio * mean[0], np.sqrt(np.maximum(variance, 0)), allowance)


def _allowance(dataset: xr.Dataset) -> Array:
    """What theory leaves open at infinitely many channels, relative to it: nothing, but for inputs drawn with few
    channels, and for what the extrapolation of smooth gates may leave."""
    return np.asarray((dataset["thin_input_allowance"] + dataset["extrapolation_left"]).values)


def growth_exponent(dataset: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope over the deeper half of the layers, with correlated errors; NaN where a mean is not positive."""
    deep = _deeper_half(dataset.sizes["layer"])
    layer, mean = dataset["layer"].values[deep], dataset[name].values[deep]
    return log_slope(layer, mean, dataset[f"{name}_covariance"].values[deep, deep]) if np.all(mean > 0) else NO_LAW


def exponent_of(growth: Array) -> float:
    """The same slope of a law or prediction over layers 1 .. L."""
    deep = _deeper_half(len(growth))
    return float(np.polyfit(np.log(np.arange(1, len(growth) + 1)[deep]), np.log(growth[deep]), 1)[0])


def scale_slope(ladder: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope of a drawn learning-rate scale over a ladder of depths; NaN where a scale does not exist."""
    return drawn_law(ladder, "depth", name) if np.all(np.isfinite(ladder[name])) else NO_LAW


def predicted_scale_slope(ladder: xr.Dataset, name: str, level: str) -> float:
    """The same slope of a predicted scale, its points weighted as the drawn ones; NaN where it is not predicted."""
    if f"{name}_{level}" not in ladder:
        return float("nan")
    return theory_slope(ladder, "depth", best(ladder, name), np.log(ladder[f"{name}_{level}"].values))


def net_of(dataset: xr.Dataset) -> ConvNet:
    """The net that a dataset records."""
    spec = json.loads(dataset.attrs["architecture"])
    return ConvNet(**{name: value for name, value in spec.items() if name != "family"})


def no_power_law(dataset: xr.Dataset) -> str:
    """Why the terms of this net follow no power of the layer at large depth; "" where they do."""
    net = net_of(dataset)
    if np.isfinite(learning_rate_exponent(net)):
        return ""
    return "as layers lose signals at edges" if net.sigma.homogeneous else "as smooth gates change energies"


def steepening(ladder: xr.Dataset, name: str) -> float:
    """What finite channels add to the slope of a scale by theory's ratios; 0 where there are none."""
    if f"{name}_finite_channels" not in ladder:
        return 0.0
    levels = ("finite_channels", "mean_field")
    finite, limit = (predicted_scale_slope(ladder, name, level) for level in levels)
    return finite - limit


def judged_term(ladder: xr.Dataset) -> str | None:
    """The term on which growth is judged: the label term where it is drawn and predicted, else the overlap energy."""
    needs = {name: {f"{name}_limit", f"{name}_law"} for name in ("label_term", "overlap_energy")}
    return next((name for name, columns in needs.items() if columns <= set(ladder)), None)


def findings(ladder: xr.Dataset) -> list[Finding]:
    """One for every law, from a ladder of depths measured with its predictions (NAME_mean_field) beside.

    Growth is judged on the deepest net.
    """
    name = judged_term(ladder)
    growth = [judge(ladder, name) for judge in (judge_growth, judge_mean_field, judge_sum_of_minima)] if name else []
    label_scales = [judge_label_scale(ladder)] if f"{LABEL_SCALE}_limit" in ladder else []
    return [*growth, judge_output_term(ladder), judge_transfer_rule(ladder), *label_scales]


@JUDGES.decide
def judge_growth(dataset: xr.Dataset, name: str) -> Contest:
    """{title} {growth}: over layers {layers} with the mean field's exponent {claimed:.3f}; rival: l^2, no overlaps
    between channels; measured: exponents over the deeper half of the layers."""
    deepest = dataset.isel(depth=-1)
    law, claimed = growth_exponent(deepest, f"{name}_limit"), exponent_of(deepest[f"{name}_mean_field"].values)
    deep = np.log1p(_allowance(deepest)[_deeper_half(deepest.sizes["layer"])])
    made = slope_contest(law, claimed=claimed, rival=2.0, allowance=abs(deep[-1] - deep[0]) / np.log(2))
    why = no_power_law(dataset)
    growth = f"follows no power law, {why}" if why else "grows as l^3 in the limit of deep nets"
    words = {"title": _title(name), "claimed": claimed, "layers": _layers(deepest), "growth": growth}
    return _carried(made, deepest, name).saying(f"exponent {shown(law)}", **words)


@JUDGES.decide
def judge_mean_field(dataset: xr.Dataset, name: str) -> Contest:
    """{title} follows the mean field, no constant fitted; rival: sum of minima, prefactor free; measured: drawn means
    at every layer of the deepest net, carried over to infinitely many channels."""
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
    """On every layer of one term, at infinitely many channels."""
    form = "" if dataset[f"{name}_law"].attrs["equal_layers"] else ", layers weighted by their input channels"
    apart = np.zeros_like(claim.difference)
    above = slice(-rival.difference.size, None)
    apart[above] = claim.difference[above] - rival.difference
    made = Contest(claim, rival, comparisons=_comparisons(dataset), apart=apart)
    return _carried(made, dataset, name).saying("", title=_title(name), form=form)


def _title(name: str) -> str:
    return f"{name.replace('_', ' ')} at infinitely many channels"


def _layers(deepest: xr.Dataset) -> str:
    layers = deepest.sizes["layer"]
    return f"{first_deep_layer(layers)} .. {layers}"


def _comparisons(deepest: xr.Dataset) -> int:
    return len(JUDGES) * deepest.sizes["layer"]


def _carried(made: Contest, dataset: xr.Dataset, name: str) -> Contest:
    """With the draws that carry a term's limit: where nets with few channels are drawn too, the fewer of both."""
    made = made.carried_by(dataset, name).shared_in(dataset, f"{name}_limit")
    return replace(made, effective=_effective(dataset, name))


def _effective(dataset: xr.Dataset, name: str) -> float:
    drawn = [name, f"few_channels_{name}"]
    return effective_draws(dataset, *(column for column in drawn if column in dataset))


@JUDGES.decide
def judge_output_term(dataset: xr.Dataset) -> Contest:
    """Output term grows no faster than l^2; rival: it grows like the label term; source: eq. 21; measured: growth
    exponents over the deeper half of the layers, less what finite channels add in theory, which is also granted as
    output terms have the ratio of one site."""
    deepest, terms = dataset.isel(depth=-1), ("output_term", "label_term")
    output, label = (growth_exponent(deepest, best(deepest, name)) for name in terms)
    added = [_added_exponent(deepest, name) for name in terms]
    ratio = np.divide(*(deepest[best(deepest, name)].values[-1] for name in terms))
    claim = Deviation(max(output.exponent - added[0] - 2.0, 0.0), output.stderr, abs(added[0]))
    apart = output.exponent - added[0] - label.exponent + added[1]
    rival = Deviation(apart, np.hypot(output.stderr, label.stderr), abs(added[0]))
    words = f"exponents: output {shown(output)}, label {shown(label)}; A/B = {ratio:.3g} at the last layer"
    made = Contest(claim, rival, apart=label.exponent - added[1] - 2.0)
    return made.carried_by(deepest, *terms).shared_in(deepest, *terms).saying(words)


def _added_exponent(deepest: xr.Dataset, name: str) -> float:
    """What finite channels add to a growth exponent by theory's ratio; 0 where there is none."""
    if f"{name}_finite_channels" not in deepest:
        return 0.0
    finite, limit = (exponent_of(deepest[f"{name}_{level}"].values) for level in ("finite_channels", "mean_field"))
    return finite - limit


@JUDGES.decide
def judge_transfer_rule(dataset: xr.Dataset) -> Contest:
    """eta* falls as L^(-3/2) between depths {depths}; rival: {other}; source: section 3.3; measured: the slope of eta*,
    less what finite channels add in theory, which is also granted, the rule being taken at its word."""
    name = "learning_rate_scale"
    law, added = scale_slope(dataset, best(dataset, name)), steepening(dataset, name)
    rival = predicted_scale_slope(dataset, name, "mean_field")
    other = f"slope {rival:.3f}, the mean field's of the whole update"
    if np.isnan(rival):
        rival = _label_slope(dataset)
        other = "the mean field's slope of the label term, as that of the whole update is open"
    limit = PowerLaw(law.exponent - added, law.stderr, law.prefactor)
    made = slope_contest(limit, claimed=PAPERS_EXPONENT, rival=rival, allowance=abs(added))
    made = made.carried_by(dataset, SCALES[name]).shared_in(dataset, name)
    part = f"of which finite channels make {added:+.3f}" if added else "finite channels being left in"
    words = f"drawn slope {shown(law)}, {part}"
    return made.saying(words, other=other, depths=span(dataset["depth"]))


def _label_slope(dataset: xr.Dataset) -> float:
    """The mean field's slope of the label term's scale; where it is not predicted, of the overlap energy's."""
    if f"{LABEL_SCALE}_mean_field" in dataset:
        return predicted_scale_slope(dataset, LABEL_SCALE, "mean_field")
    overlap = dataset["overlap_energy_mean_field"].mean("layer").values
    return theory_slope(dataset, "depth", LABEL_SCALE, -0.5 * np.log(overlap))


@JUDGES.decide
def judge_label_scale(dataset: xr.Dataset) -> Contest:
    """eta* of the label term alone, at infinitely many channels, falls with the mean field's slope {claimed:.3f};
    rival: slope -3/2; measured: the slope in L of eta* from drawn label terms, carried over to infinitely many
    channels."""
    law, claimed = scale_slope(dataset, f"{LABEL_SCALE}_limit"), _label_slope(dataset)
    depths = dataset["depth"].values
    left = np.log1p([float(_allowance(dataset.sel(depth=depth))[depth - 1]) for depth in depths])
    slack = float(abs(left[-1] - left[0]) / 2 / np.log(depths[-1] / depths[0]))
    made = slope_contest(law, claimed=claimed, rival=PAPERS_EXPONENT, allowance=slack)
    return _carried(made, dataset, "label_term").saying(f"slope {shown(law)}", claimed=claimed)


@dataclass(frozen=True)
class Power:
    """The least errors of a theory that 99 of 100 runs refute: in an exponent, and relative in all layers alike."""

    exponent: float
    prefactor: float


def power(ladder: xr.Dataset, name: str) -> Power:
    """Of the judges of the growth of a term (`judge_growth`, `judge_mean_field`), by the errors of this very run."""
    deepest = ladder.isel(depth=-1)
    effective = _effective(deepest, name)
    law = growth_exponent(deepest, f"{name}_limit")
    expected = deepest[f"{name}_mean_field"].values
    relative = deepest[f"{name}_limit_stderr"].values / expected
    least = np.min(Bands.of(_comparisons(deepest), effective).sure * relative + _allowance(deepest))
    return Power(Bands.of(len(JUDGES), effective).sure * law.stderr, float(least))


def first_deep_layer(depth: int) -> int:
    """First layer of the deeper half, over which growth exponents are fitted."""
    return max(depth // 2, 1)


def _deeper_half(depth: int) -> slice:
    return slice(first_deep_layer(depth) - 1, depth)


CLAIMS = (
    Claim(
        id="A3",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 22, 23",
        statement="B_l is proportional to the sum of minima, l(l+1)(2l+1)/6, with one prefactor for all l",
        printed='"kappa_0 = O(1) depends on activation/initialization moments ... but not on l or L" (eq. 22)',
        hypotheses="lemma 1 (A1) and homogeneous layers, many channels",
        checks=checks("cnn_overlap", partial(judge_sum_of_minima, name="label_term")),
        replaced_by="the mean field, l(2l^2+1)/12 for ReLU nets of one site",
        premise="a gate passes two tangents at one unit with chance 1/2 and at two units with 1/4; one factor is taken "
        "for both",
    ),
)
