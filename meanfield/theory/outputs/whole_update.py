"""Label term, output term and the whole update S = A + B at leading order in 1/channels, in logarithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.levels.base import log_mean, with_logarithms
from meanfield.theory.mean_field.profiles import powers_of_variance
from meanfield.theory.outputs.label_term import label_profiles, label_term_refusal
from meanfield.theory.outputs.output_term import output_profiles, output_term_refusal

Profiles = Callable[[Sequential, Array | None], Array]


def whole_update(log_label: Array, log_output: Array) -> dict[str, Array]:
    """A_l, S_l = A_l + B_l, Sbar and eta* with their logarithms, from those of both terms at every site, (L, S)."""
    update = np.logaddexp(log_mean(log_label), log_mean(log_output))
    mean = log_mean(update)
    logs = {"output_term": log_mean(log_output), "update_energy": update, "mean_update_energy": mean}
    return with_logarithms(logs | {"learning_rate_scale": -0.5 * mean})


def log_pooled_profiles(net: Sequential, inputs: Array | None) -> Array | None:
    """ln of the label term under a pooled readout at every site, (L, S); None where it is not predicted."""
    if label_term_refusal(net, inputs):
        return None
    return _log_profiles(net, inputs, label_profiles, 0)


def log_output_profiles(net: Sequential, inputs: Array | None) -> Array | None:
    """ln of the output term of layers 1 .. L at every site, (L, S); None where it is not predicted."""
    if output_term_refusal(net, inputs):
        return None
    own = net.depth + (net.head == "he") - (inputs is None and net.input_law == "normalised")
    return _log_profiles(net, inputs, output_profiles, own)


def _log_profiles(net: Sequential, inputs: Array | None, profiles: Profiles, power: int) -> Array | None:
    """ln of these profiles; None where they leave the range of floats, or take more memory than the machine has.

    With homogeneous activations, weights of f times the fan-in rule's variance change a term by a power of f: that of
    the label term and, for outputs, that of z_out^2, the ``power`` beside.
    """
    by_powers = net.sigma.homogeneous
    rule = replace(net, weight_variance=None) if by_powers else net  # type: ignore[type-var]
    try:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            logs = np.log(profiles(rule, inputs))
    except MemoryError:
        return None
    if not np.isfinite(logsumexp(logs, axis=1)).all():
        return None
    powers = powers_of_variance(net, inputs)[1] + power if by_powers else np.zeros(net.depth)
    return np.asarray(logs + np.log(net.variance_factor) * powers[:, None])
