"""How far a finite net may stand from the mean field: the allowance that comparisons make, stated once.

Corrections of relative order 1/channels are left out of the mean field, and none is uniform:

- kernels of different layers fluctuate together, which compounds with depth like exp(3 l / C) (for one site and ReLU
  the exact recursion gives 3 l/n for 1 << l << n, and exp(3 l/n) covers it up to l/n = 1/2);
- gates of smooth activations depend on the energy that arrives, which fluctuates (`energy_responses`). Lognormal
  energies of variance N in log B_l multiply a mean by exp(N / 2). As much again is granted for what is of the same
  order and not followed: a gate shares the noise of its own layer, and changes along the activations, which are
  changes of energy, grow with it. Drawn means of the last layer of gelu and silu nets of one site, 4 to 16 layers at 64
  to 1024 units, lie between exp(0.3 N) and exp(1.4 N), of convolutional ones between exp(0.2 N) and exp(0.6 N). Where N
  is not small the allowance is wider than any claim, as it must be: rare draws then make the mean;
- under a pooled readout the gates above a layer fluctuate, too, which changes the label term of every layer, the first
  included, by about exp(2 sum_h 1/C_h) (`pooled_excess`);
- the Gram matrix X^T X of a layer fluctuates about its mean on every PAIR of sites. Where pairs are uncorrelated the
  mean is small and the fluctuation is not: the relative excess of the mean squared Gram matrix is
  mean(E[s^2 s'^2] - E[s s']^2) / (C k mean(E[s s']^2)), up to (S + 1) / (C k) for linear nets on white inputs.
"""

from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.validation import Array, takes
from meanfield.nets.layered import Sequential
from meanfield.theory.mean_field.fluctuations import gram_excess, layer_excesses
from meanfield.theory.mean_field.layers import input_products, white_input
from meanfield.theory.mean_field.whole_update import pooled_excess
from meanfield.verification.zhang_2026.plain_nets.energy_responses import log_energy_noise

# Excess of log F_l per layer over channels: ReLU's, by its exact recursion.
COMPOUNDING = 3.0


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
