"""What the layers of a net do to its values: energies of activations and gates, tokens, lengths of tangents.

The update energies that come with them are those of `meanfield.simulation.measures.energies`, from the same draws.
The overlap energy is left out: without homogeneous activations no single column measures it, and one for every layer
costs far more.

    activations   the energy of every layer's pre-activations and gates, beside that of the update
    tokens        how large a stream of tokens is, how alike its tokens are, and how far one step moves it
    tangents      how the length of a tangent changes from layer to layer: rho_{l:h} (Zhang et al. 2026, assumption 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self, cast

import numpy as np
import xarray as xr

from meanfield.common.estimates import DrawStatistic, Means, deviations, summarise_each
from meanfield.common.seeds import Streams, streams_of_draws
from meanfield.common.validation import Array, inputs_described, require_choice, require_counts
from meanfield.nets.inputs import checked_inputs, require_normalisable
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Net
from meanfield.nets.recognised import require_net
from meanfield.quantities.registry import measured_dataset
from meanfield.simulation.cost import chosen_weights, draw_cost
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.energies import Energies, column_terms, drawn_passes, energy_estimates
from meanfield.simulation.measures.overlap_energy import column_energies
from meanfield.simulation.passes import tangent_through, through_readout
from meanfield.simulation.weights import KINDS

# Of lists of units: what they have not, and what they are given instead.
OF_GATES = (
    "energies of gates are those of one activation that reads the values of every layer as its matrix gives them, "
    "while normalisations change these with the batch and dropout closes gates at random"
)
OF_VALUES = (
    "meanfield.Energies has the update energies of any units, meanfield.pre_activations their values under given "
    "weights, whose mean squares are the other energies, and meanfield.TokenStatistics these of drawn nets of two "
    "sites or more"
)


@dataclass(frozen=True)
class ActivationStatistics(Measure):
    """Energies of pre-activations and gates of every layer, and the update energies of the same draws.

    For nets of layers of any activation and weight variance. Gives what `Energies` gives, with pre_activation_energy
    c_l, the mean square of z^(l), and gate_energy q_l, that of sigma'(z^(l)), in place of the overlap energy.

    Raises:
        TypeError: a loop or a list of units.

    Source: Zhang et al. 2026, appendix F; docs/theory.md section 6.

    Examples:
        >>> import meanfield as mf
        >>> measured = mf.simulate(mf.MLP(depth=4, width=64), draws=8, seed=0, measure=mf.ActivationStatistics())
        >>> sorted(measured.sizes)
        ['layer', 'layer_other', 'quantile']
    """

    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_net(net, why=OF_GATES, instead=OF_VALUES)
        require_choice("weights", self.weights, ("auto", *KINDS))
        return replace(self, weights=chosen_weights(_priced(net), self.weights))

    def cost(self, net: Net) -> Cost:
        return draw_cost(_priced(net), self.weights)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """pre_activation_energy, gate_energy, label_term and output_term of every draw, each (D, L)."""
        state, gradient = drawn_passes(net, seed, draws, Energies(weights=self.weights))
        gate = cast(Sequential, net).sigma.gate
        squares = {
            "pre_activation_energy": np.stack([_mean_square(values) for values in state.values[1:]], axis=1),
            "gate_energy": np.stack([_mean_square(gate(values)) for values in state.values[1:]], axis=1),
        }
        top, _ = through_readout(state, gradient)
        return squares | column_terms(column_energies(state, top))

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        return measured_dataset(net, energy_estimates(values), {"weights": self.weights} | dict(attrs))


def _priced(net: Any) -> Net:
    """A net whose draws cost the same: with ReLU, the overlap energy takes no pass of its own."""
    return cast(Net, replace(net, activation="relu", weight_variance=None))


def _mean_square(values: Array) -> Array:
    """The mean square over channels, samples and sites: (D,)."""
    return np.asarray(np.square(values).reshape(len(values), -1).mean(axis=1))


@dataclass(frozen=True, kw_only=True)
class TokenStatistics(Measure):
    """Variance of the stream and correlation between its tokens at every layer, and the update energies beside them.

    For nets of at least two tokens, or sites: Transformers, convolutional nets, lists of units.

    Args:
        inputs: a fixed batch (samples, channels, *grid) instead of the net's input law.
        weights: "dense", "lazy", or "auto", the cheaper of both.

    Gives what `Energies` gives, with stream_variance c_l, token_correlation and relative_update_energy S_l / c_l, each
    over ``layer``, in place of the overlap energy.

    Raises:
        TypeError, ValueError: no net, a net of a single token, inputs of another shape, an unknown kind of weights.

    Source: Zhang et al. 2026, section 3.5; docs/theory.md section 19.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.Transformer(depth=1, width=16, tokens=4)
        >>> sorted(mf.simulate(net, draws=4, seed=0, measure=mf.TokenStatistics()).sizes)
        ['layer', 'layer_other', 'quantile']
    """

    inputs: Any = None
    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_tokens(net, "no other token to be correlated with")
        require_choice("weights", self.weights, ("auto", *KINDS))
        require_normalisable(net)
        return replace(self, inputs=checked_inputs(net, self.inputs), weights=chosen_weights(net, self.weights))

    def cost(self, net: Net) -> Cost:
        return draw_cost(net, self.weights)

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """stream_variance, token_correlation, relative_update_energy, label_term and output_term of every draw, (D, L).

        The last two are energies as they stand; the third is their sum over the variance of the same draw.
        """
        state, gradient = drawn_passes(net, seed, draws, Energies(inputs=self.inputs, weights=self.weights))
        variance, correlation = (
            np.stack([statistic(values) for values in state.values[1:]], axis=1)
            for statistic in (stream_variance, token_correlation)
        )
        top, _ = through_readout(state, gradient)
        energies = column_terms(column_energies(state, top))
        relative = (energies["label_term"] + energies["output_term"]) / variance
        own = {"stream_variance": variance, "token_correlation": correlation, "relative_update_energy": relative}
        return own | energies

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        own = {"weights": self.weights} | inputs_described(self.inputs)
        return measured_dataset(net, energy_estimates(values), own | dict(attrs))


def require_tokens(net: Any, why: str) -> None:
    """Raise TypeError or ValueError unless this is a net of two tokens, or sites, or more."""
    require_net(net, units=True)
    if min(map(prod, net.value_grids)) < 2:
        raise ValueError(f"this {type(net).__name__} has a single token or site, which has {why}; give 2 or more")


def stream_variance(values: Array) -> Array:
    """Mean square over channels, samples and sites of values (D, C, B, S): (D,)."""
    return np.asarray(np.square(values).mean(axis=(1, 2, 3)))


def token_correlation(values: Array) -> Array:
    """Mean cosine of all pairs of sites of a sample, from the length of the sum of their directions: (D,)."""
    tokens = values.shape[3]
    directions = values / np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    squares = np.square(directions.sum(axis=3)).sum(axis=1)
    return np.asarray((squares.mean(axis=1) - tokens) / (tokens * (tokens - 1)))


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

    Examples:
        >>> import meanfield as mf
        >>> net = mf.Transformer(depth=1, width=16, tokens=4)
        >>> sorted(mf.simulate(net, draws=4, seed=0, measure=mf.TangentPropagation()).sizes)
        ['direction', 'layer', 'start']
    """

    starts: tuple[int, ...] = (0,)
    inputs: Any = None
    weights: str = "auto"

    def settled(self, net: Net) -> Self:
        require_tokens(net, "no directions that sum to zero over tokens")
        require_choice("weights", self.weights, ("auto", *KINDS))
        for number, unit in enumerate(net.units):
            if unit.skip not in (None, number) or unit.concatenates:
                raise ValueError(
                    f"unit {number + 1} skips from value {unit.skip}; tangents are carried from one value to the next "
                    f"alone, so that it may skip from value {number}, by join 'add': simulate another net"
                )
        top = len(net.units) - 2 + net.first_layer
        starts = require_counts("starts", self.starts, minimum=0, maximum=top, why="layers where directions begin")
        if not starts or len(set(starts)) < len(starts):
            raise ValueError(f"starts are {starts}; give one layer or more, each once")
        require_normalisable(net)
        batch, kind = checked_inputs(net, self.inputs), chosen_weights(net, self.weights)
        return replace(self, starts=tuple(sorted(starts)), inputs=batch, weights=kind)

    def cost(self, net: Net) -> Cost:
        """The cost is that of an update's passes, which carry two columns back and up, and more where more start."""
        cost, share = draw_cost(net, self.weights), max(1.0, (1 + 2 * len(self.starts)) / 5)
        return cost._replace(operations=share * cost.operations, bytes=int(share * cost.bytes))

    def draw(self, net: Net, seed: int, draws: range) -> Pieces:
        """tangent_propagation, x above, of every draw: (D, directions, starts, L)."""
        state, _ = drawn_passes(net, seed, draws, Energies(inputs=self.inputs, weights=self.weights))
        lengths = np.full((len(draws), len(DIRECTIONS), len(self.starts), len(net.units)), np.nan)
        columns = np.empty((len(draws), net.first_channels, 0, net.sites))
        for unit in range(len(net.units)):
            if (layer := unit - 1 + net.first_layer) in self.starts:
                new = _directions(state.values[unit], streams_of_draws(seed, f"directions at {layer}", draws))
                columns = np.concatenate([columns, new], axis=2) if columns.size else new
                if unit:
                    lengths[:, :, self.starts.index(layer), unit - 1] = 1.0
            if columns.size:
                columns = tangent_through(state, unit + 1, columns)
                squares = np.square(columns).reshape(
                    *columns.shape[:2], -1, len(DIRECTIONS), net.inputs * columns.shape[3]
                )
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
