"""The mini-batch identity, by enumeration and by sampling; and what breaks it."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.simulation.one_step import all_batches, drawn_population, random_batches
from tests.statistics import consistent

POPULATION = drawn_population(mf.MLP(depth=2, width=5, outputs=2), 4, 7)


def _gap(samples, moment, *, replacement, counted=None):
    square, correction = POPULATION.identity(counted or samples, replacement=replacement)
    return np.abs(moment - square - correction).max() / np.abs(moment).max()


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("samples", [1, 2, 3, 4])
def test_all_batches_obey_the_identity(samples, replacement):
    """Zhang et al. 2026, eq. 25, to rounding; of another batch size it fails."""
    moment = POPULATION.second_moment(all_batches(4, samples, replacement=replacement))
    assert _gap(samples, moment, replacement=replacement) < 1e-13
    assert _gap(samples, moment, replacement=replacement, counted=samples + 1) > 0.01


@pytest.mark.parametrize("samples", [2, 3])
def test_batches_drawn_otherwise_break_it(samples):
    moment = POPULATION.second_moment(all_batches(4, samples, replacement=False))
    assert _gap(samples, moment, replacement=True) > 0.01


def test_correlated_batches_break_it():
    """Negative control: a batch of copies of one sample has the spread of one."""
    moment = POPULATION.second_moment([(k, k) for k in range(4)])
    assert _gap(2, moment, replacement=True) > 0.1
    assert _gap(1, moment, replacement=True) < 1e-13


def test_a_change_is_the_mean_of_what_samples_do_alone():
    alone = np.stack([POPULATION.change([k]) for k in (1, 2, 2)])
    np.testing.assert_allclose(POPULATION.change([1, 2, 2]), alone.mean(axis=0), rtol=1e-12)


def test_sampled_batches_obey_it_in_standard_errors():
    count = 400
    batches = random_batches(4, 8, count, 1)
    energy = np.array([np.square(POPULATION.change(batch)).mean() for batch in batches])
    square, correction = (np.trace(part) / 5 for part in POPULATION.identity(8))
    stderr = energy.std(ddof=1) / np.sqrt(count)
    assert consistent(energy.mean() - square - correction, stderr, count)
    assert not consistent(energy.mean() - square, stderr, count)
