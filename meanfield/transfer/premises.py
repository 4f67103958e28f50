"""The premises of a carried learning rate, and where two nets break them."""

from collections.abc import Iterable
from math import exp, isnan, log

from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.tied_loop import TiedLoop
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.mean_field.fluctuations import thin_input_warning
from meanfield.theory.outputs.output_term import output_term_refusal
from meanfield.theory.outputs.whole_update import LARGEST
from meanfield.theory.transformers.terms import many_outputs_warning
from meanfield.transfer.corrections import log_channel_correction, log_output_correction
from meanfield.transfer.other_questions import (
    POST_NORM_TRAINED,
    PRE_NORM_TRAINED,
    differ_in_batch,
    question_warnings,
)
from meanfield.transfer.rises import STEM_PREMISE, rise_warning, starts_with_block
from meanfield.transfer.rules import Net

SAME_BATCH = "the same data, batch size and training time at both ends"
PREMISES = (
    "one step of plain SGD at initialisation: no momentum, weight decay or adaptive steps",
    "squared loss, mean over outputs and samples, labels of mean 0 and variance 1",
    "no normalisation layers, dropout or attention; weights Gaussian, of the variance that the spec says",
    SAME_BATCH,
)
OF_TOKEN_STREAMS = (
    *PREMISES[:2],
    "tokens of white Gaussian inputs; few outputs; no dropout; weights Gaussian, of the variance that the spec says",
    PREMISES[3],
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


def premises(start: Net, end: Net) -> tuple[str, ...]:
    """The premises that all rules share for nets of this family."""
    shared: tuple[str, ...]
    shared = OF_TOKEN_STREAMS if isinstance(end, TokenStream) else OF_LOOPS if isinstance(end, TiedLoop) else PREMISES
    if differ_in_batch(start, end):
        batches = f"the same data and training time, batches of {start.inputs} and {end.inputs} samples"
        shared = tuple(batches if premise == SAME_BATCH else premise for premise in shared)
    return (*shared, STEM_PREMISE) if start.depth != end.depth and starts_with_block(end) else shared


@takes(Sequential | TiedLoop | TokenStream)
def depth_over_width(net: Net) -> float:
    """sum_l 1 / n_l over all layers: L/n of equal layers, and of loops; of streams of tokens over their depth units."""
    if isinstance(net, TokenStream):
        return len(net.units) / net.first_channels
    return net.depth / net.width if isinstance(net, TiedLoop) else sum(1 / width for width in net.channels_by_layer[1:])


def unmet_premises(rule: str, start: Net, end: Net, log_change: float) -> tuple[str, ...]:
    """One sentence for each premise that fails for a rate that this rule carried between these nets.

    Args:
        rule: its name.
        start, end: the nets.
        log_change: ln of the factor by which the rule changed the rate.
    """
    shared = (*question_warnings(start, end), rise_warning(start, end, log_change))
    return tuple(dict.fromkeys(filter(None, (*shared, *_of_family(rule, start, end)))))


def _of_family(rule: str, start: Net, end: Net) -> Iterable[str]:
    """Sentences, some empty, on sizes and outputs of nets of layers and of streams of tokens."""
    if isinstance(start, TiedLoop) or isinstance(end, TiedLoop):
        return []
    share = max(depth_over_width(net) for net in (start, end))
    if isinstance(start, TokenStream) or isinstance(end, TokenStream):
        deep = _deep_stream(share) if share > LARGEST_DEPTH_OVER_WIDTH else ""
        streams = [net for net in (start, end) if isinstance(net, TokenStream)]
        many = [many_outputs_warning(net) for net in streams] if rule == "whole_update" else []
        return [deep, *many]
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
        f"depth over width is {share:.2g}: the mean label term is about {exp(min(3 * share, LARGEST)):.2g} times its "
        "mean field, single nets scatter as widely, and the rate is that of an infinitely wide net; "
        "simulate(net, ...) has learning_rate_scale_quantile, the scales of drawn nets"
    )


def _output_term(start: Sequential, end: Sequential) -> str:
    correction = log_output_correction(start, end)
    if isnan(correction) or abs(correction) <= log(NOTABLE):
        return ""
    estimated = output_term_refusal(start) or output_term_refusal(end)
    return (
        "outputs are not few compared with the width: the output term, which this rule leaves out, would change the "
        f"rate by {'something like ' if estimated else ''}a factor of {exp(min(correction, LARGEST)):.2g}"
        + ("" if estimated else "; rule 'whole_update' has it")
    )


def _finite_channels(start: Sequential, end: Sequential) -> str:
    correction = log_channel_correction(start, end)
    if abs(correction) <= log(NOTABLE):
        return ""
    return (
        "the rate is that of infinitely many channels: at those of these nets it would change by a factor of about "
        f"{exp(min(correction, LARGEST)):.2g}, as nets of one site show; simulate has learning_rate_scale of both"
    )
