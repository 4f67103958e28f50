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

Label and output term of nets whose blocks concatenate, by the errors that come down and the changes that go up.

What a step does to a part of a value it does to that part of all values above. So the terms of a value are means over
its parts i, weighted by their channels n_i, of what `meanfield.theory.mean_field.label_term` and
`meanfield.theory.mean_field.output_term` have for a layer: with the errors of the value at which a part is made, which
are those of all blocks above that read it, and of the readout. In the letters of these modules, with N channels of the
value below block j, g those of the block, and values counted by their last part,

    c_j, K_j        from means over the parts below, as above
    C_{j-1} = C_j + g / (q N k) sum_D S_D^T [g_j C_j + E s' H s' H] S_D
    mu_{j-1} = mu_j + g / (q N k) sum_D S_D^T E[d(s' H) / dz] S_D
    Y_j = 1 / (q N k) sum_D S_D sum_i n_i {what a layer hands on}_i,   R_j likewise
    A, B of a value = sum_i n_i {Y_i + ..}_i / N .

The gates that a unit keeps enter by its own change: the error of a unit passes the gate that its change passes.

Source: docs/theory.md section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.machine import NUMBER_BYTES, progress, require_bytes, seconds_refusal
from meanfield.common.validation import Array, takes
from meanfield.nets.dense import DenseNet
from meanfield.theory.mean_field.label_term import (
    LayerAverages,
    LayerKernel,
    batch_points,
    errors_below,
    label_term_refusal,
    output_covariance,
    quadratic_sums,
)
from meanfield.theory.mean_field.layers import UnitTerms, input_products, label_weight_above, require_floats
from meanfield.theory.mean_field.output_term import Drive, drive_of, output_term_refusal
from meanfield.theory.mean_field.whole_update import LogTerms
from meanfield.theory.two_points import Points, Transport

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


def concatenated_terms(net: DenseNet, inputs: ArrayLike | None = None) -> LogTerms:
    """The terms of a net under plain labels and the squared loss.

    Raises:
        OverflowError: a term outside the range of floats.
        MemoryError: more pairs of points at so many values than the machine can hold.
    """
    output: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):  # seen below
        overlap, profiles = concatenated_profiles(net, inputs)
        label: Array | None = profiles
        if net.is_pooled:
            label = None if concatenated_label_refusal(net, inputs) else concatenated_label_profiles(net, inputs)
        if not concatenated_output_refusal(net, inputs):
            output = concatenated_output_profiles(net, inputs)
    require_floats(net, overlap, *(term.mean(axis=1) for term in (label, output) if term is not None))
    with np.errstate(divide="ignore"):  # at sites that nothing reaches
        return LogTerms(np.log(overlap), *(None if term is None else np.log(term) for term in (label, output)))


def concatenated_label_refusal(net: DenseNet, inputs: ArrayLike | None = None) -> str:
    """Why no label term is predicted for this net with this input, and what to take; empty if one is."""
    return "" if not net.is_pooled else _of_dense(label_term_refusal(net.plain, inputs), net)


def concatenated_output_refusal(net: DenseNet, inputs: ArrayLike | None = None) -> str:
    """Why no output term is predicted for this net with this input, and what to take; empty if one is."""
    return _of_dense(output_term_refusal(net.plain, inputs), net)


def _of_dense(refusal: str, net: DenseNet) -> str:
    return refusal.replace(type(net.plain).__name__, type(net).__name__)


@takes(DenseNet)
def concatenated_label_profiles(net: DenseNet, inputs: ArrayLike | None = None) -> Array:
    """The label term of depth units 1 .. L at every site, for independent labels of variance 1, any readout: (L, S).

    `concatenated_profiles` has that of readouts that are not pooled, for smooth gates at any points.

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many values than the machine can hold.
    """
    if why := _of_dense(label_term_refusal(net.plain, inputs), net):
        raise ValueError(why)
    walk = _Walk.of(net, inputs)
    labels = walk.points.labels(np.eye(net.inputs)[:, :, None], not net.output_grid)
    return walk.profiles(walk.fresh(errors_below(net.plain, walk.points, labels)))


@takes(DenseNet)
def concatenated_output_profiles(net: DenseNet, inputs: ArrayLike | None = None) -> Array:
    """The output term of depth units 1 .. L at every site, while outputs over channels stay fixed: (L, S).

    Raises:
        ValueError: a net or an input whose averages do not close, saying why.
        MemoryError: more pairs of points at so many values than the machine can hold.
    """
    if why := concatenated_output_refusal(net, inputs):
        raise ValueError(why)
    walk = _Walk.of(net, inputs)
    drive = drive_of(net.plain, walk.points)
    along = walk.down(drive.top(), lambda number, above: drive.below(walk.parts[number].averages, above))
    driven = [drive.square(part.averages, each) for part, each in zip(walk.parts, along, strict=True)]
    outputs = errors_below(net.plain, walk.points, walk.outputs)
    fresh, coherent = walk.fresh(outputs, driven), walk.coherent(drive, along)
    return walk.profiles(first + second for first, second in zip(fresh, coherent, strict=True))


@dataclass(frozen=True)
class _Walk:
    """The parts that depth units make, from the input up, each with its averages and kernel; ``features`` is what the
    readout sees of the last value, sum_i n_i xx_i / N."""

    net: DenseNet
    points: Points
    parts: list[LayerKernel]
    features: Array

    @classmethod
    def of(cls, net: DenseNet, inputs: ArrayLike | None) -> _Walk:
        points, product = batch_points(net.plain, inputs)
        gain, taps, parts = net.plain.sigma.gain, net.plain.taps, []
        features, carried = net.first_channels * product, np.zeros_like(product)
        for number, channels in enumerate(net.value_channels[:-1]):
            own = points.diagonal(features)
            averages = LayerAverages.at(net.plain, points, own / (gain * channels))
            parts.append(LayerKernel(averages, taps * own + points.diagonal(carried) / (gain * channels)))
            made, kept = cls._made(net, number), number >= net.stem
            features = made * averages.product + kept * features
            carried = made * averages.gate * parts[-1].kernel + kept * carried
        return cls(net, points, parts, features / net.value_channels[-1])

    @staticmethod
    def _made(net: DenseNet, number: int) -> int:
        """Channels of the part that depth unit ``number`` makes."""
        return net.growth if number >= net.stem else net.width

    @property
    def outputs(self) -> Array:
        """The covariance of an output channel."""
        last = self.parts[-1].averages
        return output_covariance(self.net.plain, self.points, LayerAverages(last.covariance, last.gate, self.features))

    def down(self, top: Array, below: Callable[[int, Array], Array]) -> list[Array]:
        """What arrives at values 1 .. L, from the last one: what the readout sends, and what each block adds.

        ``below`` makes of what arrives at a value what the part of the depth unit of this number sends, for weights of
        variance 1 / taps.
        """
        arriving = [top]
        for number in range(len(self.parts) - 1, 0, -1):
            scale = self._made(self.net, number) / (self.net.plain.sigma.gain * self.net.value_channels[number])
            added = scale * below(number, arriving[-1])
            arriving.append(arriving[-1] + added if number >= self.net.stem else added)
        return arriving[::-1]

    def fresh(self, top: Array, driven: list[Array] | None = None) -> Iterator[Array]:
        """The terms of errors of covariance ``top`` that arrive at the last value, by point."""

        def below(number: int, errors: Array) -> Array:
            gated = self.parts[number].averages.gate * errors
            return self.points.pulled_back(gated + driven[number] if driven else gated)

        errors, carried, total = self.down(top, below), self.points.constant(0.0), self.points.constant(0.0)
        for number, (part, arriving) in enumerate(zip(self.parts, errors, strict=True)):
            energy = self._moved(carried, number)
            own, _ = self.points.variances(part.averages.gate)
            direct, gated = quadratic_sums(self.net.plain.sigma, self.points, part, arriving)
            made, kept = self._made(self.net, number), number >= self.net.stem
            carried = made * (own * energy + gated) + kept * carried
            total = made * (energy + direct) + kept * total
            yield total / self.net.value_channels[number + 1]

    def coherent(self, drive: Drive, along: list[Array]) -> Iterator[Array]:
        """What outputs that are as many as channels add along the features, by point."""
        gain, carried, total = self.net.plain.sigma.gain, self.points.constant(0.0), self.points.constant(0.0)
        with_features = np.zeros_like(self.features)
        for number, (part, drives) in enumerate(zip(self.parts, along, strict=True)):
            energy = self._moved(carried, number)
            with_z = self.points.diagonal(with_features) / (gain * self.net.value_channels[number])
            change = drive.change(part.averages, drives, part.kernel, with_z)
            made, kept = self._made(self.net, number), number >= self.net.stem
            carried = made * (gain * energy + change.gated_energy) + kept * carried
            with_features = made * change.gated_with_features + kept * with_features
            total = made * (energy + change.energy) + kept * total
            yield total / self.net.value_channels[number + 1]

    def _moved(self, carried: Array, number: int) -> Array:
        """Y of the part that depth unit ``number`` makes."""
        return self.points.moved(carried) / (self.net.plain.sigma.gain * self.net.value_channels[number])

    def profiles(self, terms: Iterator[Array]) -> Array:
        """Terms by point as (L, S)."""
        return np.broadcast_to([self.points.by_site(term) for term in terms], (len(self.parts), self.net.sites))
