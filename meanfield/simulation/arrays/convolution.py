"""Convolutions of whole groups of draws on the host, by the compiled tiles of `kernels.convolution`.

Arrays are those of the passes: weights (D, n', n k), values and errors (D, n, R, S), in any order of memory. Results
lie in Fortran order, draws innermost. What lies so already, of as many draws as fit side by side, is not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.nets.lattice import Table
from meanfield.simulation.kernels import convolution as kernels

Array = NDArray[Any]

# Draws that lie side by side in one vector, at most.
MOST_DRAWS = 8


class DirectConvolution:
    """W patches(X), its transpose and the gradient of W, without patches.

    Taps are summed first, then channels, in an order of their own: results are those of patches to rounding.
    """

    def convolve(self, weights: Array, values: Array, table: Table) -> Array:
        """W patches(X): (D, n', n k), (D, n, R, S) -> (D, n', R, S); one X serves all draws, if it is one."""
        return _by_groups(_convolved, weights.shape[1], weights.reshape(*weights.shape[:2], -1, len(table)), values, table)

    def convolve_transpose(self, weights: Array, errors: Array, reversed_table: Table) -> Array:
        """patches^T(W^T U): (D, n', n k), (D, n', R, S) -> (D, n, R, S), a convolution by the reversed offsets."""
        by_tap = weights.reshape(*weights.shape[:2], -1, len(reversed_table)).swapaxes(1, 2)
        return _by_groups(_convolved, by_tap.shape[1], by_tap, errors, reversed_table)

    def weight_gradient(self, errors: Array, values: Array, table: Table) -> Array:
        """U patches(X)^T: (D, n', R, S), (D, n, R, S) -> (D, n', n k); one X serves all draws, if it is one."""
        return _by_groups(_gradient, errors.shape[1], errors, values, table)


def draws_side_by_side(channels: int, precision: str) -> int:
    """The fewest draws that fill two vectors with so many channels each, up to `MOST_DRAWS`."""
    two = 2 * kernels.VECTOR // np.dtype(precision).itemsize
    return min(MOST_DRAWS, two // gcd(channels, two))


def _by_groups(work: Callable[..., Array], channels: int, first: Array, values: Array, table: Table) -> Array:
    """Of all draws, as many at once as fit side by side and divide them."""
    draws = len(first)
    values = np.broadcast_to(values, (draws, *values.shape[1:]))
    size = gcd(draws, draws_side_by_side(channels, values.dtype.name))
    parts = [work(first[d : d + size], values[d : d + size], table) for d in range(0, draws, size)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _convolved(weights: Array, values: Array, table: Table) -> Array:
    """Weights as (D, n', n, k)."""
    return kernels.convolve(_draws_innermost(weights), _draws_innermost(values), table).T


def _gradient(errors: Array, values: Array, table: Table) -> Array:
    found = kernels.weight_gradient(_draws_innermost(errors), _draws_innermost(values), table).T
    return found.reshape(*found.shape[:2], -1)


def _draws_innermost(array: Array) -> Array:
    """Axes in reverse, in one piece."""
    return np.ascontiguousarray(array.T)
