"""Exact expectations of fully-connected nets with one input, at any width and depth, in O(depth) operations.

Notation (docs/theory.md sections 3, 4): F = |Theta|_F^2, P1 = z' Theta^2 z, P2 = sum_a z_a^2 (Theta^2)_aa and
P3 = |z|^2 tr Theta^2 from below; a1 = (tr S)^2 and a2 = tr S^2 from above, S = J'J being the Gram matrix of the
Jacobian to the outputs. All are carried as logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.validation import takes
from meanfield.nets.families.layered import Sequential
from meanfield.theory.exact.closure import derive
from meanfield.theory.exact.moments import Moment
from meanfield.theory.exact.recursion import Recursion

OVERLAP = "Theta_ij Theta_ij"
OUTPUT_MOMENTS = ("z_i Theta_ij Theta_jk z_k", "z_i z_i Theta_ij Theta_ji", "Theta_ij Theta_ij z_k z_k")
GRAM_MOMENTS = ("Theta_ii Theta_jj", "Theta_ij Theta_ij")
# |Theta|_F^4, tr Theta^4 and the sum of (Theta^2)_aa^2, which close together; spreads share this one derivation.
SPREAD_MOMENTS = (
    "Theta_ij Theta_ij Theta_kl Theta_kl",
    "Theta_ij Theta_jk Theta_kl Theta_li",
    "Theta_ij Theta_ji Theta_ik Theta_ki",
)


@dataclass(frozen=True)
class ExactTerms:
    """Natural logarithms of E F_l, E B_l and E A_l for l = 1 .. L."""

    overlap_energy: Array
    label_term: Array
    output_term: Array


def exact_terms(net: Sequential) -> ExactTerms:
    """Overlap energy, label term and output term of every layer, for labels of variance 1."""
    return next(exact_terms_by_depth(net, [net.depth]))


def exact_terms_by_depth(net: Sequential, depths: Iterable[int]) -> Iterator[ExactTerms]:
    """The terms of the nets cut from this one at these depths, from one recursion up and one down.

    Moments from below do not depend on the layers above them, Gram moments only on the distance to the outputs.

    Raises:
        ValueError: a depth that this net does not reach, or hidden layers of several widths (a cut net would then end
            in other layers).
    """
    full_depth = net.depth
    chain = PlainChain(net)
    overlap, below = _from_below(net.replace(head="he", outputs=1))
    above = chain.gram_from_above()
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    label = overlap + np.log(gamma / net.outputs)
    for depth in depths:
        if depth != full_depth and (not 1 <= depth < full_depth or len(set(net.channels_by_layer[1:])) > 1):
            raise ValueError(
                f"depth {depth} cannot be cut from this net of {full_depth} layers; its layers must be equal"
            )
        yield ExactTerms(overlap[:depth], label[:depth], chain.output_term(below[:depth], above[full_depth - depth :]))


@lru_cache(maxsize=1)
def _from_below(net: Sequential) -> tuple[Array, Array]:
    """log E F_l, and logs of P1, P2, P3: kept for the next head or number of outputs, which change nothing here."""
    return overlap_energies(net), _rows(PlainChain(net), *OUTPUT_MOMENTS)


def _rows(chain: PlainChain, *moments: str) -> Array:
    """Logs of the named moments at layers 1 .. L: (L, moments)."""
    return np.stack([*chain.from_below(*moments, rows=len(moments)).values()], axis=1)


def overlap_energies(net: Sequential) -> Array:
    """log E F_l for l = 1 .. L.

    By a recursion of its own: carried along with moments that grow faster, F would underflow beside them.
    """
    chain = PlainChain(net)
    return np.asarray(_rows(chain, OVERLAP)[:, 0] - 2 * np.log(chain.channels[1:]))


@takes(Sequential)
def relative_spread(net: Sequential) -> Array:
    """Standard deviation of one draw of F_l over its mean, for l = 1 .. L.

    The number of draws for a relative error e is (spread / e)^2; far above 1, rare draws make the mean.
    """
    chain = PlainChain(net)
    square = _rows(chain, *SPREAD_MOMENTS)[:, 0] - 4 * np.log(chain.channels[1:])
    return _spread(square - 2 * overlap_energies(net))


@takes(Sequential)
def label_spread(net: Sequential) -> Array:
    """Standard deviation of one draw of B_l over its mean, for l = 1 .. L; a draw has its own weights and labels.

    B_l = y' G y / (M^2 n) with G = J Theta^2 J', so that E_y B_l^2 is (tr G)^2 + 2 tr G^2. Averaged over the matrix
    just above layer l, that is s^2 (a1 + 2 a2)(E (tr X)^2 + 2 E tr X^2), X being Theta^2 between the gates of layer l.
    It exceeds the spread of F_l by what the layers above add: even layer 1 of a deep net spreads widely.
    """
    chain = PlainChain(net)
    square, quartic, diagonal = _rows(chain, *SPREAD_MOMENTS).T
    if net.activation == "relu":
        square, quartic = (np.logaddexp(moment, diagonal) - np.log(4.0) for moment in (square, quartic))
    a1, a2 = chain.gram_from_above().T
    mean_square = np.logaddexp(a1, np.log(2) + a2) + np.logaddexp(square, np.log(2) + quartic)
    scale = 2 * np.log(chain.variances[1:] / (net.outputs**2 * chain.channels[1:]))
    return _spread(mean_square + scale - 2 * exact_terms(net).label_term)


def _spread(log_ratio: Array) -> Array:
    """From the logarithm of E x^2 / (E x)^2."""
    return np.asarray(np.sqrt(np.maximum(np.expm1(log_ratio), 0.0)))


class PlainChain:
    """The numbers that the recursions of a plain net run on, and moments carried along them, as logarithms.

    Attributes:
        activation: whose gates are averaged.
        energy: |sigma(x)|^2 of the normalised input.
        channels: of z^(0) .. z^(L).
        variances: of W^(1) .. W^(L) and the readout.
    """

    def __init__(self, net: Sequential) -> None:
        self.activation, self.channels = net.activation, np.array(net.channels_by_layer, dtype=float)
        self.energy = net.sigma.gain * self.channels[0]
        self.variances = np.append(1.0 / (net.sigma.gain * self.channels[:-1]), net.head_variance)
        self._outputs = float(net.outputs)

    def from_below(self, *moments: str, last: int | None = None, rows: int | None = None) -> dict[Moment, Array]:
        """The named moments, and further ones that they need, at layers 1 .. ``last`` (or L); the first ``rows`` alone.

        All of one degree: others grow so much faster or slower with depth that one float cannot scale them together.
        """
        recursion = derive(*moments, activation=self.activation)
        start = recursion.first_layer(self.channels[1], self.variances[0], self.energy)
        return self.carried(recursion, start, 1, len(self.channels) - 1 if last is None else last, rows)

    def carried(
        self, recursion: Recursion, start: Array, first: int, last: int, rows: int | None = None
    ) -> dict[Moment, Array]:
        """The recursion's first ``rows`` moments (or all) from layer ``first`` to layer ``last``, both included."""
        logs = recursion.log_moments(start, self.channels[first + 1 : last + 1], self.variances[first:last], rows)
        return dict(zip(recursion.moments[:rows], logs.T, strict=True))

    def gram_from_above(self) -> Array:
        """a1, a2 of the layer above each of 1 .. L (the outputs for L), after that layer's gate: (L, 2)."""
        recursion = derive(*GRAM_MOMENTS, activation=self.activation, direction="down")
        # (tr I)^2 is the square of tr I^2 and of the sum of squared diagonal elements.
        start = np.array([self._outputs ** (1 + (str(m) == GRAM_MOMENTS[0])) for m in recursion.moments])
        widths, variances = self.channels[:1:-1], self.variances[:1:-1]
        return recursion.log_moments(start, widths, variances, len(GRAM_MOMENTS))[::-1]

    def output_term(self, below: Array, above: Array) -> Array:
        """log E A_l = log E z' S Theta^2 S z / (M^2 n) from P1, P2, P3 and a1, a2.

        S is averaged over the matrix just above layer l and, for ReLU, over the gate there (docs/theory.md section 4).
        """
        p1, p2, p3 = below.T
        a1, a2 = above.T
        if self.activation == "relu":
            both = np.logaddexp(a1, a2) + np.logaddexp(p1, p2)
            total = np.logaddexp(both, a2 + np.logaddexp(p3, p2)) - np.log(4.0)
        else:
            total = np.logaddexp(np.logaddexp(a1, a2) + p1, a2 + p3)
        top = len(self.channels) - len(below)
        return np.asarray(total + np.log(self.variances[top:] ** 2 / (self._outputs**2 * self.channels[top:])))
