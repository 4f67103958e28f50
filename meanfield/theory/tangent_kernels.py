"""Covariance and tangent kernel of every value of any net without tied weights, at infinite width, and the largest
curvature of a loss that follows from those of the outputs.

Each map carries them by itself (`meanfield.theory.maps`), and so do units: a branch that goes through weights of its
own is, channel by channel, independent of what it is added to, and so are the changes of both. So at a join

    c = c_s + a^2 c_b + a (m_s m_b' + m_b m_s'),    t = t_s + a^2 t_b,    m = m_s + a m_b

with m the means over channels of the stream s and of the branch b, which Gaussian ones do not have, rectified ones
do. Where a unit sets both side by side, its value has channels of either kind.

Curvature, at initialisation, at leading order in 1/channels, for given inputs: between output channels the tangent
kernel is smaller than within one, where it is t(p, p') over pairs of samples and output sites. So J J^T H is t x 1
times H. Under squared loss H is 1 / (M B T), and lambda_max = eig_max(t) / (M B T). Under cross-entropy H = (diag(p)
- p p^T) / (B T) at every sample and site, p the softmax of outputs that are Gaussian of a known covariance between
points, alike and independent over channels: the average over them is taken by drawing them, from one fixed seed.
Where outputs are small, p is 1/M and lambda_max = eig_max(t) / (M B T) again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import softmax

from meanfield.common.machine import NUMBER_BYTES, require_bytes
from meanfield.common.seeds import stream
from meanfield.common.validation import Array, require_array, takes
from meanfield.nets.layered import INPUT_LAYOUT, Sequential
from meanfield.nets.maps import Map
from meanfield.nets.net import Chain, Net, Unit
from meanfield.theory.maps import (
    TRANSPORTS,
    ChannelKind,
    Kinds,
    NoTransport,
    abreast,
    both_sides,
    count,
    given_kind,
    not_through,
    total,
)
from meanfield.theory.mean_field.layers import SITE_PAIR_ARRAYS, input_variance


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
    tops = (trail.after[-1] for trail in trails(net, inputs))
    return (ValueKernels(*(total(top, name) / count(top) for name in ("covariance", "kernel"))) for top in tops)


def trails(net: Net, inputs: ArrayLike | None = None) -> Iterator[Trail]:
    """Yield those of the units and of the readout, where there is one; the rest as `value_kernels`."""
    _require_untied(net)
    pairs = (net.inputs * net.sites) ** 2
    require_bytes(SITE_PAIR_ARRAYS * NUMBER_BYTES * pairs, "the kernels of all pairs of sites", "grid or samples")
    return _walk(net, _input_law(net) if inputs is None else _given_inputs(net, inputs))


def _walk(net: Net, start: Kinds) -> Iterator[Trail]:
    last_use = {unit.skip: number for number, unit in enumerate(net.units) if unit.skip is not None}
    value, streams, grids = start, {}, net.value_grids
    for number, unit in enumerate(net.units):
        if number in last_use:
            streams[number] = value
        source = None if unit.skip is None else (streams[unit.skip], grids[unit.skip])
        trail = _through(unit, f"unit {number + 1}", (value, grids[number]), source)
        value = trail.after[-1]
        streams = {place: stream for place, stream in streams.items() if last_use[place] > number}
        yield trail
    if net.readout_unit is not None:
        yield _through(net.readout_unit, "the readout", (value, grids[-1]), None)


# A value's kinds, and its grid.
OnGrid = tuple[Kinds, tuple[int, ...]]


def _through(unit: Unit, name: str, below: OnGrid, source: OnGrid | None) -> Trail:
    branch, grid = _along(unit.branch, name, *below)
    joined = tuple(_scaled(kind, unit.multiplier) for kind in branch[-1])
    if unit.concatenates and source is not None:
        joined = (*source[0], *joined)
    elif source is not None:
        if not any(member.mixes_channels for member in unit.branch):
            raise NoTransport(
                "its branch has no linear map of its own, so that it correlates with the value that it is added to, "
                "channel by channel; put one into the branch",
                name,
            )
        skipped, _ = _along(unit.shortcut, name, *source)
        joined = tuple(_joined(*pair) for pair in abreast(skipped[-1], joined))
    return Trail(branch, _along(unit.after, name, joined, grid)[0])


def _along(maps: Sequence[Map], name: str, kinds: Kinds, grid: tuple[int, ...]) -> tuple[list[Kinds], tuple[int, ...]]:
    """What stands below and behind every map, and the grid behind the last."""
    passed = [kinds]
    for member in maps:
        try:
            passed.append(TRANSPORTS.get(type(member), not_through)(member, passed[-1], grid))
        except NoTransport as refusal:
            raise NoTransport(refusal.reason, name, member) from refusal
        grid = member.grid_above(grid)
    return passed, grid


def _joined(stream: ChannelKind, branch: ChannelKind) -> ChannelKind:
    stream_here, stream_there = both_sides(stream.mean)
    here, there = both_sides(branch.mean)
    return ChannelKind(
        stream.channels,
        stream.covariance + branch.covariance + stream_here * there + here * stream_there,
        stream.kernel + branch.kernel,
        stream.mean + branch.mean,
        stream.gaussian and branch.gaussian,
    )


def _scaled(kind: ChannelKind, factor: float) -> ChannelKind:
    if factor == 1.0:
        return kind
    covariance, kernel = factor**2 * kind.covariance, factor**2 * kind.kernel
    given = None if kind.given is None else factor * kind.given
    return replace(kind, covariance=covariance, kernel=kernel, mean=factor * kind.mean, given=given)


def _require_untied(net: Net) -> None:
    readout = [] if net.readout_unit is None else [net.readout_unit]
    names = (weight.name for unit in [*net.units, *readout] for member in unit.maps for weight in member.weights)
    tied = [name for name, uses in Counter(names).items() if uses > 1]
    if tied:
        raise NoTransport(
            f"weight {tied[0]!r} is used in several places, so that values correlate across them; covariances of tied "
            "loops are in meanfield.theory.loops, of other tied nets they are not known"
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
    return (ChannelKind(net.first_channels, covariance, np.zeros_like(covariance), np.zeros(shape)),)


def _given_inputs(net: Net, inputs: ArrayLike) -> Kinds:
    batch = require_array("inputs", inputs, net.input_shape, INPUT_LAYOUT)
    values = batch.reshape(net.inputs, net.first_channels, net.sites).swapaxes(0, 1)
    return (given_kind(values),)


# Outputs that are drawn for the average under cross-entropy; one draw spreads by some 10 to 30 %.
OUTPUT_DRAWS = 256
# Modes of the kernel below this share of its largest are left out; what they hold of lambda_max is less.
SMALLEST_MODE = 1e-9
# Relative residual of an eigenvalue.
TOLERANCE = 1e-6


def mean_field_curvatures(net: Net, inputs: ArrayLike, loss: str) -> Array:
    """lambda_max of J^T H J on a given batch (samples, channels, *grid), for every draw of the outputs.

    One number under squared loss, for which the outputs do not matter.

    Raises:
        NoTransport: nets whose covariance and tangent kernel do not close; a ValueError.
        ValueError: inputs of another shape.
        MemoryError: more pairs of samples and sites than there is room for.
        OverflowError: they leave the range of floats.

    Source: docs/theory.md section 21.
    """
    batch = np.asarray(inputs, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # an error is raised instead
        *_, top = value_kernels(Chain.of(net, inputs=len(batch)), batch)
    points = top.kernel.shape[0] * top.kernel.shape[1]
    kernel, covariance = (pairs.reshape(points, points) for pairs in (top.kernel, top.covariance))
    if not (np.isfinite(kernel).all() and np.isfinite(covariance).all()):
        raise OverflowError("covariance or tangent kernel leave the range of floats; give inputs of the size of 1")
    if loss == "squared":
        largest = eigh(kernel, eigvals_only=True, subset_by_index=[points - 1, points - 1])
        return np.asarray(largest / (net.output_shape[1] * points))
    root = _modes(kernel)
    outputs = _modes(covariance)
    drawn = [
        outputs @ stream(0, "mean-field outputs", draw).standard_normal((outputs.shape[1], net.output_shape[1]))
        for draw in range(OUTPUT_DRAWS)
    ]
    return np.array([_largest(root, softmax(values, axis=1)) for values in drawn]) / points


def _modes(matrix: Array) -> Array:
    """R with R R^T = the matrix, one column for every mode that matters."""
    sizes, vectors = np.linalg.eigh(matrix)
    kept = sizes > SMALLEST_MODE * sizes[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(sizes[kept]))


def _largest(root: Array, shares: Array) -> float:
    """The largest eigenvalue of R^T (diag(p) - p p^T) R over modes and channels, p (points, channels)."""
    modes, channels = root.shape[1], shares.shape[1]

    def product(flat: Array) -> Array:
        weighted = shares * (root @ flat.reshape(modes, channels))
        return np.asarray(root.T @ (weighted - shares * weighted.sum(axis=1, keepdims=True))).ravel()

    size = modes * channels
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    # A fixed start without symmetry: the vector of ones is of no curvature.
    start = np.cos(np.arange(size) ** 2.0 + 1)
    if not product(start).any():  # a softmax of 0 and 1 alone, or a kernel of 0
        return 0.0
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0])
