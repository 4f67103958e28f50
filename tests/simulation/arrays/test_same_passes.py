"""Given the same weights, a device finds the host's numbers to rounding: every pass, every family, both precisions."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.simulation.arrays import arrays_of
from meanfield.simulation.kernels import stencils
from meanfield.simulation.measures import overlap_energy
from tests.draws import draw_energies_on, given_draw
from tests.strategies import architectures, transformers

# Rounding relative to the largest element: a few hundred operations deep.
ROUNDING = {"float64": 1e-12, "float32": 2e-5}

NETS = {
    "mlp, tangent kernel": mf.MLP(depth=3, width=12, inputs=2),
    "mlp, label column": mf.MLP(depth=4, width=140, outputs=3),
    "mlp, gelu, a probe at every layer": mf.MLP(depth=3, width=130, activation="gelu", outputs=3),
    "conv, probe": mf.ConvNet(depth=3, channels=12, grid=(12,), kernel=(3,), outputs=2),
    "conv, zero padding": mf.ConvNet(
        depth=3, channels=(10, 4, 9), grid=(4, 4), kernel=(2, 3), padding="zero", readout="convolution", inputs=2
    ),
    "transformer": mf.Transformer(depth=2, width=36, heads=3, tokens=4, rotary=True, readout="last"),
    "transformer, tied": mf.Transformer(
        depth=2, width=36, tokens=4, causal=True, activation="swiglu", tied=True, readout="last"
    ),
    "language model": mf.Transformer(
        depth=1, width=36, tokens=4, causal=True, vocabulary=5, readout="every", scaling="rezero", outputs=3
    ),
    "residual": mf.ResidualMLP(depth=3, width=140, block_depth=2, scaling="multiplier_linear", stem=1),
}
OPTIONS = {
    "plain": {},
    "classes": {"loss": "cross_entropy"},
    "teacher": {"batch": mf.Batch(input_correlation=0.3, labels="teacher", label_mean=0.5), "by_site": True},
}


def assert_close(ours, theirs, precision):
    assert ours.dtype == theirs.dtype == np.float64
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING[precision] * max(1e-300, np.abs(theirs).max()))


@pytest.mark.parametrize("precision", ROUNDING)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(net=st.one_of(architectures(), transformers()), seed=st.integers(0, 2**31))
def test_one_step_of_given_weights(cupy, precision, net, seed):
    given_numbers = given_draw(net, seed)
    for here, there in zip(
        mf.one_step(net, *given_numbers, precision=precision),
        mf.one_step(net, *given_numbers, backend=cupy, precision=precision),
        strict=True,
    ):
        assert_close(there, here, precision)
    for here, there in zip(
        mf.pre_activations(net, *given_numbers[:2]),
        mf.pre_activations(net, *given_numbers[:2], backend=cupy, precision=precision),
        strict=True,
    ):
        assert_close(there, here, precision)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("weights", ["dense", "lazy"])
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_energies_of_the_same_draws(cupy, host_normals, net, weights, options):
    here = draw_energies_on(net, 5, range(3, 7), weights, **options)
    there = draw_energies_on(net, 5, range(3, 7), weights, cupy, **options)
    assert set(here) == set(there)
    for name, values in here.items():
        np.testing.assert_allclose(there[name], values, rtol=1e-12)


@pytest.mark.parametrize("weights", ["dense", "lazy"])
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_energies_of_the_same_draws_in_single_precision(cupy, host_normals, net, weights):
    here = draw_energies_on(net, 5, range(4), weights)
    for backend in ("numpy", cupy):
        for name, values in draw_energies_on(net, 5, range(4), weights, backend, "float32").items():
            assert values.dtype == np.float64
            np.testing.assert_allclose(values, here[name], rtol=1e-4)
            assert (values != here[name]).any()


def test_another_draw_is_seen(cupy, host_normals):
    """Negative control: the neighbouring draw is a different net, beyond any rounding."""
    net = NETS["mlp, label column"]
    here, there = draw_energies_on(net, 5, range(1)), draw_energies_on(net, 5, range(1, 2), backend=cupy)
    assert np.abs(there["label_term"] / here["label_term"] - 1).min() > 1e-3


def test_the_device_is_asked(cupy, monkeypatch):
    """Negative control of all of the above: with a loop of the host's in their place, the passes do not run."""
    device = arrays_of(cupy, "float64")
    monkeypatch.setattr(overlap_energy, "DENSE_UNITS", 0)
    object.__setattr__(device, "gather", stencils.gather)
    with pytest.raises(Exception, match=r"cannot determine Numba type|(?i:implicit conversion to a NumPy array)|cupy"):
        draw_energies_on(NETS["conv, probe"], 0, range(2), backend=cupy)
