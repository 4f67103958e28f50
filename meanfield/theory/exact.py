"""Exact expectations of fully-connected nets with one input, at any width and depth, in O(depth) operations.

Notation (THEORY sections 3, 8): F = |Theta|_F^2, P1 = z' Theta^2 z, P2 = sum_a z_a^2 (Theta^2)_aa and
P3 = |z|^2 tr Theta^2 from below; a1 = (tr S)^2 and a2 = tr S^2 from above, S = J'J being the Gram matrix of the
Jacobian to the outputs. All are carried as logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.architectures import MLP
from meanfield.theory.closure import derive
from meanfield.theory.layers import log_moments

Array = NDArray[np.float64]

OVERLAP = "Theta_ij Theta_ij"
OUTPUT_MOMENTS = ("z_i Theta_ij Theta_jk z_k", "z_i z_i Theta_ij Theta_ji", "Theta_ij Theta_ij z_k z_k")
GRAM_MOMENTS = ("Theta_ii Theta_jj", "Theta_ij Theta_ij")
SQUARED_OVERLAP = "Theta_ij Theta_ij Theta_kl Theta_kl"


@dataclass(frozen=True)
class ExactTerms:
    """Natural logarithms of E F_l, E B_l and E A_l for l = 1 .. L."""

    overlap_energy: Array
    label_term: Array
    output_term: Array


def exact_terms(architecture: MLP) -> ExactTerms:
    """Overlap energy, label term and output term of every layer, for labels of variance 1."""
    chain = _Chain.of(architecture)
    overlap = chain.moments_from_below(OVERLAP)[:, 0] - 2 * np.log(chain.channels[1:])
    gamma = architecture.head_variance * architecture.head_fan_in * architecture.sigma.gain
    label = overlap + np.log(gamma / architecture.outputs)
    return ExactTerms(overlap, label, chain.output_term(chain.moments_from_below(*OUTPUT_MOMENTS)))


def relative_spread(architecture: MLP) -> Array:
    """Standard deviation of one draw of F_l over its mean, for l = 1 .. L.

    The number of draws for a relative error e is (spread / e)^2; far above 1, rare draws make the mean.
    """
    chain = _Chain.of(architecture)
    mean, square = (chain.moments_from_below(moment)[:, 0] for moment in (OVERLAP, SQUARED_OVERLAP))
    return np.asarray(np.sqrt(np.maximum(np.expm1(square - 2 * mean), 0.0)))


@dataclass(frozen=True)
class _Chain:
    """The numbers that the recursions run on: channels of z^(0) .. z^(L), variances of W^(1) .. and the readout's."""

    activation: str
    gain: float
    channels: Array
    variances: Array
    outputs: int

    @classmethod
    def of(cls, architecture: MLP) -> _Chain:
        channels = np.array(architecture.channels_by_layer, dtype=float)
        gain = architecture.sigma.gain
        variances = np.append(1.0 / (gain * channels[:-1]), architecture.head_variance)
        return cls(architecture.activation, gain, channels, variances, architecture.outputs)

    def moments_from_below(self, *moments: str) -> Array:
        """Logs of the named moments at layers 1 .. L: (L, moments).

        All of one degree: others grow so much faster or slower with depth that one float cannot scale them together.
        """
        recursion = derive(*moments, activation=self.activation)
        start = recursion.first_layer(self.channels[1], self.variances[0], self.gain * self.channels[0])
        return log_moments(recursion, start, self.channels[2:], self.variances[1:-1], len(moments))

    def gram_from_above(self) -> Array:
        """Logs of a1, a2 of the layer above each of 1 .. L (the outputs for L), after that layer's gate: (L, 2)."""
        recursion = derive(*GRAM_MOMENTS, activation=self.activation, direction="down")
        start = np.array([_of_identity(str(moment), float(self.outputs)) for moment in recursion.moments])
        return log_moments(recursion, start, self.channels[:1:-1], self.variances[:1:-1], len(GRAM_MOMENTS))[::-1]

    def output_term(self, below: Array) -> Array:
        """log E A_l = log E z' S Theta^2 S z / (M^2 n) from P1, P2, P3: S averaged over the matrix just above layer l
        and, for ReLU, over the gate there (THEORY section 8)."""
        p1, p2, p3 = below.T
        a1, a2 = self.gram_from_above().T
        if self.activation == "relu":
            both = np.logaddexp(a1, a2) + np.logaddexp(p1, p2)
            total = np.logaddexp(both, a2 + np.logaddexp(p3, p2)) - np.log(4.0)
        else:
            total = np.logaddexp(np.logaddexp(a1, a2) + p1, a2 + p3)
        scale = self.variances[1:] ** 2 / (self.outputs**2 * self.channels[1:])
        return np.asarray(total + np.log(scale))


def _of_identity(moment: str, size: float) -> float:
    """(tr I)^2 = size^2; tr I^2 and the sum of squared diagonal elements are size."""
    return size**2 if moment == GRAM_MOMENTS[0] else size
