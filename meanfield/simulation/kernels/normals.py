"""Filling an array with Gaussian numbers at the speed of the generator."""

from numba import njit


@njit(cache=True, nogil=True)
def fill_normal(generator, out, scale):
    """Write scale * N(0, 1) into the flat array ``out``: the very numbers that NumPy's own fill would give."""
    for i in range(out.size):
        out[i] = scale * generator.standard_normal()
