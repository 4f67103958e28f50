"""Loops at infinite width: against slow double sums, closed forms, integrals, draws of wide nets, and the rivals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import i0

import meanfield as mf
from meanfield.nets.loop import TiedLoop
from meanfield.theory.loops import log_correlation_law, log_correlation_terms, log_update_energies, steps
from tests.naive import gate, sigma
from tests.statistics import consistent
from tests.theory.loops.loop_rivals import (
    critical_alpha,
    energy_exponent,
    log_energy_bounds,
    log_energy_growth,
    log_printed_energy,
)

WIDTH, DRAWS = 256, 1024
# Relative deviation of both energies at finite width, times N: 0.6 +- 0.15 and 0.5 +- 0.2 at N = 32 (8192 draws).
BIAS = 1.0


def loop(depth, **options):
    return TiedLoop(depth=depth, width=WIDTH, **({"weight_variance": 1.3} | options))


def average(function, name, c_u, c_v, c_uv):
    """E[f(u) f(v)] by a plain grid over two Gaussians, and by angles for ReLU, whose kink a grid does not resolve."""
    if name == "relu":
        angle = math.acos(min(c_uv / math.sqrt(c_u * c_v), 1.0))
        if function is gate:
            return (math.pi - angle) / (2 * math.pi)
        return math.sqrt(c_u * c_v) * (math.sin(angle) + (math.pi - angle) * math.cos(angle)) / (2 * math.pi)
    x = np.linspace(-8.5, 8.5, 121)
    weight = np.exp(-x * x / 2) / np.exp(-x * x / 2).sum()
    slope = c_uv / c_u
    v = slope * math.sqrt(c_u) * x[:, None] + math.sqrt(max(c_v - slope * c_uv, 0.0)) * x
    return float(weight @ (function(name, math.sqrt(c_u) * x)[:, None] * function(name, v)) @ weight)


def naive_covariances(net):
    """Q and R over all pairs of steps, each by double sums over all earlier pairs (docs/theory.md section 11)."""
    size, step = net.depth + 1, net.step_size**2
    q, r = np.ones((size, size)), np.zeros((size, size))
    summand, moved = np.zeros((size, size)), np.zeros((size, size))
    for last in range(1, size):
        for a, b in itertools.product(range(last), repeat=2):
            if max(a, b) == last - 1 and (net.tied or a == b):
                features = average(sigma, net.activation, q[a, a], q[b, b], q[a, b])
                gates = average(gate, net.activation, q[a, a], q[b, b], q[a, b])
                summand[a, b] = net.weight_variance * features
                moved[a, b] = features + net.weight_variance * gates * r[a, b]
        for a in range(last + 1):
            q[a, last] = q[last, a] = 1 + step * summand[:a, :last].sum()
            r[a, last] = r[last, a] = step * moved[:a, :last].sum()
    return q, r, summand[:-1, :-1]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("activation", ["relu", "linear", "tanh", "gelu", "erf"])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_recursions_are_the_double_sums(activation, tied, alpha):
    net = loop(5, activation=activation, tied=tied, alpha=alpha)
    q, r, increments = naive_covariances(net)
    predicted = mf.predict(net, level="mean_field", correlations=True)
    np.testing.assert_allclose(predicted.residual_energy, np.diag(q)[1:], rtol=1e-10)
    np.testing.assert_allclose(predicted.increment_correlation, increments, rtol=1e-10)
    np.testing.assert_allclose(np.exp(log_update_energies(net)), np.diag(r)[1:], rtol=1e-10)
    shared = [average(sigma, activation, q[0, 0], q[3, 3], q[0, 3])]
    np.testing.assert_allclose(predicted.feature_overlap.sel(step=1, step_other=4), shared[0], rtol=1e-10)


@pytest.mark.parametrize("depth", [2, 3])
def test_relu_energies_by_integration(depth):
    """No kernel formula at all: E[phi phi] over the positive quadrant."""
    net, q = loop(depth, alpha=0.5), np.ones((depth + 1, depth + 1))

    def product(a, b):
        if a == b:
            return q[a, a] / 2
        inverse = np.linalg.inv([[q[a, a], q[a, b]], [q[a, b], q[b, b]]])
        norm = math.sqrt(np.linalg.det(inverse)) / (2 * math.pi)
        density = lambda u, v: u * v * math.exp(-np.array([u, v]) @ inverse @ np.array([u, v]) / 2)  # noqa: E731
        return norm * dblquad(density, 0, 14, 0, 14, epsabs=1e-10)[0]

    factor, memory = net.step_size**2 * net.weight_variance, {}
    for last in range(1, depth + 1):
        memory |= {(a, last - 1): product(a, last - 1) for a in range(last)}
        for a in range(last + 1):
            pairs = itertools.product(range(a), range(last))
            q[a, last] = q[last, a] = 1 + factor * sum(memory[tuple(sorted(pair))] for pair in pairs)
    np.testing.assert_allclose(mf.predict(net, level="mean_field").residual_energy, np.diag(q)[1:], rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.5])
def test_linear_loops_are_the_sum_of_squared_binomials(alpha):
    net = loop(40, activation="linear", alpha=alpha)
    x = net.step_size**2 * net.weight_variance
    terms = np.array([[math.comb(last, j) ** 2 * x**j for j in range(41)] for last in range(1, 41)])
    for level in ("mean_field", "law"):
        predicted = mf.predict(net, level=level)
        np.testing.assert_allclose(predicted.residual_energy, terms.sum(axis=1), rtol=1e-10)
        np.testing.assert_allclose(predicted.correlation_term, terms[:, 1:].sum(axis=1), rtol=1e-10)
    # One of the j factors of W^j is the update: dH / d sigma_W^2.
    moved = (terms * np.arange(41)).sum(axis=1) / net.weight_variance
    np.testing.assert_allclose(np.exp(log_update_energies(net)), moved, rtol=1e-10)


def test_linear_loops_tend_to_the_bessel_function():
    net = loop(2048, activation="linear")
    for level in ("mean_field", "law"):
        predicted = float(mf.predict(net, level=level).residual_energy[-1])
        assert predicted == pytest.approx(i0(2 * math.sqrt(1.3)), rel=1e-3)
    assert predicted != pytest.approx(i0(2 * 1.3), rel=0.1)


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_independent_steps_multiply(activation, alpha):
    net = loop(50, activation=activation, tied=False, alpha=alpha)
    gain = {"relu": 0.5, "linear": 1.0}[activation]
    x, count = net.step_size**2 * net.weight_variance * gain, np.arange(1, 51)
    for level in ("mean_field", "law"):
        predicted = mf.predict(net, level=level)
        np.testing.assert_allclose(predicted.log_residual_energy, count * math.log1p(x), rtol=1e-12)
        np.testing.assert_allclose(predicted.correlation_term, np.expm1(count * math.log1p(x)), rtol=1e-11)
    moved = count * net.step_size**2 * gain * (1 + x) ** (count - 1)
    np.testing.assert_allclose(np.exp(log_update_energies(net)), moved, rtol=1e-11)


@pytest.mark.parametrize("activation", ["relu", "linear", "tanh"])
def test_energies_scale_with_the_start_if_the_activation_does(activation):
    net = loop(12, activation=activation, alpha=0.5)
    unit, nine = (np.array([step.correlation[-1] for step in steps(net, start)]) for start in (1.0, 9.0))
    assert np.allclose(nine, unit + math.log(9), rtol=1e-12) == (activation != "tanh")


@pytest.mark.parametrize("tied", [True, False])
def test_the_correlation_term_adds_up_the_increments(tied):
    net = loop(30, tied=tied, alpha=0.5)
    predicted = mf.predict(net, level="mean_field", correlations=True)
    sums = predicted.increment_correlation.values.cumsum(axis=0).cumsum(axis=1).diagonal()
    np.testing.assert_allclose(predicted.correlation_term, net.step_size**2 * sums, rtol=1e-12)
    np.testing.assert_allclose(predicted.residual_energy, 1 + predicted.correlation_term, rtol=1e-12)
    assert (predicted.increment_correlation.values[0, 1:] > 0).all() == tied
    assert (predicted.cross_term == 0).all()
    assert predicted.initial_energy == 1
    assert list(predicted.step.values) == list(range(1, 31))
    assert predicted.attrs["level"] == "mean_field"


def test_energies_beyond_a_float_keep_their_logarithms():
    """alpha = 0 at depth 1024: bounded from both sides, far above what a float holds."""
    net = loop(1024, alpha=0.0)
    predicted = mf.predict(net, level="mean_field")
    lower, upper = log_energy_bounds(net)
    assert np.isinf(predicted.residual_energy[-1])
    assert (predicted.log_residual_energy.values >= lower - 1e-9).all()
    assert (predicted.log_residual_energy.values <= upper + 1e-9).all()
    assert lower[-1] > 1000


def test_tiny_correlation_terms_keep_their_digits():
    predicted = mf.predict(loop(64, alpha=6.0), level="mean_field")
    assert float(predicted.correlation_term[-1]) == pytest.approx(0.65 * 64.0**-10, rel=1e-6)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_growth_below_the_threshold_is_exponential(activation):
    """ln H_L less its leading order settles; Theorem 1, and an alpha that is off by 0.05, are far away."""

    def rest(law, depth):
        net = loop(depth, alpha=0.5, activation=activation)
        return np.logaddexp(0, log_correlation_terms(net)[-1]) - law(net)

    def drift(law):
        return rest(law, 1024) - rest(law, 512)

    # Linear: -ln(4 pi tau)/2 with tau ~ L^(1/2), so -ln(2)/4; ReLU: a constant.
    expected = -math.log(2) / 4 if activation == "linear" else 0.0
    assert drift(log_energy_growth) == pytest.approx(expected, abs=0.03)
    assert drift(lambda net: log_energy_growth(replace(net, alpha=0.55))) > 5
    assert drift(lambda net: log_energy_growth(replace(net, alpha=0.45))) < -5
    assert drift(lambda net: log_printed_energy(net)[-1]) > 10


def test_theorem_1_holds_above_the_threshold():
    """H_L - 1 = eps^2 L^2 sigma_W^2 / 2 up to higher powers of eps L; tied loops are not independent stacks."""
    net = loop(256, alpha=1.5)
    term, printed = log_correlation_terms(net)[-1], log_printed_energy(net)[-1]
    assert term == pytest.approx(math.log(math.expm1(printed)), abs=2e-3)
    assert term - log_correlation_terms(replace(net, tied=False))[-1] == pytest.approx(math.log(256), abs=2e-2)
    assert energy_exponent(net) == pytest.approx(-1.0, abs=1e-2)
    assert energy_exponent(loop(256, alpha=1.55)) < -1.05


@pytest.mark.parametrize(("tied", "threshold"), [(True, 1.0), (False, 0.5)])
@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_thresholds(activation, tied, threshold):
    predicted = [critical_alpha(loop(depth, tied=tied, activation=activation)) for depth in (32, 64)]
    assert predicted[1] == pytest.approx(threshold, abs=0.01)
    assert 2 * predicted[1] - predicted[0] == pytest.approx(threshold, abs=1e-3)


def test_updates_scale_as_theorem_2_says_down_to_the_threshold():
    for alpha, constant in ((1.5, 0.5), (1.0, None)):
        small, large = (loop(depth, alpha=alpha) for depth in (256, 512))
        ratios = [log_update_energies(net)[-1] - 2 * math.log(net.step_size * net.depth) for net in (small, large)]
        assert ratios[1] == pytest.approx(ratios[0], abs=4e-3)
        if constant is not None:
            assert math.exp(ratios[1]) == pytest.approx(constant, rel=2e-3)


def test_below_the_threshold_updates_grow_with_the_stream():
    """|dh_L|^2 / |h_L|^2 ~ L^(1 - alpha) at alpha = 1/2, where (eps L)^2 = L."""
    share = [
        log_update_energies(net)[-1] - log_correlation_terms(net)[-1]
        for net in (loop(d, alpha=0.5) for d in (256, 1024))
    ]
    assert (share[1] - share[0]) / math.log(4) == pytest.approx(0.5, abs=0.05)


@pytest.fixture(scope="module")
def drawn():
    """|h_L|^2 and |dh_L|^2 of wide tied ReLU loops, drawn one by one with NumPy alone.

    Both over |h_0|^2, of which their ratios are independent: homogeneity takes out its fluctuation.
    """
    net, rng = loop(8), np.random.default_rng(11)
    energies = np.empty((2, DRAWS))
    for draw in range(DRAWS):
        weight, update = rng.standard_normal((2, WIDTH, WIDTH), dtype=np.float32) / np.float32(math.sqrt(WIDTH))
        weight *= np.float32(math.sqrt(1.3))
        stream, moved = rng.standard_normal(WIDTH, dtype=np.float32), np.zeros(WIDTH, dtype=np.float32)
        start = stream @ stream
        for _ in range(net.depth):
            features, gates = np.maximum(stream, 0), stream > 0
            moved = moved + net.step_size * (update @ features + weight @ (gates * moved))
            stream = stream + net.step_size * (weight @ features)
        energies[:, draw] = stream @ stream / start, moved @ moved / start
    return net, energies.mean(axis=1), energies.std(axis=1, ddof=1) / math.sqrt(DRAWS)


def test_draws_meet_the_predictions(drawn):
    net, means, errors = drawn
    expected = _energy_and_update(net)
    assert consistent(means - expected, errors, DRAWS, BIAS * expected / WIDTH)
    # Negative controls: weights of 5 % less variance; the leading term of the update without what W carries on.
    rivals = _energy_and_update(replace(net, weight_variance=1.235))[0], (expected[0] - 1) / net.weight_variance
    for which, rival in enumerate(rivals):
        assert not consistent(means[which] - rival, errors[which], DRAWS, BIAS * rival / WIDTH)


@pytest.mark.parametrize("options", [{"tied": False}, {"alpha": 0.95}])
def test_draws_tell_other_loops_apart(drawn, options):
    """Negative controls, on both quantities."""
    net, means, errors = drawn
    expected = _energy_and_update(replace(net, **options))
    for which in (0, 1):
        allowance = BIAS * expected[which] / WIDTH
        assert not consistent(means[which] - expected[which], errors[which], DRAWS, allowance)


def _energy_and_update(net):
    return np.array([1 + math.exp(log_correlation_terms(net)[-1]), math.exp(log_update_energies(net)[-1])])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mf.predict(loop(3), level="law"), "tied=True and activation='relu' is 'law'; choose one of 'mean_f"),
        (lambda: mf.predict(loop(3, tied=False, activation="tanh"), level="law"), "choose one of 'mean_field'"),
        (lambda: mf.predict(loop(3), level="exact"), "choose one of 'mean_field'"),
        (lambda: mf.predict(loop(3), level="mean_field", spread=True), "are for nets"),
        (lambda: mf.predict(loop(3, tied=False), level="law", correlations=True), "'mean_field' alone"),
        (lambda: mf.predict(mf.MLP(depth=2, width=3), level="law", correlations=True), "of the steps of a TiedLoop"),
        (lambda: mf.predict(loop(12, alpha=-0.5, activation="gelu"), level="mean_field"), "averages of 'gelu' are"),
        (lambda: log_correlation_law(loop(3)), "has no closed energy"),
        (lambda: log_energy_bounds(loop(3, tied=False)), "are for tied loops"),
    ],
)
def test_what_is_not_there_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_correlations_that_do_not_fit_are_refused():
    with pytest.raises(MemoryError, match="correlation of all pairs of steps needs"):
        mf.predict(loop(10**7), level="mean_field", correlations=True)


def test_loops_of_erf_are_predicted_at_any_variance():
    """Their averages are closed: streams that outgrow those of tanh stay within reach, and grow by powers alone."""
    # So large that tanh is refused at the second step, before the series that it needs there are long.
    shared = {"alpha": -1.0, "weight_variance": 16.0}
    with pytest.raises(ValueError, match=r"averages of 'tanh' are computed up to 1000.*use 'relu', 'linear' or 'erf'"):
        mf.predict(loop(20, activation="tanh", **shared), level="mean_field")
    for tied in (True, False):
        predicted = mf.predict(loop(20, activation="erf", tied=tied, **shared), level="mean_field")
        assert 1000 < predicted.residual_energy[-1] < 20**2 * 20**2 * 16
