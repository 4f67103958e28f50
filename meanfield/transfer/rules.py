"""The rules by which a learning rate is carried: each says which nets it serves, and how much the logarithm changes."""

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import lru_cache
from math import exp, hypot, isfinite, isnan, log
from typing import Any, cast

import numpy as np
import xarray as xr

from meanfield.common.validation import OutsideFloats
from meanfield.execution.simulate import simulate
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.mlp import MLP
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.nets.families.token_stream import TokenStream
from meanfield.simulation.weights.gram_process import has_gram_process
from meanfield.theory.laws.learning_rate import law_over_depth, learning_rate_exponent, log_scale
from meanfield.theory.loops.covariance import time_refusal
from meanfield.theory.outputs.label_term import label_term_refusal
from meanfield.theory.outputs.output_term import output_term_refusal
from meanfield.theory.prediction import predict
from meanfield.theory.transformers.terms import label_refusal, output_refusal
from meanfield.transfer.corrections import log_means, log_output_correction

Net = Sequential | TiedLoop | TokenStream

# Fields of a spec that every rule follows.
SIZES = ("depth", "width", "channels")

# Fields that move the output term against the label term, and the largest factor by which the rate may then be missed.
AT_OUTPUT = ("outputs", "head", "readout", "grid")
MOST_CORRECTION = 2.0

# Draws of the typical net at first, and the standard error of ln eta* that more draws aim at, up to a limit.
FIRST_DRAWS = 512
LOG_ERROR = 0.02
MOST_DRAWS = 8192
SEED = 0
# Of deeper nets the covariance between layers, from which errors come, would not fit into memory.
DEEPEST_DRAWN = 10_000
# To here the whole update takes a minute.
DEEPEST_FOLLOWED = 10_000


class Rule(ABC):
    """One way to carry a rate from net to net: the ratio eta*(end) / eta*(start) of the scales that the rule knows.

    Attributes:
        name, title: how it is called, and what it takes for eta*, in a few words.
        assumptions: what a carried rate assumes; None stands for one step at initialisation, and all that it premises.
    """

    name: str
    title: str
    assumptions: tuple[str, ...] | None = None

    @abstractmethod
    def refusal(self, start: Net, end: Net) -> str:
        """Why the rule does not serve this pair, and which one does; empty if it serves."""

    @abstractmethod
    def log_ratio(self, start: Net, end: Net) -> float:
        """ln(eta*(end) / eta*(start)) of a pair that is served."""

    def log_error(self, start: Net, end: Net) -> float:
        """Standard error of `log_ratio`, from the draws that it rests on."""
        return 0.0


class FiniteDepth(Rule):
    """By the mean-field scale of the label term of each net at its own depth (`log_scale`)."""

    name = "finite_depth"
    title = "mean field at finite depth"

    def refusal(self, start: Net, end: Net) -> str:
        for net in (start, end):
            if isinstance(net, Sequential) and net.is_pooled and (why := label_term_refusal(net)):
                return why
            if isinstance(net, TiedLoop) and (why := time_refusal(net)):
                return why
            if isinstance(net, TokenStream) and (why := label_refusal(net)):
                return f"the label term of a {family(net)} has a mean field for white tokens, but here {why}"
        differences = differing(start, end, SIZES)
        if "inputs" in differences:
            return (
                "the nets differ in inputs, and outputs of several samples do not add up as labels do, which this rule "
                "follows; rule 'whole_update' follows both"
            )
        if not set(differences) & set(AT_OUTPUT):
            return ""
        correction = log_output_correction(start, end)
        if abs(correction) < log(MOST_CORRECTION):
            return ""
        factor = "by an unknown factor" if isnan(correction) else f"by a factor of {exp(correction):.2g}"
        return (
            f"the nets differ in {', '.join(differences)}, and the output term, which this rule leaves out, would "
            f"change the rate {factor}; take rule 'exact' where it serves, or nets that differ in depth and width"
        )

    def log_ratio(self, start: Net, end: Net) -> float:
        return log_scale(end) - log_scale(start)


class WholeUpdate(Rule):
    """By the mean-field scale of label and output term together, at each net's own depth."""

    name = "whole_update"
    title = "mean field of the whole update"

    def refusal(self, start: Net, end: Net) -> str:
        for net in (start, end):
            if isinstance(net, TiedLoop):
                return f"the output term of a {family(net)} is not predicted: take rule 'finite_depth'"
            if why := output_refusal(net) if isinstance(net, TokenStream) else output_term_refusal(net):
                return why
            if isinstance(net, Sequential) and net.depth > DEEPEST_FOLLOWED:
                return (
                    f"the whole update is followed layer by layer, up to {DEEPEST_FOLLOWED:,} layers; this "
                    f"{family(net)} has {net.depth:,}: take rule 'finite_depth', or 'exact' where it serves"
                )
        return ""

    def log_ratio(self, start: Net, end: Net) -> float:
        means = []
        for net in (start, end):
            terms = log_means(cast(Sequential | TokenStream, net))
            if terms is None:
                raise OutsideFloats(
                    f"the whole update of this {family(net)} of depth {net.depth} leaves the range of floats, or the "
                    "machine's memory: lower the depth or the grid"
                )
            means.append(np.logaddexp(*terms))
        return float(means[0] - means[1]) / 2


class PowerLaw(Rule):
    """By (L / L0)^x, the asymptote of the family, where eta* tends to a power of the depth."""

    name = "power_law"
    title = "power law"

    def refusal(self, start: Net, end: Net) -> str:
        if differences := differing(start, end, SIZES):
            values = [f"{name} ({getattr(start, name)!r} and {getattr(end, name)!r})" for name in differences]
            return f"the nets differ in {', '.join(values)}, and a power of the depth knows depth alone"
        if isinstance(start, TokenStream):
            return (
                "eta* of a Transformer follows no power of its depth at the depths of real nets, where its local slope "
                "still changes (docs/theory.md section 19); take rule 'finite_depth'"
            )
        why = law_over_depth(start, (start.depth, end.depth))[1]
        return f"eta* of this {family(start)} is no power of its depth: {why}" if why else ""

    def log_ratio(self, start: Net, end: Net) -> float:
        assert not isinstance(start, TokenStream)
        return learning_rate_exponent(start) * log(end.depth / start.depth)


class Exact(Rule):
    """By the exact mean scale of the whole update, output term included, at finite width."""

    name = "exact"
    title = "exact mean of the whole update, finite width"

    def refusal(self, start: Net, end: Net) -> str:
        served = all(isinstance(net, MLP) and net.inputs == 1 and net.weight_variance is None for net in (start, end))
        gates = ("linear",) if getattr(start, "has_skips", False) else ("relu", "linear")
        if served and {start.activation, end.activation} <= set(gates):
            return ""
        return (
            "exact scales are those of fully-connected nets with one input and fan-in weights, of 'relu' or 'linear', "
            f"with skip connections 'linear' alone; this is a {family(start)} of {start.activation!r}"
        )

    def log_ratio(self, start: Net, end: Net) -> float:
        first, second = (float(predict(net, level="exact")["log_learning_rate_scale"]) for net in (start, end))
        return second - first


class Typical(Rule):
    """By the median of eta* over drawn nets: half of all nets would take a larger rate."""

    name = "typical"
    title = "typical net: median over draws"

    def refusal(self, start: Net, end: Net) -> str:
        for net in (start, end):
            if not (isinstance(net, Sequential) and has_gram_process(net)):
                return (
                    "typical nets are drawn by the Gram process, for fully-connected nets of 'relu' or 'linear' "
                    f"without skip connections and with one input; this is a {family(net)} of {net.activation!r}: "
                    "simulate(net, ...) has learning_rate_scale_quantile for any net"
                )
            if net.depth > DEEPEST_DRAWN:
                return f"typical nets are drawn up to {DEEPEST_DRAWN:,} layers; this {family(net)} has {net.depth:,}"
        return ""

    def log_ratio(self, start: Net, end: Net) -> float:
        medians = [float(log_quantiles(net)[1]) for net in (start, end)]
        for net, median in zip((start, end), medians, strict=True):
            if not isfinite(median):
                raise OutsideFloats(
                    f"half or more of the drawn nets of depth {net.depth} have died, and no rate moves those: there is "
                    "no typical rate"
                )
        return medians[1] - medians[0]

    def log_interval(self, start: Net, end: Net) -> tuple[float, float]:
        """As `log_ratio`, from the median at the start to the quantiles 0.1 and 0.9 of the nets at the end."""
        first = log_quantiles(start)[1]
        low, _, high = log_quantiles(end)
        return float(low - first), float(high - first)

    def death(self, start: Net, end: Net) -> str:
        """That so many drawn nets have died that an interval of four in five has no end; empty where they live."""
        if isfinite(log_quantiles(start)[1]) and isfinite(log_quantiles(end)[2]):
            return ""
        return f"drawn nets have died, one in ten or more of depth {end.depth}, and no rate moves those"

    def log_error(self, start: Net, end: Net) -> float:
        return hypot(*(_relative_error(_drawn(net)) for net in (start, end)))


TYPICAL = Typical()
RULES: dict[str, Rule] = {rule.name: rule for rule in (FiniteDepth(), PowerLaw(), WholeUpdate(), Exact(), TYPICAL)}


def require_net(net: Any) -> None:
    """Raise TypeError unless this is a net of layers, a Transformer or a loop of the library."""
    if not isinstance(net, Sequential | TiedLoop | TokenStream):
        raise TypeError(
            f"a net is {type(net).__name__!r}; give two specs of one family of layered nets, Transformers or tied "
            "loops, such as meanfield.MLP(depth=12, width=256); draw both ends of other nets, simulate(net, draws=..., "
            "seed=...), and carry by the ratio of their learning_rate_scale"
        )


def family(net: Net) -> str:
    """The family that a rate carries over within."""
    name = type(net).__name__
    return f"{name} of tied={net.tied}" if isinstance(net, TiedLoop) else name


def differing(start: Net, end: Net, but: tuple[str, ...] = ()) -> list[str]:
    """The fields in which two specs of one family differ, apart from ``but``."""
    names = [field.name for field in fields(cast(Any, start)) if field.name not in but]
    return [name for name in names if getattr(start, name) != getattr(end, name)]


def log_quantiles(net: Net) -> np.ndarray:
    """ln of the quantiles 0.1, 0.5, 0.9 of eta* over nets."""
    return np.log(_drawn(net)["learning_rate_scale_quantile"].values)


@lru_cache(maxsize=64)
def _drawn(net: Net) -> xr.Dataset:
    """Enough draws for the median: FIRST_DRAWS, or what brings its error down to LOG_ERROR."""
    drawn = simulate(net, draws=FIRST_DRAWS, seed=SEED, weights="gram")
    needed = FIRST_DRAWS * (_relative_error(drawn) / LOG_ERROR) ** 2
    if needed > FIRST_DRAWS:
        drawn = simulate(net, draws=int(min(needed, MOST_DRAWS)), seed=SEED, weights="gram")
    return drawn


def _relative_error(drawn: xr.Dataset) -> float:
    median = drawn.sel(quantile=0.5)
    return float(median["learning_rate_scale_quantile_stderr"] / median["learning_rate_scale_quantile"])
