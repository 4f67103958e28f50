"""Learning-rate scales over depth, and the powers of the depth that they tend to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf, isnan, log, nan

import numpy as np

from meanfield.common.validation import Array, OutsideFloats, takes
from meanfield.nets.dense import DenseNet
from meanfield.nets.layered import Sequential
from meanfield.nets.loop import Loop
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.theory.laws import (
    NoPower,
    branch_powers,
    exponent_of,
    keeps_energies,
    law_refusal,
    single_site_overlap,
)
from meanfield.theory.loops import log_update_energies, loop_exponent
from meanfield.theory.mean_field.concatenated import concatenated_label_refusal, concatenated_terms
from meanfield.theory.mean_field.label_term import label_profiles
from meanfield.theory.mean_field.layers import gate_energies, mean_field_profiles, white_product
from meanfield.theory.transformers.terms import label_refusal, token_terms

# The power of plain nets of any family that keeps its energies from layer to layer (Zhang et al. 2026, section 3.3).
POWER = -1.5
# Deeper nets are not walked layer by layer where their law is closed.
DEEPEST_WALKED = 1000
EXPONENTIAL = (
    "what passes a layer grows or shrinks by a factor (its weights, its smooth gates, the edges of its grid), and eta* "
    "is exponential in the end"
)


def _growing(power: float) -> str:
    """Why there is no power of K where a^2 f^k is of this one."""
    return (
        f"its branches are too large for their number: a block multiplies what passes it by about 1 + K^({power:.3g}), "
        "K blocks by more than any power of K unless that falls as 1/K (scaling='init', or an alpha of 1/2 and above), "
        "and eta* falls faster than any power"
    )


def log_scale(net: Sequential | DenseNet | Loop | TokenStream) -> float:
    """ln of the mean-field scale of one net or loop; the learning rate that moves it by 1 at infinite width.

    Nets, Transformers too: ln eta*_B = -(1/2) ln mean_l B_l, of the label term under plain SGD. Loops:
    -(1/2) ln(E|dh_L|^2 / N) under one update of isotropic signs, the rate that Wang et al. 2026 hold fixed.

    Raises:
        OutsideFloats: a mean that leaves the range of a float, as without branch scaling.
        ValueError: a smooth loop whose stream leaves what its averages are computed for; a pooled readout of a net
            whose label term has no theory there.

    Source: Zhang et al. 2026, eq. 9; Wang et al. 2026, eqs. 3, 4.
    """
    if isinstance(net, Loop):
        return float(-0.5 * log_update_energies(net)[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        energy = float(np.mean(_label_term(net)))
    if not 0 < energy < inf:
        raise OutsideFloats(
            f"the mean label term of this {type(net).__name__} of depth {net.depth} is {energy:g}, "
            "outside what a float holds, as it grows or decays exponentially with depth: lower the depth, or scale "
            "the branches"
        )
    return -0.5 * log(energy)


@takes(Sequential | Loop | TokenStream)
def scales_at(net: Sequential | Loop | TokenStream, depths: Sequence[int]) -> Array:
    """Mean-field scales of the nets (or loops) that differ from this one in depth alone: (len(depths),).

    Plain nets of equal layers share one recursion, O(L) for all depths; residual nets and loops, whose scaling knows
    their depth, are each predicted by themselves.

    Raises:
        ValueError: as `log_scale`.
    """
    if isinstance(net, Sequential) and _shares_depths(net):
        return scales_by_depth(net.replace(depth=max(depths)))[np.asarray(depths) - 1]
    return np.exp([log_scale(net.replace(depth=depth)) for depth in depths])


@takes(Sequential | Loop)
def learning_rate_exponent(net: Sequential | Loop, optimizer: str | Optimizer | Hybrid = "sgd") -> float:
    """x of eta* ~ L^x at large depth; NaN where eta* is no power of it.

    Plain nets -3/2 (Zhang et al. 2026) where energies pass every layer unchanged: under the fan-in rule, with gates
    that know the sign alone and no edge at which signals are lost. Elsewhere each layer has a gain other than 1, and
    eta* is an exponential of the depth in the end. Residual nets as `residual_exponent`, by the powers of K that the
    factors and variances of their layers follow, loops by `loop_exponent`.

    The scale is that of the first step of the ``optimizer``. In plain nets signs and polar factors have the same power
    as descent; in residual nets they have another (`residual_exponent`); in loops theirs is not known.
    """
    return law_over_depth(net, optimizer=optimizer)[0]


def law_over_depth(
    net: Sequential | Loop, depths: Iterable[int] = (), *, optimizer: str | Optimizer | Hybrid = "sgd"
) -> tuple[float, str]:
    """The exponent of `learning_rate_exponent`, and why there is none, as the end of a sentence; empty if there is.

    It is read off the layers of nets of this family at several depths, and of loops off their steps, not off the
    names of their fields.

    Args:
        net: of the family.
        depths: further depths at which the layers must follow the law.
        optimizer: whose first step from rest it is.
    """
    step = FirstStep(optimizer)
    if why := law_refusal(step):
        return nan, why
    if isinstance(net, Loop) and not step.is_descent:
        return nan, f"what the first step of {step.name} makes of the uses of one matrix is not known"
    if isinstance(net, Sequential) and not net.follows_one_rule:
        return nan, "a list of units says what it is at one depth alone"
    try:
        if isinstance(net, Loop):
            exponent = loop_exponent(net)
        elif net.has_skips:
            powers = branch_powers(net, depths)
            exponent = exponent_of(powers, step)
            return exponent, _growing(powers.carried) if isnan(exponent) else ""
        else:
            exponent = POWER if keeps_energies(net) else nan
    except NoPower as why:
        return nan, str(why)
    return exponent, EXPONENTIAL if isnan(exponent) else ""


@takes(Sequential)
def scales_by_depth(net: Sequential) -> Array:
    """Mean-field scale eta*_B(L) = (mean_{l <= L} B_l)^(-1/2) of the nets of depth 1 .. L cut from this one: (L,).

    One recursion serves all depths: on evenly covered grids the label term B_l is the overlap energy F_l times a
    constant, the gate energies g_l .. g_L of the layers that the labels pass (1 for homogeneous activations) and the
    variance factors f of the matrices between them, so that its sum over layers goes from depth L - 1 to L by
    sum <- g_L (f sum + F_L).

    Raises:
        ValueError: zero padding, a pooled readout, or channels or branch scalings that vary with depth (a cut net is
            then another one).

    Source: Zhang et al. 2026, eq. 9; docs/theory.md sections 2, 6.
    """
    if not _shares_depths(net):
        raise ValueError(
            "depths share one recursion only on circular grids with equal layers, no skips and no pooling; predict "
            "each by itself"
        )
    overlap, labels = mean_field_profiles(net)
    depths = np.arange(1, net.depth + 1)
    gates, factor = gate_energies(net, *white_product(net)), net.variance_factor

    def deeper(total: float, layer: tuple[Array, float]) -> float:
        return float(layer[0] * (factor * total + layer[1]))

    sums = np.array(list(accumulate(zip(gates, overlap, strict=True), deeper, initial=0.0)))[1:]
    top = labels[-1].mean() / (gates[-1] * overlap[-1])
    return np.asarray((top * sums / depths) ** -0.5)


def _has_closed_overlap(net: Sequential) -> bool:
    """Whether all layers are the same, of one site and one input, under the fan-in rule, with gates of 0 and 1."""
    plain = not net.has_skips and net.sites == net.inputs == 1 and not net.grid and net.weight_variance is None
    return plain and net.sigma.homogeneous and len(set(net.channels_by_layer)) == 1


def _shares_depths(net: Sequential) -> bool:
    """Whether the nets cut from this one at every depth are of one recursion."""
    equal_layers = len(set(net.channels_by_layer[1:])) == 1
    return net.covers_evenly and not net.has_skips and not net.is_pooled and equal_layers


def _label_term(net: Sequential | DenseNet | TokenStream) -> Array:
    """B_1 .. B_L in mean field, under either readout; of deep nets of equal layers and one site in closed form."""
    if isinstance(net, DenseNet):
        terms = concatenated_terms(net)
        if terms.label is None:
            raise ValueError(concatenated_label_refusal(net))
        return np.exp(terms.label).mean(axis=1)
    if isinstance(net, Sequential) and net.depth > DEEPEST_WALKED and _has_closed_overlap(net):
        gamma = net.head_variance * net.head_fan_in * net.sigma.gain
        overlap = net.channels_by_layer[-1] * single_site_overlap(np.arange(1, net.depth + 1), net.activation)
        return np.asarray(overlap * gamma / net.outputs)
    if isinstance(net, TokenStream):
        label = None if label_refusal(net) else token_terms(net).label_term
        if label is None:
            raise ValueError(f"the label term of this {type(net).__name__} has no theory: {label_refusal(net)}")
        return label
    return (label_profiles(net) if net.is_pooled else mean_field_profiles(net)[1]).mean(axis=1)
