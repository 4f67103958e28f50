"""Overlaps of parameter directions: they add up to F, meet the printed table, and meet draws."""

import itertools

import numpy as np
import pytest

import meanfield as mf
from tests.statistics import consistent
from tests.theory.exact.printed_recursions import overlap_of_two_tangents

DRAWS = 8192
PAIRS = [((2, 1), (2, 1)), ((2, 1), (2, 2)), ((1, 1), (3, 1)), ((1, 1), (3, 2)), ((1, 2), (2, 1))]


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("width", [6, (3, 5, 2, 6)])
def test_squared_overlaps_of_all_pairs_add_up_to_the_overlap_energy(activation, width):
    """F_l = sum over pairs of T_l^2, by two recursions that share no start."""
    net = mf.MLP(depth=4, width=width, activation=activation, input_width=4)
    counts = net.channels_by_layer[1:]
    total = np.zeros(4)
    for first, second in itertools.product(range(1, 5), repeat=2):
        pairs = [((first, 1), (second, 1))]
        times = [counts[first - 1] * (counts[second - 1] if first != second else 1)]
        if first == second:
            pairs.append(((first, 1), (second, 2)))
            times.append(counts[first - 1] * (counts[first - 1] - 1))
        squares = mf.predict(net, level="exact", pairs=pairs).squared_overlap.fillna(0.0)
        total += np.tensordot(times, squares.values, axes=1)
    np.testing.assert_allclose(total, mf.predict(net, level="exact").overlap_energy, rtol=1e-12)


def test_growth_of_a_pair_is_the_printed_table():
    net, n = mf.MLP(depth=6, width=9), 9
    state = (0.0, (n / 2) ** 2, 0.0)
    expected = []
    for _ in range(6):
        expected.append(state[0] / n**2)
        state = overlap_of_two_tangents(*state, n, 2 / n)
    predicted = mf.predict(net, level="exact", pairs=[((1, 1), (1, 2))]).squared_overlap
    np.testing.assert_allclose(predicted[0], expected, rtol=1e-13)


@pytest.fixture(scope="module", params=["dense", "lazy"])
def followed(request):
    net = mf.MLP(depth=6, width=24)
    measured = mf.simulate(net, measure=mf.PairOverlaps(pairs=PAIRS, weights=request.param), draws=DRAWS, seed=3)
    return measured, mf.predict(net, level="exact", pairs=PAIRS)


@pytest.mark.parametrize("name", ["overlap", "squared_overlap", "overlap_variance"])
def test_draws_meet_the_exact_moments(followed, name):
    measured, predicted = followed
    mean, stderr, exact = (array.values for array in (measured[name], measured[f"{name}_stderr"], predicted[name]))
    known = np.isfinite(exact)
    np.testing.assert_array_equal(np.isfinite(mean), known)
    random = known & (stderr > 1e-9)
    np.testing.assert_allclose(mean[known & ~random], exact[known & ~random], atol=1e-9)
    assert consistent((mean - exact)[random], stderr[random], DRAWS)


def test_squared_overlaps_of_a_net_twice_as_wide_are_seen(followed):
    """Negative control, on two units of one layer, one layer further up."""
    measured = followed[0].squared_overlap[1, 2], followed[0].squared_overlap_stderr[1, 2]
    wider = mf.predict(mf.MLP(depth=6, width=48), level="exact", pairs=PAIRS).squared_overlap[1, 2]
    assert not consistent(measured[0] - wider, measured[1], DRAWS)


def test_given_a_layer_the_mean_is_the_gated_overlap_not_the_overlap():
    """Eq. 14 of Zhang et al. 2026 fixes z^(l) and so the gates it averages over; the gated overlap is conserved."""
    net = mf.MLP(depth=5, width=16)
    drawn = mf.simulate(net, measure=mf.PairOverlaps(pairs=[((2, 1), (2, 1))], fixed_layers=2), draws=DRAWS, seed=1)
    overlap, gated = float(drawn.overlap[0, 1]), float(drawn.gated_overlap[0, 1])
    assert gated in (0.0, pytest.approx(2 * overlap))
    above, stderr = drawn.overlap[0, 2:], drawn.overlap_stderr[0, 2:] + 1e-12
    assert consistent(above - gated, stderr, DRAWS)
    assert not consistent(above - overlap, stderr, DRAWS)


def test_convolutional_overlaps_are_conserved_in_mean():
    """Circular grids visit every site equally often, whatever the kernel (Zhang et al. 2026, Lemma 1, in mean)."""
    for net in (
        mf.ConvNet(depth=4, channels=8, grid=(5,), kernel=(2,)),
        mf.ConvNet(depth=4, channels=8, grid=(3, 4), kernel=(3, 3)),
    ):
        drawn = mf.simulate(net, measure=mf.PairOverlaps(pairs=[((1, 1), (1, 1))]), draws=4096, seed=2)
        drift = drawn.overlap[0, 1:] - drawn.overlap[0, 0]
        assert consistent(drift, drawn.overlap_stderr[0, 1:] + drawn.overlap_stderr[0, 0], 4096)
    padded = mf.ConvNet(depth=4, channels=8, grid=(5,), kernel=(3,), padding="zero")
    drawn = mf.simulate(padded, measure=mf.PairOverlaps(pairs=[((1, 1), (1, 1))]), draws=4096, seed=2)
    assert not consistent(drawn.overlap[0, 3] - drawn.overlap[0, 0], drawn.overlap_stderr[0, 3], 4096)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([((1, 1), (7, 1))], r"direction \(7, 1\) is outside the net: it has layers 1 .. 6"),
        ([((1, 1), (2, 25))], r"layer 2 has units 1 .. 24"),
        ([((0, 1), (2, 1))], "counted from 1"),
        ([((1, 1), 2)], r"does not read as \(\(layer, unit\), \(layer, unit\)\)"),
        ([], "pairs is empty"),
    ],
)
def test_pairs_outside_the_net_are_refused(pairs, message):
    net = mf.MLP(depth=6, width=24)
    for call in (
        lambda: mf.predict(net, level="exact", pairs=pairs),
        lambda: mf.simulate(net, measure=mf.PairOverlaps(pairs=pairs), draws=2, seed=0),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_overlaps_have_no_mean_field_level():
    with pytest.raises(ValueError, match="'exact' alone"):
        mf.predict(mf.MLP(depth=2, width=3), level="mean_field", pairs=PAIRS)


def test_a_pair_at_great_depth_does_not_overflow():
    predicted = mf.predict(mf.MLP(depth=20_000, width=10), level="exact", pairs=[((1, 1), (2, 1))])
    assert np.isinf(predicted.squared_overlap[0, -1])
    assert np.isfinite(predicted.log_squared_overlap[0, 1:]).all()


def test_the_mean_overlap_across_layers_by_hand():
    """Of directions of layers 1 and 2, one layer above both: T_3 = s_3 E[D_b W_ba] D_a |x| |x_1|, D_a and D_b the gates
    of their units, W_ba the weight between them and x_1 the features of layer 1. Given these, D_b W_ba has the mean
    (s_2 / 2 pi)^(1/2) x_1a / |x_1|."""
    net = mf.MLP(depth=3, width=(5, 7, 4), input_width=3)
    below, above, last = 1 / (net.sigma.gain * np.array([3, 5, 7]))
    energy, draws = 3 * net.sigma.gain, 100_000
    feature = np.maximum(np.random.default_rng(0).normal(scale=np.sqrt(below * energy), size=draws), 0.0)
    overlaps = last * np.sqrt(above / (2 * np.pi) * energy) * feature
    mean = mf.predict(net, level="exact", pairs=[((1, 1), (2, 1))])["overlap"].values[0, 2]
    stderr = overlaps.std() / np.sqrt(draws)
    assert consistent(overlaps.mean() - mean, stderr, draws)
    assert not consistent(1.05 * overlaps.mean() - mean, stderr, draws)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_variances_given_the_layers_below_are_drawn_at_unequal_widths(activation):
    """Every layer has a variance of its own; that of the matrix below would be off by the square of 5/2 and more."""
    net = mf.MLP(depth=4, width=(3, 5, 2, 6), activation=activation, input_width=4)
    pairs = [((1, 1), (1, 1)), ((1, 1), (2, 1))]
    exact = mf.predict(net, level="exact", pairs=pairs)["overlap_variance"]
    drawn = mf.simulate(net, measure=mf.PairOverlaps(pairs=tuple(pairs), weights="dense"), draws=DRAWS, seed=0)
    mean, stderr = drawn["overlap_variance"].values, drawn["overlap_variance_stderr"].values
    known = np.isfinite(exact.values)
    assert known.sum() == 5
    assert consistent((mean - exact.values)[known], stderr[known], DRAWS)
    wrong = exact.values[0, 1:] * np.array([3 / 4, 5 / 3, 2 / 5]) ** 2
    assert not consistent(mean[0, 1:] - wrong, stderr[0, 1:], DRAWS)
