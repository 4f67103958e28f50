"""Zhang et al. 2026, sections 3.5, 4.5, appendix D: eta*(L) of Transformers, and how far changes of the stream travel.

The claims are about the limit of depth at infinite width. The mean field decides on the limit, draws decide whether
the mean field is right at depths where nets are wide enough. Branches have no factor, as in section 3.1. All are about
eta* of the label term, which decides where outputs are few against the width. With 64 outputs at width 256 the whole
update has slopes of -1.73 to -1.75 (post-norm) and -1.35 to -1.36 (pre-norm) over L = 4 .. 32, 0.06 to 0.09 steeper.

Assumption 1 of appendix D is on rho_{l:h}, the mean square at layer l of a tangent over its mean square at layer h: one
rho for all tangents, within constants that do not depend on the depth, and fluctuations that vanish with the width.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common import Array, PowerLaw, log_slope
from meanfield.verification import (
    PAPERS_EXPONENT,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Series,
    checks,
    computed,
    contest,
    exponents_of,
    shown_laws,
    span,
    tuned_rates,
)
from sims.common.datasets import ENDS

NAME = "transformer_depth"

LABEL_SCALE = "label_learning_rate_scale"
LOCAL = "local_slope_mean_field"
OTHER = {"post": "pre", "pre": "post"}
NORMS = tuple(OTHER)
CASES = [{"norm": norm} for norm in NORMS]
# Depth units per channel up to which drawn slopes are judged: above, nets are no longer wide.
WIDE = 1 / 8
# Nets that are judged are drawn so many times as often as the run's draws say.
MORE = 4
# Of an exponent that is computed at large depth.
LIMIT_TOLERANCE = 0.05
# A relative difference of exponents that is an effect.
EFFECT = tuned_rates.EFFECT

RHO = "tangent_propagation"
# As drawn by width, at layers that are few against it.
RHO_BY_WIDTH, SPREAD, REMAINDER = (f"{RHO}{end}_by_width" for end in ("", "_spread", "_remainder"))
# The layer at which widths are compared: four blocks, few against every width.
SHALLOW = 8
# Growth in depth is measured from this part of the layers on.
LAST = 4

JUDGES = Judges("Zhang et al. 2026")


def findings(dataset: xr.Dataset) -> list[Finding]:
    """All of the run; those on rho alone, which need no mean field, where inputs are given."""
    if has_mean_field(dataset):
        return JUDGES.findings(dataset)
    return [judge(dataset) for judge in (judge_post_bounded, judge_pre_bounded, judge_fluctuations, judge_one_for_all)]


def pre_norm_slope(depth: float) -> float:
    """d ln eta* / d ln L of L^(-1/2) (ln L)^(-3/2) between half a depth and that depth, docs/theory.md section 19."""
    return float(-1 / 2 - 3 / 2 * np.diff(np.log(np.log([depth / 2, depth])))[0] / np.log(2))


def net_of(dataset: xr.Dataset, norm: str, attention: str) -> xr.Dataset:
    """What the run says of one net without a factor on its branches."""
    return dataset.sel(norm=norm, attention_scale=attention, scaling="none")


def at_width(at: xr.Dataset, which: str = "") -> xr.Dataset:
    """The drawn scale of one net at the full width ("") or at half of it ("narrow_"), at the depths that are judged."""
    chosen = at if which else at.sel(depth=at["wide_depth"].values)
    values = {f"{LABEL_SCALE}{end}": ("depth", chosen[f"{which}{LABEL_SCALE}{end}"].values) for end in ENDS}
    return xr.Dataset(values, {"depth": at["wide_depth"].values}, attrs=at.attrs | {"draws": MORE * at.attrs["draws"]})


def far_slopes(dataset: xr.Dataset, norm: str) -> Array:
    """Local slopes of the mean field where it ends, by scale of attention."""
    return np.asarray(dataset[LOCAL].sel(norm=norm).isel(slope_depth=-1))


def predicted_slope(at: xr.Dataset) -> float:
    """Slope of the mean field over the drawn depths, weighted as the drawn scale is; NaN where there is none."""
    logs = at[f"log_{LABEL_SCALE}_mean_field"].values
    return Series.of(at, LABEL_SCALE).slope_of("depth", logs) if np.isfinite(logs).all() else float("nan")


def drawn_slope(at: xr.Dataset, name: str = LABEL_SCALE) -> PowerLaw:
    """Slope of a drawn scale over its depths, by their errors."""
    return Series.of(at, name).law("depth")


def has_mean_field(dataset: xr.Dataset) -> bool:
    """Whether the mean field is beside the draws: not of inputs that are given."""
    return bool(dataset[f"log_{LABEL_SCALE}_mean_field"].notnull().all())


@JUDGES.decide(
    claim="{norm}-norm: eta* of the label term tends to L^(-3/2)",
    source="section 3.5, appendix D.4",
    rival="to L^(-1/2) (ln L)^(-3/2), slope {rival:.3f} at L = {far}",
    measured="the mean field's local slope there",
    cases=CASES,
)
def judge_limit(dataset: xr.Dataset, norm: str) -> Ruling:
    far, slopes = int(dataset["slope_depth"][-1]), far_slopes(dataset, norm)
    rival = pre_norm_slope(far)
    evidence, words = by_attention("local slope", slopes, dataset), {"far": f"{far:,}", "rival": rival}
    return computed(slopes, PAPERS_EXPONENT, rival, LIMIT_TOLERANCE, evidence, words)


@JUDGES.decide(
    claim="{norm}-norm: drawn eta* of the label term falls as the mean field says over L = {depths}",
    brief="{norm}-norm: drawn slopes of eta* are those of the mean field, L = {depths}",
    rival="as it says of {other}-norm",
    measured="slopes of the label term's scale",
    cases=CASES,
)
def judge_theory(dataset: xr.Dataset, norm: str) -> Contest:
    nets = _nets(dataset, norm)
    slope, stderr, slack = _drawn(nets)
    own, other = (_predicted(dataset, which) for which in (norm, OTHER[norm]))
    words = f"{by_attention('drawn', slope, dataset)}; {by_attention('mean field', own, dataset)}"
    made = _of_draws(contest(slope, stderr, claimed=own, rival=other, allowance=slack), nets)
    return made.saying(words, depths=span(dataset["wide_depth"]), other=OTHER[norm])


judge_post_limit, judge_pre_limit = (partial(judge_limit, norm=norm) for norm in NORMS)
judge_post_theory, judge_pre_theory = (partial(judge_theory, norm=norm) for norm in NORMS)


@JUDGES.decide(
    claim="Where a Transformer normalises has minimal effect: slopes differ by less than a tenth of post-norm's",
    brief="The slopes of pre- and post-norm differ by less than a tenth of the latter",
    source="section 4.5",
    rival="they differ as in the mean field",
    measured="slope of pre-norm less that of post-norm over L = {depths}, without a factor on branches",
)
def judge_placement(dataset: xr.Dataset) -> Contest:
    pre, post = (_nets(dataset, norm) for norm in ("pre", "post"))
    (before, *errors), (after, *errors_after) = (_drawn(nets) for nets in (pre, post))
    stderr, slack = np.hypot(errors[0], errors_after[0]), errors[1] + errors_after[1]
    apart, expected = before - after, _predicted(dataset, "pre") - _predicted(dataset, "post")
    made = contest(apart, stderr, claimed=0.0, rival=expected, allowance=slack + EFFECT * np.abs(after))
    words = f"{by_attention('pre less post', apart, dataset)}; {by_attention('mean field', expected, dataset)}"
    return _of_draws(made, pre + post).saying(words, depths=span(dataset["wide_depth"]))


@JUDGES.decide(
    claim="In the limit of depth slopes of pre- and post-norm differ by less than a tenth of 3/2",
    brief="In the limit of depth the slopes of pre- and post-norm differ by less than 0.15",
    source="section 4.5, taken to the limit",
    rival="by {rival:.3f} at L = {far}, as -3/2 and the slope of L^(-1/2) (ln L)^(-3/2) do",
    measured="local slopes of the mean field, without a factor on branches",
)
def judge_placement_limit(dataset: xr.Dataset) -> Ruling:
    far, apart = int(dataset["slope_depth"][-1]), far_slopes(dataset, "pre") - far_slopes(dataset, "post")
    rival = pre_norm_slope(far) - PAPERS_EXPONENT
    evidence, words = by_attention("difference", apart, dataset), {"far": f"{far:,}", "rival": rival}
    return computed(apart, 0.0, rival, EFFECT * abs(PAPERS_EXPONENT), evidence, words)


def by_attention(what: str, values: ArrayLike, dataset: xr.Dataset) -> str:
    """Numbers by scale of attention, in words."""
    numbers = zip(np.ravel(values), dataset["attention_scale"].values, strict=True)
    return f"{what} " + ", ".join(f"{value:.3f} ({name})" for value, name in numbers)


def _nets(dataset: xr.Dataset, norm: str) -> list[xr.Dataset]:
    return [net_of(dataset, norm, str(name)) for name in dataset["attention_scale"].values]


def _predicted(dataset: xr.Dataset, norm: str) -> Array:
    """Slopes of the mean field over the depths that are judged, all weighted alike, by scale of attention."""
    depths = dataset["wide_depth"].values
    logs = (at[f"log_{LABEL_SCALE}_mean_field"].sel(depth=depths).values for at in _nets(dataset, norm))
    return np.array([np.polyfit(np.log(depths), values, 1)[0] for values in logs])


def _drawn(nets: list[xr.Dataset]) -> tuple[Array, Array, Array]:
    """Slopes at the full width, all depths weighted alike, their errors, and what they are granted for finite width.

    That is what is linear in 1/n: as much as from half the width to the width.
    """
    (slope, stderr), (narrow, _) = (
        exponents_of(*(_even_slope(at_width(at, which)) for at in nets)) for which in ("", "narrow_")
    )
    return slope, stderr, np.abs(slope - narrow)


def _even_slope(at: xr.Dataset) -> PowerLaw:
    return log_slope(at["depth"], at[LABEL_SCALE].values, np.diag(at[f"{LABEL_SCALE}_stderr"].values ** 2))


def _of_draws(made: Contest, nets: list[xr.Dataset]) -> Contest:
    """With the draws that carry the means of these nets, and the largest share of one."""
    judged = xr.concat([at_width(at) for at in nets], "net")
    made = replace(made, draws=judged.attrs["draws"])
    return made.carried_by(judged, LABEL_SCALE).shared_in(judged, LABEL_SCALE)


@JUDGES.decide(
    claim="{norm}-norm: rho of tangents that all tokens share is bounded in depth",
    source="eq. 42, appendix D.4",
    rival="it grows as the variance of a pre-norm stream, in proportion to l",
    measured="d ln rho / d ln l over l = {layers}",
    cases=CASES,
)
def judge_bounded(dataset: xr.Dataset, norm: str) -> Contest:
    at, last = dataset.sel(norm=norm, direction="shared"), dataset.sizes["wide_layer"]
    ends = [last // LAST, last]
    (narrow, _), wide = (_growth_of_rho(at.isel(width=place), ends) for place in (-2, -1))
    # What is linear in 1/n: as much as from half the width to the width.
    made = contest(*wide, claimed=0.0, rival=1.0, allowance=np.abs(wide[0] - narrow))
    words = {"layers": f"{ends[0]} .. {ends[1]}"}
    return _of_rho(made, at.isel(width=-1).sel(wide_layer=ends)).saying(
        by_attention("slope", wide[0], dataset), **words
    )


judge_post_bounded, judge_pre_bounded = (partial(judge_bounded, norm=norm) for norm in NORMS)


@JUDGES.decide(
    claim="Fluctuations of rho at layer {layer} vanish with the width, as n^(-1/2) or faster",
    source="eq. 44",
    rival="they do not",
    measured="slopes in n of the standard deviation, mean over nets, for both directions",
)
def judge_fluctuations(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(wide_layer=SHALLOW)
    laws = {name: _mean_law(at.sel(direction=name), SPREAD) for name in map(str, at["direction"].values)}
    words = ", ".join(f"{shown_laws(law)} ({name})" for name, law in laws.items())
    return _vanishing(at, list(laws.values()), f"slopes {words}")


@JUDGES.decide(
    claim="rho at layer {layer} is the same for all directions, up to a remainder that vanishes as fluctuations do",
    brief="At layer {layer} rho is the same for all directions, up to what vanishes with the width",
    source="eqs. 42, 43",
    rival="what tokens share keeps more than what sums to zero over tokens, at any width",
    measured="slope in n of half the difference, mean over nets",
)
def judge_one_for_all(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(wide_layer=SHALLOW)
    rho = at[RHO_BY_WIDTH].isel(width=-1)
    shared, other = (float(rho.sel(direction=direction).mean()) for direction in ("shared", "difference"))
    law = _mean_law(at.assign({REMAINDER: abs(at[REMAINDER])}), REMAINDER)
    words = f"rho {shared:.3g} where tokens share, {other:.3g} where they sum to zero, mean over nets"
    return _vanishing(at, [law], f"slope of half the difference {shown_laws(law)}; {words}")


def _vanishing(at: xr.Dataset, laws: list[PowerLaw], words: str) -> Contest:
    """Slopes in the width against -1/2 or below, and against 0."""
    slope, stderr = exponents_of(*laws)
    made = Contest(Deviation(np.maximum(slope + 0.5, 0.0), stderr), Deviation(slope, stderr), apart=0.5)
    return _of_rho(made, at).saying(words, layer=SHALLOW)


def _of_rho(made: Contest, at: xr.Dataset) -> Contest:
    """With as many draws as were made of these nets, and those that carry the means of rho."""
    often = at.assign_attrs(draws=MORE * at.attrs["draws"])
    return replace(made, draws=often.attrs["draws"]).carried_by(often, RHO_BY_WIDTH).shared_in(often, RHO_BY_WIDTH)


def _growth_of_rho(at: xr.Dataset, ends: list[int]) -> tuple[Array, Array]:
    """d ln rho / d ln l between two layers by scale of attention; its error, at most the sum of both ends' parts."""
    rho, stderr = (
        at[f"{RHO_BY_WIDTH}{end}"].sel(wide_layer=ends).transpose("wide_layer", ...).values for end in ("", "_stderr")
    )
    steps = np.log(ends[1] / ends[0])
    return np.log(rho[1] / rho[0]) / steps, (stderr / rho).sum(axis=0) / steps


def _mean_law(at: xr.Dataset, name: str) -> PowerLaw:
    """Power of the width that a quantity goes as: the mean over nets, which are drawn independently."""
    nets = at.stack(net=("norm", "attention_scale"))
    slopes, errors = exponents_of(
        *(Series.of(nets.isel(net=place), name).law("width") for place in range(nets.sizes["net"]))
    )
    return PowerLaw(float(slopes.mean()), float(np.sqrt(np.square(errors).sum()) / len(errors)), float("nan"))


CLAIMS = (
    Claim(
        id="A20a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 3.5, appendix D.4",
        statement="post-norm Transformers: eta* = Theta(L^(-3/2)) in the depth units L = 2 D + O(1), D the blocks "
        "(judged: the label term, which decides where outputs are few)",
        brief="post-norm Transformers: eta* = Theta(L^(-3/2)), L = 2 D + O(1) for D blocks",
        printed='"Under Assumption 1 and the one-step maximal-update decomposition used throughout Appendix B-C, the '
        'AM-muP maximal-update learning rate eta* (Sec. 3.2) satisfies eta*(L_tr) = Theta(L_tr^(-3/2))" (appendix '
        "D.4, corollary)",
        hypotheses="assumption 1 of appendix D (A20d), mean field, weak dependence",
        checks=checks(NAME, judge_post_limit, judge_post_theory),
    ),
    Claim(
        id="A20b",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, section 3.5 and appendix D.4, without the condition that both state",
        statement="pre-norm Transformers at initialisation, without the remark's condition: eta* = Theta(L^(-3/2)), as "
        "for post-norm (judged: the label term)",
        brief="pre-norm Transformers at initialisation: eta* = Theta(L^(-3/2)), as post-norm",
        printed='"For pre-norm units ... the same argument applies after redefining the depth-unit map ... Under '
        'this analogous tangent-propagation stability condition, the depth exponent is unchanged" (appendix D.4, '
        "remark)",
        hypotheses="those of A20a but for assumption 1 on pre-norm units, which the remark asks for (A20d)",
        checks=checks(NAME, judge_pre_limit, judge_pre_theory),
        replaced_by="L^(-1/2) (ln L)^(-3/2): with 8 tokens local slopes of -1.4 at L = 8, -1.0 at 64 and -0.76 at 1000",
        premise="the remark keeps the exponent where rho is bounded; the stream's variance grows with l and the "
        "branches do not, so that rho_{l:h} of tangents that tokens share grows as l/h",
    ),
    Claim(
        id="A20e",
        kind=Kind.BEYOND,
        source="Zhang et al. 2026, sections 3.1 (without its condition on Jacobians) and 4.5, taken to the limit of "
        "depth at initialisation",
        statement="normalisation placement has minimal effect on the exponent of eta* in the limit of depth, at "
        "initialisation",
        brief="normalisation placement hardly moves the exponent of eta* in the limit of depth",
        printed='"normalization placement ... when their Jacobians remain bounded at initialization; they affect '
        'constants in the update budget rather than the leading depth exponent" (section 3.1)',
        hypotheses="those of A20a, but for bounded Jacobians, which section 3.1 asks for and pre-norm nets do not have "
        "(A20d); the paper tuned trained nets, of 20 blocks or fewer in its tables",
        checks=checks(NAME, judge_placement_limit),
        replaced_by="without a factor on branches slopes of the mean field differ by 0.88 at a million units, and by 1 "
        "in the limit up to logarithms",
        premise="what trained nets of few blocks show is taken for the limit, where each norm has a law of its own",
    ),
    Claim(
        id="A20d",
        kind=Kind.PREMISE,
        source="Zhang et al. 2026, assumption 1 of appendix D, eq. 42-44",
        statement="rho_{l:h} is bounded in depth, one for all directions of parameters up to o(1), and its "
        "fluctuations vanish (judged: two kinds of directions, between which the tangents of weights lie)",
        brief="rho_{l:h} is bounded in depth, one for all directions, and hardly fluctuates",
        printed='"0 < c_Phi <= rho_(l:h) <= C_Phi < infinity with constants independent of L_tr, h, and l ... '
        'corresponding overlap fluctuations are negligible" (appendix D.3, assumption 1)',
        hypotheses="it is one: appendix D assumes it, for the tangent directions of the one-step update, which it has "
        "for high-dimensional and random; judged are white directions at the input, shared by tokens or summing to "
        "zero over them, and weights' tangents have a part of either kind",
        checks=checks(NAME, judge_post_bounded, judge_pre_bounded, judge_fluctuations, judge_one_for_all),
        replaced_by="post-norm nets do have a bounded rho_{l:h}; pre-norm: that of tangents that tokens share grows as "
        "l/h; either norm: at l = 128 these keep 5 to 60 times what tangents keep that sum to zero over tokens; at a "
        "given layer fluctuations do vanish with the width",
        premise="attention passes on to a token what tokens share. Uniform attention passes on nothing of what sums to "
        "zero over tokens; softmax attention less and less, as tokens grow alike",
    ),
)
