"""The first step from rest as a function of the gradient G: G itself, its signs, or its polar factor.

Without momentum and epsilon the direction A of most optimizers is one of three functions of G = U S V^T alone:

    gradient   A = G                       gradient descent
    sign       A = sign(G)                 AdamW, Lion
    polar      A = f(n_out, n_in) U V^T    Muon, Muon-Kimi, Shampoo, SOAP

Sophia's depends on the curvature of the loss besides, SSO's on the weights.

Source: Zheng et al. 2026, appendix C.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from operator import pos

import numpy as np

from meanfield.common.array_libraries import is_on_host, library_of
from meanfield.common.compiled import compiled
from meanfield.common.validation import Array, require_choice
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import FROM_REST, Hybrid, method_of_role
from meanfield.optimizers.elementwise import SGD, AdamW, AdamWInNoise, Lion
from meanfield.optimizers.matrices import SOAP, Muon, Shampoo

# Where a direction depends on the size of the step, as SSO's, it is that of a step of this size: as good as none.
SMALL_STEP = 1e-6

GRADIENT, SIGN, POLAR = FORMS = ("gradient", "sign", "polar")


@dataclass(frozen=True)
class FirstStep:
    """The first step from rest of all weights of a net.

    Attributes:
        optimizer: one of `FROM_REST` by name, with neither momentum nor epsilon, those "-in-noise" with AdamW's weights
            as far as in noise; or an optimizer or a hybrid, whose momentum acts as it does at its first step.
        epsilon: of optimizers that divide by the size of gradients.

    Raises:
        TypeError, ValueError: what is no optimizer, an unknown name.
    """

    optimizer: str | Optimizer | Hybrid = "sgd"
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.optimizer, str):
            require_choice("optimizer", self.optimizer, FROM_REST)
        elif not isinstance(self.optimizer, Optimizer | Hybrid):
            raise TypeError(
                f"optimizer is {self.optimizer!r}; give a name, one of {', '.join(map(repr, FROM_REST))}, "
                "or one of meanfield.optimizers, such as AdamW()"
            )

    @property
    def name(self) -> str:
        """As reports call it."""
        return self.optimizer if isinstance(self.optimizer, str) else repr(self.optimizer)

    @property
    def method(self) -> Optimizer | Hybrid:
        """What makes the step."""
        return FROM_REST[self.optimizer] if isinstance(self.optimizer, str) else self.optimizer

    @property
    def is_descent(self) -> bool:
        """Whether every weight moves by its gradient."""
        return isinstance(self.method_of("hidden"), SGD)

    def method_of(self, role: str) -> Optimizer:
        """What steps a weight of this role (`Net.role_of`); a bias or a gain is left to AdamW by those of matrices."""
        return method_of_role(self.method, role)

    def require_epsilon(self, roles: Collection[str]) -> None:
        """Raise ValueError for an epsilon that moves no weight, where those of a net have these roles."""
        if not self.epsilon or self._takes_epsilon(roles):
            return
        others = [repr(name) for name in FROM_REST if FirstStep(name)._takes_epsilon(roles)]
        raise ValueError(
            f"epsilon is {self.epsilon:g}, and {self.name} divides no weight of this net by the size of its gradient, "
            f"so that it has none: leave epsilon out, or take an optimizer that has one, such as {', '.join(others)}"
        )

    def _takes_epsilon(self, roles: Collection[str]) -> bool:
        return any(self.method_of(role).takes_epsilon for role in roles)

    def softens(self, role: str) -> bool:
        """Whether weights of this role move by G / (|G| + epsilon), between G over epsilon and its sign."""
        return self.epsilon > 0 and isinstance(self.method_of(role), AdamW | AdamWInNoise)

    def form_of(self, role: str) -> str | None:
        """Which of `FORMS` it is at weights of this role; None where A depends on more than the gradient."""
        method = self.method_of(role)
        if isinstance(method, SGD):
            return GRADIENT
        if isinstance(method, AdamW | Lion):
            return SIGN if isinstance(method, Lion) or not self.epsilon else None
        if isinstance(method, Muon):
            return POLAR if method.newton_schulz_steps is None else None
        if isinstance(method, Shampoo | SOAP):
            return POLAR if method in (FROM_REST["shampoo"], FROM_REST["soap"]) and not self.epsilon else None
        return None

    def elementwise(self, role: str) -> Callable[[Array], Array] | None:
        """A as a function of every element of G, at weights of this role: its sign, G / (|G| + epsilon), or G.

        It may write to what it is given. None where A depends on more than the element.
        """
        method = self.method_of(role)
        if isinstance(method, SGD):
            return pos
        if isinstance(method, Lion) or (isinstance(method, AdamW) and not self.epsilon):
            return signs
        return partial(_softened, epsilon=self.epsilon) if isinstance(method, AdamW) else None

    def factor_of(self, role: str, outputs: int, inputs: int) -> float:
        """f(n_out, n_in), A over the polar factor of a matrix of this shape; 1 for other forms."""
        method = self.method_of(role)
        return method.factor(outputs, inputs) if isinstance(method, Muon) else 1.0


def signs(values: Array) -> Array:
    """The sign of every element, 0 of 0, three times as quickly as by NumPy; in place where they lie row by row."""
    if not is_on_host(values):
        return library_of(values).sign(values)
    made = np.ascontiguousarray(values)
    _take_signs(made.reshape(-1))
    return made


@compiled()
def _take_signs(values: Array) -> None:
    for place in range(values.size):
        value = values[place]
        values[place] = 1.0 if value > 0 else -1.0 if value < 0 else value  # nan stays


def _softened(slope: Array, epsilon: float) -> Array:
    """G / (|G| + epsilon), the sign of what is far above epsilon; AdamW's bias corrections make its first step so."""
    return slope / (library_of(slope).abs(slope) + epsilon)
