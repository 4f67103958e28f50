"""What one draw of a residual stream says about its residual energy, H_l = H_0 + B_l + C_l (P2 eq. 2).

With R_l = h_l - h_0 = sum_{s <= l} eps r_s, summed from the increments r_s and the multipliers eps of the units, and N
the numbers of a stream,

    B_l = (2 / N) <h_0, R_l>,   C_l = |R_l|^2 / N.

Both are read off R_l, never off a difference of energies, so that the split is a check of the numbers. Any residual
stream is served (`meanfield.simulation.walk`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common.arrays import Array
from meanfield.common.digests import inputs_described
from meanfield.common.estimates import Means, summarise_each
from meanfield.common.seeds import stream
from meanfield.common.validation import require_flag
from meanfield.nets.net import Net
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.inputs import stream_starts
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.stream_cost import StreamCost, StreamMeasure, residual_energy_cost
from meanfield.simulation.walk import Step, walk
from meanfield.simulation.weights.in_turn import DrawnInTurn

# The powers of 2^k in which a draw's numbers are given, k being its ``binary_exponent`` at that step.
POWERS = {"residual_energy": 2, "cross_term": 1, "correlation_term": 2}


@dataclass(frozen=True, kw_only=True)
class ResidualEnergies(StreamMeasure):
    """The residual energy of every step and its split; the arguments are those of `meanfield.simulate`."""

    inputs: Any = None
    weights: str = "auto"
    correlations: bool = False

    def settled(self, net: Net) -> Self:
        require_flag("correlations", self.correlations)
        return super().settled(net)

    def cost(self, net: Net) -> StreamCost:
        return residual_energy_cost(net, self.correlations)

    def require_memory(self, net: Net, draws: int, workers: int) -> None:
        """As every measure, and unless this process can hold all that they find."""
        matrices = 3 * self.correlations * 2 * len(net.units) ** 2  # as drawn, with their exponents, and scaled
        self.cost(net).require_memory(workers, draws, self.kind(net), draws * matrices)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        return draw_residual_energies(net, seed, draws, self.inputs, self.kind(net), self.correlations)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        exponent, found = values["binary_exponent"].astype(np.int64), {}
        for name, value in values.items():
            if name == "binary_exponent":
                continue
            found[name], logarithm = _scaled_means(value, _units(name, value, exponent))
            if name == "residual_energy":
                found["log_residual_energy"] = logarithm
        own = inputs_described(self.inputs) | {"weights": self.kind(net)}
        return measured_dataset(net, found, dict(attrs) | own)


def draw_residual_energies(
    net: Net,
    seed: int,
    draws: range,
    inputs: Array | None = None,
    weights: str = "dense",
    correlations: bool = False,
) -> dict[str, Array]:
    """initial_energy (D,), and residual_energy, cross_term and correlation_term (D, L) of every draw, L units.

    In units of 2^(p k) with k = ``binary_exponent`` (D, L) and p from `POWERS`: k is 0 unless a stream nears the end of
    the floats. With ``correlations``, also increment_correlation and feature_overlap (D, L, L), in units of
    2^(k_s + k_t): all increments, and all features, of one size.

    Raises:
        ValueError: a net that is no residual stream. OverflowError: a single step, or a smooth activation, leaves the
            range of floats all the same.
    """
    start = stream_starts(net, [stream(seed, "inputs", draw) for draw in draws], inputs)
    matrices = DrawnInTurn(net, [stream(seed, "weights", draw) for draw in draws], weights, right=1, left=0)
    found = {name: np.empty((len(draws), len(net.units))) for name in (*POWERS, "binary_exponent")}
    found["initial_energy"] = energy(start)
    increments: list[Array] = []
    features: list[Array] = []
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        for index, step in enumerate(walk(net, matrices, start)):
            _read_off(start, step, found, index)
            if correlations:
                increments.append(_flat(step.increment))
                features.append(_flat(step.features))
        if correlations:
            found |= {"increment_correlation": _overlaps(increments), "feature_overlap": _overlaps(features)}
    require_finite(found)
    return found


def _read_off(start: Array, step: Step, found: dict[str, Array], index: int) -> None:
    total = _flat(step.total)
    found["residual_energy"][:, index] = energy(step.stream)
    found["cross_term"][:, index] = 2 * np.vecdot(_flat(start), total) / total.shape[1]
    found["correlation_term"][:, index] = energy(total)
    found["binary_exponent"][:, index] = step.exponent


def _overlaps(vectors: list[Array]) -> Array:
    """<v_s, v_t> / N of all pairs of steps, (D, L, L)."""
    if len(sizes := {vector.shape[1] for vector in vectors}) > 1:
        raise ValueError(f"correlations overlap increments, and features, of one size; sizes here are {sorted(sizes)}")
    rows = np.stack(vectors, axis=1)
    return np.asarray(rows @ rows.swapaxes(1, 2) / rows.shape[2])


def require_finite(found: dict[str, Array]) -> None:
    """Raise OverflowError rather than hand on a number that left the range of floats."""
    for name, values in found.items():
        if not np.isfinite(values).all():
            raise OverflowError(
                f"{name} leaves the range of floats; take a larger alpha, a smaller depth or a smaller weight_variance"
            )


def energy(values: Array) -> Array:
    """|v|^2 / N of every draw."""
    vectors = _flat(values)
    return np.asarray(np.vecdot(vectors, vectors) / vectors.shape[1])


def _flat(values: Array) -> Array:
    """The numbers of every draw, (D, N)."""
    return values.reshape(len(values), -1)


def _units(name: str, value: Array, exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """The powers of two that a measure's numbers are multiples of, given those of the stream, (D, L)."""
    if value.ndim == 1:
        return np.zeros(len(value), dtype=np.int64)
    return POWERS[name] * exponent if value.ndim == 2 else exponent[:, :, None] + exponent[:, None, :]


def _scaled_means(values: Array, exponent: NDArray[np.int64]) -> tuple[Means, Means]:
    """Means over draws of 2^exponent values, and of the logarithm of each mean with its relative error.

    A mean beyond the range of floats is infinite, as is its error; its logarithm stays finite.
    """
    common = exponent.max(axis=0)
    relative = summarise_each(np.ldexp(values, exponent - common))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        plain = Means(np.ldexp(relative.mean, common), np.ldexp(relative.stderr, common), relative.largest_share)
        logarithm = np.log(relative.mean) + common * np.log(2.0)
        return plain, Means(logarithm, relative.stderr / np.abs(relative.mean), relative.largest_share)
