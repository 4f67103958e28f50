"""The transports of all maps: complete, exact where that can be said, and clear where they refuse."""

import contextlib
from inspect import isabstract

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets import maps
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.maps import Attention, Bias, Gate, Linear, Normalisation, Pointwise, Pooling, Weight
from meanfield.nets.net import Chain, Unit
from meanfield.simulation.maps import OPERATIONS
from meanfield.theory.maps import TRANSPORTS, ChannelKind, NoTransport, mean_of, through_normalisation, through_softmax
from meanfield.theory.mean_field.layers import forward_moments, given_product, input_variance, layer_moments
from meanfield.theory.tangent_kernels import value_kernels
from meanfield.theory.two_points import EveryPair
from tests.statistics import consistent
from tests.strategies import chains, conv_nets, mlps
from tests.theory.maps.measured import drawn, predicted
from tests.theory.maps.nets import inputs_of, linear, residual, stack


def test_every_map_has_its_side_of_both_roads():
    listed = {kind for kind in vars(maps).values() if isinstance(kind, type) and issubclass(kind, maps.Map)}
    concrete = {kind for kind in listed if not isabstract(kind)}
    assert concrete == set(TRANSPORTS)
    assert concrete <= set(OPERATIONS)


@settings(max_examples=30)
@given(st.one_of(mlps(), conv_nets()), st.integers(0, 99))
def test_nets_of_layers_have_the_moments_of_the_mean_field(net, seed):
    """For given inputs, which need no width: c and K of layers 1 .. L."""
    net = net.replace(**{"width" if isinstance(net, mf.MLP) else "channels": 3})
    inputs = np.random.default_rng(seed).normal(size=net.input_shape)
    transport, product = given_product(net, inputs)
    assume(_below_one(product))
    layers = layer_moments(net, transport, product)
    for ours, theirs in zip(value_kernels(net, inputs), layers, strict=False):
        shape = ours.covariance.shape
        np.testing.assert_allclose(ours.covariance, theirs.covariance.reshape(shape), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ours.kernel, theirs.kernel.reshape(shape), rtol=1e-10, atol=1e-12)


def _below_one(product):
    """Whether no two places correlate perfectly: there ReLU's slopes magnify rounding to its square root, 1e-8."""
    norms = np.sqrt(np.diagonal(product))
    return (np.abs(np.triu(product, 1)) <= (1 - 1e-9) * np.outer(norms, norms)).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scaling", ["init", "multiplier_sqrt"])
def test_streams_have_the_covariances_of_the_mean_field(activation, scaling):
    options = {"grid": (4,), "padding": "zero", "activation": activation, "scaling": scaling, "inputs": 2}
    net = mf.ResidualConvNet(depth=3, channels=5, block_depth=2, stem=1, tail=1, **options)
    white = np.eye(2 * net.sites)
    pairs = EveryPair(net)
    product = net.sigma.product(*pairs.variances(white), white)
    layers = [covariance for _, covariance in forward_moments(net, pairs, product)]
    for ours, end in zip(value_kernels(net), net.unit_ends, strict=False):
        np.testing.assert_allclose(ours.covariance, layers[end - 1].reshape((2, net.sites) * 2), rtol=1e-10, atol=1e-14)


def test_one_site_of_a_residual_net():
    """K <- K (1 + e q) + a^2 n xx, c <- c + e xx, e = a^2 s n, xx = c / 2 (docs/theory.md section 8)."""
    net = mf.ResidualMLP(depth=6, width=10, scaling="multiplier_sqrt")
    a, n, s = net.multiplier, 10, net.weight_variances[0]
    c, k = input_variance(net), 0.0
    for point in list(value_kernels(net))[:6]:
        k, c = k * (1 + a**2 * s * n / 2) + a**2 * n * c / 2, c * (1 + a**2 * s * n / 2)
        np.testing.assert_allclose([point.covariance.item(), point.kernel.item()], [c, k], rtol=1e-12)


def test_loops_of_steps_with_matrices_of_their_own():
    """H_L = H_0 (1 + eps^2 sw2 / 2)^L (docs/theory.md section 11)."""
    *_, top = value_kernels(mf.TiedLoop(depth=9, width=7, alpha=0.5, tied=False))
    assert top.covariance.item() == pytest.approx((1 + 2.0 / 9 / 2) ** 9, rel=1e-12)


def exact_net():
    """All maps that are linear, at widths that know nothing of infinity."""
    bias = Bias(Weight("b", (4,), 0.7))
    conv = linear("conv", 4, 4, (2,), 2, padding="zero", dilation=2)
    units = [
        Unit((linear("stem", 4, 3, (3,)), bias)),
        Unit((linear("alone", 4, 4, (2,), 4), Pointwise("linear")), 1, 0.5),
        Unit((conv, linear("mix", 4, 4)), 1, 0.8),
        Unit((stack(("left", "right"), 4), linear("join", 5, 8, (), 1), Pooling())),
    ]
    return Chain(units=tuple(units), input_channels=3, grid=(3,), inputs=2)


def linear_agrees(net):
    draws = 6000
    draws_of_net = drawn(net, inputs_of(net), draws, 7)
    expected, size = predicted(net, inputs_of(net))
    return consistent(
        (draws_of_net.mean(axis=0) - expected) / size, (draws_of_net / size).std(axis=0) / draws**0.5, draws
    )


def test_linear_nets_are_exact_at_any_width():
    assert linear_agrees(exact_net())


def test_a_bias_counts_among_the_parameters():
    """The kernel of a first linear map is the same in every draw: x x' and 1."""
    units = (Unit((linear("stem", 4, 3, (3,)), Bias(Weight("b", (4,), 0.7)))),)
    net = Chain(units=units, input_channels=3, grid=(3,), inputs=2)
    inputs = inputs_of(net)
    (kernels,) = {tuple(np.round(kernel, 12)) for kernel in drawn(net, inputs, 25, 0)[:, 1]}
    np.testing.assert_allclose(kernels, predicted(net, inputs)[0][1], rtol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_means_of_activations(activation):
    variance = np.array([0.0, 0.3, 1.0, 4.0])
    z = np.linspace(-10, 10, 20001)
    weights = np.exp(-z * z / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    direct = activation.function(np.sqrt(variance)[:, None] * z) @ weights
    np.testing.assert_allclose(mean_of(activation, variance), direct, atol=1e-6)


def test_normalised_given_inputs_are_what_they_are():
    """Of either kind, and the same values again under "layer", whose mean over channels is then 0."""
    inputs = np.random.default_rng(0).normal(size=(2, 5, 3)) + 1.0
    centred = inputs - inputs.mean(axis=1, keepdims=True)
    values = centred / centred.std(axis=1, keepdims=True)
    maps = (Normalisation("layer"), Normalisation("rms"), Normalisation("layer"), linear("top", 4, 5))
    net = Chain(units=(Unit(maps),), input_channels=5, grid=(3,), inputs=2)
    (kinds,) = value_kernels(net, inputs)
    np.testing.assert_allclose(kinds.covariance, 1.2 * np.einsum("bip,cir->bpcr", values, values) / 5, atol=1e-12)


@given(chains())
def test_nets_at_random_close_or_say_why_not(net):
    """Finite, symmetric and positive, up to where they are refused."""
    with contextlib.suppress(NoTransport):
        for kinds in value_kernels(net):
            for pairs in (kinds.covariance, kinds.kernel):
                matrix = pairs.reshape(pairs.shape[0] * pairs.shape[1], -1)
                np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
                assert np.linalg.eigvalsh(matrix).min() > -1e-9 * np.abs(matrix).max()


def refused(*units, readout=None, channels=4):
    return Chain(units=units, readout_unit=readout, input_channels=channels, grid=(2,))


LINEAR = linear("w", 4, 4)
STACK = stack(("q", "k", "v"), 4)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (refused(Unit((LINEAR, Pointwise("relu"), Pointwise("tanh")))), "unit 1, Pointwise: its input is not Gaussian"),
        (refused(Unit((linear("w", 4, 4, (), 4), Pointwise("relu")))), "sees many channels"),
        (refused(Unit((LINEAR,)), Unit((Pointwise("relu"), Gate("silu")))), "unit 2, Gate: its input is not Gaussian"),
        (refused(Unit((STACK, Attention(1, rotary=True)))), r"unit 1, Attention: rotary positions turn"),
        (
            refused(Unit((STACK, Pointwise("relu"), Attention(2, "inverse")))),
            "queries or keys are not Gaussian",
        ),
        (refused(Unit((LINEAR,)), Unit((Pointwise("relu"),), 1)), "unit 2: its branch has no linear map of its own"),
        (refused(Unit((LINEAR,)), Unit((LINEAR,))), "weight 'w' is used in several places"),
        (refused(Unit((LINEAR,)), readout=Unit((LINEAR,))), "weight 'w' is used in several places"),
        (
            refused(Unit((LINEAR,)), readout=Unit((Pointwise("relu"), Pooling(), Pointwise("relu")))),
            "the readout, Pointwise",
        ),
        (mf.TiedLoop(depth=2, width=4), "weight 'W' is used in several places"),
    ],
)
def test_what_does_not_close_is_refused_where_it_stands(net, message):
    with pytest.raises(NoTransport, match=message):
        list(value_kernels(net))


def test_values_that_vanish_have_no_size():
    net = refused(Unit((Normalisation("rms"), LINEAR)))
    with pytest.raises(NoTransport, match="vanishes at some site"):
        list(value_kernels(net, np.zeros(net.input_shape)))


def test_refusals_say_unit_map_and_reason():
    with pytest.raises(NoTransport) as refusal:
        list(value_kernels(refused(Unit((STACK, Attention(1, rotary=True))))))
    assert (refusal.value.unit, refusal.value.map) == ("unit 1", Attention(1, rotary=True))


def test_a_map_that_theory_does_not_know_is_refused_where_it_stands(monkeypatch):
    monkeypatch.delitem(TRANSPORTS, Normalisation)
    net = refused(Unit((LINEAR,)), Unit((Normalisation("rms"), Pointwise("relu"))))
    with pytest.raises(NoTransport, match="unit 2, Normalisation: nothing is known"):
        list(value_kernels(net))
    with pytest.raises(NoTransport, match="unit 2, Normalisation: nothing is known"):
        mf.predict(net, level="mean_field")


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="inputs"):
        value_kernels(residual(4), np.ones((2, 2)))
    with pytest.raises(ValueError, match="give inputs"):
        value_kernels(Chain(units=(Unit((LINEAR,)),), input_channels=4, input_law="normalised"))


def test_a_stack_of_unlike_kinds_is_taken_apart_channel_by_channel():
    """Groups of a grouped map see kinds of their own; on average over channels nothing depends on the order."""
    below = Linear((Weight("a", (6, 4), 0.2), Weight("b", (2, 4), 0.9)))
    whole, halves = linear("top", 4, 8), linear("top", 4, 8, (), 2)
    square = [list(value_kernels(refused(Unit((below, top)))))[-1] for top in (whole, halves)]
    np.testing.assert_allclose(square[0].covariance, square[1].covariance, rtol=1e-12)
    np.testing.assert_allclose(square[0].kernel, 2 * square[1].kernel - _carried(square[1]), rtol=1e-12)


def _carried(kinds):
    """t' - own, own = c' / s with s = 1.2 / 4."""
    return kinds.kernel - kinds.covariance / 0.3


def _kind(seed, mean=0.0, channels=12):
    """Two samples of two sites, of a random covariance and kernel."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(2, 4, 6)) / np.sqrt(6)
    covariance, kernel = (factor @ factor.T for factor in factors)
    means = np.full(4, mean)
    shape = (2, 2, 2, 2)
    both = covariance + np.outer(means, means)
    return ChannelKind(channels, both.reshape(shape), (9 * kernel).reshape(shape), means.reshape(2, 2))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_values_that_are_normalised_stay_so(kind):
    """Of two kinds of channels whose means differ: normalisation twice is normalisation once."""
    below = _kind(0, 0.7), _kind(1, -0.2, channels=5)
    once = through_normalisation(Normalisation(kind), below, (2,))
    twice = through_normalisation(Normalisation(kind), once, (2,))
    for first, second in zip(once, twice, strict=True):
        for name in ("covariance", "kernel", "mean"):
            np.testing.assert_allclose(getattr(second, name), getattr(first, name), rtol=1e-12, atol=1e-12)


def test_softmax_averages_are_those_of_drawn_logits():
    """By the formula, term by term, over logits that are drawn here; queries, keys and values all have kernels."""
    queries, keys, values = (_kind(seed) for seed in (2, 3, 4))
    (above,) = through_softmax(Attention(heads=2), queries, keys, (values,))
    flat = [getattr(kind, name).reshape(4, 4) for kind in (queries, keys, values) for name in ("covariance", "kernel")]
    c_q, t_q, c_k, t_k, c_v, t_v = flat
    draws = 20_000
    normals = np.random.default_rng(5).normal(size=(draws, 4, 4))
    logits = np.linalg.cholesky(c_q) @ normals @ np.linalg.cholesky(c_k).T
    weights = np.exp(logits) * np.kron(np.eye(2), np.ones((2, 2)))
    rows = weights / weights.sum(axis=2, keepdims=True)
    moved = np.einsum("dir,ij->dirj", rows, np.eye(4)).diagonal(axis1=1, axis2=3).swapaxes(1, 2)  # A_ir once more
    slopes = np.einsum("dir,rs->dirs", moved, np.eye(4)) - np.einsum("dir,dis->dirs", rows, rows)
    spread = np.einsum("dira,ab,djbs->dijrs", slopes, c_v, slopes, optimize=True)
    by_logits = np.einsum(
        "dijrs,ijrs->dij", spread, np.einsum("ij,rs->ijrs", t_q, c_k) + np.einsum("ij,rs->ijrs", c_q, t_k)
    )
    sums = {"covariance": rows @ c_v @ rows.swapaxes(1, 2), "kernel": rows @ t_v @ rows.swapaxes(1, 2) + by_logits}
    for name, terms in sums.items():
        expected = getattr(above, name).reshape(4, 4)
        allowance = 0.01 * np.abs(expected).max()
        stderr = terms.std(axis=0) / np.sqrt(draws)
        assert consistent(terms.mean(axis=0) - expected, stderr, draws, allowance)
        assert not consistent(1.1 * terms.mean(axis=0) - expected, stderr, draws, allowance)
    without = np.einsum("dijrs,ijrs->dij", spread, np.einsum("ij,rs->ijrs", c_q, t_k)).mean(axis=0)
    assert np.abs(without).max() > 0.05 * np.abs(sums["kernel"].mean(axis=0)).max()


def test_covariances_of_sums_are_symmetric_and_those_of_all_means():
    """Of a stream and a branch that both are rectified, so that both have means, which differ from point to point."""
    bias = Bias(Weight("bias", (8,), 0.8))  # without it the means would be in proportion to each other
    units = (Unit((linear("a", 8, 3), Pointwise("relu"))), Unit((linear("b", 8, 8), bias, Pointwise("relu")), 1, 0.6))
    net = Chain(units=units, input_channels=3, grid=(2,), inputs=2)
    inputs = np.random.default_rng(6).normal(size=(2, 3, 2)) * [[[0.3, 2.0]]]
    below, above = value_kernels(net, inputs)
    np.testing.assert_allclose(above.covariance, above.covariance.transpose(2, 3, 0, 1), rtol=1e-12)
    assert np.ptp(np.einsum("bpbp->bp", below.covariance)) > 0.1
    # E (s + a b)(s' + a b') of a rectified b that is independent of s: both have the mean size / sqrt(pi) at gain 1/2.
    branch = value_kernels(
        Chain(units=(units[0], Unit(units[1].branch)), input_channels=3, grid=(2,), inputs=2), inputs
    )
    _, alone = branch
    means = [np.sqrt(np.einsum("bpbp->bp", each.covariance) / np.pi).ravel() for each in (below, alone)]
    crossed = 0.6 * (np.outer(*means) + np.outer(*means[::-1]))
    expected = below.covariance + 0.36 * alone.covariance + crossed.reshape(below.covariance.shape)
    np.testing.assert_allclose(above.covariance, expected, rtol=1e-9)


@pytest.mark.parametrize("rectified", ["stream", "branch"])
def test_a_sum_is_gaussian_only_where_both_of_its_parts_are(rectified):
    """An activation behind the sum has no average that second moments tell."""
    relu = (Pointwise("relu"),)
    stream, branch = (
        (linear(name, 8, 8),) + relu * (rectified == of) for name, of in (("s", "stream"), ("b", "branch"))
    )
    below, above = Unit((linear("a", 8, 3), *relu, *stream)), Unit((Pointwise("tanh"), linear("top", 8, 8)))
    net = Chain(units=(below, Unit(branch, 1), above), input_channels=3, grid=(2,), inputs=2)
    with pytest.raises(NoTransport, match="not Gaussian"):
        list(value_kernels(net, np.ones((2, 3, 2)) + np.arange(12).reshape(2, 3, 2)))
