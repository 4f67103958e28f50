"""What every map does to covariance and tangent kernel at infinite width against draws, and plausible mistakes too.

Means at finite width n are off by a / n + b / n^2 + ...; 2 (at 2n) - (at n) leaves a share of order 1 / n^2.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from meanfield.nets.activations import activation_named
from meanfield.nets.maps import (
    Attention,
    AveragePooling,
    Bias,
    Flatten,
    Gate,
    Linear,
    Normalisation,
    Pointwise,
    Pooling,
)
from meanfield.theory import tangent_kernels as walker
from meanfield.theory.maps import TRANSPORTS, averaged, between, count
from tests.statistics import consistent
from tests.theory.maps.measured import drawn, predicted
from tests.theory.maps.nets import NETS, inputs_of

WIDTH = 16
DRAWS = 1200
# What the extrapolation leaves, in units of 1 / n^2: a share of up to 2 / n is missing at width n, so (2 / n)^2.
REST = 4.0


@cache
def draws_of(name):
    """Of width n and of 2n."""
    nets = [NETS[name](width) for width in (WIDTH, 2 * WIDTH)]
    return [drawn(net, inputs_of(net), DRAWS, 3) for net in nets]


def agrees(name):
    """Whether theory, as it stands, is what draws tend to."""
    shares = []
    for sums, width in zip(draws_of(name), (WIDTH, 2 * WIDTH), strict=True):
        net = NETS[name](width)
        expected, size = predicted(net, inputs_of(net))
        shares.append((sums - expected) / size)
    narrow, wide = shares
    difference = 2 * wide.mean(axis=0) - narrow.mean(axis=0)
    stderr = np.sqrt((4 * wide.var(axis=0) + narrow.var(axis=0)) / len(wide))
    return consistent(difference, stderr, len(wide), REST / WIDTH**2)


@pytest.mark.parametrize("name", NETS)
def test_draws_tend_to_the_theory(name):
    assert agrees(name)


def undilated(spec, below, grid):
    return TRANSPORTS[Linear](replace(spec, dilation=1), below, grid)


def without_own_part(spec, below, grid):
    above = TRANSPORTS[Linear](spec, below, grid)
    own = TRANSPORTS[Linear](spec, tuple(replace(kind, kernel=0 * kind.kernel) for kind in below), grid)
    return tuple(
        replace(kind, kernel=kind.kernel - alone.kernel * below[0].kernel.any())
        for kind, alone in zip(above, own, strict=True)
    )


def groups_see_all(spec, below, grid):
    whole = (replace(w, shape=(w.shape[0], count(below), *w.shape[2:]), groups=1) for w in spec.weights)
    return TRANSPORTS[Linear](replace(spec, weights=tuple(whole)), below, grid)


def unbiased(spec, below, grid):
    return below


def same_gates(spec, below, grid):
    """sigma' of two points as if they were one."""
    above = TRANSPORTS[Pointwise](spec, below, grid)
    if below[0].given is not None:
        return above
    sigma, variance = activation_named(spec.activation), below[0].covariance.max()
    gate = float(sigma.gate_product(*[np.array([variance])] * 3)[0])
    return tuple(replace(kind, kernel=gate * under.kernel) for kind, under in zip(above, below, strict=True))


def gating_at_rest(spec, below, grid):
    middle = count(below) // 2
    still = [replace(kind, kernel=0 * kind.kernel) for kind in between(below, 0, middle)]
    return TRANSPORTS[Gate](spec, (*still, *between(below, middle, 2 * middle)), grid)


def means_kept(spec, below, grid):
    return TRANSPORTS[Normalisation](replace(spec, kind="rms"), below, grid)


def kernels_undivided(spec, below, grid):
    above = TRANSPORTS[Normalisation](spec, below, grid)
    return tuple(replace(kind, kernel=under.kernel) for kind, under in zip(above, below, strict=True))


def looking_ahead(spec, below, grid):
    return TRANSPORTS[Attention](replace(spec, causal=False), below, grid)


def looking_at_itself(spec, below, grid):
    return between(below, 2 * count(below) // 3, count(below))


def shares_alike(spec, below, grid):
    return TRANSPORTS[Attention](replace(spec, scale="inverse"), below, grid)


def sites_pooled_alike(spec, below, grid):
    """The mean over sites of pairs of one site, not of all pairs."""
    return tuple(
        replace(
            averaged(kind, np.full((1, 3), 1 / 3)),
            covariance=np.einsum("bpcp->bc", kind.covariance)[:, None, :, None] / 3,
        )
        for kind in below
    )


def next_sites(spec, below, grid):
    """The first sites in place of every second."""
    every = TRANSPORTS[Linear](replace(spec, stride=()), below, grid)
    return every if not spec.stride else tuple(averaged(kind, np.eye(3)[:2]) for kind in every)


def first_site(spec, below, grid):
    return tuple(averaged(kind, np.eye(3)[:1]) for kind in below)


def first_site_alone(spec, below, grid):
    return tuple(replace(kind, channels=3 * kind.channels) for kind in first_site(spec, below, grid))


@pytest.mark.parametrize(
    ("name", "of", "mistake"),
    [
        ("convolution", Linear, undilated),
        ("convolution", Linear, without_own_part),
        ("groups", Linear, groups_see_all),
        ("biases", Bias, unbiased),
        ("convolution", Pointwise, same_gates),
        ("gated", Gate, gating_at_rest),
        ("layer_norm", Normalisation, means_kept),
        ("layer_norm", Normalisation, kernels_undivided),
        ("attention", Attention, looking_ahead),
        ("everywhere", Attention, looking_at_itself),
        ("softmax", Attention, shares_alike),
        ("pooled", Pooling, sites_pooled_alike),
        ("strided", Linear, next_sites),
        ("windows", AveragePooling, sites_pooled_alike),
        ("last", Pooling, first_site),
        ("flattened", Flatten, first_site_alone),
    ],
)
def test_plausible_mistakes_are_seen(monkeypatch, name, of, mistake):
    """Negative controls."""
    monkeypatch.setattr(walker, "TRANSPORTS", TRANSPORTS | {of: mistake})
    assert not agrees(name)


@pytest.mark.parametrize(
    ("name", "changes"), [("rectified_blocks", {"mean": 0.0}), ("residual", {"covariance": 0.5, "kernel": 1.0})]
)
def test_mistakes_at_joins_are_seen(monkeypatch, name, changes):
    """Means of rectified streams and branches that are left out; multipliers that enter c once, or t not at all."""
    joined = walker._joined

    def mistaken(stream, branch):
        return joined(stream, replace(branch, **{part: f * getattr(branch, part) for part, f in changes.items()}))

    monkeypatch.setattr(walker, "_joined", mistaken)
    assert not agrees(name)
