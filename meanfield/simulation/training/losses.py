"""Losses on the outputs of a net: their value, their slope, and their curvature, in columns or in mean.

A loss is the mean over its terms: samples, or samples and sites. Each term is, up to a constant, minus the logarithm of
the probability that the outputs give to their target. At targets drawn with these probabilities, the squared slope
times the number of terms has the curvature as its mean (Bartlett's identity).

Outputs are (D, M, B, T): D nets, M channels, B samples, T sites. So are targets, with D = 1 where all nets share them,
and one channel where they are classes or signs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from meanfield.common.validation import real_array, unmasked
from meanfield.simulation.arrays import Arrays


class Loss(Protocol):
    """A loss, averaged over the samples of a batch."""

    def targets(self, given: ArrayLike, arrays: Arrays) -> Any:
        """What is given sample by sample, (samples, ...), in the layout of the outputs, (1, channels, samples, T).

        Raises:
            ValueError: targets of another shape or with other values than this loss is defined for.
        """

    def value(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        """L of every net, (D,), in double precision."""

    def slope(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        """dL/dout, in the shape of the outputs."""

    def curvature(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        """Columns s_c, (D, M, r B, T), columns outermost, whose sum of s_c s_c^T is d^2 L / dout^2 of every sample."""

    def curvature_times(self, output: Any, change: Any, arrays: Arrays) -> Any:
        """d^2 L / dout^2 times a change of the outputs, in the shape of the outputs."""

    def terms(self, output: Any) -> int:
        """How many terms the loss is the mean of."""

    def drawn_targets(self, output: Any, sources: Sequence[Generator], arrays: Arrays) -> Any:
        """Targets of every net from the law that its outputs give them, each net's from a generator of its own."""


@dataclass(frozen=True)
class Squared:
    """|out - y|^2 / (2 M T), mean over samples; targets (samples, M) or (samples, M, *grid)."""

    def targets(self, given: ArrayLike, arrays: Arrays) -> Any:
        values = real_array("targets", given)
        if values.ndim < 2:
            raise ValueError(f"targets have shape {values.shape}; the squared loss takes (samples, outputs, *grid)")
        if not np.isfinite(values).all():
            raise ValueError("targets hold NaN or infinite values; remove or replace them first")
        flat = values.reshape(*values.shape[:2], -1)
        return arrays.moved(np.ascontiguousarray(flat.swapaxes(0, 1))[None])

    def value(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        apart = (output - targets).astype("float64", copy=False).reshape(len(output), -1)
        return (apart * apart).sum(axis=1) / (2 * apart.shape[1])

    def slope(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        return (output - targets) / _numbers(output)

    def curvature(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        of_channel, of_site = _diagonals(output, arrays)
        ones = arrays.xp.ones_like(output)[:, :, None, None]
        return _as_columns(ones * of_channel * of_site) / _numbers(output) ** 0.5

    def curvature_times(self, output: Any, change: Any, arrays: Arrays) -> Any:
        return change / _numbers(output)

    def terms(self, output: Any) -> int:
        return int(output.shape[2])

    def drawn_targets(self, output: Any, sources: Sequence[Generator], arrays: Arrays) -> Any:
        """Normal around the outputs, of variance M T."""
        deviation = (_numbers(output) / self.terms(output)) ** 0.5
        return output + deviation * _of_each(sources, Generator.standard_normal, output.shape[1:], arrays)


@dataclass(frozen=True)
class CrossEntropy:
    """-log p of the class, p = softmax of the outputs over their channels; mean over samples and sites.

    Targets are classes, whole numbers from 0, (samples,) or (samples, *grid).
    """

    def targets(self, given: ArrayLike, arrays: Arrays) -> Any:
        classes = _classes(given)
        return arrays.xp.asarray(classes.reshape(1, 1, len(classes), -1))

    def value(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        # In one order in memory, so that sums are taken in the same order whatever other nets stand beside.
        wide = arrays.xp.ascontiguousarray(output, dtype="float64")
        wide = wide - wide.max(axis=1)[:, None]
        of_class = (wide * _chosen(wide, targets, arrays)).sum(axis=1)
        losses = arrays.xp.log(arrays.xp.exp(wide).sum(axis=1)) - of_class
        return losses.reshape(len(output), -1).mean(axis=1)

    def slope(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        shares = arrays.softmax(arrays.xp.ascontiguousarray(output), axis=1)
        return (shares - _chosen(output, targets, arrays)) / _places(output)

    def curvature(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        """diag(p) - p p^T = S S^T with S = diag(sqrt p) - p sqrt(p)^T: a column for every channel and site."""
        shares = arrays.softmax(output, axis=1)
        roots = arrays.xp.sqrt(shares)
        of_channel, of_site = _diagonals(output, arrays)
        spread = of_channel * roots[:, :, None, None] - shares[:, :, None, None] * roots[:, None, :, None]
        return _as_columns(spread * of_site) / _places(output) ** 0.5

    def curvature_times(self, output: Any, change: Any, arrays: Arrays) -> Any:
        shares = arrays.softmax(output, axis=1)
        weighted = shares * change
        return (weighted - shares * weighted.sum(axis=1)[:, None]) / _places(output)

    def terms(self, output: Any) -> int:
        return _places(output)

    def drawn_targets(self, output: Any, sources: Sequence[Generator], arrays: Arrays) -> Any:
        """Classes with probabilities p."""
        below = arrays.softmax(arrays.xp.ascontiguousarray(output), axis=1).cumsum(axis=1)
        uniform = _of_each(sources, Generator.random, (1, *output.shape[2:]), arrays)
        return (below[:, :-1] < uniform).sum(axis=1)[:, None]


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y f)) of one output f, mean over samples; labels y = +-1, (samples,)."""

    def targets(self, given: ArrayLike, arrays: Arrays) -> Any:
        values = real_array("targets", given)
        if values.ndim != 1 or not np.isin(values, (-1.0, 1.0)).all():
            raise ValueError("labels of the logistic loss are -1 or +1, one a sample")
        return arrays.moved(values.reshape(1, 1, -1, 1))

    def value(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        margins = (-targets * output).astype("float64", copy=False)
        return arrays.xp.logaddexp(0.0, margins).reshape(len(output), -1).mean(axis=1)

    def slope(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        return -targets * arrays.pointwise.logistic(-targets * output) / _places(output)

    def curvature(self, output: Any, targets: Any, arrays: Arrays) -> Any:
        pull = arrays.pointwise.logistic(-targets * output)
        return arrays.xp.sqrt(pull * (1 - pull) / _places(output))

    def curvature_times(self, output: Any, change: Any, arrays: Arrays) -> Any:
        pull = arrays.pointwise.logistic(output)  # the same for either label
        return pull * (1 - pull) * change / _places(output)

    def terms(self, output: Any) -> int:
        return _places(output)

    def drawn_targets(self, output: Any, sources: Sequence[Generator], arrays: Arrays) -> Any:
        """+1 with probability 1 / (1 + exp(-f))."""
        uniform = _of_each(sources, Generator.random, output.shape[1:], arrays)
        return arrays.xp.where(uniform < arrays.pointwise.logistic(output), 1.0, -1.0).astype(output.dtype)


# The losses that a user asks for.
LOSSES: dict[str, Loss] = {"cross_entropy": CrossEntropy(), "squared": Squared()}


def _of_each(sources: Sequence[Generator], draw: Callable[..., Any], shape: Sequence[int], arrays: Arrays) -> Any:
    """(D, *shape), from one generator for every net."""
    return arrays.moved(np.stack([draw(source, shape) for source in sources]))


def _places(output: Any) -> int:
    """B T."""
    return int(output.shape[2] * output.shape[3])


def _numbers(output: Any) -> int:
    """M B T."""
    return int(output.shape[1]) * _places(output)


def _classes(given: ArrayLike) -> Any:
    values = unmasked("targets", given)
    if values.ndim < 1 or not np.issubdtype(values.dtype, np.integer) or values.min(initial=0) < 0:
        raise ValueError(f"classes are {values.dtype} of shape {values.shape}; give whole numbers from 0, one a sample")
    return values


def _chosen(output: Any, targets: Any, arrays: Arrays) -> Any:
    """1 at the class of every sample and site, 0 elsewhere."""
    channels = arrays.xp.arange(output.shape[1]).reshape(1, -1, 1, 1)
    return (channels == targets).astype(output.dtype)


def _diagonals(output: Any, arrays: Arrays) -> tuple[Any, Any]:
    """1 where a column's own channel, and its own site, is that of the row: for (D, M, columns M, T, B, T)."""
    _, channels, _, sites = output.shape
    of_channel = arrays.xp.eye(channels, dtype=output.dtype)[None, :, :, None, None, None]
    return of_channel, arrays.xp.eye(sites, dtype=output.dtype)[None, None, None, :, None, :]


def _as_columns(values: Any) -> Any:
    """(D, M, columns M, T, B, T) as (D, M, r B, T) with r = M T."""
    nets, channels, _, _, _, sites = values.shape
    return values.reshape(nets, channels, -1, sites)
