"""Label term and overlap energy at finite channels, over their leading order."""

from __future__ import annotations

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.closure import GATES
from meanfield.theory.exact.plain import overlap_energies
from meanfield.theory.finite_channels.recursion import first_order
from meanfield.theory.mean_field.profiles import mean_field_profiles


def finite_channel_factor(net: Sequential) -> Array:
    """E F_l over its leading order in 1/channels, for drawn inputs and layers 1 .. L: (L,).

    The label term under a convolutional readout has the same factor. With a_l the relative correction of first order
    in 1/channels, i_l the part of it that the Gram matrix of the drawn input makes, o_l that of one site, and f_l the
    exact factor of one site with as many units, it is taken as

        (1 + i_l) f_l^((a_l - i_l) / o_l).

    So first order is complete; higher orders are those of one site, scaled. One site is exact at any width, and so is
    layer 1 of any net. Draws of nets of 4 to 16 sites at L/C up to 1/4 agree to 2 %.

    Args:
        net: plain, of "relu" or "linear" units, on a circular grid; it may have any head, weight variance and samples.

    Raises:
        ValueError: another net.

    Source: docs/theory.md section 20.
    """
    if why := finite_channel_refusal(net):
        raise ValueError(why)
    alone = _one_site(net)
    of_one_site = first_order(alone, given_input=True)
    hidden = first_order(net, given_input=True)
    of_input = 0.0 if net.input_law == "normalised" else first_order(net) - hidden
    power = np.divide(hidden, of_one_site, out=np.ones(net.depth), where=of_one_site > 0)
    log_one_site = overlap_energies(alone) - np.log(mean_field_profiles(alone)[0])
    return np.asarray((1 + of_input) * np.exp(power * log_one_site))


def _one_site(net: Sequential) -> Sequential:
    """The net of as many channels with one input of one site, by the fan-in rule."""
    single = net if net.inputs * net.sites == 1 else net.replace(inputs=1, **dict.fromkeys(("grid", "kernel"), (1,)))
    return single.replace(weight_variance=None)


def finite_channel_refusal(net: Sequential) -> str:
    """Why `finite_channel_factor` does not serve this net, and what does; empty if it does."""
    reasons = {
        "has skip connections": net.has_skips,
        f"has {net.activation!r} units": net.activation not in GATES,
        "is zero-padded": not net.covers_evenly,
        "has several normalised inputs": net.input_law == "normalised" and net.inputs > 1,
    }
    if why := next((why for why, holds in reasons.items() if holds), ""):
        return (
            "corrections in 1/channels are derived for plain nets of 'relu' or 'linear' units on a circular grid with "
            f"drawn inputs; this {type(net).__name__} {why}: change that, or draw it at two numbers of channels"
        )
    return ""
