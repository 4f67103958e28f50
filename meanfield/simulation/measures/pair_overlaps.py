"""Overlaps of chosen pairs of parameter directions, followed from where they begin to the top layer.

A direction of `meanfield.nets.directions` begins as the tangent u = m e_a X' x0 / |x0| of its own layer, X the patches
there, x0 that of the first sample's first site and m the layer's multiplier, and is carried up like every tangent,
u <- [u_skip +] m W patches(sigma'(z) u). Overlaps T_h = <u, v> / n_h are read off at the end of every depth unit,
n_h = channels x samples x sites.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self, cast

import numpy as np
import xarray as xr

from meanfield.common.estimates import summarise_each
from meanfield.common.seeds import streams_by_purpose, streams_of_draws
from meanfield.common.validation import Array, require_choice, require_count
from meanfield.nets.directions import (
    DirectionPair,
    ParameterDirection,
    UnitShares,
    checked_pairs,
    pair_name,
    unit_shares,
)
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Net, named_weights
from meanfield.nets.recognised import require_net
from meanfield.quantities.registry import measured_dataset
from meanfield.simulation.cost import LAZY_EFFORT, OPERATIONS_PER_NUMBER, draw_cost
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.maps.weighted import site_gram
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.passes import Forward, forward, tangent_through
from meanfield.simulation.weights import KINDS, draw_weights

# Columns that a lazily revealed matrix may be asked for before filling it is the cheaper way.
LAZY_SHARE = 1 / 8


# Of lists of units: what they have not, and what they are given instead.
OF_DIRECTIONS = (
    "the change that one weight makes is followed through matrices, gates of one activation and skips alone, while "
    "batch normalisation mixes samples and dropout closes gates at random"
)
OF_ALL = (
    "meanfield.Energies serves any units and has update energies, which are sums of such overlaps over all weights, as "
    "meanfield.one_step has the change itself"
)


@dataclass(frozen=True, kw_only=True)
class PairOverlaps(Measure):
    """Overlaps T_h of pairs of parameter directions, from the layer where they begin to the top layer.

    Args:
        pairs: ((layer, unit), (layer, unit)), counted from 1; a direction moves the weights into one unit along that
            unit's own incoming features (`meanfield.nets.directions`). In residual nets layers are depth units: stem
            layers, blocks, tail layers.
        weights: "dense", "lazy", or "auto", the cheaper of both.
        fixed_layers: inputs and the weights of this many first layers (depth units) are the same in all draws, so that
            means are conditional on them.

    Gives over ``pair`` (named "LAYER,UNIT:LAYER,UNIT") and ``layer``: overlap T_h, squared_overlap T_h^2,
    gated_overlap (the mean of T_{h+1} given layer h), overlap_innovation (T_h less that mean), overlap_variance
    Var(T_h | layers below), gate_deviation T~ - q T and overlap_excess T_h - r T_l; NaN below the upper direction of a
    pair, and where smooth gates inside a branch leave no closed mean.

    Raises:
        TypeError, ValueError: a loop or a list of units, a pair outside the net, bad counts or names.

    Source: Zhang et al. 2026, eqs. 13-15, 27, 30-35.

    Examples:
        >>> import meanfield as mf
        >>> overlaps = mf.PairOverlaps(pairs=[((1, 1), (2, 1))])  # unit 1 of layer 1, and unit 1 of layer 2
        >>> mf.simulate(mf.MLP(depth=4, width=64), draws=8, seed=0, measure=overlaps)["overlap"].dims
        ('pair', 'layer')
    """

    pairs: tuple[DirectionPair, ...]
    weights: str = "auto"
    fixed_layers: int = 0

    def settled(self, net: Net) -> Self:
        require_net(net, why=OF_DIRECTIONS, instead=OF_ALL)
        require_choice("weights", self.weights, ("auto", *KINDS))
        fixed = require_count("fixed_layers", self.fixed_layers, minimum=0, why="layers that all draws share")
        if fixed > (units := len(net.units)):
            raise ValueError(f"fixed_layers is {fixed}; the net has {units} depth units to fix")
        checked = replace(self, pairs=checked_pairs(cast(Sequential, net), self.pairs), fixed_layers=fixed)
        return replace(checked, weights=checked._cheaper_weights(cast(Sequential, net)))

    def _cheaper_weights(self, net: Sequential) -> str:
        """The kind that was asked for, or the one that costs less for so many directions."""
        smallest = min(net.channels_by_layer) * net.taps
        cheaper = "lazy" if self._columns(net) <= LAZY_SHARE * smallest else "dense"
        return cheaper if self.weights == "auto" else self.weights

    def _columns(self, net: Net) -> int:
        """Columns that every matrix multiplies: pre-activations and tangents."""
        return (1 + len(_directions(self.pairs))) * net.places

    def cost(self, net: Net) -> Cost:
        columns, shapes = self._columns(net), net.weight_shapes[:-1]
        operations: float = (OPERATIONS_PER_NUMBER + 2 * columns) * sum(prod(shape) for shape in shapes)
        if self.weights == "lazy":
            operations = OPERATIONS_PER_NUMBER * LAZY_EFFORT * columns * sum(shape[0] for shape in shapes)
        return draw_cost(net, self.weights)._replace(operations=operations)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """The overlaps by draw, pair and depth unit, (D, pairs, L), NaN where a direction of the pair has not begun.

        ``overlap`` T_h; ``squared_overlap`` T_h^2; ``gated_overlap``, the mean of T_{h+1} given everything up to unit
        h; ``overlap_innovation``, T_h minus that mean, and its square ``overlap_variance``; ``gate_deviation``
        T~ - q T; ``overlap_excess`` T_h - r T_l, r the growth since the overlap began at unit l if gates average to q.
        Inputs and the weights of the first ``fixed_layers`` depth units are those of draw 0 in every draw.
        """
        sigma, state = cast(Sequential, net).sigma, self._forward(net, seed, draws)
        directions = _directions(self.pairs)
        places = [(directions.index(first), directions.index(second)) for first, second in self.pairs]
        overlap, through_gates = np.full((2, len(draws), len(places), len(net.units)), np.nan)
        for unit, tangents in enumerate(_tangents(state, directions)):
            gates = np.square(sigma.gate(state.values[unit + 1])) / sigma.gain
            for pair, ends in enumerate(places):
                if max(ends) < len(tangents):
                    product = tangents[ends[0]] * tangents[ends[1]]
                    overlap[:, pair, unit] = product.mean(axis=(1, 2, 3))
                    through_gates[:, pair, unit] = (gates * product).mean(axis=(1, 2, 3))
        return _read_off(cast(Sequential, net), overlap, through_gates)

    def _forward(self, net: Net, seed: int, draws: range) -> Forward:
        """The forward pass of the draws, which share their inputs and lowest depth units if some are fixed."""
        fixed = self.fixed_layers
        matrices = draw_weights(net, streams_of_draws(seed, "weights", draws), self.weights)
        inputs = draw_inputs(net, streams_by_purpose(seed, [0] * len(draws) if fixed else draws))
        if fixed:
            shared = draw_weights(net, streams_of_draws(seed, "weights below", [0] * len(draws)), self.weights)
            matrices |= {name: shared[name] for name in named_weights(net.units[:fixed])}
        return forward(net, matrices, inputs)

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        own = {"weights": self.weights, "fixed_layers": self.fixed_layers, "pairs": json.dumps(self.pairs)}
        estimates = {name: summarise_each(value) for name, value in values.items()}
        return measured_dataset(net, estimates, dict(attrs) | own, {"pair": [pair_name(pair) for pair in self.pairs]})


def _tangents(state: Forward, directions: list[ParameterDirection]) -> Iterator[list[Array]]:
    """Yield, at the end of every depth unit, the tangents (D, C, B, S) of the directions that have begun, in order."""
    tangents: list[Array] = []
    for unit in range(1, len(state.net.units) + 1):
        if tangents:
            columns = tangent_through(state, unit, np.concatenate(tangents, axis=2))
            tangents = np.split(columns, len(tangents), axis=2)
        tangents += [_begun(state, unit, row) for own, row in directions if own == unit]
        yield tangents


def _read_off(net: Sequential, overlap: Array, through_gates: Array) -> dict[str, Array]:
    """All that follows draw by draw from the overlaps T and T~ / q, (D, pairs, L)."""
    shares = np.array(unit_shares(net))
    kept, carried = np.vstack([shares[1:], UnitShares(0.0, 1.0)]).T  # above the top a plain layer, the readout
    gated = kept * overlap + carried * through_gates
    growth = np.cumprod(np.append(1.0, shares[1:].sum(axis=1)))
    # An overlap begins at the first unit where it is finite, which is the same in every draw.
    begun = np.isfinite(overlap[0]).argmax(axis=1)[None, :, None]
    law = np.take_along_axis(overlap, begun, axis=2) * growth / growth[begun]
    innovation = np.full_like(overlap, np.nan)
    innovation[..., 1:] = overlap[..., 1:] - gated[..., :-1]
    return {
        "overlap": overlap,
        "squared_overlap": np.square(overlap),
        "gated_overlap": gated,
        "overlap_innovation": innovation,
        "overlap_variance": np.square(innovation),
        "gate_deviation": net.sigma.gain * (through_gates - overlap),
        "overlap_excess": overlap - law,
    }


def _directions(pairs: tuple[DirectionPair, ...]) -> list[ParameterDirection]:
    return sorted({direction for pair in pairs for direction in pair})


def _begun(state: Forward, unit: int, row: int) -> Array:
    """A direction's tangent at its own value, (D, C, B, S): only its row moves; 0 if its features vanish."""
    passage, here = state.passages[unit - 1], state.values[unit]
    last = len(passage.unit.branch) - 1
    linear: Any = passage.unit.branch[last]
    gram = site_gram(linear, passage.input_of(last), passage.settings[last])
    length = np.sqrt(gram[:, :1, 0])
    profile = np.divide(gram[:, :, 0], length, out=np.zeros_like(gram[:, :, 0]), where=length > 0)
    tangent = np.zeros(here.shape)
    tangent[:, row - 1] = passage.unit.multiplier * profile.reshape(len(here), *here.shape[2:])
    return tangent
