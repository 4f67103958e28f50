"""Fluctuations that the mean field leaves out: of the energy of a layer, and of the Gram matrix of its features.

In plain fully-connected nets with one input, given the layers below, the pre-activations of layer l are exactly
i.i.d. Gaussians of variance c_l = sigma_W^2 mean_i sigma(z_i)^2. Its mean is the mean field's map of c_{l-1}; what it
has beyond, epsilon_l, has relative variance v / n, v = E[sigma^4] / E[sigma^2]^2 - 1, whatever happened below. So c
is a Markov chain of one number, and for any function f of it, at order 1/n,

    E f - f(mean field) = sum_h (v_h / 2 n) d^2 f / d epsilon_h^2.

Energies and gates are such functions. The label term is more than that: tangents and errors have a part along z,
which is amplified like the energy, so that its corrections are not these alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential
from meanfield.nets.staged import Staged
from meanfield.theory.mean_field.layers import forward_moments
from meanfield.theory.two_points import Transport

# Relative kick for second differences: their error is its square.
KICK = 1e-3


@dataclass(frozen=True)
class EnergyChain:
    """c and E[sigma'^2] at c, by layer 1 .. L: (..., L)."""

    pre_activation_energy: Array
    gate_energy: Array


@takes(Sequential)
def mean_field_chain(net: Sequential) -> EnergyChain:
    """The chain without noise, each (L,).

    Raises:
        ValueError: more than one input, or skip connections, where the energy of a layer is not one number.

    Source: docs/theory.md section 6.
    """
    chains = _chains(net, np.zeros((1, net.depth)))
    return EnergyChain(chains.pre_activation_energy[0], chains.gate_energy[0])


@takes(Sequential)
def chain_corrections(net: Sequential) -> EnergyChain:
    """Relative corrections of order 1/n to the mean energies of layers 1 .. L, each (L,).

    Raises:
        ValueError: as for `mean_field_chain`.
    """
    depth = net.depth
    kicks = KICK * np.concatenate([np.zeros((1, depth)), np.eye(depth), -np.eye(depth)])
    chains = _chains(net, kicks)
    noise = _noise(net, chains.pre_activation_energy[0])

    def correction(values: Array) -> Array:
        start, up, down = values[0], values[1 : depth + 1], values[depth + 1 :]
        return np.asarray(noise / 2 @ ((up + down - 2 * start) / KICK**2) / start)

    return EnergyChain(correction(chains.pre_activation_energy), correction(chains.gate_energy))


def _noise(net: Sequential, energy: Array) -> Array:
    """v / n of epsilon_1 .. epsilon_L: none at layer 1, whose inputs are normalised."""
    sigma, below = net.sigma, energy[:-1]
    squares = sigma.product(below, below, below)
    relative = sigma.square_product(below, below, below) / squares**2 - 1
    return np.concatenate([[0.0], relative / np.array(net.channels_by_layer[1:-1])])


def _chains(net: Sequential, kicks: Array) -> EnergyChain:
    """The chains that meet epsilon = kicks (P, L) on their way."""
    if net.inputs > 1 or net.has_skips:
        raise ValueError(
            "the energy of a layer is one number for plain fully-connected nets with one input alone; this is a "
            f"{type(net).__name__} with {net.inputs} input(s)"
        )
    sigma = net.sigma
    variance = net.variance_factor / sigma.gain
    energy = 1.0 + kicks[:, 0]
    energies = [energy]
    for kick in kicks.T[1:]:
        energy = variance * sigma.product(energy, energy, energy) * (1 + kick)
        energies.append(energy)
    by_layer = np.array(energies).T
    return EnergyChain(by_layer, sigma.gate_product(by_layer, by_layer, by_layer))


def gram_excess(net: Sequential | Staged, transport: Transport, covariance: Array, channels: int) -> float:
    """Relative excess of the mean squared Gram matrix over the square of its mean, over all pairs of sites.

    mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)) for C channels of pre-activations of this covariance: up to
    (S + 1) / (C k) in linear nets on white inputs, and far more than its square root where C is small.

    The k taps count as independent. In linear nets on white inputs they are; taps of ReLU units that share a site
    correlate, so that this is low there (0.445 for 0.472 on a 3 x 4 grid with 3 x 2 taps and 3 channels), as it is
    above correlated sites. docs/theory.md section 20 has the excess with all correlations.
    """
    arguments = (*transport.variances(covariance), covariance)
    mean_square = transport.mean(net.sigma.product(*arguments) ** 2)
    excess = transport.mean(net.sigma.square_product(*arguments)) / mean_square - 1
    return excess / (channels * net.taps)


def layer_excesses(net: Sequential, transport: Transport, product: Array) -> Iterator[float]:
    """Yield the excess of the features below layers 2, 3, ... from the input's E[sigma sigma']."""
    moments = forward_moments(net, transport, product)
    for channels, (_, covariance) in zip(net.channels_by_layer[1:], moments, strict=True):
        yield gram_excess(net, transport, covariance, channels)
