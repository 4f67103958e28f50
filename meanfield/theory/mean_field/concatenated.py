"""The mean field of nets whose blocks are set beside what they read (`DenseNet`), at leading order in 1/growth.

A value is parts side by side: the first value, and what every block below made of all parts below it. A unit b of a
part keeps its pre-activation, and so its gate, at all values above: every later block that reads it meets the same
gate. Between a unit a of the new part j and a unit b of an older part i the kernel is what a's row of weights makes of
the kernel below, and a's own weights do not reach b,

    Theta_ab = sum_c W_ac s'(z_c) Theta_cb,   c over all units below; c = b: W_ab s'(z_b) K_i.

So its second moment depends on b's gate, and on that alone. Kept are, with b at the second site of pairs of sites,

    V_ji = E Theta_ab^2,   R_ji = E s'(z_b)^2 Theta_ab^2;   V_jj of two units of one part, which knows no gate.

Let part i have n_i channels, and all parts below block j together N; i' > i are newer parts, i' < i older ones. With
e = E s'^2 / q at one site and c, K, xx, g, h of docs/theory.md section 6 for every part, F = Pk / k, which moves the
first site alone, and ^T, which exchanges sites,

    c_j  = Tr(sum_i n_i xx_i) / (q k N),   K_j = Tr(sum_i n_i xx_i) + Tr(sum_i n_i g_i K_i) / (q k N)
    P_i  = sum_{i'>i} n_i' q e_i' V_i'i + q e_i (n_i V_ii + K_i^2) + sum_{i'<i} n_i' R_ii'^T
    Q_i  = sum_{i'>i} n_i' q e_i' R_i'i + q^2 n_i e_i e_i^T V_ii + h_i K_i^2 + q e_i^T sum_{i'<i} n_i' R_ii'^T
    V_ji = F P_i / (q N),   R_ji = F Q_i / (q N),   V_jj = Pk (sum_i n_i Q_i) Pk^T / (k q N)^2 .

A value of parts 0 .. l with N channels, at every feature of which labels have the second moment u / (q N), has

    F = mean over pairs of sum_i [ n_i K_i^2 + n_i^2 V_ii + sum_{i'<i} n_i n_i' (V_ii' + V_ii'^T) ] / N^2
    B by pairs of sum_i [ q e_i^T (n_i K_i^2 + n_i^2 V_ii) + sum_{i'<i} n_i n_i' (R_ii' + q e_i^T V_ii'^T) ] u / (q N^3)

and from a value of N' = N + g channels down u <- (N u' + g Pk^T (e u') / k) / N', e that of the part that is left out.

Source: docs/theory.md section 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.machine import NUMBER_BYTES, progress, require_bytes, seconds_refusal
from meanfield.common.validation import Array, takes
from meanfield.nets.dense import DenseNet
from meanfield.theory.mean_field.layers import UnitTerms, input_products, label_weight_above
from meanfield.theory.two_points import Transport

# Arrays over pairs of sites that are held for every part.
ARRAYS_PER_PART = 16
# Of a processor, for a pair of sites of a part that a block reads.
PART_SECONDS = 8e-7


@takes(DenseNet)
def concatenated_profiles(net: DenseNet, inputs: ArrayLike | None = None) -> tuple[Array, Array]:
    """F_l of depth units l = 1 .. L and the label term at every site: (L,) and (L, S).

    The latter is for independent labels of variance 1 under a readout that is not pooled.

    Raises:
        ValueError: inputs of another shape, or so many values that it takes hours.
        MemoryError: more pairs of sites at so many values than the machine can hold.

    Source: docs/theory.md section 8.
    """
    plain = net.plain
    transport, product = input_products(plain, inputs)
    require_bytes(
        ARRAYS_PER_PART * NUMBER_BYTES * product.size * (len(net.units) + 1),
        "the mean field of all values that blocks read",
        "grid, samples or depth",
    )
    what = f"the mean field of {len(net.units):,} values, each of which reads all below it,"
    if why := seconds_refusal(PART_SECONDS * product.size * len(net.units) ** 2 / 2, what, "lower grid or depth"):
        raise ValueError(why)
    walked = progress(_terms(net, transport, product), len(net.units), "unit")
    by_unit = [(transport.mean(pairs.overlap), transport.mean_by_site(pairs.label)) for pairs in walked]
    overlap, label = map(np.array, zip(*by_unit, strict=True))
    places, outputs = net.inputs * net.sites, plain.output_units * net.inputs
    return overlap, (np.array(net.value_channels[1:]) * places)[:, None] * label / outputs**2


def _terms(net: DenseNet, transport: Transport, product: Array) -> Iterator[UnitTerms]:
    """The terms of every depth unit, by pair of sites."""
    covariances = list(_covariances(net, transport, product))
    weights = _label_weights(net, transport, covariances)
    value = _Value.of_input(net, transport, product)
    for number, covariance in enumerate(covariances):
        value = value.above(number, covariance)
        yield value.terms(transport.at_second(weights[number]))


def _covariances(net: DenseNet, transport: Transport, product: Array) -> Iterator[Array]:
    """c of the part that every depth unit makes."""
    sigma, channels = net.plain.sigma, net.value_channels
    features = channels[0] * product  # the sum of xx over all channels of the value below
    for number in range(len(net.units)):
        covariance = transport.diagonal(features) / (sigma.gain * channels[number])
        yield covariance
        own = sigma.product(*transport.variances(covariance), covariance)
        features = net.growth * own + features if number >= net.stem else channels[number + 1] * own


def _label_weights(net: DenseNet, transport: Transport, covariances: list[Array]) -> list[Array]:
    """u / N of values 1 .. L, by site."""
    plain, channels, sigma = net.plain, net.value_channels, net.plain.sigma
    sent = [label_weight_above(plain, len(covariances), None)]
    for number in range(len(covariances) - 1, 0, -1):
        variance = transport.own(covariances[number])
        gates = np.ones(()) if sigma.homogeneous else sigma.gate_product(variance, variance, variance) / sigma.gain
        arriving = label_weight_above(plain, number, gates * sent[-1])
        share = net.growth / channels[number + 1]
        sent.append((1 - share) * sent[-1] + share * arriving if number >= net.stem else arriving)
    return [weight / count for weight, count in zip(reversed(sent), channels[1:], strict=True)]


# What a value has of every part.
STACKED = (
    "channels",
    "features",
    "kernel",
    "same",
    "gate",
    "gate_square",
    "here",
    "there",
    "newer",
    "newer_gated",
    "older",
)


@dataclass(frozen=True)
class _Value:
    """A value, as parts: arrays over pairs of sites with the parts in front.

    Attributes:
        channels: n_i, broadcastable.
        features, kernel, same: xx_i, K_i, V_ii.
        gate, gate_square: g_i, h_i.
        here, there: e_i at the first and at the second site.
        newer, newer_gated: sum_{i'>i} n_i' q e_i' V_i'i, and of R_i'i.
        older: sum_{i'<i} n_i' R_ii'^T.
        pairs, gated_pairs: sum_i sum_{i'<i} n_i n_i' V_ii', and of R_ii'; labelled_pairs: of q e_i V_ii'^T, e_i at the
            second site.
    """

    net: DenseNet
    transport: Transport
    channels: Array
    features: Array
    kernel: Array
    same: Array
    gate: Array
    gate_square: Array
    here: Array
    there: Array
    newer: Array
    newer_gated: Array
    older: Array
    pairs: Array
    gated_pairs: Array
    labelled_pairs: Array

    @classmethod
    def of_input(cls, net: DenseNet, transport: Transport, product: Array) -> _Value:
        """The input, which nothing moves, so that its gates do not matter."""
        still, open_gate = np.zeros_like(product), np.ones_like(product)
        gates = dict.fromkeys(("gate", "gate_square", "here", "there"), open_gate)
        return cls._alone(net, transport, net.first_channels, features=product, kernel=still, same=still, **gates)

    @classmethod
    def _alone(cls, net: DenseNet, transport: Transport, channels: int, **moments: Array) -> _Value:
        """A value of one part."""
        still = np.zeros_like(moments["kernel"])
        sums = dict.fromkeys(("newer", "newer_gated", "older"), still)
        stacked = {name: values[None] for name, values in (moments | sums).items()}
        pairs = dict.fromkeys(("pairs", "gated_pairs", "labelled_pairs"), still)
        return cls(net, transport, channels=np.full((1,) * (still.ndim + 1), float(channels)), **stacked, **pairs)

    @property
    def count(self) -> float:
        """N."""
        return float(self.channels.sum())

    def above(self, number: int, covariance: Array) -> _Value:
        """The value of depth unit ``number``, counted from 0, whose own part has this covariance."""
        net, transport, gain = self.net, self.transport, self.net.plain.sigma.gain
        scale, square = gain * self.count, self.kernel**2
        met = self.newer + gain * self.here * (self.channels * self.same + square) + self.older
        met_gated = self.newer_gated + gain * self.there * self.older + self.gate_square * square
        met_gated += gain**2 * self.channels * self.here * self.there * self.same
        kernel = net.plain.taps * transport.diagonal(self._summed(self.features))
        kernel = kernel + transport.diagonal(self._summed(self.gate * self.kernel)) / scale
        same = transport.independent(self._summed(met_gated)) / scale**2
        new = self._part(net.width if number < net.stem else net.growth, covariance, kernel, same)
        if number < net.stem:
            return new
        between, gated = transport.first(met) / scale, transport.first(met_gated) / scale
        sent, channels = new.channels * gain * new.here, float(net.growth)
        below = replace(self, newer=self.newer + sent * between, newer_gated=self.newer_gated + sent * gated)
        own = replace(new, older=transport.transpose(self._summed(gated))[None])
        both: dict[str, Any] = {name: np.concatenate([getattr(below, name), getattr(own, name)]) for name in STACKED}
        return replace(
            below,
            **both,
            pairs=self.pairs + channels * self._summed(between),
            gated_pairs=self.gated_pairs + channels * self._summed(gated),
            labelled_pairs=self.labelled_pairs
            + channels * gain * new.there[0] * transport.transpose(self._summed(between)),
        )

    def _summed(self, moments: Array) -> Array:
        """sum_i n_i of the moments of parts."""
        return np.asarray((self.channels * moments).sum(axis=0))

    def _part(self, channels: int, covariance: Array, kernel: Array, same: Array) -> _Value:
        """A value of one part, of Gaussians of this covariance."""
        sigma, sides = self.net.plain.sigma, self.transport.variances(covariance)
        here, there = (np.broadcast_to(sigma.gate_product(v, v, v) / sigma.gain, covariance.shape) for v in sides)
        return self._alone(
            self.net,
            self.transport,
            channels,
            features=sigma.product(*sides, covariance),
            kernel=kernel,
            same=same,
            gate=sigma.gate_product(*sides, covariance),
            gate_square=sigma.gate_square_product(*sides, covariance),
            here=here,
            there=there,
        )

    def terms(self, weight: Array) -> UnitTerms:
        """F and the label term's summand by pair of sites, for labels that send u / N, by second site."""
        own = self.channels * self.kernel**2 + self.channels**2 * self.same
        overlap = own.sum(axis=0) + self.pairs + self.transport.transpose(self.pairs)
        gain = self.net.plain.sigma.gain
        label = (gain * self.there * own).sum(axis=0) + self.gated_pairs + self.labelled_pairs
        return UnitTerms(overlap / self.count**2, weight * label / (gain * self.count**2))
