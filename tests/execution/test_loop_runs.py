"""Runs of loops: the same numbers anywhere, streams beyond the floats, and refusals before any work."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.execution import chunks
from meanfield.execution.run import Run
from meanfield.simulation.measures.streams import ResidualEnergies

LOOP = mf.TiedLoop(depth=5, width=30)


def _energies(**options):
    return mf.simulate(LOOP, draws=24, seed=3, correlations=True, **options)


def _updates(**options):
    return mf.simulate(LOOP, measure=mf.StreamUpdates(update="aligned"), draws=24, seed=3, **options)


@pytest.mark.parametrize("simulate", [_energies, _updates])
def test_workers_chunks_and_stores_change_no_number(simulate, monkeypatch, tmp_path):
    whole = simulate()
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 2e5)
    assert len(Run(LOOP, ResidualEnergies(), 24, 3).chunks()) > 1
    xr.testing.assert_identical(simulate(resume_in=tmp_path), whole)
    monkeypatch.setattr(chunks, "compute_chunk", None)
    xr.testing.assert_identical(simulate(resume_in=tmp_path), whole)


def test_workers_change_no_number(monkeypatch):
    monkeypatch.setattr(chunks, "OPERATIONS_PER_CHUNK", 2e5)
    xr.testing.assert_identical(_energies(workers=2), _energies())


def test_schema():
    measured = _energies()
    for name in ("residual_energy", "log_residual_energy", "cross_term", "correlation_term"):
        assert measured[name].dims == measured[f"{name}_stderr"].dims == ("step",)
        assert f"{name}_largest_share" in measured
    assert measured.initial_energy.dims == ()
    assert measured.increment_correlation.dims == measured.feature_overlap.dims == ("step", "step_other")
    assert list(measured.step.values) == list(measured.step_other.values) == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(measured.log_residual_energy, np.log(measured.residual_energy))
    relative = measured.residual_energy_stderr / measured.residual_energy
    np.testing.assert_allclose(measured.log_residual_energy_stderr, relative)
    assert json.loads(measured.attrs["architecture"])["family"] == "TiedLoop"
    assert measured.attrs["weights"] in ("dense", "lazy")
    assert _updates().stream_update_energy.dims == ("step",)


def test_a_given_start_is_that_of_all_draws():
    start = np.linspace(-1, 2, LOOP.width)
    measured = mf.simulate(LOOP, draws=4, seed=0, inputs=start)
    assert float(measured.initial_energy) == pytest.approx(start @ start / LOOP.width)
    assert float(measured.initial_energy_stderr) == pytest.approx(0, abs=1e-12)


def test_energies_beyond_floats_have_a_logarithm():
    """Linear, tied and eps = 1: H_l ~ the l-th power of a matrix; the slope of its logarithm goes on past 2^1024."""
    loop = mf.TiedLoop(depth=1200, width=8, alpha=0, activation="linear")
    measured = mf.simulate(loop, draws=2, seed=0)
    logs = measured.log_residual_energy.values
    assert np.isinf(measured.residual_energy.values[-1])
    assert np.isinf(measured.residual_energy_stderr.values[-1])
    assert np.isfinite(logs).all()
    assert np.isfinite(measured.log_residual_energy_stderr).all()
    assert logs[-1] > 1024 * np.log(2)
    assert logs[-1] - logs[-101] == pytest.approx(logs[-101] - logs[-201], rel=0.05)
    inside = logs < 700
    np.testing.assert_allclose(np.log(measured.residual_energy.values[inside]), logs[inside], rtol=1e-12)


def test_smooth_streams_beyond_floats_are_refused():
    with pytest.raises(OverflowError, match=r"leaves the range of floats; take a larger alpha"):
        mf.simulate(mf.TiedLoop(depth=1500, width=4, alpha=0, activation="gelu", weight_variance=9), draws=2, seed=0)


@pytest.mark.parametrize("weights", ["auto", "dense", "lazy"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"draws": 1}, ValueError, "draws is 1; it must be at least 2"),
        ({"draws": 2.5}, TypeError, "whole number"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"workers": 0}, ValueError, "workers is 0"),
        ({"weights": "sparse"}, ValueError, "'auto', 'dense', 'lazy'"),
        ({"inputs": np.ones((2, 30))}, ValueError, r"inputs has shape \(2, 30\)"),
        ({"inputs": np.full(30, np.nan)}, ValueError, "NaN"),
        ({"inputs": np.zeros(30)}, ValueError, "zero everywhere"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(options, error, message, weights, monkeypatch):
    monkeypatch.setattr(chunks, "compute_chunk", None)
    own = {"weights": weights} | options
    how = {name: own.pop(name, default) for name, default in {"draws": 4, "seed": 0, "workers": 1}.items()}
    with pytest.raises(error, match=message):
        mf.simulate(LOOP, **own, **how)
    with pytest.raises(error, match=message):
        mf.simulate(LOOP, measure=mf.StreamUpdates(**own), **how)


def test_what_only_one_of_both_takes_is_refused_by_the_other():
    with pytest.raises(TypeError, match="correlations is 1"):
        mf.simulate(LOOP, draws=4, seed=0, correlations=1)
    with pytest.raises(ValueError, match="this is a MLP"):
        mf.simulate(mf.MLP(depth=2, width=3), draws=4, seed=0, correlations=True)
    with pytest.raises(ValueError, match="'isotropic', 'aligned', 'gradient'"):
        mf.simulate(LOOP, measure=mf.StreamUpdates(update="adam"), draws=4, seed=0)
    with pytest.raises(ValueError, match="no unit of this MLP adds its branch to the value below it"):
        mf.simulate(mf.MLP(depth=2, width=3), measure=mf.StreamUpdates(), draws=4, seed=0)


def test_loops_too_large_for_the_machine_say_how_much_they_need():
    with pytest.raises(MemoryError, match=r"needs about .* lower width, depth, draws or workers"):
        mf.simulate(mf.TiedLoop(depth=2, width=10**6), draws=2, seed=0, weights="dense")
    with pytest.raises(MemoryError, match="draws"):
        mf.simulate(mf.TiedLoop(depth=1000, width=10), draws=10**6, seed=0, correlations=True)
