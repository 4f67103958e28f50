"""Zero against circular padding: what the edge of a grid costs, measured and predicted, over grid size and depth.

Draws convolutional nets under both paddings on lines and squares, holds label terms, their profile over sites and the
learning-rate scale against the mean field, and asks to what depth the remark of Zhang et al. 2026 on zero padding holds
(a correction of the order of the boundary fraction, exponent unchanged). On larger grids the mean field alone then goes
on to where the growth turns into decay; and the paper's bound on missing terms is tried on sets of many shapes.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import MOST_LAYERS
from meanfield.nets import ConvNet, neighbours, offsets, rectangle_boundary_fraction
from meanfield.quantities import missing_terms
from meanfield.simulation import Energies
from meanfield.theory import edge_loss, finite_width_allowance, transport_eigenvalue
from meanfield.verification import Finding, Series, one_site_ratios
from sims.cnn_padding import claims
from sims.cnn_padding.claims import CLAIMS, LABEL_SCALE, NAME
from sims.common.command import Option, OptionCheck, Preset, chosen_arrays, ladder_of
from sims.common.datasets import ENDS, Axes, Variable, attributes, labels_in_mean_field, over, seeded_run, taken
from sims.common.report import ETA, Report, answer
from sims.common.results import Results
from sims.common.study import Study, run_as_command
from sims.common.tables import (
    MISSING,
    Column,
    ColumnGroup,
    Grid,
    Table,
    against,
    fitted,
    label,
    measured,
    number,
    predicted,
    rows,
    signed,
    table,
    value,
)

# What a run of `sims.cnn_padding` knows without drawing: profiles, eigenvalues, far depths, missing terms.

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

OF_THEORY = (
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


LISTED = "what zero padding costs convolutional nets, over grid size and depth"

TAPS = 3
BY_LAYER = ("label_term", "update_energy")
LAW = "a law in them"


def grids_of(least: int) -> OptionCheck:
    """So many lengths of grids at least, none shorter than the stencil."""

    def check(written: str, given: list[int]) -> list[int]:
        sizes: list[int] = ladder_of(least, LAW)(written, given)
        if sizes[0] < TAPS:
            raise ValueError(f"{written} {sizes} holds a grid shorter than the {TAPS} taps of the stencil")
        return sizes

    return check


OPTIONS = (
    Option("lines", "sites of the one-dimensional grids that are drawn", int, metavar="N", many="+", check=grids_of(1)),
    Option(
        "squares", "sides of the two-dimensional grids that are drawn", int, metavar="N", many="+", check=grids_of(1)
    ),
    Option(
        "depths",
        "layers of the nets that are drawn, three or more numbers",
        int,
        metavar="L",
        many="+",
        check=ladder_of(3, LAW, maximum=MOST_LAYERS),
    ),
    Option(
        "far_lines",
        "sites of the one-dimensional grids of the mean field alone, three or more numbers",
        int,
        metavar="N",
        many="+",
        check=grids_of(3),
    ),
    Option(
        "far_squares",
        "sides of the two-dimensional grids of the mean field alone",
        int,
        metavar="N",
        many="+",
        check=grids_of(1),
    ),
    Option("channels", "channels of every layer that is drawn", int, metavar="C"),
)
PRESETS = {
    "smoke": Preset(
        "4 s",
        lines=[4, 16],
        squares=[3],
        depths=[2, 4, 8],
        channels=64,
        draws=64,
        far_lines=[8, 16, 32],
        far_squares=[4, 8],
    ),
    "default": Preset(
        "25 s",
        lines=[4, 8, 16, 32],
        squares=[4],
        depths=[4, 8, 16],
        channels=96,
        draws=128,
        far_lines=[8, 16, 32, 64],
        far_squares=[4, 8, 16, 32],
    ),
    "paper": Preset(
        "8 h",
        lines=[4, 8, 16, 32, 64],
        squares=[8, 16],
        depths=[4, 8, 16, 32],
        channels=256,
        draws=1024,
        far_lines=[8, 16, 32, 64, 128],
        far_squares=[4, 8, 16, 32],
    ),
}
VARIABLES = (
    *OF_THEORY,
    Variable("one_site_excess", "what finite width adds to the label term of one site with as many units, relatively"),
    Variable("grid", "grid, sites along each axis"),
    Variable("padding", "padding"),
)


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """Every ladder in order, and the nets that are drawn: grid by grid, padding by padding, depth by depth."""
    sizes = {name: getattr(options, name) for name in ("lines", "squares", "depths", "far_lines", "far_squares")}
    grids = [*((n,) for n in sizes["lines"]), *((n, n) for n in sizes["squares"])]
    shared: dict[str, Any] = {"channels": options.channels, "readout": "convolution"}
    nets = [
        ConvNet(depth=depth, grid=grid, kernel=(TAPS,) * len(grid), padding=padding, **shared)
        for grid, padding, depth in product(grids, PADDINGS, sizes["depths"])
    ]
    return {"nets": nets, "sizes": sizes}


def measure(
    options: argparse.Namespace, results: Results, nets: list[ConvNet], sizes: dict[str, list[int]]
) -> xr.Dataset:
    """Scales by depth and terms by layer of the deepest nets, by grid and padding; profiles; theory far down."""
    profiled, deepest = (sizes["lines"][-1],), sizes["depths"][-1]
    runs = [
        seeded_run(
            options,
            net,
            Energies(by_site=net.grid == profiled and net.depth == deepest, **chosen_arrays(options)),
            f"grid {net.grid}, padding {net.padding}, depth {net.depth}",
        )
        for net in nets
    ]
    # First what is not kept in pieces: a grid too large for theory is refused before anything is drawn.
    side = sizes["far_squares"][-1]
    alone = [far(sizes["far_lines"], sizes["far_squares"]), papers_grid(side)]
    drawn = list(zip(nets, results.draw(runs), strict=True))
    deepest_drawn = [(net, measured) for net, measured in drawn if net.depth == deepest]
    by_site = [measured for net, measured in deepest_drawn if net.grid == profiled]
    axes: Axes = {
        "grid": list(dict.fromkeys(" x ".join(map(str, net.grid)) for net in nets)),
        "padding": list(PADDINGS),
    }
    parts = [
        over(axes | {"depth": sizes["depths"]}, [_drawn_scales(*net_and_draws) for net_and_draws in drawn]),
        over(axes, [_drawn_terms(*net_and_draws) for net_and_draws in deepest_drawn], "layer", "layer_other"),
        profile(options.channels, deepest, profiled, by_site),
        grids(nets),
        *alone,
        missing(options.seed),
    ]
    dataset = xr.merge(parts, combine_attrs="no_conflicts").assign_coords(layer=range(1, deepest + 1))
    return dataset.assign_attrs(attributes(options, "channels"))


def _drawn_scales(net: ConvNet, measured: xr.Dataset) -> dict[str, Any]:
    """Learning-rate scales of one net, and the mean field's."""
    limit = float(labels_in_mean_field(net)[LABEL_SCALE])
    return taken(measured, "learning_rate_scale", LABEL_SCALE) | {f"{LABEL_SCALE}_mean_field": limit}


def _drawn_terms(net: ConvNet, measured: xr.Dataset) -> dict[str, Any]:
    """Label term and update energy of one net by layer, the mean field's label term, and the allowance."""
    return taken(measured, *BY_LAYER) | {
        "label_term_mean_field": labels_in_mean_field(net)["label_term"].values,
        "finite_width_allowance": finite_width_allowance(net),
        "one_site_excess": one_site_ratios(net)["label_term"] - 1,
        "label_term_covariance": measured["label_term_covariance"].values,
    }


# What is printed.

WORDS = {
    "bdry": "boundary fraction, by enumeration; closed form: 1 - prod(1 - (k - 1)/N).",
    "lambda": "largest eigenvalue of the transport of a kernel through a layer; 1 under circular padding.",
}
LANDMARKS = ("half_depth", "lost_power_depth", "turning_depth")
# Layers at which the share lost is shown.
SHOWN = (1, 2, 4, 8, 16, 32, 64)


def _answer(dataset: xr.Dataset, findings: Sequence[Finding]) -> str:
    lines = claims.lines_of(dataset)
    laws = {grid: claims.ratio_slope(dataset.sel(grid=grid)) for grid in (lines[0], lines[-1])}
    moved = " and ".join(f"{law.exponent:.3f} +- {law.stderr:.3f} on {grid} sites" for grid, law in laws.items())
    depths = dataset["depth"].values
    judged = [claims.judge_exponent(dataset), claims.judge_uniform_correction(dataset)]
    return answer(judged, f"drawn over depths {depths[0]} .. {depths[-1]}, it moves by {moved}")


def _grid_title(dataset: xr.Dataset) -> str:
    layers = dataset.sizes["layer"]
    return (
        f"Grids; last columns: decay of B zero / circular per layer, over layers {layers // 2} .. {layers} of one net, "
        "which tends to ln lambda"
    )


GRID_TABLE = Table(
    "grid table",
    _grid_title,
    ["grid"],
    "grid",
    [
        Column("bdry", "boundary_fraction"),
        Column("closed form", "boundary_fraction_closed"),
        Column("lambda", lambda at: f"{float(at['transport_eigenvalue']):.5f}"),
        Column("ln lambda", lambda at: f"{float(np.log(at['transport_eigenvalue'])):.4f}"),
        Column("mean field", lambda at: f"{claims.theory_layer_decay(at):.4f}"),
        Column("drawn", lambda at: measured(*claims.layer_decay(at))),
    ],
)


def _terms(padding: str, at: xr.Dataset) -> list[str]:
    return against(at.sel(padding=padding), "label_term")


def _quotient(values: xr.DataArray) -> float:
    return float(values.sel(padding="zero") / values.sel(padding="circular"))


def _ratio(at: xr.Dataset, name: str) -> str:
    """Zero over circular, drawn, with its error."""
    series = Series.of(at, name)
    ratio = _quotient(series.value)
    return measured(ratio, ratio * float(np.hypot(*series.relative_error.values)))


ENERGIES: list[ColumnGroup] = [
    *(Column([f"B {padding}", "mean field", "s.e."], partial(_terms, padding)) for padding in PADDINGS),
    [
        Column("B ratio", lambda at: _ratio(at, "label_term")),
        Column("mean field", lambda at: number(_quotient(at["label_term_mean_field"]))),
        Column("S ratio", lambda at: _ratio(at, "update_energy")),
    ],
]


def _energy_table(dataset: xr.Dataset) -> Grid:
    """At the depths' layers of the deepest nets: both paddings against their mean fields, and the ratios."""
    by_layer = dataset.drop_dims("depth").sel(layer=dataset["depth"].values)
    title = f"Energies in nets of {dataset.sizes['layer']} layers, and ratios zero / circular"
    return Table("energy table", title, ["grid", "layer"], ["grid", "layer"], ENERGIES)(by_layer)


def _scale_columns(dataset: xr.Dataset) -> list[Column]:
    slopes = Column(
        ["slope in L", "mean field"],
        lambda at: [fitted(claims.ratio_slope(at)), number(claims.theory_ratio_slope(at))],
    )
    depths = dataset["depth"].values
    return [*(Column([f"L = {depth}", "mean field"], partial(_scales, depth)) for depth in depths), slopes]


def _scales(depth: int, at: xr.Dataset) -> list[str]:
    name, at_depth = claims.LABEL_SCALE, at.sel(depth=depth)
    return [_ratio(at_depth, name), number(_quotient(at_depth[f"{name}_mean_field"]))]


SCALE_TABLE = Table(
    "scale table",
    "eta* of B, zero / circular, one independent set of nets per depth (Zhang et al. 2026: a constant 1 + O(bdry), "
    "of slope 0)",
    ["grid"],
    "grid",
    _scale_columns,
)


def _brief_table(dataset: xr.Dataset) -> Grid:
    """eta* at both ends of the depths, and what padding does to its slope, against the mean field."""

    def slopes(at: xr.Dataset) -> list[str]:
        law, theory = claims.ratio_slope(at), claims.theory_ratio_slope(at)
        return [fitted(law), number(theory), signed((law.exponent - theory) / law.stderr)]

    first, *_, last = dataset["depth"].values
    columns = [
        Column("boundary", "boundary_fraction"),
        Column([f"L = {last}", "mean field"], partial(_scales, last)),
        Column(["slope in L", "mean field", "off (s.e.)"], slopes),
    ]
    title = (
        f"eta* of the label term, zero over circular padding: at depth {last}, and its slope over {first} .. {last};\n"
        "boundary: share of sites whose taps leave the grid"
    )
    return Table("brief table", title, ["grid"], "grid", columns)(dataset)


def _far_table(dataset: xr.Dataset) -> Grid:
    def cells(at: xr.Dataset) -> list[str]:
        doubled = 2 * float(np.log(at["far_eigenvalue"]))
        return [*(predicted(at, name) for name in (*LANDMARKS, "decay")), number(-3 / doubled), number(doubled)]

    lines, turned = [], dataset.assign(decay=dataset["decay"].where(dataset["turning_depth"].notnull()))
    for family in map(str, dataset["family"].values):
        followed = turned.sel(family=[family]).dropna("sites", subset=["far_eigenvalue"])
        lines += rows(followed, ["family", "sites"], cells)
        exponents = [number(claims.size_exponent(dataset, family, name)) for name in LANDMARKS]
        lines.append([family, "exponent", *exponents, "", "", ""])
    landmarks = ["F halved at l", "a power lost", "growth ends"]
    header = ["mean field", "N", *landmarks, "decay", "3/(-2 ln lambda)", "2 ln lambda"]
    title = (
        "Layers where zero padding breaks the cubic law of F: where the ratio zero / circular is 1/2, the growth "
        "exponent is one below that under circular padding, and growth ends, near 3/(-2 ln lambda); then the decay, ln "
        "of the ratio per layer, which tends to 2 ln lambda. Exponents in N + 1 between the two largest grids"
    )
    return table(header, lines, title)


def _correction_table(dataset: xr.Dataset) -> Grid:
    """(1 - F zero / circular) / bdry by layer on the largest line, which the paper's remark has constant."""
    at = dataset.sel(family="1D ReLU").dropna("sites", how="all", subset=["far_eigenvalue"]).isel(sites=-1)
    fraction, lines = value(at, "far_boundary_fraction"), []
    for wanted in SHOWN:
        near = int(np.nanargmin(np.abs(at["far_layer"].values - wanted)))
        lost = 1 - float(at["far_ratio"][near])
        lines.append([f"{at['far_layer'].values[near]:.0f}", number(lost), number(lost / fraction)])
    title = f"1D ReLU, {int(at['sites'])} sites, bdry {number(fraction)}: share of F lost"
    return table(["layer", "1 - ratio", "over bdry"], lines, title)


def _papers_grid(dataset: xr.Dataset) -> Grid:
    depths = dataset["papers_depth"].values
    scales = [dataset["papers_scale"].sel(padding=padding).values for padding in PADDINGS]
    columns = {padding: scale / scale[0] for padding, scale in zip(PADDINGS, scales, strict=True)}
    columns["zero / circular"] = scales[0] / scales[1]
    lines = [
        [name, *map(number, column), number(np.log(column[-1] / column[0]) / np.log(depths[-1] / depths[0]))]
        for name, column in columns.items()
    ]
    side = dataset.attrs["papers_side"]
    header = [f"{side} x {side}", *(f"L = {label(depth)}" for depth in depths), "slope"]
    title = "eta* of B over the depths of Zhang et al. 2026, mean field (each padding relative to the first depth)"
    return table(header, lines, title)


def _missed_on_a_torus(at: xr.Dataset) -> str:
    torus = float(at["missing_circular"])
    return MISSING if np.isnan(torus) else f"{torus:.0e}"


MISSING_TABLE = Table(
    "missing table",
    "Zhang et al. 2026, Lemma 3 for |f| <= 1: terms that zero padding misses, and their bound",
    ["set"],
    "set",
    [
        Column("sites", "set_sites"),
        Column("k", "set_taps"),
        Column("random f", "missing_worst"),
        Column("constant f", "missing_largest"),
        Column("k bdry", "missing_bound"),
        Column("reached", lambda at: number(float(at["missing_largest"] / at["missing_bound"]))),
        Column("on a torus", _missed_on_a_torus),
    ],
)

REPORT = Report(
    question="Does zero padding leave the depth exponent of eta* as it is under circular padding?",
    answer=_answer,
    heading="ConvNet: {channels} channels, 3 taps an axis, relu, convolutional readout; {draws} draws, seed {seed}\n"
    f"{ETA}",
    brief=_brief_table,
    steps=[
        ("--far-lines 16 32 64 128", "the mean field on longer lines, which decides where decay begins"),
        ("--lines 16 32 64", "draws on longer lines, of which less is boundary"),
    ],
    parts=[GRID_TABLE, _energy_table, SCALE_TABLE, _far_table, _correction_table, _papers_grid, MISSING_TABLE],
    findings=claims.JUDGES.findings,
    heavy=["label_term", "update_energy"],
    words=WORDS,
)


STUDY = Study(
    name=NAME,
    description=__doc__,
    options=OPTIONS,
    presets=PRESETS,
    compiles="50 s",
    planned=planned,
    measure=measure,
    variables=VARIABLES,
    report=REPORT,
    claims=CLAIMS,
    arrays=True,
)


if __name__ == "__main__":
    run_as_command("cnn_padding")
