"""How the length of a tangent changes from layer to layer: rho_{l:h} (Zhang et al. 2026, assumption 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from meanfield.common.arrays import Array, inputs_described
from meanfield.common.estimates import DrawStatistic, Means, deviations, summarise_each
from meanfield.common.seeds import Streams, streams_of_draws
from meanfield.common.validation import require_choice, require_counts
from meanfield.nets.inputs.given import checked_inputs
from meanfield.nets.net import Net
from meanfield.nets.regularisation import require_normalisable
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.cost import chosen_weights, draw_cost
from meanfield.simulation.kernels.normals import NormalSource
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.propagation.token_statistics import require_tokens
from meanfield.simulation.measures.update_energy import Conditions, drawn_passes
from meanfield.simulation.passes import carried
from meanfield.simulation.weights.matrices import KINDS

if TYPE_CHECKING:
    import xarray as xr

# The kinds of directions, in the order of their columns.
DIRECTIONS = ("shared", "difference")


@dataclass(frozen=True, kw_only=True)
class TangentPropagation(Measure):
    """rho_{l:h} of tangents that all tokens share and of tangents that sum to zero over the tokens of a sample.

    With Phi_{l:h} the Jacobian of z^(l) by z^(h), a direction v at layer h becomes Phi_{l:h} v at layer l. "shared"
    directions are the same white Gaussian vector over channels at every token of a sample, "difference" ones have white
    Gaussian elements less their mean over tokens. Per draw

        x = (|Phi_{l:h} v|^2 / n_l) / (|v|^2 / n_h),   n_l = channels x samples x tokens,

    whose mean over draws is rho_{l:h} for these directions; Zhang et al. 2026 assumes one rho for all. A direction that
    is white over tokens and channels has the mean of both, the shared one with weight 1/T for T tokens.

    Eq. 42 is about the tangents of weights at layer h or below. They lie between both directions: a weight E_ij of an
    embedding (h = 0) moves channel i of token t by its input x_j(t), a profile over tokens that is partly shared and
    partly sums to zero, so that where the two rho differ, tangents of weights have no common rho either. At layers
    where tokens are alike the tangents of weights are nearly all shared.

    For nets of at least two tokens, or sites, whose units skip from the value right below them, if at all.

    Args:
        starts: the layers h at which directions begin, from 0, the input or the ``layer`` of that number, to L - 1.
        inputs: a fixed batch (samples, channels, *grid) instead of the net's input law.
        weights: "dense", "lazy", or "auto", the cheaper of both.

    Gives over ``direction``, ``start`` and ``layer`` tangent_propagation, the mean of x, and
    tangent_propagation_spread, its standard deviation over draws: eq. 44 for v_1 = v_2. The spread counts all that is
    drawn; the mean variance given all up to layer h, as the paper has it, is at most its square. Over ``start`` and
    ``layer`` tangent_propagation_remainder, half the difference of both rho: whatever rho one takes, the remainder r of
    eq. 43 is at least so large for one of the directions. All are NaN below the start, where rho is 1.

    Raises:
        TypeError, ValueError: no net, a net of a single token, units that skip over others, starts outside the net or
            given twice, inputs of another shape, an unknown kind of weights.

    Source: Zhang et al. 2026, eqs. 41-44.
    """

    starts: tuple[int, ...] = (0,)
    inputs: Any = None
    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_tokens(net, "no directions that sum to zero over tokens")
        require_choice("weights", self.weights, ("auto", *KINDS))
        for number, unit in enumerate(net.units):
            if unit.skip not in (None, number):
                raise ValueError(
                    f"unit {number + 1} skips from value {unit.skip}; tangents are carried from one value to the next "
                    f"alone, so that it may skip from value {number}: simulate another net"
                )
        top = len(net.units) - 2 + net.first_layer
        starts = require_counts("starts", self.starts, minimum=0, maximum=top, why="layers where directions begin")
        if not starts or len(set(starts)) < len(starts):
            raise ValueError(f"starts are {starts}; give one layer or more, each once")
        require_normalisable(net)
        batch, kind = checked_inputs(net, self.inputs), chosen_weights(net, self.weights)
        return replace(self, starts=tuple(sorted(starts)), inputs=batch, weights=kind)

    def cost(self, net: Net) -> Cost:
        """As of the passes of an update, which carry two columns back and up, and more where more start."""
        cost, share = draw_cost(net, self.weights), max(1.0, (1 + 2 * len(self.starts)) / 5)
        return cost._replace(operations=share * cost.operations, bytes=int(share * cost.bytes))

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """tangent_propagation, x above, of every draw: (D, directions, starts, L)."""
        state, _ = drawn_passes(net, seed, draws, Conditions(inputs=self.inputs, weights=self.weights))
        lengths = np.full((len(draws), len(DIRECTIONS), len(self.starts), len(net.units)), np.nan)
        columns = np.empty((len(draws), net.first_channels, 0, net.sites))
        for unit in range(len(net.units)):
            if (layer := unit - 1 + net.first_layer) in self.starts:
                new = _directions(state.values[unit], streams_of_draws(seed, f"directions at {layer}", draws))
                columns = np.concatenate([columns, new], axis=2) if columns.size else new
                if unit:
                    lengths[:, :, self.starts.index(layer), unit - 1] = 1.0
            if columns.size:
                columns = carried(state, unit + 1, columns)
                squares = np.square(columns).reshape(*columns.shape[:2], -1, len(DIRECTIONS), net.places)
                lengths[:, :, : squares.shape[2], unit] = squares.mean(axis=(1, 4)).swapaxes(1, 2)
            state.let_go(unit + 1)
        return {"tangent_propagation": lengths}

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        lengths = values["tangent_propagation"]
        estimates: dict[str, Means | DrawStatistic] = {
            "tangent_propagation": summarise_each(lengths),
            "tangent_propagation_spread": deviations(lengths),
            "tangent_propagation_remainder": summarise_each((lengths[:, 0] - lengths[:, 1]) / 2),
        }
        own = {"weights": self.weights} | inputs_described(self.inputs) | dict(attrs)
        return measured_dataset(net, estimates, own, {"direction": list(DIRECTIONS), "start": list(self.starts)})


def _directions(values: Array, streams: Streams) -> Array:
    """A column of every kind at these values (D, C, B, S), of mean square 1 over the numbers of a draw: (D, C, 2 B, S).

    Streams give the vectors that are shared first.
    """
    _, channels, samples, sites = values.shape
    normals = NormalSource(streams)
    shared, others = (normals.drawn((channels, samples, count)) for count in (1, sites))
    kinds = [np.broadcast_to(shared, values.shape), others - others.mean(axis=3, keepdims=True)]
    scaled = [kind / np.sqrt(np.square(kind).mean(axis=(1, 2, 3), keepdims=True)) for kind in kinds]
    return np.concatenate(scaled, axis=2)
