"""Fully-connected nets drawn, with their exact expectation and mean field beside, and all that is exact alone."""

import argparse
import sys
from dataclasses import replace
from itertools import product
from typing import Any

import xarray as xr

from meanfield.execution import Run
from meanfield.nets import HEADS, MLP
from meanfield.simulation import Energies
from meanfield.theory import energies_by_depth, finite_width_excess, label_spread, output_share, relative_spread
from meanfield.verification import LABEL_SPREAD, OVERLAP_SPREAD, share_row
from sims.common.command import chosen_arrays
from sims.common.datasets import Axes, attributes, over, predictions, seeded_run
from sims.common.results import Results
from sims.mlp_depth.report import plan

# Depths of the exact energies; widths, depths over width and layers of the finite-width correction.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
WIDTHS = (256, 1024, 4096, 16_384)
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
LAYERS = (8, 64, 512)

# Heads, outputs and depths of the output term's share; the width is so large that depth over width stays small.
SHARE_WIDTH = 10**6
SHARE_DEPTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)

# Small nets that are drawn for the ratio of output to label term.
SMALL_WIDTH = 256
SMALL: Axes = {"head": HEADS, "drawn_outputs": (1, 10, SMALL_WIDTH), "drawn_depth": (2, 8)}


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net."""
    names = ("depth", "width", "outputs", "activation", "head")
    net = MLP(**{name: getattr(options, name) for name in names})
    _run(options, net).require_memory(options.workers.here)
    return {"net": net}


def _run(options: argparse.Namespace, net: MLP) -> Run:
    return Run(net, Energies(**chosen_arrays(options)), options.draws, options.seed)


def measure(options: argparse.Namespace, results: Results, net: MLP) -> xr.Dataset:
    """Draws with their exact expectation (NAME_exact) and mean field (NAME_mean_field), and all that is exact alone."""
    spreads = {LABEL_SPREAD: ("layer", label_spread(net)), OVERLAP_SPREAD: ("layer", relative_spread(net))}
    predicted = [*predictions(net, ("exact", "mean_field")), xr.Dataset(spreads)]
    print(plan(predicted[-1], options.draws), file=sys.stderr)
    small = [
        (replace(net, depth=depth, width=SMALL_WIDTH, outputs=outputs, head=head), f"{head} head, {outputs} outputs")
        for head, outputs, depth in product(*SMALL.values())
    ]
    energies = Energies(**chosen_arrays(options))
    runs = [seeded_run(options, each, energies, f"{label}, depth {each.depth}") for each, label in small]
    measured, *swept = results.draw([_run(options, net), *runs])
    shares = over(SMALL, [_share(run.net, drawn) for run, drawn in zip(runs, swept, strict=True)])
    parts = [measured, *predicted, *_exact_only(net), shares]
    return xr.merge(parts, combine_attrs="override").assign_attrs(attributes(options, "width"), sweep_width=SMALL_WIDTH)


def _share(net: MLP, measured: xr.Dataset) -> Any:
    """Output over label term of one small net, drawn and exact."""
    spread = xr.Dataset({LABEL_SPREAD: ("layer", label_spread(net))})
    return share_row(xr.merge([measured, *predictions(net, ("exact",)), spread], combine_attrs="override"))


def _exact_only(net: MLP) -> list[xr.Dataset]:
    """What needs no draws: energies by depth, the finite-width correction, the output term's share."""
    wide = replace(net, depth=1, width=SHARE_WIDTH)
    return [
        energies_by_depth(net, DEPTHS),
        finite_width_excess(net, WIDTHS, SHARES, LAYERS),
        output_share(wide, HEADS, (1, 10, SHARE_WIDTH), SHARE_DEPTHS),
    ]
