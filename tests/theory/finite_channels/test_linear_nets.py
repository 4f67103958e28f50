"""Linear nets at any number of channels: two exact roads, against quadrature and against draws."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.layered import READOUTS
from meanfield.theory import finite_channel_factor, mean_field_profiles
from meanfield.theory.finite_channels import exact_terms_of_pairs, exact_terms_of_waves
from tests.draws import SINGLE
from tests.statistics import consistent
from tests.theory.finite_channels import drawn


def _net(**options):
    return mf.ConvNet(**({"activation": "linear", "grid": (4,), "kernel": (3,), "readout": "convolution"} | options))


@pytest.mark.parametrize("padding", ["circular", "zero"])
@pytest.mark.parametrize(
    ("grid", "kernel", "input_channels", "channels"),
    [
        ((2,), (2,), 1, (1, 1)),
        ((3,), (2,), 1, (1, 1, 1)),
        ((2,), (2,), 1, (2, 1)),
        ((3,), (1,), 1, (2, 2)),
        ((2,), (1,), 2, (1, 1, 2)),
        ((2, 2), (2, 1), 1, (1, 1)),
    ],
)
def test_every_draw_of_a_quadrature(grid, kernel, input_channels, channels, padding):
    """Few normals, each with fourth powers: a rule of 3 nodes is exact, and shares nothing with the recursion."""
    options = {"depth": len(channels), "grid": grid, "kernel": kernel, "padding": padding}
    net = _net(channels=channels, input_channels=input_channels, **options)
    exact = drawn.mean_overlap_energies(net)
    assert exact_terms_of_pairs(net, None)[1] == pytest.approx(exact, rel=1e-12)
    factor = exact / mean_field_profiles(net)[0]
    assert finite_channel_factor(net, quantity="overlap_energy") == pytest.approx(factor, rel=1e-12)
    other = net.replace(weight_variance=1.5)
    assert finite_channel_factor(other, quantity="overlap_energy") == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize(
    ("grid", "kernel", "inputs"),
    [((5,), (2,), 1), ((3, 4), (3, 3), 1), ((2, 3), (2, 1), 2), ((4,), (1,), 3), ((1,), (1,), 2), ((4,), (4,), 1)],
)
def test_pairs_of_waves_are_all_points_alike(grid, kernel, inputs, readout):
    channels = {"channels": (8, 4, 6, 5), "depth": 4, "input_channels": 3, "outputs": 3, "head": "fan_in"}
    net = _net(grid=grid, kernel=kernel, inputs=inputs, readout=readout, **channels)
    for by_waves, by_pairs in zip(exact_terms_of_waves(net), exact_terms_of_pairs(net, None), strict=True):
        assert by_waves == pytest.approx(by_pairs, rel=1e-13)


def test_samples_are_sites_without_a_stencil():
    nets = [_net(depth=6, channels=8, kernel=(1,), grid=(4 // n,), inputs=n) for n in (1, 2, 4)]
    sites, *samples = (finite_channel_factor(net) for net in nets)
    assert samples == [pytest.approx(sites), pytest.approx(sites)]


BATCH = np.random.default_rng(3).normal(size=(2, 3, 4))
DRAWN = {
    "32 sites": (_net(depth=6, channels=24, grid=(32,), outputs=4), None, 2000),
    "pooled": (_net(depth=4, channels=16, grid=(24,), outputs=4, readout="pooled"), None, 2000),
    "6 x 6 sites": (_net(depth=4, channels=16, grid=(6, 6), kernel=(3, 2), outputs=2), None, 2000),
    "zero-padded": (_net(depth=4, channels=8, padding="zero", outputs=4), None, 4000),
    "zero-padded, pooled": (_net(depth=4, channels=8, padding="zero", outputs=8, readout="pooled"), None, 4000),
    "given batch": (_net(depth=4, channels=8, inputs=2, input_channels=3, outputs=8, readout="pooled"), BATCH, 4000),
}


@pytest.mark.usefixtures("no_overlap_energies")
@pytest.mark.parametrize(("net", "inputs", "draws"), DRAWN.values(), ids=DRAWN.keys())
def test_draws(net, inputs, draws):
    """At L/C = 1/4 and more; leading order is refused."""
    measured = mf.simulate(net, draws=draws, seed=5, inputs=inputs, **SINGLE)
    leading = mf.predict(net, level="mean_field", inputs=inputs)["label_term"].values
    mean, stderr = measured["label_term"].values, measured["label_term_stderr"].values
    assert consistent(mean - finite_channel_factor(net, inputs) * leading, stderr, draws)
    assert not consistent(mean - leading, stderr, draws)


def test_inputs_of_zeros_are_refused():
    with pytest.raises(ValueError, match="zero everywhere"):
        finite_channel_factor(_net(depth=2, channels=4, input_channels=2), np.zeros((1, 2, 4)))
