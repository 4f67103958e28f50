"""The engine that derives recursions: against printed tables, against hand calculations, against enumeration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.theory.moments import COIN_CUMULANTS, parse_moment, perfect_matchings, set_partitions
from tests.theory.exact import printed_recursions as printed

# The letters of docs/theory.md section 3, in its order.
LETTERS = {
    "P": "Theta_ii Theta_jj",
    "F": "Theta_ij Theta_ij",
    "D": "Theta_ii Theta_ii",
    "U": "z_i z_i Theta_jj",
    "V": "z_i z_i Theta_ii",
    "G": "z_i Theta_ij z_j",
    "W": "z_i z_i z_j z_j",
    "Q": "z_i z_i z_i z_i",
}


@pytest.mark.parametrize("activation", ["relu", "linear"])
@given(st.integers(1, 30), st.floats(0.05, 3.0), st.integers(0, 2**31))
def test_engine_derives_the_printed_table(activation, n, s, seed):
    recursion = mf.derive(*LETTERS.values(), activation=activation)
    assert len(recursion.moments) == 8
    state = np.random.default_rng(seed).uniform(0.1, 2.0, size=8)
    expected = printed.relu_or_linear(state, n, s, activation == "relu")
    np.testing.assert_allclose(recursion.matrix(n, s) @ state, expected, rtol=1e-12)


@given(st.integers(1, 30), st.floats(0.05, 3.0), st.floats(0.1, 9.0))
def test_engine_derives_the_first_layer(n, s, c):
    recursion = mf.derive(*LETTERS.values())
    np.testing.assert_allclose(recursion.first_layer(n, s, c), printed.first_layer(n, s, c), rtol=1e-12)


@given(st.integers(1, 30), st.floats(0.05, 3.0))
def test_engine_derives_the_overlap_of_two_tangents(n, s):
    recursion = mf.derive("u_i v_i u_j v_j", "u_i u_i v_j v_j", "u_i u_i v_i v_i")
    np.testing.assert_allclose(
        recursion.matrix(n, s) @ [1.0, 2.0, 0.5], printed.overlap_of_two_tangents(1.0, 2.0, 0.5, n, s), rtol=1e-12
    )


@pytest.mark.parametrize("activation", ["relu", "linear"])
@given(st.integers(1, 30), st.floats(0.05, 3.0))
def test_engine_derives_the_gram_matrix_going_down(activation, n, s):
    moments = ("Theta_ii Theta_jj", "Theta_ij Theta_ij")
    recursion = mf.derive(*moments, activation=activation, direction="down")
    assert len(recursion.moments) == 2
    expected = printed.gram_downwards(3.0, 0.7, n, s, activation == "relu")
    np.testing.assert_allclose(recursion.matrix(n, s) @ [3.0, 0.7], expected, rtol=1e-12)


def test_sizes_of_known_closures():
    assert len(mf.derive("Theta_ij Theta_ij").moments) == 8
    assert len(mf.derive("z_i Theta_ij Theta_jk z_k").moments) == 15
    assert len(mf.derive("Theta_ij Theta_ij Theta_kl Theta_kl").moments) == 70


@given(st.integers(1, 5), st.integers(0, 2**31))
def test_gate_average_is_the_enumeration_of_all_coins(n, seed):
    """F after the gate, (F + D)/4, and a fourth moment of z, by averaging over all 2^n gates."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    theta, z = root @ root.T, rng.normal(size=n)
    gates = [np.diag(np.array(coins, dtype=float)) for coins in product((0, 1), repeat=n)]
    enumerated = np.mean([np.square(d @ theta @ d).sum() for d in gates])
    assert enumerated == pytest.approx((np.square(theta).sum() + np.square(np.diag(theta)).sum()) / 4)
    quartic = np.mean([((d @ z) @ (d @ z)) ** 2 for d in gates])
    assert quartic == pytest.approx(((z @ z) ** 2 + (z**4).sum()) / 4)


def test_width_one_by_hand():
    """n = 1: Theta' = w^2 d Theta + d z^2 with a fair coin d, so E Theta'^2 = (3 s^2 T^2 + 2 s T z^2 + z^4)/2."""
    recursion = mf.derive("Theta_ij Theta_ij")
    theta, z, s = 1.7, 0.6, 0.9
    values = {2: theta**2, 1: theta * z**2, 0: z**4}
    state = np.array([values[len(moment.edges)] for moment in recursion.moments])
    expected = (3 * s**2 * theta**2 + 2 * s * theta * z**2 + z**4) / 2
    assert (recursion.matrix(1, s) @ state)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_one_layer_against_gauss_hermite(activation):
    """n = 2: the average over all six weights of a 3 x 2 layer by quadrature, gates enumerated."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    weights = weights / weights.sum()
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 2))
    theta, z, s, n = root @ root.T, rng.normal(size=2), 0.4, 3
    coins = list(product((0.0, 1.0), repeat=2)) if activation == "relu" else [(1.0, 1.0)]
    total = 0.0
    for combination in product(range(4), repeat=6):
        chance = np.prod(weights[list(combination)])
        w = np.sqrt(s) * nodes[list(combination)].reshape(3, 2)
        for coin in coins:
            d = np.diag(coin)
            x = d @ z
            moved = w @ d @ theta @ d @ w.T + (x @ x) * np.eye(3)
            total += chance / len(coins) * np.square(moved).sum()
    recursion = mf.derive("Theta_ij Theta_ij", activation=activation)
    state = [_value(moment, theta, z) for moment in recursion.moments]
    assert (recursion.matrix(n, s) @ state)[0] == pytest.approx(total, rel=1e-10)


def _value(moment, theta, z):
    """A moment of given numbers, by summing over all indices."""
    total = 0.0
    for index in product(range(len(z)), repeat=len(moment.marks)):
        term = np.prod([theta[index[a], index[b]] for a, b in moment.edges])
        total += term * np.prod([z[index[v]] for v, names in enumerate(moment.marks) for _ in names])
    return total


def test_combinatorics():
    assert [sum(1 for _ in set_partitions(size)) for size in range(6)] == [1, 1, 2, 5, 15, 52]
    assert [sum(1 for _ in perfect_matchings(size)) for size in (0, 2, 4, 6, 8, 3)] == [1, 1, 3, 15, 105, 0]


def test_coin_cumulants_give_back_the_coin():
    """Every moment of a 0/1 coin is 1/2: sum over partitions of products of cumulants."""
    for size in range(1, len(COIN_CUMULANTS)):
        total = sum(np.prod([COIN_CUMULANTS[len(block)] for block in parts]) for parts in set_partitions(size))
        assert total == Fraction(1, 2)


def test_names_of_indices_do_not_matter():
    assert parse_moment("Theta_ab Theta_ba z_c z_c") == parse_moment("z_k z_k Theta_ji Theta_ij")


def test_a_recursion_prints_as_formulas():
    shown = str(mf.derive("u_i u_i", activation="linear"))
    assert "[u_i u_i] <- (n s) [u_i u_i]" in shown


@pytest.mark.parametrize(
    ("moments", "options", "message"),
    [
        (["Theta_i"], {}, "is no factor of a moment"),
        (["z"], {}, "is no factor of a moment"),
        ([""], {}, "at least one factor"),
        ([], {}, "at least one moment"),
        (["z_i Theta_ij"], {}, "odd number of vectors"),
        (["z_i z_i"], {"activation": "gelu"}, "'relu', 'linear'"),
        (["z_i z_i"], {"direction": "left"}, "'up', 'down'"),
    ],
)
def test_unreadable_moments_are_refused(moments, options, message):
    with pytest.raises(ValueError, match=message):
        mf.derive(*moments, **options)
