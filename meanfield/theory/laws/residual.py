"""Closed forms for residual nets: how eta* falls with the number of blocks, and the rules of the papers."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice, require_count
from meanfield.nets.families.residual import SCALINGS
from meanfield.theory.laws.branches import ROUNDING, BranchPowers

# Powers of K of a and of f under each scaling.
_POWERS = {"init": (0.0, -1.0), "multiplier_sqrt": (-0.5, 0.0), "multiplier_linear": (-1.0, 0.0), "none": (0.0, 0.0)}


def residual_exponent(scaling: str, block_depth: int, stem: int = 0, tail: int = 0) -> float:
    """Exponent of eta*(K) ~ K^x for residual nets; NaN where no power law holds.

    A block of k layers with branch multiplier a and variance factor f contributes a^2 f^(k-1) k n to the kernel by
    its own weights. As a^2 f^k is at most of order 1/K, what was there before is carried up by a bounded factor:
    the kernel grows as K a^2 f^(k-1), its square is all of the update energy up to bounded factors, and

        eta* ~ 1 / (K a^2 f^(k-1)):   "init" k - 2,   "multiplier_sqrt" 0,   "multiplier_linear" +1.

    Overlaps between different units, from which l^3 comes in plain nets, gain only a^2 f^k <= 1/K per block. Without
    any scaling the stream doubles at every block and eta* falls exponentially.

    Plain layers have a share of order 1 in the kernel, which stops a rise. Below the blocks (stem) it is carried up to
    every unit, and exponents above 0 become 0. Above them alone (tail) it is in the tail's units, 1 / K of all, and
    exponents above 1/2 become 1/2.

    With a stem of one layer that reads C_0 channels, a rise as K^1 (a^2 f^(k-1) = 1/K^2) ends near K = k n / C_0
    blocks of n channels, where eta* is about two thirds of what it tends to.

    Raises:
        TypeError, ValueError: an unknown scaling, a block depth below 1.

    Source: docs/theory.md section 8, for any k; Zheng et al. 2026, tables 1, 9 (SGD) agree for their
    scalings, Zhang et al. 2026, section 3.4 does not.
    """
    require_choice("scaling", scaling, SCALINGS)
    k = require_count("block_depth", block_depth, why="layers of a branch")
    multiplier, variance = _POWERS[scaling]
    return exponent_of(BranchPowers(stem, tail, multiplier, (variance,) * k))


def exponent_of(powers: BranchPowers) -> float:
    """As `residual_exponent`, of blocks whose factors go as these powers of K; NaN where no power law holds.

    Layers of a branch may differ: each has a^2 times the variances of the others in the kernel, and the largest counts.
    """
    carried = 2 * powers.multiplier + sum(powers.variances)
    if carried > -1 + ROUNDING:
        return nan
    bare = -(1 + carried - min(powers.variances))
    largest = 0.0 if powers.stem else 0.5 if powers.tail else inf
    return min(bare, largest) + 0.0  # no negative zero


def scaling_with(powers: BranchPowers) -> str:
    """The name among `meanfield.nets.SCALINGS` under which a and f go as these powers of K; empty if there is none."""
    own = (powers.multiplier, *powers.variances)
    known = {name: (a, *(f,) * len(powers.variances)) for name, (a, f) in _POWERS.items()}
    return next((name for name, expected in known.items() if np.allclose(own, expected, rtol=0, atol=ROUNDING)), "")


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
