"""What theory knows of values at infinite width, and what it asks of every map.

Values are channels of one or several kinds, those of a stack of weights side by side. Of every kind there are second
moments over all pairs of samples and sites, (B, S, B, S), per channel:

    covariance  c = E[x x']
    kernel      t = Theta within the channel: the sum over all parameters below, at learning rate 1 each, of dx dx'

of order 1 and of the order of the channels below. Between channels Theta is smaller than t by the root of the channels
(`meanfield.theory.mean_field.layers`) and does not enter t above. Both are the leading order: at finite width they
are off by a share of order 1/channels, except where all maps are linear, whose means are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from meanfield.common.arrays import Array


class NoTransport(ValueError):
    """Covariance and kernel do not close here. ``reason`` says why, ``unit`` and ``map`` where, once that is known."""

    def __init__(self, reason: str, unit: str = "", map: Any = None) -> None:
        place = [unit, type(map).__name__ if map is not None else ""]
        super().__init__(": ".join([", ".join(filter(None, place)), reason]) if any(place) else reason)
        self.reason, self.unit, self.map = reason, unit, map


@dataclass(frozen=True)
class Kind:
    """So many channels of one law.

    Attributes:
        channels: how many.
        covariance, kernel: c and t, (B, S, B, S).
        mean: the mean over channels, (B, S).
        gaussian: whether every channel is a centred Gaussian, independent of the others and of all channels before.
        given: the values themselves, (channels, B, S), where they are no draw.
    """

    channels: int
    covariance: Array
    kernel: Array
    mean: Array
    gaussian: bool = True
    given: Array | None = None


# Kinds in the order of their channels.
Kinds = tuple[Kind, ...]


def given_kind(values: Array) -> Kind:
    """Values (channels, B, S) that are no draw, without parameters below them."""
    covariance = np.einsum("ibp,icr->bpcr", values, values, optimize=True) / len(values)
    return Kind(len(values), covariance, np.zeros_like(covariance), values.mean(axis=0), False, values)


def count(kinds: Kinds) -> int:
    """Channels of all kinds."""
    return sum(kind.channels for kind in kinds)


def total(kinds: Kinds, name: str) -> Array:
    """The sum over channels of one of their attributes."""
    return np.asarray(sum(kind.channels * getattr(kind, name) for kind in kinds))


def between(kinds: Kinds, first: int, last: int) -> Kinds:
    """Channels ``first`` .. ``last`` - 1."""
    cut, start = [], 0
    for kind in kinds:
        low, high = max(first - start, 0), min(last - start, kind.channels)
        if low < high:
            given = kind.given
            cut.append(replace(kind, channels=high - low) if given is None else given_kind(given[low:high]))
        start += kind.channels
    return tuple(cut)


def abreast(*stacks: Kinds) -> Iterator[Kinds]:
    """Kinds of the same channels of several stacks, which are cut wherever one of them changes kind."""
    edges = {edge for stack in stacks for edge in accumulate(kind.channels for kind in stack)}
    for first, last in pairwise([0, *sorted(edges)]):
        yield tuple(between(stack, first, last)[0] for stack in stacks)


def averaged(kind: Kind, shares: Array) -> Kind:
    """Channels that take fixed ``shares`` (S', S) of the sites: sum_r shares_pr x(r)."""
    covariance, kernel = (
        np.einsum("pr,brcs,qs->bpcq", shares, pairs, shares, optimize=True) for pairs in (kind.covariance, kind.kernel)
    )
    given = None if kind.given is None else kind.given @ shares.T
    return replace(kind, covariance=covariance, kernel=kernel, mean=kind.mean @ shares.T, given=given)
