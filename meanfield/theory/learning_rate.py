"""Learning-rate scales over depth, and how to carry a tuned learning rate from one net to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import exp, inf, isfinite, isnan, log
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import Sequential
from meanfield.loops import TiedLoop
from meanfield.residual import Residual
from meanfield.theory.loop_laws import loop_exponent
from meanfield.theory.loop_update import log_update_energies
from meanfield.theory.mean_field import gate_energies, white_product
from meanfield.theory.prediction import predict
from meanfield.theory.residual_laws import residual_exponent
from meanfield.validation import require_choice

Array = NDArray[np.float64]

RULES = ("finite_depth", "power_law", "exact")
POWER = -1.5
# What residual nets and loops must share for a power of the depth alone to carry a rate between them.
SHARED = ("block_depth", "scaling", "stem", "tail", "alpha", "weight_variance")


def log_scale(architecture: Sequential | TiedLoop) -> float:
    """ln of the mean-field scale of one net or loop; the learning rate that moves it by 1 at infinite width.

    Nets: ln eta*_B = -(1/2) ln mean_l B_l, of the label term under plain SGD (under a pooled readout F_l stands in for
    B_l, which has no prediction there). Loops: -(1/2) ln(E|dh_L|^2 / N) under one update of isotropic signs, the rate
    that P2 holds fixed.

    Raises:
        ValueError: a mean that leaves the range of a float, as without branch scaling; a smooth loop whose stream
            leaves what its averages are computed for.

    Source: P0 eq. 9; P2 eqs. 3, 4.
    """
    if isinstance(architecture, TiedLoop):
        return float(-0.5 * log_update_energies(architecture)[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = predict(architecture, level="mean_field")
        energy = float(found["overlap_energy" if architecture.is_pooled else "label_term"].mean())
    if not 0 < energy < inf:
        raise ValueError(
            f"the mean label term of this {type(architecture).__name__} of depth {architecture.depth} is {energy:g}, "
            "outside what a float holds, as it grows or decays exponentially with depth: lower the depth, or scale "
            "the branches"
        )
    return -0.5 * log(energy)


def scales_at(architecture: Sequential | TiedLoop, depths: Sequence[int]) -> Array:
    """Mean-field scales of the nets (or loops) that differ from this one in depth alone: (len(depths),).

    Plain nets of equal layers share one recursion, O(L) for all depths; residual nets and loops, whose scaling knows
    their depth, are each predicted by themselves.

    Raises:
        ValueError: as `log_scale`.
    """
    net: Any = architecture
    if isinstance(architecture, Sequential) and _shares_depths(architecture):
        return scales_by_depth(replace(net, depth=max(depths)))[np.asarray(depths) - 1]
    return np.exp([log_scale(replace(net, depth=depth)) for depth in depths])


def learning_rate_exponent(architecture: Sequential | TiedLoop) -> float:
    """x of eta* ~ L^x at large depth; NaN where eta* is no power of it.

    Plain nets -3/2 (P0), residual nets by `residual_exponent`, loops by `loop_exponent`.
    """
    if isinstance(architecture, TiedLoop):
        return loop_exponent(architecture)
    if not isinstance(architecture, Residual):
        return POWER
    net = architecture
    return residual_exponent(net.scaling, net.block_depth, net.stem, net.tail)


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
    if not _shares_depths(architecture):
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


def _shares_depths(architecture: Sequential) -> bool:
    """Whether the nets cut from this one at every depth are of one recursion."""
    equal_layers = len(set(architecture.channels_by_layer[1:])) == 1
    return architecture.covers_evenly and not architecture.has_skips and equal_layers


def transfer_learning_rate(
    rate: float,
    architecture_from: Sequential | TiedLoop,
    architecture_to: Sequential | TiedLoop,
    *,
    rule: str = "finite_depth",
) -> float:
    """The learning rate for one net from the rate that was tuned on another.

    Args:
        rate: learning rate of plain SGD, tuned on ``architecture_from``; of loops, that of updates by signs (P2).
        architecture_from, architecture_to: the two nets; the same family, whose depth (or width) differs.
        rule: "finite_depth": by the mean field's scales at their own finite depths (`log_scale`); for ReLU nets of
            one site sqrt((L0 + 1)(L0^2 + L0 + 1) / ((L + 1)(L^2 + L + 1))) (THEORY section 3). "power_law":
            (L / L0)^x, the family's own asymptote: x = -3/2 for plain nets, the papers' rule (P0 section 5), and
            `learning_rate_exponent` for residual nets and loops, L the blocks or steps. "exact": by the exact scales of
            the whole update, output term included, for fully-connected nets with one input (residual ones: linear).

    Returns:
        rate times eta*(to) / eta*(from), dimensionless.

    Raises:
        TypeError, ValueError: a rate that is not a positive number, an unknown rule, nets that the rule does not serve:
            of "power_law" those without one (branches without scaling, loops that grow exponentially) and residual nets
            or loops that differ in more than depth and width; a scale outside the range of a float.
    """
    require_choice("rule", rule, RULES)
    if isinstance(rate, bool) or not isinstance(rate, Real):
        raise TypeError(f"rate is {rate!r}; it must be a positive number")
    if not (isfinite(rate) and rate > 0):
        raise ValueError(f"rate is {rate}; it must be positive and finite")
    first, second = (_family(net) for net in (architecture_from, architecture_to))
    if first != second:
        raise ValueError(f"the nets are of two families, {first} and {second}; a learning rate carries over within one")
    ratio = {"finite_depth": _mean_field_ratio, "power_law": _power_ratio, "exact": _exact_ratio}[rule]
    return float(rate) * ratio(architecture_from, architecture_to)


def _family(architecture: Sequential | TiedLoop) -> str:
    name = type(architecture).__name__
    return f"{name} of tied={architecture.tied}" if isinstance(architecture, TiedLoop) else name


def _mean_field_ratio(start: Sequential | TiedLoop, end: Sequential | TiedLoop) -> float:
    return exp(log_scale(end) - log_scale(start))


def _power_ratio(start: Sequential | TiedLoop, end: Sequential | TiedLoop) -> float:
    if isinstance(start, Residual | TiedLoop):
        _require_equal_but_depth(start, end)
    exponent = learning_rate_exponent(start)
    if isnan(exponent):
        raise ValueError(
            f"eta* of this {_family(start)} is no power of its depth, as its stream grows exponentially with it; take "
            "rule 'finite_depth', or a smaller scaling of its branches"
        )
    return float((end.depth / start.depth) ** exponent)


def _require_equal_but_depth(start: Residual | TiedLoop, end: Sequential | TiedLoop) -> None:
    for name in SHARED:
        values = [getattr(net, name, None) for net in (start, end)]
        if values[0] != values[1]:
            raise ValueError(
                f"the nets differ in {name}, {values[0]!r} and {values[1]!r}, and the power law knows depth alone; "
                "take rule 'finite_depth'"
            )


def _exact_ratio(start: Sequential | TiedLoop, end: Sequential | TiedLoop) -> float:
    if isinstance(start, TiedLoop):
        raise ValueError("rule 'exact' is for fully-connected nets; loops have 'finite_depth' and 'power_law'")
    logs = [float(predict(net, level="exact")["log_learning_rate_scale"]) for net in (start, end)]
    return float(np.exp(logs[1] - logs[0]))
