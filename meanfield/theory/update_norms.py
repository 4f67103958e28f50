"""The spectral condition of a branch, and the hyperparameter exponents that follow from update norms: the second
road to the tables of Zheng et al. 2026.

It reads none of these tables; equations, conditions and sections below are of that paper.

The net: h_0 = alpha_0 (W_0 x + b_0), blocks h + alpha_l (W ... W h + b) of one or more layers, h_out = alpha W h,
with n units everywhere but at the input and the output, whose dimensions stay fixed. Initial scales follow from the
rule for the variances (section 4.1) and conditions 3.1, B.1, B.3. The gradient is then followed back from the output
at initialization, one sample at a time: the paper argues instead from the change of the loss that its own conditions
promise (appendix C.5), so that agreement tests that argument too. Each optimizer turns the gradient, of rank one,
into a direction A with a norm; the update condition fixes the learning rate, |lambda W| = |A| the weight decay, and
an epsilon is as large as what it is added to. SSO alone also constrains the weights, |W|_2 = R = sqrt(n_out/n_in)
(appendix C.11). That is an RMS operator norm of 1, where the rule for the variances gives output weights one of n:
the appendix says both, and its tables follow from the rule. What follows from the sphere instead is ``on_sphere``.

All scales are `Scaling`s: powers of width and depth, constants dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

from meanfield.common.validation import require_choice, require_count, takes
from meanfield.parameterizations import BIASES, CONSTANT, HYPERPARAMETERS, OPTIMIZER_NAMES, ROLES, UNPRINTED, Scaling

_WIDTH, _DEPTH = Scaling.of(1), Scaling.of(0, 1)
_HALF = Fraction(1, 2)
_FANS = {
    "input": (CONSTANT, _WIDTH),
    "hidden": (_WIDTH, _WIDTH),
    "output": (_WIDTH, CONSTANT),
    "input_bias": (CONSTANT, _WIDTH),
    "hidden_bias": (CONSTANT, _WIDTH),
}
_SIGN = ("adamw", "lion", "sophia")
_ORTHOGONAL = ("muon", "shampoo", "soap")
_STEPS_VECTORS = ("sgd", *_SIGN)


def derive_scaling(
    optimizer: str, role: str, hyperparameter: str, *, block_depth: int, on_sphere: bool = False
) -> Scaling:
    """What ``hyperparameter`` of ``role`` must be multiplied by as width and depth grow, from update norms.

    Args:
        optimizer, role: as in `meanfield.parameterizations`.
        hyperparameter: one of the paper's, or of `meanfield.parameterizations.UNPRINTED`.
        block_depth: layers k of a branch, at least 1.
        on_sphere: whether "sso" weights start on the sphere |W|_2 = sqrt(n_out/n_in) of appendix C.11, which differs
            for output weights; False (default) gives them the variance of all others, as the tables do.

    Raises:
        ValueError: an unknown name, an epsilon of another optimizer, a bias under an optimizer of matrices.
    """
    require_choice("optimizer", optimizer, OPTIMIZER_NAMES)
    require_choice("role", role, ROLES)
    require_choice("hyperparameter", hyperparameter, (*HYPERPARAMETERS, *UNPRINTED))
    require_count("block_depth", block_depth)
    if role in BIASES and optimizer not in _STEPS_VECTORS:
        raise ValueError(f"{optimizer!r} steps matrices, so nothing follows for role {role!r}")
    if hyperparameter.endswith("_epsilon"):
        return _epsilon(optimizer, role, hyperparameter, block_depth)
    # On the sphere the RMS operator norm is 1: weights of norm |W| are divided by it, and their multiplier takes it.
    off_rule = _norm(role) if optimizer == "sso" and on_sphere else CONSTANT
    multiplier = _multiplier(role, block_depth) * off_rule
    if hyperparameter == "block_multiplier":
        return multiplier
    if hyperparameter == "initial_variance":
        return (_entry_scale(role) / off_rule) ** 2
    direction = _direction_norm(optimizer, role, block_depth)
    if hyperparameter == "weight_decay":
        return direction * off_rule / _norm(role)
    # alpha |Delta W| with the branch's other norms of order one: L blocks add to a change of order one.
    target = CONSTANT / _DEPTH if role.startswith("hidden") else CONSTANT
    return target / (multiplier * direction)


def _entry_scale(role: str) -> Scaling:
    """sigma = min(1, sqrt(n_out/n_in))/sqrt(n_in), but 1 for the output weights; biases of order one (eq. 13)."""
    if role == "output" or role in BIASES:
        return CONSTANT
    fan_in, fan_out = _FANS[role]
    return fan_in**-_HALF * min(CONSTANT, (fan_out / fan_in) ** _HALF, key=lambda power: power.width)


def _norm(role: str) -> Scaling:
    """RMS operator norm of Gaussian weights, sqrt(n_in/n_out) sigma (sqrt(n_in) + sqrt(n_out)); RMS norm of biases."""
    if role in BIASES:
        return _entry_scale(role)
    fan_in, fan_out = _FANS[role]
    return (fan_in / fan_out) ** _HALF * _entry_scale(role) * _larger(fan_in, fan_out) ** _HALF


def _multiplier(role: str, block_depth: int) -> Scaling:
    """alpha |W| = 1 outside the blocks; in them alpha |W|^k is 1/L, or 1/sqrt(L), the most allowed, for k = 1."""
    weights = role.removesuffix("_bias")
    if weights != "hidden":
        return CONSTANT / _norm(weights)
    budget = _DEPTH ** -(_HALF if block_depth == 1 else Fraction(1))
    return budget / _norm("hidden") ** block_depth


def _gradient_norm(role: str, block_depth: int) -> Scaling:
    """Spectral norm of one sample's gradient (rank one): error at the layer's output times its input, by 2-norms."""
    features = _WIDTH**_HALF
    multiplier = _multiplier(role, block_depth)
    if role == "output":
        return multiplier * features
    error_on_stream = _multiplier("output", block_depth) * _entry_scale("output") * _WIDTH**_HALF
    received = features if role == "hidden" else CONSTANT
    return multiplier * error_on_stream * received


def _direction_norm(optimizer: str, role: str, block_depth: int) -> Scaling:
    """RMS operator norm of the optimizer's direction A (of a bias: RMS norm), before learning rate and decay."""
    fan_in, fan_out = _FANS[role]
    spectral_norm = {
        "sgd": _gradient_norm(role, block_depth),
        # The sign of a matrix of rank one has rank one: its spectral norm is its Frobenius norm.
        **dict.fromkeys(_SIGN, (fan_in * fan_out) ** _HALF),
        **dict.fromkeys(_ORTHOGONAL, CONSTANT),
        "muon_kimi": _larger(fan_in, fan_out) ** _HALF,
        "sso": (fan_out / fan_in) ** _HALF,  # the direction has the norm of the sphere
    }[optimizer]
    return (fan_in / fan_out) ** _HALF * spectral_norm


def _epsilon(optimizer: str, role: str, hyperparameter: str, block_depth: int) -> Scaling:
    """An epsilon is as large as what it is added to (or, for sophia, what it must not exceed)."""
    if hyperparameter != f"{optimizer}_epsilon":
        raise ValueError(f"hyperparameter {hyperparameter!r} is no hyperparameter of {optimizer!r}")
    norm, (fan_in, fan_out) = _gradient_norm(role, block_depth), _FANS[role]
    of_entries = norm / (fan_in * fan_out) ** _HALF  # RMS of the gradient's entries
    return {"shampoo": norm**2, "soap": norm}.get(optimizer, of_entries)


def _larger(first: Scaling, second: Scaling) -> Scaling:
    """The larger of two powers of the width."""
    return max(first, second, key=lambda power: power.width)


Number = TypeVar("Number", float, Fraction)
Layers = tuple[int, ...]


@takes(object, list | tuple, list | tuple)
def branch_products(
    multiplier: Number, weight_norms: Sequence[Number], update_norms: Sequence[Number]
) -> dict[Layers, Number]:
    """alpha prod_{i in S} |Delta W_i| prod_{i not in S} |W_i| for every set S of the branch's layers.

    The condition (Zheng et al. 2026, conditions 3.1, B.2) asks 1/L of each: of S = () initially, of one layer to first
    order, of j layers to order j. Norms are RMS operator norms.

    Args:
        multiplier: alpha.
        weight_norms, update_norms: |W_i| and |Delta W_i|, from the layer that reads the stream upwards.

    Returns:
        S -> product, S a rising tuple of layers counted from 0, in the order of their number.

    Raises:
        ValueError: unequal numbers of norms.
    """
    if len(weight_norms) != len(update_norms):
        raise ValueError(f"{len(weight_norms)} weight norms and {len(update_norms)} update norms; give one per layer")
    layers = range(len(weight_norms))
    return {
        updated: multiplier * math.prod((update_norms if i in updated else weight_norms)[i] for i in layers)
        for order in range(len(layers) + 1)
        for updated in combinations(layers, order)
    }
