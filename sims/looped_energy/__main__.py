"""Residual energy of weight-tied loops against the number of loops, beside deep stacks with a matrix for every step.

Draws H_L = |h_L|^2 / N for three residual scalings (none, 1/sqrt(L), 1/L) over numbers of loops L, in the layout of
P2's figure 1, and holds them against the infinite-width covariance recursion, which is followed to thousands of loops;
then the correlations of the increments (P2's figure 2), and the size of the cross term against the width.
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

NAME = "looped_energy"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"loops": [1, 2, 4, 8, 16], "width": 256, "draws": 64, "far": 128},
    "default": {"loops": [1, 2, 4, 8, 16, 32, 64], "width": 512, "draws": 256, "far": 4096},
    "paper": {"loops": [1, 2, 4, 8, 16, 32, 64], "width": 2048, "draws": 1024, "far": 4096},
}
MODELS = ("looped", "deep")
SCALINGS = ("none", "sqrt", "linear")
# Steps whose increments are correlated with each other, and widths over which the cross term is followed.
HEATMAP_LOOPS = 24
CROSS_LOOPS = 16
CROSS_WIDTHS = (64, 128, 256, 512)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("loop").add_argument
    add("--loops", type=int, nargs="+", metavar="L", help="numbers of loops to draw, three or more")
    add("--far", type=int, metavar="L", help="loops to which theory is followed, by doubling")
    add("--width", type=int, metavar="N", help="units of the stream")
    add("--activation", default="relu", help="relu (default), linear, gelu or tanh")
    add("--weight-variance", type=float, default=2.0, help="sigma_W^2; W_ij has variance sigma_W^2 / N (default: 2)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import looped_energy as figure
    from meanfield.common import MOST_LAYERS, require_count, require_counts
    from sims.looped_energy import report

    loops = sorted(set(require_counts("--loops", options.loops, maximum=MOST_LAYERS, why="numbers of loops")))
    if len(loops) < 3:
        raise ValueError(f"--loops {loops}: growth laws need three numbers of loops or more")
    why = "theory goes at least as far as the draws"
    require_count("--far", options.far, minimum=loops[-1], maximum=MOST_LAYERS, why=why)
    run_of = {"loops": loops, "far": options.far, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(loop=_loop(options, loops[-1]), **run_of), options)
    return results.deliver(lambda: _measure(options, loops, results), report.text, figure.draw)


def _loop(options: argparse.Namespace, depth: int, model: str = "looped", alpha: str = "linear", **more: Any) -> Any:
    """One loop, or one deep stack, with the options' other numbers."""
    from meanfield.nets import TiedLoop

    shared = {"width": options.width, "activation": options.activation, "weight_variance": options.weight_variance}
    return TiedLoop(depth=depth, alpha=alpha, tied=model == "looped", **(shared | more))


def _measure(options: argparse.Namespace, loops: list[int], results: Results) -> xr.Dataset:
    """Everything that is drawn, in one go on one set of workers, with theory beside (NAME_mean_field)."""
    import xarray as xr

    from meanfield.common import derived_seed
    from meanfield.execution import Run, provenance, simulate_all
    from meanfield.simulation import ResidualEnergies

    def planned(loop: Any, label: str, **more: Any) -> Run:
        return Run(loop, ResidualEnergies(**more), options.draws, derived_seed(options.seed, label))

    ladder = [
        planned(_loop(options, depth, model, scaling), f"{model}, {scaling}, {depth} loops")
        for model, scaling, depth in product(MODELS, SCALINGS, loops)
    ]
    pairs = [
        planned(_loop(options, HEATMAP_LOOPS, model, scaling), f"{model} correlations", correlations=True)
        for model, scaling in zip(MODELS, ("linear", "sqrt"), strict=True)
    ]
    widths = [planned(_loop(options, CROSS_LOOPS, width=width), f"width {width}") for width in CROSS_WIDTHS]
    measured = simulate_all([*ladder, *pairs, *widths], workers=options.workers, store=results.pieces)
    energies, rest = measured[: len(ladder)], measured[len(ladder) :]
    parts = [
        _energies(energies, [run.net for run in ladder], loops),
        _far(options),
        _heatmaps(rest[:2], [run.net for run in pairs]),
        _cross_terms(rest[2:], options.draws),
    ]
    attrs = {name: getattr(options, name) for name in ("width", "activation", "weight_variance", "draws")}
    attrs["provenance"] = provenance()
    return xr.merge(parts).assign_attrs(attrs)


def _energies(measured: list[xr.Dataset], drawn: list[Any], loops: list[int]) -> xr.Dataset:
    """ln H_L and ln C_L of every model, scaling and number of loops: drawn, its error, and the mean field's."""
    import numpy as np
    import xarray as xr

    import meanfield as mf

    shape, dims = (len(MODELS), len(SCALINGS), len(loops)), ("model", "scaling", "loops")
    theory = [mf.predict(loop, level="mean_field") for loop in drawn]
    columns = {
        "log_energy": [float(one["log_residual_energy"][-1]) for one in measured],
        "log_energy_stderr": [float(one["log_residual_energy_stderr"][-1]) for one in measured],
        "log_energy_mean_field": [float(one["log_residual_energy"][-1]) for one in theory],
        "correlation_term": [float(one["correlation_term"][-1]) for one in measured],
        "correlation_term_stderr": [float(one["correlation_term_stderr"][-1]) for one in measured],
        "log_correlation_term_mean_field": [float(one["log_correlation_term"][-1]) for one in theory],
        "largest_share": [float(one["residual_energy_largest_share"][-1]) for one in measured],
    }
    variables = {name: (dims, np.array(values).reshape(shape)) for name, values in columns.items()}
    return xr.Dataset(variables, {"model": list(MODELS), "scaling": list(SCALINGS), "loops": loops})


def _far(options: argparse.Namespace) -> xr.Dataset:
    """ln H_L of the mean field at 1, 2, 4, ... loops."""
    import numpy as np
    import xarray as xr

    import meanfield as mf

    far = [2**power for power in range(options.far.bit_length())]
    values = [
        [
            [
                float(mf.predict(_loop(options, depth, model, scaling), level="mean_field")["log_residual_energy"][-1])
                for depth in far
            ]
            for scaling in SCALINGS
        ]
        for model in MODELS
    ]
    return xr.Dataset({"log_energy_far": (("model", "scaling", "far_loops"), np.array(values))}, {"far_loops": far})


def _heatmaps(measured: list[xr.Dataset], drawn: list[Any]) -> xr.Dataset:
    """Correlation of increments, <r_s, r_t> / (|r_s| |r_t|) in mean: looped under 1/L, deep under 1/sqrt(L)."""
    import numpy as np
    import xarray as xr

    import meanfield as mf

    def normalised(matrices: list[Any]) -> Any:
        return [matrix / np.sqrt(np.outer(np.diagonal(matrix), np.diagonal(matrix))) for matrix in matrices]

    means = [one["increment_correlation"].values for one in measured]
    theory = [mf.predict(loop, level="mean_field", correlations=True)["increment_correlation"].values for loop in drawn]
    stderr = [
        one["increment_correlation_stderr"].values / np.sqrt(np.outer(np.diagonal(mean), np.diagonal(mean)))
        for one, mean in zip(measured, means, strict=True)
    ]
    dims = ("model", "increment", "increment_other")
    return xr.Dataset(
        {
            "increment_correlation": (dims, np.array(normalised(means))),
            "increment_correlation_stderr": (dims, np.array(stderr)),
            "increment_correlation_mean_field": (dims, np.array(normalised(theory))),
        },
        {"model": list(MODELS)},
    )


def _cross_terms(measured: list[xr.Dataset], draws: int) -> xr.Dataset:
    """Standard deviation of one draw of B_L by width, with its error for a Gaussian."""
    import numpy as np
    import xarray as xr

    spread = np.array([float(one["cross_term_stderr"][-1]) * np.sqrt(draws) for one in measured])
    variables = {
        "cross_term_spread": ("cross_width", spread),
        "cross_term_spread_stderr": ("cross_width", spread / np.sqrt(2 * (draws - 1))),
    }
    return xr.Dataset(variables, {"cross_width": list(CROSS_WIDTHS)})


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
