"""Covariance and tangent kernel of every value of any net without tied weights, at infinite width.

Each map carries them by itself (`meanfield.theory.maps`), and so do units: a branch that goes through weights of its
own is, channel by channel, independent of what it is added to, and so are the changes of both. So at a join

    c = c_s + a^2 c_b + a (m_s m_b' + m_b m_s'),    t = t_s + a^2 t_b,    m = m_s + a m_b

with m the means over channels of the stream s and of the branch b, which Gaussian ones do not have, rectified ones do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.machine import NUMBER_BYTES, require_bytes
from meanfield.common.validation import require_array, takes
from meanfield.nets.families.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.maps import Linear, Map
from meanfield.nets.net import Net
from meanfield.nets.units import Unit
from meanfield.theory.maps import TRANSPORTS
from meanfield.theory.maps.base import Kind, Kinds, NoTransport, abreast, count, given_kind, total
from meanfield.theory.mean_field.inputs import SITE_PAIR_ARRAYS, input_variance
from meanfield.theory.mean_field.transport import both_sides


@dataclass(frozen=True)
class ValueKernels:
    """Mean over the channels of a value of its covariance c and of its tangent kernel t, each (B, S, B, S).

    t(p, p') = (1/channels) sum_a Theta(a p, a p'), the mean of the diagonal over channels of the sum over all
    parameters below, each at learning rate 1, of the products of derivatives; of the order of the channels.
    """

    covariance: Array
    kernel: Array


@dataclass(frozen=True)
class Trail:
    """What stands below and behind every map of a unit, in their order.

    ``branch`` begins with the value that enters the branch, ``after`` with what the join makes; its last is the value
    of the unit.
    """

    branch: list[Kinds]
    after: list[Kinds]


@takes(Net)
def value_kernels(net: Net, inputs: ArrayLike | None = None) -> Iterator[ValueKernels]:
    """Yield those of values 1 .. D, and of the outputs of the readout, where there is one.

    Inputs (samples, channels, *grid), if given, are taken as they are; if not, as the Gaussian limit of the net's law.

    Raises:
        NoTransport: a weight that is used in several places, or, once it is reached, a map or a unit through which c
            and t do not close; it says which and why.
        ValueError: inputs of another shape, or whose law is known for nets of layers alone.
        MemoryError: more pairs than the machine has room for.
    """
    return (_mean_over_channels(trail.after[-1]) for trail in trails(net, inputs))


def trails(net: Net, inputs: ArrayLike | None = None) -> Iterator[Trail]:
    """Yield those of the units and of the readout, where there is one; the rest as `value_kernels`."""
    _require_untied(net)
    pairs = (net.inputs * net.sites) ** 2
    require_bytes(SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs, "the kernels of all pairs of sites", "grid or samples")
    return _walk(net, _input_law(net) if inputs is None else _given_inputs(net, inputs))


def _walk(net: Net, start: Kinds) -> Iterator[Trail]:
    last_use = {unit.skip: number for number, unit in enumerate(net.units) if unit.skip is not None}
    value, streams = start, {}
    for number, unit in enumerate(net.units):
        if number in last_use:
            streams[number] = value
        trail = _through(unit, f"unit {number + 1}", value, streams, net.grid)
        value = trail.after[-1]
        streams = {place: stream for place, stream in streams.items() if last_use[place] > number}
        yield trail
    if net.readout_unit is not None:
        yield _through(net.readout_unit, "the readout", value, {}, net.grid)


def _through(unit: Unit, name: str, below: Kinds, streams: dict[int, Kinds], grid: tuple[int, ...]) -> Trail:
    branch = _along(unit.branch, name, below, grid)
    joined = tuple(_scaled(kind, unit.multiplier) for kind in branch[-1])
    if unit.skip is not None:
        if not any(isinstance(member, Linear) for member in unit.branch):
            raise NoTransport(
                "its branch has no linear map of its own, so that it correlates with the value that it is added to, "
                "channel by channel; put one into the branch",
                name,
            )
        joined = tuple(_joined(*pair) for pair in abreast(streams[unit.skip], joined))
    return Trail(branch, _along(unit.after, name, joined, grid))


def _along(maps: Sequence[Map], name: str, kinds: Kinds, grid: tuple[int, ...]) -> list[Kinds]:
    passed = [kinds]
    for member in maps:
        try:
            passed.append(TRANSPORTS[type(member)](member, passed[-1], grid))
        except NoTransport as refusal:
            raise NoTransport(refusal.reason, name, member) from refusal
    return passed


def _joined(stream: Kind, branch: Kind) -> Kind:
    stream_here, stream_there = both_sides(stream.mean)
    here, there = both_sides(branch.mean)
    return Kind(
        stream.channels,
        stream.covariance + branch.covariance + stream_here * there + here * stream_there,
        stream.kernel + branch.kernel,
        stream.mean + branch.mean,
        stream.gaussian and branch.gaussian,
    )


def _scaled(kind: Kind, factor: float) -> Kind:
    if factor == 1.0:
        return kind
    covariance, kernel = factor**2 * kind.covariance, factor**2 * kind.kernel
    given = None if kind.given is None else factor * kind.given
    return replace(kind, covariance=covariance, kernel=kernel, mean=factor * kind.mean, given=given)


def _mean_over_channels(kinds: Kinds) -> ValueKernels:
    return ValueKernels(*(total(kinds, name) / count(kinds) for name in ("covariance", "kernel")))


def _require_untied(net: Net) -> None:
    readout = [] if net.readout_unit is None else [net.readout_unit]
    names = (weight.name for unit in [*net.units, *readout] for member in unit.maps for weight in member.weights)
    tied = [name for name, uses in Counter(names).items() if uses > 1]
    if tied:
        raise NoTransport(
            f"weight {tied[0]!r} is used in several places, so that values correlate across them; covariances of tied "
            "loops are in meanfield.theory.loops.covariance, of other tied nets they are not known"
        )


def _input_law(net: Net) -> Kinds:
    """White over samples and sites; of one size where they are normalised or lie on a sphere."""
    variance = 1.0
    if net.input_law == "normalised":
        if not isinstance(net, Sequential):
            raise ValueError("inputs normalised to a first layer are known for nets of layers alone; give inputs")
        variance = input_variance(net)
    shape = (net.inputs, net.sites)
    covariance = variance * np.eye(net.inputs * net.sites).reshape(shape * 2)
    return (Kind(net.first_channels, covariance, np.zeros_like(covariance), np.zeros(shape)),)


def _given_inputs(net: Net, inputs: ArrayLike) -> Kinds:
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    values = batch.reshape(net.inputs, net.first_channels, net.sites).swapaxes(0, 1)
    return (given_kind(values),)
