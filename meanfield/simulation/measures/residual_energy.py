"""What one draw of a residual stream says about its residual energy, H_l = H_0 + B_l + C_l (Wang et al. 2026, eq. 2).

With R_l = h_l - h_0 = sum_{s <= l} eps r_s, summed from the increments r_s and the multipliers eps of the units, and N
the numbers of a stream,

    B_l = (2 / N) <h_0, R_l>,   C_l = |R_l|^2 / N.

Both are read off R_l, never off a difference of energies, so that the split is a check of the numbers. Any residual
stream is served (`meanfield.simulation.walk`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from meanfield.common.arrays import Array
from meanfield.common.estimates import Means, summarise_each
from meanfield.common.machine import NUMBER_BYTES
from meanfield.common.seeds import streams_of_draws
from meanfield.common.validation import require_flag
from meanfield.nets.net import Net
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.inputs import stream_starts
from meanfield.simulation.measures.base import Pieces
from meanfield.simulation.measures.stream_cost import StreamCost, StreamMeasure
from meanfield.simulation.walk import Step, stream_start, units_below, walk
from meanfield.simulation.weights.in_turn import DrawnInTurn

if TYPE_CHECKING:
    import xarray as xr

# The powers of 2^k in which a draw's numbers are given, k being its ``binary_exponent`` at that step.
POWERS = {"residual_energy": 2, "cross_term": 1, "correlation_term": 2}


@dataclass(frozen=True, kw_only=True)
class ResidualEnergies(StreamMeasure):
    """The residual energy H_l = H_0 + B_l + C_l of every step of a loop or a residual stream, by walking it.

    Steps are the units that add to the stream. Where others stand below them, such as the embedding of a Transformer
    with a vocabulary, these make h_0 of the inputs; a readout above is not looked at.

    Args:
        inputs: of all draws, (width,) or (samples, channels, *grid), instead of N(0, I), or of tokens drawn uniformly.
        weights: "dense", "lazy", or "auto", the cheaper of both.
        correlations: whether to measure how increments and features of all pairs of steps overlap, too.

    Gives over ``step`` = 1 .. L residual_energy, initial_energy, cross_term and correlation_term, and with
    ``correlations`` increment_correlation and feature_overlap over pairs of steps. Streams may outgrow the floats: such
    a mean and its error read inf, and log_residual_energy, the logarithm of the mean of H_l with its relative error,
    stays finite.

    Raises:
        TypeError, ValueError: a net that is no residual stream, an unknown kind of weights, inputs of another shape.
        OverflowError: a single step, or a stream under an activation that is not homogeneous, outgrows the floats.

    Source: Wang et al. 2026, eqs. 1, 2.
    """

    inputs: Any = None
    weights: str = "auto"
    correlations: bool = False

    def settled(self, net: Net) -> Self:
        require_flag("correlations", self.correlations)
        return super().settled(net)

    def stream_cost(self, net: Net) -> StreamCost:
        steps, numbers = len(net.units) - units_below(net), net.value_channels[-1] * net.places
        rows, pairs = 2 * steps * numbers, 2 * steps**2
        extra = self.correlations * (rows + pairs), self.correlations * 2.0 * pairs * numbers
        return StreamCost(net, 1, 0, False, *extra)

    def result_bytes(self, net: Net, draws: int) -> int:
        """Of the matrices of correlations: as drawn, with their exponents, and scaled."""
        return NUMBER_BYTES * draws * 3 * self.correlations * 2 * len(net.units) ** 2

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """initial_energy (D,), and residual_energy, cross_term and correlation_term (D, L) of every draw, L steps.

        In units of 2^(p k) with k = ``binary_exponent`` (D, L) and p from `POWERS`: k is 0 unless a stream nears the
        end of the floats. With ``correlations``, also increment_correlation and feature_overlap (D, L, L), in units of
        2^(k_s + k_t): all increments, and all features, must be of one size.

        Raises:
            ValueError: a net that is no residual stream.
            OverflowError: a single step, or a smooth activation, leaves the range of floats all the same.
        """
        inputs = stream_starts(net, streams_of_draws(seed, "inputs", draws), self.inputs)
        matrices = DrawnInTurn(net, streams_of_draws(seed, "weights", draws), self.weights, right=1, left=0)
        steps, start = len(net.units) - units_below(net), stream_start(net, matrices, inputs)
        numbers = {name: np.empty((len(draws), steps)) for name in (*POWERS, "binary_exponent")}
        numbers["initial_energy"] = energy(start)
        kept: list[tuple[Array, Array]] = []
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            for index, step in enumerate(walk(net, matrices, start)):
                for name, values in _energies_at(step, start).items():
                    numbers[name][:, index] = values
                if self.correlations:
                    kept.append((_flat(step.increment), _flat(step.features)))
            if self.correlations:
                increments, features = zip(*kept, strict=True)
                numbers |= {"increment_correlation": _overlaps(increments), "feature_overlap": _overlaps(features)}
        require_finite(numbers)
        return numbers

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        exponent, means = values["binary_exponent"].astype(np.int64), {}
        for name, value in values.items():
            if name == "binary_exponent":
                continue
            means[name], logarithm = _scaled_means(value, _units(name, value, exponent))
            if name == "residual_energy":
                means["log_residual_energy"] = logarithm
        return measured_dataset(net, means, dict(attrs) | self.record())


def _energies_at(step: Step, start: Array) -> dict[str, Array]:
    total = _flat(step.total)
    return {
        "residual_energy": energy(step.stream),
        "cross_term": 2 * np.vecdot(_flat(start), total) / total.shape[1],
        "correlation_term": energy(total),
        "binary_exponent": step.exponent,
    }


def _overlaps(vectors: Sequence[Array]) -> Array:
    """<v_s, v_t> / N of all pairs of steps, (D, L, L)."""
    if len(sizes := {vector.shape[1] for vector in vectors}) > 1:
        raise ValueError(f"correlations overlap increments, and features, of one size; sizes here are {sorted(sizes)}")
    rows = np.stack(vectors, axis=1)
    return np.asarray(rows @ rows.swapaxes(1, 2) / rows.shape[2])


def require_finite(numbers: Mapping[str, Array]) -> None:
    """Raise OverflowError rather than hand on a number that left the range of floats."""
    for name, values in numbers.items():
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
