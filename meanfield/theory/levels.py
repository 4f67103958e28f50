"""A level of theory that `predict` chooses from: what it is asked, which nets it serves and what it answers.

Here are the levels of nets of layers, of stages and of concatenating blocks; `meanfield.theory.levels_of_streams` has
those of loops and Transformers.

The exact level has every quantity at finite width, for fully-connected nets whose gates are fair coins or none. The
law level is the papers' depth law, its prefactor taken from the mean field at one layer. The mean-field level is the
leading order in 1/channels, for any sites, padding and, in plain nets, any batch; that of nets whose blocks
concatenate the leading order in 1/growth. The level of finite channels has what plain nets add to it at their own
number of channels.

One step of any optimizer from rest in any net of layers: which theory serves it.

Plain nets of few places have recursions. Those of more, nets with skip connections, and layers that differ are followed
over sampled units. Residual MLPs of one sample and of 'relu' or 'linear' units also have a recursion for errors that
do not depend on features. Sampled units then say by what factor the outputs' own errors change it, which tends to 1
where outputs are few against the width.
"""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from meanfield.common.validation import Array, PremiseWarning, inputs_described, takes
from meanfield.nets.dense import DenseNet
from meanfield.nets.directions import DirectionPair, checked_pairs, pair_name
from meanfield.nets.inputs import PLAIN_BATCH, Batch, require_batch
from meanfield.nets.layered import Sequential
from meanfield.nets.residual import Residual
from meanfield.nets.staged import Staged
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import Coordinates, log_mean, predicted_dataset, with_logarithms
from meanfield.theory.exact import exact_residual_terms, exact_terms, label_spread, pair_moments, relative_spread
from meanfield.theory.finite_channels import finite_channel_factor, finite_channel_refusal, unchecked_channels_warning
from meanfield.theory.laws import sum_of_minima
from meanfield.theory.mean_field.concatenated import (
    concatenated_label_refusal,
    concatenated_output_refusal,
    concatenated_terms,
)
from meanfield.theory.mean_field.label_term import correlated_term, label_profiles, label_term_refusal
from meanfield.theory.mean_field.layers import mean_field_profiles, require_floats
from meanfield.theory.mean_field.output_term import (
    batch_output_term,
    label_covariance,
    output_error,
    output_term_refusal,
)
from meanfield.theory.mean_field.plain_steps import few_channels_warning, plain_step_refusal, plain_step_terms
from meanfield.theory.mean_field.residual_steps import residual_step_refusal, residual_step_terms
from meanfield.theory.mean_field.sampled_units import sampled_averages, sampled_step_refusal
from meanfield.theory.mean_field.stages import (
    staged_label_refusal,
    staged_output_refusal,
    staged_terms,
    stages_refusal,
)
from meanfield.theory.mean_field.step_terms import StepTerms
from meanfield.theory.mean_field.whole_update import (
    LogTerms,
    finite_channels_note,
    finite_channels_warning,
    mean_field_terms,
    thin_input_warning,
    whole_update,
)
from meanfield.theory.recursions import GATES


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `predict` is asked beside the level, and its defaults."""

    inputs: Array | None = None
    batch: Batch | None = None
    loss: str = "squared"
    pairs: Iterable[Any] | None = None
    spread: bool = False
    correlations: bool = False
    by_site: bool = False
    scales: bool = False
    accuracy: float | None = None
    step: FirstStep = field(default_factory=FirstStep)

    @property
    def asked(self) -> set[str]:
        """Names of the options that differ from their defaults."""
        given = {name for name in ("inputs", "batch", "pairs", "accuracy") if getattr(self, name) is not None}
        flags = {name for name in ("spread", "correlations", "by_site", "scales") if getattr(self, name)}
        differs = {"loss": self.loss != "squared", "optimizer": not self.step.is_descent}
        return given | flags | {name for name, asked in differs.items() if asked}

    @property
    def of_one_step(self) -> bool:
        """Whether what the step changes is asked relative to layers, and of outputs, as always of other optimizers."""
        return self.scales or not self.step.is_descent


class Level(ABC):
    """One level of theory for one kind of net, loops being one.

    Attributes:
        name: how `predict` calls it.
        family: what kind of net it is for.
        whose: those of that kind that it serves, in words.
        refusals: by option that some level of this kind takes, why another one does not: the first that applies is
            given, filled in with the ``level``, the net's ``kind`` and its ``readout``.
    """

    name: ClassVar[str]
    family: ClassVar[type]
    whose: ClassVar[str]
    refusals: ClassVar[Mapping[str, str]]

    def has(self, net: Any, inputs: Array | None) -> bool:
        """Whether there is this level of theory for the net; there is unless a level says otherwise."""
        return True

    @abstractmethod
    def takes(self, net: Any, options: Options) -> set[str]:
        """Names of the options that this level takes for it."""

    @abstractmethod
    def predict(self, net: Any, options: Options) -> xr.Dataset:
        """The dataset of `meanfield.predict`, for what this level serves."""

    def serves(self, net: Any, options: Options) -> str | None:
        """None, or the reason why this level does not predict this."""
        if not self.has(net, options.inputs):
            return f"{self.name!r} is for {self.whose}"
        accepted, readout = self.takes(net, options), getattr(net, "readout", "")
        for option, sentence in self.refusals.items():
            if option in options.asked - accepted:
                return sentence.format(level=self.name, kind=type(net).__name__, readout=readout)
        return None

    def dataset(
        self,
        net: Any,
        options: Options,
        values: Mapping[str, Array],
        attrs: Mapping[str, Any] | None = None,
        coords: Coordinates | None = None,
    ) -> xr.Dataset:
        """The values with the level, the inputs and ``attrs`` as attributes."""
        described = {"level": self.name, **inputs_described(options.inputs), **(attrs or {})}
        return predicted_dataset(net, values, described, coords)


ACCURACY = (
    "accuracy is that of averages over softmaxes of random logits, of Transformers at level 'mean_field'; this is "
    "level {level!r} of {kind}: leave it out"
)
OPTIMIZER = (
    "the step of another optimizer than descent is predicted at level 'mean_field' of nets of layers and of loops; "
    "this is level {level!r} of {kind}: leave optimizer out, or draw it with `simulate`"
)
SCALES = (
    "scales of layers relative to themselves and of the outputs are predicted at level 'mean_field' of nets of layers; "
    "this is level {level!r} of {kind}: leave scales out, or draw them by `simulate` with `Energies(scales=True)`"
)
REFUSED = {"accuracy": ACCURACY, "optimizer": OPTIMIZER, "scales": SCALES}


OVERLAPS = "overlaps of pairs and spreads are predicted at level 'exact' alone; level is {level!r}"
BATCHES = (
    "batch and loss are predicted at level 'mean_field' of plain nets, under a pooled readout where its label term is; "
    "this is level {level!r} of {kind} with readout {readout!r}: leave them out"
)


class NetLevel(Level):
    """A level of theory for nets of layers."""

    family = Sequential
    refusals: ClassVar[Mapping[str, str]] = {
        "correlations": "correlations are those of the steps of a TiedLoop; nets have none: leave the option out",
        "pairs": OVERLAPS,
        "spread": OVERLAPS,
        "by_site": "by_site gives the label term at every site, at level 'mean_field' under descent without scales, "
        "for plain labels and squared loss, where it is predicted; level is {level!r}, readout {readout!r}: leave the "
        "option out",
        "batch": BATCHES,
        "loss": BATCHES,
        **REFUSED,
    }


WITHIN_BLOCKS = (
    "overlaps of pairs and spreads are predicted for plain nets; this is a {kind}, in which directions inside a block "
    "meet the stream too: leave them out, or take an MLP"
)


class ExactLevel(NetLevel):
    """Exact expectations, of pairs of directions and spreads too in plain nets.

    It needs one fully-connected input, normalised as its law says, weights under the fan-in rule, and gates that the
    closure engine can average: none at all, or in plain nets fair coins.
    """

    name = "exact"
    whose = (
        "fully-connected nets with one input of their own law, of activation 'relu' or 'linear' (residual ones: "
        "'linear') and without a weight_variance"
    )
    refusals: ClassVar[Mapping[str, str]] = {**NetLevel.refusals, "pairs": WITHIN_BLOCKS, "spread": WITHIN_BLOCKS}

    def has(self, net: Sequential, inputs: Array | None) -> bool:
        one_input = not net.grid and net.inputs == 1 and inputs is None
        gates = ("linear",) if net.has_skips else GATES
        return one_input and net.activation in gates and net.weight_variance is None and net.follows_one_rule

    def takes(self, net: Sequential, options: Options) -> set[str]:
        return set() if net.has_skips else {"pairs", "spread"}

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        pairs = () if options.pairs is None else checked_pairs(net, options.pairs)
        values = _exact_energies(net)
        if pairs:
            values |= _exact_overlaps(net, pairs)
        if options.spread:
            values["overlap_energy_relative_spread"] = relative_spread(net)
            values["label_term_relative_spread"] = label_spread(net)
        coords = {"pair": [pair_name(pair) for pair in pairs]} if pairs else None
        return self.dataset(net, options, values, coords=coords)


def _exact_energies(net: Sequential) -> dict[str, Array]:
    terms = exact_residual_terms(net) if isinstance(net, Residual) else exact_terms(net)
    update = np.logaddexp(terms.label_term, terms.output_term)
    mean_update = log_mean(update)
    logs = {
        "overlap_energy": terms.overlap_energy,
        "label_term": terms.label_term,
        "output_term": terms.output_term,
        "update_energy": update,
        "mean_update_energy": mean_update,
        "learning_rate_scale": -0.5 * mean_update,
        "label_learning_rate_scale": -0.5 * log_mean(terms.label_term),
    }
    return with_logarithms(logs)


def _exact_overlaps(net: Sequential, pairs: tuple[DirectionPair, ...]) -> dict[str, Array]:
    """Mean, second moment and conditional variance of every pair's overlap: (pairs, L)."""
    moments = [pair_moments(net, pair) for pair in pairs]
    logs = {
        "squared_overlap": np.stack([pair.log_square for pair in moments]),
        "overlap_variance": np.stack([pair.log_variance for pair in moments]),
    }
    return {"overlap": np.stack([pair.mean for pair in moments])} | with_logarithms(logs)


class LawLevel(NetLevel):
    """The sum of minima, which is claimed layer by layer for plain nets alone (Zhang et al. 2026, eqs. 22, 23)."""

    name = "law"
    whose = "plain nets without a weight_variance"

    def has(self, net: Sequential, inputs: Array | None) -> bool:
        return net.weight_variance is None and not net.has_skips and net.follows_one_rule

    def takes(self, net: Sequential, options: Options) -> set[str]:
        return {"inputs"}

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        channels, anchor = np.array(net.channels_by_layer), anchor_layer(net)
        law = sum_of_minima(channels[:-1] / channels[-1])
        growth = np.log(law / law[anchor - 1])
        overlap, profile = mean_field_profiles(net, options.inputs, last=anchor)
        label = None if net.is_pooled else profile[-1]
        if net.is_pooled and not label_term_refusal(net, options.inputs):
            label = label_profiles(net, options.inputs)[anchor - 1]
        log_label = None if label is None else np.log(label.mean()) + growth
        attrs = {"anchor_layer": anchor, "equal_layers": int(len(set(net.channels_by_layer)) == 1)}
        return self.dataset(net, options, with_label_term(np.log(overlap[-1]) + growth, log_label), attrs)


def with_label_term(log_overlap: Array, log_label: Array | None) -> dict[str, Array]:
    """The overlap energy and, where it is known, the label term with its scale; with their logarithms."""
    logs = {"overlap_energy": log_overlap}
    if log_label is not None:
        logs |= {"label_term": log_label, "label_learning_rate_scale": -0.5 * log_mean(log_label)}
    return with_logarithms(logs)


def anchor_layer(net: Sequential) -> int:
    """Layer at which the sum of minima takes its prefactor from the mean field: the first one like all others.

    That is layer 1 if the input has as many channels as the layers, else layer 2.
    """
    return 1 if net.depth == 1 or len(set(net.channels_by_layer[:2])) == 1 else 2


BATCH_OF_DESCENT = (
    "a batch with a law of its own is predicted under descent, without scales; under other optimizers, and for scales, "
    "samples and labels are independent, or inputs given: leave batch out, or optimizer and scales"
)


class MeanFieldLevel(NetLevel):
    """Leading order in 1/channels."""

    name = "mean_field"
    whose = "all nets"

    def serves(self, net: Sequential, options: Options) -> str | None:
        if options.of_one_step:
            if options.batch is not None:
                return BATCH_OF_DESCENT
            if why := layered_step_refusal(net, options.step, options.inputs):
                return why
        return super().serves(net, options)

    def takes(self, net: Sequential, options: Options) -> set[str]:
        if options.of_one_step:
            return {"inputs", "optimizer", "loss", "scales"}
        if net.is_pooled and label_term_refusal(net, options.inputs):
            return {"inputs"}
        batches = {"batch", "loss"} if net.follows_one_rule and not net.has_skips else set()
        return {"inputs", *batches} | (set() if options.asked & {"batch", "loss"} else {"by_site"})

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        if options.of_one_step:
            terms = layered_step_terms(net, options.step, options.inputs, options.loss)
            thin = thin_input_warning(net) if options.inputs is None else ""
            _warn(thin, few_channels_warning(net))
            attrs = {"optimizer": options.step.name, "loss": options.loss}
            return self.dataset(net, options, terms.values, attrs | dict(terms.attrs))
        if options.asked & {"batch", "loss"}:
            batch = PLAIN_BATCH if options.batch is None else options.batch
            values = _under_batch(net, options.inputs, batch, options.loss)
            if "output_term" in values:
                logs = (np.log(values[name])[:, None] for name in ("overlap_energy", "label_term", "output_term"))
                _warn(finite_channels_warning(net, LogTerms(*logs)))
            refusal = output_term_refusal(net, options.inputs, batch.input_correlation, options.loss)
            attrs = {"batch": json.dumps(batch.describe()), "loss": options.loss}
            return self.dataset(
                net, options, values, attrs | _left_out(values, output_term=refusal) | _note(net, values)
            )
        leading = mean_field_terms(net, options.inputs)
        thin = thin_input_warning(net) if options.inputs is None else ""
        _warn(thin, finite_channels_warning(net, leading))
        label = None if leading.label is None else log_mean(leading.label)
        values = with_label_term(leading.overlap, label) | whole_update(leading)
        if options.by_site:
            values |= _by_site(leading)
        refusals = {"label_term": label_term_refusal(net, options.inputs)} if net.is_pooled else {}
        why = _left_out(values, **refusals, output_term=output_term_refusal(net, options.inputs))
        return self.dataset(net, options, values, why | _note(net, values))


class FiniteChannelsLevel(NetLevel):
    """The mean field of label term and overlap energy, times what a net's own number of channels makes of them.

    It is exact in linear nets and for one site, and complete at first order in 1/channels in all others that it serves
    (`finite_channel_factor`). What channels make of output terms on grids is not known.
    """

    name = "finite_channels"
    whose = "plain nets of 'relu' or 'linear' units"

    def serves(self, net: Sequential, options: Options) -> str | None:
        return finite_channel_refusal(net, options.inputs, "overlap_energy") or super().serves(net, options)

    def takes(self, net: Sequential, options: Options) -> set[str]:
        return {"inputs"}

    def predict(self, net: Sequential, options: Options) -> xr.Dataset:
        terms = mean_field_terms(net, options.inputs)
        why = finite_channel_refusal(net, options.inputs, "label_term")
        known = ["overlap_energy"] if why else ["overlap_energy", "label_term"]
        with np.errstate(over="ignore"):  # seen below
            factors = {name: finite_channel_factor(net, options.inputs, name) for name in known}
        if not all(np.all(np.isfinite(factor)) for factor in factors.values()):
            raise OverflowError(
                f"at depth {net.depth} and {min(net.channels_by_layer[1:])} channels the mean field and what channels "
                "make of it are further apart than a float holds: lower the depth, or raise the channels"
            )
        label = None
        if not why and terms.label is not None:
            label = log_mean(terms.label) + np.log(factors["label_term"])
        values = with_label_term(terms.overlap + np.log(factors["overlap_energy"]), label)
        _warn(unchecked_channels_warning(net))
        return self.dataset(net, options, values, _left_out(values, label_term=why, output_term=NO_OUTPUT_TERM))


NO_OUTPUT_TERM = (
    "what finitely many channels make of it is known for one site alone, at level 'exact'; `simulate` draws it, level "
    "'mean_field' has its limit of many channels"
)


class StagedMeanFieldLevel(Level):
    """Leading order in 1/channels, over all pairs of sites of every stage."""

    name = "mean_field"
    family = Staged
    whose = "nets in stages of downsampling 'stride'"
    refusals: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("batch", "loss", "pairs", "spread", "by_site"),
            "batch, loss, pairs, spread and by_site are predicted for nets of one grid; this is a {kind}: leave them "
            "out",
        ),
        "correlations": NetLevel.refusals["correlations"],
        **REFUSED,
    }

    def serves(self, net: Staged, options: Options) -> str | None:
        return stages_refusal(net) or super().serves(net, options)

    def takes(self, net: Staged, options: Options) -> set[str]:
        return {"inputs"}

    def predict(self, net: Staged, options: Options) -> xr.Dataset:
        terms = staged_terms(net, options.inputs)
        _warn(thin_input_warning(net) if options.inputs is None else "", finite_channels_warning(net, terms))
        label = None if terms.label is None else log_mean(terms.label)
        values = with_label_term(terms.overlap, label) | whole_update(terms)
        refusals = {"label_term": staged_label_refusal(net), "output_term": staged_output_refusal(net)}
        return self.dataset(net, options, values, _left_out(values, **refusals) | _note(net, values))


def _left_out(values: dict[str, Array], **refusals: str) -> dict[str, str]:
    """The attribute ``left_out``: why terms are not among the values, from their refusals; none if all are."""
    held = "no float holds it, or no memory of this machine what it takes"
    why = "; ".join(f"{name}: {refusal or held}" for name, refusal in refusals.items() if name not in values)
    return {"left_out": why} if why else {}


def _note(net: Sequential | Staged, values: dict[str, Array]) -> dict[str, str]:
    """The attribute ``finite_channels``: what the net's channels add to a label term that the mean field lacks."""
    note = finite_channels_note(net) if "label_term" in values else ""
    return {"finite_channels": note} if note else {}


def _by_site(terms: LogTerms) -> dict[str, Array]:
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


BLOCKS_ALONE = (
    "batch, loss, pairs, spread and accuracy are for other nets; this is a {kind}, whose energies are predicted for "
    "plain labels and squared loss: leave them out"
)


class ConcatenatingMeanFieldLevel(Level):
    """Leading order in 1/growth."""

    name = "mean_field"
    family = DenseNet
    whose = "all nets whose blocks concatenate"
    refusals: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("batch", "loss", "pairs", "spread", "accuracy"), BLOCKS_ALONE),
        "correlations": NetLevel.refusals["correlations"],
        "by_site": NetLevel.refusals["by_site"],
        "optimizer": OPTIMIZER,
        "scales": SCALES,
    }

    def takes(self, net: DenseNet, options: Options) -> set[str]:
        return {"inputs"} if concatenated_label_refusal(net, options.inputs) else {"inputs", "by_site"}

    def predict(self, net: DenseNet, options: Options) -> xr.Dataset:
        terms = concatenated_terms(net, options.inputs)
        thin = options.inputs is None and net.first_channels < (net.width if net.stem else net.growth)
        _warn(thin_input_warning(net.plain) if thin else "")
        values = with_label_term(terms.overlap, None if terms.label is None else log_mean(terms.label))
        values |= whole_update(terms) | (_by_site(terms) if options.by_site else {})
        refusals = {
            "label_term": concatenated_label_refusal(net, options.inputs),
            "output_term": concatenated_output_refusal(net, options.inputs),
        }
        return self.dataset(net, options, values, _left_out(values, **refusals))


def _warn(*sentences: str) -> None:
    """Warn the caller of `predict` of premises that fail."""
    for sentence in filter(None, sentences):
        warnings.warn(sentence, PremiseWarning, stacklevel=4)


def _label_term(net: Sequential, inputs: Array | None, batch: Batch) -> Array:
    return correlated_term(net, inputs, batch.input_correlation, label_covariance(net, inputs, batch))


@takes(Sequential)
def layered_step_terms(
    net: Sequential, step: FirstStep, inputs: Array | None = None, loss: str = "squared"
) -> StepTerms:
    """The terms of one step of this optimizer from rest, at learning rate 1.

    Raises:
        ValueError: a net, an input or an optimizer without this theory, saying why.
        OverflowError: energies outside the range of floats.

    Source: docs/theory.md section 24.
    """
    if why := layered_step_refusal(net, step, inputs):
        raise ValueError(why)
    if not plain_step_refusal(net, step, inputs):
        return plain_step_terms(net, step, inputs, loss)
    sampled = sampled_averages(net, step, inputs, loss)
    label, output, update = sampled.energies
    value, attrs = sampled.values, dict[str, Any](sampled.attrs)
    error = float((sampled.errors / sampled.energies).max())
    if net.has_skips and not residual_step_refusal(net, step, inputs):
        known: Any = residual_step_terms(net, step, inputs)
        share = known.label[-1] / known.update[-1]  # of the labels' error: 1 where a step does not know its size
        correction = share * np.append(known.update, known.outputs) / label
        if loss == "cross_entropy":  # labels that are no Gaussians
            correction[-1] = correction[-2]
        label, output, update = (each * correction for each in (label, output, update))
        value, attrs = known.value, dict(known.attrs) | attrs
        error = float(np.hypot(error, attrs.get("relative_error", 0.0)))
    return StepTerms(
        update=update[:-1],
        value=value,
        label=label[:-1],
        output=output[:-1],
        outputs=float(update[-1]),
        attrs=attrs | {"relative_error": error},
    )


@takes(Sequential)
def layered_step_refusal(net: Sequential, step: FirstStep, inputs: Array | None = None) -> str:
    """Why `layered_step_terms` does not serve this net and this optimizer, and what to take; empty if it does."""
    return plain_step_refusal(net, step, inputs) and sampled_step_refusal(net, step, inputs)
