"""Energies of a stream of tokens by step, what they split into, and what the increments of two steps share.

Source: docs/theory.md section 22; Wang et al. 2026, eq. 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.machine import NUMBER_BYTES, on_one_thread, require_bytes
from meanfield.nets.families.token_stream import TokenStream
from meanfield.nets.maps import Attention
from meanfield.theory.transformers.mean_field import refusal_of_parts
from meanfield.theory.transformers.tied.stream import tied_steps
from meanfield.theory.transformers.tied.tokens import EveryToken, ExchangeableTokens, TokenPairs

# Arrays (L, *E) that the rows of a stream hold at once, E what two steps have over tokens.
ROWS = 8


@dataclass(frozen=True)
class StreamEnergies:
    """Means over tokens and samples.

    Attributes:
        initial: variance of a token of the start.
        variance: of a token behind step 1 .. L, (L,).
        correlation: of two tokens there, (L,).
        increments: E r_u r_v of increments of two steps, (L, L), if asked for.
    """

    initial: float
    variance: Array
    correlation: Array
    increments: Array | None


def stream_energies(net: TokenStream, inputs: Array | None, correlations: bool) -> StreamEnergies:
    """Those of a tied net on inputs (B, n, T), white ones if not given.

    Raises:
        ValueError: a part that no covariance goes through; given inputs of a post-norm net.
        MemoryError: more pairs of steps and tokens than the machine has room for.
    """
    if why := refusal_of_parts(net):
        raise ValueError(why)
    if inputs is not None and net.block[0].after:
        raise ValueError(
            "inputs are given to a post-norm net with tied blocks or rotary positions; its first block takes them as "
            "they are, and covariances between steps are of normalised values; leave inputs out, or take norm='pre'"
        )
    count = len(net.block) * net.depth
    samples = _samples(net, inputs)
    needed = ROWS * count * samples[0].start.size + correlations * 2 * count**2
    require_bytes(NUMBER_BYTES * needed, "the covariance of all pairs of steps", "depth or tokens")
    with on_one_thread():
        parts = [_of_sample(net, pairs, count, correlations) for pairs in samples]
    means = [np.mean(part, axis=0) for part in zip(*parts, strict=True)]
    return StreamEnergies(float(means[0]), means[1], means[2], means[3] if correlations else None)


def _samples(net: TokenStream, inputs: Array | None) -> list[TokenPairs]:
    """What two steps have over the tokens of each sample; samples that are alike are one."""
    if _are_exchangeable(net, inputs):
        return [ExchangeableTokens(net.tokens)]
    if inputs is None:
        return [EveryToken(np.eye(net.tokens))]
    return [EveryToken(sample.T @ sample / len(sample)) for sample in inputs]


def _are_exchangeable(net: TokenStream, inputs: Array | None) -> bool:
    attention = _attention(net)
    return inputs is None and not attention.causal and not (attention.rotary and attention.scale == "inverse_sqrt")


def _attention(net: TokenStream) -> Attention:
    return next(part for unit in net.block for part in unit.branch if isinstance(part, Attention))


def _of_sample(net: TokenStream, pairs: TokenPairs, count: int, correlations: bool) -> tuple[Array, ...]:
    variance, between = np.empty(count), np.empty(count)
    increments = np.zeros((count, count) if correlations else 0)
    for number, step in enumerate(tied_steps(net, pairs)):
        squares = pairs.same(step.covariance)
        sizes = np.sqrt(squares)
        variance[number] = squares.mean()
        between[number] = pairs.mean_of_two(step.covariance / pairs.first(sizes) / pairs.second(sizes))
        if correlations:
            row = pairs.same(step.increments).mean(axis=1)
            increments[number, step.together] = increments[step.together, number] = row
    return pairs.same(pairs.start).mean(), variance, between, increments
