"""How far one update of a loop's weights moves its stream: |dh_L|^2 / N against loops, residual scaling and width.

Three updates at learning rate 1: isotropic signs independent of the weights, as P2's theorem 2 has them; the aligned
sign of the true gradient, as sign-based optimizers make it; and the plain gradient. The scaling (eta eps L)^2 of the
theorem is read off as slopes in L for alpha = 1, 3/2 and 1/2 (eta enters squared, exactly, as changes are to first
order), beside the infinite-width recursion for isotropic updates; and in N, where the theorem has none.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

NAME = "looped_update"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"loops": [4, 8, 16], "width": 128, "draws": 64},
    "default": {"loops": [8, 16, 32, 64], "width": 256, "draws": 256},
    "paper": {"loops": [8, 16, 32, 64], "width": 1024, "draws": 256},
}
ALPHAS = (0.5, 1.0, 1.5)
WIDTH_FACTORS = (0.25, 0.5, 1, 2)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("loop").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops to draw, two or more")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    add("--weight-variance", type=float, default=2.0, help="sigma_W^2; W_ij has variance sigma_W^2 / N (default: 2)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import looped_update as figure
    from meanfield.common import require_counts
    from sims.looped_update import report

    loops = sorted(set(require_counts("--loops", options.loops, why="numbers of loops")))
    if len(loops) < 2:
        raise ValueError(f"--loops {loops} is one number; a slope needs two or more")
    loop = _loop(options, loops[-1], 1.0, options.width)
    run_of = {"loops": loops, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(loop=loop, **run_of), options)
    return results.deliver(lambda: _measure(options, loops, results), report.text, figure.draw)


def _loop(options: argparse.Namespace, depth: int, alpha: float, width: int) -> Any:
    from meanfield.nets import TiedLoop

    shared = {"activation": options.activation, "weight_variance": options.weight_variance}
    return TiedLoop(depth=depth, alpha=alpha, width=width, **shared)


def _measure(options: argparse.Namespace, loops: list[int], results: Results) -> xr.Dataset:
    """|dh_L|^2 / N by update, alpha and loops, and by update and width at alpha = 1; the recursion beside."""
    import numpy as np
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import UPDATES, StreamUpdates
    from meanfield.theory import log_own_energies, log_update_energies

    widths = [max(1, round(options.width * factor)) for factor in WIDTH_FACTORS]
    ladder = [(update, alpha, depth, options.width) for update, alpha, depth in product(UPDATES, ALPHAS, loops)]
    across = [(update, 1.0, loops[0], width) for update, width in product(UPDATES, widths)]
    runs = [
        Run(
            _loop(options, depth, alpha, width),
            StreamUpdates(update=update),
            options.draws,
            derived_seed(options.seed, f"{update}, alpha {alpha}, {depth} loops, width {width}"),
        )
        for update, alpha, depth, width in [*ladder, *across]
    ]
    measured = simulate_all(runs, workers=options.workers, store=results.pieces)
    top = [one.isel(step=-1) for one in measured]
    means, errors = (np.array([float(at[f"stream_update_energy{end}"]) for at in top]) for end in ("", "_stderr"))
    share = np.array([float(at["stream_update_energy_largest_share"]) for at in top])
    count, shape = len(ladder), (len(UPDATES), len(ALPHAS), len(loops))
    beside = [[_loop(options, depth, alpha, options.width) for depth in loops] for alpha in ALPHAS]
    theory = [[log_update_energies(loop)[-1] for loop in row] for row in beside]
    own = [[log_own_energies(loop)[-1] for loop in row] for row in beside]
    dims = ("update", "alpha", "loops")
    variables = {
        "update_energy": (dims, means[:count].reshape(shape)),
        "update_energy_stderr": (dims, errors[:count].reshape(shape)),
        "update_energy_largest_share": (dims, share[:count].reshape(shape)),
        "log_update_energy_mean_field": (dims[1:], np.array(theory)),
        "log_own_energy_mean_field": (dims[1:], np.array(own)),
        "by_width": (("update", "width"), means[count:].reshape(len(UPDATES), -1)),
        "by_width_stderr": (("update", "width"), errors[count:].reshape(len(UPDATES), -1)),
    }
    coords = {"update": list(UPDATES), "alpha": list(ALPHAS), "loops": loops, "width": widths}
    attrs = {name: getattr(options, name) for name in ("activation", "weight_variance", "draws")}
    attrs |= {"ladder_width": options.width, "width_loops": loops[0]}
    attrs["provenance"] = provenance()
    return xr.Dataset(variables, coords, attrs)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
