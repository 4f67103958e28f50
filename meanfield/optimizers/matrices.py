"""Optimizers that step a matrix as a whole: Muon, Shampoo, SOAP and SSO (Zheng et al. 2026, appendix C)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import brentq

from meanfield.common.validation import Array
from meanfield.optimizers.base import Gradient, NoStep, Optimizer, Place
from meanfield.optimizers.linear_algebra import (
    SMALLEST,
    Direction,
    Factored,
    RitzSpace,
    Top,
    add_momentum,
    newton_schulz,
    polar_factor,
    rounding,
    scaled,
    singular,
    thin_qr,
)

# The root mean square of an element of AdamW's updates, as Muon-Kimi takes it.
ELEMENT_SIZE = 0.2


@dataclass(frozen=True)
class Muon(Optimizer):
    """M <- beta M + G, A = U V^T of G + beta M (Nesterov); U V^T of G without momentum (eq. 16).

    ``newton_schulz_steps`` is how Muon computes U V^T in practice; None takes singular values, as the paper defines it.
    ``shape_factor``: whether A is sqrt(max(1, n_out / n_in)) times that, as in the published program (Jordan et al.
    2024); the paper leaves it to the learning rate.
    """

    momentum: float = 0.95
    newton_schulz_steps: int | None = 5
    shape_factor: bool = False

    @property
    def takes_stacks(self) -> bool:
        return True

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        looked_at = add_momentum(moved, self.momentum, gradient.slope, 1.0)
        steps = self.newton_schulz_steps
        direction = polar_factor(looked_at) if steps is None else newton_schulz(looked_at, steps)
        factor = self.factor(*direction.shape[-2:])
        return direction if factor == 1.0 else scaled(direction, factor), moved

    def factor(self, outputs: int, inputs: int) -> float:
        """A over the polar factor, of a matrix of this shape."""
        return float(max(1.0, outputs / inputs)) ** 0.5 if self.shape_factor else 1.0


@dataclass(frozen=True)
class MuonKimi(Muon):
    """Muon's direction at the size of AdamW's: A = 0.2 sqrt(max(n_in, n_out)) times U V^T (section 4.2)."""

    def factor(self, outputs: int, inputs: int) -> float:
        return ELEMENT_SIZE * float(max(outputs, inputs)) ** 0.5


@dataclass(frozen=True)
class ShampooMoments:
    """M, and roots of L and R: columns whose products with their transposes are L and R."""

    mean: Direction
    left: Array
    right: Array
    steps: int


@dataclass(frozen=True)
class Shampoo(Optimizer):
    """A = (L_hat + epsilon)^(-1/4) M (R_hat + epsilon)^(-1/4) (eq. 22); U V^T without momentum and epsilon.

    L and R are running means of G G^T and G^T G. M, L and R vanish outside the span of past gradients, so that powers
    taken within it are exact.
    """

    beta1: float = 0.95
    beta2: float = 0.95
    takes_epsilon = True

    def step(self, state: ShampooMoments | None, gradient: Gradient, place: Place) -> tuple[Direction, ShampooMoments]:
        before = (state.mean, state.left, state.right, state.steps) if state else (None, None, None, 0)
        left, right = second_moments(before[1], before[2], gradient.slope, self.beta2)
        mean = add_momentum(before[0], self.beta1, gradient.slope, 1 - self.beta1)
        steps = before[3] + 1
        correction = 1 - self.beta2**steps
        roots = [partial(_inverse_root, root, correction, place.epsilon) for root in (left, right)]
        if isinstance(mean, Factored):
            direction: Direction = Factored(roots[0](mean.left), roots[1](mean.right))
        else:
            direction = roots[1](roots[0](mean).T).T
        return direction, ShampooMoments(mean, left, right, steps)


def second_moments(left: Array | None, right: Array | None, slope: Direction, beta: float) -> tuple[Array, Array]:
    """Roots of the running means of G G^T and G^T G, their columns orthogonal and of descending length."""
    if isinstance(slope, Factored):
        (_, above), (_, below) = thin_qr(slope.left), thin_qr(slope.right)
        fresh = slope.left @ below.T, slope.right @ above.T
    else:
        fresh = slope, slope.T
    return _running(left, fresh[0], beta), _running(right, fresh[1], beta)


def _running(root: Array | None, fresh: Array, beta: float) -> Array:
    columns = (1 - beta) ** 0.5 * fresh  # a number of Python's own leaves the precision as it is
    if root is not None and beta > 0:
        columns = np.hstack([beta**0.5 * root, columns])
    axes, lengths = _principal_axes(columns)
    return axes[:, lengths > rounding(columns) * lengths[0]]


def _principal_axes(columns: Array) -> tuple[Array, Array]:
    """Orthogonal columns U S of a matrix U S V^T, and their lengths S, the longest first."""
    if columns.dtype == np.float64:
        vectors, lengths, _ = np.linalg.svd(columns, full_matrices=False)
        return vectors * lengths, lengths
    # Squares in double precision keep the lengths that single precision tells from rounding, in a third of the time.
    wide = columns.astype(np.float64)
    is_tall = len(wide) > wide.shape[1]
    squares, vectors = np.linalg.eigh(wide.T @ wide if is_tall else wide @ wide.T)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    axes = wide @ vectors if is_tall else vectors * lengths
    return axes[:, ::-1].astype(columns.dtype), lengths[::-1]


def _inverse_root(root: Array, correction: float, epsilon: float, columns: Array) -> Array:
    """(root root^T / correction + epsilon)^(-1/4) applied to columns in the span of the root."""
    lengths = np.linalg.norm(root, axis=0)
    basis = root / lengths
    powers = (lengths**2 / correction + epsilon) ** -0.25
    return basis @ (powers[:, None] * (basis.T @ columns))


@dataclass(frozen=True)
class SOAPMoments:
    """M in the basis of the weights, roots of L and R, and AdamW's second moment, slot by slot of the eigenbasis."""

    mean: Direction
    left: Array
    right: Array
    second: Array
    steps: int


@dataclass(frozen=True)
class SOAP(Optimizer):
    """A = Q_L AdamW(Q_L^T G Q_R) Q_R^T, Q_L and Q_R the eigenvectors of L and R; U V^T without momentum and epsilon.

    Outside the span of past gradients the rotated gradient is zero, and so is AdamW of it: only eigenvectors of nonzero
    eigenvalues are kept, in descending order. The basis is taken anew at every step; the momentum turns with it, and
    the second moment keeps its slots, as in the published program.

    Two things are as Zheng et al. 2026 write them, and not as that program (of Vyas et al. 2024) has them. L and R hold
    the gradient of the step itself before the basis is taken; the program steps in the basis of the step before, and
    updates L and R behind it. And the first step is made; the program only begins L and R with its gradient.

    Where gradients are of low rank, a turned basis has slots with a momentum and without a squared gradient: there the
    step is the momentum over epsilon, so that a small epsilon makes steps as large as 1/epsilon.
    """

    beta1: float = 0.95
    beta2: float = 0.95
    beta3: float = 0.95
    takes_epsilon = True

    def step(self, state: SOAPMoments | None, gradient: Gradient, place: Place) -> tuple[Factored, SOAPMoments]:
        before = (state.mean, state.left, state.right, state.steps) if state else (None, None, None, 0)
        left, right = second_moments(before[1], before[2], gradient.slope, self.beta3)
        mean = add_momentum(before[0], self.beta1, gradient.slope, 1 - self.beta1)
        bases = left / np.linalg.norm(left, axis=0), right / np.linalg.norm(right, axis=0)
        old = state.second if state else np.zeros((0, 0), left.dtype)
        second = self.beta2 * _padded(old, left.shape[1], right.shape[1])
        rotated = _rotated(gradient.slope, *bases)
        used = second[: rotated.shape[0], : rotated.shape[1]]
        used += (1 - self.beta2) * rotated**2
        steps = before[3] + 1
        size = np.sqrt(used / (1 - self.beta2**steps)) + place.epsilon
        numerator = _rotated(mean, *bases) / (1 - self.beta1**steps)
        quotient = np.divide(numerator, size, out=np.zeros_like(size), where=size > 0)
        return Factored(bases[0] @ quotient, bases[1]), SOAPMoments(mean, left, right, second, steps)


def _rotated(matrix: Direction, left: Array, right: Array) -> Array:
    """Q_L^T matrix Q_R, with zeros in place of rounding errors: AdamW would turn those into ones."""
    if isinstance(matrix, Factored):
        turned = (left.T @ matrix.left) @ (right.T @ matrix.right).T
    else:
        turned = left.T @ matrix @ right
    turned[np.abs(turned) < rounding(turned) * np.abs(turned).max(initial=0.0)] = 0.0
    return turned


def _padded(slots: Array, rows: int, columns: int) -> Array:
    """The slots with room for new eigenvectors, which start from nothing."""
    shape = max(rows, slots.shape[0]), max(columns, slots.shape[1])
    room = np.zeros(shape, slots.dtype)
    room[: slots.shape[0], : slots.shape[1]] = slots
    return room


MatrixFamily = Callable[[float], Array]

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
        if not held[0].value:
            raise NoStep("its weights are 0, and keep no norm under any step")
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


def _balanced(family: MatrixFamily, held: Array, sphere: Sphere) -> Array | None:
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


def _by_newton(family: MatrixFamily, mix: float, sphere: Sphere) -> Array | None:
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


def _between(family: MatrixFamily, sphere: Sphere, a: float, b: float, jumps: bool = True) -> Array:
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


def _family(values: Array, held: Array) -> MatrixFamily:
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

    width = 2.0
    while width < STRONGEST:
        if function(-width) * function(width) < 0:
            return float(brentq(function, -width, width, xtol=1e-12))
        width *= 4
    return 0.0
