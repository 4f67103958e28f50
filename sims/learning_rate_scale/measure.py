"""Learning-rate scales of every family over one grid of depths, with the laws that they tend to."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS, require_count
from meanfield.nets import MLP, TiedLoop, Transformer
from meanfield.theory import energies_by_depth, learning_rate_exponent, scales_at
from meanfield.verification import COMMON_SWEEP, local_slopes, measured_slopes, printed_exponents
from sims.common.datasets import over
from sims.common.results import Results
from sims.learning_rate_scale.families import shown

SHOWN = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)

# Depths at which a rate is tuned, and factors by which depth then grows; the deepest net of the run ends each row.
STARTS = (3, 6, 12, 25)
FACTORS = (2, 4, 8)

# All depths up to here, which trained nets were swept over; above, these of every decade: theory is smooth there.
DENSE = max(COMMON_SWEEP)
PER_DECADE = (1, 2, 3, 5, 7)


def depth_grid(deepest: int) -> list[int]:
    """The depths of the dataset: all small ones, those that the report prints, and steps of a factor 2 at most."""
    steps = {round(step * 10**power) for power in range(1, len(str(deepest))) for step in PER_DECADE}
    ends = {start * factor for start in STARTS for factor in FACTORS}
    return sorted(depth for depth in {*range(1, DENSE + 1), *SHOWN, *steps, *ends, deepest} if depth <= deepest)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The nets, the loops and the Transformers at the greatest depth."""
    of_transfer = {
        "--from": options.start,
        "--to": options.end,
        "--rule": options.transfer_rule,
        "--stem": options.transfer_stem,
    }
    for name, value in of_transfer.items():
        if value is not None:
            raise ValueError(f"{name} is {value}, but there is no rate to carry; give one with --transfer")
    require_count("--depth", options.depth, minimum=2, maximum=MOST_LAYERS, why="a slope needs two depths")
    return shown(options.depth, options.width, options.outputs)


def measure(
    options: argparse.Namespace,
    results: Results,
    nets: dict[str, Any],
    loops: dict[str, TiedLoop],
    transformers: dict[str, Transformer],
) -> xr.Dataset:
    """Mean-field scales by depth of families, loops and Transformers; the exact scale of the whole update for "mlp"."""
    depths = depth_grid(options.depth)
    papers = list(dict.fromkeys(paper for net in (*nets.values(), *loops.values()) for paper in printed_exponents(net)))
    families = _by_depth("family", "label_learning_rate_scale", nets, depths, papers)
    streams = _by_depth("loop", "stream_learning_rate_scale", loops, depths, papers)
    rows = [{"transformer_learning_rate_scale": scales_at(net, depths)} for net in transformers.values()]
    blocks = over({"transformer": list(transformers)}, rows, "depth")
    dataset = xr.merge([families, streams, blocks, _exact_scale(nets["mlp"])], combine_attrs="drop")
    specs = {"architectures": nets, "loops": loops, "transformers": transformers}
    described = {name: json.dumps([net.describe() for net in those.values()]) for name, those in specs.items()}
    return dataset.assign_attrs(described)


def _by_depth(dim: str, quantity: str, nets: Mapping[str, Any], depths: list[int], papers: list[str]) -> xr.Dataset:
    """One scale over ``dim`` and depth, the exponent that it tends to, and what papers print for it."""
    entry, axis = mf.QUANTITIES[quantity], {dim: list(nets)}
    names = {
        quantity: {"long_name": entry.long_name, "source": entry.source},
        f"{dim}_exponent": {"long_name": "exponent of the scale at large depth; NaN where it is no power"},
        f"{dim}_printed": {"long_name": "exponent that a paper prints; NaN: none"},
    }
    scales = [
        {quantity: scales_at(net, depths), f"{dim}_exponent": learning_rate_exponent(net)} for net in nets.values()
    ]
    printed = [
        {f"{dim}_printed": printed_exponents(net).get(paper, np.nan)} for net in nets.values() for paper in papers
    ]
    by_depth, by_paper = over(axis, scales, "depth"), over(axis | {"paper": papers}, printed)
    dataset = xr.merge([by_depth.assign_coords(depth=depths), by_paper])
    for name, attrs in names.items():
        dataset[name].attrs = attrs
    return dataset


def _exact_scale(mlp: MLP) -> xr.Dataset:
    """ln eta* of the whole update, exact, with its local slope, at every depth that the report shows or fits."""
    wanted = {*SHOWN, *(depth for slope in measured_slopes() for depth in slope.depths), mlp.depth}
    depths_given = sorted(depth for depth in wanted if depth <= mlp.depth)
    around = {depth: _neighbours(depth, mlp.depth) for depth in depths_given}
    near = sorted({n for depths in around.values() for n in depths})
    energies = energies_by_depth(mlp, near)["log_energy"].sel(energy="update_energy", layers="mean").values
    logs = dict(zip(near, -0.5 * energies, strict=True))
    rows = [
        {"log_learning_rate_scale": logs[depth], "exact_slope": _slope_at(depth, {n: logs[n] for n in around[depth]})}
        for depth in depths_given
    ]
    return over({"exact_depth": depths_given}, rows)


def _neighbours(depth: int, deepest: int) -> list[int]:
    """Five successive depths, or as many as there are, with this one in the middle if it can be."""
    first = max(1, min(depth - 2, deepest - 4))
    return [n for n in range(first, first + 5) if n <= deepest]


def _slope_at(depth: int, logs: Mapping[int, float]) -> float:
    scale = np.exp(np.array(list(logs.values())) - logs[depth])
    return float(local_slopes(np.array(list(logs)), scale)[list(logs).index(depth)])
