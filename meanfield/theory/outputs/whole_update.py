"""The whole update S = A + B of plain nets at leading order in 1/channels, in logarithms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.levels.base import log_mean, with_logarithms
from meanfield.theory.mean_field.pooled_labels import pooled_label_term
from meanfield.theory.mean_field.profiles import powers_of_variance
from meanfield.theory.outputs.output_term import output_profiles, output_term_refusal


def whole_update(architecture: Sequential, inputs: Array | None, log_label: Array, by_site: bool) -> dict[str, Array]:
    """A_l, S_l = A_l + B_l, Sbar and eta* with their logarithms; nothing where the output term is not predicted.

    Under a pooled readout B_l is that of docs/theory.md section 9.

    Args:
        log_label: ln of the label term at every site, (L, S), of a convolutional readout.
        by_site: whether to add output term and update energy at every site.
    """
    log_output = log_output_profiles(architecture, inputs)
    if log_output is None:
        return {}
    output = log_mean(log_output)
    label = log_pooled_label_term(architecture, inputs) if architecture.is_pooled else log_mean(log_label)
    update = np.logaddexp(label, output)
    mean = log_mean(update)
    logs = {"output_term": output, "update_energy": update, "mean_update_energy": mean}
    values = with_logarithms(logs | {"learning_rate_scale": -0.5 * mean})
    if by_site:
        values["output_term_by_site"] = np.exp(log_output)
        values["update_energy_by_site"] = np.exp(np.logaddexp(log_label, log_output))
    return values


def log_output_profiles(architecture: Sequential, inputs: Array | None) -> Array | None:
    """ln of the output term of layers 1 .. L at every site, (L, S); None where it is not predicted.

    That is for nets that `output_term_refusal` names, where the term leaves the range of floats, and where it takes
    more memory than the machine has, as it holds more than the label term. Weights of f times the fan-in rule's
    variance change it by a power of f: that of the label term, and that of z_out^2.
    """
    if output_term_refusal(architecture, inputs):
        return None
    rule = replace(architecture, weight_variance=None)  # type: ignore[type-var]
    try:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            logs = np.log(output_profiles(rule, inputs))
    except MemoryError:
        return None
    if not np.isfinite(logsumexp(logs, axis=1)).all():
        return None
    outputs = architecture.depth + (architecture.head == "he")
    outputs -= inputs is None and architecture.input_law == "normalised"
    powers = powers_of_variance(architecture, inputs)[1] + outputs
    return np.asarray(logs + np.log(architecture.variance_factor) * powers[:, None])


def log_pooled_label_term(architecture: Sequential, inputs: Array | None) -> Array:
    """ln of the label term under a pooled readout, for nets that `pooled_theory_refusal` does not name: (L,)."""
    rule = replace(architecture, weight_variance=None)  # type: ignore[type-var]
    powers = powers_of_variance(architecture, inputs)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(pooled_label_term(rule, inputs)) + np.log(architecture.variance_factor) * powers)
