"""The exact level: every quantity at finite width, for fully-connected nets whose gates are fair coins or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.nets.directions import Pair, checked_pairs, pair_name
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.residual import Residual
from meanfield.theory.exact.closure import GATES
from meanfield.theory.exact.pair_overlaps import pair_moments
from meanfield.theory.exact.plain import exact_terms, label_spread, relative_spread
from meanfield.theory.exact.residual import exact_residual_terms
from meanfield.theory.levels.base import NetLevel, Options, log_mean, with_logarithms

WITHIN_BLOCKS = (
    "overlaps of pairs and spreads are predicted for plain nets; this is a {kind}, in which directions inside a block "
    "meet the stream too: leave them out, or take an MLP"
)


class ExactLevel(NetLevel):
    """Exact expectations, of pairs of directions and spreads too in plain nets.

    It needs one fully-connected input, normalised as its law says, weights under the fan-in rule, and gates that the
    closure engine can average: none at all, or in plain nets fair coins.
    """

    name = "exact"
    whose = (
        "fully-connected nets with one input of their own law, of activation 'relu' or 'linear' (residual ones: "
        "'linear') and without a weight_variance"
    )
    refusals: ClassVar[Mapping[str, str]] = {**NetLevel.refusals, "pairs": WITHIN_BLOCKS, "spread": WITHIN_BLOCKS}

    def has(self, net: Sequential, inputs: Array | None) -> bool:
        one_input = not net.grid and net.inputs == 1 and inputs is None
        gates = ("linear",) if net.has_skips else GATES
        return one_input and net.activation in gates and net.weight_variance is None

    def takes(self, net: Sequential, options: Options) -> set[str]:
        return set() if net.has_skips else {"pairs", "spread"}

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        pairs = () if options.pairs is None else checked_pairs(net, options.pairs)
        values = _energies(net)
        if pairs:
            values |= _overlaps(net, pairs)
        if options.spread:
            values["overlap_energy_relative_spread"] = relative_spread(net)
            values["label_term_relative_spread"] = label_spread(net)
        coords = {"pair": [pair_name(pair) for pair in pairs]} if pairs else None
        return self.dataset(net, options, values, coords=coords)


def _energies(net: Sequential) -> dict[str, Array]:
    terms = exact_residual_terms(net) if isinstance(net, Residual) else exact_terms(net)
    update = np.logaddexp(terms.label_term, terms.output_term)
    mean_update = log_mean(update)
    logs = {
        "overlap_energy": terms.overlap_energy,
        "label_term": terms.label_term,
        "output_term": terms.output_term,
        "update_energy": update,
        "mean_update_energy": mean_update,
        "learning_rate_scale": -0.5 * mean_update,
        "label_learning_rate_scale": -0.5 * log_mean(terms.label_term),
    }
    return with_logarithms(logs)


def _overlaps(net: Sequential, pairs: tuple[Pair, ...]) -> dict[str, Array]:
    """Mean, second moment and conditional variance of every pair's overlap: (pairs, L)."""
    moments = [pair_moments(net, pair) for pair in pairs]
    logs = {
        "squared_overlap": np.stack([pair.log_square for pair in moments]),
        "overlap_variance": np.stack([pair.log_variance for pair in moments]),
    }
    return {"overlap": np.stack([pair.mean for pair in moments])} | with_logarithms(logs)
