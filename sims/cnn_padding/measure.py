"""Both paddings over grids and depths, drawn, with the mean field beside; then what theory has alone."""

import argparse
from itertools import product
from typing import Any

import xarray as xr

from meanfield.common import MOST_LAYERS
from meanfield.nets import ConvNet
from meanfield.simulation import Energies
from meanfield.verification import finite_width_allowance, one_site_ratios
from sims.cnn_padding import theory
from sims.common.command import chosen_arrays, ladder
from sims.common.datasets import Axes, attributes, labels_in_mean_field, over, seeded_run, taken
from sims.common.results import Results

TAPS = 3
BY_LAYER = ("label_term", "update_energy")
LABEL_SCALE = "label_learning_rate_scale"
# Option -> how many numbers it takes at least.
LADDERS = {"lines": 1, "squares": 1, "depths": 3, "far_lines": 3, "far_squares": 1}


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """Every ladder in order, and the nets that are drawn: grid by grid, padding by padding, depth by depth."""
    sizes = {}
    for name, least in LADDERS.items():
        option, most = f"--{name.replace('_', '-')}", MOST_LAYERS if name == "depths" else None
        sizes[name] = ladder(option, getattr(options, name), least, "a law in them", maximum=most)
        if name != "depths" and sizes[name][0] < TAPS:
            raise ValueError(f"{option} {sizes[name]} holds a grid shorter than the {TAPS} taps of the stencil")
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
