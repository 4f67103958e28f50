"""The three parts of a run on finite channels: each from what was drawn, with theory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.execution import Run
from meanfield.nets import ConvNet
from meanfield.quantities import QUANTITIES
from meanfield.simulation import PairOverlaps
from meanfield.theory import finite_width_excess
from sims.common.pairs import chosen_pairs, open_seed

CORRECTION = "finite_channel_correction"
SCALE = "label_learning_rate_scale"


def corrections(measured: Sequence[xr.Dataset], nets: Sequence[ConvNet], shares: Sequence[float]) -> xr.Dataset:
    """The label term of the last layer over its mean field, less 1, by channels and depth over channels.

    Beside it as CORRECTION_one_site the exact correction of one site with as many units, at the same depth, and as
    CORRECTION_effective_width that of channels x sites units, P0's "effective width".
    """
    top = [one.isel(layer=-1) for one in measured]
    limit = np.array([float(mf.predict(net, level="mean_field")["label_term"][-1]) for net in nets])
    names = ("label_term", "label_term_stderr", "label_term_largest_share")
    label, stderr, share = (np.array([float(one[name]) for one in top]) for name in names)
    widths = [net.channels_by_layer[-1] for net in nets]
    columns = {
        "label_term": label,
        "label_term_stderr": stderr,
        "label_term_mean_field": limit,
        CORRECTION: label / limit - 1,
        f"{CORRECTION}_stderr": stderr / limit,
        f"{CORRECTION}_largest_share": share,
        f"{CORRECTION}_one_site": [one_site(net.depth, width) for net, width in zip(nets, widths, strict=True)],
        f"{CORRECTION}_effective_width": [
            one_site(net.depth, width * net.sites) for net, width in zip(nets, widths, strict=True)
        ],
        "correction_depth": [float(net.depth) for net in nets],
    }
    channels = sorted(set(widths))
    dims, shape = ("channels", "depth_over_channels"), (len(channels), len(shares))
    variables = {name: (dims, np.reshape(values, shape)) for name, values in columns.items()}
    found = xr.Dataset(variables, {"channels": channels, "depth_over_channels": list(shares)})
    quantity = QUANTITIES[CORRECTION]
    found[CORRECTION].attrs = {"long_name": quantity.long_name, "symbol": quantity.symbol, "source": quantity.source}
    return found


def one_site(depth: int, width: int) -> float:
    """Exact correction of the last layer of a fully-connected net."""
    found = finite_width_excess(mf.MLP(depth=depth, width=width), [width], [1 / width], [depth])
    return float(found["excess_at_layer"].item())


def slopes(measured: Sequence[xr.Dataset], nets: Sequence[ConvNet], depths: int) -> xr.Dataset:
    """eta* of the label term by stencil and depth, drawn and by mean field.

    ``log_one_site_shift`` (depth) is what finite width does to the logarithm of the scale of one site, exactly.
    """
    rows = [nets[start : start + depths] for start in range(0, len(nets), depths)]
    shape = (len(rows), depths)
    columns = {name: [float(one[name]) for one in measured] for name in (SCALE, f"{SCALE}_stderr")}
    columns[f"{SCALE}_mean_field"] = [float(mf.predict(net, level="mean_field")[SCALE]) for net in nets]
    variables: dict[str, Any] = {name: (("stencil", "depth"), np.reshape(v, shape)) for name, v in columns.items()}
    variables["taps"] = ("stencil", [row[0].taps for row in rows])
    variables["sites"] = ("stencil", [row[0].sites for row in rows])
    variables["log_one_site_shift"] = ("depth", [_shift(net.depth, net.channels_by_layer[-1]) for net in rows[0]])
    coords = {"stencil": [_stencil_name(row[0]) for row in rows], "depth": [net.depth for net in rows[0]]}
    return xr.Dataset(variables, coords)


def _shift(depth: int, width: int) -> float:
    net = mf.MLP(depth=depth, width=width)
    exact, limit = (float(mf.predict(net, level=level)[SCALE]) for level in ("exact", "mean_field"))
    return float(np.log(exact / limit))


def _stencil_name(net: ConvNet) -> str:
    """Stencil and grid as words, "3x3 on 4x4"."""
    return " on ".join("x".join(map(str, lengths)) for lengths in (net.kernel, net.grid))


def added_variance_runs(below: ConvNet, channels: Sequence[int], draws: int, seed: int) -> list[Run]:
    """Overlaps of one pair of each kind in a layer of so many channels above a net that is the same in all draws."""
    fixed, widths = below.depth, (below.channels_by_layer[-1],) * below.depth
    varied = [replace(below, depth=fixed + 1, channels=(*widths, above)) for above in channels]
    pairs = chosen_pairs(varied[0], None)
    open_to_all = open_seed(varied[-1], pairs, fixed, seed, "dense")
    measure = PairOverlaps(pairs=pairs, weights="dense", fixed_layers=fixed)
    return [Run(net, measure, draws, open_to_all) for net in varied]


def given(measured: xr.Dataset) -> xr.Dataset:
    """Mean overlaps given the fixed layers, NAME_given, as `overlap_conservation` reads them."""
    names = ["overlap", "overlap_stderr", "gated_overlap"]
    squares = measured[["squared_overlap", "squared_overlap_stderr"]]
    return xr.merge([measured[names].rename({name: f"{name}_given" for name in names}), squares])


def added_variance(measured: Sequence[xr.Dataset], channels: Sequence[int]) -> xr.Dataset:
    """Var(T | layers below) of the layer above the fixed ones, by pair and channels."""
    names = ["overlap_variance", "overlap_variance_stderr"]
    rows = xr.concat([one[names].isel(layer=-1, drop=True) for one in measured], dim="width_above", join="outer")
    return rows.rename({name: f"{name}_by_width" for name in names}).assign_coords(width_above=list(channels))
