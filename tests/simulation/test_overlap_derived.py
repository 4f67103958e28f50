"""The tangent kernel of nets of any maps, against the Jacobians that autograd derives."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from meanfield.nets.maps import Linear, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.simulation import passes
from meanfield.simulation.measures.overlap_energy import tangent_kernels
from meanfield.simulation.weights import Dense, named
from tests import derivable
from tests.draws import given_draw
from tests.strategies import chains


def both_roads(net, seed):
    """Theta of every value, ours and theirs."""
    weights, inputs, _ = given_draw(net, seed)
    parts = iter(part for w, spec in zip(weights, net.weights.values(), strict=True) for part in _groups(w, spec))
    drawn = named(net, lambda weight, _: Dense(next(parts).reshape(1, weight.group_rows, weight.fan_in)))
    columns = np.ascontiguousarray(inputs.reshape(*inputs.shape[:2], -1).swapaxes(0, 1)[None])
    ours = tangent_kernels(passes.forward(net, drawn, columns))
    at = dict(zip(net.weights, weights, strict=True))
    for number, kernel in enumerate(ours):
        jacobian = derivable.jacobian(net, at, inputs, number)
        yield kernel[0], sum(_rows(jacobian[name], w.ndim) @ _rows(jacobian[name], w.ndim).T for name, w in at.items())


def _groups(weight, spec):
    return np.split(weight, spec.groups)


def _rows(jacobian, dimensions):
    """(samples, channels, *sites, *weight) as (channel, sample and site, weight)."""
    values = jacobian.ndim - dimensions
    parameters = int(np.prod(jacobian.shape[values:]))
    flat = jacobian.reshape(*jacobian.shape[:2], -1, parameters)
    return flat.swapaxes(0, 1).reshape(-1, parameters)


@settings(max_examples=15)
@given(chains(), st.integers(0, 2**31))
def test_kernels_of_any_maps(net, seed):
    assume(not net.is_tied)
    for ours, theirs in both_roads(net, seed):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_channels_of_a_group_count_for_it_alone_and_pooled_sites_once():
    grouped = Linear((Weight("groups", (4, 2, 2), 0.4, 2),), "zero")
    top = Pointwise("tanh"), Pooling(), Linear((Weight("top", (3, 4), 0.3),))
    net = Chain(units=(Unit((grouped,)), Unit(top)), input_channels=4, grid=(3,), inputs=2)
    for ours, theirs in both_roads(net, 1):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
