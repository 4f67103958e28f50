"""Label term and overlap energy at finite channels, over their leading order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.closure import GATES
from meanfield.theory.exact.plain import overlap_energies
from meanfield.theory.finite_channels.every_pair import first_order_of_pairs
from meanfield.theory.finite_channels.linear_closure import exact_overlap_energies
from meanfield.theory.finite_channels.recursion import first_order
from meanfield.theory.mean_field.profiles import mean_field_profiles

QUANTITIES = ("label_term", "overlap_energy")
# Points (samples and sites) whose pairs are followed one by one: seconds a layer.
MOST_POINTS = 36
# Points of linear nets that are followed exactly: some 25 ms a layer.
MOST_EXACT_POINTS = 20
# Other linear nets have at most so many sites over channels times taps, and layers over channels.
MOST_SITES, MOST_LAYERS = 1 / 20, 1 / 4


def finite_channel_factor(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> Array:
    """E B_l or E F_l over its leading order in 1/channels, for layers 1 .. L: (L,).

    With a_l the relative correction of first order in 1/channels, i_l the part of it that the Gram matrix of the drawn
    input makes, o_l that of one site, and f_l the exact factor of one site with as many units, it is taken as

        (1 + i_l) f_l^((a_l - i_l) / o_l).

    So first order is complete; higher orders are those of one site, scaled. One site is exact at any width, and so is
    layer 1. At L/C = 1/4, draws of ReLU nets agree within their errors: 1 % on a line of 4 sites, 4 % on 8 x 8.

    Linear nets of 2 to 20 points (samples and sites) on circular grids with white inputs are exact, as their second
    moments close. Larger ones take the formula only where stencils mix sites fast: one sample, two taps or more along
    every axis, sites/(channels taps) <= 1/20 and L/C <= 1/4. There its error is below 1 % (0.9 % on a line of 20 sites
    with 2 taps). With sites/(channels taps) = 1/10 it is 2 %; with one tap on 16 sites and L/C = 1/4 it is 56 %.

    Args:
        net: plain, of "relu" or "linear" units; it may have any head, weight variance and samples.
        inputs: given inputs; drawn by the net's law if not given. With these, and under zero padding, every pair of
            points is followed by itself, of up to 36 points, by averages good to 1 % of the correction.
        quantity: "label_term" under a convolutional readout, or "overlap_energy". On a circular grid with drawn inputs
            both have the same factor.

    Raises:
        ValueError: another net, too many points, a linear net beyond the bounds above, another quantity, or inputs that
            leave a site without features.

    Source: docs/theory.md section 20.
    """
    if why := finite_channel_refusal(net, inputs, quantity):
        raise ValueError(why)
    if _closes(net, inputs):
        by_fan_in = net.replace(weight_variance=None)
        return np.asarray(exact_overlap_energies(by_fan_in) / mean_field_profiles(by_fan_in)[0])
    return resummed(net, inputs, quantity)


def resummed(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> Array:
    """First order complete, and higher orders as of one site: (L,)."""
    alone = _one_site(net)
    of_one_site = first_order(alone, given_input=True)
    hidden, of_input = _coefficients(net, inputs, quantity)
    power = np.divide(hidden, of_one_site, out=np.ones(net.depth), where=of_one_site > 0)
    log_one_site = overlap_energies(alone) - np.log(mean_field_profiles(alone)[0])
    return np.asarray((1 + of_input) * np.exp(power * log_one_site))


def _coefficients(net: Sequential, inputs: ArrayLike | None, quantity: str) -> tuple[Array, Array]:
    """First order that hidden layers make, and that the input makes."""

    def coefficient(given_input: bool) -> Array:
        if _alike(net, inputs):
            return first_order(net, given_input)
        return first_order_of_pairs(net, inputs, given_input)[QUANTITIES.index(quantity)]

    hidden = coefficient(given_input=True)
    fixed = inputs is not None or net.input_law == "normalised"
    return hidden, np.zeros_like(hidden) if fixed else coefficient(given_input=False) - hidden


def _alike(net: Sequential, inputs: ArrayLike | None) -> bool:
    """Whether all points are."""
    return inputs is None and net.covers_evenly


def _closes(net: Sequential, inputs: ArrayLike | None) -> bool:
    """Whether this is a linear net of few enough points for the exact road."""
    few = 1 < net.inputs * net.sites <= MOST_EXACT_POINTS
    return net.activation == "linear" and few and _alike(net, inputs) and net.input_law == "white"


def _mixes(net: Sequential, inputs: ArrayLike | None) -> bool:
    """Whether higher orders of this net are known to be those of one site: ReLU nets, and linear ones as tested."""
    channels = min(net.channels_by_layer[inputs is not None :])
    if net.activation != "linear" or net.inputs * net.sites == 1:
        return True
    lone = any(sites > 1 and taps == 1 for sites, taps in zip(net.grid, net.kernel, strict=True))
    fast = net.sites <= MOST_SITES * channels * net.taps and net.depth <= MOST_LAYERS * channels
    return net.inputs == 1 and not lone and fast


def _one_site(net: Sequential) -> Sequential:
    """The net of as many channels with one input of one site, by the fan-in rule."""
    shape = dict.fromkeys(("grid", "kernel"), (1,)) if net.grid else {}
    return net.replace(inputs=1, weight_variance=None, **shape)


def finite_channel_refusal(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> str:
    """Why `finite_channel_factor` does not serve this net, and what does; empty if it does."""
    require_choice("quantity", quantity, QUANTITIES)
    points = net.inputs * net.sites
    reasons = {
        "has skip connections": net.has_skips,
        f"has {net.activation!r} units": net.activation not in GATES,
        "has a pooled readout, whose label term has other corrections": net.is_pooled and quantity == "label_term",
        "draws several normalised inputs": inputs is None and net.input_law == "normalised" and net.inputs > 1,
        f"has linear units and {points} points, where higher orders are known for up to {MOST_EXACT_POINTS} points "
        "that are alike (circular grid, white inputs), or else for one sample, two taps or more along every axis, "
        f"sites/(channels taps) <= {MOST_SITES:g} and layers/channels <= {MOST_LAYERS:g}": not (
            _closes(net, inputs) or _mixes(net, inputs)
        ),
        f"has {points} points, more than the {MOST_POINTS} whose pairs are followed where edges or given inputs make "
        "them differ": points > MOST_POINTS and not _alike(net, inputs),
    }
    if why := next((why for why, holds in reasons.items() if holds), ""):
        return (
            "corrections in 1/channels are derived for plain nets of 'relu' or 'linear' units with a convolutional "
            f"readout; this {type(net).__name__} {why}: change that, or draw it at two numbers of channels"
        )
    return ""
