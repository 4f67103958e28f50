"""Zhang et al. 2026 on growth with depth, judged on one measured net and on a ladder of depths.

Terms that theory knows at infinitely many channels are held against it there (`many_channels`), in standard errors
alone.

A growth law with a free prefactor is held against the data by contrasts with an anchor layer a: m_l - (law_l / law_a)
m_a has mean zero under the law, whatever its prefactor, and its error follows from the covariance of the layers.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.validation import Array
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.comparison import ROUNDING
from meanfield.verification.judges import Contest, slope_contest
from meanfield.verification.published import PAPERS_EXPONENT
from meanfield.verification.series import shown_laws
from meanfield.verification.verdicts import Bands, Deviation, Finding
from meanfield.verification.zhang_2026.plain_nets.growth.exponents import (
    SCALE,
    added_exponent,
    growth_exponent,
    limit_allowance,
    scale_slope,
)
from meanfield.verification.zhang_2026.plain_nets.growth.printed_laws import (
    JUDGES,
    LAWS,
    P0_HEAD,
    carried,
    effective,
    judge_exponent,
    judge_growth,
    judge_limit,
    label_slope,
    predicted,
    title,
)
from meanfield.verification.zhang_2026.plain_nets.many_channels import LABEL_SCALE, best

# Growth laws need so many layers.
LEAST_DEPTH = 3


def against_values(dataset: xr.Dataset, name: str, expected: Array) -> Deviation:
    """Deviation at infinitely many channels from a prediction without free constants, layer by layer."""
    limit = f"{name}_limit"
    allowance = (limit_allowance(dataset) + ROUNDING) * expected
    return Deviation(dataset[limit].values - expected, dataset[f"{limit}_stderr"].values, allowance)


def against_growth(dataset: xr.Dataset, name: str, growth: Array) -> Deviation:
    """Deviation from a growth law with a free prefactor: contrasts of the layers above the anchor with the anchor."""
    start = int(dataset[f"{name}_law"].attrs["anchor_layer"]) - 1
    limit = f"{name}_limit"
    mean, covariance = dataset[limit].values[start:], dataset[f"{limit}_covariance"].values[start:, start:]
    ratio = growth[start + 1 :] / growth[start]
    variance = np.diagonal(covariance)[1:] - 2 * ratio * covariance[0, 1:] + ratio**2 * covariance[0, 0]
    allowance = (limit_allowance(dataset)[start + 1 :] + ROUNDING) * ratio * mean[0]
    return Deviation(mean[1:] - ratio * mean[0], np.sqrt(np.maximum(variance, 0)), allowance)


def judged_term(ladder: xr.Dataset) -> str | None:
    """The term on which growth is judged: the label term where it is drawn and predicted, else the overlap energy."""
    needs = {name: {f"{name}_limit", f"{name}_law"} for name in ("label_term", "overlap_energy")}
    return next((name for name, columns in needs.items() if columns <= set(ladder)), None)


def findings(ladder: xr.Dataset) -> list[Finding]:
    """One for every law, from a ladder of depths measured with its predictions (NAME_mean_field) beside.

    Growth is judged on the deepest net.
    """
    name = judged_term(ladder)
    named = [judge(ladder, name) for judge in (judge_mean_field, judge_sum_of_minima)] if name else []
    terms = [*([name] if name else []), "output_term", SCALE]
    theory = [judge_growth(ladder, term) for term in terms if term in predicted(ladder)]
    cube = [judge_exponent(ladder, name)] if name else []
    limits = [judge_limit(ladder, term) for term in (*terms, LABEL_SCALE) if f"{term}_deep" in ladder]
    label_scales = [judge_label_scale(ladder)] if f"{LABEL_SCALE}_limit" in ladder else []
    depths = [*cube, judge_output_term(ladder), judge_exponent(ladder, SCALE)]
    return [*depths, *limits, *theory, *named, *label_scales]


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
    return carried(made, dataset, name).saying("", title=title(name), form=form)


def _comparisons(deepest: xr.Dataset) -> int:
    return len(JUDGES) * deepest.sizes["layer"]


@JUDGES.decide
def judge_output_term(dataset: xr.Dataset) -> Contest:
    """Output term grows no faster than l^2; rival: it grows like the label term; source: eq. 21; measured: growth
    exponents over the deeper half of the layers, less what finite channels add in theory, which is also granted as
    output terms have the ratio of one site."""
    deepest, terms = dataset.isel(depth=-1), ("output_term", "label_term")
    output, label = (growth_exponent(deepest, best(deepest, name)) for name in terms)
    added = [added_exponent(deepest, name) for name in terms]
    ratio = np.divide(*(deepest[best(deepest, name)].values[-1] for name in terms))
    claim = Deviation(LAWS["output_term"].beyond(output.exponent - added[0]), output.stderr, abs(added[0]))
    apart = output.exponent - added[0] - label.exponent + added[1]
    rival = Deviation(apart, np.hypot(output.stderr, label.stderr), abs(added[0]))
    words = f"exponents: output {shown_laws(output)}, label {shown_laws(label)}; A/B = {ratio:.3g} at the last layer"
    made = Contest(claim, rival, apart=label.exponent - added[1] - 2.0)
    return made.carried_by(deepest, *terms).shared_in(deepest, *terms).saying(words)


@JUDGES.decide
def judge_label_scale(dataset: xr.Dataset) -> Contest:
    """eta* of the label term alone, at infinitely many channels, falls with the mean field's slope {claimed:.3f};
    rival: slope -3/2; measured: the slope in L of eta* from drawn label terms, carried over to infinitely many
    channels."""
    law, claimed = scale_slope(dataset, f"{LABEL_SCALE}_limit"), label_slope(dataset)
    depths = dataset["depth"].values
    left = np.log1p([float(limit_allowance(dataset.sel(depth=depth))[depth - 1]) for depth in depths])
    slack = float(abs(left[-1] - left[0]) / 2 / np.log(depths[-1] / depths[0]))
    made = slope_contest(law, claimed=claimed, rival=PAPERS_EXPONENT, allowance=slack)
    return carried(made, dataset, "label_term").saying(f"slope {shown_laws(law)}", claimed=claimed)


@dataclass(frozen=True)
class Power:
    """The least errors of a theory that 99 of 100 runs refute: in an exponent, and relative in all layers alike."""

    exponent: float
    prefactor: float


def power(ladder: xr.Dataset, name: str) -> Power:
    """Of the judges of the growth of a term (`judge_growth`, `judge_mean_field`), by the errors of this very run."""
    deepest = ladder.isel(depth=-1)
    carrying = effective(deepest, name)
    law = growth_exponent(deepest, f"{name}_limit")
    off = Bands.of(len(JUDGES), carrying).sure
    expected = deepest[f"{name}_mean_field"].values
    relative = deepest[f"{name}_limit_stderr"].values / expected
    least = np.min(Bands.of(_comparisons(deepest), carrying).sure * relative + limit_allowance(deepest))
    return Power(off * law.stderr, float(least))


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
    Claim(
        id="A4a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, eq. 21, appendix B.3",
        statement="A_l grows no faster than l^2, at the depths of a run and in the limit of deep nets, under a "
        "convolutional readout and under the paper's pooled one",
        printed='"The term A does not alter the depth exponent because it grows at most quadratically in l" (appendix '
        "B.3)",
        hypotheses="those of A4; exponents by the measure of A3a and A3b; outputs over channels kept as depth grows",
        checks=(
            *checks("cnn_overlap", judge_output_term, partial(judge_limit, name="output_term")),
            *checks("cnn_overlap", judge_output_term, partial(judge_limit, name="output_term"), arguments=P0_HEAD),
        ),
        replaced_by="exponents of 3.6 to 3.9 over layers 6 .. 12 and towards 4 in deep nets, as outputs drive the net "
        "along its own features",
        premise="the outputs, through which A_l is driven, are taken for independent of the overlaps below",
    ),
)
