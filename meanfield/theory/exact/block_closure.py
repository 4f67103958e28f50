"""What one residual block of a linear net does to a moment.

A block of k matrices maps z <- z + a W_k .. W_1 z. Inside it there are two spaces, stream s and branch b, which begin
alike; a matrix moves the branch alone and adds its own parameters to Theta^bb; at the end

    z = z^s + a z^b,   Theta = Theta^ss + a (Theta^sb + Theta^bs) + a^2 Theta^bb.

So from the top: every leg of the moment chooses stream or branch, a for the branch; the legs on the branch are averaged
over the matrices, last one first, while those on the stream pass by; below the first matrix both are one again. Odd
powers of a vanish with odd numbers of weights, so that beta = a^2 is the variable.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import product

from meanfield.theory.exact.moments import Moment, canonical
from meanfield.theory.exact.weight_average import STREAM, Averaged, average_over_weights, legs_of

# Moments with their powers of (n, s, beta), counted.
BlockTerms = Counter[tuple[Moment, tuple[int, int, int]]]


def through_block(moment: Moment, block_depth: int, own_layer: bool) -> BlockTerms:
    """E[moment after a block] as moments before it; ``own_layer`` as for `average_over_weights`."""
    terms = _through_joint(moment, own_layer)
    for _ in range(block_depth - 1):
        terms = _through_inner(terms, own_layer)
    untagged: BlockTerms = Counter()
    for (inside, powers), count in terms.items():
        untagged[_without_tags(inside), powers] += count
    return untagged


def _through_joint(moment: Moment, own_layer: bool) -> BlockTerms:
    """The end of a block and its last matrix."""
    terms: BlockTerms = Counter()
    legs = 2 * len(moment.edges) + sum(map(len, moment.marks))
    for on_branch in product((False, True), repeat=legs):
        if sum(on_branch) % 2 == 0:
            edges, marks = legs_of(moment, iter(on_branch))
            for (below, (n, s)), count in average_over_weights(edges, marks, own_layer).items():
                terms[below, (n, s, sum(on_branch) // 2)] += count
    return terms


def _through_inner(terms: BlockTerms, own_layer: bool) -> BlockTerms:
    """A matrix further down: every vertex lies wholly on the stream, and is tagged, or on the branch."""
    averaged: BlockTerms = Counter()
    for (moment, (n, s, beta)), count in terms.items():
        for (below, (more_n, more_s)), ways in _average_branch(moment, own_layer).items():
            averaged[below, (n + more_n, s + more_s, beta)] += count * ways
    return averaged


@lru_cache(maxsize=4096)
def _average_branch(moment: Moment, own_layer: bool) -> Averaged:
    branch = [STREAM not in names for names in moment.marks]
    edges = [((a, branch[a]), (b, branch[b])) for a, b in moment.edges]
    marks = [((v, branch[v]), name) for v, names in enumerate(moment.marks) for name in names if name != STREAM]
    return average_over_weights(edges, marks, own_layer)


def _without_tags(moment: Moment) -> Moment:
    marks = [(v, name) for v, names in enumerate(moment.marks) for name in names if name != STREAM]
    return canonical(moment.edges, marks)
