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
        logits = _scale(spec, queries) * setting.arrays.einsum("dhcbi,dhcbj->dhbij", queries, keys)
        if spec.causal:
            logits = logits + setting.arrays.moved(_mask(values.shape[3]))
        shares = setting.arrays.softmax(logits, axis=-1)
        out = setting.arrays.einsum("dhbij,dhcbj->dhcbi", shares, items)
        return out.reshape(len(values), -1, *values.shape[2:]), (queries, keys, items, shares)

    def backward(self, spec: Attention, values: Any, kept: Any, errors: Any, setting: Setting, in_place: bool) -> Any:
        queries, keys, items, shares = kept
        einsum, columns = setting.arrays.einsum, _columns(spec, setting.by_sample(errors))
        of_logits = _through_softmax(shares, einsum("dhcrbi,dhcbj->dhrbij", columns, items), setting)
        of_logits *= _scale(spec, queries)
        back = [
            _turned(spec, einsum("dhrbij,dhcbj->dhcrbi", of_logits, keys), setting, -1),
            _turned(spec, einsum("dhrbij,dhcbi->dhcrbj", of_logits, queries), setting, -1),
            einsum("dhbij,dhcrbi->dhcrbj", shares, columns),
        ]
        flat = [part.reshape(len(errors), -1, *errors.shape[2:]) for part in back]
        return setting.arrays.xp.concatenate(flat, axis=1)

    def tangent(self, spec: Attention, values: Any, kept: Any, moved: Any, setting: Setting) -> Any:
        queries, keys, items, shares = kept
        einsum = setting.arrays.einsum
        thirds = _thirds(setting.by_sample(moved))
        dq, dk = (_turned(spec, _columns(spec, part), setting, 1) for part in thirds[:2])
        dv = _columns(spec, thirds[2])
        d_logits = einsum("dhcrbi,dhcbj->dhrbij", dq, keys)
        d_logits += einsum("dhcbi,dhcrbj->dhrbij", queries, dk)
        d_logits *= _scale(spec, queries)
        d_shares = _through_softmax(shares, d_logits, setting)
        out = einsum("dhrbij,dhcbj->dhcrbi", d_shares, items) + einsum("dhbij,dhcrbj->dhcrbi", shares, dv)
        return out.reshape(len(moved), -1, *moved.shape[2:])


def _heads(spec: Attention, values: Any, setting: Setting) -> tuple[Any, Any, Any]:
    """Queries and keys with their positions, and items (values), each (D, heads, size, B, S)."""
    parts = [part.reshape(len(part), spec.heads, -1, *part.shape[2:]) for part in _thirds(values)]
    queries, keys = (_turned(spec, part[:, :, :, None], setting, 1)[:, :, :, 0] for part in parts[:2])
    return queries, keys, parts[2]


def _thirds(values: Any) -> tuple[Any, Any, Any]:
    size = values.shape[1] // 3
    return values[:, :size], values[:, size : 2 * size], values[:, 2 * size :]


def _columns(spec: Attention, columns: Any) -> Any:
    """(D, n, r, B, S) -> (D, heads, size, r, B, S)."""
    return columns.reshape(len(columns), spec.heads, -1, *columns.shape[2:])


def _scale(spec: Attention, queries: Any) -> float:
    """size^(-1/2) or size^-1."""
    return float(queries.shape[2] ** (-0.5 if spec.scale == "inverse_sqrt" else -1.0))


def _through_softmax(shares: Any, change: Any, setting: Setting) -> Any:
    """P (da - sum_j P da) for changes (D, heads, r, B, i, j), which are written to."""
    change *= shares[:, :, None]
    change -= shares[:, :, None] * change.sum(axis=-1)[..., None]
    return change


def _turned(spec: Attention, parts: Any, setting: Setting, direction: int) -> Any:
    """(D, heads, size, r, B, S) turned by the rotary angle of every site, or back."""
    if not spec.rotary:
        return parts
    xp, middle = setting.arrays.xp, parts.shape[2] // 2
    cosine, sine = (setting.arrays.moved(side) for side in _angles(middle, parts.shape[5]))
    first, second = parts[:, :, :middle], parts[:, :, middle:]
    sine = direction * sine
    return xp.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=2)


@lru_cache(maxsize=16)
def _angles(pairs: int, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of t base^(-i / pairs), (pairs, 1, 1, sites)."""
    angle = np.arange(sites) * ROTARY_BASE ** (-np.arange(pairs) / pairs)[:, None]
    return np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]


@lru_cache(maxsize=16)
def _mask(sites: int) -> np.ndarray:
    """-inf where a site would look ahead."""
    return np.where(np.tri(sites, dtype=bool), 0.0, -np.inf)
