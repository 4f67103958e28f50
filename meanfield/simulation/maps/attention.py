"""Softmax attention over the sites of a sample."""

from functools import lru_cache
from typing import Any

import numpy as np

from meanfield.nets.maps import Attention
from meanfield.simulation.maps.base import Operation, Setting

ROTARY_BASE = 10_000.0


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
        logits *= _scale(spec, queries)
        if spec.causal:
            logits += setting.arrays.moved(_mask(setting.samples, values.shape[3]))
        shares = setting.arrays.softmax(logits, axis=-1)
        whole, (out,) = _empty(spec, shares, 1, items.shape[5], setting)
        setting.arrays.multiply_into(out, shares, items)
        return whole, (queries, keys, items, shares)

    def backward(self, spec: Attention, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        queries, keys, items, shares = kept
        (columns,) = _parts(spec, errors, 1, setting)
        of_logits = _through_softmax(shares, _pairs(columns, items, setting))
        of_logits *= _scale(spec, queries)
        whole, (of_queries, of_keys, of_items) = _empty(spec, of_logits, 3, items.shape[5], setting)
        setting.arrays.multiply_into(of_queries, of_logits, keys)
        setting.arrays.multiply_into(of_keys, of_logits.swapaxes(4, 5), queries)
        setting.arrays.multiply_into(of_items, shares.swapaxes(4, 5), columns)
        if spec.rotary:
            _turn(of_queries, setting, -1)
            _turn(of_keys, setting, -1)
        return whole

    def tangent(self, spec: Attention, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        queries, keys, items, shares = kept
        d_queries, d_keys, d_items = _heads(spec, moved, setting)
        d_logits = _pairs(d_queries, keys, setting)
        d_logits += _pairs(queries, d_keys, setting)
        d_logits *= _scale(spec, queries)
        whole, (out,) = _empty(spec, d_logits, 1, items.shape[5], setting)
        setting.arrays.multiply_into(out, _through_softmax(shares, d_logits), items)
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
    setting.arrays.multiply_into(products, left, right.swapaxes(4, 5))
    return products


def _scale(spec: Attention, queries: Any) -> float:
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
def _mask(samples: int, sites: int) -> np.ndarray:
    """-inf where a site i would look ahead to j, (samples, i, j), in the order in memory of `_pairs`."""
    ahead = np.where(np.tri(sites, dtype=bool), 0.0, -np.inf).T
    return np.repeat(ahead[:, None], samples, axis=1).transpose(1, 2, 0)
