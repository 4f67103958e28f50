"""How the learning-rate scale eta*(K) of residual nets falls, or does not, with the number of blocks K.

For every activation, branch depth k and scaling (branch weights of variance 1/K, branch times K^(-1/2) or 1/K, none),
nets are drawn over a grid of K and held against theory over the same K: the exact expectation for linear nets, the mean
field for ReLU. Its slope is followed to large K and set beside what the papers say. Then mixed backbones of m plain
layers and K blocks, whose slopes in m and K are told apart; PathSum's rule; and the net of the papers' ResNet tables.
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
    import numpy as np
    import xarray as xr

    from meanfield.nets import ResidualMLP

NAME = "residual_depth"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"blocks": [4, 8, 16], "width": 256, "draws": 32, "far": 100},
    "default": {"blocks": [8, 16, 32, 64, 128], "width": 512, "draws": 64, "far": 10_000},
    "paper": {"blocks": [8, 16, 32, 64, 128, 256], "width": 1024, "draws": 512, "far": 10_000},
}
ACTIVATIONS = ("relu", "linear")
BLOCK_DEPTHS = (1, 2, 3)
DIMS = ("activation", "block_depth", "scaling")
SCALES = ("learning_rate_scale", "label_learning_rate_scale")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--blocks", type=int, nargs="+", metavar="K", help="numbers of blocks to draw, two or more")
    add("--far", type=int, metavar="K", help="blocks to which theory follows the slopes")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--outputs", type=int, default=10, metavar="M", help="outputs (default: 10)")
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import residual_depth as figure
    from meanfield.common import MOST_LAYERS, require_count, require_counts
    from sims.residual_depth import report

    why = "blocks of the nets that are drawn"
    blocks = sorted(set(require_counts("--blocks", options.blocks, maximum=MOST_LAYERS, why=why)))
    if len(blocks) < 2:
        raise ValueError(f"--blocks {blocks} is one number; a slope needs two or more")
    why = "the slope is followed up to so many blocks"
    require_count("--far", options.far, minimum=10, maximum=MOST_LAYERS, why=why)
    nets = _nets(options.width, options.outputs)
    run_of = {"blocks": blocks, "far": options.far, "draws": options.draws, "seed": options.seed}
    run_of |= chosen_arrays(options)
    results = Results(NAME, run_key(nets=nets, **run_of), options)
    return results.deliver(lambda: _measure(options, nets, blocks, results), report.text, figure.draw)


def _nets(width: int, outputs: int) -> list[ResidualMLP]:
    """One net for each activation, branch depth and scaling, of a single block."""
    from meanfield.nets import SCALINGS, ResidualMLP

    return [
        ResidualMLP(depth=1, width=width, outputs=outputs, activation=activation, block_depth=k, scaling=scaling)
        for activation, k, scaling in product(ACTIVATIONS, BLOCK_DEPTHS, SCALINGS)
    ]


def _measure(options: argparse.Namespace, nets: list[ResidualMLP], blocks: list[int], results: Results) -> xr.Dataset:
    """Scales drawn (NAME) and predicted (NAME_theory) over the blocks; slopes of theory far up; mixed backbones."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.nets import SCALINGS
    from meanfield.simulation import Energies
    from sims.residual_depth import theory

    runs = [
        Run(
            replace(net, depth=depth),
            Energies(**chosen_arrays(options)),
            options.draws,
            derived_seed(options.seed, f"{net.describe()} of {depth} blocks"),
        )
        for net, depth in product(nets, blocks)
    ]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    shape = (len(ACTIVATIONS), len(BLOCK_DEPTHS), len(SCALINGS), len(blocks))
    variables: dict[str, Any] = {}
    for name, end in product(SCALES, ("", "_stderr", "_largest_share")):
        variables[name + end] = ((*DIMS, "blocks"), _array([one[name + end] for one in measured], shape))
    for name in SCALES:
        known = [theory.log_scale(run.net, name) for run in runs]
        variables[f"log_{name}_theory"] = ((*DIMS, "blocks"), _array(known, shape))
        infinite = [theory.log_scale(run.net, name, exact=False) for run in runs]
        variables[f"log_{name}_mean_field"] = ((*DIMS, "blocks"), _array(infinite, shape))
        far = [theory.local_slope(net, name, options.far) for net in nets]
        variables[f"{name}_far_slope"] = (DIMS, _array(far, shape[:-1]))
    coords: dict[str, Any] = {
        "activation": list(ACTIVATIONS),
        "block_depth": list(BLOCK_DEPTHS),
        "scaling": list(SCALINGS),
    }
    attrs = {name: getattr(options, name) for name in ("width", "outputs", "draws", "far")}
    attrs |= chosen_arrays(options)
    attrs["provenance"] = provenance()
    dataset = xr.Dataset(variables, coords | {"blocks": blocks}, attrs)
    return xr.merge([dataset, theory.mixed_backbones(options.outputs), theory.papers_net()], combine_attrs="override")


def _array(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    import numpy as np

    return np.array([float(value) for value in values]).reshape(shape)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
