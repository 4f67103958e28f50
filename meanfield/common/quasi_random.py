"""Standard normals that fill space more evenly than random ones, for averages in many dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.stats.qmc import MultivariateNormalQMC


def even_normals(dimensions: int, replicate: int = 0) -> MultivariateNormalQMC:
    """Scrambled Sobol points of a standard normal, always the same; ``.random(n)`` gives the next n, (n, dimensions).

    Averages over a power of 2 of them err by much less than over as many random points in a few dimensions, or where
    few of many count. In a hundred dimensions that all count, such as the logits of a dozen tokens, a few thousand of
    them are worth no more than as many random ones. Every ``replicate`` is another scrambling: the scatter of averages
    between replicates is an estimate of their error.
    """
    from scipy.stats import qmc  # a second of import, which commands without such averages need not wait for

    return qmc.MultivariateNormalQMC(np.zeros(dimensions), rng=replicate)
