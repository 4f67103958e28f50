"""Optimizers that step every element by itself (Zheng et al. 2026, C.5 - C.8)."""

from dataclasses import dataclass
from math import sqrt

from meanfield.common.array_libraries import library_of
from meanfield.common.validation import Array
from meanfield.optimizers.base import Gradient, Optimizer, Place, blocks, fresh
from meanfield.optimizers.linear_algebra import Direction, add_momentum


@dataclass(frozen=True)
class SGD(Optimizer):
    """M <- beta M + G, A = M; A = G without momentum (C.5)."""

    momentum: float = 0.9
    elementwise = True

    def step(self, state: Direction | None, gradient: Gradient, place: Place) -> tuple[Direction, Direction | None]:
        moved = add_momentum(state, self.momentum, gradient.slope, 1.0)
        return moved, moved if self.momentum else None


@dataclass(frozen=True)
class AdamMoments:
    """Running means of the gradient and of its square, and the number of steps in them."""

    first: Array
    second: Array
    steps: int


@dataclass(frozen=True)
class AdamW(Optimizer):
    """A = m_hat / (sqrt(v_hat) + epsilon) (eq. 19); sign(G) without momentum and epsilon (eq. 20).

    The paper prints epsilon under the root; its table scales epsilon as sqrt(v_hat), which is right only beside it.
    """

    beta1: float = 0.9
    beta2: float = 0.95
    elementwise = takes_epsilon = True

    def step(self, state: AdamMoments | None, gradient: Gradient, place: Place) -> tuple[Array, AdamMoments]:
        slope, xp = gradient.slope, library_of(place.weights)
        steps = 1 + (state.steps if state else 0)
        bias = 1 - self.beta1**steps, 1 - self.beta2**steps
        first, second, direction = (xp.empty_like(place.weights) for _ in range(3))
        for block in blocks(slope):
            m, v, g = first[block], second[block], fresh(slope, block)
            xp.multiply(g, 1 - self.beta1, out=m)
            xp.multiply(xp.square(g, out=g), 1 - self.beta2, out=v)
            if state:
                m += xp.multiply(state.first[block], self.beta1, out=g)
                v += xp.multiply(state.second[block], self.beta2, out=g)
            size = xp.sqrt(xp.divide(v, bias[1], out=g), out=g)
            size += place.epsilon or size == 0  # where that is 0, so is m
            quotient = xp.divide(m, size, out=direction[block])
            quotient /= bias[0]
        return direction, AdamMoments(first, second, steps)


@dataclass(frozen=True)
class AdamWInNoise(Optimizer):
    """A = sqrt((1 - beta1) / (1 + beta1)) G / (|G| + epsilon): AdamW's first step, as long as its later ones in noise.

    From rest every element moves by 1. Once gradients are independent noise of variance s^2, the running mean m has
    (1 - beta1) / (1 + beta1) s^2 and v is near s^2, so that m / sqrt(v) is 0.23 in the root mean square at beta1 = 0.9.

    Source: docs/theory.md section 24.
    """

    beta1: float = 0.9
    elementwise = takes_epsilon = True

    @property
    def length(self) -> float:
        """The root mean square of an element of a step among gradients of noise."""
        return sqrt((1 - self.beta1) / (1 + self.beta1))

    def step(self, state: None, gradient: Gradient, place: Place) -> tuple[Array, None]:
        slope, xp = gradient.slope, library_of(place.weights)
        direction = xp.empty_like(place.weights)
        for block in blocks(slope):
            g = fresh(slope, block)
            size = xp.abs(g)
            size += place.epsilon or size == 0
            xp.multiply(xp.divide(g, size, out=size), self.length, out=direction[block])
        return direction, None


@dataclass(frozen=True)
class Lion(Optimizer):
    """A = sign(beta1 M + (1 - beta1) G), then M <- beta2 M + (1 - beta2) G; sign(G) without momentum (C.7)."""

    beta1: float = 0.9
    beta2: float = 0.99
    elementwise = True

    def step(self, state: Array | None, gradient: Gradient, place: Place) -> tuple[Array, Array]:
        slope, xp = gradient.slope, library_of(place.weights)
        direction, mean = xp.empty_like(place.weights), xp.empty_like(place.weights)
        for block in blocks(slope):
            g, m, mixed = fresh(slope, block), mean[block], direction[block]
            xp.multiply(g, 1 - self.beta2, out=m)
            xp.multiply(g, 1 - self.beta1, out=mixed)
            if state is not None:
                mixed += xp.multiply(state[block], self.beta1, out=g)
                m += xp.multiply(state[block], self.beta2, out=g)
            xp.sign(mixed, out=mixed)
        return direction, mean


@dataclass(frozen=True)
class Sophia(Optimizer):
    """A = clip(m / max(rho h, epsilon), 1), h the running diagonal of the curvature, taken anew at every step (C.8).

    An epsilon of zero means its limit: where there is no curvature, the sign of m.

    ``sampled``: the curvature is estimated from one target drawn for every sample and site, as Sophia is run in
    practice (Liu et al. 2024, Gauss-Newton-Bartlett), in the time of a second gradient; if not, it is summed
    over all outputs.
    """

    beta1: float = 0.965
    beta2: float = 0.99
    rho: float = 0.05
    sampled: bool = False
    elementwise = takes_epsilon = curved = True

    @property
    def draws_labels(self) -> bool:
        return self.sampled

    def step(
        self, state: tuple[Array, Array] | None, gradient: Gradient, place: Place
    ) -> tuple[Array, tuple[Array, Array]]:
        slope, curvature, xp = gradient.slope, gradient.curvature, library_of(place.weights)
        if curvature is None:
            raise ValueError("Sophia divides by the diagonal of the Hessian; give the gradient its curvature")
        direction, mean, running = (xp.empty_like(place.weights) for _ in range(3))
        for block in blocks(slope):
            m, h, g = mean[block], running[block], fresh(slope, block)
            xp.multiply(g, 1 - self.beta1, out=m)
            xp.multiply(curvature[block], 1 - self.beta2, out=h)
            if state:
                m += xp.multiply(state[0][block], self.beta1, out=g)
                h += xp.multiply(state[1][block], self.beta2, out=g)
            floor = xp.maximum(xp.multiply(h, self.rho, out=g), place.epsilon, out=g)
            if place.epsilon:
                xp.clip(xp.divide(m, floor, out=direction[block]), -1, 1, out=direction[block])
                continue
            # The clipped quotient without a division by zero: m, cut at plus and minus its floor, over the floor.
            cut = xp.clip(m, -floor, floor) / (floor + (floor == 0))
            direction[block] = xp.where(floor > 0, cut, xp.sign(m))
        return direction, (mean, running)
