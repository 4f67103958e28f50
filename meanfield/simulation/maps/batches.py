"""Batch normalisation and dropout, which treat the samples of a batch together."""

from typing import Any

from meanfield.nets.maps import BatchNormalisation, Dropout
from meanfield.simulation.arrays.arrays import Arrays
from meanfield.simulation.maps.base import Setting, SymmetricOperation


class BatchNormalisationOperation(SymmetricOperation):
    """y = (x - m) / s of every channel, m and s^2 - epsilon its mean and variance over samples and sites.

    The Jacobian (1 - 1 1' / N - y y' / N) / s over the N values of a channel is symmetric: errors go back as tangents
    go up, every column of all samples at once.
    """

    lends = True
    whole_batch = True

    def kept(self, spec: BatchNormalisation, below: int, sites: int) -> int:
        return below

    def forward(self, spec: BatchNormalisation, values: Any, setting: Setting) -> tuple[Any, tuple[Any, Any]]:
        xp = setting.arrays.xp
        centred = values - _mean(values, setting.arrays)
        inverse = 1 / xp.sqrt(_mean(centred * centred, setting.arrays) + spec.epsilon)
        normalised = xp.asarray(centred * inverse, order=setting.arrays.order)
        return normalised, (normalised, inverse)

    def tangent(self, spec: BatchNormalisation, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        arrays, (normalised, inverse) = setting.arrays, (side[:, :, None] for side in kept)
        columns = setting.by_sample(moved)
        across = columns - _mean(columns, arrays) - normalised * _mean(normalised * columns, arrays)
        return arrays.xp.asarray((inverse * across).reshape(moved.shape), order=arrays.order)


def _mean(values: Any, arrays: Arrays) -> Any:
    """Over the last two axes, samples and sites, which stay with one entry each.

    Sums are taken in the same order whatever other nets lie beside: over vectors of nets and channels where these lie
    innermost, or else along rows.
    """
    if arrays.order == "F" and values.shape[1] > 1:
        return values.mean(axis=(-2, -1))[..., None, None]
    rows = arrays.xp.ascontiguousarray(values).reshape(*values.shape[:-2], -1)
    return rows.mean(axis=-1)[..., None, None]


class DropoutOperation(SymmetricOperation):
    """y = x times a mask of 0 and 1 / (1 - rate) in training, and x itself outside."""

    lends = True
    whole_batch = True

    def degree(self, spec: Dropout) -> int:
        return 1

    def kept(self, spec: Dropout, below: int, sites: int) -> int:
        return below

    def forward(self, spec: Dropout, values: Any, setting: Setting) -> tuple[Any, Any]:
        if setting.masks is None:
            return values, None
        scale = setting.arrays.moved(setting.masks.drawn(spec.rate, values.shape) / (1 - spec.rate))
        scale = setting.arrays.xp.asarray(scale, order=setting.arrays.order)
        return values * scale, scale

    def tangent(self, spec: Dropout, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        if kept is None:
            return moved
        return (kept[:, :, None] * setting.by_sample(moved)).reshape(moved.shape)
