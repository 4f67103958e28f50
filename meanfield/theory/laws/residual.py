"""Closed forms for residual nets: how eta* falls with the number of blocks, and the rules of the papers."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice, require_count
from meanfield.nets.families.residual import SCALINGS


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

    Raises:
        TypeError, ValueError: an unknown scaling, a block depth below 1.

    Source: docs/theory.md section 8, for any k; Zheng et al. 2026, tables 1, 9 (SGD) agree for their
    scalings, Zhang et al. 2026, section 3.4 does not.
    """
    require_choice("scaling", scaling, SCALINGS)
    k = require_count("block_depth", block_depth, why="layers of a branch")
    bare = {"init": k - 2.0, "multiplier_sqrt": 0.0, "multiplier_linear": 1.0, "none": float("nan")}[scaling]
    largest = 0.0 if stem else 0.5 if tail else inf
    return min(bare, largest)  # a NaN that comes first stays


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
