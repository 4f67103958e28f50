"""The levels of theory of loops: energies of the stream by step, and what every two steps share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import log
from typing import ClassVar

import numpy as np
import xarray as xr

from meanfield.common.machine import NUMBER_BYTES, require_bytes
from meanfield.common.validation import Array
from meanfield.nets.loop import Loop
from meanfield.quantities.registry import with_logarithms
from meanfield.theory.levels.base import REFUSED, Level, Options
from meanfield.theory.loops import has_closed_energy, log_correlation_law, pair_averages, steps
from meanfield.theory.mean_field.sampled_loops import loop_step_refusal, loop_step_terms

# Square arrays over pairs of steps that a prediction holds at once: two quantities and their logarithms.
STEP_PAIR_ARRAYS = 4
OF_NETS = (
    "inputs, batch, loss, pairs, spread and by_site are for nets; a loop starts from h_0 ~ N(0, I): leave them out"
)


class LoopLevel(Level):
    """A level of theory for loops, which finds logarithms by step or pair of steps."""

    family = Loop
    refusals: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("inputs", "batch", "loss", "pairs", "spread", "by_site"), OF_NETS),
        "correlations": "correlations of steps are predicted at level 'mean_field' alone; level is {level!r}",
        **REFUSED,
    }

    def predict(self, net: Loop, options: Options) -> xr.Dataset:
        logs = self._logs(net, options.correlations)
        energies = {"initial_energy": np.zeros(()), "residual_energy": np.logaddexp(0.0, logs["correlation_term"])}
        values = with_logarithms(energies | logs) | {"cross_term": np.zeros(net.depth)}
        return self.dataset(net, options, values)

    @abstractmethod
    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        """Quantities but the stream's energies, by name."""


class LoopLawLevel(LoopLevel):
    """The closed form of the mean field, where there is one."""

    name = "law"
    whose = "loops of 'linear', and of 'relu' with independent steps"

    def has(self, net: Loop, inputs: Array | None) -> bool:
        return has_closed_energy(net)

    def takes(self, net: Loop, options: Options) -> set[str]:
        return set()

    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        return {"correlation_term": log_correlation_law(loop)}


class LoopMeanFieldLevel(LoopLevel):
    """The covariance of the stream at infinite width."""

    name = "mean_field"
    whose = "all loops"

    def serves(self, net: Loop, options: Options) -> str | None:
        if "optimizer" in options.asked:
            if options.correlations:
                return "correlations are those of steps before anything moves: leave correlations or optimizer out"
            if why := loop_step_refusal(net, options.step):
                return why
        return super().serves(net, options)

    def takes(self, net: Loop, options: Options) -> set[str]:
        return {"optimizer", "scales"} if "optimizer" in options.asked else {"correlations"}

    def predict(self, net: Loop, options: Options) -> xr.Dataset:
        if "optimizer" not in options.asked:
            return super().predict(net, options)
        terms = loop_step_terms(net, options.step)
        return self.dataset(net, options, terms.values, {"optimizer": options.step.name} | dict(terms.attrs))

    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        """The logarithms by step and, if asked for, by pair of steps; step s is the increment that makes h_s of
        h_{s-1}."""
        if correlations:
            needed = STEP_PAIR_ARRAYS * NUMBER_BYTES * loop.depth**2
            require_bytes(needed, "the correlation of all pairs of steps", "depth, or leave correlations out")
        term, features = np.empty(loop.depth), np.empty((loop.depth, loop.depth) if correlations else 0)
        for index, step in enumerate(steps(loop)):
            term[index] = step.correlation[-1]
            if correlations:
                row = step.features if loop.tied else _independent_features(loop, term[:index])
                features[index, : index + 1] = features[: index + 1, index] = row
        if not correlations:
            return {"correlation_term": term}
        # Increments share what their features share if they have one matrix, and nothing if they have two.
        shared = features if loop.tied else np.where(np.eye(loop.depth, dtype=bool), features, -np.inf)
        increments = shared + log(loop.weight_variance)
        return {"correlation_term": term, "feature_overlap": features, "increment_correlation": increments}


def _independent_features(loop: Loop, terms: Array) -> Array:
    """ln E[phi(h_l) phi(h_t)], t = 0 .. l, where Q_lt = H_t, from ln C_1 .. ln C_l."""
    energies = np.logaddexp(0.0, np.concatenate([[-np.inf], terms]))
    return pair_averages(loop).features(energies, energies)
