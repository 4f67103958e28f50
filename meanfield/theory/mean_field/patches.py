"""What a matrix sees of the places of a channel, samples and sites: the patches of a stencil, a mean, or all sites.

A matrix is one of rows, (channel, tap) of a convolution and (channel, site) of a readout that sees all sites, on
features X whose columns are the places that it answers at. What it sends down, its transpose times the errors there,
is added up over the rows of a channel, at the places that they came from.
"""

from dataclasses import dataclass

import numpy as np

from meanfield.common.validation import Array
from meanfield.nets.lattice import OUTSIDE, SiteTable, neighbours, reversed_neighbours
from meanfield.nets.layered import Sequential
from meanfield.theory.two_points import EveryPair


@dataclass(frozen=True)
class Patches:
    """Those of a hidden layer, or of a readout of this kind."""

    net: Sequential
    kind: str = "convolution"

    @property
    def rows(self) -> int:
        """Of one channel."""
        return {"pooled": 1, "convolution": self.net.taps, "flatten": self.net.sites}[self.kind]

    @property
    def columns(self) -> int:
        """Places that the matrix answers at, a sample's together."""
        return self.net.inputs * (self.net.sites if self.kind == "convolution" else 1)

    def seen(self, features: Array) -> Array:
        """Rows of all channels, (rows, columns), from their values at all places, (channels, places)."""
        net, by_site = self.net, features.reshape(len(features), self.net.inputs, self.net.sites)
        if self.kind == "pooled":
            return np.asarray(by_site.mean(axis=2))
        if self.kind == "flatten":
            return by_site.swapaxes(1, 2).reshape(-1, net.inputs)
        if not net.grid:
            return features
        return self._shifted(by_site[None], neighbours(net.grid, net.kernel, net.padding)).reshape(-1, self.columns)

    def sent_back(self, rows: Array) -> Array:
        """The sum over the rows of every channel, (channels, places), of what is sent to each, (rows, columns)."""
        net = self.net
        if self.kind == "pooled":
            return np.repeat(rows / net.sites, net.sites, axis=1)
        if self.kind == "flatten":
            return rows.reshape(-1, net.sites, net.inputs).swapaxes(1, 2).reshape(-1, net.inputs * net.sites)
        if not net.grid:
            return rows
        by_tap = rows.reshape(net.taps, -1, net.inputs, net.sites)
        arriving = self._shifted(by_tap, reversed_neighbours(net.grid, net.kernel, net.padding))
        return np.asarray(arriving.sum(axis=0).reshape(-1, self.columns))

    def as_rows(self, by_channel: Array) -> Array:
        """Rows of all channels in their order, (rows, columns), from each channel's, (channels, rows x columns)."""
        own = by_channel.reshape(len(by_channel), self.rows, self.columns)
        return (own if self.kind == "flatten" else own.swapaxes(0, 1)).reshape(-1, self.columns)

    def sum_over_rows(self, pairs: Array) -> Array:
        """The sum over the rows of one channel, over pairs of columns, of products over pairs of places."""
        net = self.net
        if self.kind == "convolution":
            return net.taps * EveryPair(net).diagonal(pairs)
        by_sites = pairs.reshape(net.inputs, net.sites, net.inputs, net.sites)
        if self.kind == "pooled":
            return np.asarray(by_sites.mean(axis=(1, 3)))
        return np.asarray(np.einsum("bpcp->bc", by_sites))

    def _shifted(self, by_site: Array, table: SiteTable) -> Array:
        """Values (taps or 1, channels, samples, sites) as every row of a table reaches them, the taps first."""
        by_tap = np.broadcast_to(by_site, (len(table), *by_site.shape[1:]))
        return np.stack([np.where(row == OUTSIDE, 0.0, tap[..., row]) for row, tap in zip(table, by_tap, strict=True)])
