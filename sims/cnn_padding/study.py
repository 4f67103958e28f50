"""Zero against circular padding: what the edge of a grid costs, measured and predicted, over grid size and depth.

Draws convolutional nets under both paddings on lines and squares, holds label terms, their profile over sites and the
learning-rate scale against the mean field, and asks to what depth the remark of Zhang et al. 2026 on zero padding holds
(a correction of the order of the boundary fraction, exponent unchanged). On larger grids the mean field alone then goes
on to where the growth turns into decay; and the paper's bound on missing terms is tried on sets of many shapes.
"""

import argparse
from itertools import product
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS
from meanfield.nets import ConvNet
from meanfield.simulation import Energies
from meanfield.theory import finite_width_allowance
from meanfield.verification import one_site_ratios
from sims.cnn_padding import theory
from sims.cnn_padding.claims import CLAIMS, LABEL_SCALE, NAME
from sims.cnn_padding.report import REPORT
from sims.common.command import Check, Option, Preset, chosen_arrays, ladder_of
from sims.common.datasets import Axes, Variable, attributes, labels_in_mean_field, over, seeded_run, taken
from sims.common.results import Results
from sims.common.study import Study

LISTED = "what zero padding costs convolutional nets, over grid size and depth"

TAPS = 3
BY_LAYER = ("label_term", "update_energy")
LAW = "a law in them"


def grids_of(least: int) -> Check:
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
    *theory.VARIABLES,
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
        for grid, padding, depth in product(grids, theory.PADDINGS, sizes["depths"])
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
    alone = [theory.far(sizes["far_lines"], sizes["far_squares"]), theory.papers_grid(side)]
    drawn = list(zip(nets, results.draw(runs), strict=True))
    deepest_drawn = [(net, measured) for net, measured in drawn if net.depth == deepest]
    by_site = [measured for net, measured in deepest_drawn if net.grid == profiled]
    axes: Axes = {
        "grid": list(dict.fromkeys(" x ".join(map(str, net.grid)) for net in nets)),
        "padding": list(theory.PADDINGS),
    }
    parts = [
        over(axes | {"depth": sizes["depths"]}, [_scales(*net_and_draws) for net_and_draws in drawn]),
        over(axes, [_terms(*net_and_draws) for net_and_draws in deepest_drawn], "layer", "layer_other"),
        theory.profile(options.channels, deepest, profiled, by_site),
        theory.grids(nets),
        *alone,
        theory.missing(options.seed),
    ]
    dataset = xr.merge(parts, combine_attrs="no_conflicts").assign_coords(layer=range(1, deepest + 1))
    return dataset.assign_attrs(attributes(options, "channels"))


def _scales(net: ConvNet, measured: xr.Dataset) -> dict[str, Any]:
    """Learning-rate scales of one net, and the mean field's."""
    limit = float(labels_in_mean_field(net)[LABEL_SCALE])
    return taken(measured, "learning_rate_scale", LABEL_SCALE) | {f"{LABEL_SCALE}_mean_field": limit}


def _terms(net: ConvNet, measured: xr.Dataset) -> dict[str, Any]:
    """Label term and update energy of one net by layer, the mean field's label term, and the allowance."""
    return taken(measured, *BY_LAYER) | {
        "label_term_mean_field": labels_in_mean_field(net)["label_term"].values,
        "finite_width_allowance": finite_width_allowance(net),
        "one_site_excess": one_site_ratios(net)["label_term"] - 1,
        "label_term_covariance": measured["label_term_covariance"].values,
    }


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
