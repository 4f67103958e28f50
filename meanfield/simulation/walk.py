"""The forward pass of a residual stream, one unit at a time and far beyond the range of floats.

A residual stream is a net whose units all add to the value just below,

    h_u = h_{u-1} + a_u r_u,   r_u = branch_u(h_{u-1}),

for D draws at once, (D, C, B, S). Units below the first that adds, such as an embedding, make h_0 of the inputs; a
readout is not looked at. Streams may grow beyond the range of floats (|h|^2 ~ 2^u and more where a = 1). They
are carried as h = 2^k g; every draw has its own k, which is raised when g has grown large. Multiplication by powers of
two is exact, so nothing else changes.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from meanfield.nets.net import Net
from meanfield.nets.units import Unit
from meanfield.simulation.arrays.arrays import NUMPY, Arrays
from meanfield.simulation.maps import operation_of
from meanfield.simulation.maps.base import Setting
from meanfield.simulation.passes import release, through
from meanfield.simulation.weights.matrices import Weights

# Elements of g are brought back to about 1 when the largest exceeds 2^100: squares and sums stay far inside floats.
LARGEST_EXPONENT = 100


class Step(NamedTuple):
    """One unit's share of the walk, (D, C, B, S) in units of 2^exponent, with one exponent per draw.

    Attributes:
        before: h_{u-1}.
        features: what the branch's last map is given, (D, C', B, S).
        increment: r_u.
        total: h_u - h_0, summed from all a r so far.
        stream: h_u.
        exponent: k, (D,).
    """

    before: Any
    features: Any
    increment: Any
    total: Any
    stream: Any
    exponent: Any


def units_below(net: Net) -> int:
    """How many units stand below the first that adds to an earlier value: they make h_0."""
    return next((number for number, unit in enumerate(net.units) if unit.skip is not None), len(net.units))


def require_residual_stream(net: Net, *, maps_behind: bool = False) -> None:
    """Raise ValueError for a net that is no residual stream; ``maps_behind`` admits post-norm streams, too."""
    first = units_below(net)
    if first == len(net.units):
        raise ValueError(
            f"no unit of this {type(net).__name__} adds its branch to the value below it, as those of a residual "
            "stream do; give a loop, a residual net or a pre-norm Transformer"
        )
    for number, unit in enumerate(net.units[first:], start=first):
        if unit.skip != number or (unit.after and not maps_behind):
            raise ValueError(
                f"unit {number + 1} skips from {unit.skip} and has {len(unit.after)} map(s) behind its join; every "
                f"unit of a residual stream adds its branch to the value below it, {number}, and nothing follows"
            )


def require_stream_alone(net: Net) -> None:
    """Raise ValueError for a net that is no residual stream from its input to its output."""
    require_residual_stream(net)
    parts = [*(["units below its stream"] if units_below(net) else []), *(["a readout"] if net.readout_unit else [])]
    if parts:
        raise ValueError(
            f"this net has {' and '.join(parts)}; a step of the stream alone moves no other weights, under a loss of "
            "its last value: leave these out, as in a meanfield.Chain of the units that add to the stream"
        )


def stream_start(net: Net, weights: Weights, inputs: Any, arrays: Arrays = NUMPY) -> Any:
    """h_0 of inputs (D, C, B, S), by the units below the stream; weights of no later use are popped."""
    setting, values = Setting(net.grid, inputs.shape[2], weights, arrays), [inputs]
    for number, unit in enumerate(net.units[: units_below(net)], start=1):
        values.append(through(unit, values, setting)[0])
        release(net, number, weights)
    return values[-1]


def walk(net: Net, weights: Weights, start: Any, arrays: Arrays = NUMPY) -> Iterator[Step]:
    """The units of the stream from h_0 = ``start`` (`stream_start`); weights of no later use are popped.

    Raises:
        ValueError: a net that is no residual stream.
    """
    require_residual_stream(net)
    setting = Setting(net.grid, start.shape[2], weights, arrays)
    stream, total, carried = start, arrays.xp.zeros_like(start), None
    exponent = arrays.xp.zeros(len(start), dtype="int64")
    first = units_below(net)
    for number, unit in enumerate(net.units[first:], start=first):
        shift = _excess(stream, arrays)
        if shift is not None:
            stream, total = _scaled(stream, -shift, arrays), _scaled(total, -shift, arrays)
            carried = exponent = exponent + shift
        features, increment = _along(unit, stream, carried, setting)
        added = increment if unit.multiplier == 1.0 else unit.multiplier * increment
        total = total + added
        before, stream = stream, stream + added
        yield Step(before, features, increment, total, stream, exponent)
        release(net, number + 1, weights)


def _along(unit: Unit, values: Any, carried: Any, setting: Setting) -> tuple[Any, Any]:
    """Features and increment, in the units 2^carried of the values; None means units of 1."""
    power, features = carried, (values, carried)
    for spec in unit.branch:
        operation, features = operation_of(spec), (values, power)
        if power is not None:
            degree = operation.degree(spec)
            if degree is None:
                values = _scaled(values, power, setting.arrays)
            power = degree * power if degree else None
        values = operation.forward(spec, values, setting)[0]
    if carried is None:
        return features[0], values
    first, second = (
        _scaled(array, -carried if of is None else of - carried, setting.arrays)
        for array, of in (features, (values, power))
    )
    return first, second


def _excess(stream: Any, arrays: Arrays) -> Any:
    """By how many powers of two each draw's stream must shrink; None if no stream must, as usual."""
    if max(stream.max(), -stream.min()) < 2.0**LARGEST_EXPONENT:
        return None
    xp = arrays.xp
    _, exponent = xp.frexp(xp.abs(stream).reshape(len(stream), -1).max(axis=1))
    shift = xp.where(exponent > LARGEST_EXPONENT, exponent, 0).astype("int64")
    return shift if shift.any() else None


def _scaled(values: Any, exponent: Any, arrays: Arrays) -> Any:
    """2^exponent times the values, each draw with its own."""
    return arrays.xp.ldexp(values, exponent[:, None, None, None]) if exponent.any() else values
