"""Standard normals that fill space more evenly than random ones, for averages in many dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.stats.qmc import MultivariateNormalQMC


def even_normals(dimensions: int) -> MultivariateNormalQMC:
    """Scrambled Sobol points of a standard normal, always the same; ``.random(n)`` gives the next n, (n, dimensions).

    Averages over a power of 2 of them err by much less than over as many random points.
    """
    from scipy.stats import qmc  # a second of import, which commands without such averages need not wait for

    return qmc.MultivariateNormalQMC(np.zeros(dimensions), rng=0)
