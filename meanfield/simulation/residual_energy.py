"""What one draw of a loop says about its residual energy, H_l = H_0 + B_l + C_l (P2 eq. 2).

With eps the step size, r_s the increment that makes h_s of h_{s-1} and R_l = r_1 + .. + r_l,

    B_l = (2 eps / N) <h_0, R_l>,   C_l = (eps^2 / N) |R_l|^2.

Both are read off R_l, never off a difference of energies, so that the split is a check of the numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.tied_loop import TiedLoop
from meanfield.seeds import stream
from meanfield.simulation.loop_walk import Step, draw_start, step_matrices, walk

Array = NDArray[np.float64]

# The powers of 2^k in which a draw's numbers are given, k being its ``binary_exponent`` at that step.
POWERS = {"residual_energy": 2, "cross_term": 1, "correlation_term": 2}


def draw_residual_energies(
    loop: TiedLoop,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    correlations: bool = False,
) -> dict[str, Array]:
    """initial_energy (D,), and residual_energy, cross_term and correlation_term (D, L) of every draw.

    In units of 2^(p k) with k = ``binary_exponent`` (D, L) and p from `POWERS`: k is 0 unless a stream nears the end of
    the floats. With ``correlations``, also increment_correlation and feature_overlap (D, L, L), in units of
    2^(k_s + k_t).

    Raises:
        OverflowError: a single step, or a smooth activation, leaves the range of floats all the same.
    """
    start = draw_start(loop, [stream(seed, "inputs", draw) for draw in draws], inputs)
    generators = [stream(seed, "weights", draw) for draw in draws]
    matrices = step_matrices(loop, generators, weights, right=1, left=0)
    found = {name: np.empty((len(draws), loop.depth)) for name in (*POWERS, "binary_exponent")}
    found["initial_energy"] = _energy(start)
    rows = [np.empty((len(draws), loop.depth, loop.width)) for _ in range(2 * correlations)]
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        for index, step in enumerate(walk(loop, matrices, start)):
            _read_off(loop, start, step, found, index)
            for kept, vectors in zip(rows, (step.increment, step.features), strict=False):
                kept[:, index] = vectors
        for name, kept in zip(("increment_correlation", "feature_overlap"), rows, strict=False):
            found[name] = kept @ kept.swapaxes(1, 2) / loop.width
    require_finite(found)
    return found


def _read_off(loop: TiedLoop, start: Array, step: Step, found: dict[str, Array], index: int) -> None:
    eps = loop.step_size
    found["residual_energy"][:, index] = _energy(step.stream)
    found["cross_term"][:, index] = 2 * eps * np.vecdot(start, step.total) / loop.width
    found["correlation_term"][:, index] = eps**2 * _energy(step.total)
    found["binary_exponent"][:, index] = step.exponent


def require_finite(found: dict[str, Array]) -> None:
    """Raise OverflowError rather than hand on a number that left the range of floats."""
    for name, values in found.items():
        if not np.isfinite(values).all():
            raise OverflowError(
                f"{name} leaves the range of floats; take a larger alpha, a smaller depth or a smaller weight_variance"
            )


def _energy(vectors: Array) -> Array:
    """|v|^2 / N of every draw."""
    return np.asarray(np.vecdot(vectors, vectors) / vectors.shape[1])
