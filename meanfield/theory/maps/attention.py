"""Softmax attention, which closes where its logits vanish."""

from __future__ import annotations

import numpy as np

from meanfield.nets.maps import Attention
from meanfield.theory.maps.base import Kinds, NoTransport, Transport, averaged, between, count


class AttentionTransport(Transport):
    """With scale "inverse", the mean over all sites, or over those before and the site itself (``causal``).

    Queries q and keys k are independent Gaussian channels, so the logit q . k / size has variance c_q c_k / size: as
    heads grow it vanishes, with what queries and keys, turned by positions or not, hand on of the kernel. So c and t of
    the values are averaged on each side by itself, exactly in the limit, up to a share of order 1/size.

    With scale "inverse_sqrt" the logits keep variance c_q c_k at any size: each head draws its shares A anew, and c and
    t need E[A_ik A_jl] of softmax over as many correlated Gaussians as there are sites (Hron et al. 2020).

    Source: docs/theory.md section 16.
    """

    def through(self, one: Attention, below: Kinds, grid: tuple[int, ...]) -> Kinds:
        if one.scale != "inverse":
            raise NoTransport(
                "logits q . k / size^(1/2) stay random at any size, and averages over their softmax have no closed "
                "form: they take a quadrature over Gaussian logits of all sites; scale 'inverse' is closed"
            )
        size = count(below) // 3
        if not all(kind.gaussian for kind in between(below, 0, 2 * size)):
            raise NoTransport("queries or keys are not Gaussian, so logits need not vanish; let a linear map make them")
        sites = below[0].mean.shape[1]
        allowed = np.tri(sites) if one.causal else np.ones((sites, sites))
        shares = allowed / allowed.sum(axis=1, keepdims=True)
        return tuple(averaged(kind, shares) for kind in between(below, 2 * size, 3 * size))
