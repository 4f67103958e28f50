"""How much of the whole update the output term makes, roughly: what the label term's scale leaves out."""

from __future__ import annotations

from math import log1p, nan

from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.theory.laws.plain import single_site_terms


def output_share(net: Sequential) -> float:
    """Mean output term over mean label term of a plain net, by the closed form of nets with one site and one input.

    On grids an order of magnitude: the coordinates of the readout, at every site if it is convolutional, stand for the
    outputs. NaN for nets with skip connections.
    """
    if net.has_skips:
        return nan
    energy = net.head_variance * net.head_fan_in * net.sigma.gain
    output, label = single_site_terms(net.depth, net.output_units / net.channels_by_layer[-1], energy, net.sigma.gain)
    return float(output.mean() / label.mean())


def log_output_correction(start: Sequential | TiedLoop, end: Sequential | TiedLoop) -> float:
    """ln of the factor by which the output term changes a rate that the label term carried; NaN where not known.

    By `output_share`; 0 for loops, whose scale is that of the stream.
    """
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return 0.0
    return 0.5 * (log1p(output_share(start)) - log1p(output_share(end)))
