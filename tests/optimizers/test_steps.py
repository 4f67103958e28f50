"""Several steps with momentum and epsilon, against the update rules written out on full matrices."""

import numpy as np
import pytest

from meanfield.optimizers import OPTIMIZERS, SSO, AdamW, AdamWInNoise, Hybrid, Lion, Muon, Shampoo, Sophia
from meanfield.optimizers.base import Gradient, Place
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.linear_algebra import Factored, dense

SHAPES = [(12, 12), (12, 5), (1, 9), (9, 1)]
EPSILON = 1e-3


def gradients(shape, steps=4, rank=2):
    rng = np.random.default_rng(3)
    pairs = [[rng.normal(size=(size, rank)) for size in shape] for _ in range(steps)]
    return [Gradient(Factored(a, b), Factored(a**2, b**2)) for a, b in pairs]


def run(optimizer, shape, epsilon=EPSILON):
    state, directions = None, []
    for gradient in gradients(shape):
        direction, state = optimizer.step(state, gradient, Place(np.zeros(shape), 0.1, epsilon))
        directions.append(dense(direction))
    return directions


def inverse_fourth_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ np.diag(values**-0.25) @ vectors.T


def written_out(name, shape):
    """The same steps by the paper's formulas (Zheng et al. 2026)."""
    m = v = np.zeros(shape)
    left, right = np.zeros((shape[0],) * 2), np.zeros((shape[1],) * 2)
    for t, gradient in enumerate(gradients(shape), start=1):
        g, h = gradient.slope.dense(), gradient.curvature.dense()
        if name == "sgd":
            m = 0.9 * m + g
            yield m
        elif name == "adamw":
            m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g**2
            yield m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.95**t)) + EPSILON)
        elif name == "lion":
            yield np.sign(0.9 * m + 0.1 * g)
            m = 0.99 * m + 0.01 * g
        elif name == "sophia":
            m, v = 0.965 * m + 0.035 * g, 0.99 * v + 0.01 * h
            yield np.clip(m / np.maximum(0.05 * v, EPSILON), -1, 1)
        elif name == "shampoo":
            m = 0.95 * m + 0.05 * g
            left, right = 0.95 * left + 0.05 * g @ g.T, 0.95 * right + 0.05 * g.T @ g
            roots = [inverse_fourth_root(x / (1 - 0.95**t) + EPSILON * np.eye(len(x))) for x in (left, right)]
            yield roots[0] @ m @ roots[1]
        elif name == "soap":
            m = 0.95 * m + 0.05 * g
            left, right = 0.95 * left + 0.05 * g @ g.T, 0.95 * right + 0.05 * g.T @ g
            ql, qr = (np.linalg.eigh(x)[1][:, ::-1] for x in (left, right))
            v = 0.95 * v + 0.05 * (ql.T @ g @ qr) ** 2
            quotient = (ql.T @ m @ qr) / (1 - 0.95**t) / (np.sqrt(v / (1 - 0.95**t)) + EPSILON)
            yield ql @ quotient @ qr.T


@pytest.mark.parametrize("name", ["sgd", "adamw", "lion", "sophia", "shampoo", "soap"])
@pytest.mark.parametrize("shape", SHAPES)
def test_steps(name, shape):
    for actual, expected in zip(run(OPTIMIZERS[name], shape), written_out(name, shape), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_muon_orthogonalises_nesterov_momentum(shape):
    m = np.zeros(shape)
    for slopes, gradient in zip(run(Muon(0.95, None), shape), gradients(shape), strict=True):
        m = 0.95 * m + gradient.slope.dense()
        u, s, v = np.linalg.svd(gradient.slope.dense() + 0.95 * m, full_matrices=False)
        kept = s > 1e-9 * s[0]
        np.testing.assert_allclose(slopes, u[:, kept] @ v[kept], atol=1e-7)
    size = 0.2 * np.sqrt(max(shape))
    for direction, kimi in zip(run(OPTIMIZERS["muon"], shape), run(OPTIMIZERS["muon_kimi"], shape), strict=True):
        np.testing.assert_allclose(size * direction, kimi)


@pytest.mark.parametrize("optimizer", [AdamW(), Lion(), Sophia(), Shampoo()])
def test_steps_change_nothing_they_were_given(optimizer):
    first, second = gradients((6, 6))[:2]
    _, state = optimizer.step(None, first, Place(np.zeros((6, 6))))
    again = [dense(optimizer.step(state, second, Place(np.zeros((6, 6))))[0]) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_sso_stays_on_its_sphere():
    rng = np.random.default_rng(5)
    weights, state = rng.normal(size=(12, 12)), None
    start = np.linalg.norm(weights, 2)
    for gradient in gradients((12, 12)):
        direction, state = SSO().step(state, gradient, Place(weights, 0.05))
        weights = weights - 0.05 * dense(direction)
        assert np.linalg.norm(weights, 2) == pytest.approx(start, rel=1e-7)


def test_sso_steps_by_its_momentum():
    """Each step is the first one of the sum of all gradients so far, those before each 0.9 of what they were."""
    weights, state, total = np.random.default_rng(6).normal(size=(9, 9)), None, np.zeros((9, 9))
    for gradient in gradients((9, 9)):
        direction, state = SSO().step(state, gradient, Place(weights, 0.05))
        total = 0.9 * total + gradient.slope.dense()
        alone, _ = SSO().step(None, Gradient(total), Place(weights, 0.05))
        np.testing.assert_allclose(dense(direction), dense(alone), atol=1e-6)


def sizes_in_noise(optimizer, steps=300, shape=(40, 40)):
    """Root mean squares of the elements of each step, where gradients are independent noise."""
    rng, state, sizes = np.random.default_rng(5), None, []
    for _ in range(steps):
        slope = Factored(rng.normal(size=shape), np.eye(shape[1]))
        direction, state = optimizer.step(state, Gradient(slope, None), Place(np.zeros(shape), 0.1, 0.0))
        sizes.append(float(np.sqrt(np.square(dense(direction)).mean())))
    return np.array(sizes)


@pytest.mark.parametrize("beta1", [0.0, 0.5, 0.9])
def test_steps_of_adamw_shrink_among_gradients_of_noise_as_the_step_in_noise_says(beta1):
    """Its first moves every element by 1; v follows g within 1 / (1 - beta2) steps, which costs 3 % or less."""
    sizes = sizes_in_noise(AdamW(beta1, 0.99))
    assert sizes[0] == pytest.approx(1.0)
    assert sizes[100:].mean() == pytest.approx(AdamWInNoise(beta1).length, rel=0.03)
    assert sizes_in_noise(AdamWInNoise(beta1), steps=1)[0] == pytest.approx(AdamWInNoise(beta1).length)


def test_steps_of_muon_do_not():
    sizes = sizes_in_noise(Muon(0.95, None), steps=60)
    np.testing.assert_allclose(sizes, 40**-0.5, rtol=1e-6)


def test_a_step_in_noise_is_that_of_muon_beside_adamw_as_short_as_later_ones():
    step = FirstStep("muon-adamw-in-noise")
    assert step.method == Hybrid(Muon(0.0, None, True), AdamWInNoise(0.9))
    for role in ("input", "output", "input_bias", "hidden_bias", "output_bias"):
        assert step.method_of(role) == AdamWInNoise(0.9)
    assert step.method_of("hidden") == FirstStep("muon-adamw").method_of("hidden")
    with pytest.raises(ValueError, match=r"choose one of .*'muon_kimi-adamw-in-noise', 'muon-adamw-in-noise'"):
        FirstStep("adamw-in-noise")
