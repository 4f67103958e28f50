"""The label term for errors of any covariance between samples, under either readout, at leading order in 1/channels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.machine import progress
from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.outputs.batch_points import batch_points, errors_below, forward_layers
from meanfield.theory.outputs.independent_errors import driven_terms


@takes(Sequential)
def correlated_term(net: Sequential, inputs: ArrayLike | None, correlation: float, errors: Array) -> Array:
    """B_1 .. B_L, the means over sites of `label_profiles`: (L,)."""
    return label_profiles(net, inputs, errors, correlation).mean(axis=1)


def label_profiles(
    net: Sequential, inputs: ArrayLike | None = None, errors: Array | None = None, correlation: float = 0.0
) -> Array:
    """The label term of layers 1 .. L at every site, the mean over samples, at learning rate 1: (L, S).

    Args:
        net: a plain net, under either readout. Under a pooled one a label reaches all sites of its sample alike.
        inputs: a given batch; the net's own input law, with this ``correlation`` between samples, if not given.
        errors: E y_i y_j at one output coordinate (`label_covariance`), of samples (B, B, S or 1), or of two alike ones
            where inputs are drawn on a circular grid; labels that are independent and of variance 1 if not given.

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many layers than the machine can hold.

    Source: docs/theory.md sections 9, 10.
    """
    if why := label_term_refusal(net, inputs, correlation):
        raise ValueError(why)
    points, product = batch_points(net, inputs, correlation)
    layers = list(progress(forward_layers(net, points, product), net.depth, "layer"))
    covariance = points.labels(np.eye(net.inputs)[:, :, None] if errors is None else errors, net.is_pooled)
    terms = driven_terms(net, points, layers, errors_below(net, points, covariance))
    walked = progress(terms, net.depth, "layer")
    return np.broadcast_to([points.by_site(term) for term in walked], (net.depth, net.sites))


def label_term_refusal(net: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0) -> str:
    """Why `label_profiles` does not serve this net with this input, and what to take; empty if it does."""
    given = f"this is a {type(net).__name__} of activation {net.activation!r}"
    take = "take readout='convolution' and independent labels, or draw it with `simulate`"
    if net.has_skips:
        return (
            "pooled or correlated labels join what several sites or samples did, which is predicted for plain nets; "
            f"{given}, whose gates remember: {take}"
        )
    alike = inputs is None and net.padding == "circular" and not correlation
    if net.sigma.triple is None and not alike:
        return (
            "pooled or correlated labels take averages over three gates, which are known for 'relu' and 'linear', and "
            "for other activations where all sites are alike (circular padding, the net's own inputs, independent "
            f"samples); {given}: {take}"
        )
    return ""
