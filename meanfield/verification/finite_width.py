"""How far a finite net may stand from the mean field: the allowance that comparisons make, stated once.

Corrections of relative order 1/channels are left out of the mean field, and none is uniform:

- kernels of different layers fluctuate together, which compounds with depth like exp(3 l / C) (for one site and ReLU
  the exact recursion gives 3 l/n for 1 << l << n, and exp(3 l/n) covers it up to l/n = 1/2);
- what fluctuates is the energy of a layer, delta = log c: a layer of C channels adds noise of variance v / C, with
  v = E[s^4]/E[s^2]^2 - 1, and passes on delta -> chi delta, chi = d log E[s^2] / d log c. ReLU has v = 5 and chi = 1,
  so that 3 l/C is 0.6 times the variance of delta, and 0.6 times that variance is granted to all activations. gelu
  amplifies: chi is about 1.15. Its gates depend on c too, so labels feel the fluctuations of all layers they pass;
- the Gram matrix X^T X of a layer fluctuates about its mean on every PAIR of sites. Where pairs are uncorrelated the
  mean is small and the fluctuation is not: the relative excess of the mean squared Gram matrix is
  mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)), up to (S + 1) / (C k) for linear nets on white inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.architectures import Sequential
from meanfield.theory.mean_field import forward_moments, input_products, white_input
from meanfield.theory.transport import Transport

Array = NDArray[np.float64]

# Relative excess per variance of log c, and the least noise per layer and amplification that are granted: ReLU's.
EXCESS = 0.6
LEAST_NOISE = 5.0
LEAST_AMPLIFICATION = 1.0
# Relative step in the variance for the amplification: its error is the square.
STEP = 1e-3
# Sites of less variance are dark, or so faint that fourth moments leave the range of a float.
SMALLEST = 1e-70


def finite_width_allowance(
    architecture: Sequential, inputs: ArrayLike | None = None, correlation: float = 0.0
) -> Array:
    """Relative deviation from the mean field granted to layers 1 .. L: (1 + Gram excess) exp(0.6 Var log c) - 1.

    For homogeneous activations Var log c = 5 sum_{h<l} 1/C_h; for the others it is that of the energy behind layer L,
    at every layer. The Gram excess is the worst of layers 1 .. l; with given ``inputs`` layer 1 has none, as its X^T X
    is fixed; those that are drawn have this ``correlation`` between samples.
    """
    compounded = np.exp(EXCESS * _log_energy_variance(architecture, inputs))
    worst = np.maximum.accumulate(_gram_excess(architecture, inputs, correlation))
    return np.asarray((1 + worst) * compounded - 1)


def _log_energy_variance(architecture: Sequential, inputs: ArrayLike | None) -> Array:
    """Variance of log c that layers 1 .. L are granted, at no less noise and amplification than ReLU's."""
    channels = np.array(architecture.channels_by_layer[1:], dtype=float)
    if architecture.sigma.homogeneous:
        return LEAST_NOISE * (np.cumsum(1.0 / channels) - 1.0 / channels)
    variance = 0.0
    for width, (noise, amplification) in zip(channels, _energy_responses(architecture, inputs), strict=True):
        variance = amplification**2 * variance + noise / width
    return np.full(architecture.depth, variance)


def _energy_responses(architecture: Sequential, inputs: ArrayLike | None) -> Iterator[tuple[float, float]]:
    """v and chi of layers 1 .. L at the worst site, no less than ReLU's."""
    sigma = architecture.sigma
    transport, product = input_products(architecture, inputs)
    for _, covariance in forward_moments(architecture, transport, product):
        here, _ = transport.variances(covariance)
        variance = here[here > SMALLEST]
        energy, more, less = (sigma.product(c, c, c) for c in (variance * step for step in (1, 1 + STEP, 1 - STEP)))
        noise = sigma.square_product(variance, variance, variance) / energy**2 - 1
        amplification = np.log(more / less) / (2 * STEP)
        yield float(noise.max(initial=LEAST_NOISE)), float(amplification.max(initial=LEAST_AMPLIFICATION))


def _gram_excess(architecture: Sequential, inputs: ArrayLike | None, correlation: float) -> list[float]:
    """Relative excess of the mean squared Gram matrix of layers 1 .. L over its square at many channels.

    None for a single site: its input is normalised, and what its deeper layers have is in the compounding term.
    """
    if architecture.inputs * architecture.sites == 1:
        return [0.0] * architecture.depth
    transport, product = input_products(architecture, inputs, correlation)
    layers = forward_moments(architecture, transport, product)
    found = [0.0 if inputs is not None else _excess(architecture, *white_input(architecture, correlation))]
    for _, covariance in islice(layers, architecture.depth - 1):
        found.append(_excess(architecture, transport, covariance))
    widths = architecture.channels_by_layer[:-1]
    return [excess / (width * architecture.taps) for excess, width in zip(found, widths, strict=True)]


def _excess(architecture: Sequential, transport: Transport, covariance: Array) -> float:
    """Variance of sigma sigma' over its squared mean, both averaged over pairs of sites."""
    arguments = (*transport.variances(covariance), covariance)
    mean_square = transport.mean(architecture.sigma.product(*arguments) ** 2)
    return transport.mean(architecture.sigma.square_product(*arguments)) / mean_square - 1
