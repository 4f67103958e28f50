"""Exact expectations of linear residual nets with one input, at any width and depth, in O(depth) operations.

Notation (docs/theory.md sections 4, 8): F = |Theta|_F^2, P1 = z' Theta^2 z and P3 = |z|^2 tr Theta^2 from below, on one
set of moments for plain layers and blocks. From above S = J'J, the Gram matrix of the Jacobian J from a depth unit to
the outputs, is independent of them and has no preferred direction, so that for all orthonormal u, v

    E S_ij S_kl = alpha d_ij d_kl + gamma (d_ik d_jl + d_il d_jk),   alpha = E |Ju|^2 |Jv|^2,   gamma = E <Ju, Jv>^2,
    M^2 n A_l = (alpha + gamma) E P1 + gamma E P3,   M^2 n B_l = E |Ju|^2 E F.

What J does to two vectors is what the depth units above do to two tangents: their derived recursions, read from the top
(one row of a product of matrices, built from the left). All terms are positive and are carried as logarithms.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.residual import Residual
from meanfield.theory.exact.closure import DepthUnit, derive_together
from meanfield.theory.exact.plain import OUTPUT_MOMENTS, OVERLAP, ExactTerms
from meanfield.theory.exact.recursion import Recursion
from meanfield.theory.kernels.iteration import iterate

LENGTH = "u_i u_i"
SQUARED = "u_i v_i u_j v_j"
LENGTHS = "u_i u_i v_j v_j"


def exact_residual_terms(net: Residual) -> ExactTerms:
    """Overlap energy, label term and output term at the end of every depth unit, for labels of variance 1."""
    backbone = _Backbone(net)
    overlap = backbone.moments_from_below(OVERLAP)[:, 0] - 2 * np.log(backbone.width)
    length = backbone.to_outputs((LENGTH,), LENGTH)
    label = length + overlap + np.log(backbone.width / backbone.outputs**2)
    return ExactTerms(overlap, label, backbone.output_term())


class _Backbone:
    """The recursions along one net: runs of equal depth units from below, each with the values of its variables.

    Those are n, s of a plain layer and n, s, beta of a block.
    """

    def __init__(self, net: Residual) -> None:
        *variances, _ = net.weight_variances
        self.width, self.outputs = float(net.channels_by_layer[-1]), float(net.outputs)
        self._input_width = float(net.channels_by_layer[0])
        self._block_depth = net.block_depth
        above_blocks = len(variances) - net.tail
        block = (self.width, variances[net.stem], net.multiplier**2)
        units: list[tuple[float, ...]] = [(self.width, s) for s in variances[: net.stem]]
        units += [block] * net.blocks + [(self.width, s) for s in variances[above_blocks:]]
        self._kinds, lengths = zip(*((values, len(list(run))) for values, run in groupby(units)), strict=True)
        self._which = np.repeat(np.arange(len(lengths)), lengths)
        self._head = (self.outputs, net.head_variance)

    def moments_from_below(self, *moments: str) -> Array:
        """Logs of moments of one degree (see `exact`) at the end of every depth unit: (units, moments).

        The input is a given vector under a vanishing kernel; |x|^2 is its width.
        """
        plain, block = self._recursions(moments)
        start = plain.of_input(self._input_width)
        return np.asarray(iterate(self._matrices(plain, block), self._which, start, np.arange(len(moments)))[1:])

    def to_outputs(self, moments: tuple[str, ...], wanted: str) -> Array:
        """Log of a moment at the outputs, from every depth unit where the last of ``moments`` is 1 and others 0."""
        plain, block = self._recursions(moments)
        steps = np.concatenate([self._matrices(plain, block), plain.matrix(*self._head)[None]]).transpose(0, 2, 1)
        which = np.append(self._which, len(steps) - 1)[:0:-1]
        start = np.eye(len(moments))[moments.index(wanted)]
        return np.asarray(iterate(np.ascontiguousarray(steps), which, start, np.array([len(moments) - 1]))[:0:-1, 0])

    def output_term(self) -> Array:
        """log E A_l, of M^2 n A_l = E z' S Theta^2 S z."""
        through_gram, _, beside_gram = OUTPUT_MOMENTS
        p1, p3 = self.moments_from_below(through_gram, beside_gram).T
        alpha, gamma = (self.to_outputs((SQUARED, LENGTHS), wanted) for wanted in (LENGTHS, SQUARED))
        total = np.logaddexp(np.logaddexp(alpha, gamma) + p1, gamma + p3)
        return np.asarray(total - np.log(self.outputs**2 * self.width))

    def _recursions(self, moments: tuple[str, ...]) -> tuple[Recursion, Recursion]:
        """Of plain layers and of blocks, on one set of moments."""
        plain, block = derive_together(moments, DepthUnit("linear"), DepthUnit("linear", block_depth=self._block_depth))
        return plain, block

    def _matrices(self, plain: Recursion, block: Recursion) -> Array:
        kinds = [(plain if len(values) == len(plain.variables) else block).matrix(*values) for values in self._kinds]
        return np.array(kinds)
