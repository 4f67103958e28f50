"""Learning-rate scales over depth, and how to carry a tuned learning rate from one net to another."""

from __future__ import annotations

from itertools import accumulate
from math import isfinite
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.theory.mean_field import gate_energies, white_product
from meanfield.theory.prediction import predict
from meanfield.validation import require_choice

Array = NDArray[np.float64]

RULES = ("finite_depth", "power_law", "exact")
POWER = -1.5


def scales_by_depth(architecture: Sequential) -> Array:
    """Mean-field scale eta*_B(L) = (mean_{l <= L} B_l)^(-1/2) of the nets of depth 1 .. L cut from this one: (L,).

    One recursion serves all depths: on evenly covered grids the label term B_l is the overlap energy F_l times a
    constant, the gate energies g_l .. g_L of the layers that the labels pass (1 for homogeneous activations) and the
    variance factors f of the matrices between them, so that its sum over layers goes from depth L - 1 to L by
    sum <- g_L (f sum + F_L). Under a pooled readout the overlap
    energy stands in for the label term, which has no prediction there.

    Raises:
        ValueError: zero padding, or channels or branch scalings that vary with depth (a cut net is then another one).

    Source: P0 eq. 9; THEORY sections 2, 4.
    """
    if not architecture.covers_evenly or architecture.has_skips or len(set(architecture.channels_by_layer[1:])) > 1:
        raise ValueError(
            "depths share one recursion only on circular grids with equal layers and no skips; predict each by itself"
        )
    found = predict(architecture, level="mean_field")
    overlap, depths = found["overlap_energy"].values, np.arange(1, architecture.depth + 1)
    if architecture.is_pooled:
        return np.asarray((np.cumsum(overlap) / depths) ** -0.5)
    gates, factor = gate_energies(architecture, *white_product(architecture)), architecture.variance_factor

    def deeper(total: float, layer: tuple[Array, float]) -> float:
        return float(layer[0] * (factor * total + layer[1]))

    sums = np.array(list(accumulate(zip(gates, overlap, strict=True), deeper, initial=0.0)))[1:]
    top = found["label_term"].values[-1] / (gates[-1] * overlap[-1])
    return np.asarray((top * sums / depths) ** -0.5)


def transfer_learning_rate(
    rate: float, architecture_from: Sequential, architecture_to: Sequential, *, rule: str = "finite_depth"
) -> float:
    """The learning rate for one net from the rate that was tuned on another.

    Args:
        rate: learning rate of plain SGD, tuned on ``architecture_from``.
        architecture_from, architecture_to: the two nets; the same family, whose depth (or width) differs.
        rule: "finite_depth": by the mean field's scales of the label term at their own finite depths; for ReLU nets of
            one site sqrt((L0 + 1)(L0^2 + L0 + 1) / ((L + 1)(L^2 + L + 1))) (THEORY section 3). "power_law":
            (L / L0)^(-3/2), the papers' asymptotic rule (P0 section 5). "exact": by the exact scales of the whole
            update, output term included, for fully-connected nets with one input.

    Returns:
        rate times eta*(to) / eta*(from), dimensionless.

    Raises:
        TypeError, ValueError: a rate that is not a positive number, an unknown rule, nets that the rule does not serve.
    """
    require_choice("rule", rule, RULES)
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise TypeError(f"rate is {rate!r}; it must be a positive number")
    if not (isfinite(rate) and rate > 0):
        raise ValueError(f"rate is {rate}; it must be positive and finite")
    if type(architecture_from) is not type(architecture_to):
        raise ValueError(
            f"the nets are of two families, {type(architecture_from).__name__} and {type(architecture_to).__name__}; "
            "a learning rate carries over within one"
        )
    ratio = {"finite_depth": _mean_field_ratio, "power_law": _power_ratio, "exact": _exact_ratio}[rule]
    return float(rate) * ratio(architecture_from, architecture_to)


def _power_ratio(start: Sequential, end: Sequential) -> float:
    return float((end.depth / start.depth) ** POWER)


def _mean_field_ratio(start: Sequential, end: Sequential) -> float:
    first, second = (float(_layer_energy(net).mean()) for net in (start, end))
    return float((first / second) ** 0.5)


def _exact_ratio(start: Sequential, end: Sequential) -> float:
    logs = [float(predict(net, level="exact")["log_learning_rate_scale"]) for net in (start, end)]
    return float(np.exp(logs[1] - logs[0]))


def _layer_energy(architecture: Sequential) -> Array:
    """B_l, or F_l where the label term has no prediction."""
    found = predict(architecture, level="mean_field")
    return found["overlap_energy" if architecture.is_pooled else "label_term"].values
