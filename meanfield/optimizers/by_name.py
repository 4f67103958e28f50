"""The optimizers by name, as they are run and as Zheng et al. 2026 analyse them, and hybrids of two of them."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.elementwise import SGD, AdamW, AdamWInNoise, Lion, Sophia
from meanfield.optimizers.matrices import SOAP, SSO, Muon, MuonKimi, Shampoo

# How closely SSO keeps to its sphere, in first steps and in runs of many steps: every trial costs a norm of the matrix.
SPHERE, RUNNING = 1e-5, 1e-3

# With momentum, as they are run.
OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": SGD(),
    "adamw": AdamW(),
    "lion": Lion(),
    "sophia": Sophia(),
    "muon": Muon(),
    "muon_kimi": MuonKimi(),
    "shampoo": Shampoo(),
    "soap": SOAP(),
    "sso": SSO(tolerance=RUNNING),
}

# Without momentum, as the paper analyses the first step; an epsilon of zero goes with it.
FIRST_STEPS: dict[str, Optimizer] = {
    "sgd": SGD(0.0),
    "adamw": AdamW(0.0, 0.0),
    "lion": Lion(0.0, 0.0),
    "sophia": Sophia(0.0, 0.0),
    "muon": Muon(0.0, None),
    "muon_kimi": MuonKimi(0.0, None),
    "shampoo": Shampoo(0.0, 0.0),
    "soap": SOAP(0.0, 0.0, 0.0),
    "sso": SSO(0.0, SPHERE),
}

# These step every element by itself, biases included; the others leave biases to AdamW, as the paper does.
ELEMENTWISE = tuple(name for name, optimizer in OPTIMIZERS.items() if optimizer.elementwise)

# As the paper trains language models (section 5.1): the first steps hidden matrices, the second all other parameters.
HYBRIDS = ("muon_kimi-adamw", "muon-adamw", "shampoo-adamw")


@dataclass(frozen=True)
class Hybrid:
    """Two optimizers of one net: the first steps hidden matrices, the second all other weights."""

    hidden: Optimizer
    others: Optimizer

    @property
    def parts(self) -> tuple[Optimizer, Optimizer]:
        return self.hidden, self.others


def _with_hybrids(alone: dict[str, Optimizer]) -> dict[str, Optimizer | Hybrid]:
    return alone | {name: Hybrid(*(alone[part] for part in name.split("-"))) for name in HYBRIDS}


# As users run them, descent without momentum and with it, Muon with its shape factor: by steps with momentum, and the
# first step from rest, without momentum and epsilon.
IN_USE = _with_hybrids(OPTIMIZERS | {"sgd": SGD(0.0), "sgd_momentum": SGD(0.9), "muon": Muon(shape_factor=True)})
_ALONE = FIRST_STEPS | {"sgd_momentum": SGD(0.0), "muon": Muon(0.0, None, shape_factor=True)}

# Hybrids whose first step is unlike their later ones, and the names of that step with AdamW's weights as far as they
# move once gradients are noise; Muon's steps do not shrink (docs/theory.md section 24).
IN_NOISE = {name: f"{name}-in-noise" for name in ("muon_kimi-adamw", "muon-adamw")}
FROM_REST = _with_hybrids(_ALONE) | {
    later: Hybrid(_ALONE[name.split("-")[0]], AdamWInNoise()) for name, later in IN_NOISE.items()
}


def method_of_role(optimizer: Optimizer | Hybrid, role: str) -> Optimizer:
    """What steps the weights of a role, as `Net.role_of` gives it, by the rule of `optimizer_of_role`."""
    hidden, others = optimizer.parts if isinstance(optimizer, Hybrid) else (optimizer, optimizer)
    return _of_role(role, hidden, others, attrgetter("elementwise"), OPTIMIZERS["adamw"])


def optimizer_of_role(name: str, role: str) -> str:
    """Which of `OPTIMIZERS` steps the weights of a role.

    Args:
        name: one of `OPTIMIZERS`, which steps all weights; or a hybrid HIDDEN-OTHERS of two of them, such as
            "muon-adamw", of which the first steps hidden matrices and the second all other weights. Biases and gains
            that come to an optimizer of matrices are left to "adamw".
        role: "input", "hidden" or "output", for biases and gains with "_bias" behind, as `Net.role_of` gives it.

    Raises:
        ValueError: a name that is neither.

    Source: Zheng et al. 2026, section 5.1, appendix C.1.
    """
    require_optimizer("optimizer", name)
    hidden, _, others = name.partition("-")
    return _of_role(role, hidden, others or hidden, ELEMENTWISE.__contains__, "adamw")


Chosen = TypeVar("Chosen")


def _of_role(
    role: str, hidden: Chosen, others: Chosen, is_elementwise: Callable[[Chosen], bool], adamw: Chosen
) -> Chosen:
    chosen = hidden if role == "hidden" else others
    return adamw if role.endswith("_bias") and not is_elementwise(chosen) else chosen


def require_optimizer(what: str, name: Any) -> None:
    """Raise ValueError unless ``name`` is one of `OPTIMIZERS` or a hybrid of two of them."""
    if not set(str(name).split("-", 1)) <= set(OPTIMIZERS):
        known = ", ".join(map(repr, OPTIMIZERS))
        raise ValueError(f"{what} is {name!r}; choose one of {known}, or two of them as 'HIDDEN-OTHERS'")
