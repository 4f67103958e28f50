"""Walks of loops: the split of the energy, one law by both kinds of weights, draws that do not meet."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import meanfield as mf
from meanfield.common.seeds import stream, streams_of_draws
from meanfield.simulation import passes
from meanfield.simulation.kernels.gaussians import NormalSource
from meanfield.simulation.measures.streams import ResidualEnergies, StreamUpdates
from meanfield.simulation.weights import draw_dense
from tests import naive
from tests.draws import drawn_by, in_batches
from tests.statistics import COMPARISONS, consistent
from tests.strategies import loops

DRAWS = 4096
KINDS = ("dense", "lazy")

draw_residual_energies = drawn_by(ResidualEnergies)


def _given_draw(loop, seed=0, draw=0):
    """Every step's matrix, and h_0, of one dense draw."""
    normals = NormalSource(streams_of_draws(seed, "weights", [draw]))
    drawn = [draw_dense(weight, normals).matrix[0] for weight in loop.weights.values()]
    return drawn * loop.depth if loop.tied else drawn, stream(seed, "inputs", draw).standard_normal(loop.width)


@given(loops(), st.sampled_from(KINDS), st.integers(0, 99))
def test_the_split_adds_up(loop, kind, seed):
    """H_0 + B_l + C_l = H_l of every draw to rounding, all four computed apart."""
    drawn = draw_residual_energies(loop, seed, range(3), weights=kind)
    parts = drawn["initial_energy"][:, None] + drawn["cross_term"] + drawn["correlation_term"]
    sizes = drawn["initial_energy"][:, None] + np.abs(drawn["cross_term"]) + drawn["correlation_term"]
    assert not drawn["binary_exponent"].any()
    np.testing.assert_array_less(np.abs(parts - drawn["residual_energy"]), 1e-12 * sizes)


@given(loops())
@example(mf.TiedLoop(depth=6, width=5, alpha=-1.0, weight_variance=1.0, activation="silu", tied=False))
def test_a_walk_is_its_naive_twin(loop):
    drawn = draw_residual_energies(loop, 0, range(1), correlations=True)
    matrices, start = _given_draw(loop)
    streams = naive.loop_streams(loop, matrices, start)
    np.testing.assert_allclose(drawn["residual_energy"][0], [h @ h / loop.width for h in streams[1:]], rtol=1e-9)
    features = [naive.sigma(loop.activation, h) for h in streams[:-1]]
    increments = [matrix @ own for matrix, own in zip(matrices, features, strict=True)]
    for name, rows in (("feature_overlap", features), ("increment_correlation", increments)):
        expected = [[first @ second / loop.width for second in rows] for first in rows]
        np.testing.assert_allclose(drawn[name][0], expected, rtol=1e-9, atol=1e-12)


def test_increment_correlations_sum_to_the_correlation_term():
    loop = mf.TiedLoop(depth=7, width=20, alpha=0.5)
    drawn = draw_residual_energies(loop, 0, range(4), weights="lazy", correlations=True)
    total = loop.step_size**2 * drawn["increment_correlation"].sum(axis=(1, 2))
    np.testing.assert_allclose(total, drawn["correlation_term"][:, -1], rtol=1e-12)


def _disagreements(first, second, names=("residual_energy", "cross_term", "correlation_term")):
    """Two-sample Kolmogorov-Smirnov p-values of dense draws of one loop against lazy ones of another, at every step."""
    dense = in_batches(partial(draw_residual_energies, first, 1, weights="dense"), DRAWS)
    lazy = in_batches(partial(draw_residual_energies, second, 2, weights="lazy"), DRAWS)
    return [stats.ks_2samp(a, b).pvalue for name in names for a, b in zip(dense[name].T, lazy[name].T, strict=True)]


LOOPS = {
    "tied": mf.TiedLoop(depth=5, width=12, alpha=0.5),
    "tied, deeper than wide, gelu": mf.TiedLoop(depth=6, width=4, activation="gelu", alpha=0.5),
    "independent": mf.TiedLoop(depth=5, width=12, alpha=0.5, tied=False),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_lazy_draws_have_the_law_of_dense_ones(loop):
    assert min(_disagreements(loop, loop)) > 1e-6 / COMPARISONS


def test_tied_weights_taken_for_independent_ones_are_seen():
    """Negative control: the first step has the same law, the others have not."""
    by_step = _disagreements(LOOPS["tied"], LOOPS["independent"], ("residual_energy",))
    assert by_step[0] > 1e-6 / COMPARISONS > max(by_step[2:])


def _exact_second_step(loop):
    """E H_2 of linear loops of depth 2 at any width, from the moments of W: E H_0 = 1."""
    branch, width = loop.step_size**2 * loop.weight_variance, loop.width
    if not loop.tied:
        return (1 + branch) ** 2
    return 1 + 4 * branch + branch**2 * (1 + 2 / width**2) + 2 * branch / width


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_linear_loops_of_two_steps_meet_the_exact_expectation(kind, tied):
    loop = mf.TiedLoop(depth=2, width=24, activation="linear", weight_variance=1.3, tied=tied)
    measured = mf.simulate(loop, draws=DRAWS, seed=3, weights=kind)
    final, error = measured.residual_energy.values[-1], measured.residual_energy_stderr.values[-1]
    assert consistent(final - _exact_second_step(loop), error, DRAWS)
    assert not consistent(final - _exact_second_step(mf.TiedLoop(**_spec(loop) | {"tied": not tied})), error, DRAWS)
    wrong = mf.TiedLoop(**_spec(loop) | {"weight_variance": 1.1 * 1.3})
    assert not consistent(final - _exact_second_step(wrong), error, DRAWS)


def _spec(loop):
    return {name: value for name, value in loop.describe().items() if name != "family"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_draw_does_not_depend_on_its_company(kind, tied):
    loop = mf.TiedLoop(depth=4, width=150, tied=tied)
    together = draw_residual_energies(loop, 9, range(12), weights=kind, correlations=True)
    for name, values in together.items():
        alone = [
            draw_residual_energies(loop, 9, range(i, i + 1), weights=kind, correlations=True)[name] for i in range(12)
        ]
        np.testing.assert_array_equal(values, np.concatenate(alone))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["relu", "linear", "gelu", "tanh", "erf"])
def test_the_scale_of_a_stream_changes_no_number(kind, activation, monkeypatch):
    loop = mf.TiedLoop(depth=12, width=9, alpha=0, activation=activation, weight_variance=8.0)
    plain = draw_residual_energies(loop, 0, range(5), weights=kind)
    monkeypatch.setattr(passes, "LARGEST_EXPONENT", 1)
    scaled = draw_residual_energies(loop, 0, range(5), weights=kind)
    assert (scaled["binary_exponent"][:, -1] > 1).any()
    for name, power in (("residual_energy", 2), ("correlation_term", 2), ("cross_term", 1)):
        restored = np.ldexp(scaled[name], power * scaled["binary_exponent"].astype(int))
        np.testing.assert_allclose(restored, plain[name], rtol=1e-9, atol=1e-9 * np.abs(plain[name]).max())
    first, second = (ResidualEnergies().dataset(loop, drawn, {}) for drawn in (plain, scaled))
    for name in first.data_vars:
        np.testing.assert_allclose(second[name], first[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_auto_picks_by_cost():
    def kinds(**spec):
        loop = mf.TiedLoop(**spec)
        return [measure.settled(loop).weights for measure in (ResidualEnergies(), StreamUpdates(update="gradient"))]

    assert kinds(depth=64, width=1024) == ["lazy", "lazy"]
    assert kinds(depth=1024, width=1024) == ["dense", "dense"]
    assert kinds(depth=1024, width=1024, tied=False) == ["lazy", "lazy"]
