"""The label term under a pooled readout: by its second moments written out, and against draws."""

import itertools

import numpy as np
import pytest

import meanfield as mf
from meanfield.nets.lattice import OUTSIDE, neighbours
from meanfield.theory.laws.plain import single_site_terms
from meanfield.theory.mean_field.inputs import input_products
from meanfield.theory.mean_field.layers import layer_moments
from meanfield.theory.mean_field.pooled_labels import pooled_label_term
from meanfield.verification.finite_width import finite_width_allowance
from tests.statistics import consistent

DRAWS = 2048


def _by_site_pairs(net, inputs=None):
    """c and K of every layer over all pairs of sites of one sample, from the recursion that keeps pairs."""
    transport, product = input_products(net, inputs)
    layers = layer_moments(net, transport, product)
    return [(layer.covariance[0, :, 0], layer.kernel[0, :, 0]) for layer in layers]


def _triple(gate, p, r, s, activation):
    """E[s'(p)^2 s'(r) s'(s)]: 1, or the probability that three units of a Gaussian are on."""
    return 1.0 if activation == "linear" else (gate[p, r] + gate[p, s] + gate[r, s]) / 2 - 1 / 4


def _written_out(net):
    """docs/theory.md section 9 term by term, V(p; p', p'') in full: S^3 numbers a layer, one sample, zero padding."""
    table, gain, sites = neighbours(net.grid, net.kernel, net.padding), net.sigma.gain, range(net.sites)
    widths, taps = net.channels_by_layer, net.taps
    layers = _by_site_pairs(net)
    gates = [net.sigma.gate_product(np.diag(c)[:, None], np.diag(c)[None], c) for c, _ in layers]
    errors = [np.full((net.sites,) * 2, net.head_variance / (net.outputs * net.sites**2)) * gates[-1]]
    for place in range(len(layers) - 1, 0, -1):
        down = np.zeros((net.sites,) * 2)
        for shift, p, r in itertools.product(table, sites, sites):
            if OUTSIDE not in (shift[p], shift[r]):
                down[shift[p], shift[r]] += errors[0][p, r] * widths[place + 1] / (gain * taps * widths[place])
        errors.insert(0, down * gates[place - 1])
    second, terms = np.zeros((net.sites,) * 3), []
    for place, (_, kernel) in enumerate(layers):
        if place:
            second = _second_moment_above(net, table, gates[place - 1], layers[place - 1][1], second, widths[place])
        total = kernel[:, :, None] * kernel[:, None] + widths[place + 1] * second
        terms.append(np.einsum("prs,rs->p", total, errors[place]).mean())
    return np.array(terms)


def _second_moment_above(net, table, gate, kernel, second, width):
    above, sites = np.zeros_like(second), range(net.sites)
    for down, other in itertools.product(table, table):
        for p, r, s in itertools.product(sites, sites, sites):
            below = down[p], other[r], other[s]
            if OUTSIDE not in below:
                carried = second[below] * gate[below[0], below[0]] * gate[below[1:]]
                born = kernel[below[:2]] * kernel[below[0], below[2]] * _triple(gate, *below, net.activation) / width
                above[p, r, s] += (carried + born) / (net.sigma.gain * net.taps) ** 2
    return above


@pytest.mark.parametrize(
    "net",
    [
        mf.ConvNet(depth=3, channels=7, grid=(4,), kernel=(3,), padding="zero", outputs=3),
        mf.ConvNet(depth=3, channels=(5, 9, 6), grid=(3, 2), kernel=(2, 2), padding="zero", head="mup"),
        mf.ConvNet(depth=3, channels=7, grid=(4,), kernel=(2,), padding="zero", activation="linear", head="fan_in"),
    ],
    ids=["1d", "2d, unequal", "linear"],
)
def test_it_is_the_recursion_written_out(net):
    np.testing.assert_allclose(pooled_label_term(net), _written_out(net), rtol=1e-8)


def test_displacements_say_what_pairs_of_sites_do():
    """With one tap there are no edges: the two paddings are one net, kept in two representations."""
    options = {"depth": 4, "channels": 32, "grid": (5,), "kernel": (1,), "inputs": 2}
    torus, edges = (mf.ConvNet(padding=padding, **options) for padding in ("circular", "zero"))
    np.testing.assert_allclose(pooled_label_term(torus), pooled_label_term(edges), rtol=1e-10)


def test_copies_of_an_image_are_samples_with_labels_of_their_own():
    image = np.random.default_rng(0).normal(size=(1, 32, 5, 3))
    alone, three = (mf.ConvNet(depth=4, channels=32, grid=(5, 3), kernel=(3, 2), inputs=n) for n in (1, 3))
    together = pooled_label_term(three, np.concatenate([image] * 3))
    np.testing.assert_allclose(together, pooled_label_term(alone, image) / 3, rtol=1e-10)


NETS = {
    "1d": mf.ConvNet(depth=4, channels=128, grid=(6,), kernel=(3,), outputs=4),
    "2d, three samples": mf.ConvNet(depth=4, channels=96, grid=(4, 3), kernel=(2, 3), inputs=3),
    "1d zero, two samples": mf.ConvNet(depth=4, channels=96, grid=(5,), kernel=(2,), padding="zero", inputs=2),
    "2d zero": mf.ConvNet(depth=3, channels=96, grid=(3, 3), kernel=(3, 3), padding="zero", head="fan_in"),
    "linear": mf.ConvNet(depth=4, channels=96, grid=(5,), kernel=(3,), activation="linear", head="mup"),
    "unequal, off the fan-in rule": mf.ConvNet(depth=3, channels=(96, 64, 128), grid=(5,), weight_variance=1.5),
}


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_draws_meet_it(net):
    measured, predicted = mf.simulate(net, draws=DRAWS, seed=1), pooled_label_term(net)
    value, stderr = measured["label_term"].values, measured["label_term_stderr"].values
    assert consistent(value - predicted, stderr, DRAWS, finite_width_allowance(net) * predicted)
    if net.activation == "linear":
        return
    # The overlap energy in its place, set at layer 1, is another law: gates part what a label joins.
    stand_in = mf.predict(net, level="mean_field")["overlap_energy"].values
    stand_in = stand_in * predicted[0] / stand_in[0]
    assert not consistent(value - stand_in, stderr, DRAWS, finite_width_allowance(net) * stand_in)


def test_the_bias_shrinks_as_one_over_channels():
    ratios = []
    for channels in (16, 32, 64):
        net = mf.ConvNet(depth=4, channels=channels, grid=(5,), kernel=(3,))
        measured = mf.simulate(net, draws=2 * DRAWS, seed=2)
        predicted = pooled_label_term(net)
        ratios.append((measured["label_term"] / predicted, measured["label_term_stderr"] / predicted))
    (_, _), (narrow, narrow_error), (wide, wide_error) = ratios
    assert ratios[0][0][-1] > narrow[-1] > wide[-1] > 1
    assert consistent(2 * wide - narrow - 1, np.hypot(2 * wide_error, narrow_error), 2 * DRAWS, 0.02)
    assert not consistent(narrow - 1, narrow_error, 2 * DRAWS, 0.02)


def test_given_images():
    net = mf.ConvNet(depth=4, channels=96, grid=(10,), input_channels=1, inputs=2)
    ramp = np.linspace(-1, 1, 10)
    images = np.stack([ramp, np.cos(3 * ramp)])[:, None]
    measured, predicted = mf.simulate(net, draws=DRAWS, seed=1, inputs=images), pooled_label_term(net, images)
    allowance = finite_width_allowance(net, images) * predicted
    assert consistent(measured["label_term"] - predicted, measured["label_term_stderr"], DRAWS, allowance)


@pytest.mark.parametrize(
    "net", [mf.ResidualConvNet(depth=2, channels=4), mf.ConvNet(depth=2, channels=4, activation="gelu")]
)
def test_nets_without_theory_are_refused(net):
    with pytest.raises(ValueError, match="take readout='convolution'"):
        pooled_label_term(net)


@pytest.mark.parametrize(
    ("net", "energy"),
    [
        (mf.MLP(depth=20, width=10**6, outputs=10**6), 1.0),
        (mf.MLP(depth=30, width=10**6, outputs=10**5, head="fan_in"), 0.5),
        (mf.MLP(depth=9, width=10**6, outputs=2 * 10**6, activation="linear"), 1.0),
    ],
)
def test_terms_of_many_outputs_are_the_limit_of_exact_ones(net, energy):
    exact = mf.predict(net, level="exact")
    output, label = single_site_terms(net.depth, net.outputs / net.width, energy, net.sigma.gain)
    np.testing.assert_allclose(output, exact["output_term"], rtol=3e-4)
    np.testing.assert_allclose(label, exact["label_term"], rtol=1e-4)
