"""The printed report on Transformers: eta* over depth, its slopes, tokens and rho by layer, where the proof breaks."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.verification import PAPERS_EXPONENT, Finding, Series
from sims.common.report import Report, answer, folded
from sims.common.tables import MISSING, Column, Grid, Table, drawn, number, predicted, signed, slope
from sims.transformer_depth.claims import (
    LABEL_SCALE,
    LOCAL,
    NORMS,
    REMAINDER,
    RHO,
    SHALLOW,
    drawn_slope,
    far_slopes,
    findings,
    has_mean_field,
    judge_post_limit,
    judge_pre_limit,
    net_of,
    pre_norm_slope,
    predicted_slope,
)

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
WHOLE = "learning_rate_scale"
IN_USE = "inverse_sqrt"


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    if not has_mean_field(dataset):
        laws = {norm: drawn_slope(net_of(dataset, norm, IN_USE)) for norm in NORMS}
        words = ", ".join(f"{slope(law.exponent, law.stderr)} in {norm}-norm nets" for norm, law in laws.items())
        return f"Given inputs have no mean field; drawn slopes of the label term are {words} ({IN_USE})."
    judged, far = [judge_post_limit(dataset), judge_pre_limit(dataset)], int(dataset["slope_depth"][-1])
    words = ", ".join(f"{far_slopes(dataset, norm)[-1]:.3f} ({norm}-norm)" for norm in NORMS)
    return answer(judged, f"slope {words} of the label term's eta* at L = {far:,}")


def _scale_tables(dataset: xr.Dataset) -> list[Grid]:
    """eta* of the label term by depth and attention, drawn and predicted, without scaling."""

    def of_norm(norm: str) -> Table:
        title = f"{norm}-norm, scaling none: eta* of the label term by attention"
        nets = {str(attention): net_of(dataset, norm, attention) for attention in dataset["attention_scale"].values}
        columns = [_scale_column(attention, net) for attention, net in nets.items()]
        return Table("scale tables", title, ["depth"], "L", columns)

    return [of_norm(norm)(dataset) for norm in NORMS]


def _scale_column(attention: str, net: xr.Dataset) -> Column:
    """Of one net: drawn, mean field, standard errors apart, and the slope from the depth above to this one."""
    between = Series.of(net, LABEL_SCALE).local_slopes("depth")
    local = [MISSING, *map(slope, between.slope, between.stderr)]
    slopes = dict(zip(net["depth"].values, local, strict=True))

    def cells(at: xr.Dataset) -> list[str]:
        here = net.sel(depth=at["depth"])
        theory = float(np.exp(here[f"log_{LABEL_SCALE}_mean_field"]))
        apart = float((here[LABEL_SCALE] - theory) / here[f"{LABEL_SCALE}_stderr"])
        return [drawn(here, LABEL_SCALE), number(theory), signed(apart), slopes[int(at["depth"])]]

    return Column([attention, "mean field", "s.e.", "local"], cells)


def _slope_title(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values
    return f"Slopes in L over {depths[0]} .. {depths[-1]}"


def _drawn_slope(at: xr.Dataset, name: str) -> str:
    law = drawn_slope(at, name)
    return slope(law.exponent, law.stderr)


def _predicted_slope(at: xr.Dataset) -> str:
    theory = predicted_slope(at)
    return MISSING if np.isnan(theory) else f"{theory:+.3f}"


SLOPE_TABLE = Table(
    "slope table",
    _slope_title,
    ["norm", "scaling", "attention_scale"],
    "net, scaling, attention",
    [
        Column("eta*", lambda at: _drawn_slope(at, WHOLE)),
        Column("of B alone", lambda at: _drawn_slope(at, LABEL_SCALE)),
        Column("mean field of B", _predicted_slope),
    ],
    key="{}-norm {} {}".format,
)


def _slopes_in_use(dataset: xr.Dataset) -> Grid:
    """For attention as it is in use."""
    return SLOPE_TABLE(dataset.sel(attention_scale=[IN_USE]))


def _local_columns(dataset: xr.Dataset) -> list[Column]:
    """Of either norm: the slopes by scale of attention, and its law."""
    first, *others = map(str, dataset["attention_scale"].values)

    def column(norm: str) -> Column:
        def cells(at: xr.Dataset) -> list[str]:
            law = PAPERS_EXPONENT if norm == "post" else pre_norm_slope(int(at["slope_depth"]))
            return [f"{value:.3f}" for value in (*at[LOCAL].sel(norm=norm).values, law)]

        return Column([f"{norm}: {first}", *others, "law"], cells)

    return [*map(column, NORMS)]


LOCAL_TABLE = Table(
    "local table",
    "Local slopes of the label term's eta*, in the mean field, from L/2 to L, "
    "scaling none; laws: post L^(-3/2), pre L^(-1/2) (ln L)^(-3/2)",
    ["slope_depth"],
    "L",
    _local_columns,
)


def _local_table(dataset: xr.Dataset) -> str | Grid:
    """Nothing where inputs are given."""
    return LOCAL_TABLE(dataset) if has_mean_field(dataset) else ""


def _layer_column(norm: str) -> Column:
    header = [f"{norm}: correlation", "variance", "rho shared", "rho difference", "spread"]
    return Column(header, lambda at: _layer_cells(at.sel(norm=norm)))


LAYER_TABLE = Table(
    "layer table",
    f"By layer of the deepest nets (scaling none, {IN_USE}); rho from the input on",
    ["layer"],
    "l",
    [*map(_layer_column, NORMS)],
)


def _layer_table(dataset: xr.Dataset) -> Grid:
    """Tokens, stream and rho of the deepest nets, for attention as in use, at powers of two and at the last layer."""
    deepest = dataset.sel(attention_scale=IN_USE, scaling="none", start=0)
    last = int(deepest["layer"][-1])
    return LAYER_TABLE(deepest.sel(layer=sorted({2**power for power in range(1, last.bit_length())} | {last})))


def _layer_cells(here: xr.Dataset) -> list[str]:
    shared, other = (here.sel(direction=direction) for direction in ("shared", "difference"))
    spread = float(shared[f"{RHO}_spread"] / shared[RHO])
    tokens = [predicted(here, "token_correlation"), predicted(here, "stream_variance")]
    return [*tokens, drawn(shared, RHO), drawn(other, RHO), f"{spread:.2g}"]


def _breaks(dataset: xr.Dataset) -> str:
    """Every place where the proof of Zhang et al. 2026, appendix D, does not go through, with its number."""
    last, early, widths = int(dataset["layer"][-1]), SHALLOW, dataset["width"].values
    in_use = dataset.sel(attention_scale=IN_USE)
    grown = float(in_use[RHO].sel(norm="pre", direction="shared", start=0, layer=last))
    lost = float(in_use[RHO].sel(norm="post", direction="difference", start=early, layer=last))
    left = in_use[REMAINDER].sel(norm="post", wide_layer=early).values
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


REPORT = Report(
    question="Does eta* of Transformers fall as L^(-3/2) in the depth units L, wherever they normalise?",
    answer=_answer,
    heading="Transformer: width {width}, heads {heads}, tokens {tokens}, outputs {outputs}; {draws} draws of "
    "the deepest nets, more of others, seed {seed}; learning rate 1",
    parts=[_scale_tables, SLOPE_TABLE, _local_table, _layer_table, _breaks],
    findings=findings,
    brief=_slopes_in_use,
    heavy=(LABEL_SCALE, WHOLE, RHO),
    words=WORDS,
)
