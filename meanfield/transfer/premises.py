"""The premises of a carried learning rate, and where two nets break them.

Between some pairs one step names no rate that trains well: "auto" refuses them, and says what holds. Where a rate
rises with depth, layers below the blocks would stop the rise.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, isnan, log
from typing import Any

import numpy as np

from meanfield.common.validation import takes
from meanfield.nets.dense import DenseNet
from meanfield.nets.layered import Sequential
from meanfield.nets.listed import ListedLayers
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Unit
from meanfield.nets.transformer import TokenStream
from meanfield.theory.laws import ROUNDING
from meanfield.theory.learning_rate import learning_rate_exponent, log_scale
from meanfield.theory.mean_field.whole_update import LARGEST_LOG, thin_input_warning
from meanfield.theory.transformers.terms import many_outputs_warning
from meanfield.transfer.rules import (
    SAME_TRAINING,
    CarriedNet,
    log_channel_correction,
    log_output_correction,
    refusal_of_outputs,
)
from meanfield.transfer.trials import POST_NORM_TRAINED, PRE_NORM_TRAINED


def other_question(start: CarriedNet, end: CarriedNet) -> str:
    """Why "auto" carries no rate between these nets, and what to do; empty where it does."""
    if differ_in_batch(start, end):
        return (
            f"{batch_warning(start, end)}; tune at the batch size of the net to be trained, or give rule="
            "'whole_update', which follows both where labels are white"
        )
    if is_plain_pre_norm(start, end):
        return (
            f"{PRE_NORM_TRAINED}: carried rates were 6 to 15 times too small in a trial (ViT of width 32, SGD and "
            "AdamW). Tune at two depths and take meanfield.transfer.GivenPower.through, or carry by 2 / lambda_max on "
            "your data, meanfield.transfer.StableRate; rule='finite_depth' gives the rate of one step"
        )
    return ""


def question_warnings(start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """What `other_question` refuses under "auto", as a warning of a rule that was asked for."""
    sentences = []
    if differ_in_batch(start, end):
        sentences.append(batch_warning(start, end))
    if is_plain_pre_norm(start, end):
        sentences.append(
            f"{PRE_NORM_TRAINED}: a rate that is carried to a deeper one by this rule is too small, and to a shallower "
            "one too large; 2 / lambda_max on your data came closer (meanfield.transfer.StableRate)"
        )
    return tuple(sentences)


def differ_in_batch(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether the two nets have batches of different sizes."""
    return start.inputs != end.inputs


def batch_warning(start: CarriedNet, end: CarriedNet) -> str:
    """What is known of a rate at another batch size."""
    return (
        f"the nets differ in inputs, batches of {start.inputs} and {end.inputs} samples, and the rate at another batch "
        "size is another question than that at another depth: for labels of mean 0 the label term has eta* as "
        "B / sqrt(1 + (B - 1) f), f the squared kernel between two samples over that of one, which tends to sqrt(B); "
        "for labels with a mean eta* hardly changes (python -m sims.batch_size)"
    )


def is_plain_pre_norm(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether the pair differs in depth and its units read a normalised stream, with branches that depth leaves alone.

    It is read off the units: a normalisation first in every branch and none behind the joins, no trained gains, and
    the same multipliers and, over the fan-in rule, variances at both ends.
    """
    if not (isinstance(start, TokenStream) and isinstance(end, TokenStream)) or start.depth == end.depth:
        return False
    if not all(_reads_normalised(unit) for unit in (*start.block, *end.block)):
        return False
    return all(_alike(_factors(first), _factors(second)) for first, second in zip(start.block, end.block, strict=True))


def _factors(unit: Unit) -> tuple[float, ...]:
    return (unit.multiplier, *(weight.variance * weight.fan_in for part in unit.maps for weight in part.weights))


def _alike(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return len(first) == len(second) and bool(np.allclose(first, second, rtol=ROUNDING, atol=0))


def _reads_normalised(unit: Unit) -> bool:
    others = (*unit.branch[1:], *unit.after)
    return unit.branch[0].normalises and not any(part.normalises or part.scales for part in others)


SAME_BATCH = "the same data, batch size and training time at both ends"
OF_LAYERS = (
    "one step of plain SGD at initialisation: no momentum, weight decay or adaptive steps",
    "squared loss, mean over outputs and samples, labels of mean 0 and variance 1",
    "no normalisation layers, dropout or attention; weights Gaussian, of the variance that the spec says",
    SAME_BATCH,
)
OF_LISTED = tuple(premise.replace("no normalisation layers, dropout", "no dropout") for premise in OF_LAYERS)
OF_TOKEN_STREAMS = (
    *OF_LAYERS[:2],
    "tokens of white Gaussian inputs; few outputs; no dropout; weights Gaussian, of the variance that the spec says",
    OF_LAYERS[3],
    f"training follows its first step: {PRE_NORM_TRAINED}; {POST_NORM_TRAINED} (python -m sims.learning_rate_search)",
)
OF_LOOPS = (
    "one update of isotropic signs at initialisation, which moves the stream at its last step by the same amount",
    "the same width and batch at both ends",
)

# Above this depth over width the label term is off the mean field by 30 % and more, exp(3 L/n), a rate by half of that.
LARGEST_DEPTH_OVER_WIDTH = 0.1
# Factors on the rate that are worth a warning.
NOTABLE = 1.1


def premises(start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """The premises that all rules share for nets of this family."""
    shared: tuple[str, ...] = OF_LISTED if isinstance(end, ListedLayers) else OF_LAYERS
    shared = OF_TOKEN_STREAMS if isinstance(end, TokenStream) else OF_LOOPS if isinstance(end, TiedLoop) else shared
    if isinstance(start, TiedLoop) and isinstance(end, TiedLoop) and start.width != end.width:
        widths = f"the same batch at both ends; widths {start.width} and {end.width}, which this scale does not know"
        shared = (*shared[:-1], widths)
    shared = at_both_ends(shared, start, end)
    return (*shared, STEM_PREMISE) if start.depth != end.depth and starts_with_block(end) else shared


def at_both_ends(assumed: tuple[str, ...], start: CarriedNet, end: CarriedNet) -> tuple[str, ...]:
    """What a rule assumes, without a batch size that these nets share where they do not."""
    if not differ_in_batch(start, end):
        return assumed
    batches = f", batches of {start.inputs} and {end.inputs} samples"
    apart = {
        SAME_BATCH: f"the same data and training time{batches}",
        SAME_TRAINING: f"the same data, optimizer and training time{batches}",
    }
    return tuple(apart.get(premise, premise) for premise in assumed)


@takes(Sequential | DenseNet | TiedLoop | TokenStream)
def depth_over_width(net: CarriedNet) -> float:
    """sum_l 1 / n_l over all layers: L/n of equal layers, and of loops; of streams of tokens over their depth units."""
    if isinstance(net, DenseNet):
        return sum(1 / channels for channels in net.value_channels[1:])
    if isinstance(net, TokenStream):
        return len(net.units) / net.first_channels
    return net.depth / net.width if isinstance(net, TiedLoop) else sum(1 / width for width in net.channels_by_layer[1:])


def broken_premises(rule: str, start: CarriedNet, end: CarriedNet, log_change: float) -> tuple[str, ...]:
    """One sentence for each premise that fails for a rate that this rule carried between these nets.

    Args:
        rule: its name.
        start, end: the nets.
        log_change: ln of the factor by which the rule changed the rate.
    """
    shared = (*question_warnings(start, end), rise_warning(start, end, log_change))
    return tuple(dict.fromkeys(filter(None, (*shared, *_of_family(rule, start, end)))))


def _of_family(rule: str, start: CarriedNet, end: CarriedNet) -> Iterable[str]:
    """Sentences, some empty, on sizes and outputs of nets of layers and of streams of tokens."""
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return []
    share = max(depth_over_width(net) for net in (start, end))
    if isinstance(start, TokenStream) or isinstance(end, TokenStream):
        deep = _deep_stream(share) if share > LARGEST_DEPTH_OVER_WIDTH else ""
        streams = [net for net in (start, end) if isinstance(net, TokenStream)]
        many = [many_outputs_warning(net) for net in streams] if rule == "whole_update" else []
        return [deep, *many]
    if isinstance(start, DenseNet) or isinstance(end, DenseNet):
        return [_output_term(start, end)] if rule == "finite_depth" else []
    sentences = [thin_input_warning(net) for net in (start, end)]
    if rule in ("finite_depth", "power_law"):
        sentences += [_many_layers(share, end), _output_term(start, end)]
    if rule == "whole_update":
        sentences += [_finite_channels(start, end)]
    if rule == "exact" and share > LARGEST_DEPTH_OVER_WIDTH:
        sentences += [f"depth over width is {share:.2g}: rare nets make the mean; rule 'typical' has the median net's"]
    return sentences


def _deep_stream(share: float) -> str:
    return (
        f"depth over width is {share:.2g}: the rate is that of an infinitely wide Transformer, and single nets scatter "
        "about it; simulate(net, ...) has learning_rate_scale_quantile, the scales of drawn nets"
    )


def _many_layers(share: float, end: Sequential) -> str:
    """Residual branches fluctuate little, so that depth over width says nothing of nets with skip connections."""
    if end.has_skips or share <= LARGEST_DEPTH_OVER_WIDTH:
        return ""
    return (
        f"depth over width is {share:.2g}: the mean label term is about {exp(min(3 * share, LARGEST_LOG)):.2g} times "
        "its mean field, single nets scatter as widely, and the rate is that of an infinitely wide net; "
        "simulate(net, ...) has learning_rate_scale_quantile, the scales of drawn nets"
    )


def _output_term(start: Sequential | DenseNet, end: Sequential | DenseNet) -> str:
    correction = log_output_correction(start, end)
    if isnan(correction) or abs(correction) <= log(NOTABLE):
        return ""
    estimated = refusal_of_outputs(start) or refusal_of_outputs(end)
    return (
        "outputs are not few compared with the width: the output term, which this rule leaves out, would change the "
        f"rate by {'something like ' if estimated else ''}a factor of {exp(min(correction, LARGEST_LOG)):.2g}"
        + ("" if estimated else "; rule 'whole_update' has it")
    )


def _finite_channels(start: Sequential, end: Sequential) -> str:
    correction = log_channel_correction(start, end)
    if abs(correction) <= log(NOTABLE):
        return ""
    return (
        "the rate is that of infinitely many channels: at those of these nets it would change by a factor of about "
        f"{exp(min(correction, LARGEST_LOG)):.2g}, as nets of one site show; simulate has learning_rate_scale of both"
    )


STEM_PREMISE = (
    "nothing but the blocks learns at this rate: the share that a stem or an embedding below them has in a step does "
    "not fall with the number of blocks, and stops every rise"
)


def starts_with_block(net: CarriedNet) -> bool:
    """Whether the first unit adds to the input itself, so that no layer stands below the blocks."""
    if isinstance(net, Sequential):
        return net.layers[net.unit_ends[0] - 1].skip == 0
    first = net.replace(depth=1).units[0]
    return first.adds and first.skip == 0


def rises_with_depth(start: CarriedNet, end: CarriedNet) -> bool:
    """Whether eta* of this family rises without end.

    Of nets of layers and of loops it is a positive power of the depth, where both ends have one scaling: chains whose
    multiplier is the same at both depths have not, as their family's is an alpha that changes. Of Transformers eta*
    rises where a^2 L falls, a the factor on the branches: sums of L moves of size a, each of which carries labels as a,
    shrink.
    """
    if isinstance(start, DenseNet):
        return False
    if not isinstance(start, TokenStream) or not isinstance(end, TokenStream):
        assert not isinstance(start, TokenStream)  # both are of one family
        scalings = [getattr(net, "scaling", getattr(net, "alpha", None)) for net in (start, end)]
        return scalings[0] == scalings[1] and learning_rate_exponent(start) > 0
    nets = sorted((start, end), key=lambda net: net.depth)
    shallow, deep = (max(unit.multiplier**2 for unit in net.block) * net.depth for net in nets)
    return deep < (1 - ROUNDING) * shallow


def rise_warning(start: CarriedNet, end: CarriedNet, log_change: float) -> str:
    """That a stem would stop the rise of this carried rate; empty where it does not rise or where a stem stands.

    Args:
        start, end: the nets.
        log_change: ln of the factor on the rate.
    """
    if start.depth == end.depth or not starts_with_block(start) or not rises_with_depth(start, end):
        return ""
    sentence = (
        f"the rate changes by a factor of {exp(log_change):.3g} because blocks move the net less the more they are, "
        "and these nets have nothing else that learns: a stem or an embedding below the blocks does not, and stops the "
        "rise, as eta* then tends to a constant"
    )
    if not isinstance(start, Sequential):
        return f"{sentence}; give what stands below the blocks a rate of its own"
    return f"{sentence}{_with_stem(start, end)}; if your net has a stem, describe it: stem=1, {start.INPUT}=..."


def _with_stem(start: Sequential, end: CarriedNet) -> str:
    """The factor of the same blocks on a stem that reads as many channels as the stream has, by the mean field."""
    nets: list[Any] = [net.replace(stem=1) for net in (start, end)]
    try:
        factor = exp(log_scale(nets[1]) - log_scale(nets[0]))
    except (ValueError, OverflowError):  # outside floats, or too long
        return ""
    return f" (on a stem of {start.channels_by_layer[0]} channels the factor is {factor:.3g})"
