"""Derived recursions of residual blocks: against the printed table, and averages over all weights of a block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf
from meanfield.theory.recursions import DepthUnit, derive_together
from tests.theory.exact import printed_recursions as printed

# The letters of docs/theory.md section 3, in the order of its table for one-layer branches.
LETTERS = {
    "F": "Theta_ij Theta_ij",
    "P": "Theta_ii Theta_jj",
    "U": "z_i z_i Theta_jj",
    "G": "z_i Theta_ij z_j",
    "W": "z_i z_i z_j z_j",
}
SQUARED, LENGTHS = "u_i v_i u_j v_j", "u_i u_i v_j v_j"


@given(st.integers(1, 30), st.floats(0.01, 3.0), st.floats(0.01, 2.0), st.integers(0, 2**31))
def test_engine_derives_the_printed_table(n, s, beta, seed):
    recursion = mf.derive(*LETTERS.values(), activation="linear", block_depth=1)
    assert len(recursion.moments) == 5
    state = np.random.default_rng(seed).uniform(0.1, 2.0, size=5)
    expected = printed.linear_block(state, n, s, beta)
    np.testing.assert_allclose(recursion.matrix(n, s, beta) @ state, expected, rtol=1e-12)


def test_the_printed_table_is_no_deeper_block():
    state, printed_table = np.ones(5), printed.linear_block(np.ones(5), 6, 0.1, 0.5)
    deeper = mf.derive(*LETTERS.values(), activation="linear", block_depth=2).matrix(6, 0.1, 0.5) @ state
    assert np.all(np.abs(deeper / printed_table - 1) > 0.01)


@pytest.mark.parametrize(
    ("block_depth", "moment"),
    [
        *((k, "Theta_ij Theta_ij") for k in (1, 2, 3)),
        *((k, moment) for k in (1, 2) for moment in ("z_i Theta_ij Theta_jk z_k", "Theta_ij Theta_ij z_k z_k")),
    ],
)
def test_one_block_averaged_over_all_its_weights(moment, block_depth):
    """n = 2 by Gauss-Hermite quadrature: every weight occurs to the power four at most, or six with z."""
    s, a, rng = 0.4, 0.7, np.random.default_rng(0)
    root = rng.normal(size=(2, 2))
    theta, z = root @ root.T, rng.normal(size=2)
    chances, weights = _all_weights(block_depth, 4 if "z" in moment else 3)
    moved_z, moved_theta = _through_block(np.sqrt(s) * weights, a, z, theta)
    expected = chances @ _value(moment, moved_z, moved_theta)
    recursion = mf.derive(moment, activation="linear", block_depth=block_depth)
    state = [_value(str(name), z, theta) for name in recursion.moments]
    assert recursion.matrix(2, s, a**2)[0] @ state == pytest.approx(expected, rel=1e-11)


def _all_weights(block_depth, nodes):
    """Probabilities (nodes^(4 k),) and standard normal weights (nodes^(4 k), k, 2, 2)."""
    points, chance = np.polynomial.hermite_e.hermegauss(nodes)
    which = np.indices((nodes,) * 4 * block_depth).reshape(4 * block_depth, -1)
    return (chance / chance.sum())[which].prod(axis=0), points[which].T.reshape(-1, block_depth, 2, 2)


def _through_block(weights, a, z, theta):
    """z + a W_k .. W_1 z and its kernel, from the Jacobian of the block and of its own weights, draw by draw."""
    identity = np.broadcast_to(np.eye(2), (*weights.shape[:1], 2, 2))
    below, above = [identity], [identity]
    for layer in range(weights.shape[1]):
        below.append(weights[:, layer] @ below[-1])
        above.append(above[-1] @ weights[:, -1 - layer])
    jacobian = identity + a * below[-1]
    kernel = jacobian @ theta @ jacobian.swapaxes(1, 2)
    for features, lever in zip(below[:-1], above[-2::-1], strict=True):
        energy = np.square(features @ z).sum(axis=1)
        kernel = kernel + a**2 * energy[:, None, None] * (lever @ lever.swapaxes(1, 2))
    return jacobian @ z, kernel


def _value(moment, z, theta):
    """A moment of given numbers, or of arrays of them with the draws first, by summing over all indices."""
    factors = [factor.partition("_") for factor in moment.split()]
    subscripts = ",".join("..." + indices for _, _, indices in factors)
    return np.einsum(subscripts + "->...", *[theta if name == "Theta" else z for name, _, _ in factors], optimize=True)


@given(st.integers(1, 3), st.integers(2, 30), st.floats(0.05, 2.0), st.floats(0.1, 1.0))
def test_what_goes_down_to_the_gram_matrix_is_what_goes_up_to_two_vectors(block_depth, n, s, beta):
    """With E S_ij S_kl = alpha d_ij d_kl + gamma (d_ik d_jl + d_il d_jk) above a block, and so below it.

    (tr S)^2 = alpha n^2 + 2 gamma n and tr S^2 = alpha n + gamma n (n + 1) go down by one recursion; gamma below is
    E <Ju, SJv>^2 and alpha E <Ju, SJu> <Jv, SJv> of orthonormal u, v, by the other.
    """
    block = {"activation": "linear", "block_depth": block_depth}
    down = mf.derive("Theta_ii Theta_jj", "Theta_ij Theta_ij", direction="down", **block)
    up = mf.derive(SQUARED, LENGTHS, **block)
    assert len(down.moments) == len(up.moments) == 2
    traces = np.array([[n**2, 2 * n], [n, n * (n + 1)]])
    for alpha, gamma in np.eye(2):
        squared, lengths = up.matrix(n, s, beta) @ [0.0, 1.0]
        below = [alpha * lengths + 2 * gamma * squared, (alpha + gamma) * squared + gamma * lengths]
        expected = down.matrix(n, s, beta) @ traces @ [alpha, gamma]
        np.testing.assert_allclose(traces @ below, expected, rtol=1e-9)


def test_plain_layers_and_blocks_close_on_one_set():
    units = DepthUnit("linear"), DepthUnit("linear", block_depth=2)
    plain, block = derive_together(("z_i Theta_ij Theta_jk z_k",), *units)
    assert plain.moments == block.moments
    assert len(plain.moments) == 7
    alone = mf.derive("z_i Theta_ij Theta_jk z_k", activation="linear")
    order = [plain.moments.index(moment) for moment in alone.moments]
    np.testing.assert_allclose(plain.matrix(5, 0.3)[np.ix_(order, order)], alone.matrix(5, 0.3), rtol=1e-14)


@pytest.mark.parametrize("block_depth", [1, 2, 3])
def test_width_one_by_hand(block_depth):
    """n = 1: z' = z (1 + a w_k .. w_1), so E z'^4 = z^4 (1 + 6 beta s^k + 3^k beta^2 s^2k)."""
    recursion = mf.derive("z_i z_i z_j z_j", activation="linear", block_depth=block_depth)
    s, beta = 0.9, 0.3
    expected = 1 + 6 * beta * s**block_depth + 3**block_depth * beta**2 * s ** (2 * block_depth)
    np.testing.assert_allclose(recursion.matrix(1, s, beta), [[expected]], rtol=1e-12)


def test_a_block_prints_as_formulas():
    shown = str(mf.derive("u_i u_i", activation="linear", block_depth=2))
    assert "[u_i u_i] <- (n^2 s^2 beta + 1) [u_i u_i]" in shown
    assert "beta: squared multiplier of the branch" in shown


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"block_depth": 1}, ValueError, "'relu'; derive it for 'linear' alone"),
        ({"block_depth": -1, "activation": "linear"}, ValueError, "block_depth is -1; it must be at least 0"),
        ({"block_depth": 1.5, "activation": "linear"}, TypeError, "block_depth is 1.5"),
    ],
)
def test_blocks_that_do_not_close_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mf.derive("z_i z_i", **options)


def test_a_recursion_wants_one_number_for_each_variable():
    with pytest.raises(ValueError, match="got 2 values for the variables n, s, beta; give one for each"):
        mf.derive("z_i z_i", activation="linear", block_depth=1).matrix(3, 0.1)
