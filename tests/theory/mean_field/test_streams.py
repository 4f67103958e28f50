"""Mean field of residual nets: by hand for one site, in both representations of site pairs, and against draws."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.scalings import SCALINGS
from meanfield.theory.mean_field import layers
from meanfield.theory.mean_field.layers import white_input, white_product
from meanfield.theory.two_points import EveryPair
from tests.draws import SINGLE
from tests.statistics import consistent


def _one_site(net):
    """The recursion of one site and k = 1 that takes gates anew at every block (docs/theory.md section 8): F_l."""
    q = net.sigma.gain
    e = net.multiplier**2 * net.weight_variances[0] * net.width
    c, kernel, cross, energies = 1.0, 0.0, 0.0, []
    for _ in range(net.depth):
        cross = cross * (1 + e * q) ** 2 + (2 * e * q + e * e * q) * kernel**2 / net.width
        kernel = kernel * (1 + e * q) + net.multiplier**2 * net.width * c * q
        c *= 1 + e * q
        energies.append(kernel**2 / net.width + cross)
    return np.array(energies)


def _both_open(c_first, c_second):
    """Probability that a random walk is positive at two of its variances."""
    rho = np.sqrt(min(c_first, c_second) / max(c_first, c_second))
    return (np.pi - np.arccos(rho)) / (2 * np.pi)


def _one_site_with_memory(net):
    """ReLU, k = 1: every past block's gate correlated with every later one, as a double sum. F_l and B_l."""
    n, blocks, q = net.width, net.depth, 0.5
    e = net.multiplier**2 * net.weight_variances[0] * n
    kernel = [0.0]
    for block in range(blocks):
        kernel.append(kernel[-1] * (1 + e * q) + net.multiplier**2 * n * (1 + e * q) ** block * q)
    above = [net.head_variance * net.outputs]  # what labels send down through the gates of blocks, top first
    for _ in range(blocks):
        above.append(e * q * sum(above))
    above = above[::-1]

    def phi_with(gate, upto):
        """E[gate_j phi] after so many blocks; gate None for the plain mean."""
        total = 0.0
        for m in range(upto):
            met = q if gate is None else _both_open((1 + e * q) ** m, (1 + e * q) ** gate)
            total += (1 + e * q) ** (upto - 1 - m) * e / n * kernel[m] ** 2 * met
        return total

    cross, overlap, label = 0.0, [], []
    for block in range(blocks):
        met = phi_with(block, block)
        cross += 2 * e * (q * cross + met) + e * e * (q * q * cross + 2 * q * met + q * kernel[block] ** 2 / n)
        upto = block + 1
        mean, fresh = phi_with(None, upto), kernel[upto] ** 2 / n + cross
        overlap.append(fresh + 2 * mean)
        gates = range(upto, blocks + 1)
        through = sum(above[j] * (q * (fresh + mean) + phi_with(j, upto)) for j in gates)
        label.append(n * through / net.outputs**2)
    return np.array(overlap), np.array(label)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_one_site_by_hand(scaling):
    linear = mf.ResidualMLP(depth=7, width=50, scaling=scaling, activation="linear")
    np.testing.assert_allclose(mf.predict(linear, level="mean_field").overlap_energy, _one_site(linear), rtol=1e-12)
    relu = mf.ResidualMLP(depth=7, width=50, scaling=scaling)
    predicted = mf.predict(relu, level="mean_field")
    overlap, label = _one_site_with_memory(relu)
    np.testing.assert_allclose(predicted.overlap_energy, overlap, rtol=1e-12)
    np.testing.assert_allclose(predicted.label_term, label, rtol=1e-12)
    assert (predicted.overlap_energy[2:] > (1 + 1e-5) * _one_site(relu)[2:]).all(), "gates that persist must count"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(
    "net",
    [
        {"grid": (5,), "kernel": (2,), "block_depth": 2, "stem": 1, "tail": 1},
        {"grid": (3, 4), "kernel": (2, 3), "inputs": 2, "scaling": "none"},
    ],
)
def test_displacements_say_what_all_pairs_say(net, activation):
    net = mf.ResidualConvNet(depth=3, channels=20, readout="convolution", activation=activation, **net)
    pairs = EveryPair(net)
    variance = white_input(net)[1][0, 0]
    covariance = variance * np.eye(net.inputs * net.sites)
    full = net.sigma.product(*pairs.variances(covariance), covariance)
    few = layers.stream_terms(net, *white_product(net))
    many = _with_full_input(net, pairs, full, covariance)
    for short, full_terms in zip(few, many, strict=True):
        for name in ("overlap", "label"):
            transport = white_input(net)[0]
            expected = pytest.approx(pairs.mean(getattr(full_terms, name)), rel=1e-10)
            assert transport.mean(getattr(short, name)) == expected


def _with_full_input(net, pairs, product, covariance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "white_input", lambda _: (pairs, covariance))
        return list(layers.stream_terms(net, pairs, product))


CONV = {"depth": 4, "block_depth": 2, "scaling": "none", "grid": (5,), "readout": "convolution"}
NETS = {
    "k = 1": lambda n: mf.ResidualMLP(depth=8, width=4 * n),
    "k = 2, stem and tail": lambda n: mf.ResidualMLP(
        depth=6, width=4 * n, block_depth=2, scaling="multiplier_sqrt", stem=1, tail=1
    ),
    "convolution, even kernel": lambda n: mf.ResidualConvNet(channels=n, kernel=(2,), **CONV),
    "convolution, zero padding": lambda n: mf.ResidualConvNet(channels=n, kernel=(3,), padding="zero", **CONV),
}


def _extrapolated(build, width, draws, expected=None):
    """2 r(2n) - r(n) of the top layer's label term over its prediction, and its error: what is left beyond 1/n."""
    ratios, errors = [], []
    for n in (width, 2 * width):
        net = build(n)
        measured = mf.simulate(net, draws=draws, seed=n, weights="lazy", **SINGLE)
        theory = mf.predict(net, level="mean_field").label_term if expected is None else expected(net)
        ratios.append(float(measured.label_term[-1] / theory[-1]))
        errors.append(float(measured.label_term_stderr[-1] / theory[-1]))
    return 2 * ratios[1] - ratios[0], np.hypot(2 * errors[1], errors[0])


@pytest.mark.parametrize("name", NETS)
def test_draws_approach_the_mean_field_as_channels_grow(name):
    ratio, error = _extrapolated(NETS[name], 48, 1500)
    assert consistent(ratio - 1, error, 1500, allowance=0.02)


def test_gates_without_memory_are_seen():
    """Negative control: the printed recursion, whose reduction to labels is (1 + 1/K)^(K - l), misses eight blocks."""
    ratio, error = _extrapolated(NETS["k = 1"], 48, 4000, lambda net: net.width / net.outputs * _one_site(net))
    assert not consistent(ratio - 1, error, 4000, allowance=0.02)


def test_init_scaling_is_the_multiplier_times_the_blocks_exactly():
    """With W' = W / sqrt(K) the functions agree and every one of W's updates is K times smaller."""
    init, multiplier = (mf.ResidualMLP(depth=4, width=32, scaling=s) for s in ("init", "multiplier_sqrt"))
    first, second = (mf.simulate(net, draws=20, seed=0).label_term for net in (init, multiplier))
    np.testing.assert_allclose(first, 16 * second, rtol=1e-12)
    first, second = (mf.predict(net, level="mean_field").label_term for net in (init, multiplier))
    np.testing.assert_allclose(first, 16 * second, rtol=1e-12)


def test_a_stream_of_given_values_is_refused():
    net = mf.ResidualConvNet(depth=2, channels=3, grid=(4,))
    with pytest.raises(ValueError, match="stem=1"):
        mf.predict(net, level="mean_field", inputs=np.ones(net.input_shape))


def test_levels_of_residual_nets():
    with pytest.raises(ValueError, match="choose one of 'mean_field': 'law' is for plain nets"):
        mf.predict(mf.ResidualMLP(depth=2, width=3), level="law")
    with pytest.raises(ValueError, match="choose one of 'exact', 'mean_field': 'law' is for plain nets"):
        mf.predict(mf.ResidualMLP(depth=2, width=3, activation="linear"), level="law")


@pytest.mark.parametrize("places", [{"stem": 2}, {"tail": 2}, {"stem": 1, "tail": 3}])
@pytest.mark.parametrize("scaling", ["init", "multiplier_sqrt"])
def test_wide_linear_nets_are_the_exact_ones_in_their_plain_layers_too(scaling, places):
    """At a million units, where exact expectations are the mean field: what blocks remember ends above them."""
    net = mf.ResidualMLP(depth=3, width=10**6, block_depth=2, scaling=scaling, activation="linear", **places)
    exact, limit = (mf.predict(net, level=level) for level in ("exact", "mean_field"))
    for name in ("overlap_energy", "label_term"):
        np.testing.assert_allclose(limit[name], exact[name], rtol=1e-4, err_msg=name)
