"""A stand-in for CuPy on machines without a device: what CuPy refuses, or does at a cost, is an error here.

Arrays wrap NumPy's and keep to themselves: no NumPy array or number beside them, no conversion but by ``asnumpy``, no
two precisions in one operation, no truth value, number or loop over elements (on a device each waits for it). The
namespace has no function that CuPy lacks: only those that are named here, each of which CuPy has with these arguments.
"""

from __future__ import annotations

import operator
import sys
from types import SimpleNamespace

import numpy as np
from scipy import special

FLOATS = ("float32", "float64")


class StrictArray:
    """An array of the stand-in."""

    __module__ = "stand_in_for_cupy"  # as the class of CuPy's arrays names the module that serves them
    __array_ufunc__ = None  # NumPy's arrays and numbers leave operators to this class, which refuses them

    def __init__(self, values):
        assert isinstance(values, np.ndarray)
        self._values = values

    shape = property(lambda self: self._values.shape)
    ndim = property(lambda self: self._values.ndim)
    dtype = property(lambda self: self._values.dtype)
    size = property(lambda self: self._values.size)

    def __len__(self):
        return len(self._values)

    def __getitem__(self, index):
        return _wrapped(self._values[_plain_index(index)])

    def __setitem__(self, index, value):
        self._values[_plain_index(index)] = _operand(value, self.dtype)

    def reshape(self, *shape):
        return _wrapped(self._values.reshape(*shape))

    def swapaxes(self, first, second):
        return _wrapped(self._values.swapaxes(first, second))

    def transpose(self, *axes):
        return _wrapped(self._values.transpose(*axes))

    def copy(self, order="C"):
        return _wrapped(self._values.copy(order=order))

    def astype(self, dtype, copy=True):
        return _wrapped(self._values.astype(dtype, copy=copy))

    def mean(self, axis=None):
        return _wrapped(self._values.mean(axis=axis))

    def sum(self, axis=None, dtype=None, keepdims=False):
        return _wrapped(self._values.sum(axis=axis, dtype=dtype, keepdims=keepdims))

    def max(self, axis=None, keepdims=False):
        return _wrapped(self._values.max(axis=axis, keepdims=keepdims))

    def cumsum(self, axis=None):
        return _wrapped(self._values.cumsum(axis=axis))

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array; take asnumpy")

    def __array_function__(self, function, *_):
        raise TypeError(f"NumPy's {function.__name__} of a device array; take the namespace's")

    def _refused(self, *_):
        raise TypeError("this would wait for the device; fetch the array first")

    __bool__ = __float__ = __int__ = __index__ = __iter__ = _refused
    __hash__ = None

    def __neg__(self):
        return _wrapped(-self._values)

    def __pos__(self):
        return _wrapped(+self._values)

    def __invert__(self):
        return _wrapped(~self._values)


def _wrapped(values):
    return StrictArray(np.asarray(values))


def _plain_index(index):
    for part in index if isinstance(index, tuple) else (index,):
        if part is not None and part is not Ellipsis and type(part) not in (int, slice):
            raise TypeError(f"index of {type(part).__name__}")
    return index


def _operand(value, dtype=None):
    """What NumPy may work on: an array of this class, of this precision if it has one, or a plain number."""
    if type(value) in (bool, int, float):
        return value
    if not isinstance(value, StrictArray):
        raise TypeError(f"{type(value).__module__}.{type(value).__name__} beside a device array")
    if dtype is not None and {value.dtype.name, np.dtype(dtype).name} == set(FLOATS):
        raise TypeError("two precisions in one operation")
    return value._values


def _operands(*values):
    floats = {value.dtype.name for value in values if isinstance(value, StrictArray)} & set(FLOATS)
    if len(floats) > 1:
        raise TypeError("two precisions in one operation")
    return [_operand(value) for value in values]


def _binary(operation):
    return (
        lambda self, other: _wrapped(operation(*_operands(self, other))),
        lambda self, other: _wrapped(operation(*_operands(other, self))),
    )


def _in_place(operation):
    def work(self, other):
        operation(*_operands(self, other))
        return self

    return work


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow"):
    _forward, _backward = _binary(getattr(operator, _name))
    setattr(StrictArray, f"__{_name}__", _forward)
    setattr(StrictArray, f"__r{_name}__", _backward)
    setattr(StrictArray, f"__i{_name}__", _in_place(getattr(operator, f"i{_name}")))
for _name in ("gt", "ge", "lt", "le", "eq", "ne", "and_", "or_"):
    setattr(StrictArray, f"__{_name.strip('_')}__", _binary(getattr(operator, _name))[0])
StrictArray.__ior__ = _in_place(operator.ior)


def _pointwise(function):
    def apply(*values, out=None):
        target = None if out is None else _operand(out, values[0].dtype)
        return _wrapped(function(*_operands(*values), out=target))

    return apply


def _joined(function):
    return lambda arrays, axis=0: _wrapped(function(_operands(*arrays), axis=axis))


def _filled(function):
    return lambda shape, dtype="float64", order="C": _wrapped(function(shape, dtype=dtype, order=order))


def _asarray(values, dtype=None, order="K"):
    if isinstance(values, StrictArray):
        return _wrapped(np.asarray(values._values, dtype=dtype, order=order))
    return _wrapped(np.array(values, dtype=dtype, order=order))


class RandomState:
    """CuPy's generator of the C library's kind: a key of 64 bits, and numbers that depend on the size of requests."""

    def __init__(self, seed, method):
        if not 0 <= seed < 2**64:
            raise ValueError("Seed must be an integer between 0 and 2**64 - 1")
        assert method == "philox"
        self._seed, self._calls = seed, 0

    def normal(self, loc, scale, size, dtype):
        self._calls += 1
        numbers = np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, self._calls])))
        return _wrapped(np.asarray(loc + scale * numbers.standard_normal(size, dtype=dtype), dtype=dtype))


def namespace():
    """What stands for the module ``cupy``."""
    device = SimpleNamespace(id=0, mem_info=(6 << 30, 8 << 30))
    return SimpleNamespace(
        __version__="0 (stand-in)",
        maximum=_pointwise(np.maximum),
        multiply=_pointwise(np.multiply),
        exp=_pointwise(np.exp),
        tanh=_pointwise(np.tanh),
        sqrt=_pointwise(np.sqrt),
        square=_pointwise(np.square),
        abs=_pointwise(np.abs),
        divide=_pointwise(np.divide),
        log=_pointwise(np.log),
        logaddexp=_pointwise(np.logaddexp),
        sign=_pointwise(np.sign),
        isfinite=_pointwise(np.isfinite),
        clip=_pointwise(np.clip),
        where=lambda condition, *values: _wrapped(np.where(_operand(condition), *_operands(*values))),
        broadcast_to=lambda values, shape: _wrapped(np.broadcast_to(_operand(values), shape)),
        arange=lambda stop: _wrapped(np.arange(stop)),
        eye=lambda size, dtype="float64": _wrapped(np.eye(size, dtype=dtype)),
        linalg=SimpleNamespace(
            qr=lambda values: tuple(map(_wrapped, np.linalg.qr(_operand(values)))),
            svd=lambda values, full_matrices: tuple(map(_wrapped, np.linalg.svd(_operand(values), full_matrices))),
        ),
        ones_like=lambda values: _wrapped(np.ones_like(_operand(values))),
        empty_like=lambda values, order="K": _wrapped(np.empty_like(_operand(values), order=order)),
        zeros_like=lambda values: _wrapped(np.zeros_like(_operand(values))),
        ones=_filled(np.ones),
        zeros=_filled(np.zeros),
        empty=_filled(np.empty),
        concatenate=_joined(np.concatenate),
        stack=_joined(np.stack),
        ascontiguousarray=lambda values, dtype=None: _wrapped(np.ascontiguousarray(_operand(values), dtype=dtype)),
        moveaxis=lambda values, source, target: _wrapped(np.moveaxis(_operand(values), source, target)),
        repeat=lambda values, count, axis: _wrapped(np.repeat(_operand(values), count, axis=axis)),
        take=lambda values, indices, axis: _wrapped(np.take(_operand(values), _operand(indices), axis=axis)),
        asarray=_asarray,
        asnumpy=lambda values: np.array(_operand(values)),
        random=SimpleNamespace(RandomState=RandomState),
        cuda=SimpleNamespace(
            curand=SimpleNamespace(CURAND_RNG_PSEUDO_PHILOX4_32_10="philox"),
            runtime=SimpleNamespace(getDeviceProperties=lambda _: {"name": b"stand-in"}),
            Device=lambda: device,
        ),
    )


def special_functions():
    """What stands for ``cupyx.scipy.special``."""
    return SimpleNamespace(
        ndtr=_pointwise(special.ndtr),
        expit=_pointwise(special.expit),
        erf=_pointwise(special.erf),
    )


# Where who holds an array finds what serves it.
sys.modules[StrictArray.__module__] = namespace()
