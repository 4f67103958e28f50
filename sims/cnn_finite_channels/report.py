"""The printed report on finite channels and stencils of convolutional nets."""

from collections.abc import Sequence
from functools import partial

import xarray as xr

from meanfield.verification import Finding
from sims.cnn_finite_channels import claims
from sims.cnn_finite_channels.claims import CORRECTION, SCALE
from sims.common.pairs import added_variance_table
from sims.common.report import Report, answer
from sims.common.tables import Column, Table, against, drawn, fitted, label, number, signed

LIMIT = f"{SCALE}_mean_field"

CORRECTION_NOTE = (
    "B / mean field - 1: drawn. Beside it two predictions, the exact corrections of fully-connected nets (one site) "
    "of C and of C x sites units, each with s.e. off: drawn minus predicted, in standard errors. times C: C x drawn."
)
VARIANCE_NOTE = (
    "pair: two parameter directions, LAYER,UNIT:LAYER,UNIT; T: their overlap. A variance of order 1/C makes a line of "
    "this table constant."
)
SLOPE_NOTE = (
    "slope: of eta* over the depths, drawn, beside the mean field's over the same depths; s.e. off: drawn minus "
    "mean field, in standard errors. ratio: eta* over the first stencil's at L = {depth}, drawn, then the mean field's."
)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    mean = dataset[CORRECTION].mean("channels").isel(depth_over_channels=[0, -1])
    ends = zip(mean["depth_over_channels"].values, mean.values, strict=True)
    grown = ", ".join(f"{value:.2g} at L/C = {share:g}" for share, value in ends)
    return answer([claims.judge_uniform_in_depth(dataset)], f"at fixed channels {grown}")


def _predictions(at: xr.Dataset) -> list[str]:
    """Drawn, and beside each prediction its distance."""
    one_site, effective = (against(at, CORRECTION, name) for name in ("one_site", "effective_width"))
    return [*one_site, *effective[1:]]


CORRECTIONS = Table(
    "correction table",
    "Correction, {taps} taps on {sites} sites: equal at equal L/C, or, were it O(1/C), equal in the last column",
    ["depth_over_channels", "channels"],
    ["L/C", "C"],
    [
        Column("L", lambda at: label(float(at["correction_depth"]))),
        Column(["B / mean field - 1", "one site", "s.e. off", "C x sites units", "s.e. off"], _predictions),
        Column("times C", lambda at: drawn(at, CORRECTION, float(at["channels"]))),
    ],
)


def _correction_table(dataset: xr.Dataset) -> str:
    return f"{CORRECTIONS(dataset)}\n{CORRECTION_NOTE}"


def _variance_table(dataset: xr.Dataset) -> str:
    return f"{added_variance_table(dataset)}\n{VARIANCE_NOTE}"


def _slope_table(dataset: xr.Dataset) -> str:
    depths, first = dataset["depth"].values, dataset.isel(stencil=0)
    columns = [
        [Column(f"eta* at L = {depth}", partial(_scale, depth)) for depth in depths],
        [
            Column("slope", lambda at: fitted(claims.drawn_slope(at))),
            Column("mean field", lambda at: number(claims.mean_field_slope(at))),
            Column("s.e. off", _distance),
        ],
        [
            Column("ratio", lambda at: number(float((at[SCALE] / first[SCALE])[0]))),
            Column("its mean field", lambda at: number(float((at[LIMIT] / first[LIMIT])[0]))),
        ],
    ]
    title = (
        f"eta* of the label term, {dataset.attrs['slope_channels']} channels; "
        f"finite width steepens slopes by {claims.finite_width_slack(first):.3f} for one site"
    )
    table = Table("slope table", title, ["stencil"], "stencil", columns)
    return f"{table(dataset)}\n{SLOPE_NOTE.format(depth=depths[0])}"


def _scale(depth: int, at: xr.Dataset) -> str:
    return drawn(at.sel(depth=depth), SCALE)


def _distance(at: xr.Dataset) -> str:
    """Of the drawn slope from the mean field's, in standard errors."""
    law = claims.drawn_slope(at)
    return signed((law.exponent - claims.mean_field_slope(at)) / law.stderr)


REPORT = Report(
    question="Are corrections of finite channels C of order 1/C uniformly in depth, as the papers say?",
    answer=_answer,
    heading="ConvNet, relu, circular padding, convolutional readout; label term B of the last layer\n"
    "{draws} draws a correction, {draws_slope} a slope, {draws_given} an added variance; seed {seed}",
    parts=[_correction_table, _variance_table, _slope_table],
    findings=claims.findings,
    heavy=[CORRECTION],
)
