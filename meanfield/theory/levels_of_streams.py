"""The levels of theory of loops: energies of the stream by step, and what every two steps share.

The level of theory of Transformers: the leading order in 1/channels, 1/heads and 1/(head size).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from math import log
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from meanfield.common.machine import NUMBER_BYTES, require_bytes
from meanfield.common.validation import Array, PremiseWarning
from meanfield.nets.loop import Loop
from meanfield.nets.transformer import TokenStream
from meanfield.quantities.registry import log_mean, with_logarithms
from meanfield.theory.levels import OPTIMIZER, REFUSED, SCALES, Level, Options
from meanfield.theory.loops import has_closed_energy, log_correlation_law, pair_averages, steps
from meanfield.theory.maps import POINTS, accurate_averages
from meanfield.theory.mean_field.sampled_units import loop_step_refusal, loop_step_terms
from meanfield.theory.mean_field.whole_update import LogTerms, whole_update
from meanfield.theory.transformers.terms import (
    ROTARY,
    TokenTerms,
    many_outputs_warning,
    refusal_of_all_roads,
    token_terms,
)
from meanfield.theory.transformers.tied import stream_energies

# Square arrays over pairs of steps that a prediction holds at once: two quantities and their logarithms.
STEP_PAIR_ARRAYS = 4
OF_NETS = (
    "inputs, batch, loss, pairs, spread and by_site are for nets; a loop starts from h_0 ~ N(0, I): leave them out"
)


class LoopLevel(Level):
    """A level of theory for loops, which finds logarithms by step or pair of steps."""

    family = Loop
    refusals: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("inputs", "batch", "loss", "pairs", "spread", "by_site"), OF_NETS),
        "correlations": "correlations of steps are predicted at level 'mean_field' alone; level is {level!r}",
        **REFUSED,
    }

    def predict(self, net: Loop, options: Options) -> xr.Dataset:
        logs = self._logs(net, options.correlations)
        energies = {"initial_energy": np.zeros(()), "residual_energy": np.logaddexp(0.0, logs["correlation_term"])}
        values = with_logarithms(energies | logs) | {"cross_term": np.zeros(net.depth)}
        return self.dataset(net, options, values)

    @abstractmethod
    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        """Quantities but the stream's energies, by name."""


class LoopLawLevel(LoopLevel):
    """The closed form of the mean field, where there is one."""

    name = "law"
    whose = "loops of 'linear', and of 'relu' with independent steps"

    def has(self, net: Loop, inputs: Array | None) -> bool:
        return has_closed_energy(net)

    def takes(self, net: Loop, options: Options) -> set[str]:
        return set()

    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        return {"correlation_term": log_correlation_law(loop)}


class LoopMeanFieldLevel(LoopLevel):
    """The covariance of the stream at infinite width."""

    name = "mean_field"
    whose = "all loops"

    def serves(self, net: Loop, options: Options) -> str | None:
        if "optimizer" in options.asked:
            if options.correlations:
                return "correlations are those of steps before anything moves: leave correlations or optimizer out"
            if why := loop_step_refusal(net, options.step):
                return why
        return super().serves(net, options)

    def takes(self, net: Loop, options: Options) -> set[str]:
        return {"optimizer", "scales"} if "optimizer" in options.asked else {"correlations"}

    def predict(self, net: Loop, options: Options) -> xr.Dataset:
        if "optimizer" not in options.asked:
            return super().predict(net, options)
        terms = loop_step_terms(net, options.step)
        return self.dataset(net, options, terms.values, {"optimizer": options.step.name} | dict(terms.attrs))

    def _logs(self, loop: Loop, correlations: bool) -> dict[str, Array]:
        """The logarithms by step and, if asked for, by pair of steps; step s is the increment that makes h_s of
        h_{s-1}."""
        if correlations:
            needed = STEP_PAIR_ARRAYS * NUMBER_BYTES * loop.depth**2
            require_bytes(needed, "the correlation of all pairs of steps", "depth, or leave correlations out")
        term, features = np.empty(loop.depth), np.empty((loop.depth, loop.depth) if correlations else 0)
        for index, step in enumerate(steps(loop)):
            term[index] = step.correlation[-1]
            if correlations:
                row = step.features if loop.tied else _independent_features(loop, term[:index])
                features[index, : index + 1] = features[: index + 1, index] = row
        if not correlations:
            return {"correlation_term": term}
        # Increments share what their features share if they have one matrix, and nothing if they have two.
        shared = features if loop.tied else np.where(np.eye(loop.depth, dtype=bool), features, -np.inf)
        increments = shared + log(loop.weight_variance)
        return {"correlation_term": term, "feature_overlap": features, "increment_correlation": increments}


def _independent_features(loop: Loop, terms: Array) -> Array:
    """ln E[phi(h_l) phi(h_t)], t = 0 .. l, where Q_lt = H_t, from ln C_1 .. ln C_l."""
    energies = np.logaddexp(0.0, np.concatenate([[-np.inf], terms]))
    return pair_averages(loop).features(energies, energies)


PLAIN_ALONE = "batch, loss, pairs, spread and by_site are for nets of layers; this is a {kind}: leave them out"
LOOPS_ALONE = (
    "correlations are those of the steps of a TiedLoop or of a Transformer with tied=True; steps of this {kind} share "
    "no weights, and their increments nothing: leave the option out"
)
TABULATED = (
    "accuracy is that of averages over softmaxes of all pairs of tokens; those of this {kind} with tied blocks or "
    "rotary positions are tabulated once: leave the option out"
)
TIED = (
    "overlap_energy, label_term, output_term: blocks share weights (tied=True), whose changes correlate across blocks; "
    "`simulate` has them"
)


class TokenStreamMeanFieldLevel(Level):
    """Second moments of the stream and of its changes, of exchangeable tokens or of all pairs of tokens.

    The attribute ``left_out`` says why a quantity is left out. Where softmaxes were averaged over all pairs of tokens,
    ``softmax_error`` estimates their relative error, over ``softmax_points`` points.
    """

    name = "mean_field"
    family = TokenStream
    whose = "all Transformers"
    refusals: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("batch", "loss", "pairs", "spread", "by_site"), PLAIN_ALONE
    ) | {"correlations": LOOPS_ALONE, "accuracy": TABULATED, "optimizer": OPTIMIZER, "scales": SCALES}

    def takes(self, net: TokenStream, options: Options) -> set[str]:
        if net.is_tied:
            return {"inputs", "correlations"}
        return {"inputs"} if refusal_of_all_roads(net) == ROTARY else {"inputs", "accuracy"}

    def predict(self, net: TokenStream, options: Options) -> xr.Dataset:
        if net.is_tied or refusal_of_all_roads(net) == ROTARY:
            stream = stream_energies(net, options.inputs, options.correlations)
            left_out = TIED if net.is_tied else f"overlap_energy, label_term, output_term: {ROTARY}"
            values = _token_stream(net, stream.variance, stream.correlation, stream.initial)
            if stream.increments is not None:
                values["increment_correlation"] = stream.increments
            return self.dataset(net, options, values, {"left_out": left_out})
        with accurate_averages(options.accuracy) as averages:
            terms = token_terms(net, options.inputs)
        if terms.output_term is not None and (why := many_outputs_warning(net, options.inputs)):
            warnings.warn(why, PremiseWarning, stacklevel=3)
        initial = 1.0 if options.inputs is None else float(np.square(options.inputs).mean())
        values = _token_energies(terms) | _token_stream(net, terms.variance, terms.correlation, initial)
        attrs: dict[str, Any] = {"left_out": terms.left_out} if terms.left_out else {}
        if averages.error:
            attrs |= {"softmax_error": averages.error, "softmax_points": POINTS * averages.replicates}
        return self.dataset(net, options, values, attrs)


def _token_stream(net: TokenStream, variance: Array, correlation: Array, initial: float) -> dict[str, Array]:
    """The stream's moments by layer, and of pre-norm nets its energies by step, every depth unit being a step."""
    values = {"stream_variance": variance}
    if net.tokens > 1:  # one token has no other to be correlated with
        values["token_correlation"] = correlation
    if net.is_pre_norm:
        logs = {"residual_energy": np.log(variance), "correlation_term": np.log(variance - initial)}
        values |= with_logarithms(logs | {"initial_energy": np.log(initial)}) | {"cross_term": np.zeros(len(variance))}
    return values


def _token_energies(terms: TokenTerms) -> dict[str, Array]:
    """The energies that are known, with their logarithms."""
    known = {"overlap_energy": terms.overlap_energy, "label_term": terms.label_term}
    logs = {name: np.log(values) for name, values in known.items() if values is not None}
    if terms.label_term is not None:
        logs["label_learning_rate_scale"] = -0.5 * log_mean(logs["label_term"])
    by_site = [None if values is None else np.log(values)[:, None] for values in (terms.label_term, terms.output_term)]
    return with_logarithms(logs) | whole_update(LogTerms(np.empty(0), *by_site))
