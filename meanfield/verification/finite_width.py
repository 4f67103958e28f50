"""How far a finite net may stand from the mean field: the allowance that comparisons make, stated once.

Two corrections of relative order 1/channels are left out of the mean field, and neither is uniform:

- kernels of different layers fluctuate together, which compounds with depth like exp(3 l / C) (for one site the exact
  recursion gives 3 l/n for 1 << l << n, and exp(3 l/n) covers it up to l/n = 1/2);
- the Gram matrix X^T X of a layer fluctuates about its mean on every PAIR of sites. Where pairs are uncorrelated the
  mean is small and the fluctuation is not: the relative excess of the mean squared Gram matrix is
  mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)), up to (S + 1) / (C k) for linear nets on white inputs.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.architectures import Sequential
from meanfield.theory.mean_field import forward_products, white_input
from meanfield.theory.prediction import input_products
from meanfield.theory.transport import Transport

Array = NDArray[np.float64]

EXCESS_PER_LAYER = 3.0


def finite_width_allowance(architecture: Sequential, inputs: ArrayLike | None = None) -> Array:
    """Relative deviation from the mean field granted to layers 1 .. L: (1 + Gram excess) exp(3 sum_{h<l} 1/C_h) - 1.

    The Gram excess is the worst of layers 1 .. l; with given ``inputs`` layer 1 has none, as its X^T X is fixed.
    """
    channels = np.array(architecture.channels_by_layer[1:], dtype=float)
    compounded = np.exp(EXCESS_PER_LAYER * (np.cumsum(1.0 / channels) - 1.0 / channels))
    worst = np.maximum.accumulate(_gram_excess(architecture, inputs))
    return np.asarray((1 + worst) * compounded - 1)


def _gram_excess(architecture: Sequential, inputs: ArrayLike | None) -> list[float]:
    """Relative excess of the mean squared Gram matrix of layers 1 .. L over its square at many channels.

    None for a single site: its input is normalised, and what its deeper layers have is in the compounding term.
    """
    if architecture.inputs * architecture.sites == 1:
        return [0.0] * architecture.depth
    sigma = architecture.sigma
    transport, product = input_products(architecture, inputs)
    products = forward_products(architecture, transport, product)
    found = [0.0 if inputs is not None else _excess(architecture, *white_input(architecture))]
    for below in islice(products, architecture.depth - 1):
        found.append(_excess(architecture, transport, transport.diagonal(below) / sigma.gain))
    widths = architecture.channels_by_layer[:-1]
    return [excess / (width * architecture.taps) for excess, width in zip(found, widths, strict=True)]


def _excess(architecture: Sequential, transport: Transport, covariance: Array) -> float:
    """Variance of sigma sigma' over its squared mean, both averaged over pairs of sites."""
    arguments = (*transport.variances(covariance), covariance)
    mean_square = transport.mean(architecture.sigma.product(*arguments) ** 2)
    return transport.mean(architecture.sigma.square_product(*arguments)) / mean_square - 1
