"""How loops are compiled: once, kept on disk, and not for callers from C, which would take an eighth more time.

What is kept is found again by the loop's own code and that of all it calls, which is compiled into it. Numba would
look at the loop's own file alone, and after an update run what the others once were.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from meanfield.common.identity import Identity

# What reading a file of compiled code raises where it is cut off or damaged.
_DAMAGED = (EOFError, pickle.UnpicklingError, ValueError, TypeError, KeyError, IndexError, AttributeError, ImportError)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a loop, with further options of `numba.njit`."""

    def compile_kept(function: Callable[..., Any]) -> Any:
        kernel = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
        if hasattr(kernel, "py_func"):  # it is not where NUMBA_DISABLE_JIT is set
            kernel._cache = _Kept(function)
        return kernel

    return compile_kept


class _Kept(FunctionCache):  # type: ignore[misc]
    """Compiled code on disk, which is made again where it is damaged, and done without where there is no room."""

    @cached_property
    def _called(self) -> str:
        """The identity of the code and of all that it refers to, asked for at the first call, when these are there."""
        return Identity()(self._py_func)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), self._called)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (OSError, *_DAMAGED):
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # as Python does without its bytecode
            super().save_overload(sig, data)
