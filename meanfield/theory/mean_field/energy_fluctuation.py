"""Energies of pre-activations and gates by layer, and what their fluctuation adds at order 1/width.

For plain fully-connected nets with one input. Given the layers below, the pre-activations of layer l are exactly i.i.d.
Gaussians of variance c_l = sigma_W^2 mean_i sigma(z_i)^2. Its mean is the mean field's map of c_{l-1}; what it has
beyond, epsilon_l, has relative variance v / n, v = E[sigma^4] / E[sigma^2]^2 - 1, whatever happened below. So c is a
Markov chain of one number, and for whatever is a function f of it, at order 1/n,

    E f - f(mean field) = sum_h (v_h / 2 n) d^2 f / d epsilon_h^2.

Energies and gates are such functions. The label term is more than that: tangents and errors have a part along z, which
is amplified like the energy, so that its corrections are not these alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential

# Relative kick for second differences: their error is its square.
KICK = 1e-3


@dataclass(frozen=True)
class Chain:
    """c and E[sigma'^2] at c, by layer 1 .. L: (..., L)."""

    pre_activation_energy: Array
    gate_energy: Array


def mean_field_chain(architecture: Sequential) -> Chain:
    """The chain without noise, each (L,).

    Raises:
        ValueError: more than one input, or skip connections, where the energy of a layer is not one number.

    Source: docs/theory.md section 6.
    """
    found = _chains(architecture, np.zeros((1, architecture.depth)))
    return Chain(found.pre_activation_energy[0], found.gate_energy[0])


def chain_corrections(architecture: Sequential) -> Chain:
    """Relative corrections of order 1/n to the mean energies of layers 1 .. L, each (L,).

    Raises:
        ValueError: as for `mean_field_chain`.
    """
    depth = architecture.depth
    kicks = KICK * np.concatenate([np.zeros((1, depth)), np.eye(depth), -np.eye(depth)])
    found = _chains(architecture, kicks)
    noise = _noise(architecture, found.pre_activation_energy[0])

    def correction(values: Array) -> Array:
        start, up, down = values[0], values[1 : depth + 1], values[depth + 1 :]
        return np.asarray(noise / 2 @ ((up + down - 2 * start) / KICK**2) / start)

    return Chain(correction(found.pre_activation_energy), correction(found.gate_energy))


def _noise(architecture: Sequential, energy: Array) -> Array:
    """v / n of epsilon_1 .. epsilon_L: none at layer 1, whose inputs are normalised."""
    sigma, below = architecture.sigma, energy[:-1]
    squares = sigma.product(below, below, below)
    relative = sigma.square_product(below, below, below) / squares**2 - 1
    return np.concatenate([[0.0], relative / np.array(architecture.channels_by_layer[1:-1])])


def _chains(architecture: Sequential, kicks: Array) -> Chain:
    """The chains that meet epsilon = kicks (P, L) on their way."""
    if architecture.inputs > 1 or architecture.has_skips:
        raise ValueError(
            "the energy of a layer is one number for plain fully-connected nets with one input alone; this is a "
            f"{type(architecture).__name__} with {architecture.inputs} input(s)"
        )
    sigma = architecture.sigma
    variance = architecture.variance_factor / sigma.gain
    energy = 1.0 + kicks[:, 0]
    energies = [energy]
    for kick in kicks.T[1:]:
        energy = variance * sigma.product(energy, energy, energy) * (1 + kick)
        energies.append(energy)
    by_layer = np.array(energies).T
    return Chain(by_layer, sigma.gate_product(by_layer, by_layer, by_layer))
