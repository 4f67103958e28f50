"""What a run of `sims.cnn_padding` knows without drawing: profiles, eigenvalues, far depths, missing terms."""

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.nets import ConvNet, neighbours, offsets, rectangle_boundary_fraction
from meanfield.quantities import missing_terms
from meanfield.theory import edge_loss, transport_eigenvalue
from sims.common.datasets import ENDS, Axes, Variable, labels_in_mean_field, over, taken

PADDINGS = ("zero", "circular")
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
# Depths over which Zhang et al. 2026 tune rates (table 1 and figure 6).
PAPERS_DEPTHS = (3, 10, 30)
FUNCTIONS = 20

VARIABLES = (
    Variable(
        "boundary_fraction", "boundary fraction of the grid: share of sites whose stencil leaves it", "by enumeration"
    ),
    Variable("boundary_fraction_closed", "boundary fraction of the grid, closed form", "1 - prod(1 - (k - 1)/N)"),
    Variable(
        "transport_eigenvalue",
        "largest eigenvalue lambda of the transport of a kernel through a layer, zero padding",
        symbol="lambda",
    ),
    Variable("half_depth", "layer at which zero padding has halved the overlap energy, in theory"),
    Variable(
        "lost_power_depth", "layer at which zero padding has cost the overlap energy a power of growth, in theory"
    ),
    Variable("turning_depth", "layer at which the overlap energy ends to grow under zero padding, in theory"),
    Variable("decay", "decay of the overlap energy, zero over circular padding", "ln of the ratio per layer, far down"),
    Variable("far_eigenvalue", "largest eigenvalue lambda of the transport on grids of the mean field alone"),
    Variable("far_boundary_fraction", "boundary fraction of grids of the mean field alone"),
    Variable("far_layer", "layers of the curve of overlap energies"),
    Variable("far_ratio", "overlap energy in theory, zero over circular padding"),
    Variable("papers_scale", "label learning rate scale over the depths of Zhang et al. 2026, mean field"),
    Variable("missing_worst", "terms that zero padding misses of the worst random function", "discrepancy, |f| <= 1"),
    Variable("missing_largest", "terms that zero padding misses of a constant function, the most there can be"),
    Variable("missing_bound", "bound on the terms that zero padding misses", source="Zhang et al. 2026, lemma 3"),
    Variable("missing_circular", "terms that circular padding misses of the worst function"),
    Variable("set_sites", "sites of the set"),
    Variable("set_taps", "taps k of the stencil"),
    Variable("family", "family of nets that the mean field follows far"),
    Variable("sites", "sites along each axis of grids of the mean field alone"),
    Variable("papers_depth", "depths over which Zhang et al. 2026 tune rates"),
    Variable("set", "set of sites with a stencil"),
)


def profile(channels: int, depth: int, grid: tuple[int, ...], measured: list[xr.Dataset]) -> xr.Dataset:
    """The label term by site on one line, zero padding first: drawn, with errors, and in the mean field."""
    net, rows = _net(grid, channels=channels, depth=depth, readout="convolution"), []
    for padding, drawn in zip(PADDINGS, measured, strict=True):
        limit = labels_in_mean_field(replace(net, padding=padding), by_site=True)
        rows.append(
            taken(drawn, "label_term_by_site", ends=ENDS[:2])
            | {"label_term_by_site_mean_field": limit["label_term_by_site"].values}
        )
    return over({"padding": PADDINGS}, rows, "layer", "site").assign_attrs(profile_sites=grid[0])


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
    axes: Axes = {"family": list(FAMILIES), "sites": sorted({*lines, *squares})}
    scalars = dict.fromkeys((*FAR_DEPTHS, "far_eigenvalue", "far_boundary_fraction"), np.nan)
    nothing = scalars | dict.fromkeys(("far_layer", "far_ratio"), np.full(CURVE_POINTS, np.nan))
    rows = []
    for family, sites in product(*axes.values()):
        activation, taps, dimensions = FAMILIES[family]
        followed = sites in (lines, squares)[dimensions - 1]
        rows.append(_followed(activation, (sites,) * dimensions, (taps,) * dimensions) if followed else nothing)
    return over(axes, rows, "point")


def _followed(activation: str, grid: tuple[int, ...], kernel: tuple[int, ...]) -> dict[str, Any]:
    """One family on one grid, and some layers of its curve, evenly spread on a logarithmic axis."""
    limit = FEW_LAYERS if prod(grid) ** 2 > MANY_PAIRS else MANY_LAYERS
    loss = edge_loss(_net(grid, kernel=kernel, activation=activation), limit)
    layers_shown = np.unique(np.geomspace(1, len(loss.zero), CURVE_POINTS).round().astype(int))
    layers, ratios = np.full((2, CURVE_POINTS), np.nan)
    layers[: len(layers_shown)], ratios[: len(layers_shown)] = layers_shown, loss.ratio[layers_shown - 1]
    return {name: getattr(loss, name) for name in FAR_DEPTHS} | {
        "far_eigenvalue": transport_eigenvalue(grid, kernel),
        "far_boundary_fraction": mf.boundary_fraction(grid, kernel),
        "far_layer": layers,
        "far_ratio": ratios,
    }


def papers_grid(side: int) -> xr.Dataset:
    """eta* of the label term on the largest square over the depths of Zhang et al. 2026, under both paddings."""
    axes: Axes = {"padding": PADDINGS, "papers_depth": PAPERS_DEPTHS}
    nets = [
        _net((side, side), kernel=(3, 3), readout="convolution", depth=depth, padding=padding)
        for padding, depth in product(*axes.values())
    ]
    scales = [float(labels_in_mean_field(net)["label_learning_rate_scale"]) for net in nets]
    return over(axes, [{"papers_scale": scale} for scale in scales]).assign_attrs(papers_side=side)


def missing(seed: int) -> xr.Dataset:
    """Both sides of Lemma 3 on several sets and stencils: the worst of many functions, and the most possible."""
    rng, cases, rows = np.random.default_rng(seed), _cases(), []
    for sites, stencil, rectangle in cases.values():
        random = np.clip(rng.normal(size=(FUNCTIONS, len(sites))), -1.0, 1.0)
        functions = np.concatenate([np.ones((1, len(sites))), random])
        by_function = [missing_terms(sites, stencil, function / np.abs(function).max()) for function in functions]
        rows.append(
            {
                "missing_worst": max(terms.discrepancy for terms in by_function[1:]),
                "missing_largest": by_function[0].discrepancy,
                "missing_bound": by_function[0].bound,
                "set_sites": len(sites),
                "set_taps": len(stencil),
                "missing_circular": _on_a_torus(functions, *rectangle) if rectangle else np.nan,
            }
        )
    return over({"set": list(cases)}, rows)


def _on_a_torus(functions: np.ndarray, grid: tuple[int, ...], kernel: tuple[int, ...]) -> float:
    """Largest discrepancy of the functions with circular padding, where the lemma says 0."""
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
    cases: dict[str, Any] = {name: (list(np.ndindex(*g)), offsets(k), (g, k)) for name, (g, k) in rectangles.items()}
    square, plus = list(np.ndindex(8, 8)), [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]
    cases["8 x 8, cross of 5"] = (square, plus, None)
    cases["L of 48 sites, 3 x 3"] = ([p for p in square if min(p) < 4], offsets((3, 3)), None)
    cases["every other site of a line, 3 taps"] = ([(2 * p,) for p in range(16)], offsets((3,)), None)
    return cases


def _net(grid: tuple[int, ...], **options: Any) -> ConvNet:
    defaults: dict[str, Any] = {"depth": 1, "channels": FAR_CHANNELS, "kernel": (3,) * len(grid)}
    return ConvNet(grid=grid, **defaults | options)
