"""The array type of this library's signatures, and checks of input.

Their errors say what was given, what is allowed, why, and how to fix it. A fingerprint tells arrays apart without
holding them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from hashlib import sha256
from inspect import signature
from math import isfinite
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def fingerprint(array: NDArray[np.generic]) -> str:
    """A short digest of an array's type, shape and values, the same on every machine."""
    digest = sha256(f"{array.dtype.str} {array.shape} ".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def inputs_described(inputs: ArrayLike | None) -> dict[str, str]:
    """What a dataset says of given inputs; nothing where the net's own law draws them."""
    return {} if inputs is None else {"given_inputs": fingerprint(np.asarray(inputs))}


P = ParamSpec("P")
R = TypeVar("R")

# The largest depth, as layers are listed: far deeper than any net that can be drawn, and a second's work.
MOST_LAYERS = 1_000_000
# Of what was given, an error shows so many characters at most.
LONGEST_SHOWN = 60
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
    if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, allowed))}")


def require_instance(name: str, value: Any, kind: Any, allowed: str) -> Any:
    """Return ``value``, or raise TypeError unless it is of this ``kind``, a class or a union of classes."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {_shown(value)}; give {allowed}")
    return value


def require_instances(name: str, values: Any, kind: Any, allowed: str) -> tuple[Any, ...]:
    """Return a sequence of values of this ``kind`` as a tuple, or raise TypeError."""
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        raise TypeError(f"{name} is {_shown(values)}; give a sequence of {allowed}")
    return tuple(require_instance(f"an entry of {name}", value, kind, allowed) for value in values)


def takes(*kinds: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function refuse, before any work, leading arguments that are not of these classes or unions of them."""

    def checking(function: Callable[P, R]) -> Callable[P, R]:
        names = list(signature(function).parameters)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = dict(zip(names, args, strict=False)) | kwargs
            for name, kind in zip(names, kinds, strict=False):
                if name in given:  # or else Python says what is missing
                    require_instance(name, given[name], kind, _classes(kind))
            return function(*args, **kwargs)

        return checked

    return checking


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


def not_negative(name: str, value: Any) -> float:
    """Return ``value`` as a float, or raise TypeError or ValueError unless it is a number of 0 or more."""
    number = require_finite(name, value, "a number, at least 0")
    return require_positive(name, number, why="leave it at 0 for none") if number else 0.0


def real_array(name: str, values: Any) -> Array:
    """Return ``values`` as an array of floats, or raise TypeError or ValueError unless they are real numbers."""
    given = unmasked(name, values)
    if given.dtype.kind not in "biufO":
        raise TypeError(f"{name} holds values of type {given.dtype}; give real numbers, so that nothing is dropped")
    if given.dtype.kind == "O" and (strange := [value for value in given.flat if not isinstance(value, Real)]):
        raise TypeError(f"{name} holds {strange[0]!r}; give real numbers")
    return given.astype(float, copy=False)


def require_array(name: str, values: Any, shape: tuple[int, ...], layout: str) -> Array:
    """Return ``values`` as floats, or raise TypeError or ValueError unless they have this shape and are finite."""
    array = real_array(name, values)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; this net takes {layout} = {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinite values; remove or replace them first")
    return array


def unmasked(name: str, values: Any) -> NDArray[Any]:
    """Return ``values`` as an array of any type, or raise ValueError where rows differ or an entry is masked.

    NumPy's conversion would take the number behind a mask for a value.
    """
    if has_masks(values) and (masked := int(np.ma.getmaskarray(np.ma.asanyarray(values)).sum())):
        raise ValueError(
            f"{name} is a masked array with {masked} of {np.size(values)} entries masked, which have no value here; "
            "leave these out (.compressed()) or give them values (.filled(value))"
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of different lengths; give an array") from error


def without_masked(points: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays over the same points, without those of which an array masks its number; others as they are."""
    if not any(map(has_masks, points.values())):
        return dict(points)
    arrays = {name: np.ma.asanyarray(values) for name, values in points.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        return dict(points)  # which the caller refuses
    kept = ~np.any([np.ma.getmaskarray(array) for array in arrays.values()], axis=0)
    return {name: np.asarray(array)[kept] for name, array in arrays.items()}


def measured_array(name: str, values: Any) -> Array:
    """As `real_array` does, and refuse True and False: a comparison in place of what it compares would pass for 1."""
    if _holds_flags(values):
        raise TypeError(f"{name} holds True or False; give real numbers")
    return real_array(name, values)


def has_masks(values: Any) -> bool:
    """Whether these are a masked array, or hold some in lists, whether or not an entry is masked."""
    return isinstance(values, np.ma.MaskedArray) or (isinstance(values, list | tuple) and any(map(has_masks, values)))


def _holds_flags(values: Any) -> bool:
    """Whether this is True or False, or holds one in lists or in an array, which NumPy would make a number of."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind == "b" or (values.dtype.kind == "O" and any(map(_holds_flags, values.flat)))
    if isinstance(values, list | tuple):
        return any(map(_holds_flags, values))
    return isinstance(values, bool | np.bool_)


def _classes(kind: Any) -> str:
    """A class, or those of a union, in words."""
    return " or ".join(f"a {each.__name__}" for each in getattr(kind, "__args__", (kind,)))


def _shown(value: Any) -> str:
    """What was given, in one line."""
    words = repr(value)
    return words if len(words) <= LONGEST_SHOWN and "\n" not in words else f"of type {type(value).__name__}"


def _because(why: str) -> str:
    return f" ({why})" if why else ""
