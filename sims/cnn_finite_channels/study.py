"""What finite channels do to convolutional nets, and what stencils, grids and dimensions do to their depth law.

The label term over its mean field, less 1, for channels C and depths L at several L/C: is it O(1/C) at every depth, as
the papers say, or a function of L/C? The mean of an overlap given the layers below, and the variance that a layer of C
channels adds to it (Zhang et al. 2026, lemmas 1 and 5). And slope and prefactor of the label term's eta*(L) for 1D and
2D grids and stencils of many shapes, odd and even, beside the mean field and the papers' one exponent and one
prefactor.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_DRAWS, MOST_LAYERS, require_count, require_draws
from meanfield.execution import Run
from meanfield.nets import ConvNet
from meanfield.simulation import Energies, PairOverlaps
from meanfield.theory import finite_width_excess
from sims.cnn_finite_channels.claims import CLAIMS, CORRECTION, NAME, SCALE
from sims.cnn_finite_channels.report import REPORT
from sims.common.command import Option, Preset, counted, ladder_of
from sims.common.datasets import ENDS, Variable, labels_in_mean_field, over, seeded_run, suffixed, taken
from sims.common.pairs import OF_FIXED_NETS, added_variance, chosen_pairs, open_seed
from sims.common.results import Results
from sims.common.study import Study

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
