"""Label and output term of nets whose blocks concatenate, by the errors that come down and the changes that go up.

What a step does to a part of a value it does to that part of all values above. So the terms of a value are means over
its parts i, weighted by their channels n_i, of what `meanfield.theory.mean_field.label_term` and
`meanfield.theory.mean_field.output_term` have for a layer: with the errors of the value at which a part is made, which
are those of all blocks above that read it, and of the readout. In the letters of these modules, with N channels of the
value below block j, g those of the block, and values counted by their last part,

    c_j, K_j        from means over the parts below, as in `meanfield.theory.mean_field.concatenated`
    C_{j-1} = C_j + g / (q N k) sum_D S_D^T [g_j C_j + E s' H s' H] S_D
    mu_{j-1} = mu_j + g / (q N k) sum_D S_D^T E[d(s' H) / dz] S_D
    Y_j = 1 / (q N k) sum_D S_D sum_i n_i {what a layer hands on}_i,   R_j likewise
    A, B of a value = sum_i n_i {Y_i + ..}_i / N .

The gates that a unit keeps enter by its own change: the error of a unit passes the gate that its change passes.

Source: docs/theory.md section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.validation import Array, takes
from meanfield.nets.dense import DenseNet
from meanfield.theory.mean_field.concatenated import concatenated_profiles
from meanfield.theory.mean_field.label_term import (
    LayerAverages,
    LayerKernel,
    batch_points,
    errors_below,
    label_term_refusal,
    output_covariance,
    quadratic_sums,
)
from meanfield.theory.mean_field.layers import require_floats
from meanfield.theory.mean_field.output_term import Drive, drive_of, output_term_refusal
from meanfield.theory.mean_field.whole_update import LogTerms
from meanfield.theory.two_points import Points


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

    `meanfield.theory.mean_field.concatenated` has that of readouts that are not pooled, for smooth gates at any points.

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
