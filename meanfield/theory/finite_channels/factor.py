"""Label term and overlap energy at finite channels, over their leading order."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice, takes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.closure import GATES
from meanfield.theory.exact.plain import overlap_energies
from meanfield.theory.finite_channels.every_pair import first_order_of_pairs
from meanfield.theory.finite_channels.linear_closure import exact_terms_of_pairs
from meanfield.theory.finite_channels.linear_waves import exact_terms_of_waves
from meanfield.theory.finite_channels.recursion import first_order
from meanfield.theory.mean_field.profiles import mean_field_profiles
from meanfield.theory.outputs.label_term import label_profiles

QUANTITIES = ("label_term", "overlap_energy")
# Points (samples and sites) whose pairs are followed one by one: seconds a layer.
MOST_POINTS = 36
# Different waves of linear nets on circular grids, sites / 2 + 1 along each axis: 64 x 64 sites take 0.1 s a layer.
MOST_WAVES = 1200


@takes(Sequential)
def finite_channel_factor(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> Array:
    """E B_l or E F_l over its leading order in 1/channels, for layers 1 .. L: (L,).

    Linear nets are exact at any number of channels and layers, as their second moments close; on circular grids with
    drawn inputs up to 64 x 64 sites or 2048 on a line.

    For ReLU, with a_l the relative correction of first order in 1/channels, i_l the part of it that the Gram matrix of
    the drawn input makes, o_l that of one site, and f_l the exact factor of one site with as many units, it is taken as

        (1 + i_l) f_l^((a_l - i_l) / o_l).

    So first order is complete; higher orders are those of one site, scaled. One site is exact at any width, and so is
    layer 1. At L/C = 1/4, draws of ReLU nets agree within their errors: 1 % on a line of 4 sites, 4 % on 8 x 8.

    Args:
        net: plain, of "relu" or "linear" units; it may have any head, weight variance and samples.
        inputs: given inputs; drawn by the net's law if not given. With these, and under zero padding, every pair of
            points is followed by itself, of up to 36 points, for ReLU by averages good to 1 % of the correction.
        quantity: "label_term", for ReLU under a convolutional readout alone, or "overlap_energy". On a circular grid
            with drawn inputs and a convolutional readout both have the same factor.

    Raises:
        ValueError: another net, too many points, another quantity, or inputs that leave a site without features.

    Source: docs/theory.md section 20.
    """
    if why := finite_channel_refusal(net, inputs, quantity):
        raise ValueError(why)
    if net.activation == "linear" and net.inputs * net.sites > 1:
        return _exact(net.replace(weight_variance=None), inputs, quantity)
    return resummed(net, inputs, quantity)


def _exact(net: Sequential, inputs: ArrayLike | None, quantity: str) -> Array:
    """Of a linear net by the fan-in rule: (L,)."""
    terms = exact_terms_of_waves(net) if _alike(net, inputs) else exact_terms_of_pairs(net, inputs)
    if quantity == "overlap_energy":
        leading = mean_field_profiles(net, inputs)[0]
    else:
        leading = label_profiles(net, inputs).mean(axis=1)
    return np.asarray(terms[QUANTITIES.index(quantity)] / leading)


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


def _one_site(net: Sequential) -> Sequential:
    """The net of as many channels with one input of one site, by the fan-in rule."""
    shape = dict.fromkeys(("grid", "kernel"), (1,)) if net.grid else {}
    return net.replace(inputs=1, weight_variance=None, **shape)


@takes(Sequential)
def finite_channel_refusal(net: Sequential, inputs: ArrayLike | None = None, quantity: str = QUANTITIES[0]) -> str:
    """Why `finite_channel_factor` does not serve this net, and what does; empty if it does."""
    require_choice("quantity", quantity, QUANTITIES)
    points = net.inputs * net.sites
    reasons = {
        "has skip connections": net.has_skips,
        f"has {net.activation!r} units": net.activation not in GATES,
        "has a pooled readout, where the label term's corrections are known for 'linear' units alone": net.is_pooled
        and quantity == "label_term"
        and net.activation != "linear",
        "draws several normalised inputs": inputs is None and net.input_law == "normalised" and net.inputs > 1,
        f"has linear units on a grid of {net.grid} sites, larger than the 64 x 64 sites, or 2048 on a line, that are "
        "followed exactly": net.activation == "linear"
        and _alike(net, inputs)
        and prod(length // 2 + 1 for length in net.grid) > MOST_WAVES,
        f"has {points} points, more than the {MOST_POINTS} whose pairs are followed where edges or given inputs make "
        "them differ": points > MOST_POINTS and not _alike(net, inputs),
    }
    if why := next((why for why, holds in reasons.items() if holds), ""):
        return (
            "corrections in 1/channels are derived for plain nets of 'relu' or 'linear' units with a convolutional "
            f"readout; this {type(net).__name__} {why}: change that, or draw it at two numbers of channels"
        )
    return ""
