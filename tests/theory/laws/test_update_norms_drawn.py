"""The gradient norms under the derivation: drawn, against their exact mean, whose powers are the derived ones.

The nets are linear, of n units and L blocks, with one-hot inputs and the multipliers and variances of the tables of
Zheng et al. 2026 for a base of one unit and one block. Every mean squared norm is a power of n and the multipliers,
times (1 + alpha^2)^(blocks passed), which tends to a constant.
"""

import numpy as np
import pytest

from meanfield.parameterizations import transfer_hyperparameters
from meanfield.theory.laws import derive_scaling
from tests.statistics import consistent

DRAWS = 2048
ROLES = ("input", "hidden", "output", "input_bias", "hidden_bias")
ONE = {"block_multiplier": 1.0, "initial_variance": 1.0}


def table(width, depth, block_depth):
    sizes = {"width": width, "depth": depth, "base_width": 1, "base_depth": 1}
    roles = ("input", "hidden", "output")
    return transfer_hyperparameters("sgd", **sizes, base_values=ONE, block_depth=block_depth, roles=roles)


def exact_mean(role, width, depth, block_depth):
    """Mean squared norm of the gradient of err . h_out, |err| = 1: alpha^2 |error on the stream|^2 |received|^2."""
    numbers = table(width, depth, block_depth)
    branch, output = numbers["hidden"]["block_multiplier"], numbers["output"]["block_multiplier"]
    growth = 1 + branch**2
    if role == "output":
        return output**2 * width * growth**depth
    error = output**2 * width
    if role.startswith("input"):
        return error * growth**depth
    received = width * growth ** (depth - 1) if role == "hidden" else growth ** (depth // 2)
    return branch**2 * error * received


def drawn_squares(width, depth, block_depth, seed=0):
    """role -> squared gradient norm of every draw; hidden: the top layer of the block in the middle, from below L/2."""
    numbers = table(width, depth, block_depth)
    rng = np.random.default_rng(seed)

    def normal(role, *shape):
        return rng.standard_normal((DRAWS, *shape)) * np.sqrt(numbers[role]["initial_variance"])

    branch, output = numbers["hidden"]["block_multiplier"], numbers["output"]["block_multiplier"]
    layers = normal("hidden", depth, block_depth, width, width)
    stream, head = normal("input", width), normal("output", width)
    middle = depth - depth // 2 - 1
    for block in range(depth):
        inner = stream
        for layer in range(block_depth):
            received = inner
            inner = np.einsum("dij,dj->di", layers[:, block, layer], inner)
        if block == middle:
            hidden = received
        stream = stream + branch * inner
    error, errors = output * head, {depth: output * head}
    for block in reversed(range(depth)):
        back = error
        for layer in reversed(range(block_depth)):
            back = np.einsum("dij,di->dj", layers[:, block, layer], back)
        errors[block] = error = error + branch * back

    def square(vectors):
        return (vectors**2).sum(axis=1)

    at_block = branch**2 * square(errors[middle + 1])
    return {
        "input": square(errors[0]),
        "hidden": at_block * square(hidden),
        "output": output**2 * square(stream),
        "input_bias": square(errors[0]),
        "hidden_bias": at_block,
    }


@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("role", ROLES)
def test_drawn_norms_have_their_exact_mean(role, block_depth):
    width, depth = 6, 4
    squares = drawn_squares(width, depth, block_depth)[role]
    stderr = squares.std(ddof=1) / np.sqrt(DRAWS)
    expected = exact_mean(role, width, depth, block_depth)
    assert consistent(squares.mean() - expected, stderr, DRAWS)
    for wrong in (expected * width**0.5, expected * depth**0.5):
        assert not consistent(squares.mean() - wrong, stderr, DRAWS)


@pytest.mark.parametrize("block_depth", [1, 2, 3])
@pytest.mark.parametrize("role", ROLES)
def test_exact_means_have_the_derived_powers(role, block_depth):
    """AdamW's epsilon scales as the RMS entry, which the blocks passed multiply by at most sqrt(e)."""
    width, depth = 10**6, 10**6
    entries = width**2 if role == "hidden" else width
    drawn = np.sqrt(exact_mean(role, width, depth, block_depth) / entries)
    derived = derive_scaling("adamw", role, "adamw_epsilon", block_depth=block_depth)
    assert 0.99 < drawn / derived.at(width, depth) < 1.01 * np.e**0.5
