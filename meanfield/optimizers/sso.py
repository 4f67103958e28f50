"""SSO: steepest descent in the spectral norm that stays on the sphere of the weights' own spectral norm (P1 C.11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.factored import Factored, add_momentum
from meanfield.optimizers.polar import polar_factor
from meanfield.optimizers.spectrum import top_singular

Array = NDArray[np.float64]
Family = Callable[[float], Factored]
Growth = Callable[[Factored], float]

# How strongly the weights' own top direction may be mixed into the gradient, in units of the gradient's norm.
STRONGEST = 1e6

# How many singular pairs may be held on the sphere, and what of them counts as unseen by the gradient.
MOST_HELD = 12
UNSEEN = 1e-5


@dataclass(frozen=True)
class SSO:
    """A = R Phi, R = sqrt(n_out / n_in), Phi = argmax <G, Phi> with |Phi|_2 = 1 and |W - eta R Phi|_2 = |W|_2.

    P1 prints the second constraint with eta Phi in place of the step eta R Phi that it makes, and |W|_2 = R, which its
    own initialisation of the output weights breaks by a factor n; here the sphere is that of the weights as they stand
    and the step is the step that is made.

    The maximiser is the polar factor of G + lambda u v^T, (u, v) the top singular pair of W and lambda such that the
    norm stays; at lambda = 0 the part of u v^T that the gradient does not see is free, from -1 to 1, and when that is
    enough <G, Phi> is the nuclear norm of G, the most that any Phi reaches. Otherwise Phi is the maximiser to first
    order in eta. Where other singular values are so close to the largest that the step lifts one above it, their pairs
    join (u, v). Both constraints hold to ``tolerance``, relative to |W|_2.
    """

    momentum: float = 0.9
    tolerance: float = 1e-9

    def step(self, state: Factored | None, gradient: Gradient, place: Place) -> tuple[Factored, Factored]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        outputs, inputs = moved.shape
        radius = float(np.sqrt(outputs / inputs))
        u, norm, v = top_singular(place.weights, self.tolerance)
        held, reach = Factored(u[:, None], v[:, None]), place.learning_rate * radius

        def stepped(phi: Factored) -> tuple[Array, float, Array]:
            return top_singular(place.weights, self.tolerance, v, phi.times(-reach))

        for _ in range(MOST_HELD):
            family = _family(moved, held)
            found = self._balanced(family, held, lambda phi: stepped(phi)[1] / norm - 1)
            if found is not None:
                return found.times(radius), moved
            lifted = stepped(family(1.0))
            held = polar_factor(held.plus(Factored(lifted[0][:, None], lifted[2][:, None])))
        raise ValueError(
            "no direction of spectral norm 1 keeps the weights on their sphere; take a smaller learning rate"
        )

    def _balanced(self, family: Family, held: Factored, grown: Growth) -> Factored | None:
        """The member that keeps the norm, near the one with no component along what is held; None if there is none."""
        tangent = _root(lambda mix: _along(held, family(mix)))
        if abs(grown(family(tangent))) <= self.tolerance:
            return family(tangent)
        width = 1e-3
        while width < STRONGEST:
            ends = family(tangent - width), family(tangent + width)
            if grown(ends[0]) * grown(ends[1]) <= 0:
                return self._between(family, grown, tangent - width, tangent + width)
            width *= 10
        return None

    def _between(self, family: Family, grown: Growth, a: float, b: float, jumps: bool = True) -> Factored:
        """The member between two that keeps the norm, by regula falsi with halved ends (Illinois).

        A singular value of G + lambda u v^T that passes zero turns its direction around at once; between the two sides
        all mixtures are maximisers alike.
        """
        low, high = grown(family(a)), grown(family(b))
        while abs(b - a) > 1e-13 * max(1.0, abs(a)):
            middle = (a * high - b * low) / (high - low)
            found = grown(family(middle))
            if abs(found) <= self.tolerance:
                return family(middle)
            if found * high < 0:
                a, low = b, high
            else:
                low /= 2
            b, high = middle, found
        sides = family(a), family(b)
        if not jumps:
            return sides[1]
        return self._between(lambda t: sides[0].times(1 - t).plus(sides[1].times(t)), grown, 0.0, 1.0, jumps=False)


def _family(slope: Factored, held: Factored) -> Family:
    """mix -> Phi: within [-1, 1] the part of what is held that the gradient does not see, beyond it lambda grows."""
    polar = polar_factor(slope)
    left, right = (
        side - basis @ (basis.T @ side) for side, basis in ((held.left, polar.left), (held.right, polar.right))
    )
    free = polar_factor(Factored(left, right)) if min(np.abs(left).max(), np.abs(right).max()) > UNSEEN else None
    size = slope.spectral_norm()

    def phi(mix: float) -> Factored:
        inside = 0.0 if free is None else float(np.clip(mix, -1, 1))
        if mix != inside:
            return polar_factor(slope.plus(held.times((mix - inside) * size)))
        return polar if free is None else polar.plus(free.times(inside))

    return phi


def _along(held: Factored, matrix: Factored) -> float:
    """<held, matrix>."""
    return float(np.sum((held.left.T @ matrix.left) * (held.right.T @ matrix.right)))


def _root(function: Callable[[float], float]) -> float:
    """A zero of a function that is linear on [-1, 1] or changes sign beyond; zero if there is none."""
    ends = function(-1.0), function(1.0)
    if ends[0] * ends[1] < 0:
        guess = (ends[0] + ends[1]) / (ends[0] - ends[1])
        if abs(function(guess)) < 1e-9 * max(map(abs, ends)):
            return guess
    width = 2.0
    while width < STRONGEST:
        if function(-width) * function(width) < 0:
            return float(brentq(function, -width, width, xtol=1e-12))
        width *= 4
    return 0.0
