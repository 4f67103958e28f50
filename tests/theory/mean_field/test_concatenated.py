"""Nets whose blocks concatenate: the recursion with every part and every sum written out, limits, and draws."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield as mf
from meanfield.theory.mean_field.concatenated import concatenated_profiles
from meanfield.theory.mean_field.layers import given_product
from tests.draws import SINGLE, terms_alone
from tests.statistics import consistent
from tests.theory.outputs.naive import _shifts


class Part:
    """c, xx, g, h over pairs of points and e by point of so many Gaussian channels, with their kernel."""

    def __init__(self, net, channels, covariance, kernel):
        sigma, variance = net.plain.sigma, np.diag(covariance)
        sides = variance[:, None], variance[None]
        self.channels, self.kernel = channels, kernel
        self.features, self.gate = sigma.product(*sides, covariance), sigma.gate_product(*sides, covariance)
        self.gate_square = sigma.gate_square_product(*sides, covariance)
        self.energy = sigma.gate_product(variance, variance, variance)


def written_out(net, inputs=None, *, memory=True):
    """F and the label term of every depth unit, (L,) each; without ``memory`` gates are met as if drawn anew."""
    plain, places = net.plain, net.inputs * net.sites
    shifts, taps, gain = _shifts(plain), plain.taps, plain.sigma.gain
    first = Part(net, net.first_channels, np.eye(places), np.zeros((places, places)))
    if inputs is not None:
        first.features = given_product(plain, inputs)[1]
    parts, moments, gated, values = [first], {(0, 0): np.zeros((places, places))}, {}, []

    def second(c, d, at_c, at_d):
        """E Theta_cd^2 of two units of parts c and d, with the squared gates at either side that are asked for."""
        if c < d:
            return second(d, c, at_d, at_c).T
        if c == d:
            square, of_d = moments[c, c], parts[d].energy[None] if at_d else 1.0
        else:
            square, of_d = gated[c, d] if at_d and memory else moments[c, d], 1.0
            of_d = parts[d].energy[None] if at_d and not memory else of_d
        return square * of_d * (parts[c].energy[:, None] if at_c else 1.0)

    def own(part, at_second):
        """The unit that is met on both sides."""
        if at_second and memory:
            return part.gate_square * part.kernel**2
        return part.energy[:, None] * part.kernel**2 * (part.energy[None] if at_second else 1.0)

    for number in range(len(net.units)):
        below, stem = range(len(parts)), number < net.stem
        count = sum(part.channels for part in parts)
        variance = 1 / (gain * taps * count)
        features = sum(part.channels * part.features for part in parts)
        carried = sum(part.channels * part.gate * part.kernel for part in parts)
        tr_features, tr_carried = (sum(shift @ each @ shift.T for shift in shifts) for each in (features, carried))
        new = Part(net, net.width if stem else net.growth, variance * tr_features, tr_features + variance * tr_carried)
        between, between_gated = {}, {}
        for i in below:
            for at_second, kept in ((False, between), (True, between_gated)):
                met = own(parts[i], at_second) + sum(parts[c].channels * second(c, i, True, at_second) for c in below)
                kept[i] = variance * sum(shift @ met for shift in shifts)
        met = sum(parts[c].channels * parts[d].channels * second(c, d, True, True) for c in below for d in below) + sum(
            part.channels * (part.gate_square * part.kernel**2) for part in parts
        )
        both = sum(first_shift @ met @ second_shift.T for first_shift in shifts for second_shift in shifts)
        if stem:
            parts, moments, gated = [], {}, {}
        top = len(parts)
        parts.append(new)
        moments[top, top] = variance**2 * both
        if not stem:
            moments |= {(top, i): between[i] for i in below}
            gated |= {(top, i): between_gated[i] for i in below}
        values.append((list(parts), _sums(parts, second)))
    return _terms(net, values, shifts)


def _sums(parts, second):
    """sum over units a, b of E Theta_ab^2, and of s'(z_b)^2 Theta_ab^2."""
    every = [(c, d) for c in range(len(parts)) for d in range(len(parts))]
    overlap = sum(parts[c].channels * parts[d].channels * second(c, d, False, False) for c, d in every)
    label = sum(parts[c].channels * parts[d].channels * second(c, d, False, True) for c, d in every)
    overlap = overlap + sum(part.channels * part.kernel**2 for part in parts)
    return overlap, label + sum(part.channels * part.kernel**2 * part.energy[None] for part in parts)


def _terms(net, values, shifts):
    plain, places = net.plain, net.inputs * net.sites
    ones, rows = np.ones(places), []
    sent = plain.head_variance * net.outputs / (plain.output_units * net.inputs) ** 2 * ones
    if plain.readout == "convolution":
        sent = sum(shift.T for shift in shifts) @ sent
    for number in reversed(range(len(values))):
        parts, (overlap, label) = values[number]
        count = net.value_channels[number + 1]
        rows.insert(0, (overlap.mean() / count**2, (label @ sent).sum() / (count * places)))
        last = parts[-1]
        variance = 1 / (plain.sigma.gain * plain.taps * net.value_channels[number])
        arriving = variance * last.channels * sum(shift.T for shift in shifts) @ (last.energy * sent)
        sent = arriving if number < net.stem else sent + arriving
    return np.array(rows).T


SMALL = {
    "vectors": mf.DenseNet(depth=4, growth=5, width=3),
    "vectors, two samples, on a stem": mf.DenseNet(depth=3, growth=5, width=7, stem=2, input_width=4, inputs=2),
    "tanh": mf.DenseNet(depth=3, growth=5, width=7, stem=1, grid=(3,), activation="tanh", readout="convolution"),
    "zero": mf.DenseNet(depth=3, growth=4, width=6, grid=(4,), kernel=(2,), padding="zero", readout="convolution"),
    "zero, flattened": mf.DenseNet(
        depth=3, growth=4, width=6, grid=(2, 3), padding="zero", readout="flatten", inputs=2
    ),
    "2d, gelu": mf.DenseNet(
        depth=2,
        growth=4,
        width=6,
        stem=1,
        grid=(3, 2),
        kernel=(2,),
        padding="zero",
        activation="gelu",
        readout="flatten",
    ),
    "linear": mf.DenseNet(depth=3, growth=3, width=2, grid=(4,), activation="linear", readout="flatten", head="mup"),
}


@pytest.mark.parametrize("net", SMALL.values(), ids=SMALL)
def test_it_is_the_recursion_written_out(net):
    overlap, profile = concatenated_profiles(net)
    np.testing.assert_allclose((overlap, profile.mean(axis=1)), written_out(net), rtol=1e-9)
    if net.grid or net.stem:
        images = np.random.default_rng(0).normal(size=net.input_shape)
        overlap, profile = concatenated_profiles(net, images)
        np.testing.assert_allclose((overlap, profile.mean(axis=1)), written_out(net, images), rtol=1e-9)


def test_gates_drawn_anew_are_another_recursion():
    """Memory is the whole difference between the label term and gamma / (M B) times the overlap energy."""
    net = SMALL["vectors"]
    overlap, label = written_out(net, memory=False)
    gamma = net.plain.head_variance * net.plain.head_fan_in * net.plain.sigma.gain
    assert label == pytest.approx(gamma / net.outputs * overlap)
    true_overlap, true_label = written_out(net)
    assert true_label[-1] > 1.05 * gamma / net.outputs * true_overlap[-1]


def test_linear_nets_have_no_gates_to_remember():
    net = SMALL["linear"]
    overlap, profile = concatenated_profiles(net)
    gamma = net.plain.head_variance * net.plain.head_fan_in * net.plain.sigma.gain
    np.testing.assert_allclose(profile.mean(axis=1), gamma / net.plain.output_units * overlap, rtol=1e-12)


def test_displacements_say_what_all_pairs_say():
    """With one tap there are no edges."""
    options = {"depth": 4, "growth": 5, "width": 3, "grid": (5,), "kernel": (1,), "inputs": 3, "readout": "flatten"}
    torus, edges = (mf.DenseNet(padding=padding, **options) for padding in ("circular", "zero"))
    for first, second in zip(concatenated_profiles(torus), concatenated_profiles(edges), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_the_terms_of_deep_nets_grow_as_the_depth(activation):
    """K_l = 2 q g l, F_l = (4/3) q (1 + 2 q) g l and B_l = 2 q (1 + q) g l gamma / M, to a share of order ln(l) / l."""
    off = []
    for depth in (200, 400, 800):
        net = mf.DenseNet(depth=depth, growth=16, width=16, activation=activation)
        gain = net.plain.sigma.gain
        overlap, profile = concatenated_profiles(net)
        size = gain * net.growth * depth
        limits = (4 / 3 * (1 + 2 * gain) * size, 2 * (1 + gain) * size / net.outputs)
        off.append(np.array([overlap[-1] / limits[0], profile[-1, 0] / limits[1]]) - 1)
        assert np.all(np.abs(off[-1]) < 8 * np.log(depth) / depth)
    shrinking = np.abs(off)
    assert np.all(shrinking[1:] < 0.65 * shrinking[:-1])


def test_eta_falls_as_the_root_of_the_depth():
    """Local slopes of eta* of the label term pass -0.8 .. -0.55 at the depths of real nets, and tend to -1/2."""
    depths = np.array([4, 8, 16, 32, 64, 128, 256, 512])
    scales = [
        concatenated_profiles(mf.DenseNet(depth=int(depth), growth=32, width=32))[1].mean() ** -0.5 for depth in depths
    ]
    slopes = np.diff(np.log(scales)) / np.diff(np.log(depths))
    np.testing.assert_allclose(slopes[[0, 2, 4, 6]], [-0.822, -0.725, -0.614, -0.550], atol=1e-3)
    assert np.all(np.diff(slopes) > 0)
    assert np.all(slopes < -0.5)


# Growths; at the last one, labels tell gates that are remembered from others.
GROWTHS, DRAWS = (16, 64, 256), (800, 800, 1600)
DRAWN = {
    "vectors": {"depth": 6, "width_over_growth": 1},
    "flattened": {"depth": 4, "width_over_growth": 2, "stem": 1, "grid": (2,), "padding": "zero", "readout": "flatten"},
}


def _drawn(options, growth, draws):
    """Label terms over their prediction, their standard errors, and the net."""
    options = dict(options)
    net = mf.DenseNet(growth=growth, width=options.pop("width_over_growth") * growth, **options)
    with terms_alone():
        measured = mf.simulate(net, draws=draws, seed=4, **SINGLE)
    theory = mf.predict(net, level="mean_field").label_term
    return measured.label_term / theory, measured.label_term_stderr / theory, net


def test_draws_tend_to_the_mean_field_of_gates_that_remember():
    """Control: gates that are met as if drawn anew are 11 % off at the top, and draws at 256 channels see it."""
    for growth, draws in zip(GROWTHS, DRAWS, strict=True):
        ratio, stderr, net = _drawn(DRAWN["vectors"], growth, draws)
        assert consistent(ratio - 1, stderr, draws, 4.0 / growth)
    anew = written_out(net, memory=False)[1] / written_out(net)[1]
    assert not consistent(ratio / anew - 1, stderr / anew, draws, 4.0 / growth)


def test_draws_of_grids_tend_to_it():
    """Control: a readout that loses edges, as a convolutional one does."""
    for growth, draws in zip((8, 16, 32), (600, 600, 600), strict=True):
        ratio, stderr, net = _drawn(DRAWN["flattened"], growth, draws)
        assert consistent(ratio - 1, stderr, draws, 4.0 / growth)
    profiles = (concatenated_profiles(each)[1].mean(axis=1) for each in (net.replace(readout="convolution"), net))
    edges = np.divide(*profiles) * net.sites
    assert not consistent(ratio / edges - 1, stderr / edges, draws, 4.0 / growth)


def test_overlap_energies_of_small_nets_tend_to_it():
    """2 r(2g) - r(g) leaves a share of order 1/g^2."""
    ratios, errors = [], []
    for growth in (12, 24):
        net = mf.DenseNet(depth=3, growth=growth, width=growth, outputs=1)
        measured, theory = mf.simulate(net, draws=600, seed=2), mf.predict(net, level="mean_field").overlap_energy
        ratios.append((measured.overlap_energy / theory).values)
        errors.append(np.maximum(measured.overlap_energy_stderr / theory, 1e-9).values)
    left = 2 * ratios[1] - ratios[0] - 1
    assert consistent(left, np.hypot(2 * errors[1], errors[0]), 600, 8.0 / 12**2)
    plain = mf.MLP(depth=3, width=24, outputs=1)
    others = mf.predict(plain, level="mean_field").overlap_energy / theory
    assert not consistent(ratios[1] / others - 1, errors[1] / others, 600, 0.1)


def test_what_is_predicted_and_what_is_left_out():
    net = mf.DenseNet(depth=3, growth=4, width=64, grid=(4,), readout="flatten")
    predicted = mf.predict(net, level="mean_field", by_site=True)
    np.testing.assert_allclose(predicted.label_term_by_site.mean("site"), predicted.label_term)
    np.testing.assert_allclose(predicted.label_learning_rate_scale, float(predicted.label_term.mean()) ** -0.5)
    np.testing.assert_allclose(predicted.update_energy, predicted.label_term + predicted.output_term)
    np.testing.assert_allclose(predicted.learning_rate_scale, float(predicted.update_energy.mean()) ** -0.5)
    assert "left_out" not in predicted.attrs
    smooth = mf.predict(net.replace(activation="gelu", padding="zero"), level="mean_field")
    assert "output_term: the output term is predicted for 'relu' and 'linear'; this is a" in smooth.attrs["left_out"]
    pooled = mf.predict(net.replace(activation="gelu", padding="zero", readout="pooled"), level="mean_field")
    assert "label_term" not in pooled
    assert "this is a DenseNet of activation 'gelu'" in pooled.attrs["left_out"]
    np.testing.assert_allclose(pooled.overlap_energy, smooth.overlap_energy)
    chain = mf.predict(mf.Chain.of(net), level="mean_field")
    np.testing.assert_array_equal(chain.label_term, predicted.label_term)
    with pytest.warns(mf.PremiseWarning, match="inputs are drawn with 4 channels alone"):
        mf.predict(net.replace(width=4, growth=64), level="mean_field")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "exact"}, "level for DenseNet is 'exact'; choose one of 'mean_field'"),
        ({"level": "mean_field", "batch": mf.Batch()}, "this is a DenseNet, whose energies are predicted"),
        ({"level": "mean_field", "loss": "cross_entropy"}, "plain labels and squared loss: leave them out"),
        ({"level": "mean_field", "correlations": True}, "correlations are those of the steps of a TiedLoop"),
        ({"level": "mean_field", "by_site": True}, "by_site gives the label term at every site.* readout 'pooled'"),
    ],
)
def test_what_is_not_served_is_refused(options, message):
    net = mf.DenseNet(depth=2, growth=3, width=3, grid=(3,), padding="zero", activation="tanh")
    with pytest.raises(ValueError, match=message):
        mf.predict(net, **options)


def test_what_takes_hours_is_refused():
    with pytest.raises(ValueError, match=r"the mean field of 120,000 values, .* takes about 1.6 hours"):
        mf.predict(mf.DenseNet(depth=120_000, growth=1, width=1), level="mean_field")


@pytest.mark.filterwarnings("ignore:how tuned rates of such nets go with their width")
def test_rates_are_carried_by_the_mean_field_at_each_depth():
    small = mf.DenseNet(depth=4, growth=32, width=32)
    deep = replace(small, depth=16)
    carried = mf.explain_transfer(0.1, small, deep)
    first, second = (mf.predict(net, level="mean_field") for net in (small, deep))
    for rule, scale in (("finite_depth", "label_learning_rate_scale"), ("whole_update", "learning_rate_scale")):
        assert carried.rates[rule] == pytest.approx(0.1 * float(second[scale] / first[scale]))
    assert carried.rule == "finite_depth"
    assert not any("blocks learns" in premise for premise in carried.premises)
    wider = mf.transfer_learning_rate(0.1, small, replace(small, growth=64), rule="finite_depth")
    assert 0.05 < wider < 0.1
    with pytest.raises(ValueError, match=r"tends to \(growth x depth\)\^\(-1/2\)"):
        mf.transfer_learning_rate(0.1, small, deep, rule="power_law")
    pooled = [replace(net, grid=(4,), padding="zero", activation="tanh") for net in (small, deep)]
    with pytest.raises(ValueError, match="this is a DenseNet of activation 'tanh'"):
        mf.transfer_learning_rate(0.1, *pooled)


def test_many_outputs_are_warned_of():
    small = mf.DenseNet(depth=4, growth=8, width=8, outputs=300)
    with pytest.warns(mf.PremiseWarning, match="outputs are not few compared with the width"):
        mf.transfer_learning_rate(0.1, small, replace(small, depth=64), rule="finite_depth")
