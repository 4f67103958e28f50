"""What a run of `sims.cnn_padding` knows without drawing: profiles, eigenvalues, far depths, missing terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.nets import ConvNet, neighbours, offsets, rectangle_boundary_fraction
from meanfield.quantities import missing_terms
from meanfield.theory import EdgeLoss, edge_loss, transport_eigenvalue

# Families that the mean field follows far: activation, taps along each axis, axes.
FAMILIES = {
    "1D ReLU": ("relu", 3, 1),
    "1D linear": ("linear", 3, 1),
    "1D ReLU, 2 taps": ("relu", 2, 1),
    "2D ReLU": ("relu", 3, 2),
}
FAR_DEPTHS = ("half_depth", "lost_power_depth", "turning_depth", "decay")
# Channels at which the far mean field stands: so many that pairs of one channel hardly count.
FAR_CHANNELS = 1000
# Pairs of sites above which a walk stops early, and at which layer, to stay within seconds.
MANY_PAIRS, FEW_LAYERS, MANY_LAYERS = 200_000, 48, 20_000
CURVE_POINTS = 60
# Depths over which P0 tunes rates (its table 1 and figure 6).
PAPERS_DEPTHS = (3, 10, 30)
FUNCTIONS = 20


def profile(channels: int, depth: int, grid: tuple[int, ...], measured: list[xr.Dataset]) -> xr.Dataset:
    """The label term by site on one line, zero padding first: drawn, with errors, and in the mean field."""
    drawn = [one["label_term_by_site"].values for one in measured]
    errors = [one["label_term_by_site_stderr"].values for one in measured]
    net = _net(grid, channels=channels, depth=depth, readout="convolution")
    nets = [replace(net, padding=padding) for padding in ("zero", "circular")]
    theory = [mf.predict(one, level="mean_field", by_site=True)["label_term_by_site"].values for one in nets]
    dims = ("padding", "layer", "site")
    return xr.Dataset(
        {
            "label_term_by_site": (dims, np.array(drawn)),
            "label_term_by_site_stderr": (dims, np.array(errors)),
            "label_term_by_site_mean_field": (dims, np.array(theory)),
        },
        attrs={"profile_sites": grid[0]},
    )


def grids(nets: list[ConvNet]) -> xr.Dataset:
    """Boundary fraction, by enumeration and in closed form, and lambda of every grid that is drawn."""
    shapes = {net.grid: net.kernel for net in nets}.items()
    columns = {
        "boundary_fraction": [mf.boundary_fraction(grid, kernel) for grid, kernel in shapes],
        "boundary_fraction_closed": [rectangle_boundary_fraction(grid, kernel) for grid, kernel in shapes],
        "transport_eigenvalue": [transport_eigenvalue(grid, kernel) for grid, kernel in shapes],
    }
    return xr.Dataset({name: ("grid", column) for name, column in columns.items()})


def far(lines: list[int], squares: list[int]) -> xr.Dataset:
    """Depths at which zero padding shows, by family and grid, and the curves of the ratio zero / circular."""
    sizes = sorted({*lines, *squares})
    shape = (len(FAMILIES), len(sizes))
    columns = {name: np.full(shape, np.nan) for name in (*FAR_DEPTHS, "far_eigenvalue", "far_boundary_fraction")}
    layers, ratios = np.full((2, *shape, CURVE_POINTS), np.nan)
    for row, (activation, taps, axes) in enumerate(FAMILIES.values()):
        for column, sites in enumerate(sizes):
            if sites not in (lines, squares)[axes - 1]:
                continue
            grid, kernel = (sites,) * axes, (taps,) * axes
            limit = FEW_LAYERS if sites ** (2 * axes) > MANY_PAIRS else MANY_LAYERS
            found = edge_loss(_net(grid, kernel=kernel, activation=activation), limit)
            for name in FAR_DEPTHS:
                columns[name][row, column] = getattr(found, name)
            columns["far_eigenvalue"][row, column] = transport_eigenvalue(grid, kernel)
            columns["far_boundary_fraction"][row, column] = mf.boundary_fraction(grid, kernel)
            chosen, ratio = _curve(found)
            layers[row, column, : len(chosen)], ratios[row, column, : len(chosen)] = chosen, ratio
    variables: dict[str, Any] = {name: (("family", "sites"), column) for name, column in columns.items()}
    curve = ("family", "sites", "point")
    variables |= {"far_layer": (curve, layers), "far_ratio": (curve, ratios)}
    return xr.Dataset(variables, {"family": list(FAMILIES), "sites": sizes})


def _curve(found: EdgeLoss) -> tuple[np.ndarray, np.ndarray]:
    """Some layers, evenly spread on a logarithmic axis, and the ratio zero / circular there."""
    chosen = np.unique(np.geomspace(1, len(found.zero), CURVE_POINTS).round().astype(int))
    return chosen, found.ratio[chosen - 1]


def papers_grid(side: int) -> xr.Dataset:
    """eta* of the label term on the largest square over the depths at which P0 tunes, under both paddings."""
    net = _net((side, side), kernel=(3, 3), readout="convolution")
    scale = [
        [
            float(
                mf.predict(replace(net, depth=depth, padding=padding), level="mean_field")["label_learning_rate_scale"]
            )
            for depth in PAPERS_DEPTHS
        ]
        for padding in ("zero", "circular")
    ]
    return xr.Dataset(
        {"papers_scale": (("padding", "papers_depth"), scale)},
        {"papers_depth": list(PAPERS_DEPTHS)},
        {"papers_side": side},
    )


def missing(seed: int) -> xr.Dataset:
    """Both sides of P0's Lemma 3 on several sets and stencils: the worst of many functions, and the most possible."""
    rng = np.random.default_rng(seed)
    cases = _cases()
    columns: dict[str, list[float]] = {name: [] for name in ("missing_worst", "missing_largest", "missing_bound")}
    torus = []
    for sites, stencil, rectangle in cases.values():
        functions = np.concatenate(
            [np.ones((1, len(sites))), np.clip(rng.normal(size=(FUNCTIONS, len(sites))), -1.0, 1.0)]
        )
        found = [missing_terms(sites, stencil, function / np.abs(function).max()) for function in functions]
        columns["missing_worst"].append(max(one.discrepancy for one in found[1:]))
        columns["missing_largest"].append(found[0].discrepancy)
        columns["missing_bound"].append(found[0].bound)
        torus.append(_on_a_torus(functions, *rectangle) if rectangle else np.nan)
    variables = {name: ("set", values) for name, values in columns.items()}
    sizes = {
        "set_sites": ("set", [len(sites) for sites, _, _ in cases.values()]),
        "set_taps": ("set", [len(stencil) for _, stencil, _ in cases.values()]),
    }
    return xr.Dataset(variables | sizes | {"missing_circular": ("set", torus)}, {"set": list(cases)})


def _on_a_torus(functions: np.ndarray, grid: tuple[int, ...], kernel: tuple[int, ...]) -> float:
    """Largest discrepancy of the functions with circular padding, where Lemma 3 says 0."""
    table = neighbours(grid, kernel, "circular")
    differences = functions[:, table].sum(axis=(1, 2)) - len(table) * functions.sum(axis=1)
    return float(np.abs(differences).max() / functions.shape[1])


def _cases() -> dict[str, tuple[list[tuple[int, ...]], list[tuple[int, ...]], Any]]:
    """Name -> sites, stencil and, for rectangles, their grid and kernel."""
    rectangles: dict[str, Any] = {
        "line of 32": ((32,), (3,)),
        "line of 32, 2 taps": ((32,), (2,)),
        "line of 6, 5 taps": ((6,), (5,)),
    }
    rectangles |= {"8 x 8": ((8, 8), (3, 3)), "32 x 32": ((32, 32), (3, 3))}
    found: dict[str, Any] = {name: (list(np.ndindex(*g)), offsets(k), (g, k)) for name, (g, k) in rectangles.items()}
    square, plus = list(np.ndindex(8, 8)), [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]
    found["8 x 8, cross of 5"] = (square, plus, None)
    found["L of 48 sites, 3 x 3"] = ([p for p in square if min(p) < 4], offsets((3, 3)), None)
    found["every other site of a line, 3 taps"] = ([(2 * p,) for p in range(16)], offsets((3,)), None)
    return found


def _net(grid: tuple[int, ...], **options: Any) -> ConvNet:
    defaults: dict[str, Any] = {"depth": 1, "channels": FAR_CHANNELS, "kernel": (3,) * len(grid)}
    return ConvNet(grid=grid, **defaults | options)
