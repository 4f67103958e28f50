"""How large a stream of tokens is, how alike its tokens are, and how far one step moves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from meanfield.common.arrays import Array, inputs_described
from meanfield.common.validation import require_choice
from meanfield.nets.families.known import require_net
from meanfield.nets.inputs.given import checked_inputs
from meanfield.nets.net import Net
from meanfield.nets.regularisation import require_normalisable
from meanfield.quantities.datasets import measured_dataset
from meanfield.simulation.cost import chosen_weights, draw_cost
from meanfield.simulation.measures.base import Cost, Measure, Pieces
from meanfield.simulation.measures.estimates.energy_estimates import energy_estimates
from meanfield.simulation.measures.overlap_methods import column_energies
from meanfield.simulation.measures.update_energy import Conditions, drawn_passes, terms
from meanfield.simulation.passes import through_readout
from meanfield.simulation.weights.matrices import KINDS

if TYPE_CHECKING:
    import xarray as xr


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
        state, gradient = drawn_passes(net, seed, draws, Conditions(inputs=self.inputs, weights=self.weights))
        variance, correlation = (
            np.stack([statistic(values) for values in state.values[1:]], axis=1)
            for statistic in (stream_variance, token_correlation)
        )
        top, _ = through_readout(state, gradient)
        energies = terms(column_energies(state, top))
        relative = (energies["label_term"] + energies["output_term"]) / variance
        own = {"stream_variance": variance, "token_correlation": correlation, "relative_update_energy": relative}
        return own | energies

    def dataset(self, net: Net, values: Pieces, attrs: Mapping[str, Any]) -> xr.Dataset:
        own = {"weights": self.weights} | inputs_described(self.inputs)
        return measured_dataset(net, energy_estimates(values), own | dict(attrs))


def require_tokens(net: Any, why: str) -> None:
    """Raise TypeError or ValueError unless this is a net of two tokens, or sites, or more."""
    require_net(net, units=True)
    if net.sites < 2:
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
