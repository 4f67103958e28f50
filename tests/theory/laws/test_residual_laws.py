"""Closed forms for residual nets, by enumeration and in their limits."""

from itertools import product

import numpy as np
import pytest

from meanfield.theory.laws import log_path_sum_scale, residual_exponent


@pytest.mark.parametrize(("block_depth", "plain"), [(1, 0), (2, 0), (3, 2)])
def test_path_sum_is_the_sum_over_all_paths(block_depth, plain):
    for blocks in (1, 4):
        lengths = [plain + block_depth * sum(taken) for taken in product((0, 1), repeat=blocks)]
        expected = -0.5 * np.log(np.sum(np.array(lengths, dtype=float) ** 3))
        assert log_path_sum_scale(blocks, block_depth, plain)[0] == pytest.approx(expected, rel=1e-12)


def test_propagation_is_bounded():
    factors = (1 + 1.3 / 50) ** np.arange(51)  # Zhang et al. 2026, appendix C, corollary to Lemma 6
    assert factors[0] == 1
    assert np.all(np.diff(factors) > 0)
    assert factors[-1] <= np.exp(1.3)


def test_exponents_need_known_scalings():
    assert [residual_exponent("init", k) for k in (1, 2, 3)] == [-1, 0, 1]
    with pytest.raises(ValueError, match="scaling is 'sqrt'"):
        residual_exponent("sqrt", 1)
    with pytest.raises(ValueError, match="block_depth is 0"):
        residual_exponent("init", 0)
