"""`predict`: one entry to every level of theory, answering in the schema of `simulate`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from meanfield.architectures import INPUT_LAYOUT, MLP, Sequential
from meanfield.datasets import predicted_dataset
from meanfield.directions import Pair, checked_pairs, pair_name
from meanfield.loops import TiedLoop
from meanfield.memory import NUMBER_BYTES, require_bytes
from meanfield.residual import ResidualMLP
from meanfield.theory import laws, mean_field, stream_mean_field
from meanfield.theory.closure import GATES
from meanfield.theory.exact import exact_terms, label_spread, relative_spread
from meanfield.theory.exact_residual import exact_residual_terms
from meanfield.theory.logarithms import with_logarithms
from meanfield.theory.loop_prediction import loop_levels, loop_values
from meanfield.theory.pair_overlaps import pair_moments
from meanfield.theory.transport import Transport
from meanfield.validation import require_array, require_choice

Array = NDArray[np.float64]

LEVELS = ("mean_field", "law")

# Square arrays over pairs of sites that the recursion holds at once.
SITE_PAIR_ARRAYS = 12


def predict(
    architecture: Sequential | TiedLoop,
    *,
    level: str,
    inputs: ArrayLike | None = None,
    pairs: Iterable[Any] | None = None,
    spread: bool = False,
    correlations: bool = False,
    by_site: bool = False,
) -> xr.Dataset:
    """Expected update energy and its parts at every layer, or residual energy at every step, without drawing anything.

    Args:
        architecture: the net, or the loop.
        level: "exact", at finite width and any depth, for fully-connected nets with one input and activation "relu" or
            "linear", residual ones if linear (THEORY sections 3, 6, 8);
            "mean_field", leading order in 1/channels for any sites and padding (THEORY section 4); or "law", the
            papers' sum of minima l (l + 1)(2 l + 1)/6 with its prefactor set at `anchor_layer` (P0 eq. 22, 23).
            Loops: "mean_field", the covariance of the stream at infinite width (THEORY section 5), or "law", its closed
            form, for linear loops and independent steps of "relu" and "linear".
        inputs: a given batch (samples, channels, *grid); the architecture's own input law if not given.
        pairs: parameter directions ((layer, unit), (layer, unit)) whose overlaps to predict too, at level "exact"; as
            for `simulate_overlaps`.
        spread: whether to add, at level "exact" of plain nets, the relative spread of one draw of the overlap energy
            and of the label term, from which (spread / e)^2 draws follow for a relative error e.
        correlations: whether to add, at level "mean_field" of loops, what every two steps share: L^2 numbers each.
        by_site: whether to add, at level "mean_field" of nets with a convolutional readout, the label term at every
            site: ``label_term_by_site`` over ``layer`` and ``site``, sites row by row.

    Returns:
        Dataset over ``layer``, for labels of variance 1 at learning rate 1. All levels: ``overlap_energy``; under a
        convolutional readout (and for fully-connected nets) ``label_term`` and ``label_learning_rate_scale``. Under a
        pooled readout labels reach all sites alike and the label term does not reduce to the overlap energy, so it is
        left out. The exact level adds ``output_term``, ``update_energy``, ``mean_update_energy``,
        ``learning_rate_scale``, and log_NAME of every quantity, finite at depths where the quantity itself
        overflows to infinity; and with ``pairs``, over ``pair`` and ``layer``, ``overlap`` (mean), ``squared_overlap``
        and ``overlap_variance`` (of T_l given the layers below), the last two with their logarithms.

        Loops instead over ``step``: ``residual_energy``, ``initial_energy`` (1), ``cross_term`` (0) and
        ``correlation_term``, and with ``correlations``, over ``step`` and ``step_other``, ``increment_correlation`` and
        ``feature_overlap``; with log_NAME of all but the cross term, finite where the energy overflows to infinity.

    Raises:
        ValueError: a level that does not exist for this net, naming those that do; inputs of the wrong shape; options
            of another family or level; a loop whose stream leaves what averages of its smooth activation are computed
            for.
        MemoryError: more pairs of sites, or of steps, than the machine can hold, saying how much they need.
    """
    if isinstance(architecture, TiedLoop):
        name = f"TiedLoop of tied={architecture.tied} and activation={architecture.activation!r}"
        require_choice(f"level for {name}", level, loop_levels(architecture))
        if inputs is not None or pairs is not None or spread or by_site:
            raise ValueError(
                "inputs, pairs, spread and by_site are for nets; a loop starts from h_0 ~ N(0, I): leave them out"
            )
        return predicted_dataset(architecture, loop_values(architecture, level, correlations), {"level": level})
    if correlations:
        raise ValueError("correlations are those of the steps of a TiedLoop; nets have none: leave the option out")
    require_choice(f"level for {type(architecture).__name__}", level, _levels(architecture, inputs))
    attrs: dict[str, Any] = {"level": level}
    if by_site and (level != "mean_field" or architecture.is_pooled):
        raise ValueError(
            "by_site is the label term's at level 'mean_field', which has none under a pooled readout; level is "
            f"{level!r}, readout {architecture.readout!r}: leave the option out"
        )
    if level == "exact":
        return _exact(cast(MLP, architecture), pairs, spread, attrs)
    if pairs is not None or spread:
        raise ValueError(f"overlaps of pairs and spreads are predicted at level 'exact' alone; level is {level!r}")
    if level == "law":
        return _law(architecture, inputs, attrs)
    if architecture.has_skips:
        overlap, profile = _stream_terms(architecture, inputs)
    else:
        overlap, profile = _mean_field_terms(architecture, inputs, len(architecture.layers))
    values = _with_label_term(architecture, overlap, profile.mean(axis=1))
    if by_site:
        values["label_term_by_site"] = profile
    return predicted_dataset(architecture, values, attrs)


def _levels(architecture: Sequential, inputs: ArrayLike | None) -> tuple[str, ...]:
    """The levels that this net has.

    The exact one needs one fully-connected input, normalised as its law says, and gates that the closure engine can
    average: none at all, or in plain nets fair coins. The sum of minima is claimed layer by layer for plain nets alone.
    """
    one_input = isinstance(architecture, MLP) and architecture.inputs == 1 and inputs is None
    gates = ("linear",) if architecture.has_skips else GATES
    exact = ("exact",) if one_input and architecture.activation in gates else ()
    return (*exact, "mean_field") if architecture.has_skips else (*exact, *LEVELS)


def _exact(architecture: MLP, pairs: Iterable[Any] | None, spread: bool, attrs: dict[str, Any]) -> xr.Dataset:
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


def _law(architecture: Sequential, inputs: ArrayLike | None, attrs: dict[str, Any]) -> xr.Dataset:
    anchor = anchor_layer(architecture)
    channels = np.array(architecture.channels_by_layer)
    law = laws.sum_of_minima(channels[:-1] / channels[-1])
    terms = _mean_field_terms(architecture, inputs, anchor)
    overlap, label = (term[-1].mean() * law / law[anchor - 1] for term in terms)
    attrs |= {"anchor_layer": anchor, "equal_layers": int(len(set(architecture.channels_by_layer)) == 1)}
    return predicted_dataset(architecture, _with_label_term(architecture, overlap, label), attrs)


def _with_label_term(architecture: Sequential, overlap: Array, label: Array) -> dict[str, Array]:
    """The overlap energy and, where the readout has it, the label term with its scale."""
    if architecture.is_pooled:
        return {"overlap_energy": overlap}
    return {"overlap_energy": overlap, "label_term": label, "label_learning_rate_scale": label.mean() ** -0.5}


def _overlap_values(architecture: MLP, pairs: tuple[Pair, ...]) -> dict[str, Array]:
    """Mean, second moment and conditional variance of every pair's overlap: (pairs, L)."""
    moments = [pair_moments(architecture, pair) for pair in pairs]
    logs = {
        "squared_overlap": np.stack([found.log_square for found in moments]),
        "overlap_variance": np.stack([found.log_variance for found in moments]),
    }
    return {"overlap": np.stack([found.mean for found in moments])} | with_logarithms(logs)


def _exact_values(architecture: MLP) -> dict[str, Array]:
    """Every quantity by layer of the exact level, with its logarithm."""
    terms = exact_residual_terms(architecture) if isinstance(architecture, ResidualMLP) else exact_terms(architecture)
    update = np.logaddexp(terms.label_term, terms.output_term)
    mean_update, mean_label = (logsumexp(log) - np.log(len(log)) for log in (update, terms.label_term))
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


def _mean_field_terms(architecture: Sequential, inputs: ArrayLike | None, last: int) -> tuple[Array, Array]:
    """F_l and, for independent labels of variance 1 at all output sites, n_l F w / M^2 by site, of mean B_l: (L, S)."""
    transport, product = input_products(architecture, inputs)
    places = architecture.inputs * architecture.sites
    outputs = architecture.output_units * architecture.inputs
    overlap, label = [], []
    layers = mean_field.layer_moments(architecture, transport, product)
    gates = mean_field.gate_energies(architecture, transport, product)
    weights = mean_field.label_weights(architecture, gates)
    for channels, weight, moments in zip(
        architecture.channels_by_layer[1 : last + 1], weights[:last], islice(layers, last), strict=True
    ):
        pairs = moments.overlap(channels)
        overlap.append(transport.mean(pairs))
        label.append(channels * places * transport.by_site(pairs, weight) / outputs**2)
    return np.array(overlap), np.array(label)


def _stream_terms(architecture: Sequential, inputs: ArrayLike | None) -> tuple[Array, Array]:
    """The same for every depth unit of a net with skip connections; labels stand at the second site of a pair."""
    transport, product = input_products(architecture, inputs)
    units = (
        architecture.inputs * architecture.sites * np.array(architecture.channels_by_layer)[[*architecture.unit_ends]]
    )
    outputs = architecture.output_units * architecture.inputs
    terms = stream_mean_field.terms(architecture, transport, product)
    found = [(transport.mean(pairs.overlap), transport.by_site(pairs.label)) for pairs in terms]
    overlap, label = map(np.array, zip(*found, strict=True))
    return overlap, units[:, None] * label / outputs**2


def input_products(architecture: Sequential, inputs: ArrayLike | None) -> tuple[Transport, Array]:
    """E[sigma(x) sigma(x')] over pairs of sites of the input, in the leanest representation that serves it."""
    if inputs is not None or architecture.padding != "circular":
        pairs = (architecture.inputs * architecture.sites) ** 2
        needed = SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs
        require_bytes(needed, "the mean field over all pairs of sites", "grid or samples")
    if inputs is None:
        return mean_field.white_product(architecture)
    batch = require_array("inputs", inputs, architecture.input_shape, INPUT_LAYOUT)
    if any(layer.skip == 0 for layer in architecture.layers):
        raise ValueError("a stream that starts from given values is not Gaussian; put a layer before it: stem=1")
    return mean_field.given_product(architecture, batch)
