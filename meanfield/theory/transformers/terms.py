"""What is predicted of a net of tokens: by a recursion where they are exchangeable, over all pairs of them
elsewhere.

The recursion is that of streams of tokens at infinite width: a net's list of maps says to it what each unit is, and
variances, kernels, energies and label terms follow from it. Refusals say which nets neither road serves.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from meanfield.common.validation import Array
from meanfield.nets.maps import Attention, Weight
from meanfield.nets.net import Net
from meanfield.nets.transformer import TokenBranch, TokenStream
from meanfield.theory.maps import require_room
from meanfield.theory.tangent_kernels import value_kernels
from meanfield.theory.token_scan import between_samples, labels_down, scan
from meanfield.theory.transformers.averages import (
    MOST_TOKENS,
    averages_over_two,
    hidden_averages,
    softmax_averages,
    uniform_averages,
)
from meanfield.theory.transformers.every_pair import MOST_PAIRED, follows_features, pair_terms

SEVERAL_SAMPLES = (
    "output_term: outputs of several samples correlate, and the recursion over depth has labels, which do not; give "
    "inputs, or take inputs=1"
)

# Seconds of a core that softmaxes of a block take over all pairs of points: of up to 32 about as long as of a few, then
# as the power 2.5 of their number (measured up to 64).
BLOCK_SECONDS, FAST_POINTS = 4.0, 32

# Outputs over width above which what they drive along the features, which few do not, moves rates by about 10 %.
FEW = 0.5


@dataclass(frozen=True)
class TokenTerms:
    """By layer, (2 D,), a token's variance, the correlation of two, and terms, None where ``left_out`` says why."""

    variance: Array
    correlation: Array
    overlap_energy: Array | None
    label_term: Array | None
    output_term: Array | None
    left_out: str = ""


def label_refusal(net: TokenStream) -> str:
    """Why the label term of a net of white tokens is not predicted, in one sentence; empty if it is."""
    return refusal_of_all_roads(net) or (refusal(net) and _lack_of_room(net, refusal(net)))


def output_refusal(net: TokenStream) -> str:
    """Why the output term of a net of white tokens is not predicted, in one sentence; empty if it is."""
    if why := label_refusal(net):
        return why
    return SEVERAL_SAMPLES if net.inputs > 1 and not refusal(net) else ""


def token_terms(net: TokenStream, inputs: Array | None = None) -> TokenTerms:
    """The terms of a net on inputs (B, n, T), white ones if not given.

    Raises:
        ValueError: tied weights, and what else no covariance goes through (`refusal_of_all_roads`).
    """
    if never := refusal_of_all_roads(net):
        raise ValueError(never)
    why = refusal(net) if inputs is None else "inputs are given, and their tokens are not exchangeable"
    if not why:
        return _of_exchangeable(net)
    if crowded := _lack_of_room(net, why):
        return TokenTerms(*given_statistics(net, inputs), None, None, None, crowded)
    terms = pair_terms(net, inputs)
    variances, correlations = zip(*map(pair_statistics, terms.covariance), strict=True)
    left_out = f"overlap_energy: {why}, and over pairs of tokens no single column of errors has it at all layers"
    return TokenTerms(np.array(variances), np.array(correlations), None, terms.label_term, terms.output_term, left_out)


def prediction_seconds(net: Net, inputs: Array | None = None) -> float:
    """How long `token_terms` takes on a core, roughly, where it averages softmaxes over all pairs of tokens; else 0."""
    if not isinstance(net, TokenStream) or refusal_of_all_roads(net) or net.attention.scale == "inverse":
        return 0.0
    samples = net.inputs if inputs is None else len(inputs)
    points = samples * net.tokens
    if points > MOST_PAIRED or (inputs is None and not refusal(net)):
        return 0.0
    return net.depth * BLOCK_SECONDS * max(1.0, points / FAST_POINTS) ** 2.5


def many_outputs_warning(net: TokenStream, inputs: Array | None = None) -> str:
    """What to say of an output term that is predicted for few outputs where they are many; or ""."""
    followed = follows_features(net) and (inputs is not None or bool(refusal(net)))
    if followed or net.readout in ("last", "flatten") or net.tokens == 1 or net.outputs <= FEW * net.first_channels:
        return ""
    remedy = "`simulate` has it" if not follows_features(net) else "give inputs: for those they are followed"
    return (
        f"{net.outputs} outputs at width {net.first_channels} are not few, and under a pooled readout the output term "
        "leaves out what they drive along their own features, which draws of as many outputs as channels show to be "
        f"0.3 of it and more; {remedy}"
    )


def _of_exchangeable(net: TokenStream) -> TokenTerms:
    moments = stream_moments(net)
    single = net.inputs == 1
    return TokenTerms(
        moments.variance,
        moments.correlation,
        moments.overlap_energy,
        moments.label_term,
        output_variance(net, moments) * moments.label_term if single else None,
        "" if single else SEVERAL_SAMPLES,
    )


def _lack_of_room(net: TokenStream, why: str) -> str:
    points = net.inputs * net.tokens
    if points <= MOST_PAIRED:
        return ""
    return (
        f"{why}; all pairs of {points} tokens (samples included) are more than label terms are followed for, which is "
        f"up to {MOST_PAIRED}"
    )


ROTARY = (
    "rotary positions give every pair of tokens logits of its own, and the recursion needs tokens that are "
    "exchangeable; take rotary=False, or attention_scale='inverse', whose logits vanish"
)


@dataclass(frozen=True)
class StreamMoments:
    """By layer, (2 D,): variance of a token, correlation of two, tangent kernels Theta(ap, ap') of one channel for one
    token and for two, overlap energy and label term."""

    variance: Array
    correlation: Array
    kernel: Array
    kernel_between_tokens: Array
    overlap_energy: Array
    label_term: Array


def refusal(net: TokenStream) -> str:
    """Why the recursion does not serve a net, in one sentence; empty if it does."""
    if why := refusal_of_all_roads(net):
        return why
    if net.inputs > 1 and not _hidden_gates(net):
        return (
            f"the net has {net.inputs} samples, whose hidden units meet at two angles, and averages over four gates at "
            "two angles are known for 'relu' and 'linear'; take one of these, or inputs=1"
        )
    if net.attention.causal:
        return "under a causal mask tokens differ by their place, and the recursion needs tokens that are exchangeable"
    return ""


def refusal_of_all_roads(net: TokenStream) -> str:
    """Why neither the recursion nor `given_statistics` serves a net; empty if one of them does."""
    if why := refusal_of_parts(net):
        return why
    attention = net.attention
    if net.is_tied:
        return "blocks share weights (tied=True), whose changes correlate across blocks; take tied=False"
    if attention.rotary and attention.scale == "inverse_sqrt":
        return ROTARY
    if attention.scale == "inverse_sqrt" and not attention.causal and net.tokens > MOST_TOKENS:
        return (
            f"the net has {net.tokens} tokens, and averages over random logits are made for up to {MOST_TOKENS}; take "
            "fewer, or attention_scale='inverse'"
        )
    if net.readout not in ("pooled", "last", "flatten"):
        return (
            f"readout {net.readout!r} has outputs at every token, and errors are followed down from a pooled or the "
            "last token, or from all of them side by side; take readout='pooled', 'last' or 'flatten'"
        )
    return ""


def refusal_of_parts(net: TokenStream) -> str:
    """Why a net has a part that no covariance goes through, tied or not; empty if it has none."""
    try:
        first = net.branches[0]
    except ValueError as why:
        return str(why)
    if first.gain is not None:
        return (
            "every branch is multiplied by a gain that starts at 0 (scaling='rezero'), so that the first step moves "
            "these numbers alone; take another scaling, or simulate the net"
        )
    if first.before is None and first.after is None:
        return (
            "tokens are not normalised, and grow from branch to branch, where averages over gates and logits are made "
            "for tokens of variance 1; take normalisation='layer' or 'rms', or simulate the net"
        )
    if net.attention.scale == "inverse_sqrt" and len({weight.variance for weight in first.first.weights}) > 1:
        return (
            "queries, keys and values have variances of their own, and averages over random logits are made for one; "
            "take attention_scale='inverse', whose logits vanish, or another scaling"
        )
    if net.input_law == "tokens":
        return (
            "the net embeds tokens of a vocabulary, among which some may be the same, and the recursion needs tokens "
            "that are independent; take vocabulary=None: its white tokens are those of different characters embedded"
        )
    return ""


def stream_moments(net: TokenStream) -> StreamMoments:
    """The moments of a net of white tokens that has no `refusal`, in O(depth)."""
    tokens, width, units = net.tokens, net.first_channels, len(net.block) * net.depth
    readings = [_reading(branch, width, tokens) for branch in net.branches]
    normalised = np.array([net.is_pre_norm, net.branches[0].after is not None])
    shares = np.array([averages_over_two(tokens, side) for side in (0, 1)])
    block = np.array([reading.constants for reading in readings])
    attends = np.array([reading.attends for reading in readings])
    tables, hidden = tuple(reading.table for reading in readings), np.array([reading.hidden for reading in readings])
    covariances, kernels, energies, passings, divisors = scan(
        units, attends, tables, hidden, block, normalised, shares, tokens
    )
    weight, taken = _readout(net)
    top = weight.variance / weight.shape[0] * taken / (covariances[-1, 0] if normalised[0] else 1.0)
    labels = labels_down(top, passings, divisors, block[:, 0] * block[:, 1] * block[:, 3] ** 2)
    samples, others = net.inputs, np.zeros((units, 2))
    if samples > 1:
        hidden_unit = int(np.flatnonzero(~attends)[0])
        of_hidden = tables[hidden_unit], hidden[hidden_unit], block, _hidden_gates(net) == "linear"
        others = between_samples(covariances, passings, divisors, attends, *of_hidden)
    return StreamMoments(
        covariances[:, 0],
        1 - covariances[:, 1] / covariances[:, 0],
        width * kernels[:, 0],
        width * kernels[:, 1],
        width * (energies[:, 0] + (samples - 1) * others[:, 0]) / samples,
        width**2 * (labels * (energies + (samples - 1) * others)).sum(axis=1) / samples**2,
    )


def _hidden_gates(net: TokenStream) -> str:
    """The activation of the feed-forward net, if it is "relu" or "linear"."""
    hidden = (branch.inner.pointwise_activation for branch in net.branches)
    return next((name for name in hidden if name in ("relu", "linear")), "")


def given_statistics(net: TokenStream, inputs: Array | None) -> tuple[Array, Array]:
    """Variance of a token and mean correlation of two of a sample, by layer, from all pairs of tokens.

    Raises:
        ValueError: a map through which covariances do not close, tied weights, or more tokens than softmax averages
            are made for.
    """
    if net.attention.scale == "inverse_sqrt":
        require_room(net.inputs * net.tokens)
    values = islice(value_kernels(net, inputs), len(net.units))
    variances, correlations = zip(*(pair_statistics(value.covariance) for value in values), strict=True)
    return np.array(variances), np.array(correlations)


def pair_statistics(covariance: Array) -> tuple[float, float]:
    """Variance of a token and mean correlation of two of a sample, from the covariance (B, T, B, T) of a value."""
    within = np.einsum("bpbq->bpq", covariance)
    squares = np.einsum("bpp->bp", within)
    tokens = squares.shape[1]
    cosines = within / np.sqrt(squares[:, :, None] * squares[:, None])
    pairs = max(tokens * (tokens - 1), 1)
    return float(squares.mean()), float((cosines.sum(axis=(1, 2)) - tokens).mean() / pairs)


@dataclass(frozen=True)
class _Reading:
    """One unit as `scan` takes it."""

    attends: bool
    table: Array
    hidden: tuple[float, float, float]
    constants: tuple[float, float, float, float]


def _reading(branch: TokenBranch, width: int, tokens: int) -> _Reading:
    below, units = branch.gain_below, branch.channels
    constants = (below, branch.gain_above, units / width, branch.multiplier)
    match branch.inner:
        case Attention() as attention:
            table = uniform_averages(tokens) if attention.scale == "inverse" else softmax_averages(tokens, below**2)
            return _Reading(True, table, (units / attention.heads, 0.0, 0.0), constants)
        case activation:
            averages = hidden_averages(activation, below)
            passed = (averages.feature_variance, averages.passed, width / units)
            return _Reading(False, averages.series, passed, constants)


def _readout(net: TokenStream) -> tuple[Weight, Array]:
    """Its weight, and what it takes of one token and of two: sums of w w' over pairs, w the weights of tokens."""
    assert net.readout_unit is not None
    taken = {"pooled": [1 / net.tokens, 1 - 1 / net.tokens], "last": [1.0, 0.0], "flatten": [float(net.tokens), 0.0]}
    return net.readout_unit.branch[-1].weights[0], np.array(taken[net.readout])


def output_variance(net: TokenStream, moments: StreamMoments) -> float:
    """E z_out^2 of an output: s_h n times the sum of w w' times the covariance of the tokens that the readout takes."""
    weight, taken = _readout(net)
    size = 1.0 if net.is_pre_norm else moments.variance[-1]
    return float(weight.variance * net.first_channels * size * (taken @ [1.0, moments.correlation[-1]]))
