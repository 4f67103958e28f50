"""Zero against circular padding: what the edge of a grid costs, measured and predicted, over grid size and depth.

Draws convolutional nets under both paddings on lines and squares, holds label terms, their profile over sites and the
learning-rate scale against the mean field, and asks of P0's remark on zero padding (a correction of the order of the
boundary fraction, exponent unchanged) how far down it holds. The mean field alone then walks up to where the growth
turns into decay, on larger grids; and P0's bound on missing terms is tried on sets of many shapes.
"""

from __future__ import annotations

import argparse
import sys
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

    from meanfield.nets import ConvNet

NAME = "cnn_padding"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "lines": [4, 16],
        "squares": [3],
        "depths": [2, 4, 8],
        "channels": 64,
        "draws": 64,
        "far_lines": [8, 16, 32],
        "far_squares": [4, 8],
    },
    "default": {
        "lines": [4, 8, 16, 32],
        "squares": [4],
        "depths": [4, 8, 16],
        "channels": 96,
        "draws": 128,
        "far_lines": [8, 16, 32, 64],
        "far_squares": [4, 8, 16, 32],
    },
    "paper": {
        "lines": [4, 8, 16, 32, 64],
        "squares": [8, 16],
        "depths": [4, 8, 16, 32],
        "channels": 256,
        "draws": 1024,
        "far_lines": [8, 16, 32, 64, 128],
        "far_squares": [4, 8, 16, 32],
    },
}
COUNTS = {
    "lines": "sites of the one-dimensional grids that are drawn",
    "squares": "sides of the two-dimensional grids that are drawn",
    "depths": "layers of the nets that are drawn, three or more numbers",
    "far_lines": "sites of the one-dimensional grids of the mean field alone, three or more numbers",
    "far_squares": "sides of the two-dimensional grids of the mean field alone",
}
SEVERAL = ("depths", "far_lines")
PADDINGS = ("zero", "circular")
TAPS = 3
BY_LAYER = ("label_term", "update_energy")
SCALES = ("learning_rate_scale", "label_learning_rate_scale")
ENDS = ("", "_stderr", "_largest_share")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    for name, meaning in COUNTS.items():
        add(f"--{name.replace('_', '-')}", type=int, nargs="+", metavar="N", help=meaning)
    add("--channels", type=int, metavar="C", help="channels of every layer that is drawn")
    add_array_options(parser)
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import cnn_padding as figure
    from meanfield.common import MOST_LAYERS, require_counts
    from sims.cnn_padding import report

    for name, meaning in COUNTS.items():
        option = f"--{name.replace('_', '-')}"
        most = MOST_LAYERS if name == "depths" else None
        numbers = sorted(set(require_counts(option, getattr(options, name), maximum=most, why=meaning)))
        if name in SEVERAL and len(numbers) < 3:
            raise ValueError(f"{option} {numbers} is fewer than three numbers; give {meaning}")
        if name != "depths" and numbers[0] < TAPS:
            raise ValueError(f"{option} {numbers} holds a grid shorter than the {TAPS} taps of the stencil")
        setattr(options, name, numbers)
    nets = _nets(options)
    run_of = {name: getattr(options, name) for name in (*COUNTS, "draws", "seed", *chosen_arrays(options))}
    key = run_key(nets=nets, **run_of)
    results = Results(NAME, key, options)
    return results.deliver(lambda: _measure(options, nets, results), report.text, figure.draw)


def _nets(options: argparse.Namespace) -> list[ConvNet]:
    """Grid by grid, padding by padding, depth by depth."""
    from meanfield.nets import ConvNet

    grids = [*((n,) for n in options.lines), *((n, n) for n in options.squares)]
    return [
        ConvNet(
            depth=depth,
            channels=options.channels,
            grid=grid,
            kernel=(TAPS,) * len(grid),
            padding=padding,
            readout="convolution",
        )
        for grid in grids
        for padding in PADDINGS
        for depth in options.depths
    ]


def grid_name(grid: tuple[int, ...]) -> str:
    return " x ".join(map(str, grid))


def _measure(options: argparse.Namespace, nets: list[ConvNet], results: Results) -> xr.Dataset:
    """Everything drawn by (grid, padding, layer or depth) with the mean field beside; then what theory has alone."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import Energies
    from sims.cnn_padding import theory

    profiled = (options.lines[-1],)
    deepest = options.depths[-1]
    runs = [
        Run(
            net,
            Energies(by_site=net.grid == profiled and net.depth == deepest, **chosen_arrays(options)),
            options.draws,
            derived_seed(options.seed, f"grid {net.grid}, padding {net.padding}, depth {net.depth}"),
        )
        for net in nets
    ]
    # First what is not kept in pieces: a grid too large for theory is refused before anything is drawn.
    alone = [theory.far(options.far_lines, options.far_squares), theory.papers_grid(options.far_squares[-1])]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    whole = [(net, found) for net, found in zip(nets, measured, strict=True) if net.depth == deepest]
    names = list(dict.fromkeys(grid_name(net.grid) for net in nets))
    coords: dict[str, Any] = {"grid": names, "padding": list(PADDINGS), "depth": options.depths}
    dataset = xr.Dataset(
        _by_layer(whole, len(names)) | _by_depth(nets, measured, len(names)),
        coords | {"layer": range(1, deepest + 1)},
        {name: getattr(options, name) for name in ("channels", "draws")} | chosen_arrays(options),
    )
    profiles = [found for net, found in whole if net.grid == profiled]
    parts = [theory.profile(options.channels, deepest, profiled, profiles), theory.grids(nets)]
    dataset = xr.merge([dataset, *parts, *alone, theory.missing(options.seed)], combine_attrs="no_conflicts")
    dataset.attrs["provenance"] = provenance()
    return dataset


def _by_layer(whole: list[tuple[ConvNet, xr.Dataset]], grids: int) -> dict[str, Any]:
    """Label term and update energy of the deepest nets, the mean field's label term, and the allowance."""
    import numpy as np

    import meanfield as mf
    from meanfield.verification import finite_width_allowance

    dims, shape = ("grid", "padding", "layer"), (grids, len(PADDINGS), -1)
    columns = {name + end: [found[name + end].values for _, found in whole] for name in BY_LAYER for end in ENDS}
    columns["label_term_mean_field"] = [mf.predict(net, level="mean_field").label_term.values for net, _ in whole]
    columns["finite_width_allowance"] = [finite_width_allowance(net) for net, _ in whole]
    found = {name: (dims, np.array(rows).reshape(shape)) for name, rows in columns.items()}
    covariances = np.array([one["label_term_covariance"].values for _, one in whole])
    depth = covariances.shape[-1]
    return found | {
        "label_term_covariance": (
            (*dims, "layer_other"),
            covariances.reshape(grids, len(PADDINGS), depth, depth),
        )
    }


def _by_depth(nets: list[ConvNet], measured: list[xr.Dataset], grids: int) -> dict[str, Any]:
    """Learning-rate scales of all nets, and the mean field's."""
    import numpy as np

    import meanfield as mf

    columns = {name + end: [float(one[name + end]) for one in measured] for name in SCALES for end in ENDS}
    label = SCALES[1]
    columns[f"{label}_mean_field"] = [float(mf.predict(net, level="mean_field")[label]) for net in nets]
    shape = (grids, len(PADDINGS), -1)
    return {name: (("grid", "padding", "depth"), np.array(column).reshape(shape)) for name, column in columns.items()}


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
