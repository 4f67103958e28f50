"""How the activation and the variance of the weights bend the depth law of the learning rate (P0 appendix F).

ReLU keeps the energy of pre-activations at any variance; GELU, SiLU and tanh do not, and with the energy their gain
per layer, sigma_W^2 E[sigma'^2], drifts. Fully-connected nets with one input, scaled so that z^(1) has variance 1, are
drawn with each activation and three weight variances sigma_W^2/fan_in: the fan-in rule 1/q, He's 2 and the energy
rule 1/E[sigma(G)^2]. Energies of pre-activations and gates are held against the mean field by layer, and eta*
over depths, extrapolated from two widths; the mean field goes on to depths that no width can follow.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from sims.common.command import add_run_options, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.execution import Run
    from meanfield.nets import MLP

NAME = "activation_drift"

PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depths": [3, 5, 8], "width": 1024, "draws": 64},
    "default": {"depths": [3, 5, 8, 12], "width": 8192, "draws": 128},
    "paper": {"depths": [3, 5, 8, 12, 18], "width": 32768, "draws": 1024},
}
# Scales are extrapolated in 1/width from the width and this part of it.
NARROW = 4
SCALES = ("learning_rate_scale", "label_learning_rate_scale")
ENERGIES = ("pre_activation_energy", "gate_energy")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument_group("network").add_argument
    add("--depths", type=int, nargs="+", metavar="L", help="depths to draw, two or more")
    add("--width", type=int, metavar="N", help=f"units of a layer; a {NARROW}th as many are drawn too")
    add("--outputs", type=int, default=100, metavar="M", help="outputs (default: 100; few blur the labels)")
    add_run_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Measure (or read what an equal run has measured), print, and write."""
    from figures import activation_drift as figure
    from meanfield.common import require_count, require_counts
    from sims.activation_drift import report, theory

    depths = sorted(set(require_counts("--depths", options.depths, why="depths of the nets that are drawn")))
    if len(depths) < 2:
        raise ValueError(f"--depths {depths} is one number; a slope needs two or more")
    if depths[-1] > theory.FAR:
        raise ValueError(f"--depths reach {depths[-1]}; the mean field beside them is followed to {theory.FAR} layers")
    require_count("--width", options.width, minimum=NARROW, why=f"a {NARROW}th as many units are drawn too")
    nets = theory.nets(options.width, options.outputs)
    run_of = {"depths": depths, "draws": options.draws, "seed": options.seed}
    results = Results(NAME, run_key(nets=nets, **run_of), options)
    return results.deliver(lambda: _measure(options, nets, depths, results), report.text, figure.draw)


def _measure(options: argparse.Namespace, nets: dict[str, MLP], depths: list[int], results: Results) -> xr.Dataset:
    """Scales by case, width and depth; energies by case and layer of the deepest wide nets; the mean field of all."""
    import xarray as xr

    from meanfield.execution import provenance, simulate_all
    from sims.activation_drift import theory

    widths = [options.width // NARROW, options.width]
    runs = [_run(options, case, replace(nets[case], depth=d, width=n)) for case, n, d in product(nets, widths, depths)]
    measured = dict(zip(product(nets, widths, depths), simulate_all(runs, **_means(options, results)), strict=True))
    variables: dict[str, Any] = {}
    for name, end in product(SCALES, ("", "_stderr", "_largest_share")):
        at = [[[float(measured[case, n, d][name + end]) for d in depths] for n in widths] for case in nets]
        variables[name + end] = (("case", "width", "depth"), at)
    deepest = [measured[case, options.width, depths[-1]] for case in nets]
    for name, end in product(ENERGIES, ("", "_stderr", "_largest_share")):
        variables[name + end] = (("case", "layer"), [one[name + end].values for one in deepest])
    layer = list(range(1, depths[-1] + 1))
    attrs = {name: getattr(options, name) for name in ("outputs", "draws")}
    attrs["provenance"] = provenance()
    coords = {"case": list(nets), "width": widths, "depth": depths, "layer": layer}
    return xr.merge(
        [xr.Dataset(variables, coords, attrs), theory.predicted(nets, depths[-1])], combine_attrs="override"
    )


def _run(options: argparse.Namespace, case: str, net: MLP) -> Run:
    from meanfield.common import derived_seed
    from meanfield.execution import Run
    from meanfield.simulation import ActivationStatistics

    seed = derived_seed(options.seed, f"{case}, {net.depth} layers of {net.width}")
    return Run(net, ActivationStatistics(), options.draws, seed)


def _means(options: argparse.Namespace, results: Results) -> dict[str, Any]:
    return {"workers": options.workers, "store": results.pieces}


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
