"""What is predicted of a net of tokens: by the recursion where they are exchangeable, over all pairs of them elsewhere.

Source: docs/theory.md section 19.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.token_stream import TokenStream
from meanfield.theory.transformers.every_pair import MOST_PAIRED, pair_terms
from meanfield.theory.transformers.mean_field import (
    given_statistics,
    output_variance,
    pair_statistics,
    refusal,
    refusal_of_all_roads,
    stream_moments,
)

SEVERAL_SAMPLES = (
    "output_term: outputs of several samples correlate, and the recursion over depth has labels, which do not; give "
    "inputs, or take inputs=1"
)


@dataclass(frozen=True)
class TokenTerms:
    """By layer, (2 D,): variance of a token and correlation of two; terms, None where ``left_out`` says why."""

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
