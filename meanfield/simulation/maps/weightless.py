"""Maps without weights: activations and gates, normalisations, dropout, pooling, attention.

Activations act element by element, normalisation over the channels of every sample and site; batch normalisation and
dropout treat the samples of a batch together; pooling, flattening and attention act over the sites of a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.common.array_libraries import multiply_into
from meanfield.common.seeds import stream
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.maps import (
    ROTARY_BASE,
    Attention,
    AveragePooling,
    BatchNormalisation,
    Dropout,
    Flatten,
    Gate,
    Normalisation,
    Pointwise,
    Pooling,
)
from meanfield.simulation.arrays import Arrays
from meanfield.simulation.maps.base import Operation, Setting, SymmetricOperation, operation


@operation(Pointwise)
class PointwiseOperation(Operation):
    """sigma(X); errors and tangents pick up sigma'(X)."""

    remade = True
    reads = True

    def degree(self, spec: Pointwise) -> int | None:
        return 1 if ACTIVATIONS[spec.activation].homogeneous else None

    def may_shut(self, spec: Pointwise) -> bool:
        return not ACTIVATIONS[spec.activation].gate(np.array(-1.0))

    def forward(self, spec: Pointwise, values: Any, setting: Setting) -> tuple[Any, None]:
        return ACTIVATIONS[spec.activation].function(values, setting.arrays.pointwise), None

    def backward(self, spec: Pointwise, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        return _gated(spec, values, errors, setting, errors if in_place else None)

    def tangent(self, spec: Pointwise, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        return _gated(spec, values, moved, setting)


def _gated(spec: Pointwise, values: Any, columns: Any, setting: Setting, out: Any = None) -> Any:
    """sigma'(X) times every column, written to ``out``, if given."""
    gate = ACTIVATIONS[spec.activation].gate(values, setting.arrays.pointwise)
    if columns.shape == values.shape:
        return setting.arrays.xp.multiply(gate, columns, out=out)
    target = None if out is None else setting.by_sample(out)
    return setting.arrays.xp.multiply(gate[:, :, None], setting.by_sample(columns), out=target).reshape(columns.shape)


@operation(Gate)
class GateOperation(Operation):
    """sigma(X_1) X_2 of the two halves of the channels; sigma(X_1) is kept."""

    reads = True

    def degree(self, spec: Gate) -> int | None:
        return 2 if ACTIVATIONS[spec.activation].homogeneous else None

    def kept(self, spec: Gate, below: int, sites: int) -> int:
        return below // 2

    def forward(self, spec: Gate, values: Any, setting: Setting) -> tuple[Any, Any]:
        gating, gated = _halves(values)
        activated = ACTIVATIONS[spec.activation].function(gating, setting.arrays.pointwise)
        return activated * gated, activated

    def backward(self, spec: Gate, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        of_gating, of_gated = _gate_slopes(spec, values, kept, setting)
        columns = setting.by_sample(errors)
        both = setting.arrays.xp.concatenate([columns * of_gating, columns * of_gated], axis=1)
        return both.reshape(len(errors), -1, *errors.shape[2:])

    def tangent(self, spec: Gate, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        of_gating, of_gated = _gate_slopes(spec, values, kept, setting)
        first, second = _halves(setting.by_sample(moved))
        return (first * of_gating + second * of_gated).reshape(len(moved), -1, *moved.shape[2:])


def _halves(values: Any) -> tuple[Any, Any]:
    middle = values.shape[1] // 2
    return values[:, :middle], values[:, middle:]


def _gate_slopes(spec: Gate, values: Any, activated: Any, setting: Setting) -> tuple[Any, Any]:
    """Derivatives of the product by its two halves, with an axis for columns: sigma'(X_1) X_2 and sigma(X_1)."""
    gating, gated = _halves(values)
    slope = ACTIVATIONS[spec.activation].gate(gating, setting.arrays.pointwise)
    return (slope * gated)[:, :, None], activated[:, :, None]


@operation(Normalisation)
class NormalisationOperation(SymmetricOperation):
    """y = (x - m) / s ("layer") or x / s ("rms"), with the Jacobian (P - y y' / C) / s (Zhang et al. 2026).

    P takes the mean out ("layer") or nothing ("rms").
    """

    lends = True

    def degree(self, spec: Normalisation) -> int | None:
        return None if spec.epsilon else 0

    def kept(self, spec: Normalisation, below: int, sites: int) -> int:
        return 1

    def forward(self, spec: Normalisation, values: Any, setting: Setting) -> tuple[Any, tuple[Any, Any]]:
        xp = setting.arrays.xp
        centred = values - _channel_mean(values) if spec.kind == "layer" else values
        square = _channel_mean(centred * centred) + spec.epsilon
        asked = setting.arrays.normals is None and not setting.arrays.lenient  # a device would have to wait
        if asked and not square.all():
            raise ValueError(
                f"normalisation {spec.kind!r} divides by the size of values, which is 0 at some sample and site of "
                "some draw; give other inputs (or weights)"
            )
        inverse = 1 / xp.sqrt(square)
        normalised = centred * inverse
        return normalised, (normalised, inverse)

    def tangent(self, spec: Normalisation, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        normalised, inverse = (side[:, :, None] for side in kept)
        columns = setting.by_sample(moved)
        along = normalised * columns
        setting.arrays.xp.multiply(normalised, _channel_mean(along), out=along)
        along -= columns - _channel_mean(columns) if spec.kind == "layer" else columns
        along *= -inverse
        return along.reshape(moved.shape)


def _channel_mean(values: Any) -> Any:
    """The mean over channels, which keep their axis."""
    return values.mean(axis=1)[:, None]


@operation(BatchNormalisation)
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
        centred = values - _batch_mean(values, setting.arrays)
        inverse = 1 / xp.sqrt(_batch_mean(centred * centred, setting.arrays) + spec.epsilon)
        normalised = xp.asarray(centred * inverse, order=setting.arrays.order)
        return normalised, (normalised, inverse)

    def tangent(self, spec: BatchNormalisation, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        arrays, (normalised, inverse) = setting.arrays, (side[:, :, None] for side in kept)
        columns = setting.by_sample(moved)
        across = columns - _batch_mean(columns, arrays) - normalised * _batch_mean(normalised * columns, arrays)
        return arrays.xp.asarray((inverse * across).reshape(moved.shape), order=arrays.order)


def _batch_mean(values: Any, arrays: Arrays) -> Any:
    """The mean over the last two axes, samples and sites, which stay with one entry each.

    Sums are taken in the same order whatever other nets lie beside: over vectors of nets and channels where these lie
    innermost, or else along rows.
    """
    if arrays.order == "F" and values.shape[1] > 1:
        return values.mean(axis=(-2, -1))[..., None, None]
    rows = arrays.xp.ascontiguousarray(values).reshape(*values.shape[:-2], -1)
    return rows.mean(axis=-1)[..., None, None]


@operation(Dropout)
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


@dataclass(frozen=True)
class Masks:
    """Masks of D nets at one step, drawn in the order in which the pass asks for them; nets of one seed share them."""

    seeds: Sequence[int]
    step: int

    def of_nets(self, nets: slice) -> Masks:
        """The masks of some nets, for a pass of their own."""
        return Masks(self.seeds[nets], self.step)

    def drawn(self, rate: float, shape: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the values (D, C, B, S) are kept, each with probability 1 - rate."""
        own: dict[int, Any] = {
            seed: source.random(shape[1:], dtype=np.float32) >= rate for seed, source in self._sources.items()
        }
        return np.stack([own[seed] for seed in self.seeds])

    @cached_property
    def _sources(self) -> dict[int, Generator]:
        return {seed: stream(seed, "dropout", self.step) for seed in self.seeds}


@operation(Pooling)
class PoolingOperation(Operation):
    """The mean over sites, or the last of them: (D, C, R, S) -> (D, C, R, 1)."""

    splits_by_order = True

    def forward(self, spec: Pooling, values: Any, setting: Setting) -> tuple[Any, int]:
        return self.tangent(spec, values, 0, values, setting), values.shape[3]

    def degree(self, spec: Pooling) -> int:
        return 1

    def backward(self, spec: Pooling, values: Any, kept: int, errors: Any, setting: Setting, in_place: bool) -> Any:
        xp, sites = setting.arrays.xp, kept
        if spec.kind == "mean":
            order = setting.arrays.order
            spread = xp.empty((*errors.shape[:3], sites), errors.dtype, order=order)
            spread[...] = xp.asarray(errors / sites, order=order)
            return spread
        empty = xp.zeros((*errors.shape[:3], sites - 1), dtype=errors.dtype)
        return xp.concatenate([empty, errors], axis=3)

    def tangent(self, spec: Pooling, values: Any, kept: int, moved: Any, setting: Setting) -> Any:
        pooled = moved.mean(axis=3)[..., None] if spec.kind == "mean" else moved[..., -1:].copy()
        # Matrix products of other layouts take another road for one net than for several, and round differently.
        return setting.arrays.xp.ascontiguousarray(pooled)


@operation(Flatten)
class FlattenOperation(Operation):
    """Values side by side: (D, C, R, S) -> (D, C S, R, 1)."""

    remade = True
    splits_by_order = True

    def degree(self, spec: Flatten) -> int:
        return 1

    def forward(self, spec: Flatten, values: Any, setting: Setting) -> tuple[Any, None]:
        return self.tangent(spec, values, None, values, setting), None

    def backward(self, spec: Flatten, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool) -> Any:
        draws, channels, rows, _ = errors.shape
        apart = errors.reshape(draws, channels // spec.sites, spec.sites, rows)
        return apart.swapaxes(2, 3).copy(order=setting.arrays.order)

    def tangent(self, spec: Flatten, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        draws, _, rows, _ = moved.shape
        # Matrix products of other layouts take another road for one net than for several, and round differently.
        return moved.swapaxes(2, 3).copy(order="C").reshape(draws, -1, rows, 1)


@operation(AveragePooling)
class AveragePoolingOperation(Operation):
    """The means over windows: (D, C, R, S) -> (D, C, R, S')."""

    splits_by_order = True

    def degree(self, spec: AveragePooling) -> int:
        return 1

    def forward(self, spec: AveragePooling, values: Any, setting: Setting) -> tuple[Any, None]:
        return self.tangent(spec, values, None, values, setting), None

    def backward(
        self, spec: AveragePooling, values: Any, kept: None, errors: Any, setting: Setting, in_place: bool
    ) -> Any:
        arrays, windows = setting.arrays, _windows(spec, setting)
        spread = arrays.xp.empty((*errors.shape[:3], *windows), errors.dtype, order=arrays.order)
        of_window = errors.reshape(*errors.shape[:3], *(n if axis % 2 == 0 else 1 for axis, n in enumerate(windows)))
        spread[...] = of_window / prod(spec.window)
        return arrays.xp.asarray(spread.reshape(*errors.shape[:3], -1), order=arrays.order)

    def tangent(self, spec: AveragePooling, values: Any, kept: None, moved: Any, setting: Setting) -> Any:
        arrays, windows = setting.arrays, _windows(spec, setting)
        by_window = moved.reshape(*moved.shape[:3], *windows)
        # Site by site, so that sums are taken in the same order however nets lie beside each other.
        sites = (
            by_window[:, :, :, *(at for place in window for at in (slice(None), place))]
            for window in np.ndindex(spec.window)
        )
        means = sum(sites) / prod(spec.window)
        return arrays.xp.asarray(means.reshape(*moved.shape[:3], -1), order=arrays.order)


def _windows(spec: AveragePooling, setting: Setting) -> tuple[int, ...]:
    """How many windows there are along an axis, and sites in each; axis by axis."""
    return tuple(n for pair in zip(spec.grid_above(setting.grid), spec.window, strict=True) for n in pair)


@operation(Attention)
class AttentionOperation(Operation):
    """O_i = sum_j P_ij V_j, P = softmax over j of scale * Q_i . K_j, head by head.

    A change of the logits a changes P by P (da - sum_j P da); backwards likewise, as softmax has a symmetric Jacobian.
    """

    def kept(self, spec: Attention, below: int, sites: int) -> int:
        return spec.heads * sites + (2 * below // 3 if spec.rotary else 0)

    def products(self, spec: Attention, below: int, sites: int) -> tuple[int, int]:
        once = 2 * (below // 3) * sites
        return 2 * once, 8 * once

    def forward(self, spec: Attention, values: Any, setting: Setting) -> tuple[Any, tuple[Any, ...]]:
        queries, keys, items = _heads(spec, values, setting)
        logits = _pairs(queries, keys, setting)
        logits *= _logit_scale(spec, queries)
        if spec.causal:
            logits += setting.arrays.moved(_causal_mask(setting.samples, values.shape[3]))
        shares = setting.arrays.softmax(logits, axis=-1)
        whole, (out,) = _empty(spec, shares, 1, items.shape[5], setting)
        multiply_into(out, shares, items)
        return whole, (queries, keys, items, shares)

    def backward(self, spec: Attention, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        queries, keys, items, shares = kept
        (columns,) = _parts(spec, errors, 1, setting)
        of_logits = _through_softmax(shares, _pairs(columns, items, setting))
        of_logits *= _logit_scale(spec, queries)
        whole, (of_queries, of_keys, of_items) = _empty(spec, of_logits, 3, items.shape[5], setting)
        multiply_into(of_queries, of_logits, keys)
        multiply_into(of_keys, of_logits.swapaxes(4, 5), queries)
        multiply_into(of_items, shares.swapaxes(4, 5), columns)
        if spec.rotary:
            _turn(of_queries, setting, -1)
            _turn(of_keys, setting, -1)
        return whole

    def tangent(self, spec: Attention, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        queries, keys, items, shares = kept
        d_queries, d_keys, d_items = _heads(spec, moved, setting)
        d_logits = _pairs(d_queries, keys, setting)
        d_logits += _pairs(queries, d_keys, setting)
        d_logits *= _logit_scale(spec, queries)
        whole, (out,) = _empty(spec, d_logits, 1, items.shape[5], setting)
        multiply_into(out, _through_softmax(shares, d_logits), items)
        out += shares @ d_items
        return whole


def _heads(spec: Attention, columns: Any, setting: Setting) -> tuple[Any, Any, Any]:
    """Queries and keys with their positions, and items (values), each (D, heads, r, B, S, size)."""
    queries, keys, items = _parts(spec, columns, 3, setting)
    if spec.rotary:
        queries, keys = queries.copy(order="K"), keys.copy(order="K")
        _turn(queries, setting, 1)
        _turn(keys, setting, 1)
    return queries, keys, items


def _parts(spec: Attention, columns: Any, count: int, setting: Setting) -> list[Any]:
    """So many equal parts of the channels of (D, C, r B, S), each (D, heads, r, B, S, size)."""
    draws, channels, rows, sites = columns.shape
    size = channels // (count * spec.heads)
    apart = columns.reshape(draws, count, spec.heads, size, rows // setting.samples, setting.samples, sites)
    return [apart[:, part].transpose(0, 1, 3, 4, 5, 2) for part in range(count)]


def _empty(spec: Attention, shares: Any, count: int, size: int, setting: Setting) -> tuple[Any, list[Any]]:
    """Room for so many parts with the rows of shares (D, heads, r, B, i, j): all as (D, C, r B, S), and each."""
    draws, heads, columns, samples, sites, _ = shares.shape
    shape = (draws, count * heads * size, columns * samples, sites)
    whole = setting.arrays.xp.empty(shape, dtype=shares.dtype)
    return whole, _parts(spec, whole, count, setting)


def _pairs(left: Any, right: Any, setting: Setting) -> Any:
    """Products of (..., i, size) and (..., j, size) over the size, (..., i, j), with j outermost in memory.

    Sums and maxima over j then run along all i of all samples, where those along a short row would cost several times
    the arithmetic.
    """
    draws, heads, columns, samples, sites, _ = np.broadcast_shapes(left.shape, right.shape)
    memory = setting.arrays.xp.empty((draws, heads, columns, sites, samples, sites), dtype=left.dtype)
    products = memory.transpose(0, 1, 2, 4, 5, 3)
    multiply_into(products, left, right.swapaxes(4, 5))
    return products


def _logit_scale(spec: Attention, queries: Any) -> float:
    """size^(-1/2) or size^-1."""
    return float(queries.shape[5] ** (-0.5 if spec.scale == "inverse_sqrt" else -1.0))


def _through_softmax(shares: Any, change: Any) -> Any:
    """P (da - sum_j P da) for changes (D, heads, r, B, i, j), which are written to."""
    change *= shares
    change -= shares * change.sum(axis=-1)[..., None]
    return change


def _turn(parts: Any, setting: Setting, direction: int) -> None:
    """Turn (D, heads, r, B, S, size) by the rotary angle of every site, or back, in place."""
    middle = parts.shape[5] // 2
    cosine, sine = (setting.arrays.moved(side) for side in _angles(middle, setting.samples, parts.shape[4]))
    first, second = parts[..., :middle], parts[..., middle:]
    sine = direction * sine
    across = first * sine
    first *= cosine
    first -= second * sine
    second *= cosine
    second += across


@lru_cache(maxsize=16)
def _angles(pairs: int, samples: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of t base^(-i / pairs), (samples, sites, pairs), in the order in memory of products W X."""
    angle = np.outer(ROTARY_BASE ** (-np.arange(pairs) / pairs), np.arange(sites))
    repeated = np.repeat(angle[:, None], samples, axis=1).transpose(1, 2, 0)
    return np.cos(repeated), np.sin(repeated)


@lru_cache(maxsize=16)
def _causal_mask(samples: int, sites: int) -> np.ndarray:
    """-inf where a site i would look ahead to j, (samples, i, j), in the order in memory of `_pairs`."""
    ahead = np.where(np.tri(sites, dtype=bool), 0.0, -np.inf).T
    return np.repeat(ahead[:, None], samples, axis=1).transpose(1, 2, 0)
