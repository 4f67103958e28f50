"""What weights do: stencils, side by side and in groups, and biases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.maps import Bias, Linear, Weight
from meanfield.theory.maps.base import Kind, Kinds, between, total
from meanfield.theory.mean_field.shifts import sum_over_stencil


def through_linear(linear: Linear, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """Each weight makes a kind of its own. With s its variance, sums over the channels i that it sees and its taps D,

        own(p, p') = sum_i sum_D E[x_i(p + D) x_i(p' + D)]
        c' = s own,    t' = own + s sum_i sum_D t_i(p + D, p' + D)

    What it makes is Gaussian where it sees many channels, or given values; a single channel that is itself a draw makes
    products of Gaussians at any width.
    """
    return tuple(kind for weight in linear.weights for kind in _stacked(linear, weight, below, grid))


def _stacked(linear: Linear, weight: Weight, below: Kinds, grid: tuple[int, ...]) -> Iterator[Kind]:
    groups, variance = _groups(weight, below), weight.variance
    for kinds in groups:
        own, carried = (_summed(linear, total(kinds, name), grid) for name in ("covariance", "kernel"))
        gaussian = weight.shape[1] > 1 or all(kind.given is not None for kind in kinds)
        channels, mean = weight.shape[0] // len(groups), np.zeros(own.shape[:2])
        yield Kind(channels, variance * own, own + variance * carried, mean, gaussian)


def _groups(weight: Weight, below: Kinds) -> list[Kinds]:
    """What each group sees; one entry for all of them, where all of them see alike."""
    size = weight.shape[1]
    if len(below) == 1 and below[0].given is None:
        return [between(below, 0, size)]
    return [between(below, group * size, (group + 1) * size) for group in range(weight.groups)]


def _summed(linear: Linear, pairs: Array, grid: tuple[int, ...]) -> Array:
    if linear.taps == 1:
        return pairs
    return sum_over_stencil(pairs, (0, 1), grid, linear.kernel, linear.padding, linear.dilation)


def through_bias(bias: Bias, below: Kinds, grid: tuple[int, ...]) -> Kinds:
    """The bias's variance on c of all pairs, as it is the same everywhere, and 1 on t."""
    variance = bias.weight.variance
    return tuple(
        replace(kind, covariance=kind.covariance + variance, kernel=kind.kernel + 1.0, given=None) for kind in below
    )
