"""The rules by which a learning rate is carried: each says which nets it serves, and how much the logarithm changes.

`RULES` follow the theory of one step, and "auto" chooses among them. Others rest on more: a power that is given or
fitted, PathSum, the stable rate. `transfer_learning_rate` takes those as objects, and those of `RIVALS` also by name.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from math import exp, hypot, isfinite, isnan, log, log1p, nan
from typing import Any, Self, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import OutsideFloats, PremiseWarning, require_choice, require_positive
from meanfield.execution.run import simulate
from meanfield.nets.dense import DenseNet
from meanfield.nets.layered import MLP, Sequential
from meanfield.nets.listed import ListedLayers, listed_layers
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Net
from meanfield.nets.residual import Residual
from meanfield.nets.transformer import TokenStream
from meanfield.quantities.registry import log_mean
from meanfield.simulation.kernels.gram_process import has_gram_process
from meanfield.theory.laws import log_path_sum_scale
from meanfield.theory.learning_rate import POWER, law_over_depth, learning_rate_exponent, log_scale
from meanfield.theory.loops import time_refusal
from meanfield.theory.mean_field.concatenated import (
    concatenated_label_refusal,
    concatenated_output_refusal,
    concatenated_terms,
)
from meanfield.theory.mean_field.label_term import label_term_refusal
from meanfield.theory.mean_field.layers import memory_of_gates_refusal
from meanfield.theory.mean_field.output_term import output_term_refusal
from meanfield.theory.mean_field.whole_update import log_channel_error, mean_field_terms
from meanfield.theory.prediction import predict
from meanfield.theory.transformers.terms import label_refusal, output_refusal, token_terms
from meanfield.transfer.stability import stable_rate, still_reason

CarriedNet = Sequential | DenseNet | TiedLoop | TokenStream

# Fields of a spec that every rule follows.
SIZES = ("depth", "width", "channels", "growth")

# Fields that move the output term against the label term, and the largest factor by which the rate may then be missed.
AT_OUTPUT = ("outputs", "head", "readout", "grid")
MOST_CORRECTION = 2.0

# Draws of the typical net at first, and the standard error of ln eta* that more draws aim at, up to a limit.
FIRST_DRAWS = 512
LOG_ERROR = 0.02
MOST_TYPICAL_DRAWS = 8192
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
        nets: the kinds of net that it serves.
    """

    name: str
    title: str
    nets: Any = CarriedNet
    assumptions: tuple[str, ...] | None = None

    @abstractmethod
    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        """Why the rule does not serve this pair, and which one does; empty if it serves."""

    @abstractmethod
    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        """ln(eta*(end) / eta*(start)) of a pair that is served."""

    def log_error(self, start: CarriedNet, end: CarriedNet) -> float:
        """Standard error of `log_ratio`, from the draws that it rests on."""
        return 0.0

    def against(self, start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
        """What speaks against a rate that a rule with assumptions of its own carries between these nets."""
        return ()


class FiniteDepth(Rule):
    """The rate goes by the mean-field scale of the label term of each net at its own depth (`log_scale`)."""

    name = "finite_depth"
    title = "mean field at finite depth"

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        for net in (start, end):
            if isinstance(net, Sequential) and net.is_pooled and (why := label_term_refusal(net)):
                return why
            if isinstance(net, Sequential) and (why := memory_of_gates_refusal(net)):
                return why
            if isinstance(net, TiedLoop) and (why := time_refusal(net)):
                return why
            if isinstance(net, DenseNet) and (why := concatenated_label_refusal(net)):
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

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        return log_scale(end) - log_scale(start)


class WholeUpdate(Rule):
    """The rate goes by the mean-field scale of label and output term together, at each net's own depth."""

    name = "whole_update"
    title = "mean field of the whole update"

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        for net in (start, end):
            if isinstance(net, TiedLoop):
                return f"the output term of a {family(net)} is not predicted: take rule 'finite_depth'"
            if why := refusal_of_outputs(net):
                return why
            if isinstance(net, Sequential) and net.depth > DEEPEST_FOLLOWED:
                return (
                    f"the whole update is followed layer by layer, up to {DEEPEST_FOLLOWED:,} layers; this "
                    f"{family(net)} has {net.depth:,}: take rule 'finite_depth', or 'exact' where it serves"
                )
        return ""

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        means = []
        for net in (start, end):
            terms = log_means(cast(Sequential | DenseNet | TokenStream, net))
            if terms is None:
                raise OutsideFloats(
                    f"the whole update of this {family(net)} of depth {net.depth} leaves the range of floats, or the "
                    "machine's memory: lower the depth or the grid"
                )
            means.append(np.logaddexp(*terms))
        return float(means[0] - means[1]) / 2


class DepthPower(Rule):
    """The rate goes by (L / L0)^x, the asymptote of the family, where eta* tends to a power of the depth."""

    name = "power_law"
    title = "power law"

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        if differences := differing(start, end, SIZES):
            values = [f"{name} ({getattr(start, name)!r} and {getattr(end, name)!r})" for name in differences]
            return f"the nets differ in {', '.join(values)}, and a power of the depth knows depth alone"
        if isinstance(start, TokenStream):
            return (
                "eta* of a Transformer follows no power of its depth at the depths of real nets, where its local slope "
                "still changes (docs/theory.md section 19); take rule 'finite_depth'"
            )
        if isinstance(start, DenseNet):
            return (
                "eta* of nets whose blocks concatenate tends to (growth x depth)^(-1/2), and its local slope still "
                "changes at the depths of real nets (docs/theory.md section 8); take rule 'finite_depth' or "
                "'whole_update'"
            )
        why = law_over_depth(start, (start.depth, end.depth))[1]
        return f"eta* of this {family(start)} is no power of its depth: {why}" if why else ""

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        assert not isinstance(start, TokenStream | DenseNet)
        return learning_rate_exponent(start) * log(end.depth / start.depth)


class Exact(Rule):
    """The rate goes by the exact mean scale of the whole update, output term included, at finite width."""

    name = "exact"
    title = "exact mean of the whole update, finite width"

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        served = all(isinstance(net, MLP) and net.inputs == 1 and net.weight_variance is None for net in (start, end))
        gates = ("linear",) if getattr(start, "has_skips", False) else ("relu", "linear")
        if served and {start.activation, end.activation} <= set(gates):
            return ""
        return (
            "exact scales are those of fully-connected nets with one input and fan-in weights, of 'relu' or 'linear', "
            f"with skip connections 'linear' alone; this is a {family(start)} of {start.activation!r}"
        )

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        first, second = (float(predict(net, level="exact")["log_learning_rate_scale"]) for net in (start, end))
        return second - first


class Typical(Rule):
    """The rate goes by the median of eta* over drawn nets: half of all nets would take a larger rate."""

    name = "typical"
    title = "typical net: median over draws"

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
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

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        medians = [float(log_quantiles(net)[1]) for net in (start, end)]
        for net, median in zip((start, end), medians, strict=True):
            if not isfinite(median):
                raise OutsideFloats(
                    f"half or more of the drawn nets of depth {net.depth} have died, and no rate moves those: there is "
                    "no typical rate"
                )
        return medians[1] - medians[0]

    def log_interval(self, start: CarriedNet, end: CarriedNet) -> tuple[float, float]:
        """The interval goes as `log_ratio`, from the median at the start to the quantiles 0.1 and 0.9 at the end."""
        first = log_quantiles(start)[1]
        low, _, high = log_quantiles(end)
        return float(low - first), float(high - first)

    def death(self, start: CarriedNet, end: CarriedNet) -> str:
        """That so many drawn nets of an end have died that four in five have no interval; empty where they live.

        Both ends alike: where one net in ten has died, the median is that of nets on their way there, whichever end
        the rate is carried from.
        """
        dead = [net.depth for net in (start, end) if not isfinite(log_quantiles(net)[2])]
        depths = " and ".join(map(str, dict.fromkeys(dead)))
        return f"drawn nets have died, one in ten or more of depth {depths}, and no rate moves those" if dead else ""

    def log_error(self, start: CarriedNet, end: CarriedNet) -> float:
        return hypot(*(_relative_error(_drawn(net)) for net in (start, end)))


TYPICAL = Typical()
RULES: dict[str, Rule] = {rule.name: rule for rule in (FiniteDepth(), DepthPower(), WholeUpdate(), Exact(), TYPICAL)}


def require_carried(net: Any, kinds: Any = CarriedNet) -> None:
    """Raise TypeError unless this is of these kinds, or a list of layers, which is served beside another one."""
    if isinstance(net, kinds):
        return
    why = listed_layers(net)[1] if isinstance(net, Net) else ""
    if isinstance(net, Net) and not why:
        return
    raise TypeError(
        f"a net is {type(net).__name__!r}; give two specs of one family of layered nets, Transformers or tied loops, "
        f"such as meanfield.MLP(depth=12, width=256), or lists of layers{f', where {why}' * bool(why)}; draw both ends "
        "of other nets, simulate(net, draws=..., seed=...), and carry by the ratio of their learning_rate_scale, or "
        "give data=(inputs, labels), on which the first step of both is drawn, or "
        "rule=meanfield.transfer.StableRate((inputs, labels)): these serve any net that trains"
    )


def family(net: CarriedNet) -> str:
    """The family that a rate carries over within."""
    name = type(net.listed if isinstance(net, ListedLayers) else net).__name__
    return f"{name} of tied={net.tied}" if isinstance(net, TiedLoop) else name


def differing(start: CarriedNet, end: CarriedNet, but: tuple[str, ...] = ()) -> list[str]:
    """The fields in which two specs of one family differ, apart from ``but``."""
    names = [field.name for field in fields(cast(Any, start)) if field.name not in but]
    if isinstance(start, ListedLayers):  # whose units say all else
        names = ["inputs", *AT_OUTPUT]
    return [name for name in names if getattr(start, name) != getattr(end, name)]


def log_quantiles(net: CarriedNet) -> np.ndarray:
    """ln of the quantiles 0.1, 0.5, 0.9 of eta* over nets."""
    return np.log(_drawn(net)["learning_rate_scale_quantile"].values)


@lru_cache(maxsize=64)
def _drawn(net: CarriedNet) -> xr.Dataset:
    """Enough draws for the median: FIRST_DRAWS, or what brings its error down to LOG_ERROR."""
    drawn = simulate(net, draws=FIRST_DRAWS, seed=SEED, weights="gram")
    needed = FIRST_DRAWS * (_relative_error(drawn) / LOG_ERROR) ** 2
    if needed > FIRST_DRAWS:
        drawn = simulate(net, draws=int(min(needed, MOST_TYPICAL_DRAWS)), seed=SEED, weights="gram")
    return drawn


def _relative_error(drawn: xr.Dataset) -> float:
    median = drawn.sel(quantile=0.5)
    return float(median["learning_rate_scale_quantile_stderr"] / median["learning_rate_scale_quantile"])


SAME_TRAINING = "the same data, batch size, optimizer and training time at both ends"
STEM_PREMISE = (
    "nothing but the blocks learns at this rate: the share that a stem or an embedding below them has in a step does "
    "not fall with the number of blocks, and stops every rise"
)


@dataclass(frozen=True)
class GivenPower(Rule):
    """The rate goes by (L / L0)^x with a given x, for every family: depth counts plain layers and blocks, m + K.

    Args:
        exponent: x; 0 leaves the rate unchanged, whatever the nets differ in.
        along: "depth", or "width" for (n / n0)^x.
        name: how refusals and `explain_transfer` call it.

    Source: Zhang et al. 2026, section 5, with x = -3/2; L counted as in its section 3.4. Of Transformers its depth is
    twice the blocks and a constant, which is left out here: its table 5 takes (D + 1) / (D0 + 1) of D blocks.
    """

    exponent: float
    along: str = "depth"
    name: str = "given_power"

    def __post_init__(self) -> None:
        require_choice("along", self.along, ("depth", "width"))
        if not isfinite(self.exponent):
            raise ValueError(f"the exponent is {self.exponent}; give a finite number, such as -1.5")

    @classmethod
    def through(cls, first: tuple[float, CarriedNet], second: tuple[float, CarriedNet]) -> Self:
        """The power through two anchors, pairs (tuned rate, net) whose nets differ in depth alone or in width alone.

        x = ln(rate_2 / rate_1) / ln(L_2 / L_1): Zhang et al. 2025, section 4.3, fit such a line in each segment of
        depths.

        Raises:
            ValueError: nets that do not differ in their depth or in their width alone.
        """
        rates = [
            require_positive("the rate of an anchor", rate, why="it is a learning rate") for rate, _ in (first, second)
        ]
        changed = [along for along in ("depth", "width") if _size(first[1], along) != _size(second[1], along)]
        if len(changed) != 1 or differing(first[1], second[1], SIZES):
            what = ", ".join(differing(first[1], second[1])) or "nothing"
            raise ValueError(
                f"the two anchors differ in {what}; give two nets that differ in depth alone or width alone"
            )
        sizes = [_size(net, changed[0]) for _, net in (first, second)]
        return cls(log(rates[1] / rates[0]) / log(sizes[1] / sizes[0]), changed[0], "two_anchors")

    @property
    def title(self) -> str:  # type: ignore[override]
        size = {"depth": "L / L0", "width": "n / n0"}[self.along]
        return f"({size})^{self.exponent:.3g}" if self.exponent else "the rate as it is"

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        return f"tuned rates follow {self.title}", SAME_TRAINING

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        if not self.exponent:
            return ""
        if differences := differing(start, end, SIZES):
            return f"the nets differ in {', '.join(differences)}, and a power knows the {self.along} alone"
        if self.along == "width" and start.depth != end.depth:
            return "the nets differ in depth, and a power of the width knows the width alone"
        return ""

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        return self.exponent * log(_size(end, self.along) / _size(start, self.along))


def _size(net: Any, along: str) -> float:
    """Plain layers and blocks of a net, or its mean width."""
    if along == "depth":
        return net.depth + sum(getattr(net, part, 0) for part in ("stem", "tail"))
    widths = net.channels_by_layer[1:] if isinstance(net, Sequential) else (net.width,)
    return sum(widths) / len(widths)


class PathSum(Rule):
    """The rate goes by (sum over paths of p^3)^(-1/2), with p the layers on a path from input to output.

    A plain net has one path, so that the rule is (L / L0)^(-3/2); each block of a residual net doubles the paths.

    Source: Chen et al. 2024, as Zhang et al. 2026, section 4.3, quotes it.
    """

    name = "path_sum"
    title = "PathSum, the cubes of the lengths of all paths"
    assumptions = (SAME_TRAINING,)

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        for net in (start, end):
            if not isinstance(net, Sequential) or not net.follows_one_rule:
                return f"PathSum counts layers on the paths of layered nets; it says nothing of a {family(net)}"
        differences = differing(start, end, (*SIZES, "stem", "tail", "block_depth"))
        return (
            f"the nets differ in {', '.join(differences)}, and PathSum knows lengths of paths alone"
            if differences
            else ""
        )

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        return _log_path_sum(end) - _log_path_sum(start)


def _log_path_sum(net: CarriedNet) -> float:
    """ln of (sum over paths of p^3)^(-1/2)."""
    if isinstance(net, Residual):
        return float(log_path_sum_scale(net.blocks, net.block_depth, net.stem + net.tail)[0])
    return POWER * log(net.depth)


@dataclass(frozen=True, eq=False)
class StableRate(Rule):
    """The rate goes by each net's 2 / lambda_max, of the loss's curvature on a batch at its start (`stable_rate`).

    Args:
        data, loss, draws, seed, level: as for `stable_rate`.

    Source: docs/theory.md section 21.
    """

    data: tuple[ArrayLike, ArrayLike]
    loss: str = "cross_entropy"
    draws: int = 16
    seed: int = 0
    level: str | None = None

    name = "stable_rate"
    title = "2 / lambda_max on the data"
    assumptions = ("tuned rates keep their ratio to 2 / lambda_max at initialisation on the given data", SAME_TRAINING)
    nets = Net

    def refusal(self, start: CarriedNet, end: CarriedNet) -> str:
        return ""

    def log_ratio(self, start: CarriedNet, end: CarriedNet) -> float:
        for net in (start, end):
            if why := still_reason(self.of(net), self.data[0]):
                raise ValueError(f"rule 'stable_rate' has no rate for the net of {len(net.units)} units: {why}")
        return log(float(self.of(end)["stable_rate"])) - log(float(self.of(start)["stable_rate"]))

    def log_error(self, start: CarriedNet, end: CarriedNet) -> float:
        if self.level:
            return 0.0
        stable = [self.of(net) for net in (start, end)]
        return hypot(*(float(rates["stable_rate_stderr"] / rates["stable_rate"]) for rates in stable))

    def of(self, net: CarriedNet) -> xr.Dataset:
        """Sharpness and stable rate of one net; each is found once."""
        if net not in self._known:
            options: Any = {"loss": self.loss, "draws": self.draws, "seed": self.seed, "level": self.level}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PremiseWarning)  # that it is infinite, which `log_ratio` refuses
                self._known[net] = stable_rate(net, self.data, **options)
        return self._known[net]

    @cached_property
    def _known(self) -> dict[CarriedNet, xr.Dataset]:
        return {}


# Rules that need nothing but the nets, and that theory does not choose.
RIVALS: dict[str, Rule] = {
    rule.name: rule for rule in (GivenPower(0.0, name="unchanged"), GivenPower(POWER, name="three_halves"), PathSum())
}


# Layers to which the share of the output term is followed.
DEEPEST_SHARE = 1000


def log_output_correction(
    start: Sequential | DenseNet | TiedLoop | TokenStream, end: Sequential | DenseNet | TiedLoop | TokenStream
) -> float:
    """ln of the factor by which the output term changes a rate that the label term carried; NaN where not known.

    It is 0 for loops, whose scale is that of the stream.
    """
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return 0.0
    return 0.5 * (log1p(_output_share(start)) - log1p(_output_share(end)))


def refusal_of_outputs(net: Sequential | DenseNet | TokenStream) -> str:
    """Why the output term of a net is not predicted; empty if it is."""
    if isinstance(net, DenseNet):
        return concatenated_output_refusal(net)
    return output_refusal(net) if isinstance(net, TokenStream) else output_term_refusal(net)


def _output_share(net: Sequential | DenseNet | TokenStream) -> float:
    """Mean output term over mean label term in mean field; NaN for nets of layers with skip connections.

    Where the whole update of a plain net is not predicted, that of the net with ReLU for smooth gates and without edges
    is an order of magnitude. It tends to a number as 1 / L: of deeper nets it is that of `DEEPEST_SHARE` equal layers.
    """
    if isinstance(net, TokenStream | DenseNet):
        if refusal_of_outputs(net):
            return nan
    elif net.has_skips or not net.follows_one_rule:
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
def log_means(net: Sequential | DenseNet | TokenStream) -> tuple[float, float] | None:
    """ln of the means over layers of label and output term; None where floats or memory do not hold them."""
    if isinstance(net, TokenStream):
        streams = token_terms(net)
        assert streams.label_term is not None
        assert streams.output_term is not None
        return log(streams.label_term.mean()), log(streams.output_term.mean())
    try:
        terms = (concatenated_terms(net) if isinstance(net, DenseNet) else mean_field_terms(net)).both
    except OverflowError:
        return None
    return None if terms is None else (float(log_mean(terms[0])), float(log_mean(terms[1])))
