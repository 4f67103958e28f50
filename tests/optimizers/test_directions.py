"""First directions against the definitions of Zheng et al. 2026, on full matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield.optimizers import FIRST_STEPS, OPTIMIZERS, SSO
from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.linear_algebra import Factored, dense, newton_schulz, polar_factor
from meanfield.optimizers.matrices import second_moments

SHAPES = [(12, 12), (12, 5), (5, 12), (1, 9), (9, 1)]


def draw(shape, rank, seed=0):
    rng = np.random.default_rng(seed)
    slope = Factored(rng.normal(size=(shape[0], rank)), rng.normal(size=(shape[1], rank)))
    curvature = Factored(slope.left**2, slope.right**2)
    weights = rng.normal(size=shape) / np.sqrt(shape[1])
    return Gradient(slope, curvature), weights


def first(name, gradient, weights, learning_rate=0.1):
    optimizer = SSO(0.0) if name == "sso" else FIRST_STEPS[name]
    return dense(optimizer.step(None, gradient, Place(weights, learning_rate))[0])


def compact(matrix):
    u, s, v = np.linalg.svd(matrix)
    rank = int((s > 1e-9 * s[0]).sum())
    return u[:, :rank], s[:rank], v[:rank].T


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", [1, 3, 20])
def test_definitions(shape, rank):
    gradient, weights = draw(shape, rank)
    slope = gradient.slope.dense()
    u, _, v = compact(slope)
    expected = {
        "sgd": slope,
        "adamw": np.sign(slope),
        "lion": np.sign(slope),
        "sophia": np.clip(slope / (0.05 * gradient.curvature.dense()), -1, 1),
        "muon": u @ v.T,
        "muon_kimi": 0.2 * np.sqrt(max(shape)) * u @ v.T,
        "shampoo": u @ v.T,
        "soap": u @ v.T,
    }
    for name, direction in expected.items():
        np.testing.assert_allclose(first(name, gradient, weights), direction, atol=1e-7, err_msg=name)


@given(st.integers(0, 2**32 - 1), st.sampled_from(SHAPES), st.integers(1, 6))
def test_polar_factor_is_orthogonal_on_its_support(seed, shape, rank):
    gradient, _ = draw(shape, rank, seed)
    factor = polar_factor(gradient.slope)
    gram = factor.dense().T @ factor.dense()
    np.testing.assert_allclose(gram @ gram, gram, atol=1e-10)
    assert np.trace(gram) == pytest.approx(np.linalg.matrix_rank(gradient.slope.dense()))
    nuclear = np.linalg.svd(gradient.slope.dense(), compute_uv=False).sum()
    assert np.sum(factor.dense() * gradient.slope.dense()) == pytest.approx(nuclear)


def test_polar_factors_of_a_stack_differ_in_rank_and_leave_out_what_is_not_finite():
    left, right = np.random.default_rng(3).normal(size=(2, 3, 5, 2))
    left[0, :, 1] = left[0, :, 0]
    left[1, 0, 0] = np.inf
    factored = Factored(left, right)
    with np.errstate(invalid="ignore"):
        stacks = factored, factored.dense()
    for stack in stacks:
        with np.errstate(invalid="ignore"):
            polar = polar_factor(stack).dense()
        for net in (0, 2):
            np.testing.assert_allclose(polar[net], polar_factor(dense(stack)[net]).dense(), atol=1e-12)
        assert np.linalg.matrix_rank(polar[0]) == 1
        assert np.isnan(polar[1]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_newton_schulz_is_its_iteration_on_the_full_matrix(shape):
    slope = draw(shape, 3)[0].slope
    x = slope.dense() / np.linalg.norm(slope.dense())
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    direction = newton_schulz(slope, 5)
    np.testing.assert_allclose(direction.dense(), x, atol=1e-10)
    values = np.linalg.svd(direction.dense(), compute_uv=False)[: min(3, *shape)]
    assert np.all((values > 0.65) & (values < 1.25))
    assert np.abs(direction.dense() - polar_factor(slope).dense()).max() > 1e-3, "five steps do not make it exact"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", [1, 3, 20])
@pytest.mark.parametrize("learning_rate", [0.3, 0.01])
def test_sso_meets_both_constraints(shape, rank, learning_rate):
    if 1 in shape and rank > 1:
        rank = 1
    gradient, weights = draw(shape, rank)
    radius = np.sqrt(shape[0] / shape[1])
    step = first("sso", gradient, weights, learning_rate) / radius
    assert np.linalg.norm(step, 2) == pytest.approx(1, abs=1e-8)
    before = np.linalg.norm(weights, 2)
    assert np.linalg.norm(weights - learning_rate * radius * step, 2) == pytest.approx(before, rel=1e-8)
    polar = polar_factor(gradient.slope).dense()
    assert abs(np.linalg.norm(weights - learning_rate * radius * polar, 2) / before - 1) > 1e-6, (
        "the polar factor leaves"
    )


def test_sso_reaches_the_largest_alignment_where_the_gradient_leaves_room():
    """Rank-one gradients leave most of the top direction free: <G, Phi> is then the nuclear norm, the most."""
    gradient, weights = draw((40, 40), 1)
    slope = gradient.slope.dense()
    step = first("sso", gradient, weights, 0.01)
    assert np.sum(slope * step) == pytest.approx(np.linalg.norm(slope, "nuc"))


def test_sso_beats_random_feasible_directions():
    """First order in eta: no direction of norm 1 orthogonal to the top pair is better aligned with the gradient."""
    gradient, weights = draw((6, 6), 6)
    slope = gradient.slope.dense()
    descent = np.sum(slope * first("sso", gradient, weights, 1e-5))
    u, _, v = np.linalg.svd(weights)
    rng = np.random.default_rng(1)
    tilts = rng.normal(size=500) * np.linalg.norm(slope)
    for tilt in tilts:
        left, _, right = np.linalg.svd(slope + tilt * np.outer(u[:, 0], v[0]) + 0.3 * rng.normal(size=(6, 6)))
        other = left @ right
        if abs(u[:, 0] @ other @ v[0]) < 0.02:
            assert np.sum(slope * other) <= descent + 0.02 * np.linalg.norm(slope, 2) * 2


def test_sophia_needs_curvature():
    gradient, weights = draw((4, 4), 2)
    with pytest.raises(ValueError, match="curvature"):
        first("sophia", Gradient(gradient.slope), weights)


@pytest.mark.parametrize("shape", [*SHAPES, (200, 300)])
@pytest.mark.parametrize("name", ["muon", "muon_kimi"])
@pytest.mark.parametrize("settings", [OPTIMIZERS, FIRST_STEPS], ids=["iterated", "exact"])
def test_a_stack_steps_as_its_matrices_do_alone(shape, settings, name):
    """To the bit as a stack of one, whatever lies beside it, while factors are worth it and then; one is all zeros."""
    optimizer, rng = settings[name], np.random.default_rng(4)
    assert optimizer.takes_stacks
    states = [None] * 5
    for _ in range(4):
        left, right = (rng.normal(size=(3, side, 2)) for side in shape)
        left[1] = 0.0
        place = Place(np.zeros((3, *shape)))
        direction, states[3] = optimizer.step(states[3], Gradient(Factored(left, right)), place)
        whole = dense(direction)
        for net in range(3):
            one = slice(net, net + 1)
            gradient, place = Gradient(Factored(left[one], right[one])), Place(np.zeros((1, *shape)))
            direction, states[net] = optimizer.step(states[net], gradient, place)
            np.testing.assert_array_equal(whole[one], dense(direction))
        matrix = Gradient(Factored(left[2], right[2]))
        direction, states[4] = optimizer.step(states[4], matrix, Place(np.zeros(shape)))
        np.testing.assert_allclose(whole[2], dense(direction), atol=1e-12 * np.abs(whole).max())
    assert not whole[1].any()


def test_newton_schulz_of_the_smallest_numbers():
    gradient, _ = draw((6, 6), 2)
    tiny = gradient.slope.times(1e-250)
    np.testing.assert_allclose(newton_schulz(tiny, 5).dense(), newton_schulz(gradient.slope, 5).dense(), atol=1e-12)
    assert not newton_schulz(gradient.slope.times(0.0), 5).dense().any()


@pytest.mark.parametrize("gap", [0.0, 1e-7, 1e-4])
@pytest.mark.parametrize("rank", [1, 2, 12])
def test_sso_holds_down_what_it_would_lift(gap, rank):
    """Several singular values at the top, as at the edge of wide matrices: holding one would lift others."""
    gradient, weights = draw((12, 12), rank)
    u, s, v = np.linalg.svd(weights)
    s[:4] = s[0] * (1 - gap * np.arange(4))
    weights = u @ np.diag(s) @ v
    step = first("sso", gradient, weights, 0.02)
    assert np.linalg.norm(step, 2) == pytest.approx(1, abs=1e-8)
    assert np.linalg.norm(weights - 0.02 * step, 2) == pytest.approx(s[0], rel=1e-8)


@pytest.mark.parametrize("shape", [(300, 300), (260, 16), (1, 250)])
def test_sso_meets_both_constraints_in_wide_matrices(shape):
    """Where the space of Ritz vectors is far from the whole space; a second step starts from those of the first."""
    gradient, weights = draw(shape, 1)
    radius, optimizer, state = np.sqrt(shape[0] / shape[1]), SSO(), None
    before = np.linalg.norm(weights, 2)
    for _ in range(2):
        direction, state = optimizer.step(state, gradient, Place(weights, 0.05))
        assert np.linalg.norm(dense(direction), 2) == pytest.approx(radius, rel=1e-8)
        weights = weights - 0.05 * dense(direction)
        assert np.linalg.norm(weights, 2) == pytest.approx(before, rel=1e-8)


@pytest.mark.parametrize("shape", [(30, 50), (50, 30)])
def test_shampoo_keeps_small_directions_in_single_precision(shape):
    """Of a ten-thousandth of the largest: squares in single precision would lose them."""
    rng, size = np.random.default_rng(0), min(shape)
    left, right = (np.linalg.qr(rng.normal(size=(side, size)))[0] for side in shape)
    lengths = np.geomspace(1.0, 1e-4, size)
    root, _ = second_moments(None, None, (left * lengths @ right.T).astype(np.float32), 0.0)
    assert root.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(root, axis=0), lengths, rtol=1e-2)
    np.testing.assert_allclose(np.abs(np.sum(left * root, axis=0)), lengths, rtol=1e-2)
