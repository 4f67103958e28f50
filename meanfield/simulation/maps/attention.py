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
        logits = queries @ keys.swapaxes(4, 5)
        logits *= _scale(spec, queries)
        if spec.causal:
            logits += setting.arrays.moved(_mask(values.shape[3]))
        shares = setting.arrays.softmax(logits, axis=-1)
        return _side_by_side([shares @ items], setting), (queries, keys, items, shares)

    def backward(self, spec: Attention, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        queries, keys, items, shares = kept
        (columns,) = _parts(spec, errors, 1, setting)
        of_logits = _through_softmax(shares, columns @ items.swapaxes(4, 5))
        of_logits *= _scale(spec, queries)
        of_queries = _turned(spec, _times(of_logits, keys), setting, -1)
        of_keys = _turned(spec, _times(of_logits.swapaxes(4, 5), queries), setting, -1)
        return _side_by_side([of_queries, of_keys, shares.swapaxes(4, 5) @ columns], setting)

    def tangent(self, spec: Attention, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        queries, keys, items, shares = kept
        d_queries, d_keys, d_items = _heads(spec, moved, setting)
        d_logits = d_queries @ keys.swapaxes(4, 5)
        d_logits += queries @ d_keys.swapaxes(4, 5)
        d_logits *= _scale(spec, queries)
        out = _through_softmax(shares, d_logits) @ items
        out += shares @ d_items
        return _side_by_side([out], setting)


def _heads(spec: Attention, columns: Any, setting: Setting) -> tuple[Any, Any, Any]:
    """Queries and keys with their positions, and items (values), each (D, heads, r, B, S, size)."""
    queries, keys, items = _parts(spec, columns, 3, setting)
    return _turned(spec, queries, setting, 1), _turned(spec, keys, setting, 1), items


def _parts(spec: Attention, columns: Any, count: int, setting: Setting) -> list[Any]:
    """So many equal parts of the channels of (D, C, r B, S), each (D, heads, r, B, S, size)."""
    draws, channels, rows, sites = columns.shape
    size = channels // (count * spec.heads)
    apart = columns.reshape(draws, count, spec.heads, size, rows // setting.samples, setting.samples, sites)
    return [apart[:, part].transpose(0, 1, 3, 4, 5, 2) for part in range(count)]


def _times(weights: Any, parts: Any) -> Any:
    """Weights (..., i, j) times parts (..., j, size), with the sites innermost in memory, as `_parts` has them."""
    return (parts.swapaxes(4, 5) @ weights.swapaxes(4, 5)).swapaxes(4, 5)


def _side_by_side(parts: list[Any], setting: Setting) -> Any:
    """The inverse of `_parts`; channels lie innermost in memory, as the products with weights take them."""
    draws, heads, columns, samples, sites, size = parts[0].shape
    shape = (draws, columns, samples, sites, len(parts), heads, size)
    whole = setting.arrays.xp.empty(shape, dtype=parts[0].dtype)
    for place, part in enumerate(parts):
        whole[..., place, :, :] = part.transpose(0, 2, 3, 4, 1, 5)
    return whole.reshape(draws, columns * samples, sites, -1).transpose(0, 3, 1, 2)


def _scale(spec: Attention, queries: Any) -> float:
    """size^(-1/2) or size^-1."""
    return float(queries.shape[5] ** (-0.5 if spec.scale == "inverse_sqrt" else -1.0))


def _through_softmax(shares: Any, change: Any) -> Any:
    """P (da - sum_j P da) for changes (D, heads, r, B, i, j), which are written to."""
    change *= shares
    change -= shares * change.sum(axis=-1)[..., None]
    return change


def _turned(spec: Attention, parts: Any, setting: Setting, direction: int) -> Any:
    """(D, heads, r, B, S, size) turned by the rotary angle of every site, or back."""
    if not spec.rotary:
        return parts
    middle = parts.shape[5] // 2
    cosine, sine = (setting.arrays.moved(side) for side in _angles(middle, parts.shape[4]))
    first, second = parts[..., :middle], parts[..., middle:]
    sine = direction * sine
    turned = setting.arrays.xp.empty_like(parts)
    turned[..., :middle] = first * cosine - second * sine
    turned[..., middle:] = first * sine + second * cosine
    return turned


@lru_cache(maxsize=16)
def _angles(pairs: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of t base^(-i / pairs), (sites, pairs), the sites innermost in memory, as in products W X."""
    angle = np.outer(ROTARY_BASE ** (-np.arange(pairs) / pairs), np.arange(sites))
    return np.cos(angle).T, np.sin(angle).T


@lru_cache(maxsize=16)
def _mask(sites: int) -> np.ndarray:
    """-inf where a site would look ahead."""
    return np.where(np.tri(sites, dtype=bool), 0.0, -np.inf)
