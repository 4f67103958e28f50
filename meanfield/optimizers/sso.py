"""SSO: steepest descent in the spectral norm that stays on the sphere of the weights' own spectral norm (P1 C.11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.factored import ROUNDING, Factored, add_momentum
from meanfield.optimizers.polar import polar_factor
from meanfield.optimizers.spectrum import top_singular

Array = NDArray[np.float64]

# How strongly the weights' own top direction may be mixed into the gradient, in units of the gradient's norm.
STRONGEST = 1e6


@dataclass(frozen=True)
class SSO:
    """A = R Phi, R = sqrt(n_out / n_in), Phi = argmax <G, Phi> with |Phi|_2 = 1 and |W - eta R Phi|_2 = |W|_2.

    P1 prints the second constraint with eta Phi in place of the step eta R Phi that it makes, and |W|_2 = R, which its
    own initialisation of the output weights breaks by a factor n; here the sphere is that of the weights as they stand
    and the step is the step that is made.

    The maximiser is the polar factor of G + lambda u v^T, (u, v) the top singular pair of W and lambda such that the
    norm stays; at lambda = 0 the part of u v^T that the gradient does not see is free, from -1 to 1, and when that is
    enough <G, Phi> is the nuclear norm of G, the most that any Phi reaches. Otherwise Phi is the maximiser to first
    order in eta. Both constraints hold to ``tolerance``, relative to |W|_2.
    """

    momentum: float = 0.9
    tolerance: float = 1e-9

    def step(self, state: Factored | None, gradient: Gradient, place: Place) -> tuple[Factored, Factored]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        outputs, inputs = moved.shape
        radius = float(np.sqrt(outputs / inputs))
        u, norm, v = top_singular(place.weights, self.tolerance)
        family, reach = _family(moved, u, v), place.learning_rate * radius

        def excess(mix: float) -> float:
            return (top_singular(place.weights, self.tolerance, v, family(mix).times(-reach))[1] - norm) / norm

        mix = self._balanced(excess, lambda mix: float(_between(u, family(mix), v)))
        return family(mix).times(radius), moved

    def _balanced(self, excess: Callable[[float], float], along: Callable[[float], float]) -> float:
        """The mix at which the norm stays: where the step has no component along the top pair, or near there."""
        tangent = _root(along, 0.0) if along(-STRONGEST) * along(STRONGEST) < 0 else 0.0
        if abs(excess(tangent)) <= self.tolerance:
            return tangent
        width = 1e-3
        while width < STRONGEST:
            low, high = excess(tangent - width), excess(tangent + width)
            if low * high <= 0:
                return self._bisected(excess, tangent - width, tangent + width, low, high)
            width *= 10
        raise ValueError(
            "no direction of spectral norm 1 keeps the weights on their sphere; take a smaller learning rate"
        )

    def _bisected(self, excess: Callable[[float], float], a: float, b: float, low: float, high: float) -> float:
        """A zero of the excess between a and b by regula falsi with halved ends (Illinois), to the tolerance."""
        while True:
            middle = (a * high - b * low) / (high - low)
            found = excess(middle)
            if abs(found) <= self.tolerance or abs(b - a) <= 1e-15 * max(1.0, abs(a)):
                return middle
            if found * high < 0:
                a, low = b, high
            else:
                low /= 2
            b, high = middle, found


def _family(slope: Factored, u: Array, v: Array) -> Callable[[float], Factored]:
    """mix -> Phi: within [-1, 1] the free part is turned on, beyond it lambda grows."""
    polar = polar_factor(slope)
    unseen = [side - basis @ (basis.T @ side) for side, basis in ((u, polar.left), (v, polar.right))]
    lengths = [float(np.linalg.norm(side)) for side in unseen]
    free = min(lengths) > ROUNDING**0.5
    size = slope.spectral_norm()
    own = Factored(u[:, None], v[:, None])

    def phi(mix: float) -> Factored:
        inside = float(np.clip(mix, -1, 1)) if free else 0.0
        beyond = mix - inside
        if beyond:
            return polar_factor(slope.plus(own.times(beyond * size)))
        if not inside:
            return polar
        return polar.plus(Factored(inside * unseen[0][:, None] / lengths[0], unseen[1][:, None] / lengths[1]))

    return phi


def _between(u: Array, matrix: Factored, v: Array) -> float:
    return float((u @ matrix.left) @ (v @ matrix.right))


def _root(function: Callable[[float], float], guess: float) -> float:
    """A zero of a function that changes sign, found near the guess first."""
    width = 2.0
    while function(guess - width) * function(guess + width) > 0 and width < STRONGEST:
        width *= 4
    return float(brentq(function, guess - width, guess + width, xtol=1e-12))
