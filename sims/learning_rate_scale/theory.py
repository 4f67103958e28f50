"""The dataset of learning-rate scales: every family over one grid of depths, with the laws that they tend to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.execution import provenance
from meanfield.nets import MLP
from meanfield.theory import energies_by_depth, learning_rate_exponent, scales_at
from meanfield.verification import COMMON_SWEEP, PAPERS, local_slopes, measured_slopes, printed_exponents

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


def scales(nets: Mapping[str, Any], loops: Mapping[str, mf.TiedLoop]) -> xr.Dataset:
    """Mean-field scales by family and depth, and those of loops; the exact scale of the whole update for "mlp"."""
    deepest = nets["mlp"].depth
    depths = depth_grid(deepest)
    families = _by_depth("family", "label_learning_rate_scale", nets, depths)
    stream = _by_depth("loop", "stream_learning_rate_scale", loops, depths)
    found = xr.merge([families, stream, _exact_scale(nets["mlp"])])
    found.attrs = {
        "architectures": json.dumps([net.describe() for net in nets.values()]),
        "loops": json.dumps([loop.describe() for loop in loops.values()]),
        "provenance": provenance(),
    }
    return found


def _by_depth(dim: str, quantity: str, nets: Mapping[str, Any], depths: list[int]) -> xr.Dataset:
    """One scale over ``dim`` and depth, the exponent that it tends to, and what papers print for it."""
    entry = mf.QUANTITIES[quantity]
    printed = [[printed_exponents(net).get(paper, np.nan) for paper in PAPERS] for net in nets.values()]
    return xr.Dataset(
        {
            quantity: (
                (dim, "depth"),
                np.stack([scales_at(net, depths) for net in nets.values()]),
                {"long_name": entry.long_name, "source": entry.source},
            ),
            f"{dim}_exponent": (
                dim,
                [learning_rate_exponent(net) for net in nets.values()],
                {"long_name": "exponent of the scale at large depth; NaN where it is no power"},
            ),
            f"{dim}_printed": ((dim, "paper"), printed, {"long_name": "exponent that a paper prints; NaN: none"}),
        },
        {dim: list(nets), "depth": depths, "paper": list(PAPERS)},
    )


def _exact_scale(mlp: MLP) -> xr.Dataset:
    """ln eta* of the whole update, exact, with its local slope, at every depth that the report shows or fits."""
    wanted = {*SHOWN, *(depth for found in measured_slopes() for depth in found.depths), mlp.depth}
    chosen = sorted(depth for depth in wanted if depth <= mlp.depth)
    around = {depth: _neighbours(depth, mlp.depth) for depth in chosen}
    near = sorted({n for depths in around.values() for n in depths})
    energies = energies_by_depth(mlp, near)["log_energy"].sel(energy="update_energy", layers="mean").values
    logs = dict(zip(near, -0.5 * energies, strict=True))
    slopes = [_slope_at(depth, {n: logs[n] for n in around[depth]}) for depth in chosen]
    return xr.Dataset(
        {
            "log_learning_rate_scale": (
                "exact_depth",
                [logs[depth] for depth in chosen],
                {"long_name": "log learning rate scale"},
            ),
            "exact_slope": ("exact_depth", slopes, {"long_name": "local slope of the exact scale"}),
        },
        {"exact_depth": chosen},
    )


def _neighbours(depth: int, deepest: int) -> list[int]:
    """Five successive depths, or as many as there are, with this one in the middle if it can be."""
    first = max(1, min(depth - 2, deepest - 4))
    return [n for n in range(first, first + 5) if n <= deepest]


def _slope_at(depth: int, logs: Mapping[int, float]) -> float:
    scale = np.exp(np.array(list(logs.values())) - logs[depth])
    return float(local_slopes(np.array(list(logs)), scale)[list(logs).index(depth)])
