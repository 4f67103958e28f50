"""The overlap energy: the tangent kernel against loops, and the one-column estimates against the kernel."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.activations import ACTIVATIONS
from meanfield.simulation import passes
from meanfield.simulation.measures import energies, overlap_energy
from meanfield.simulation.measures import overlap_energy as overlap
from meanfield.simulation.weights import Dense
from tests import naive
from tests.draws import given_draw
from tests.statistics import consistent
from tests.strategies import architectures

DRAWS = 4096


@settings(max_examples=20)
@given(architectures(), st.integers(0, 2**31))
def test_tangent_kernel_is_the_sum_over_parameters(net, seed):
    weights, inputs, _ = given_draw(net, seed)
    matrices = {name: Dense(w.reshape(1, w.shape[0], -1)) for name, w in zip(net.weights, weights, strict=True)}
    columns = np.ascontiguousarray(inputs.reshape(*inputs.shape[:2], -1).swapaxes(0, 1)[None])
    state = passes.forward(net, matrices, columns)
    for ours, theirs in zip(overlap.tangent_kernels(state), naive.tangent_kernels(net, weights, inputs), strict=True):
        np.testing.assert_allclose(ours[0], theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize(
    ("readout", "padding", "method"),
    [
        ("pooled", "circular", "probe"),
        ("convolution", "circular", "reduction"),
        ("flatten", "circular", "reduction"),
        ("pooled", "zero", "probes"),
    ],
)
def test_error_columns_measure_the_kernel_in_mean(monkeypatch, readout, padding, method, activation):
    options = {"readout": readout, "padding": padding, "activation": activation}
    net = mf.ConvNet(depth=4, channels=(6, 3, 5, 7), grid=(5,), kernel=(2,), outputs=3, inputs=2, **options)
    exact, cheap = _both_ways(monkeypatch, net, method)
    difference = cheap - exact
    assert consistent(difference.mean(axis=0), difference.std(axis=0) / np.sqrt(DRAWS), DRAWS)


def test_one_column_fails_under_zero_padding(monkeypatch):
    """Negative control: at the edge signal is lost, and the reduction must be seen to fail there."""
    net = mf.ConvNet(depth=4, channels=6, grid=(3,), kernel=(3,), padding="zero", readout="convolution")
    monkeypatch.setattr(type(net), "covers_evenly", True)
    exact, cheap = _both_ways(monkeypatch, net, "reduction")
    difference = cheap - exact
    assert not consistent(difference.mean(axis=0), difference.std(axis=0) / np.sqrt(DRAWS), DRAWS)


def test_gates_that_know_more_than_the_sign_need_their_own_columns(monkeypatch):
    """Smooth gates weaken or amplify an error on its way down: probes serve, the reduction must be seen to fail."""
    for method, serves in (("probes", True), ("reduction", False)):
        with monkeypatch.context() as patch:
            patch.setattr(mf.MLP, "sigma", replace(ACTIVATIONS["tanh"], homogeneous=not serves))
            exact, cheap = _both_ways(patch, mf.MLP(depth=4, width=16, activation="tanh"), method)
        difference = cheap - exact
        assert consistent(difference.mean(axis=0), difference.std(axis=0) / np.sqrt(DRAWS), DRAWS) == serves


def _both_ways(monkeypatch, net, method):
    exact = _overlap_energies(net)
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)
    assert overlap_energy.overlap_method(net).name == method
    return exact, _overlap_energies(net)


def _overlap_energies(net):
    batches = [range(start, start + 64) for start in range(0, DRAWS, 64)]
    return np.concatenate([energies.draw_energies(net, 3, batch)["overlap_energy"] for batch in batches])
