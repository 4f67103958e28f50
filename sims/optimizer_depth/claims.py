"""What one step of signs and of polar factors says of depth and width, beside descent and what is printed.

Bands were set before any run was looked at: a slope is granted what finite width does to that of descent in theory,
exactly; a limit besides what the mean field's slope over the drawn depths still lacks of it. A look at a smoke run
changed two things: shares of single draws are those of the scales that a judge reads, and the power of the width is
that of a straight line with such a grant, where a fitted correction of 1/n had left errors of half a power.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common import Array, PowerLaw
from meanfield.nets import MLP, ResidualMLP
from meanfield.theory import residual_exponent
from meanfield.verification import (
    PAPERS_EXPONENT,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Series,
    checks,
    contest,
    exponents_of,
    printed_residual_exponents,
    shown_laws,
    slope_contest,
    span,
)
from sims.common.tables import fraction

# The nets that one step of each optimizer moves, and what of a net the labels, the loss and the head may change.

DESCENT = "sgd"
# Those whose first step from rest is a function of the gradient alone, and what that takes of it: all but descent
# forget its size.
OPTIMIZERS = {DESCENT: "descent"} | dict.fromkeys(("adamw", "lion"), "signs")
OPTIMIZERS |= dict.fromkeys(("muon", "muon_kimi", "shampoo", "soap"), "polar factors")

PLAIN = "plain"
RESIDUAL: Mapping[str, Mapping[str, Any]] = {
    "init": {"scaling": "init", "block_depth": 1},
    "multiplier_sqrt": {"scaling": "multiplier_sqrt", "block_depth": 1},
    "multiplier_linear": {"scaling": "multiplier_linear", "block_depth": 1},
    "init_k2": {"scaling": "init", "block_depth": 2},
    "multiplier_linear_k2": {"scaling": "multiplier_linear", "block_depth": 2},
}
FAMILIES = (PLAIN, *RESIDUAL)
IN_WORDS = {
    PLAIN: "plain",
    "init": "variance 1/K, k = 1",
    "multiplier_sqrt": "times K^(-1/2), k = 1",
    "multiplier_linear": "times 1/K, k = 1",
    "init_k2": "variance 1/K, k = 2",
    "multiplier_linear_k2": "times 1/K, k = 2",
}

# Layers of the nets whose width, labels, loss and head change.
SHALLOW = 4
# The base, and what differs from it: fields of the net, and options of the measure. Few outputs, so that the part of
# the error that the features themselves make is small.
BASE = "base"
FEW, MORE_OUTPUTS = 2, 8
SETTINGS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    BASE: ({}, {}),
    "labels": ({}, {"label_mean": 3.0}),
    "loss": ({}, {"loss": "cross_entropy"}),
    "outputs": ({"outputs": MORE_OUTPUTS}, {}),
    "head": ({"head": "mup"}, {}),
}
SETTINGS_IN_WORDS = {
    BASE: f"labels of variance 1, squared loss, {FEW} outputs, He's head",
    "labels": "labels of a mean of 3",
    "loss": "cross-entropy",
    "outputs": f"{MORE_OUTPUTS} outputs",
    "head": "a head of variance 1/n^2 (muP)",
}


def plain(depth: int, width: int, outputs: int) -> MLP:
    return MLP(depth=depth, width=width, outputs=outputs)


def residual(family: str, depth: int, width: int, outputs: int) -> ResidualMLP:
    return ResidualMLP(depth=depth, width=width, outputs=outputs, **RESIDUAL[family])


# What is claimed, and what decides it.

NAME = "optimizer_depth"
LABEL_SCALE, SCALE = "label_learning_rate_scale", "learning_rate_scale"
# How names begin of what is not drawn of residual nets over blocks.
OF_PLAIN, OF_WIDTH, OF_SETTING = "plain_", "width_", "setting_"
SHIFT = "finite_width_shift"
# By how much one step of signs or polar factors falls faster than one of descent in residual nets under K^(-1/2).
HALF = 0.5
# Plain nets, which scatter more, are drawn so many times as often; under descent, which takes no whole matrices, more.
MORE, MORE_OF_DESCENT = 2, 8


def drawn_scales(dataset: xr.Dataset, family: str, optimizer: str) -> tuple[Series, str]:
    """The label term's scale of a family under an optimizer, and the dim along which its depth goes."""
    name, along, at = (
        (OF_PLAIN + LABEL_SCALE, "depth", {}) if family == PLAIN else (LABEL_SCALE, "blocks", {"family": family})
    )
    return Series.of(dataset, name).sel(optimizer=optimizer, **at), along


def drawn_law(dataset: xr.Dataset, family: str, optimizer: str) -> PowerLaw:
    series, along = drawn_scales(dataset, family, optimizer)
    return series.law(along)


def theory_slope(dataset: xr.Dataset, family: str, optimizer: str) -> float:
    """Slope of the mean field over the same depths, weighted as the drawn one is."""
    series, along = drawn_scales(dataset, family, optimizer)
    return series.slope_of(along, theory_logs(dataset, family, optimizer))


def theory_logs(dataset: xr.Dataset, family: str, optimizer: str) -> Array:
    """The logarithms of the label term's scale in the mean field."""
    name = f"log_{OF_PLAIN if family == PLAIN else ''}{LABEL_SCALE}_mean_field"
    at = {"optimizer": optimizer} | ({} if family == PLAIN else {"family": family})
    return np.asarray(dataset[name].sel(at).values)


def limit_of(family: str, optimizer: str) -> float:
    """The exponent that a scale tends to with depth."""
    if family == PLAIN:
        return PAPERS_EXPONENT
    return residual_exponent(**RESIDUAL[family], optimizer=optimizer)


def printed_by(family: str, optimizer: str) -> dict[str, float]:
    """Exponents that papers print for one step of this optimizer, by paper."""
    if family == PLAIN:
        return {}
    return printed_residual_exponents(**RESIDUAL[family], descent=optimizer == DESCENT)


def others(dataset: xr.Dataset) -> list[str]:
    """The optimizers but descent: those that forget the size of gradients."""
    return [str(name) for name in dataset["optimizer"].values if name != DESCENT]


def granted(dataset: xr.Dataset, family: str) -> float:
    """What finite width may do to a slope."""
    return float(dataset[SHIFT].sel(drawn_family=family))


def _share(dataset: xr.Dataset, family: str, optimizers: Sequence[str]) -> float:
    """The largest of one draw in the scales of a family under these optimizers."""
    return max(drawn_scales(dataset, family, name)[0].largest_share for name in optimizers)


JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of the families that were drawn; of the width; of what drops out."""
    drawn = dataset["drawn_family"].values
    of_blocks = [judge_coherent(dataset, family) for family in COHERENT if family in drawn]
    of_layers = [judge_plain(dataset)] if PLAIN in drawn else []
    of_tables = [judge_tables(dataset, family) for family in TABLES if family in drawn]
    return [*of_blocks, *of_layers, judge_width(dataset), judge_forgotten(dataset), *of_tables]


COHERENT = ("init", "multiplier_sqrt", "multiplier_linear", "init_k2")


@JUDGES.decide(
    claim="Under {optimizers} eta* of {net} goes over K = {blocks} as one step of theirs in the mean field, whose "
    "exponent tends to {limit}",
    rival="as {rival_words}",
    measured="drawn slopes of the label term's eta*, ReLU",
    brief="{optimizers}: eta* goes towards K^({limit}), residual nets, {scaled}",
    cases=[{"family": family} for family in COHERENT],
)
def judge_coherent(dataset: xr.Dataset, family: str) -> Contest:
    names = others(dataset)
    laws = [drawn_law(dataset, family, name) for name in names]
    claimed = [theory_slope(dataset, family, name) for name in names]
    rival, rival_words = theory_slope(dataset, family, DESCENT), "one step of descent"
    if limit_of(family, DESCENT) == limit_of(family, names[0]):
        rival, rival_words = PAPERS_EXPONENT, "K^(-3/2) (Zhang et al. 2026, for descent, whose law is theirs here)"
    numbers = ", ".join(f"{slope:.3f}" for slope in claimed)
    return slope_contest(
        *laws,
        claimed=claimed,
        rival=rival,
        allowance=granted(dataset, family),
        largest_share=_share(dataset, family, names),
        shown=f"slopes {{laws}}, in theory {numbers}, the rival's {rival:.3f}",
        words=_words(dataset, names)
        | {"net": _net(family), "scaled": IN_WORDS[family], "limit": _limit(family, names), "rival_words": rival_words},
    )


def _net(family: str) -> str:
    return f"residual nets, {IN_WORDS[family]}"


def _limit(family: str, names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(fraction(limit_of(family, name)) for name in names))


def _words(dataset: xr.Dataset, names: Sequence[str]) -> dict[str, Any]:
    """The optimizers, and the sizes that were drawn."""
    said = {"blocks": "blocks", "depths": "depth", "widths": "width"}
    sizes = {word: span(dataset[dim].values) for word, dim in said.items() if dim in dataset.coords}
    return {"optimizers": ", ".join(names)} | sizes


@JUDGES.decide(
    claim="In plain nets over L = {depths} the exponent of eta* does not depend on the optimizer: that of {optimizers} "
    "is that of descent but for {apart}, as the mean field has it",
    rival="it is half a power lower, as in residual nets under K^(-1/2)",
    measured="drawn slopes of the label term's eta* less that of descent, ReLU",
    brief="Plain nets: eta* has one exponent in depth under {optimizers} and descent",
)
def judge_plain(dataset: xr.Dataset) -> Contest:
    names = others(dataset)
    descent, laws = drawn_law(dataset, PLAIN, DESCENT), [drawn_law(dataset, PLAIN, name) for name in names]
    slopes, errors = exponents_of(*laws)
    apart = np.array([theory_slope(dataset, PLAIN, name) for name in names]) - theory_slope(dataset, PLAIN, DESCENT)
    return contest(
        slopes - descent.exponent,
        np.hypot(errors, descent.stderr),
        claimed=apart,
        rival=apart - HALF,
        allowance=granted(dataset, PLAIN),
        draws=MORE * dataset.attrs["draws"],
        largest_share=_share(dataset, PLAIN, [DESCENT, *names]),
        shown=f"slopes {shown_laws(*laws)}, descent {shown_laws(descent)}",
        words=_words(dataset, names) | {"apart": ", ".join(f"{value:+.2f}" for value in apart)},
    )


@JUDGES.decide(
    claim="At L = {layers} eta* goes in the width n as {claimed}, optimizer by optimizer ({all_optimizers})",
    rival="as n^(-1/2) under all of them, and for descent as n^0 ('width-robust', Zhang et al. 2026)",
    measured="drawn slopes of the label term's eta* over n = {widths}, He's head",
    brief="Plain nets: eta* goes as {claimed} in the width ({all_optimizers})",
)
def judge_width(dataset: xr.Dataset) -> Contest:
    names = [str(name) for name in dataset["optimizer"].values]
    laws = [width_law(dataset, name) for name in names]
    claimed = np.array([width_exponent(dataset, name) for name in names])
    rival = [0.0 if name == DESCENT else -HALF for name in names]
    powers = ", ".join(f"n^({fraction(round(2 * power) / 2)})" for power in claimed)
    words = _words(dataset, others(dataset)) | {
        "all_optimizers": ", ".join(names),
        "claimed": powers,
        "layers": SHALLOW,
    }
    return slope_contest(
        *laws,
        claimed=claimed,
        rival=rival,
        allowance=float(dataset[OF_WIDTH + SHIFT]),
        draws=MORE * dataset.attrs["draws"],
        largest_share=Series.of(dataset, OF_WIDTH + LABEL_SCALE).largest_share,
        words=words,
    )


def width_law(dataset: xr.Dataset, optimizer: str) -> PowerLaw:
    """The power of the width in the drawn scale of the label term."""
    return Series.of(dataset, OF_WIDTH + LABEL_SCALE).sel(optimizer=optimizer).law("width")


def width_exponent(dataset: xr.Dataset, optimizer: str) -> float:
    """The same in the mean field."""
    logs = dataset[f"log_{OF_WIDTH}{LABEL_SCALE}_mean_field"].sel(optimizer=optimizer)
    return float(np.diff(logs.values)[-1] / np.diff(np.log(logs["width"].values))[-1])


@JUDGES.decide(
    claim="Under {optimizers} the size of labels, the loss, the number of outputs and the head's variance drop out of "
    "eta* of one sample, outputs' error included",
    rival="they change it as they change that of descent",
    measured="ln of drawn eta* over that of the base, for other labels, loss, outputs and head, at {layers} layers",
    brief="{optimizers}: labels, loss, outputs and head drop out of eta* of one sample",
)
def judge_forgotten(dataset: xr.Dataset) -> Contest:
    """Granted is L M / (4 n): of the error a part M / (2 n) in energy lies along the features, and what it moves adds
    up coherently, to 3/4 of a layer's number times what the rest moves (docs/theory.md section 24)."""
    names = others(dataset)
    ratios, variances = zip(*(setting_ratios(dataset, name) for name in names), strict=True)
    of_descent, own = setting_ratios(dataset, DESCENT)
    allowance = SHALLOW * MORE_OUTPUTS / (4 * dataset.attrs["setting_width"])
    ratio, variance = np.concatenate(ratios), np.concatenate(variances)
    back = np.tile(of_descent, len(names))
    claim = Deviation(ratio, np.sqrt(variance), allowance)
    rival = Deviation(ratio - back, np.sqrt(variance + np.tile(own, len(names))), allowance)
    largest, by_descent = (values[np.argmax(abs(values))] for values in (ratio, of_descent))
    shown = f"largest ln ratio {largest:+.3f}, of descent {by_descent:+.3f}"
    made = Contest(claim, rival, apart=back, draws=MORE * dataset.attrs["draws"])
    shared = made.shared_in(dataset, OF_SETTING + SCALE)
    return shared.saying(shown, **_words(dataset, names), layers=SHALLOW)


def setting_ratios(dataset: xr.Dataset, optimizer: str) -> tuple[Array, Array]:
    """ln of the scale of every other setting over that of the base, and its variance."""
    logs = Series.of(dataset.sel(optimizer=optimizer), OF_SETTING + SCALE).log()
    base, rest = logs.sel(setting=BASE), logs.sel(setting=[name for name in dataset["setting"].values if name != BASE])
    return np.asarray((rest.value - base.value).values), np.asarray((rest.error**2 + base.error**2).values)


# Tables of Zheng et al. 2026 by the net that they are for: AdamW and Lion, Muon, Shampoo and SOAP, Muon-Kimi.
TABLES = {"multiplier_sqrt": "tables 9, 10, 12", "multiplier_linear_k2": "tables 3, 4, 6"}


@JUDGES.decide(
    claim="eta* of one step of {optimizers} goes as K^({printed}) in {net}, as hidden learning rates do in {tables}",
    rival="as K^({rival_exponent}), which is one step of descent's",
    measured="drawn slopes of the label term's eta*, ReLU, granted what theory's lack of their limit",
    brief="Zheng et al. 2026, {tables}: eta* ~ K^({printed}), {scaled}",
    cases=[{"family": family} for family in TABLES],
)
def judge_tables(dataset: xr.Dataset, family: str) -> Contest:
    names = others(dataset)
    laws = [drawn_law(dataset, family, name) for name in names]
    (printed,), rival = printed_by(family, names[0]).values(), limit_of(family, DESCENT)
    in_theory = np.array([theory_slope(dataset, family, name) for name in names])
    lacking = abs(in_theory - [limit_of(family, name) for name in names])
    words = {"net": _net(family), "scaled": IN_WORDS[family], "tables": TABLES[family], "printed": fraction(printed)}
    return slope_contest(
        *laws,
        claimed=printed,
        rival=rival,
        allowance=lacking + granted(dataset, family),
        largest_share=_share(dataset, family, names),
        shown=f"slopes {{laws}}; theory's lack {', '.join(f'{value:.2f}' for value in lacking)}",
        words=_words(dataset, names) | words | {"rival_exponent": fraction(rival)},
    )


OURS = "ours, after Zhang et al. 2026, eqs. 7-9"

CLAIMS = (
    Claim(
        id="O1",
        kind=Kind.OWN,
        source=OURS,
        statement="one step of signs (AdamW, Lion) or of polar factors (Muon) has eta* ~ K^-1 in residual nets of "
        "branch weights of variance 1/K, K^(-1/2) under the multiplier K^(-1/2), K^0 under 1/K, and K^(-1/2) with two "
        "layers a branch of variance 1/K, where one step of descent has K^-1, K^0, K^+1 and K^0",
        brief="signs and polar factors: eta* ~ K^-1, K^(-1/2), K^0, and K^(-1/2) for k = 2",
        printed="no sentence of a paper: which depth law the optimizers have that train",
        hypotheses="ReLU, fully connected, one sample, first step from rest without momentum or epsilon, the labels' "
        "error; drawn slopes are judged against the mean field at the same K, which tends to the powers named; granted "
        "is 2.5 times what finite width does to linear nets under descent. Under variance 1/K descent has the same "
        "power, and K^(-3/2) is the rival",
        checks=checks(NAME, *(partial(judge_coherent, family=family) for family in COHERENT)),
    ),
    Claim(
        id="O2",
        kind=Kind.OWN,
        source=OURS,
        statement="in plain nets the exponent of eta* in depth does not depend on the optimizer (over 3 .. 30 layers, "
        "fitted with equal weights, -1.39 under descent and polar factors, -1.37 under signs), while the power of the "
        "width does: n^(-1/2) under descent, n^-1 under signs, n^0 under Muon, with He's head",
        brief="plain nets: the optimizer changes no exponent in depth, and that in width",
        printed="no sentence of a paper: what of the law of plain nets survives another optimizer",
        hypotheses="those of O1; granted is what finite width does to the slope of descent, exactly. The rivals are "
        "half a power off: a difference of less than what is granted is not told. Chosen after a look at a smoke run: "
        "a straight line in the width with such a grant, in place of a fitted correction of 1/n, and more draws",
        checks=checks(NAME, judge_plain, judge_width),
    ),
    Claim(
        id="O3",
        kind=Kind.OWN,
        source=OURS,
        statement="under signs and polar factors the size of labels, the loss, the number of outputs and the variance "
        "of the head drop out of eta* of one sample, as they do not under descent",
        brief="signs and polar factors: labels, loss, outputs and head drop out of eta*",
        printed="no sentence of a paper: which of these a rate of AdamW or Muon has to follow",
        hypotheses=f"those of O1 with the whole error, plain nets of {SHALLOW} layers, up to {MORE_OUTPUTS} outputs; "
        "granted is L M / (4 n), for the part of the error that lies along the features",
        checks=checks(NAME, judge_forgotten),
    ),
    Claim(
        id="O4",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 9, 10, 12 (condition B.1) and 3, 4, 6 (condition 3.1), hidden learning rates",
        statement="for optimizers that normalise, hidden learning rates go as 1/sqrt(L) for k = 1 with the multiplier "
        "1/sqrt(L), and do not change with L for k = 2 with 1/L (judged: eta* of one step)",
        brief="hidden rates of AdamW and Muon: L^(-1/2) for k = 1, L^0 for k = 2 (one step)",
        printed='"we need to set eta_l = Theta(1/sqrt(L))" (appendix D.3.1, Muon, k = 1); "their update norms do not '
        'depend on alpha_l, and the optimizer-specific HP rule remains the same as in width-scaling muP" (section '
        "4.3, k = 2)",
        hypotheses="linear blocks, one step without momentum and epsilon, fixed input and output sizes; conditions B.1 "
        "and 3.1 ask that every hidden weight move its block by 1/L in spectral norm. Judged is another budget, the "
        "mean square change of the stream, in ReLU nets of equal widths under the labels' error; finite K is granted "
        "what theory's slope lacks of its limit",
        checks=checks(NAME, *(partial(judge_tables, family=family) for family in TABLES)),
    ),
)
