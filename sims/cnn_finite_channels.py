"""What finite channels do to convolutional nets, and what stencils, grids and dimensions do to their depth law.

The label term over its mean field, less 1, for channels C and depths L at several L/C: is it O(1/C) at every depth,
as the papers say, or a function of L/C? The mean of an overlap given the layers below, and the variance that a layer
of C channels adds to it (Zhang et al. 2026, lemmas 1 and 5). And slope and prefactor of the label term's eta*(L) for
1D and 2D grids and stencils of many shapes, odd and even, beside the mean field and the papers' one exponent and one
prefactor.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import meanfield as mf
from meanfield.common import MOST_DRAWS, MOST_LAYERS, Array, PowerLaw, require_count, require_draws
from meanfield.execution import Run
from meanfield.nets import ConvNet
from meanfield.simulation import Energies, PairOverlaps
from meanfield.theory import finite_width_excess
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
    effective_draws,
    largest_share,
    of_rival,
)
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Variable, labels_in_mean_field, over, seeded_run, suffixed, taken
from sims.common.pairs import (
    OF_FIXED_NETS,
    added_variance,
    added_variance_judge,
    added_variance_table,
    chosen_pairs,
    conditional_mean_judge,
    effective_overlap_draws,
    open_seed,
)
from sims.common.report import Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import Column, Grid, Table, against, drawn, fitted, label, number, signed

NAME = "cnn_finite_channels"
LISTED = "what channels, stencils and grids change in convolutional nets"
CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"
# Corrections per C that a function of L/C leaves open: of one layer (3/C for ReLU, see `finite_width`), as sites differ
# in the first layers; and of the Gram matrix of S sites seen through k taps, (S + 1) / (C k).
ONE_LAYER = 3.0
# Slopes that the paper fitted to trained nets by stencil size (appendix E.3, figure 7).
PRINTED = {3: -1.74, 4: -1.44, 5: -1.46}

# What is asked for, and measured.

# Depth over channels. The least of them is one layer at so many channels, of which all counts must be multiples.
SHARES = (1 / 16, 1 / 8, 1 / 4)
STEP = 16
GRID, KERNEL = (4,), (3,)
# Grids and stencils of which slopes are taken; the first is the one that prefactors are compared with.
STENCILS = (
    ((16,), (3,)),
    ((16,), (2,)),
    ((16,), (4,)),
    ((16,), (5,)),
    ((8,), (3,)),
    ((4,), (3,)),
    ((4, 4), (3, 3)),
    ((4, 4), (2, 2)),
    ((4, 4), (1, 3)),
    ((2, 2), (2, 2)),
)
# Draws of an added variance for one of a correction: they cost less.
VARIANCE_DRAWS = 2
# Layers below the one whose added variance is measured, their channels, and its own.
FIXED, FIXED_CHANNELS, CHANNELS_ABOVE = 2, 64, (32, 64, 128, 256)

PURPOSE = "what changes with it"


def multiples(written: str, given: list[int]) -> list[int]:
    """Channels of which a share of the depth can be a number of layers."""
    why = "channels of the correction, which nets of up to as many layers show"
    channels: list[int] = ladder_of(2, PURPOSE, maximum=MOST_LAYERS, why=why)(written, given)
    if odd := [count for count in channels if count % STEP]:
        raise ValueError(f"{written} has {odd}; depths are 1/{STEP} of them and more: give multiples of {STEP}")
    return channels


OPTIONS = (
    Option("channels", "channels of the correction, multiples of 16", int, metavar="C", many="+", check=multiples),
    Option(
        "slope_channels",
        "channels of the nets whose slopes are taken",
        int,
        metavar="C",
        check=counted("channels of the nets whose slopes are taken"),
    ),
    Option(
        "depths",
        "depths of the slopes, two or more",
        int,
        metavar="L",
        many="+",
        check=ladder_of(2, PURPOSE, maximum=MOST_LAYERS, why="depths of the slopes"),
    ),
    Option(
        "slope_draws",
        "independent networks drawn for each depth and stencil of the slopes",
        int,
        check=require_draws,
    ),
)
PRESETS = {
    "smoke": Preset("8 s", channels=[32, 64], draws=256, depths=[2, 4, 8], slope_channels=128, slope_draws=24),
    "default": Preset(
        "35 s", channels=[48, 96, 192], draws=3072, depths=[4, 8, 16], slope_channels=384, slope_draws=64
    ),
    "paper": Preset(
        "30 min", channels=[64, 128, 256], draws=16_384, depths=[4, 8, 16, 32], slope_channels=1024, slope_draws=256
    ),
}
VARIABLES = (
    *OF_FIXED_NETS,
    Variable(f"{CORRECTION}_one_site", "finite channel correction of one site with as many units, exactly"),
    Variable(
        f"{CORRECTION}_effective_width", "finite channel correction of one site with channels x sites units, exactly"
    ),
    Variable("correction_depth", "layers of the nets whose correction is measured"),
    Variable("taps", "taps of the stencil"),
    Variable("sites", "sites of the grid"),
    Variable("log_one_site_shift", "what finite width does to the logarithm of one site's label learning rate scale"),
    Variable("depth_over_channels", "depth over channels L/C"),
    Variable("stencil", "stencil and grid"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """Channels and depths in order."""
    why = f"the added variance takes {VARIANCE_DRAWS} times as many"
    require_count("--draws", options.draws, maximum=MOST_DRAWS // VARIANCE_DRAWS, why=why)
    slopes = {"slope_channels": options.slope_channels, "slope_draws": options.slope_draws}
    return {"channels": options.channels, "depths": options.depths, "slopes": slopes}


def measure(
    options: argparse.Namespace, results: Results, channels: list[int], depths: list[int], slopes: dict[str, int]
) -> xr.Dataset:
    """All three parts, drawn on one set of workers, in one dataset."""
    small = [_net(round(count * share), count, GRID, KERNEL) for count, share in product(channels, SHARES)]
    wide = [_net(depth, slopes["slope_channels"], *stencil) for stencil, depth in product(STENCILS, depths)]
    below = _net(FIXED, FIXED_CHANNELS, GRID, KERNEL)
    given_draws = VARIANCE_DRAWS * options.draws
    runs = [seeded_run(options, net, Energies(), str(net.describe())) for net in small]
    runs += [seeded_run(options, net, Energies(), str(net.describe()), slopes["slope_draws"]) for net in wide]
    measured = results.draw([*runs, *_runs_above(below, given_draws, options.seed)])
    for_corrections, for_slopes = measured[: len(small)], measured[len(small) : len(runs)]
    parts = [
        _corrections(for_corrections, small, {"channels": channels, "depth_over_channels": list(SHARES)}),
        _slopes(for_slopes, wide, depths),
        added_variance(measured[len(runs) :], CHANNELS_ABOVE, FIXED),
        _given(measured[-1]),
    ]
    draws = {"draws_slope": slopes["slope_draws"], "draws_given": given_draws}
    grid = {"fixed_layers": FIXED, "sites": below.sites, "taps": below.taps}
    return xr.merge(parts, combine_attrs="drop").assign_attrs(draws, slope_channels=slopes["slope_channels"], **grid)


def _net(depth: int, channels: int, grid: tuple[int, ...], kernel: tuple[int, ...]) -> ConvNet:
    return ConvNet(depth=depth, channels=channels, grid=grid, kernel=kernel, readout="convolution")


def _corrections(measured: Sequence[xr.Dataset], nets: Sequence[ConvNet], axes: dict[str, list[Any]]) -> xr.Dataset:
    """The label term of the last layer over its mean field, less 1, by channels and depth over channels.

    Beside it as CORRECTION_one_site the exact correction of one site with as many units, at the same depth, and as
    CORRECTION_effective_width that of channels x sites units, the "effective width" of Zhang et al. 2026.
    """
    return over(axes, [_correction(terms, net) for terms, net in zip(measured, nets, strict=True)])


def _correction(measured: xr.Dataset, net: ConvNet) -> dict[str, float]:
    top, width = taken(measured.isel(layer=-1), "label_term"), net.channels_by_layer[-1]
    label, stderr, share = (float(top[f"label_term{end}"]) for end in ENDS)
    limit = float(labels_in_mean_field(net)["label_term"][-1])
    return {
        "label_term": label,
        "label_term_stderr": stderr,
        "label_term_mean_field": limit,
        CORRECTION: label / limit - 1,
        f"{CORRECTION}_stderr": stderr / limit,
        f"{CORRECTION}_largest_share": share,
        f"{CORRECTION}_one_site": one_site(net.depth, width),
        f"{CORRECTION}_effective_width": one_site(net.depth, width * net.sites),
        "correction_depth": float(net.depth),
    }


def one_site(depth: int, width: int) -> float:
    """Exact correction of the last layer of a fully-connected net."""
    excess = finite_width_excess(mf.MLP(depth=depth, width=width), [width], [1 / width], [depth])
    return float(excess["excess_at_layer"].item())


def _slopes(measured: Sequence[xr.Dataset], nets: Sequence[ConvNet], depths: list[int]) -> xr.Dataset:
    """eta* of the label term by stencil and depth, drawn and by mean field.

    ``log_one_site_shift`` (depth) is what finite width does to the logarithm of the scale of one site, exactly.
    """
    limits = [{f"{SCALE}_mean_field": float(labels_in_mean_field(net)[SCALE])} for net in nets]
    drawn = [taken(scales, SCALE, ends=ENDS[:2]) for scales in measured]
    stencils = nets[:: len(depths)]
    by_stencil = {"stencil": [_stencil_name(net) for net in stencils]}
    shifts = [{"log_one_site_shift": _shift(net.depth, net.channels_by_layer[-1])} for net in nets[: len(depths)]]
    return xr.merge(
        [
            over(by_stencil | {"depth": depths}, [scale | limit for scale, limit in zip(drawn, limits, strict=True)]),
            over(by_stencil, [{"taps": net.taps, "sites": net.sites} for net in stencils]),
            over({"depth": depths}, shifts),
        ]
    )


def _shift(depth: int, width: int) -> float:
    net = mf.MLP(depth=depth, width=width)
    exact, limit = (float(dataset[SCALE]) for dataset in (mf.predict(net, level="exact"), labels_in_mean_field(net)))
    return float(np.log(exact / limit))


def _stencil_name(net: ConvNet) -> str:
    """Stencil and grid as words, "3x3 on 4x4"."""
    return " on ".join("x".join(map(str, lengths)) for lengths in (net.kernel, net.grid))


def _runs_above(below: ConvNet, draws: int, seed: int) -> list[Run]:
    """Overlaps of one pair of each kind in a layer of so many channels above a net that is the same in all draws."""
    widths = (below.channels_by_layer[-1],) * FIXED
    varied = [replace(below, depth=FIXED + 1, channels=(*widths, above)) for above in CHANNELS_ABOVE]
    pairs = chosen_pairs(varied[0], None)
    open_to_all = open_seed(varied[-1], pairs, FIXED, seed, "dense")
    overlaps = PairOverlaps(pairs=pairs, weights="dense", fixed_layers=FIXED)
    return [Run(net, overlaps, draws, open_to_all) for net in varied]


def _given(measured: xr.Dataset) -> xr.Dataset:
    """Mean overlaps given the fixed layers, NAME_given, as the judges of overlaps read them."""
    means = suffixed(measured, "given", ["overlap", "overlap_stderr", "gated_overlap"])
    return xr.merge([means, measured[["squared_overlap", "squared_overlap_stderr"]]])


# What is claimed, and what decides it.

# Of a run, over which the false-alarm budget is split.
FINDINGS = 8
OF_CORRECTIONS = Judges(
    "Zhang et al. 2026",
    findings=FINDINGS,
    effective=lambda dataset: effective_draws(dataset, "label_term"),
    largest_share=lambda dataset: largest_share(dataset, CORRECTION),
)
OF_OVERLAPS = Judges("Zhang et al. 2026", findings=FINDINGS, effective=effective_overlap_draws)
OF_STENCILS = Judges("Zhang et al. 2026", draws="draws_slope", findings=FINDINGS)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One for every claim on corrections, on what a layer does to an overlap, and on stencils."""
    return [finding for judges in (OF_CORRECTIONS, OF_OVERLAPS, OF_STENCILS) for finding in judges.findings(dataset)]


@OF_CORRECTIONS.decide(
    claim="Corrections are O(1/C) uniformly in depth: at fixed C they do not grow with L",
    rival="they grow as L",
    source="section 3.3, eq. 27",
    measured="means over channels, least against greatest L/C",
    brief="At fixed C corrections do not grow with L: they are O(1/C) uniformly in depth",
)
def judge_uniform_in_depth(dataset: xr.Dataset) -> Contest:
    return _ends(dataset, "depth_over_channels", "channels").contest(0.0, 1.0, "L")


@OF_CORRECTIONS.decide(
    claim="Corrections are a function of L/C: at fixed L/C they do not change with C",
    rival="corrections fall as 1/C, uniformly in depth (Zhang et al. 2026, section 3.3; Zhang et al. 2025, theorem 2)",
    measured="means over L/C in proportion to it, fewest against most channels",
)
def judge_function_of_ratio(dataset: xr.Dataset) -> Contest:
    return _ends(dataset, "channels", "depth_over_channels").contest(0.0, -1.0, "C")


@OF_CORRECTIONS.decide(
    claim="Sites do not count as channels do: the correction is that of one site with C units, but for terms of 1/C",
    rival="that of C x sites units, the paper's effective width",
    measured="means over channels at each L/C",
    brief="Sites do not count as channels: corrections are those of one site with C units",
)
def judge_one_site_law(dataset: xr.Dataset) -> Contest:
    means = dataset.mean("channels")
    drawn, one_site, effective = (means[f"{CORRECTION}{end}"].values for end in ("", "_one_site", "_effective_width"))
    stderr = ((dataset[f"{CORRECTION}_stderr"] ** 2).sum("channels") ** 0.5).values / dataset.sizes["channels"]
    open_terms = ONE_LAYER + gram_term(float(dataset.attrs["sites"]), float(dataset.attrs["taps"]))
    slack = open_terms * float((1 / dataset["channels"]).mean()) * (1 + one_site)
    return contest(drawn, stderr, claimed=one_site, rival=effective, allowance=slack)


def gram_term(sites: float, taps: float) -> float:
    """C times the relative excess of the mean squared Gram matrix of white inputs (see `finite_width`)."""
    return (sites + 1) / taps


class _Ends:
    """Mean corrections at two ends of an axis, a ``factor`` apart."""

    def __init__(self, low: xr.Dataset, high: xr.Dataset, factor: float) -> None:
        self.factor = factor
        self.drawn, self.stderr, self.one_site = (
            np.array([float(end[CORRECTION + name]) for end in (low, high)]) for name in ("", "_stderr", "_one_site")
        )

    def contest(self, claimed: float, rival: float, letter: str) -> Contest:
        """Two power laws between the ends; what one site's exact law lacks of a function of L/C is granted to both."""
        slack = min(self._lack(claimed), self._lack(rival))
        sides = (self._deviation(exponent, slack) for exponent in (claimed, rival))
        apart, back = (self.drawn[0] * (self.factor**steeper - 1) for steeper in (rival - claimed, claimed - rival))
        return Contest(*sides, shown=self._shown(letter), apart=apart, back=back)

    def _deviation(self, exponent: float, slack: float) -> Deviation:
        """High over factor^exponent, less low: linear in the draws, so that no correction need be positive."""
        scale = np.array([-1.0, self.factor**-exponent])
        return Deviation(scale @ self.drawn, np.hypot(*(scale * self.stderr)), slack)

    def _lack(self, exponent: float) -> float:
        """How far the exact correction of one site is from the power law between the same ends."""
        return float(abs(self.factor**-exponent * self.one_site[1] - self.one_site[0]))

    def _shown(self, letter: str) -> str:
        """Drawn ends, and the exponent between them where it exists."""
        low, high = self.drawn
        both = low > 0 and high > 0
        exponent = f", as {letter}^{np.log(high / low) / np.log(self.factor):+.2f}" if both else ""
        (a, b), (da, db) = self.drawn, self.stderr
        return f"from {a:.3g} +- {da:.2g} to {b:.3g} +- {db:.2g}{exponent}"


def _ends(dataset: xr.Dataset, along: str, over: str) -> _Ends:
    """Ends of an axis of independent points averaged over another, over L/C in proportion to it."""
    weight: Any = 1 / dataset[over] if over == "depth_over_channels" else xr.ones_like(dataset[over])
    corrections = dataset[[name for name in dataset.data_vars if str(name).startswith(CORRECTION)]] * weight
    stderr = np.sqrt((corrections[f"{CORRECTION}_stderr"] ** 2).sum(over)) / dataset.sizes[over]
    means = corrections.mean(over).assign({f"{CORRECTION}_stderr": stderr})
    axis = dataset[along]
    return _Ends(means.isel({along: 0}), means.isel({along: -1}), float(axis[-1] / axis[0]))


judge_conditional_mean, judge_added_variance = conditional_mean_judge(OF_OVERLAPS), added_variance_judge(OF_OVERLAPS)


def drawn_slope(at: xr.Dataset) -> PowerLaw:
    """Slope over the depths of one stencil's drawn scales."""
    return Series.of(at, SCALE).law("depth")


def mean_field_slope(at: xr.Dataset) -> float:
    """The same slope of the mean field, its points weighted as the drawn ones."""
    return Series.of(at, SCALE).slope_of("depth", np.log(at[f"{SCALE}_mean_field"].values))


def finite_width_slack(at: xr.Dataset) -> float:
    """What finite width does to the slope of one site with as many units, exactly."""
    return abs(Series.of(at, SCALE).slope_of("depth", at["log_one_site_shift"].values))


def prefactor(at: xr.Dataset) -> tuple[float, float]:
    """Mean over depths of log(drawn / mean field), weighted by its errors, and its standard error."""
    relative = Series.of(at, SCALE).relative_error.values
    weight = relative**-2 / np.sum(relative**-2)
    return float(weight @ np.log((at[SCALE] / at[f"{SCALE}_mean_field"]).values)), float(np.sum(relative**-2) ** -0.5)


@OF_STENCILS.decide(
    claim="eta* of the label term falls as the mean field says, on every grid and stencil",
    rival="eta* of the label term falls as L^(-3/2) on every grid and stencil",
    measured="slopes in L of every stencil, and their mean",
)
def judge_slopes(dataset: xr.Dataset) -> Contest:
    slope, stderr, expected, slack = (np.append(column, column.mean()) for column in _slope_columns(dataset))
    stderr[-1] /= np.sqrt(stderr.size - 1)
    words = f"mean slope {slope[-1]:.3f}, mean field {expected[-1]:.3f}"
    return contest(slope, stderr, claimed=expected, rival=PAPERS_EXPONENT, allowance=slack, shown=words)


@OF_STENCILS.decide(
    brief="The exponent of eta* does not depend on stencil, grid or dimension",
    claim="The exponent does not depend on stencil, grid or dimension",
    rival="slopes for 3, 4, 5 taps as far apart as those that the paper fitted, -1.74, -1.44, -1.46 (appendix E.3)",
    source="proposition 3.3",
    measured="slopes less their mean, granted as much as the mean field's differ",
)
def judge_one_exponent(dataset: xr.Dataset) -> Contest:
    slope, stderr, expected, _ = _slope_columns(dataset)
    drawn = {count: _mean_slope(dataset["taps"].values == count, slope, stderr) for count in PRINTED}
    (first, error), *by_stencil = drawn.values()
    printed = np.array(list(PRINTED.values()))
    apart, errors = (np.array(column) for column in zip(*by_stencil, strict=True))
    claim = Deviation(slope - slope.mean(), stderr, np.abs(expected - expected.mean()))
    rival = Deviation(apart - first - (printed[1:] - printed[0]), np.hypot(errors, error))
    as_printed = np.array([PRINTED.get(int(count), np.nan) for count in dataset["taps"].values])
    way = np.nan_to_num(as_printed - np.nanmean(as_printed))
    return Contest(claim, rival, shown=f"slopes {slope.min():.3f} .. {slope.max():.3f}", apart=way)


@OF_STENCILS.decide(
    brief="Prefactors of eta* are the mean field's: as 1/taps, and larger on more sites",
    claim="Prefactors are the mean field's: as 1/taps, and more sites more",
    rival="eta* of the label term has one prefactor, whatever the kernel and the grid",
    measured="log ratios to the first stencil's, granted half the Gram terms of both",
)
def judge_prefactors(dataset: xr.Dataset) -> Contest:
    ratio, stderr, expected, slack = _prefactor_ratios(dataset)
    return contest(ratio, stderr, claimed=expected, rival=0.0, allowance=slack)


def _prefactor_ratios(dataset: xr.Dataset) -> tuple[Array, Array, Array, Array]:
    """Log ratios to the first stencil's: drawn, their errors, the mean field's, and half the Gram terms."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    excess, error = np.array([prefactor(at) for at in stencils]).T
    expected = np.array([float(np.log(at[f"{SCALE}_mean_field"]).mean()) for at in stencils])
    gram = np.array([gram_term(float(at["sites"]), float(at["taps"])) for at in stencils])
    slack = 0.5 * (gram[1:] + gram[0]) / float(dataset.attrs["slope_channels"])
    apart = expected[1:] - expected[0]
    return excess[1:] - excess[0] + apart, np.hypot(error[1:], error[0]), apart, slack


def _slope_columns(dataset: xr.Dataset) -> tuple[Array, Array, Array, Array]:
    """Of every stencil: drawn slope, its error, the mean field's, and what finite width may do to it."""
    stencils = [dataset.isel(stencil=place) for place in range(dataset.sizes["stencil"])]
    rows = [(*tuple(drawn_slope(at))[:2], mean_field_slope(at), finite_width_slack(at)) for at in stencils]
    slope, stderr, expected, slack = np.array(rows).T
    return slope, stderr, expected, slack


def _mean_slope(in_fit: NDArray[np.bool_], slope: Array, stderr: Array) -> tuple[float, float]:
    """Of some stencils: the mean of their slopes, and its error."""
    return float(slope[in_fit].mean()), float(np.sqrt(np.square(stderr[in_fit]).sum()) / in_fit.sum())


CLAIMS = (
    Claim(
        id="A23b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2025, theorem 1, appendix B (Zhang et al. 2026, appendix E.3, let kernels move kappa)",
        statement="kappa in eta* = kappa L^(-3/2) depends on neither kernel size nor resolution (judged: the label "
        "term)",
        brief="kappa in eta* = kappa L^(-3/2) depends on neither kernel size nor resolution",
        printed='"is independent of channel widths, kernel sizes, and spatial resolutions" (Zhang et al. 2025, '
        "appendix B)",
        hypotheses="ReLU, circular padding, He's fan-in rule, sides of the grid that dominate the kernel's (section "
        "3.2): 16 sites with 2 to 5 taps have them; five smaller grids stand beside. A convolutional readout",
        checks=checks(NAME, of_rival(judge_prefactors)),
        replaced_by="kappa ~ 1/taps, and larger on more sites",
        premise="fan-in cancels the taps in overlaps of values; the change by a layer's weights is a sum over taps",
    ),
)


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
    grown = " and ".join(f"{value:.2g} at L/C = {share:g}" for share, value in ends)
    channels = f"the mean over nets of {' and '.join(map(str, dataset['channels'].values))} channels"
    return answer([judge_uniform_in_depth(dataset)], f"{channels} of the drawn correction is {grown}")


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


BRIEF = Table(
    "brief table",
    "Correction B / mean field - 1 of layer L: drawn on {sites} sites with {taps} taps, and exactly of MLPs\n"
    "of C units (a function of L/C) and of C x sites units (the papers' effective width)",
    ["depth_over_channels", "channels"],
    ["L/C", "channels C"],
    [
        Column("L", lambda at: label(float(at["correction_depth"]))),
        Column(["drawn", "C units", "off (s.e.)", "C x sites units", "off (s.e.)"], _predictions),
        Column("C x drawn", lambda at: drawn(at, CORRECTION, float(at["channels"]))),
    ],
)


def _variance_table(dataset: xr.Dataset) -> list[str | Grid]:
    return [added_variance_table(dataset), VARIANCE_NOTE]


def _slope_table(dataset: xr.Dataset) -> list[str | Grid]:
    depths, first = dataset["depth"].values, dataset.isel(stencil=0)
    columns = [
        [Column(f"eta* at L = {depth}", partial(_scale, depth)) for depth in depths],
        [
            Column("slope", lambda at: fitted(drawn_slope(at))),
            Column("mean field", lambda at: number(mean_field_slope(at))),
            Column("s.e. off", _distance),
        ],
        [
            Column("ratio", lambda at: number(float((at[SCALE] / first[SCALE])[0]))),
            Column("its mean field", lambda at: number(float((at[LIMIT] / first[LIMIT])[0]))),
        ],
    ]
    title = (
        f"eta* of the label term, {dataset.attrs['slope_channels']} channels; "
        f"finite width steepens slopes by {finite_width_slack(first):.3f} for one site"
    )
    table = Table("slope table", title, ["stencil"], "stencil", columns)
    return [table(dataset), SLOPE_NOTE.format(depth=depths[0])]


def _scale(depth: int, at: xr.Dataset) -> str:
    return drawn(at.sel(depth=depth), SCALE)


def _distance(at: xr.Dataset) -> str:
    """Of the drawn slope from the mean field's, in standard errors."""
    law = drawn_slope(at)
    return signed((law.exponent - mean_field_slope(at)) / law.stderr)


REPORT = Report(
    question="Are corrections of finite channels C of order 1/C uniformly in depth, as the papers say?",
    answer=_answer,
    heading="ConvNet, relu, circular padding, convolutional readout; label term B of the last layer\n"
    "{draws} draws of a correction, {draws_slope} of a slope ({slope_channels} channels), {draws_given} of an added "
    "variance; seed {seed}",
    parts=[CORRECTIONS, CORRECTION_NOTE, _variance_table, _slope_table],
    brief=BRIEF,
    steps=[("--preset paper", "to 256 channels and 16,384 draws, in 30 minutes")],
    findings=findings,
    heavy=[CORRECTION],
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="55 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
)


if __name__ == "__main__":
    run_as_command(NAME)
