"""Zhang et al. 2026, appendix D, assumption 1: what a change of the stream is behind further depth units.

rho_{l:h} is the mean square at layer l of a tangent over its mean square at layer h. The paper asks for one rho for all
tangents, within constants that do not depend on the depth, and for fluctuations that vanish with the width.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw
from meanfield.verification import (
    Claim,
    Contest,
    Deviation,
    Finding,
    Kind,
    Series,
    checks,
    contest,
    exponents_of,
    shown_laws,
)
from sims.transformer_depth.exponents import CASES, JUDGES, MORE, NAME, NORMS, by_attention, has_mean_field

# As drawn by width, at layers that are few against it.
RHO, SPREAD, REMAINDER = (f"tangent_propagation{end}_by_width" for end in ("", "_spread", "_remainder"))
# The layer at which widths are compared: four blocks, few against every width.
SHALLOW = 8
# Growth in depth is measured from this part of the layers on.
LAST = 4


def findings(dataset: xr.Dataset) -> list[Finding]:
    """All of the run; those on rho alone, which need no mean field, where inputs are given."""
    if has_mean_field(dataset):
        return JUDGES.findings(dataset)
    return [judge(dataset) for judge in (judge_post_bounded, judge_pre_bounded, judge_fluctuations, judge_one_for_all)]


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
    (narrow, _), wide = (_growth(at.isel(width=place), ends) for place in (-2, -1))
    # What is linear in 1/n: as much as from half the width to the width.
    made = contest(*wide, claimed=0.0, rival=1.0, allowance=np.abs(wide[0] - narrow))
    words = {"layers": f"{ends[0]} .. {ends[1]}"}
    return _of_draws(made, at.isel(width=-1).sel(wide_layer=ends)).saying(
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
    source="eqs. 42, 43",
    rival="what tokens share keeps more than what sums to zero over tokens, at any width",
    measured="slope in n of half the difference, mean over nets",
)
def judge_one_for_all(dataset: xr.Dataset) -> Contest:
    at = dataset.sel(wide_layer=SHALLOW)
    rho = at[RHO].isel(width=-1)
    shared, other = (float(rho.sel(direction=direction).mean()) for direction in ("shared", "difference"))
    law = _mean_law(at.assign({REMAINDER: abs(at[REMAINDER])}), REMAINDER)
    words = f"rho {shared:.3g} where tokens share, {other:.3g} where they sum to zero, mean over nets"
    return _vanishing(at, [law], f"slope of half the difference {shown_laws(law)}; {words}")


def _vanishing(at: xr.Dataset, laws: list[PowerLaw], words: str) -> Contest:
    """Slopes in the width against -1/2 or below, and against 0."""
    slope, stderr = exponents_of(*laws)
    made = Contest(Deviation(np.maximum(slope + 0.5, 0.0), stderr), Deviation(slope, stderr), apart=0.5)
    return _of_draws(made, at).saying(words, layer=SHALLOW)


def _of_draws(made: Contest, at: xr.Dataset) -> Contest:
    """With as many draws as were made of these nets, and those that carry the means of rho."""
    often = at.assign_attrs(draws=MORE * at.attrs["draws"])
    return replace(made, draws=often.attrs["draws"]).carried_by(often, RHO).shared_in(often, RHO)


def _growth(at: xr.Dataset, ends: list[int]) -> tuple[Array, Array]:
    """d ln rho / d ln l between two layers by scale of attention; its error, at most the sum of both ends' parts."""
    rho, stderr = (
        at[f"{RHO}{end}"].sel(wide_layer=ends).transpose("wide_layer", ...).values for end in ("", "_stderr")
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
        id="A20d",
        kind=Kind.PREMISE,
        source="Zhang et al. 2026, assumption 1 of appendix D, eq. 42-44",
        statement="rho_{l:h} is bounded in depth, one for all directions of parameters up to o(1), and its "
        "fluctuations vanish (judged: two kinds of directions, between which the tangents of weights lie)",
        printed='"0 < c_Phi <= rho_(l:h) <= C_Phi < infinity with constants independent of L_tr, h, and l ... '
        'corresponding overlap fluctuations are negligible" (appendix D.3, assumption 1)',
        hypotheses="it is one: appendix D assumes it",
        checks=checks(NAME, judge_post_bounded, judge_pre_bounded, judge_fluctuations, judge_one_for_all),
        replaced_by="pre-norm: rho_{l:h} of tangents that tokens share grows as l/h; either norm: at l = 128 these "
        "keep 5 to 60 times what tangents keep that sum to zero over tokens; at a given layer fluctuations do vanish "
        "with the width",
        premise="attention passes on to a token what tokens share. Uniform attention passes on nothing of what sums to "
        "zero over tokens; softmax attention less and less, as tokens grow alike",
    ),
)
