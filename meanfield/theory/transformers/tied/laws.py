"""How the energy of a tied pre-norm stream grows with depth: H ~ q (a D)^2 after D blocks, however large a D is.

Normalised branches have one size whatever the stream. Let a block of a long stream add a r to it, with E r r' = S(c)
where the normalised values below have correlation c. For t = a times the blocks, the covariance of the streams at t and
t' solves d^2 Q / dt dt' = S(Q / sqrt(H H')). For large t it tends to Q = t t' q(x), x = ln(t / t'), with

    q - q'' = S(q / q(0)),   q'(0) = 0,   q -> q(0) C = S(C) at large x,

a particle in a potential, whose energy is conserved: q(0) = 2 int_C^1 S dc / (1 - C^2). Where the slope of S at 1 is at
most S(1), directions converge, C = 1 and q(0) = S(1). Where it is larger, directions of the stream never settle.

Source: docs/theory.md section 22.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

from meanfield.common.validation import takes
from meanfield.nets.families.token_stream import TokenStream
from meanfield.nets.maps import Normalisation
from meanfield.theory.transformers.tied.branches import branch_of
from meanfield.theory.transformers.tied.tokens import ExchangeableTokens

# The correlation C is sought up to this share below 1, and the slope of S at 1 taken over as much.
NEAR = 1e-3


@takes(TokenStream)
def growth_constant(net: TokenStream) -> float:
    """q(0) of H ~ q(0) (a D)^2, for streams of one token, or of tokens that have become one, as a D -> infinity.

    Raises:
        ValueError: untied or post-norm blocks, or sites that are several tokens.
    """
    if not net.is_tied or not isinstance(net.block[0].branch[0], Normalisation) or net.tokens > 1:
        raise ValueError(
            f"the net has tied={net.is_tied} and {net.tokens} token(s); the constant of growth is that of one token "
            "under pre-norm with tied blocks: take tokens=1, tied=True, norm='pre', or `mf.predict` at a large depth"
        )
    branches = [branch_of(unit, ExchangeableTokens(1), 1.0) for unit in net.block]
    alone = np.array([[1.0, 0.0]])

    def added(correlation: float) -> float:
        pair = np.array([[correlation, 0.0]])
        rows = np.concatenate([pair, alone]), np.concatenate([alone, alone])
        return sum(float(branch.features(*rows)[0, 0]) for branch in branches)

    def constant(settled: float) -> float:
        return float(2 * quad(added, settled, 1.0, limit=200)[0] / (1 - settled**2))

    whole = added(1.0)
    if whole - added(1 - NEAR) <= NEAR * whole * (1 + NEAR):
        return whole
    return constant(float(brentq(lambda c: c * constant(c) - added(c), 0.0, 1 - NEAR)))
