"""Convolutions of whole groups of draws on the host, by the compiled tiles of `kernels.convolution`.

Arrays are those of the passes: weights (D, n', n k), values and errors (D, n, R, S), in any memory order. Results are
in Fortran order, draws innermost. Arguments in that order, of as many draws as fit side by side, are not copied.
"""

from collections.abc import Callable
from math import gcd

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.lattice import Table
from meanfield.simulation.kernels import convolution as kernels


class DirectConvolution:
    """W patches(X), its transpose and the gradient of W, without patches; results differ from theirs by rounding.

    ``rectified`` takes max(X, 0) in place of X, as ReLU gives it.
    """

    def convolve(self, weights: Array, values: Array, table: Table, rectified: bool = False) -> Array:
        """W patches(X): (D, n', n k), (D, n, R, S) -> (D, n', R, S); a single X serves all draws."""
        return _by_groups(_convolved, weights, values, table, rectified)

    def convolve_transpose(self, weights: Array, errors: Array, table: Table, gate: Array | None = None) -> Array:
        """patches^T(W^T U): (D, n', n k), (D, n', R, S) -> (D, n, R, S), 0 where the gate is not positive.

        It is a convolution: ``table`` has the reversed offsets.
        """
        draws, above, _ = weights.shape
        by_tap = weights.T.reshape(-1, len(table), above, draws)
        turned = np.ascontiguousarray(by_tap.transpose(2, 1, 0, 3)).reshape(above * len(table), -1, draws)
        return _by_groups(_convolved, turned.T, errors, table, False, gate)

    def weight_gradient(self, errors: Array, values: Array, table: Table, rectified: bool = False) -> Array:
        """U patches(X)^T: (D, n', R, S), (D, n, R, S) -> (D, n', n k); a single X serves all draws."""
        return _by_groups(_gradient, errors, values, table, rectified)


def draws_side_by_side(channels: int, itemsize: int) -> int:
    """The fewest draws that fill the vectors of a tile with so many channels, at most as many as fit into a vector."""
    numbers = kernels.MOST_VECTORS * kernels.VECTOR // itemsize
    return min(kernels.most_draws(itemsize), numbers // gcd(channels, numbers))


def _by_groups(
    work: Callable[..., Array], first: Array, values: Array, table: Table, rectified: bool, gate: Array | None = None
) -> Array:
    """The work on all draws at once where they fit side by side, else on groups of as many as divide them."""
    draws, most = len(first), kernels.most_draws(values.itemsize)
    if len(values) != draws:
        values = np.broadcast_to(values, (draws, *values.shape[1:]))
    if gate is not None and len(gate) != draws:
        gate = np.broadcast_to(gate, (draws, *gate.shape[1:]))
    if gcd(draws, most) == draws:
        return work(first, values, table, rectified, gate)
    size = gcd(draws, draws_side_by_side(first.shape[1], values.itemsize))
    groups = [slice(d, d + size) for d in range(0, draws, size)]
    parts = [
        work(first[group], values[group], table, rectified, None if gate is None else gate[group]) for group in groups
    ]
    return np.concatenate(parts)


def _convolved(weights: Array, values: Array, table: Table, rectified: bool, gate: Array | None) -> Array:
    where = None if gate is None else _draws_innermost(gate)
    return kernels.convolve(_draws_innermost(weights), _draws_innermost(values), table, rectified, where).T


def _gradient(errors: Array, values: Array, table: Table, rectified: bool, gate: None) -> Array:
    return kernels.weight_gradient(_draws_innermost(errors), _draws_innermost(values), table, rectified).T


def _draws_innermost(array: Array) -> Array:
    """Axes in reverse, in one piece."""
    turned = array.T
    return turned if turned.flags.c_contiguous else np.ascontiguousarray(turned)
