"""Both sides of every statement, in numbers."""

import argparse
import json
from math import prod
from typing import Any

import xarray as xr

from meanfield.common import require_count
from meanfield.nets import MLP
from meanfield.verification import aggregators, label_average, layer_norm
from sims.common.datasets import over
from sims.common.results import Results

# Central differences move every weight alone, in a copy of all: the cost is the square of their number.
MOST_WEIGHTS = 100_000


def planned(options: argparse.Namespace) -> dict[str, Any]:
    """The net."""
    if require_count("--outputs", options.outputs) > 12:
        raise ValueError(f"--outputs is {options.outputs}; all 2^M labels are enumerated, so give 12 or fewer")
    net = MLP(depth=options.depth, width=options.width, outputs=options.outputs)
    if (moved := sum(prod(shape) for shape in net.weight_shapes)) > MOST_WEIGHTS:
        raise ValueError(f"the net has {moved:,} weights, each of which is moved alone; lower --depth or --width")
    return {"net": net}


def measure(options: argparse.Namespace, results: Results, net: MLP) -> xr.Dataset:
    """All numbers that are shown; the examples are found again from the seed."""
    violations = aggregators.worst_violations(aggregators.AGGREGATORS, options.seed)
    axes = {"aggregator": list(violations), "property": list(violations["arithmetic"])}
    searched = [{"violation": by_kind[kind]} for by_kind in violations.values() for kind in axes["property"]]
    ratios = [layer_norm.norm_ratio(example) for example in layer_norm.examples(options.seed)]
    examples = xr.Dataset({"norm_ratio": ("example", ratios)})
    dataset = xr.merge([label_average(net, options.seed), over(axes, searched), examples], combine_attrs="override")
    return dataset.assign_attrs(architecture=json.dumps(net.describe()))
