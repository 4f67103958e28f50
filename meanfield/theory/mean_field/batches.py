"""Mean field of the label term when errors of different samples are correlated: a quadratic form over pairs of samples.

With errors e_ti of covariance Sigma_ij between samples i, j at the same output coordinate (0 between coordinates),

    B_l = mean over observed (a, r) of sum_ij Sigma_ij E[(Theta J^T)_{ar,i} . (Theta J^T)_{ar,j}] / (M B)^2.

At leading order in 1/channels it takes, beside c and K of `meanfield.theory.mean_field.layers`, for samples i and j
that are both seen from r, at displacements between sites as there,

    V_ij <- Pk [ V_ij w_ij + h K_ri K_rj / (q^2 n) ] Pk^T / k^2     w_ij = E[s'(r)^2] E[s'(i) s'(j)] / q^2
                                                                    h = E[s'(r)^2 s'(i) s'(j)]
    W_ij <- E[s'(i) s'(j)] / q  W_ij Pk / k                         (of E[J^T Sigma J], from W = Sigma at the outputs)
    B_l = n_l places mean_{r,i} sum_j W_ij (K_ri K_rj / n_l + V_ij) / (M B)^2

(with f^2 in V and f in W for weights whose variance is f times the fan-in rule's). Labels of mean 0 that are
independent, Sigma = I, need i = j alone, and the plain label term returns. Averages over three gates are known for ReLU
(an orthant probability) and linear units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.common.arrays import Array
from meanfield.nets.families.layered import Sequential
from meanfield.theory.mean_field.layers import LayerMoments, forward_moments, label_weights, layer_moments
from meanfield.theory.mean_field.transport import SitePairs, Transport


@dataclass(frozen=True)
class GivenSample:
    """A sample j beside sample i of every pair (r, i): number ``place`` of a batch of which all pairs are kept."""

    place: int

    def observed(self, pairs: Array) -> Array:
        """A(r, j), broadcastable to the pairs (r, i)."""
        return pairs[:, :, self.place, None, :]

    def joint(self, pairs: Array) -> Array:
        """A(i, j) at one site, broadcastable to (i, site)."""
        return np.einsum("ipp->ip", pairs[:, :, self.place, :])

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        """A(i, i) and A(j, j) at one site, broadcastable to (i, site)."""
        own = np.einsum("ipip->ip", pairs)
        return own, own[self.place]

    def error_covariance(self, errors: Array) -> Array:
        """Sigma_ij of errors (B, B, S or 1), broadcastable to (i, site)."""
        return errors[:, self.place]

    def mean(self, pairs: Array) -> float:
        """Average over r, i and both sites, times the samples that this partner stands for."""
        return float(pairs.mean())


@dataclass(frozen=True)
class AlikeSample:
    """As `GivenSample`, under `Displacements`, where samples are alike: i itself, or any ``other`` one."""

    samples: int
    other: bool

    def observed(self, pairs: Array) -> Array:
        return pairs[1] if self.other else pairs

    def joint(self, pairs: Array) -> Array:
        return np.asarray(pairs[int(self.other), 0])

    def variances(self, pairs: Array) -> tuple[Array, Array]:
        return np.asarray(pairs[0, 0]), np.asarray(pairs[0, 0])

    def error_covariance(self, errors: Array) -> Array:
        return np.asarray(errors[0, int(self.other), 0])

    def mean(self, pairs: Array) -> float:
        """Of the ordered pairs i != j, 2 (B - 1) hold r, and which of the two is r makes no difference."""
        averages = pairs.mean(axis=1)
        if not self.other:
            return float((averages[0] + (self.samples - 1) * averages[-1]) / self.samples)
        return float((self.samples - 1) * (2 * averages[0] + (self.samples - 2) * averages[1]) / self.samples)


Partner = GivenSample | AlikeSample


def partners(net: Sequential, transport: Transport) -> list[Partner]:
    """Every sample, or under `Displacements` what one sample can be to another."""
    if isinstance(transport, SitePairs):
        return [GivenSample(place) for place in range(net.inputs)]
    return [AlikeSample(net.inputs, other) for other in (False, True)[: net.inputs]]


def correlated_label_term(net: Sequential, transport: Transport, input_product: Array, errors: Array) -> Array:
    """B_1 .. B_L for errors of covariance Sigma_ij between samples: (B, B, S or 1), or of two alike samples.

    Raises:
        ValueError: an activation for which averages over three gates are not known.
    """
    terms = [
        _partner_terms(net, transport, input_product, partner, partner.error_covariance(errors))
        for partner in partners(net, transport)
    ]
    return np.asarray(sum(terms))


def _partner_terms(net: Sequential, transport: Transport, product: Array, partner: Partner, covariance: Array) -> Array:
    """What one partner adds to B_1 .. B_L."""
    gates = [
        net.sigma.gate_product(*partner.variances(c), partner.joint(c)) / net.sigma.gain
        for _, c in forward_moments(net, transport, product)
    ]
    by_layer = zip(
        net.channels_by_layer[1:],
        _overlaps(net, transport, product, partner, gates),
        label_weights(net, gates, covariance),
        strict=True,
    )
    means = np.array([channels * partner.mean(pairs * weight) for channels, pairs, weight in by_layer])
    return means * net.inputs * net.sites / (net.output_units * net.inputs) ** 2


def _overlaps(
    net: Sequential, transport: Transport, product: Array, partner: Partner, gates: list[Array]
) -> Iterator[Array]:
    """K_ri K_rj / n + V_ij of layers 1 .. L for every pair (r, i)."""
    gain, cross, widths = net.sigma.gain, np.zeros_like(product), net.channels_by_layer
    below: LayerMoments | None = None
    for place, moments in enumerate(layer_moments(net, transport, product)):
        if below is not None:
            here, _ = transport.variances(below.covariance)
            gates_on = net.sigma.gate_product(here, here, here) / gain
            kernels = below.kernel * partner.observed(below.kernel)
            fluctuation = _three_gates(net, transport, partner, below.covariance) * kernels
            carried = gates_on * gates[place - 1] * cross + fluctuation / (gain**2 * widths[place])
            cross = net.layers[place].variance_factor ** 2 * transport.independent(carried)
        yield moments.kernel * partner.observed(moments.kernel) / widths[place + 1] + cross
        below = moments


def _three_gates(net: Sequential, transport: Transport, partner: Partner, covariance: Array) -> Array:
    """h for every pair (r, i)."""
    sigma = net.sigma
    if sigma.triple is None:
        raise ValueError(
            f"activation is {net.activation!r}; labels that are correlated between samples take an average over three "
            "gates, which is known for 'relu' and 'linear': use these, or independent labels of mean 0"
        )
    here, _ = transport.variances(covariance)
    variances = (here, *partner.variances(covariance))
    return sigma.gate_triple(variances, (covariance, partner.observed(covariance), partner.joint(covariance)))
