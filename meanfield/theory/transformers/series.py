"""Functions of the angle between two tokens, tabulated as Chebyshev series.

After a normalisation two tokens are Gaussians of variance 1 and correlation rho = cos(angle), 0 <= rho <= 1. Gaussian
averages over them are smooth functions of the angle, also where they are not of rho (ReLU at rho = 1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.common.arrays import Array


def tabulated(functions: Callable[[Array], Array], degree: int) -> Array:
    """Coefficients (degree + 1, functions) of ``functions``, which take angles (A,) and give (functions, A)."""
    nodes = chebyshev.chebpts1(degree + 1)
    values = functions(np.pi / 4 * (1 + nodes))
    scale = np.full(degree + 1, 2 / (degree + 1))
    scale[0] /= 2
    return np.ascontiguousarray((values @ chebyshev.chebvander(nodes, degree) * scale).T)
