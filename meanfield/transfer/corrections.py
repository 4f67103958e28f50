"""What changes a carried rate: the output term, and finite channels."""

from dataclasses import replace
from functools import lru_cache
from math import exp, log, log1p, nan
from typing import Any

from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.levels.base import log_mean
from meanfield.theory.outputs.output_term import output_term_refusal
from meanfield.theory.outputs.whole_update import log_channel_error, mean_field_terms
from meanfield.theory.transformers.terms import output_refusal, token_terms

# Layers to which the share of the output term is followed.
DEEPEST_SHARE = 1000


def log_output_correction(
    start: Sequential | TiedLoop | TokenStream, end: Sequential | TiedLoop | TokenStream
) -> float:
    """ln of the factor by which the output term changes a rate that the label term carried; NaN where not known.

    It is 0 for loops, whose scale is that of the stream.
    """
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return 0.0
    return 0.5 * (log1p(_output_share(start)) - log1p(_output_share(end)))


def _output_share(net: Sequential | TokenStream) -> float:
    """Mean output term over mean label term in mean field; NaN for nets of layers with skip connections.

    Where the whole update of a plain net is not predicted, that of the net with ReLU for smooth gates and without edges
    is an order of magnitude. It tends to a number as 1 / L: of deeper nets it is that of `DEEPEST_SHARE` equal layers.
    """
    if isinstance(net, TokenStream):
        if output_refusal(net):
            return nan
    elif net.has_skips:
        return nan
    elif output_term_refusal(net):
        if any(taps > sites for taps, sites in zip(net.kernel, net.grid, strict=True)):
            return nan  # no circular grid takes such a kernel
        changes: dict[str, Any] = {"padding": "circular"} if net.padding != "circular" else {}
        changes |= {"activation": "relu", "weight_variance": None} if net.sigma.triple is None else {}
        net = replace(net, **changes)  # type: ignore[type-var]
    if isinstance(net, Sequential) and net.depth > DEEPEST_SHARE and isinstance(getattr(net, net.WIDTH), int):
        net = net.replace(depth=DEEPEST_SHARE)
    means = log_means(net)
    return nan if means is None else exp(means[1] - means[0])


def log_channel_correction(start: Sequential, end: Sequential) -> float:
    """Estimate of ln of the factor by which finite channels change a rate that the whole update carried."""
    first, second = (log_channel_error(net, mean_field_terms(net)) for net in (start, end))
    return first - second


@lru_cache(maxsize=64)
def log_means(net: Sequential | TokenStream) -> tuple[float, float] | None:
    """ln of the means over layers of label and output term; None where floats or memory do not hold them."""
    if isinstance(net, TokenStream):
        streams = token_terms(net)
        assert streams.label_term is not None
        assert streams.output_term is not None
        return log(streams.label_term.mean()), log(streams.output_term.mean())
    try:
        terms = mean_field_terms(net).both
    except OverflowError:
        return None
    return None if terms is None else (float(log_mean(terms[0])), float(log_mean(terms[1])))
