"""Checks of input, whose errors say what was given, what is allowed, why, and how to fix it."""

from collections.abc import Iterable
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from meanfield.common.arrays import Array

# The largest depth, as layers are listed: far deeper than any net that can be drawn, and a second's work.
MOST_LAYERS = 1_000_000
# The most draws: as many chunks as a scheduler hands out in minutes, of as many draws as a chunk holds.
MOST_DRAWS = 100_000_000


class PremiseWarning(UserWarning):
    """A result rests on a premise that this net breaks; the message says which premise, by how much, and why.

    The result is given all the same; Python's `warnings` filters such messages.
    """


class OutsideFloats(ValueError):
    """A number lies outside the range of floats; the message says which, and why."""


def require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``; the message names them all."""
    allowed = list(choices)
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, allowed))}")


def settle(spec: Any, **values: Any) -> None:
    """Replace fields of a frozen spec by their checked values, which are plain Python numbers."""
    for name, value in values.items():
        object.__setattr__(spec, name, value)


def require_count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None, why: str = "") -> int:
    """Return ``value`` as an int, or raise: TypeError if not whole, ValueError if too small or too large."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}; it must be a whole number, at least {minimum}{_because(why)}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} is {number}; it must be at least {minimum}{_because(why)}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} is {number}; it must be at most {maximum:,}{_because(why)}")
    return number


def require_draws(name: str, value: Any, fewest: int = 2) -> int:
    """Return a number of draws as an int, or raise as `require_count` does."""
    draws = require_count(name, value, minimum=fewest, why="one draw has no standard error")
    return require_count(name, draws, maximum=MOST_DRAWS, why="split a longer run into several, of their own seeds")


def require_counts(
    name: str, values: Any, *, minimum: int = 1, maximum: int | None = None, why: str = ""
) -> tuple[int, ...]:
    """Return a whole number or a sequence of them as a tuple of ints, each checked by `require_count`."""
    if not isinstance(values, Real | Iterable) or isinstance(values, str):
        raise TypeError(f"{name} is {values!r}; it must be a whole number or a sequence of them{_because(why)}")
    items = (values,) if isinstance(values, Real) else tuple(values)
    return tuple(require_count(name, item, minimum=minimum, maximum=maximum, why=why) for item in items)


def require_flag(name: str, value: Any, why: str = "") -> bool:
    """Return ``value`` as a bool, or raise TypeError unless it is one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}; it must be True or False{_because(why)}")
    return bool(value)


def require_finite(name: str, value: Any, allowed: str) -> float:
    """Return ``value`` as a float, or raise: TypeError if it is no real number, ValueError if it is not finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {value!r}; it must be {allowed}")
    if not isfinite(value):
        raise ValueError(f"{name} is {value}; it must be {allowed}")
    return float(value)


def require_positive(name: str, value: Any, *, why: str) -> float:
    """Return ``value`` as a float, or raise TypeError or ValueError unless it is a positive number."""
    number = require_finite(name, value, "a positive number")
    if number <= 0:
        raise ValueError(f"{name} is {number:g}; it must be positive: {why}")
    return number


def real_array(name: str, values: Any) -> Array:
    """Return ``values`` as an array of floats, or raise TypeError or ValueError unless they are real numbers."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of different lengths; give an array") from error
    if given.dtype.kind not in "biufO":
        raise TypeError(f"{name} holds values of type {given.dtype}; give real numbers, so that nothing is dropped")
    return given.astype(float, copy=False)


def require_array(name: str, values: Any, shape: tuple[int, ...], layout: str) -> Array:
    """Return ``values`` as floats, or raise TypeError or ValueError unless they have this shape and are finite."""
    array = real_array(name, values)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; this architecture takes {layout} = {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; remove or replace them first")
    return array


def _because(why: str) -> str:
    return f" ({why})" if why else ""
