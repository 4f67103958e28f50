"""Statements of the papers that are identities, or are not: each checked to rounding on examples, without statistics.

The split of the update energy by an average over labels, with its prefactor (P0 lemma 2), by enumeration of all labels
and by central differences over all parameters of a small net; the mean that is consistent when layers are regrouped
(P0 appendix A), by a search for counterexamples; LayerNorm's Jacobian and the bound on its norm (P0 lemma 7).
"""

from __future__ import annotations

import argparse
import sys
from math import prod
from typing import TYPE_CHECKING, Any

from sims.common.command import add_output_options, add_preset_option, command_parser, fill_from_preset, run_command
from sims.common.results import Results, run_key

if TYPE_CHECKING:
    import xarray as xr

NAME = "identities"
PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {"depth": 2, "width": 4, "outputs": 2},
    "default": {"depth": 4, "width": 8, "outputs": 3},
    "paper": {"depth": 8, "width": 24, "outputs": 8},
}
# Central differences move every weight alone, in a copy of all: the cost is the square of their number.
MOST_WEIGHTS = 100_000


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = command_parser(NAME, __doc__, presets=PRESETS)
    add = parser.add_argument
    add_preset_option(parser, PRESETS)
    add("--depth", type=int, metavar="L", help="hidden layers of the net")
    add("--width", type=int, metavar="N", help="units of its layers")
    add("--outputs", type=int, metavar="M", help="its outputs, of 2^M labels of +-1 (at most 12)")
    add("--seed", type=int, default=0, help="of the net and of all examples (default: 0)")
    add_output_options(parser)
    options = parser.parse_args(argv)
    fill_from_preset(options, PRESETS[options.preset])
    return options


def run(options: argparse.Namespace) -> int:
    """Compute (or read what an equal run has computed), print, and write."""
    from figures import identities as figure
    from meanfield.common import require_count
    from meanfield.nets import MLP
    from sims.identities import report

    require_count("--seed", options.seed, minimum=0)
    if require_count("--outputs", options.outputs) > 12:
        raise ValueError(f"--outputs is {options.outputs}; all 2^M labels are enumerated, so give 12 or fewer")
    net = MLP(depth=options.depth, width=options.width, outputs=options.outputs)
    if (moved := sum(prod(shape) for shape in net.weight_shapes)) > MOST_WEIGHTS:
        raise ValueError(f"the net has {moved:,} weights, each of which is moved alone; lower --depth or --width")
    results = Results(NAME, run_key(net=net, seed=options.seed), options)
    return results.deliver(lambda: _computed(net, options.seed), report.text, figure.draw)


def _computed(net: Any, seed: int) -> xr.Dataset:
    """All numbers that are shown, and the seed from which the examples are found again."""
    import json

    import numpy as np
    import xarray as xr

    from meanfield.execution import provenance
    from meanfield.verification import aggregators, label_average, layer_norm

    violations = aggregators.worst_violations(aggregators.AGGREGATORS, seed)
    kinds = list(violations["arithmetic"])
    table = np.array([[by_kind[kind] for kind in kinds] for by_kind in violations.values()])
    ratios = [layer_norm.norm_ratio(example) for example in layer_norm.examples(seed)]
    searched = xr.Dataset(
        {"violation": (("aggregator", "property"), table), "norm_ratio": ("example", ratios)},
        {"aggregator": list(violations), "property": kinds},
    )
    attrs = {"architecture": json.dumps(net.describe()), "provenance": provenance()}
    return xr.merge([label_average(net, seed), searched], combine_attrs="override").assign_attrs(attrs)


def main(argv: list[str] | None = None) -> int:
    return run_command(run, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
