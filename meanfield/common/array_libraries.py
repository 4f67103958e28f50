"""Which library an array is of, for what serves arrays of every library: NumPy's on the host, or CuPy's on a device."""

import sys
from typing import Any

import numpy as np


def library_of(values: Any) -> Any:
    """The namespace of the library of an array: that of the module of its class."""
    return np if isinstance(values, np.ndarray) else sys.modules[type(values).__module__]


def is_on_host(values: Any) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(values, np.ndarray)


def on_host(values: Any) -> Any:
    """An array as NumPy's, in its own precision; one of a device is waited for."""
    return values if is_on_host(values) else library_of(values).asnumpy(values)


def multiply_into(out: Any, left: Any, right: Any) -> None:
    """out <- left @ right, whatever the order of ``out`` in memory: not all versions of CuPy's matmul fill one."""
    if is_on_host(out):
        np.matmul(left, right, out=out)
    else:
        out[...] = left @ right
