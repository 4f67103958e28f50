"""Pooling over the sites of a sample."""

from __future__ import annotations

import numpy as np

from meanfield.nets.maps import Pooling
from meanfield.theory.maps.base import Kinds, Transport, averaged


class PoolingTransport(Transport):
    """The mean of c and t over both sites of a pair, or those of the last: (B, 1, B, 1)."""

    def through(self, one: Pooling, below: Kinds, grid: tuple[int, ...]) -> Kinds:
        sites = below[0].mean.shape[1]
        shares = np.full((1, sites), 1.0 / sites) if one.kind == "mean" else np.eye(sites)[-1:]
        return tuple(averaged(kind, shares) for kind in below)
