"""`predict`: one entry to every level of theory, answering in the schema of `simulate`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from meanfield.common.digests import inputs_described
from meanfield.common.validation import PremiseWarning, require_choice, require_flag
from meanfield.nets.directions import Pair, checked_pairs, pair_name
from meanfield.nets.families.known import require_net
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.loop import Loop
from meanfield.nets.families.residual import Residual
from meanfield.nets.inputs.batches import PLAIN, Batch
from meanfield.nets.inputs.given import checked_inputs
from meanfield.nets.net import Net
from meanfield.quantities.datasets import predicted_dataset
from meanfield.theory.batch_prediction import batch_values
from meanfield.theory.exact.closure import GATES
from meanfield.theory.exact.pair_overlaps import pair_moments
from meanfield.theory.exact.plain import exact_terms, label_spread, relative_spread
from meanfield.theory.exact.residual import exact_residual_terms
from meanfield.theory.laws import plain as laws
from meanfield.theory.logarithms import with_logarithms
from meanfield.theory.loops.prediction import loop_levels, loop_values
from meanfield.theory.mean_field import label_term as mean_field
from meanfield.theory.mean_field.gram_excess import thin_input_warning
from meanfield.theory.net_prediction import log_terms

Array = NDArray[np.float64]

LEVELS = ("mean_field", "law")
# The nets that have a level which not all have.
WHOSE = {
    "exact": "fully-connected nets with one input of their own law, of activation 'relu' or 'linear' (residual ones: "
    "'linear') and without a weight_variance",
    "law": "plain nets without a weight_variance",
}


def predict(
    architecture: Sequential | Loop,
    *,
    level: str,
    inputs: ArrayLike | None = None,
    batch: Batch | None = None,
    loss: str = "squared",
    pairs: Iterable[Any] | None = None,
    spread: bool = False,
    correlations: bool = False,
    by_site: bool = False,
) -> xr.Dataset:
    """Expected update energy and its parts at every layer, or residual energy at every step, without drawing anything.

    Args:
        architecture: the net, or the loop.
        level: "exact", at finite width and any depth, for fully-connected nets with one input and activation "relu" or
            "linear", residual ones if linear (docs/theory.md sections 3, 4, 8);
            "mean_field", leading order in 1/channels for any sites and padding (docs/theory.md section 6); or "law",
            the papers' sum of minima l (l + 1)(2 l + 1)/6 with its prefactor set at `anchor_layer` (P0 eq. 22, 23).
            Loops: "mean_field", the covariance of the stream at infinite width (docs/theory.md section 11), or "law",
            its closed form, for linear loops and independent steps of "relu" and "linear".
        inputs: a given batch (samples, channels, *grid); the architecture's own input law if not given.
        batch: how the samples of a plain net's batch hang together, at level "mean_field", as for `simulate`.
        loss: "squared" or, at level "mean_field" of plain nets, "cross_entropy", as for `simulate`.
        pairs: parameter directions ((layer, unit), (layer, unit)) whose overlaps to predict too, at level "exact"; as
            for `simulate_overlaps`.
        spread: whether to add, at level "exact" of plain nets, the relative spread of one draw of the overlap energy
            and of the label term, from which (spread / e)^2 draws follow for a relative error e.
        correlations: whether to add, at level "mean_field" of loops, what every two steps share: L^2 numbers each.
        by_site: whether to add, at level "mean_field" of nets with a convolutional readout, plain labels and squared
            loss, the label term at every site: ``label_term_by_site`` over ``layer`` and ``site``, sites row by row.

    Returns:
        Dataset over ``layer``, for labels of variance 1 at learning rate 1. All levels: ``overlap_energy``; under a
        convolutional readout (and for fully-connected nets) ``label_term`` and ``label_learning_rate_scale``; with
        log_NAME of each, finite at depths where the quantity itself overflows to infinity. Under a pooled readout
        labels reach all sites alike and the label term does not reduce to the overlap energy, so it is left out. With
        ``batch`` (or cross-entropy) the terms are those of its labels, without logarithms, and, of fully-connected
        nets, ``output_term`` is added at leading order in outputs x depth / width, and what follows from it; under
        cross-entropy for one sample. The exact level adds ``output_term``, ``update_energy``, ``mean_update_energy``
        and ``learning_rate_scale``, with logarithms; and with ``pairs``, over ``pair`` and ``layer``, ``overlap``
        (mean), ``squared_overlap`` and ``overlap_variance`` (of T_l given the layers below), the last two with theirs.

        Loops instead over ``step``: ``residual_energy``, ``initial_energy`` (1), ``cross_term`` (0) and
        ``correlation_term``, and with ``correlations``, over ``step`` and ``step_other``, ``increment_correlation`` and
        ``feature_overlap``; with log_NAME of all but the cross term, finite where the energy overflows to infinity.

    Raises:
        TypeError, ValueError: what is neither net nor loop; a level that does not exist for this net, naming those that
            do; inputs of the wrong shape, that vanish or whose energies no float holds; options of another family or
            level; labels that correlate samples where gates are neither ReLU's nor linear; a loop whose stream leaves
            what averages of its smooth activation are computed for.
        OverflowError: a mean field that leaves the range of floats by more than powers of the weights' variance.
        MemoryError: more pairs of sites, or of steps, than the machine can hold, saying how much they need.
    """
    if isinstance(architecture, Net) and not isinstance(architecture, Sequential | Loop):
        raise ValueError(
            f"level for {type(architecture).__name__} is {level!r}; there is none yet: the second moment of the "
            "tangent kernel between channels, from which update energies follow, is not known behind attention, "
            "normalisation and gates; simulate this net instead"
        )
    require_net(architecture, loops=True)
    asked = {"spread": spread, "correlations": correlations, "by_site": by_site}
    for name, value in asked.items():
        require_flag(name, value)
    if isinstance(architecture, Loop):
        name = f"TiedLoop of tied={architecture.tied} and activation={architecture.activation!r}"
        require_choice(f"level for {name}", level, loop_levels(architecture))
        given = [option is not None for option in (inputs, pairs, batch)]
        if any(given) or spread or by_site or loss != "squared":
            raise ValueError(
                "inputs, batch, loss, pairs, spread and by_site are for nets; a loop starts from h_0 ~ N(0, I): leave "
                "them out"
            )
        return predicted_dataset(architecture, loop_values(architecture, level, correlations), {"level": level})
    if correlations:
        raise ValueError("correlations are those of the steps of a TiedLoop; nets have none: leave the option out")
    inputs = checked_inputs(architecture, inputs)
    _require_level(architecture, level, inputs)
    attrs: dict[str, Any] = {"level": level, **inputs_described(inputs)}
    if level != "exact" and (pairs is not None or spread):
        raise ValueError(f"overlaps of pairs and spreads are predicted at level 'exact' alone; level is {level!r}")
    if by_site:
        _require_profile(architecture, level, batch, loss)
    if batch is not None or loss != "squared":
        return _under_batch(architecture, inputs, PLAIN if batch is None else batch, loss, attrs)
    if level == "exact":
        return _exact(architecture, pairs, spread, attrs)
    if level == "law":
        return _law(architecture, inputs, attrs)
    return _mean_field(architecture, inputs, by_site, attrs)


def _mean_field(architecture: Sequential, inputs: Array | None, by_site: bool, attrs: dict[str, Any]) -> xr.Dataset:
    overlap, profile = log_terms(architecture, inputs)
    if inputs is None and (sentence := thin_input_warning(architecture)):
        warnings.warn(sentence, PremiseWarning, stacklevel=3)
    values = _with_label_term(architecture, overlap, logsumexp(profile, axis=1) - np.log(profile.shape[1]))
    if by_site:
        values["label_term_by_site"] = np.exp(profile)
    return predicted_dataset(architecture, values, attrs)


def _require_profile(architecture: Sequential, level: str, batch: Batch | None, loss: str) -> None:
    """Raise ValueError unless the label term is predicted by site."""
    if level != "mean_field" or architecture.is_pooled or batch is not None or loss != "squared":
        raise ValueError(
            "by_site is the label term's at level 'mean_field', for plain labels and squared loss, and there is none "
            f"under a pooled readout; level is {level!r}, readout {architecture.readout!r}: leave the option out"
        )


def _law(architecture: Sequential, inputs: ArrayLike | None, attrs: dict[str, Any]) -> xr.Dataset:
    anchor = anchor_layer(architecture)
    channels = np.array(architecture.channels_by_layer)
    law = laws.sum_of_minima(channels[:-1] / channels[-1])
    terms = mean_field.overlap_and_label_terms(architecture, inputs, anchor)
    overlap, label = (term[-1] * law / law[anchor - 1] for term in terms)
    attrs |= {"anchor_layer": anchor, "equal_layers": int(len(set(architecture.channels_by_layer)) == 1)}
    return predicted_dataset(architecture, _with_label_term(architecture, np.log(overlap), np.log(label)), attrs)


def _with_label_term(architecture: Sequential, log_overlap: Array, log_label: Array) -> dict[str, Array]:
    """The overlap energy and, where the readout has it, the label term with its scale; with their logarithms."""
    logs = {"overlap_energy": log_overlap}
    if not architecture.is_pooled:
        logs |= {"label_term": log_label, "label_learning_rate_scale": -0.5 * _log_mean(log_label)}
    return with_logarithms(logs)


def _log_mean(logs: Array) -> Array:
    """ln of the mean over layers of what has these logarithms."""
    return np.asarray(logsumexp(logs) - np.log(len(logs)))


def _under_batch(
    architecture: Sequential, inputs: ArrayLike | None, batch: Batch, loss: str, attrs: dict[str, Any]
) -> xr.Dataset:
    if attrs["level"] != "mean_field" or architecture.has_skips or architecture.is_pooled:
        raise ValueError(
            f"batch and loss are predicted at level 'mean_field' of plain nets without pooling; this is level "
            f"{attrs['level']!r} of {type(architecture).__name__} with readout {architecture.readout!r}: leave them out"
        )
    values = batch_values(architecture, inputs, batch, loss)
    attrs |= {"batch": json.dumps(batch.describe()), "loss": loss}
    return predicted_dataset(architecture, values, attrs)


def _require_level(architecture: Sequential, level: str, inputs: Array | None) -> None:
    """Raise ValueError unless the net has this level, saying whose it is."""
    levels, name = _levels(architecture, inputs), f"level for {type(architecture).__name__}"
    if level in WHOSE and level not in levels:
        known = ", ".join(map(repr, levels))
        raise ValueError(f"{name} is {level!r}; choose one of {known}: {level!r} is for {WHOSE[level]}")
    require_choice(name, level, levels)


def _levels(architecture: Sequential, inputs: ArrayLike | None) -> tuple[str, ...]:
    """The levels that this net has.

    The exact one needs one fully-connected input, normalised as its law says, and gates that the closure engine can
    average: none at all, or in plain nets fair coins. The sum of minima is claimed layer by layer for plain nets alone.
    Both are for weights under the fan-in rule.
    """
    if architecture.weight_variance is not None:
        return ("mean_field",)
    one_input = not architecture.grid and architecture.inputs == 1 and inputs is None
    gates = ("linear",) if architecture.has_skips else GATES
    exact = ("exact",) if one_input and architecture.activation in gates else ()
    return (*exact, "mean_field") if architecture.has_skips else (*exact, *LEVELS)


def _exact(architecture: Sequential, pairs: Iterable[Any] | None, spread: bool, attrs: dict[str, Any]) -> xr.Dataset:
    if architecture.has_skips and (pairs is not None or spread):
        raise ValueError(
            f"overlaps of pairs and spreads are predicted for plain nets; this is a {type(architecture).__name__}, in "
            "which directions inside a block meet the stream too: leave them out, or take an MLP"
        )
    chosen = () if pairs is None else checked_pairs(architecture, pairs)
    values = _exact_values(architecture)
    if chosen:
        values |= _overlap_values(architecture, chosen)
    if spread:
        values["overlap_energy_relative_spread"] = relative_spread(architecture)
        values["label_term_relative_spread"] = label_spread(architecture)
    coords = {"pair": [pair_name(pair) for pair in chosen]} if chosen else None
    return predicted_dataset(architecture, values, attrs, coords)


def _overlap_values(architecture: Sequential, pairs: tuple[Pair, ...]) -> dict[str, Array]:
    """Mean, second moment and conditional variance of every pair's overlap: (pairs, L)."""
    moments = [pair_moments(architecture, pair) for pair in pairs]
    logs = {
        "squared_overlap": np.stack([found.log_square for found in moments]),
        "overlap_variance": np.stack([found.log_variance for found in moments]),
    }
    return {"overlap": np.stack([found.mean for found in moments])} | with_logarithms(logs)


def _exact_values(architecture: Sequential) -> dict[str, Array]:
    """Every quantity by layer of the exact level, with its logarithm."""
    terms = exact_residual_terms(cast(Residual, architecture)) if architecture.has_skips else exact_terms(architecture)
    update = np.logaddexp(terms.label_term, terms.output_term)
    mean_update, mean_label = _log_mean(update), _log_mean(terms.label_term)
    logs = {
        "overlap_energy": terms.overlap_energy,
        "label_term": terms.label_term,
        "output_term": terms.output_term,
        "update_energy": update,
        "mean_update_energy": mean_update,
        "learning_rate_scale": -0.5 * mean_update,
        "label_learning_rate_scale": -0.5 * mean_label,
    }
    return with_logarithms(logs)


def anchor_layer(architecture: Sequential) -> int:
    """Layer at which the sum of minima takes its prefactor from the mean field: the first one like all others.

    That is layer 1 if the input has as many channels as the layers, else layer 2.
    """
    return 1 if architecture.depth == 1 or len(set(architecture.channels_by_layer[:2])) == 1 else 2
