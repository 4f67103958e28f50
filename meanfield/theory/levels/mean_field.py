"""The mean-field level of nets: leading order in 1/channels, for any sites, padding and, in plain nets, any batch."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import xarray as xr

from meanfield.common.arrays import Array
from meanfield.common.validation import PremiseWarning
from meanfield.nets.families.layered import Sequential
from meanfield.nets.inputs.batches import PLAIN, Batch, require_batch
from meanfield.theory.levels.base import NetLevel, Options, log_mean, with_label_term
from meanfield.theory.mean_field.fluctuations import thin_input_warning
from meanfield.theory.mean_field.profiles import mean_field_profiles, require_floats
from meanfield.theory.outputs.batch_terms import batch_output_term, label_covariance, output_error
from meanfield.theory.outputs.label_term import correlated_term, label_term_refusal
from meanfield.theory.outputs.output_term import output_term_refusal
from meanfield.theory.outputs.whole_update import (
    Terms,
    finite_channels_note,
    finite_channels_warning,
    mean_field_terms,
    whole_update,
)


class MeanFieldLevel(NetLevel):
    """Leading order in 1/channels."""

    name = "mean_field"
    whose = "all nets"

    def has(self, net: Sequential, inputs: Array | None) -> bool:
        return True

    def takes(self, net: Sequential, options: Options) -> set[str]:
        if net.is_pooled and label_term_refusal(net, options.inputs):
            return {"inputs"}
        batches = set() if net.has_skips else {"batch", "loss"}
        return {"inputs", *batches} | (set() if options.asked & {"batch", "loss"} else {"by_site"})

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        if options.asked & {"batch", "loss"}:
            batch = PLAIN if options.batch is None else options.batch
            values = _under_batch(net, options.inputs, batch, options.loss)
            if "output_term" in values:
                logs = (np.log(values[name])[:, None] for name in ("overlap_energy", "label_term", "output_term"))
                _warn(finite_channels_warning(net, Terms(*logs)))
            refusal = output_term_refusal(net, options.inputs, batch.input_correlation, options.loss)
            attrs = {"batch": json.dumps(batch.describe()), "loss": options.loss}
            return self.dataset(
                net, options, values, attrs | _left_out(values, output_term=refusal) | _note(net, values)
            )
        terms = mean_field_terms(net, options.inputs)
        thin = thin_input_warning(net) if options.inputs is None else ""
        _warn(thin, finite_channels_warning(net, terms))
        label = None if terms.label is None else log_mean(terms.label)
        values = with_label_term(terms.overlap, label) | whole_update(terms)
        if options.by_site:
            values |= _by_site(terms)
        refusals = {"label_term": label_term_refusal(net, options.inputs)} if net.is_pooled else {}
        why = _left_out(values, **refusals, output_term=output_term_refusal(net, options.inputs))
        return self.dataset(net, options, values, why | _note(net, values))


def _left_out(values: dict[str, Array], **refusals: str) -> dict[str, str]:
    """The attribute ``left_out``: why terms are not among the values, from their refusals; none if all are."""
    held = "no float holds it, or no memory of this machine what it takes"
    why = "; ".join(f"{name}: {refusal or held}" for name, refusal in refusals.items() if name not in values)
    return {"left_out": why} if why else {}


def _note(net: Sequential, values: dict[str, Array]) -> dict[str, str]:
    """The attribute ``finite_channels``: what the net's channels add to a label term that the mean field lacks."""
    note = finite_channels_note(net) if "label_term" in values else ""
    return {"finite_channels": note} if note else {}


def _by_site(terms: Terms) -> dict[str, Array]:
    """What is known of the terms at every site, (L, S)."""
    logs = {"label_term_by_site": terms.label, "output_term_by_site": terms.output}
    known = {name: np.exp(values) for name, values in logs.items() if values is not None}
    if len(known) == len(logs):
        known["update_energy_by_site"] = known["label_term_by_site"] + known["output_term_by_site"]
    return known


def _under_batch(net: Sequential, inputs: Array | None, batch: Batch, loss: str) -> dict[str, Array]:
    """Terms of plain nets under a batch's labels and a loss, those of the outputs where they are known."""
    require_batch(batch, loss, inputs is not None)
    rho = batch.input_correlation
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, profile = mean_field_profiles(net, inputs, correlation=rho)
    own = replace(batch, labels="independent", label_mean=0.0)
    label = _label_term(net, inputs, own) if net.is_pooled else profile.mean(axis=1)
    require_floats(net, overlap, label)
    output = batch_output_term(net, inputs, label, rho, loss)
    if loss == "cross_entropy":
        label = (net.outputs - 1) * label
    elif not batch.has_plain_labels:
        label = _label_term(net, inputs, batch)
    values = {
        "overlap_energy": overlap,
        "label_term": label,
        "label_learning_rate_scale": label.mean() ** -0.5,
    }
    if output is not None:
        update = label + output
        values |= {
            "output_term": output,
            "update_energy": update,
            "output_error": output_error(net, inputs, batch, loss),
            "mean_update_energy": update.mean(),
            "learning_rate_scale": update.mean() ** -0.5,
        }
    return values


def _warn(*sentences: str) -> None:
    """Of premises that fail, to the caller of `predict`."""
    for sentence in filter(None, sentences):
        warnings.warn(sentence, PremiseWarning, stacklevel=4)


def _label_term(net: Sequential, inputs: Array | None, batch: Batch) -> Array:
    return correlated_term(net, inputs, batch.input_correlation, label_covariance(net, inputs, batch))
