"""SSO: steepest descent in the spectral norm that stays on the sphere of the weights' own spectral norm.

Source: Zheng et al. 2026, C.11.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.optimizers.base import Gradient, NoStep, Optimizer, Place
from meanfield.optimizers.linear_algebra.factored import Direction, Factored, add_momentum, rounding, singular
from meanfield.optimizers.linear_algebra.ritz import SMALLEST, RitzSpace, Top

Family = Callable[[float], Array]

# How strongly the weights' own top direction may be mixed into the gradient, in units of the gradient's norm.
STRONGEST = 1e6

# How many singular pairs may be held on the sphere, and what of them counts as unseen by the gradient.
MOST_HELD = 12
UNSEEN = 1e-5

# Newton steps before the search for a change of sign, which needs no derivative; and the step of a difference.
NEWTON_STEPS = 6
NEARBY = 1e-4


@dataclass(frozen=True)
class Running:
    """The momentum, and right vectors near the top of the weights as the step leaves them."""

    momentum: Direction
    guess: Array


@dataclass(frozen=True)
class Sphere:
    """How W - eta R Phi grows over |W|_2, for Phi = L C R^T by its core C."""

    space: RitzSpace
    norm: float
    reach: float
    tolerance: float

    def top(self, core: Array) -> Top:
        return self.space.top(-self.reach * core, self.tolerance)

    def grown(self, core: Array) -> float:
        return self.top(core).value / self.norm - 1


@dataclass(frozen=True)
class SSO(Optimizer):
    """A = R Phi, R = sqrt(n_out / n_in), Phi = argmax <G, Phi> with |Phi|_2 = 1 and |W - eta R Phi|_2 = |W|_2.

    The paper prints the second constraint with eta Phi, though its step is eta R Phi, and with |W|_2 = R, which its own
    initialisation of the output weights breaks by a factor n. Here the constraint is on the weights as they stand and
    on the step as it is made.

    The maximiser is the polar factor of G + lambda u v^T, (u, v) the top singular pair of W and lambda such that the
    norm stays. At lambda = 0 the part of u v^T that the gradient does not see is free, from -1 to 1; where that is
    enough, <G, Phi> is the nuclear norm of G, the most that any Phi reaches. Otherwise Phi is the maximiser to first
    order in eta. If the step lifts another singular value above the largest, its pair joins (u, v). Both constraints
    hold to ``tolerance``, relative to |W|_2.
    """

    momentum: float = 0.9
    tolerance: float = 1e-9

    def step(self, state: Running | None, gradient: Gradient, place: Place) -> tuple[Factored, Running]:
        moved = add_momentum(state.momentum if state else None, self.momentum, gradient.slope, 1.0)
        outputs, inputs = place.weights.shape
        radius = float(np.sqrt(outputs / inputs))
        left, slope, right = singular(moved)
        space = RitzSpace(place.weights, left, right, state.guess if state else None)
        held = [space.top(np.zeros((len(slope), len(slope))), self.tolerance)]
        sphere = Sphere(space, held[0].value, place.learning_rate * radius, self.tolerance)
        for _ in range(MOST_HELD):
            space.admit(held[-1].u, held[-1].v, UNSEEN)
            pairs = [np.outer(space.left.T @ top.u, space.right.T @ top.v) for top in held]
            core = _polar(np.sum(pairs, axis=0)) if len(held) > 1 else _normalised(pairs[0])
            family = _family(slope, core)
            member = _balanced(family, core, sphere)
            if member is not None:
                return Factored(radius * (space.left @ member), space.right), Running(moved, space.guess)
            held.append(sphere.top(family(1.0)))
        raise NoStep("no direction of spectral norm 1 keeps the weights on their sphere; take a smaller learning rate")


def _balanced(family: Family, held: Array, sphere: Sphere) -> Array | None:
    """The member that keeps the norm, near the one with no component along what is held; None if there is none."""
    tangent = _root(lambda mix: float(np.sum(held * family(mix))))
    member = _by_newton(family, tangent, sphere)
    width = 1e-3
    while member is None and width < STRONGEST:
        ends = tangent - width, tangent + width
        if sphere.grown(family(ends[0])) * sphere.grown(family(ends[1])) <= 0:
            member = _between(family, sphere, *ends)
        width *= 10
    return member


def _by_newton(family: Family, mix: float, sphere: Sphere) -> Array | None:
    """Newton's way from one member to one that keeps the norm, None if it does not arrive.

    The derivative of a singular value is that of the matrix between its two vectors, which only the core changes.
    """
    for _ in range(NEWTON_STEPS):
        core = family(mix)
        top = sphere.top(core)
        growth = top.value / sphere.norm - 1
        if abs(growth) <= sphere.tolerance:
            return core
        turn = (family(mix + NEARBY) - core) / NEARBY
        slope = -sphere.reach / sphere.norm * float(top.left @ turn @ top.right)
        if abs(growth) >= abs(slope) * STRONGEST:
            return None
        mix -= growth / slope
    return None


def _between(family: Family, sphere: Sphere, a: float, b: float, jumps: bool = True) -> Array:
    """The member between two that keeps the norm, by regula falsi with halved ends (Illinois).

    A singular value of G + lambda u v^T that passes zero turns its direction around at once; between the two sides
    all mixtures are maximisers alike.
    """
    low, high = sphere.grown(family(a)), sphere.grown(family(b))
    while abs(b - a) > 1e-13 * max(1.0, abs(a)):
        middle = (a * high - b * low) / (high - low)
        growth = sphere.grown(family(middle))
        if abs(growth) <= sphere.tolerance:
            return family(middle)
        if growth * high < 0:
            a, low = b, high
        else:
            low /= 2
        b, high = middle, growth
    sides = family(a), family(b)
    if not jumps:
        return sides[1]
    return _between(lambda t: sides[0] * (1 - t) + sides[1] * t, sphere, 0.0, 1.0, jumps=False)


def _family(values: Array, held: Array) -> Family:
    """mix -> core of Phi: in [-1, 1] the part of what is held that the gradient does not see, beyond it lambda grows.

    In the bases of the space the gradient is diagonal with these values, and what it does not see is all behind them.
    """
    rank = len(values)
    slope, polar, free = np.zeros((3, *held.shape))
    slope[:rank, :rank], polar[:rank, :rank] = np.diag(values), np.eye(rank)
    free[rank:, rank:] = _polar(held[rank:, rank:])
    room = bool(free.any())

    def phi(mix: float) -> Array:
        inside = float(np.clip(mix, -1, 1)) if room else 0.0
        if mix != inside:
            return _polar(slope + (mix - inside) * values[:1].sum() * held)
        return polar + inside * free

    return phi


def _polar(core: Array) -> Array:
    """U V^T of a small matrix U S V^T."""
    if min(core.shape) < 2:
        return _normalised(core)
    u, s, v = np.linalg.svd(core, full_matrices=False)
    kept = s > rounding(s) * s[0]
    return u[:, kept] @ v[kept]


def _normalised(core: Array) -> Array:
    """The polar factor of a matrix of rank one or zero."""
    return core / max(float(np.sqrt(np.vdot(core, core))), SMALLEST)


def _root(function: Callable[[float], float]) -> float:
    """A zero of a function that is linear on [-1, 1] or changes sign beyond; zero if there is none."""
    ends = function(-1.0), function(1.0)
    if ends[0] * ends[1] < 0:
        guess = (ends[0] + ends[1]) / (ends[0] - ends[1])
        if abs(function(guess)) < 1e-9 * max(map(abs, ends)):
            return guess
    from scipy.optimize import brentq  # a tenth of a second of import, which most roots do not need

    width = 2.0
    while width < STRONGEST:
        if function(-width) * function(width) < 0:
            return float(brentq(function, -width, width, xtol=1e-12))
        width *= 4
    return 0.0
