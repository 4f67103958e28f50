"""What `predict` says of loops: energies of the stream by step, and what every two steps share."""

from __future__ import annotations

from math import log

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.machine_memory import NUMBER_BYTES, require_bytes
from meanfield.nets.families.loop import Loop
from meanfield.theory.logarithms import with_logarithms
from meanfield.theory.loops.averages import pair_averages
from meanfield.theory.loops.covariance import steps
from meanfield.theory.loops.laws import has_closed_energy, log_correlation_law

# Square arrays over pairs of steps that a prediction holds at once: two quantities and their logarithms.
STEP_PAIR_ARRAYS = 4


def loop_levels(loop: Loop) -> tuple[str, ...]:
    """The levels that this loop has."""
    return ("mean_field", "law") if has_closed_energy(loop) else ("mean_field",)


def loop_values(loop: Loop, level: str, correlations: bool) -> dict[str, Array]:
    """Quantities of the registry by name, for one of the `loop_levels`."""
    if correlations and level != "mean_field":
        raise ValueError(f"correlations of steps are predicted at level 'mean_field' alone; level is {level!r}")
    if correlations:
        needed = STEP_PAIR_ARRAYS * NUMBER_BYTES * loop.depth**2
        require_bytes(needed, "the correlation of all pairs of steps", "depth, or leave correlations out")
    found = {"correlation_term": log_correlation_law(loop)} if level == "law" else _mean_field(loop, correlations)
    energies = {"initial_energy": np.zeros(()), "residual_energy": np.logaddexp(0.0, found["correlation_term"])}
    return with_logarithms(energies | found) | {"cross_term": np.zeros(loop.depth)}


def _mean_field(loop: Loop, correlations: bool) -> dict[str, Array]:
    """Logarithms by step and, if asked for, by pair of steps; step s is the increment that makes h_s of h_{s-1}."""
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
