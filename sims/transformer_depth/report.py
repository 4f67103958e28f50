"""The printed report on Transformers: eta* over depth, its slopes, tokens and rho by layer, where the proof breaks."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import PAPERS_EXPONENT, Finding
from meanfield.verification import depth_exponents as claims
from meanfield.verification import tangent_propagation as tangents
from sims.common.report import Report, answer, folded
from sims.common.tables import MISSING, drawn, number, predicted, rows, signed, slope, table

WORDS = {
    "post-norm": "z <- norm(z + a f(z)); pre-norm: z <- z + a f(norm(z)); f is attention and FFN by turns, D blocks of "
    "both are L = 2 D depth units.",
    "none": "scaling a = 1; multiplier_sqrt: a = L^(-1/2); multiplier_linear: a = 1/L.",
    "inverse": "logits of attention are q.k / size, size being that of a head, and vanish with the width; "
    "inverse_sqrt: they are q.k / size^(1/2), as in use.",
    "local": "slope d ln eta* / d ln L from the depth above to this one.",
    "correlation": "mean cosine of the angle between two tokens of a sample; at 1 all tokens are alike.",
    "rho": "mean square of a tangent of the stream at layer l over that at the input. Of shared tangents, the same at "
    "all tokens; of their difference, which sums to zero over tokens. spread: standard deviation of rho over draws, of "
    "shared tangents, over rho.",
}
WHOLE, RHO = "learning_rate_scale", "tangent_propagation"
IN_USE = "inverse_sqrt"
NORMS = ("post", "pre")


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    if not claims.has_mean_field(dataset):
        laws = {norm: claims.drawn_slope(claims.net_of(dataset, norm, IN_USE)) for norm in NORMS}
        words = ", ".join(f"{slope(law.exponent, law.stderr)} in {norm}-norm nets" for norm, law in laws.items())
        return f"Given inputs have no mean field; drawn slopes of the label term are {words} ({IN_USE})."
    judged, far = [claims.judge_post_limit(dataset), claims.judge_pre_limit(dataset)], int(dataset["slope_depth"][-1])
    words = ", ".join(f"{claims.far_slopes(dataset, norm)[-1]:.3f} ({norm}-norm)" for norm in NORMS)
    return answer(judged, f"slope {words} of the label term's eta* at L = {far:,}")


def _scale_tables(dataset: xr.Dataset) -> list[str]:
    return [_scale_table(dataset, norm) for norm in NORMS]


def _scale_table(dataset: xr.Dataset, norm: str) -> str:
    """eta* of the label term by depth and attention, drawn and predicted, without scaling."""
    attentions = list(map(str, dataset["attention_scale"].values))
    columns = [_scale_columns(claims.net_of(dataset, norm, attention)) for attention in attentions]
    lines = [
        [str(depth), *(cell for cells in line for cell in cells)]
        for depth, *line in zip(dataset["depth"].values, *columns, strict=True)
    ]
    header = ["L", *([attention, "mean field", "s.e.", "local"] for attention in attentions)]
    return table(header, lines, f"{norm}-norm, scaling none: eta* of the label term by attention")


def _scale_columns(at: xr.Dataset) -> list[list[str]]:
    """By depth: drawn, mean field, standard errors apart, local slope."""
    name, theory = claims.LABEL_SCALE, np.exp(at[f"log_{claims.LABEL_SCALE}_mean_field"].values)
    apart = (at[name].values - theory) / at[f"{name}_stderr"].values
    local = ["-", *(slope(law.exponent, law.stderr) for law in claims.local_slopes(at))]
    numbers = zip(theory, apart, local, strict=True)
    return [
        [drawn(at.isel(depth=place), name), number(value), signed(off), local_slope]
        for place, (value, off, local_slope) in enumerate(numbers)
    ]


def _slope_table(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values

    def cells(at: xr.Dataset) -> list[str]:
        laws = [claims.drawn_slope(at, name) for name in (WHOLE, claims.LABEL_SCALE)]
        theory = claims.predicted_slope(at)
        return [*(slope(law.exponent, law.stderr) for law in laws), MISSING if np.isnan(theory) else f"{theory:+.3f}"]

    nets = rows(dataset, ["norm", "scaling", "attention_scale"], cells)
    lines = [[f"{norm}-norm {scaling} {attention}", *slopes] for norm, scaling, attention, *slopes in nets]
    header = ["net, scaling, attention", "eta*", "of B alone", "mean field of B"]
    return table(header, lines, f"Slopes in L over {depths[0]} .. {depths[-1]}")


def _local_table(dataset: xr.Dataset) -> str:
    """Local slopes of theory by depth, without scaling, beside both laws; nothing where inputs are given."""
    if not claims.has_mean_field(dataset):
        return ""
    local, attentions = dataset[claims.LOCAL], list(map(str, dataset["attention_scale"].values))
    lines = []
    for depth in map(int, dataset["slope_depth"].values):
        post, pre = (local.sel(norm=norm, slope_depth=depth).values for norm in NORMS)
        slopes = [*post, PAPERS_EXPONENT, *pre, claims.pre_norm_slope(depth)]
        lines.append([str(depth), *(f"{value:.3f}" for value in slopes)])
    header = ["L", *([f"{norm}: {attentions[0]}", *attentions[1:], "law"] for norm in NORMS)]
    laws = "scaling none; laws: post L^(-3/2), pre L^(-1/2) (ln L)^(-3/2)"
    return table(header, lines, f"Local slopes of the label term's eta*, in the mean field, from L/2 to L, {laws}")


def _layer_table(dataset: xr.Dataset) -> str:
    """Tokens, stream and rho of the deepest nets by layer, for attention as in use."""
    deepest = dataset.sel(attention_scale=IN_USE, scaling="none", start=0)
    last = int(deepest["layer"][-1])
    shown = sorted({2**power for power in range(1, int(last).bit_length())} | {last})
    columns = [[_layer_cells(deepest.sel(norm=norm, layer=layer)) for layer in shown] for norm in NORMS]
    lines = [[str(layer), *post, *pre] for layer, post, pre in zip(shown, *columns, strict=True)]
    named = ["correlation", "variance", "rho shared", "rho difference", "spread"]
    header = ["l", *([f"{norm}: {named[0]}", *named[1:]] for norm in NORMS)]
    return table(header, lines, f"By layer of the deepest nets (scaling none, {IN_USE}); rho from the input on")


def _layer_cells(here: xr.Dataset) -> list[str]:
    shared, other = (here.sel(direction=direction) for direction in ("shared", "difference"))
    spread = float(shared[f"{RHO}_spread"] / shared[RHO])
    tokens = [predicted(here, "token_correlation"), predicted(here, "stream_variance")]
    return [*tokens, drawn(shared, RHO), drawn(other, RHO), f"{spread:.2g}"]


def _breaks(dataset: xr.Dataset) -> str:
    """Every place where the proof of Zhang et al. 2026, appendix D, does not go through, with its number."""
    last, early, widths = int(dataset["layer"][-1]), tangents.SHALLOW, dataset["width"].values
    in_use = dataset.sel(attention_scale=IN_USE)
    grown = float(in_use[RHO].sel(norm="pre", direction="shared", start=0, layer=last))
    lost = float(in_use[RHO].sel(norm="post", direction="difference", start=early, layer=last))
    left = in_use[tangents.REMAINDER].sel(norm="post", wide_layer=early).values
    noise = (in_use[f"{RHO}_spread"] / in_use[RHO]).sel(norm="post", direction="shared", start=0).values
    plain = in_use.sel(scaling="none")
    variance = float(plain["stream_variance"].sel(norm="pre", layer=last))
    alike = float(plain["token_correlation"].sel(norm="post", layer=early))
    places = [
        f"Remark D.4 asks for bounded rho in pre-norm nets: of shared tangents it is {grown:.3g} at l = {last}, where "
        f"the variance of the stream is {variance:.3g}.",
        f"Eq. 42 asks for rho above a constant for all h, l: in post-norm nets that of differences is {lost:.2g} from "
        f"h = {early} to l = {last}.",
        f"Eq. 43 asks for one rho up to o(1): half the difference of both is {left[0]:.3f} at width {widths[0]} and "
        f"{left[-1]:.3f} at width {widths[-1]} (post-norm, h = 0, l = {early}).",
        f"Eq. 44 asks for small fluctuations at all depths: they are {noise[early - 1]:.2g} of rho at l = {early} and "
        f"{noise[-1]:.2g} at l = {last} (post-norm, width {widths[-1]}).",
        f"Section D.4 counts overlaps as in a chain of layers, without tokens: but these grow alike first, with a "
        f"correlation of {alike:.2f} at l = {early} (post-norm).",
    ]
    return "\n".join(["Where the proof of Zhang et al. 2026 breaks", *(folded(place, "  - ", 4) for place in places)])


text = Report(
    question="Does eta* of Transformers fall as L^(-3/2) in the depth units L, wherever they normalise?",
    answer=_answer,
    heading="Transformer: width {width}, heads {heads}, tokens {tokens}, outputs {outputs}; {draws} draws of "
    "the deepest nets, more of others, seed {seed}; learning rate 1",
    parts=[_scale_tables, _slope_table, _local_table, _layer_table, _breaks],
    findings=tangents.findings,
    heavy=(claims.LABEL_SCALE, WHOLE, RHO),
    words=WORDS,
).text
