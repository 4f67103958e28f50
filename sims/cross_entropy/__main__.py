"""What cross-entropy instead of squared loss does to the one-step change, over depth, for two nets and two heads.

The papers derive eta* ~ L^(-3/2) for squared loss and train with cross-entropy; they say that it changes the prefactor
only, because at initialisation the softmax p is uniform and |p - y|^2 = 1 - 1/C for C classes (P0 section G). Here both
losses are drawn, with the same passes and other error columns: of labels, y - 1/C with a class drawn uniformly, and of
outputs, p - 1/C. Under the muP head logits vanish with the width; under the He head they are of order one.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from sims.common.command import (
    add_array_options,
    add_run_options,
    chosen_arrays,
    command_parser,
    fill_from_preset,
    run_command,
)
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import Sequential

NAME = "cross_entropy"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depths": [2, 4, 8], "width": 128, "channels": 32, "draws": 128},
    "default": {"depths": [2, 4, 8, 16], "width": 256, "channels": 64, "draws": 768},
    "paper": {"depths": [2, 4, 8, 16, 32], "width": 1024, "channels": 256, "draws": 2048},
}
HEADS = ("he", "mup")
TERMS = ("label_term", "output_term", "update_energy")
GRID = (8,)
DIMS = ("net", "head", "loss", "depth")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--depths", type=int, nargs="+", metavar="L", help="hidden layers, two depths or more")
    add("--width", type=int, metavar="N", help="units of every layer of the MLP")
    add(
        "--channels", type=int, metavar="C", help="channels of every layer of the ConvNet, on a ring of 8 sites, pooled"
    )
    add("--classes", type=int, default=10, metavar="C", help="outputs, two or more (default: 10)")
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import cross_entropy as figure
    from meanfield.common import MOST_LAYERS, require_count, require_counts
    from sims.cross_entropy import report

    depths = require_counts("--depths", options.depths, maximum=MOST_LAYERS, why="hidden layers")
    options.depths = sorted(set(depths))
    if len(options.depths) < 2:
        raise ValueError(f"--depths {options.depths} is one number; a slope needs two or more")
    require_count("--classes", options.classes, minimum=2, why="one class has a softmax of 1 and no error")
    nets = _nets(options)
    run_of = {"depths": options.depths, "draws": options.draws, "seed": options.seed, **chosen_arrays(options)}
    results = Results(NAME, run_key(nets=nets, **run_of), options)
    return results.deliver(lambda: _measure(options, nets, results), report.text, figure.draw)


def _nets(options: argparse.Namespace) -> dict[str, Sequential]:
    """The nets at depth 1, by name."""
    from meanfield.nets import MLP, ConvNet

    shared = {"depth": 1, "outputs": options.classes}
    return {
        "MLP": MLP(width=options.width, **shared),
        "ConvNet": ConvNet(channels=options.channels, grid=GRID, **shared),
    }


def _measure(options: argparse.Namespace, nets: dict[str, Sequential], results: Results) -> xr.Dataset:
    """Means over layers of all terms, and the error at the outputs, by net, head, loss and depth; theory beside."""
    import numpy as np
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.nets import LOSSES
    from meanfield.simulation import Energies

    runs = [
        Run(
            replace(net, head=head, depth=depth),  # type: ignore[type-var]
            Energies(loss=loss, **chosen_arrays(options)),
            options.draws,
            derived_seed(options.seed, f"{name}, {head} head, {loss}, depth {depth}"),
        )
        for (name, net), head, loss, depth in product(nets.items(), HEADS, LOSSES, options.depths)
    ]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    rows = [_means(found) | _beside(one) for one, found in zip(runs, measured, strict=True)]
    shape = (len(nets), len(HEADS), len(LOSSES), len(options.depths))
    variables = {name: (DIMS, np.array([row[name] for row in rows]).reshape(shape)) for name in rows[0]}
    coords = dict(zip(DIMS, (list(nets), list(HEADS), list(LOSSES), options.depths), strict=True))
    attrs = {name: getattr(options, name) for name in ("width", "channels", "classes", "draws")}
    attrs |= chosen_arrays(options)
    attrs["provenance"] = provenance()
    return xr.Dataset(variables, coords, attrs)


def _means(measured: xr.Dataset) -> dict[str, float]:
    """Means over layers with their errors and largest shares, and the error at the outputs."""
    found = {}
    for name in TERMS:
        found[name] = float(measured[name].mean())
        found[f"{name}_stderr"] = float(measured[f"{name}_covariance"].values.mean() ** 0.5)
        found[f"{name}_largest_share"] = float(measured[f"{name}_largest_share"].max())
    for end in ("", "_stderr"):
        found[f"output_error{end}"] = float(measured[f"output_error{end}"])
    return found


def _beside(run: Run) -> dict[str, float]:
    """Means over layers of NAME_mean_field and, under squared loss, of NAME_exact; NaN where there is no such level."""
    from meanfield.theory import predict

    net, names = run.net, ("label_term", "output_term", "output_error")
    found = {f"{name}_mean_field": float("nan") for name in names}
    found |= {"label_term_exact": float("nan"), "update_energy_exact": float("nan")}
    if net.is_pooled:
        return found
    known = predict(net, level="mean_field", batch=run.measure.batch, loss=run.measure.loss)
    found |= {f"{name}_mean_field": float(known[name].mean()) for name in names}
    if run.measure.loss == "squared":
        exact = predict(net, level="exact")
        found |= {f"{name}_exact": float(exact[name].mean()) for name in ("label_term", "update_energy")}
    return found


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
