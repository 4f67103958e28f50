"""The printed report on finite channels and stencils of convolutional nets."""

from collections.abc import Sequence

import xarray as xr

from meanfield.verification import Finding, channel_corrections, stencil_slopes
from sims.cnn_finite_channels.claims import OF_OVERLAPS
from sims.common.pairs import added_variance_table
from sims.common.report import Report, answer
from sims.common.tables import against, drawn, fitted, label, number, rows, signed, table

CORRECTION = channel_corrections.CORRECTION
SCALE = stencil_slopes.SCALE


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
    return answer([channel_corrections.judge_uniform_in_depth(dataset)], f"at fixed channels {grown}")


def _correction_table(dataset: xr.Dataset) -> str:
    def cells(at: xr.Dataset) -> list[str]:
        one_site, effective = (against(at, CORRECTION, name) for name in ("one_site", "effective_width"))
        layers = label(float(at["correction_depth"]))
        return [layers, *one_site, *effective[1:], drawn(at, CORRECTION, float(at["channels"]))]

    predictions = ("one site", "s.e. off", "C x sites units", "s.e. off")
    header = [["L/C", "C", "L"], ["B / mean field - 1", *predictions], "times C"]
    title = "Correction, {taps} taps on {sites} sites: equal at equal L/C, or, were it O(1/C), equal in the last column"
    lines = rows(dataset, ["depth_over_channels", "channels"], cells)
    return f"{table(header, lines, title.format_map(dataset.attrs))}\n{CORRECTION_NOTE}"


def _slope_table(dataset: xr.Dataset) -> str:
    depths, reference = dataset["depth"].values, dataset.isel(stencil=0)

    def cells(at: xr.Dataset) -> list[str]:
        law, expected = stencil_slopes.drawn_slope(at), stencil_slopes.mean_field_slope(at)
        ratios = [float((at[name] / reference[name])[0]) for name in (SCALE, f"{SCALE}_mean_field")]
        scales = [drawn(at.sel(depth=depth), SCALE) for depth in depths]
        off = signed((law.exponent - expected) / law.stderr)
        return [*scales, fitted(law), number(expected), off, *map(number, ratios)]

    scales = [f"eta* at L = {depth}" for depth in depths]
    header = ["stencil", scales, ["slope", "mean field", "s.e. off"], ["ratio", "its mean field"]]
    slack = stencil_slopes.finite_width_slack(reference)
    title = (
        f"eta* of the label term, {dataset.attrs['slope_channels']} channels; "
        f"finite width steepens slopes by {slack:.3f} for one site"
    )
    return "\n".join([table(header, rows(dataset, ["stencil"], cells), title), SLOPE_NOTE.format(depth=depths[0])])


def _variance_table(dataset: xr.Dataset) -> str:
    return f"{added_variance_table(dataset)}\n{VARIANCE_NOTE}"


def _findings(dataset: xr.Dataset) -> list[Finding]:
    return [
        *channel_corrections.findings(dataset),
        *OF_OVERLAPS.findings(dataset),
        *stencil_slopes.findings(dataset),
    ]


text = Report(
    question="Are corrections of finite channels C of order 1/C uniformly in depth, as the papers say?",
    answer=_answer,
    heading="ConvNet, relu, circular padding, convolutional readout; label term B of the last layer\n"
    "{draws} draws a correction, {draws_slope} a slope, {draws_given} an added variance; seed {seed}",
    parts=[_correction_table, _variance_table, _slope_table],
    findings=_findings,
    heavy=[CORRECTION],
).text
