"""How far a finite net may stand from the mean field: the allowance that comparisons make, stated once.

Corrections of relative order 1/channels are left out of the mean field, and none is uniform:

- kernels of different layers fluctuate together, which compounds with depth like exp(3 l / C) (for one site and ReLU
  the exact recursion gives 3 l/n for 1 << l << n, and exp(3 l/n) covers it up to l/n = 1/2);
- gates of smooth activations depend on the energy that arrives, which fluctuates (below). Lognormal energies of
  variance N in log B_l multiply a mean by exp(N / 2). As much again is granted for what is of the same order and not
  followed: a gate shares the noise of its own layer, and changes along the activations, which are changes of energy,
  grow with it. Drawn means of the last layer of gelu and silu nets of one site, 4 to 16 layers at 64 to 1024 units, lie
  between exp(0.3 N) and exp(1.4 N), of convolutional ones between exp(0.2 N) and exp(0.6 N). Where N is not small the
  allowance is wider than any claim, as it must be: rare draws then make the mean;
- under a pooled readout the gates above a layer fluctuate, too, which changes the label term of every layer, the first
  included, by about exp(2 sum_h 1/C_h) (`pooled_excess`);
- the Gram matrix X^T X of a layer fluctuates about its mean on every PAIR of sites. Where pairs are uncorrelated the
  mean is small and the fluctuation is not: the relative excess of the mean squared Gram matrix is
  mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)), up to (S + 1) / (C k) for linear nets on white inputs.

The energy c of a layer (the variance of its pre-activations, given the layers below) fluctuates: n channels put a
relative noise of variance v / n on the layer above, v = E[s^4]/E[s^2]^2 - 1. Behind smooth activations the noise passes
on, log c -> chi log c with chi = d log E[s^2] / d log c, and moves the gates of every layer that it passes. So the
label term B_l responds to the noise of layer h by

    R_lh = d log B_l / d log c_{h+1},

which grows with depth even at l = 1, by the gates above; ReLU's gates do not respond. An energy that is lognormal
multiplies the mean of B_l by exp(R^2 v / 2n).
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential
from meanfield.theory.mean_field.layers import forward_moments, input_products, white_input
from meanfield.theory.mean_field.whole_update import gram_excess, layer_excesses, pooled_excess
from meanfield.theory.two_points import Transport

# Excess of log F_l per layer over channels: ReLU's, by its exact recursion.
COMPOUNDING = 3.0
# Step in log c for the responses, whose relative error is of its order.
STEP = 1e-4
# Sites of less variance are dark, or so faint that fourth moments leave the range of a float.
SMALLEST = 1e-70


@takes(Sequential)
def finite_width_allowance(
    net: Sequential,
    inputs: ArrayLike | None = None,
    correlation: float = 0.0,
    *,
    quantity: str = "overlap_energy",
) -> Array:
    """Deviation granted to layers 1 .. L, over the mean field: (1 + Gram excess) exp(3 sum_{h<l} 1/C_h + N + P) - 1.

    P is 2 sum_h 1/C_h over all layers for the ``quantity`` "label_term" under a pooled readout of a gated net, else 0.
    N, the variance that energies put on log B_l, is 0 for homogeneous activations. The Gram excess is the worst of
    layers 1 .. l; with given ``inputs`` layer 1 has none, as its X^T X is fixed; those that are drawn have this
    ``correlation`` between samples.
    """
    above = pooled_excess(net) if quantity == "label_term" else 0.0
    compounded = np.exp(_log_excess(net, inputs) + above)
    worst = np.maximum.accumulate(_gram_excess(net, inputs, correlation))
    return np.asarray((1 + worst) * compounded - 1)


def _log_excess(net: Sequential, inputs: ArrayLike | None) -> Array:
    """What kernels gain by fluctuating together at given energies, and smooth activations by fluctuating energies."""
    channels = np.array(net.channels_by_layer[1:], dtype=float)
    together = COMPOUNDING * (np.cumsum(1.0 / channels) - 1.0 / channels)
    return together if net.sigma.homogeneous else together + log_energy_noise(net, inputs)


def _gram_excess(net: Sequential, inputs: ArrayLike | None, correlation: float) -> list[float]:
    """Relative excess of the mean squared Gram matrix of layers 1 .. L over its square at many channels.

    None for a single site: its input is normalised, and what its deeper layers have is in the compounding term.
    """
    if net.inputs * net.sites == 1:
        return [0.0] * net.depth
    transport, product = input_products(net, inputs, correlation)
    first = 0.0
    if inputs is None:
        first = gram_excess(net, *white_input(net, correlation), net.channels_by_layer[0])
    return [first, *islice(layer_excesses(net, transport, product), net.depth - 1)]


def log_energy_noise(net: Sequential, inputs: ArrayLike | None = None) -> Array:
    """Variance sum_h R_lh^2 v_h / C_h of log B_l, l = 1 .. L, that fluctuating energies make, or of log F_l if larger.

    By one site: the larger of what the least and the most energetic ones say. Its noise is that of its stencil's mean,
    and is taken to be its neighbours' too.
    """
    transport, product = input_products(net, inputs)
    covariances = [covariance for _, covariance in forward_moments(net, transport, product)]
    energies = np.array([transport.variances(covariance)[0].ravel() for covariance in covariances])
    noise = np.array([_arriving_noise(net, transport, covariance) for covariance in covariances])
    noise /= np.array(net.channels_by_layer[1:])[:, None]
    first = np.zeros_like(noise[:1])
    if inputs is None and net.input_law != "normalised":
        first[:] = _arriving_noise(net, *white_input(net)) / net.channels_by_layer[0]
    arriving = np.concatenate([first, noise[:-1]])
    bright = np.flatnonzero(np.all(energies > SMALLEST, axis=0))
    if not bright.size:
        return np.zeros(net.depth)
    ends = {bright[np.argmin(energies[-1, bright])], bright[np.argmax(energies[-1, bright])]}
    return np.max([_log_noise(net, energies[:, end], arriving[:, end]) for end in ends], axis=0)


def _arriving_noise(net: Sequential, transport: Transport, covariance: Array) -> Array:
    """Relative variance, times channels, of the mean of sigma^2 over every site's stencil at this covariance; flat."""
    here, there = transport.variances(covariance)
    sigma = net.sigma
    energies = sigma.product(here, here, here) * sigma.product(there, there, there)
    squares = sigma.square_product(here, there, covariance)
    relative = np.divide(squares - energies, energies, out=np.zeros_like(squares), where=energies > SMALLEST**2)
    stencil = transport.independent(relative)
    return np.asarray(
        np.broadcast_to(transport.variances(stencil)[0], transport.variances(covariance)[0].shape)
    ).ravel()


def _log_noise(net: Sequential, energies: Array, arriving: Array) -> Array:
    """The variance along one site, at energies c of layers 1 .. L and the noise that arrives there from below."""
    terms = np.log(list(_terms(net, energies)))
    responses = (terms[..., 1:] - terms[..., :1]) / STEP
    return np.asarray(np.max(np.square(responses) @ arriving, axis=0))


def _terms(net: Sequential, energies: Array) -> Iterator[Array]:
    """F_l and B_l over a constant, (L, 1 + L): of the mean field of one site, as it is and with c_h raised by STEP."""
    sigma, widths = net.sigma, net.channels_by_layer
    gates: list[Array] = []
    overlaps: list[Array] = []
    kernel = cross = squares = carried = np.zeros(1)
    for place, energy in enumerate(energies):
        here = energy * carried if place else np.full(1 + len(energies), energy)
        here[1 + place] *= np.exp(STEP)
        if place:
            cross = gates[-1] ** 2 * cross + squares * kernel**2 / widths[place]
            kernel = gates[-1] * kernel
        kernel = kernel + widths[place] * here
        overlaps.append(kernel**2 / widths[place + 1] + cross)
        factor = net.variance_factor / sigma.gain
        gates.append(factor * sigma.gate_product(here, here, here))
        squares = factor**2 * sigma.gate_square_product(here, here, here)
        passed = sigma.product(here, here, here)
        carried = passed / passed[0]
    above = np.cumprod(gates[::-1], axis=0)[::-1]
    yield np.array(overlaps)
    yield np.array(overlaps) * above
