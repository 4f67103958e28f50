"""Closed forms: the papers' depth law, what the recursions give in the limit of many channels, and the power of the
number of blocks with which eta* falls in residual nets.

A field such as ``scaling`` names what a family builds; a class of one's own may build something else. So the law over
depth is taken from the multipliers and variances that the layers of a few of its nets have.

The spectral condition of a branch, and the hyperparameter exponents that follow from update norms: the second
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import inf, isclose, log, nan
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from meanfield.common.validation import Array, require_choice, require_count, takes
from meanfield.nets.layered import Layer, Sequential
from meanfield.nets.scalings import SCALINGS, scaling_exponent, settled_scaling
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.parameterizations import BIASES, CONSTANT, HYPERPARAMETERS, OPTIMIZER_NAMES, ROLES, UNPRINTED, Scaling

# Where an asymptote is read off, and how closely logarithms must lie on a line to be those of a power.
FAR = (64, 128, 256)
ROUNDING = 1e-9
LARGEST_DENOMINATOR = 100


def sum_of_minima(weights: ArrayLike) -> Array:
    """sum_{h1, h2 <= l} min(h1, h2) = l (l + 1)(2 l + 1) / 6 for l = 1 .. L, the papers' depth law for the label term.

    It is the running sum of squares 1^2 + 2^2 + ... + l^2. Layers of unequal weights w_j count as
    sum_{h <= l} (w_1 + ... + w_h)^2: a layer's weight is its number of input channels relative to the others', so that
    a thin input (an RGB image under many channels) makes layer 1 count for little, as it has few parameters.

    Args:
        weights: w_1 .. w_L, all 1 for equal layers.

    Source: Zhang et al. 2026, eqs. 22, 23. Exact, with prefactor n, for linear nets of one site.
    """
    return np.asarray(np.cumsum(np.cumsum(np.asarray(weights, dtype=float)) ** 2))


def single_site_overlap(layers: ArrayLike, activation: str) -> Array:
    """F_l / n of fully-connected nets with one input and equal layers, at n -> infinity.

    l (2 l^2 + 1)/12 for ReLU, l (l + 1)(2 l + 1)/6 for linear nets.

    Raises:
        ValueError: another activation.

    Source: docs/theory.md section 6.
    """
    require_choice("activation", activation, ("relu", "linear"))
    layer = np.asarray(layers, dtype=float)
    if activation == "linear":
        return np.asarray(layer * (layer + 1) * (2 * layer + 1) / 6)
    return np.asarray(layer * (2 * layer**2 + 1) / 12)


def residual_exponent(
    scaling: str | float, block_depth: int, stem: int = 0, tail: int = 0, *, optimizer: str | Optimizer | Hybrid = "sgd"
) -> float:
    """Exponent of eta*(K) ~ K^x for residual nets; NaN where no power law holds.

    A block of k layers with branch multiplier a and variance factor f contributes a^2 f^(k-1) k n to the kernel by
    its own weights. As a^2 f^k is at most of order 1/K, what was there before is carried up by a bounded factor:
    the kernel grows as K a^2 f^(k-1), its square is all of the update energy up to bounded factors, and

        eta* ~ 1 / (K a^2 f^(k-1)):   "init" k - 2,   a number alpha >= 1/2, or its name, 2 alpha - 1.

    Overlaps between different units, from which l^3 comes in plain nets, gain only a^2 f^k <= 1/K per block. At any
    alpha below 1/2 what passes K blocks grows faster than any power of K, as exp(c K^(1 - 2 alpha)) for homogeneous
    activations, and eta* falls so; "none" is alpha = 0, at which the stream doubles at every block.

    Plain layers have a share of order 1 in the kernel, which stops a rise. Below the blocks (stem) it is carried up to
    every unit, and exponents above 0 become 0. Above them alone (tail) it is in the tail's units, 1 / K of all, and
    exponents above 1/2 become 1/2.

    With a stem of one layer that reads C_0 channels, a rise as K^x ends near K = (k n / C_0)^(1/x) blocks of n
    channels, where eta* is about two thirds of what it tends to.

    An ``optimizer`` whose first step is the signs or the polar factor of gradients forgets that the gradients of a
    branch carry a and the sizes of its weights. Each layer of a branch then has a f^((k-1)/2) in the change of the
    stream in place of its square, and all blocks move a unit in the direction of almost one error, coherently:

        eta* ~ 1 / (K a f^((k-1)/2)):   "init" (k - 3)/2,   a number alpha >= 1/2, or its name, alpha - 1,

    with the same ends to a rise.

    Raises:
        TypeError, ValueError: an unknown scaling, an alpha that is not finite, a block depth below 1, an optimizer that
            is none or whose first step depends on more than signs or polar factors.

    Source: docs/theory.md section 8, for any k; Zheng et al. 2026, tables 1, 9 (SGD) agree for their
    scalings, Zhang et al. 2026, section 3.4 does not. Other optimizers: section 24; Zheng et al. 2026, tables 2, 8.
    """
    k = require_count("block_depth", block_depth, why="layers of a branch")
    multiplier, variance = _powers_under(settled_scaling(scaling))
    step = FirstStep(optimizer)
    if why := law_refusal(step):
        raise ValueError(why)
    return exponent_of(BranchPowers(stem, tail, multiplier, (variance,) * k), step)


def law_refusal(step: FirstStep) -> str:
    """Why no law over depth is known of this optimizer's first step; empty if one is."""
    if step.form_of("hidden") is not None:
        return ""
    return (
        f"the first step of {step.name} depends on more than the signs or the polar factor of gradients, and what it "
        "makes of the size of a branch is not known"
    )


def _powers_under(scaling: str | float) -> tuple[float, float]:
    """Powers of K of a and of f under this scaling."""
    return -scaling_exponent(scaling), -1.0 if scaling == "init" else 0.0


def exponent_of(powers: BranchPowers, step: FirstStep) -> float:
    """The exponent of blocks whose factors go as these powers of K, as `residual_exponent` gives it for the first step
    of an optimizer; NaN where no power law holds.

    Layers of a branch may differ: each has a^2 times the variances of the others in the kernel, or the root of that in
    a step that forgets the size of gradients, and the largest counts.
    """
    if powers.carried > -1 + ROUNDING:
        return nan
    own = powers.carried - min(powers.variances)
    bare = -(1 + own) if step.is_descent else -(1 + own / 2)
    largest = 0.0 if powers.stem else 0.5 if powers.tail else inf
    return min(bare, largest) + 0.0  # no negative zero


def scaling_with(powers: BranchPowers) -> str:
    """The name among `meanfield.nets.SCALINGS` under which a and f go as these powers of K; empty if there is none."""
    own = (powers.multiplier, *powers.variances)
    for name in SCALINGS:
        multiplier, variance = _powers_under(name)
        if np.allclose(own, (multiplier, *(variance,) * len(powers.variances)), rtol=0, atol=ROUNDING):
            return name
    return ""


def log_path_sum_scale(blocks: ArrayLike, block_depth: int = 1, plain: int = 0) -> Array:
    """log of PathSum's rule eta ~ (sum over paths of p^3)^(-1/2), p the layers on a path; a constant is left out.

    Of K blocks a path takes j branches in C(K, j) ways and is m + k j layers long, so that the sum doubles with every
    block: the rule has no power law.

    Source: Chen et al. 2024 as Zhang et al. 2026, section 4.3 quotes it.
    """
    logs = []
    for count in np.atleast_1d(np.asarray(blocks, dtype=int)):
        branches = np.arange(count + 1)
        ways = gammaln(count + 1) - gammaln(branches + 1) - gammaln(count - branches + 1)
        length = plain + block_depth * branches
        with np.errstate(divide="ignore"):
            logs.append(-0.5 * logsumexp(ways + 3 * np.log(length)))
    return np.array(logs)


class NoPower(ValueError):
    """The layers of a family follow no power of its depth; the message says what does not."""


@dataclass(frozen=True)
class Branches:
    """The blocks of one net, which are all alike, and the plain layers beside them.

    Attributes:
        stem, tail: plain layers below and above the blocks.
        multiplier: a, the factor on a branch.
        variance_factors: of the layers of a branch, from the one that reads the stream upwards, over the fan-in rule.
    """

    stem: tuple[Layer, ...]
    tail: tuple[Layer, ...]
    multiplier: float
    variance_factors: tuple[float, ...]


@dataclass(frozen=True)
class BranchPowers:
    """Powers of the number of blocks K: a = c K^multiplier, variance factors c K^variances.

    Attributes:
        stem, tail: numbers of plain layers, the same at every K.
        multiplier: power of the factor on a branch.
        variances: powers of the variance factors of the layers of a branch.
    """

    stem: int
    tail: int
    multiplier: float
    variances: tuple[float, ...]

    @property
    def carried(self) -> float:
        """Power of a^2 f^k, by which a block multiplies what passes it, over what it is without the branch."""
        return 2 * self.multiplier + sum(self.variances)


def branches_of(net: Sequential) -> Branches:
    """The blocks of a net with skip connections.

    Raises:
        NoPower: blocks that differ from one another, plain layers between them, or a skip over several units.
    """
    units = [net.layers[start:end] for start, end in pairwise((0, *net.unit_ends))]
    skipping = [number for number, unit in enumerate(units) if unit[-1].skip is not None]
    first, last = skipping[0], skipping[-1]
    starts = (0, *net.unit_ends)
    if len(skipping) <= last - first or any(units[number][-1].skip != starts[number] for number in skipping):
        raise NoPower("its blocks do not stand one on the other, each with a skip of its own")
    blocks = {(unit[-1].multiplier, tuple(layer.variance_factor for layer in unit)) for unit in units[first : last + 1]}
    if len(blocks) > 1:
        raise NoPower(f"its blocks differ from one another at depth {net.depth}, and the law is that of equal ones")
    ((multiplier, factors),) = blocks
    plain = [tuple(unit[-1] for unit in part) for part in (units[:first], units[last + 1 :])]
    return Branches(plain[0], plain[1], multiplier, factors)


def branch_powers(net: Sequential, depths: Iterable[int] = ()) -> BranchPowers:
    """The powers of K that multipliers and variances follow from depth to depth of the nets of this family.

    Args:
        net: a net with skip connections; other depths are those of ``net.replace``.
        depths: further ones over which the powers must hold, beside `FAR`.

    Raises:
        NoPower: blocks that `branches_of` refuses, plain layers that change with K, factors that are no power of K, or
            that floats do not hold at the depths which tell.
    """
    counts = sorted({*FAR, *depths})
    parts = [branches_of(net if count == net.depth else _of_depth(net, count)) for count in counts]
    if len({(part.stem, part.tail, len(part.variance_factors)) for part in parts}) > 1:
        raise NoPower("its plain layers, or the layers of a block, change with the number of blocks")
    multiplier = power_of(counts, [abs(part.multiplier) for part in parts], "factor on its branches")
    by_layer = zip(*(part.variance_factors for part in parts), strict=True)
    variances = tuple(power_of(counts, factors, "variance of the weights of its branches") for factors in by_layer)
    return BranchPowers(len(parts[0].stem), len(parts[0].tail), multiplier, variances)


def _of_depth(net: Sequential, depth: int) -> Sequential:
    try:
        return net.replace(depth=depth)
    except ValueError as why:
        raise NoPower(f"no net of its family has depth {depth}: {why}") from why


def keeps_energies(net: Sequential) -> bool:
    """Whether plain layers pass energies unchanged: fan-in weights, gates that know the sign alone, no lossy edge."""
    factors = {id(layer): layer.variance_factor for layer in net.layers}.values()
    return net.covers_evenly and net.sigma.homogeneous and all(isclose(factor, 1.0) for factor in factors)


def power_of(counts: Sequence[int], values: Sequence[float], what: str) -> float:
    """x of values = c counts^x; a simple fraction where it is one to rounding.

    Raises:
        NoPower: values that are not positive, or no power of the counts.
    """
    if min(values) > 0:
        logs = np.log(values)
        power = (logs[-1] - logs[0]) / log(counts[-1] / counts[0])
        expected = logs[0] + power * np.log(np.array(counts) / counts[0])
        if np.allclose(logs, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(logs).max())):
            fraction = float(Fraction(power).limit_denominator(LARGEST_DENOMINATOR))
            return fraction if abs(fraction - power) < ROUNDING else float(power)
    shown = ", ".join(f"{value:.4g} at {count}" for count, value in zip(counts, values, strict=True))
    raise NoPower(f"the {what} is no power of the depth: {shown}")


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
