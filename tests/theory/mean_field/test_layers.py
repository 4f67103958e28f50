"""The mean field against closed forms, against itself in another representation, and against the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.nets.activations import ACTIVATIONS
from meanfield.theory import laws
from meanfield.theory.mean_field.layers import gate_energies, label_weights, layer_moments, white_product
from meanfield.theory.two_points import Displacements, EveryPair

LAYERS = np.arange(1, 31)


def test_relu_nets_of_one_site_grow_as_l_times_two_l_squared_plus_one():
    """F_l / n = l (2 l^2 + 1) / 12 (docs/theory.md section 6), which is not a sum of minima."""
    predicted = mf.predict(mf.MLP(depth=30, width=50), level="mean_field").overlap_energy / 50
    np.testing.assert_allclose(predicted, LAYERS * (2 * LAYERS**2 + 1) / 12, rtol=1e-12)


def test_linear_nets_of_one_site_grow_as_the_sum_of_minima():
    predicted = mf.predict(mf.MLP(depth=30, width=50, activation="linear"), level="mean_field").overlap_energy / 50
    minima = [sum(min(i, j) for i in range(1, layer + 1) for j in range(1, layer + 1)) for layer in LAYERS]
    np.testing.assert_allclose(predicted, minima, rtol=1e-12)
    np.testing.assert_allclose(laws.sum_of_minima(np.ones(30)), minima)
    np.testing.assert_allclose(minima, LAYERS * (LAYERS + 1) * (2 * LAYERS + 1) / 6)


def test_finite_depth_law_and_its_slopes():
    """eta* of the mean field is sqrt(24 / ((L+1)(L^2+L+1))) up to n; slopes -1.315 over 3..10 and -1.362 over 3..18."""
    depths = np.arange(3, 19)
    scale = np.array(
        [float(mf.predict(mf.MLP(depth=d, width=8), level="mean_field").label_learning_rate_scale) for d in depths]
    )
    law = np.sqrt(24 / ((depths + 1) * (depths**2 + depths + 1)))
    np.testing.assert_allclose(scale / scale[0], law / law[0], rtol=1e-12)
    assert mf.fit_power_law(depths[:8], scale[:8]).exponent == pytest.approx(-1.315, abs=5e-4)
    assert mf.fit_power_law(depths, scale).exponent == pytest.approx(-1.362, abs=5e-4)


@given(
    st.sampled_from([((6,), (3,)), ((5,), (2,)), ((3, 4), (2, 3))]),
    st.integers(1, 3),
    st.sampled_from(tuple(ACTIVATIONS)),
    st.sampled_from([None, 2]),
)
def test_displacements_are_all_pairs_on_a_circular_grid(lattice, inputs, activation, input_channels):
    grid, kernel = lattice
    net = mf.ConvNet(
        depth=4,
        channels=7,
        grid=grid,
        kernel=kernel,
        inputs=inputs,
        activation=activation,
        input_channels=input_channels,
    )
    transport, product = white_product(net)
    assert isinstance(transport, Displacements)
    pairs = EveryPair(net)
    white = np.eye(inputs * net.sites)
    full = net.sigma.product(*pairs.variances(white), white)
    few = layer_moments(net, transport, product)
    many = layer_moments(net, pairs, full)
    for ours, theirs in zip(few, many, strict=True):
        assert transport.mean(ours.overlap(7)) == pytest.approx(pairs.mean(theirs.overlap(7)), rel=1e-12)


@given(st.integers(0, 1000), st.sampled_from(["circular", "zero"]))
def test_transport_is_its_definition(seed, padding):
    """Tr(A)/k and Pk A Pk^T/k^2 from explicit shift matrices."""
    net = mf.ConvNet(depth=1, channels=1, grid=(3, 4), kernel=(3, 2), padding=padding, inputs=2)
    pairs = np.random.default_rng(seed).normal(size=(2, 12, 2, 12))
    shifts = _shift_matrices(net)
    transport = EveryPair(net)
    trace = sum(np.einsum("pq,bqcr,sr->bpcs", s, pairs, s) for s in shifts)
    flat = pairs.reshape(24, 24)
    np.testing.assert_allclose(transport.diagonal(flat), trace.reshape(24, 24) / 6, atol=1e-12)
    both = np.einsum("pq,bqcr,sr->bpcs", sum(shifts), pairs, sum(shifts))
    np.testing.assert_allclose(transport.independent(flat), both.reshape(24, 24) / 36, atol=1e-12)


def _shift_matrices(net):
    from meanfield.nets.lattice import OUTSIDE, neighbours

    matrices = []
    for row in neighbours(net.grid, net.kernel, net.padding):
        matrix = np.zeros((net.sites, net.sites))
        for site, target in enumerate(row):
            if target != OUTSIDE:
                matrix[site, target] = 1.0
        matrices.append(matrix)
    return matrices


def test_given_white_noise_approaches_the_white_law():
    net = mf.ConvNet(depth=5, channels=16, grid=(8,), readout="convolution", input_channels=20000)
    noise = np.random.default_rng(0).normal(size=net.input_shape)
    given_noise = mf.predict(net, level="mean_field", inputs=noise).label_term
    np.testing.assert_allclose(given_noise, mf.predict(net, level="mean_field").label_term, rtol=0.02)


def test_zero_padding_loses_mass_at_the_rate_of_the_top_eigenvalue():
    """The signal decays like lambda^l, lambda = (1 + 2 cos(pi/(N+1)))/3 for three taps (docs/theory.md section 7)."""
    net = mf.ConvNet(depth=200, channels=4, grid=(9,), kernel=(3,), padding="zero", activation="linear")
    transport, product = white_product(net)
    variance = [np.trace(moments.covariance) for moments in layer_moments(net, transport, product)]
    assert variance[-1] / variance[-2] == pytest.approx((1 + 2 * np.cos(np.pi / 10)) / 3, rel=1e-10)


def test_label_weights_are_constant_exactly_where_every_site_is_covered():
    options = {"depth": 3, "channels": 4, "grid": (6,), "readout": "convolution"}
    even = np.array(_label_weights(mf.ConvNet(**options)))
    np.testing.assert_allclose(even, even[0, 0], rtol=1e-12)
    edge = _label_weights(mf.ConvNet(padding="zero", **options))
    assert edge[0][0] < edge[0][2]


def _label_weights(net):
    return label_weights(net, gate_energies(net, *white_product(net)))


@pytest.mark.parametrize("head", ["he", "fan_in", "mup"])
def test_top_layer_reduction_relates_label_term_and_overlap_energy(head):
    net = mf.ConvNet(depth=4, channels=6, grid=(5,), kernel=(2,), readout="convolution", head=head, outputs=3)
    predicted = mf.predict(net, level="mean_field")
    gamma = net.head_variance * net.head_fan_in * net.sigma.gain
    np.testing.assert_allclose(predicted.label_term, gamma / net.output_units * predicted.overlap_energy, rtol=1e-12)


def test_sites_that_see_nothing_stay_silent():
    """A dark corner: pre-activations vanish identically there, and so do the kernel and the gates."""
    net = mf.ConvNet(depth=3, channels=8, grid=(9,), padding="zero", input_channels=1, readout="convolution")
    image = np.full(net.input_shape, -1.0)
    image[..., 8] = 1.0
    predicted = mf.predict(net, level="mean_field", inputs=image)
    assert np.all(np.isfinite(predicted.overlap_energy))
    assert np.all(predicted.overlap_energy > 0)


def test_levels_that_do_not_exist_name_those_that_do():
    with pytest.raises(ValueError, match=r"level for ConvNet is 'exact'; choose one of 'mean_field', 'law'"):
        mf.predict(mf.ConvNet(depth=2, channels=3), level="exact")
    with pytest.raises(ValueError, match="'exact', 'mean_field', 'law'"):
        mf.predict(mf.MLP(depth=2, width=3), level="rough")
    with pytest.raises(ValueError, match="choose one of 'mean_field', 'law'"):
        mf.predict(mf.MLP(depth=2, width=3, inputs=2), level="exact")
    with pytest.raises(ValueError, match="choose one of 'mean_field', 'law'"):
        mf.predict(mf.MLP(depth=2, width=3, activation="gelu"), level="exact")


def test_predictions_too_large_for_the_machine_say_how_much_they_need():
    net = mf.ConvNet(depth=2, channels=2, grid=(2000, 2000), kernel=(3, 3), padding="zero")
    with pytest.raises(MemoryError, match=r"needs about .* GiB, the machine has"):
        mf.predict(net, level="mean_field")


def test_a_thin_input_gives_the_law_a_light_first_layer():
    net = mf.ConvNet(depth=6, channels=300, grid=(8,), input_channels=3, activation="linear", kernel=(1,))
    law = mf.predict(net, level="law").overlap_energy
    with pytest.warns(mf.PremiseWarning, match="inputs are drawn with 3 channels alone"):
        theory = mf.predict(net, level="mean_field").overlap_energy
    assert law.attrs["anchor_layer"] == 2
    np.testing.assert_allclose(law, theory, rtol=1e-12)


def test_displacements_turn_and_step_as_all_pairs_do():
    """Pair by pair, of numbers without symmetry: means over pairs would not tell what is turned."""
    net = mf.ConvNet(depth=1, channels=2, grid=(3, 4), kernel=(2, 3), inputs=2)
    few, many = Displacements(net), EveryPair(net)
    numbers = np.random.default_rng(0).normal(size=(2, 12))
    row, column = np.divmod(np.arange(12), 4)
    place = (row - row[:, None]) % 3 * 4 + (column - column[:, None]) % 4  # of the second site from the first

    def spread(values):
        pairs = np.array([[values[int(b != c)][place] for c in range(2)] for b in range(2)])
        return pairs.transpose(0, 2, 1, 3).reshape(24, 24)

    for name in ("transpose", "first", "independent", "diagonal"):
        expected = getattr(many, name)(spread(numbers))
        np.testing.assert_allclose(spread(getattr(few, name)(numbers)), expected, rtol=1e-12, err_msg=name)
