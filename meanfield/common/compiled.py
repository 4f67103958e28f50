"""How loops are compiled: once, kept on disk, and not for callers from C, which would take an eighth more time."""

from functools import partial

from numba import njit

compiled = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True)
