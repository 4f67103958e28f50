"""Every standard error that estimates and measures state, against that of a bootstrap over the same draws."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.common.estimates import deviations, log_moments, quantiles, summarise, summarise_each
from meanfield.common.power_laws import fit_power_law, log_slope
from meanfield.optimizers import AdamW
from meanfield.simulation.measures.base import Measure
from meanfield.simulation.measures.blocks import BlockMeasure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.pair_overlaps import PairOverlaps
from meanfield.simulation.measures.propagation import ActivationStatistics, TangentPropagation, TokenStatistics
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.measures.streams import ResidualEnergies, StreamUpdates
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.simulation.training.trained import TrainedLosses, TrainedResidualEnergies
from meanfield.verification.series import ladder_slope, limit_law, mean_over_draws, scale_law

# A factor of the square root of two, either way, lies beyond this; bootstraps of so many repeats scatter by 5 %.
SHARE = 0.17
REPEATS = 200
ROUNDING = 1e-9
SIZES = np.array([4.0, 8.0, 16.0, 64.0])


def draws_of(kind):
    """(draws, columns): of log-normal values, and of values that rise and fall together, about a power of the size."""
    rng = np.random.default_rng(3)
    if kind == "log-normal":
        return np.exp(0.4 * rng.normal(size=(600, 8)))
    common = rng.normal(size=(600, 1))
    return SIZES**1.5 * (1 + 0.1 * common + 0.05 * rng.normal(size=(600, len(SIZES))))


def _of(estimate):
    return getattr(estimate, "value", getattr(estimate, "mean", None)), estimate.stderr


def _slope(law):
    return law.exponent, law.stderr


def _dataset(values):
    estimate = summarise(values)
    return xr.Dataset({"y": ("x", estimate.mean), "y_stderr": ("x", estimate.stderr)}, {"x": SIZES})


def _by_mean(values):
    means = summarise(values)
    return _slope(log_slope(SIZES, means.mean, means.covariance))


def _ladder(values, name):
    slope = ladder_slope(SIZES, values.T)
    return getattr(slope, name), getattr(slope, f"{name}_stderr")


def _of_whole_mean(values):
    """Of the mean square over draws, to the power 1/2, by its jackknife."""
    return _ladder(mean_over_draws(values.T, 2).T, "plain")


# What is estimated -> the draws it is estimated from, and (value, standard error) of it.
ESTIMATES = {
    "means": ("log-normal", lambda v: _of(summarise(v))),
    "means of any shape": ("log-normal", lambda v: _of(summarise_each(v.reshape(len(v), 2, 4)))),
    "quantiles": ("log-normal", lambda v: _of(quantiles(v, np.array([0.2, 0.5, 0.8])))),
    "deviations": ("log-normal", lambda v: _of(deviations(v))),
    "spreads of logarithms": ("log-normal", lambda v: _of(log_moments(v)[0])),
    "skewnesses of logarithms": ("log-normal", lambda v: _of(log_moments(v)[1])),
    "slope of means that move together": ("ladder", _by_mean),
    "slope of draws": ("ladder", lambda v: _ladder(v, "plain")),
    "slope of draws and its limit": ("ladder", lambda v: _ladder(v, "settled")),
    "slope of a mean square over draws": ("ladder", _of_whole_mean),
    "slope of independent means": ("apart", lambda v: _slope(fit_power_law(SIZES, *_of(summarise(v))))),
    "limit of such a slope": ("apart", lambda v: _slope(limit_law(_dataset(v), "x", "y"))),
    "slope of the inverse root": ("apart", lambda v: _slope(scale_law(_dataset(v), "x", "y"))),
}


def bootstrapped(values, value_of, repeats=REPEATS, apart=False):
    """Standard deviations of what is estimated over resamples of the draws; columns ``apart`` each by their own."""
    rng = np.random.default_rng(4)
    shape = values.shape if apart else (len(values), *[1] * (values.ndim - 1))
    for_each = (rng.integers(len(values), size=shape) for _ in range(repeats))
    resampled = [np.asarray(value_of(np.take_along_axis(values, which, axis=0))) for which in for_each]
    return np.std(resampled, axis=0)


def ratio(stated, found):
    """The mean share of stated errors in those found, over all columns."""
    return float(np.mean(np.asarray(stated) / found))


@pytest.mark.parametrize("name", ESTIMATES)
def test_errors_of_estimates(name):
    kind, estimate = ESTIMATES[name]
    values = draws_of(kind)
    stated = ratio(estimate(values)[1], bootstrapped(values, lambda v: estimate(v)[0], apart=kind == "apart"))
    assert abs(stated - 1) < SHARE
    assert abs(stated * np.sqrt(2) - 1) > SHARE
    assert abs(stated / np.sqrt(2) - 1) > SHARE


def test_covariances_of_means():
    """Also between means, which log-log slopes of one net's layers rest on."""
    values = draws_of("ladder")
    rng = np.random.default_rng(5)
    resampled = [values[rng.integers(len(values), size=len(values))].mean(axis=0) for _ in range(2000)]
    np.testing.assert_allclose(summarise(values).covariance, np.cov(np.transpose(resampled)), rtol=SHARE)


CONV = mf.ConvNet(depth=2, channels=12, grid=(2,), kernel=(1,), outputs=2)
MLP = mf.MLP(depth=2, width=24, outputs=2, head="fan_in")
LOOP = mf.TiedLoop(depth=3, width=6)
TOKENS = mf.Transformer(depth=1, width=4, heads=1, tokens=2, ffn=1, outputs=3, head="fan_in")
BATCH = np.random.default_rng(0).normal(size=(3, 24))
# Measures by their class, each with the net that it is read off: all that state errors.
MEASURES = {
    Energies: (MLP, Energies(weights="dense", controls=True)),
    PairOverlaps: (MLP, PairOverlaps(pairs=(((1, 1), (1, 2)), ((1, 1), (1, 1))), weights="dense")),
    ActivationStatistics: (MLP, ActivationStatistics(weights="dense")),
    TokenStatistics: (CONV, TokenStatistics(weights="dense")),
    TangentPropagation: (CONV, TangentPropagation(starts=(1,), weights="dense")),
    ResidualEnergies: (LOOP, ResidualEnergies(weights="dense", correlations=True)),
    StreamUpdates: (LOOP, StreamUpdates(weights="dense")),
    StepScales: (MLP, StepScales(inputs=BATCH, targets=BATCH[:, :2], loss="squared", optimizer="adamw", batch_size=2)),
    Sharpness: (MLP, Sharpness(inputs=BATCH, loss="squared")),
    TrainedResidualEnergies: (TOKENS, TrainedResidualEnergies(optimizer=AdamW(), rate=0.01, steps=1)),
}
# Those that keep every draw, and those whose seeds are a dimension, state none.
WITHOUT_ERRORS = (BlockMeasure, TrainedLosses)
# Their errors are those of log-normal values, which energies of small nets are not: tested above.
OF_LOG_NORMAL = ("update_energy_log_spread", "update_energy_log_skewness")
DRAWS = {Sharpness: 60}


def test_every_measure_is_here():
    def kinds(base):
        return {kind for below in base.__subclasses__() for kind in (below, *kinds(below))}

    own = {kind for kind in kinds(Measure) if kind.__module__.startswith(("meanfield.", "sims."))}  # none of tests
    concrete = {kind for kind in own if not kind.__abstractmethods__}
    assert {kind for kind in concrete if not issubclass(kind, WITHOUT_ERRORS)} == set(MEASURES)


@cache
def _drawn(kind):
    net, measure = MEASURES[kind]
    return measure.draw(net, 0, range(DRAWS.get(kind, 200)))


@pytest.mark.parametrize("kind", MEASURES, ids=lambda kind: kind.__name__)
def test_errors_of_measures(kind):
    """Of every quantity with an error; ratios of all its entries in their median, as quantiles scatter."""
    (net, measure), values = MEASURES[kind], _drawn(kind)
    stated, rng = measure.dataset(net, values, {}), np.random.default_rng(6)
    names = [name for name in stated.data_vars if f"{name}_stderr" in stated and name not in OF_LOG_NORMAL]
    assert names
    resampled, draws = {name: [] for name in names}, len(next(iter(values.values())))
    for _ in range(80):
        which = rng.integers(draws, size=draws)
        again = measure.dataset(net, {name: value[which] for name, value in values.items()}, {})
        for name in names:
            resampled[name].append(again[name].values)
    off = {}
    for name in names:
        error, found = stated[f"{name}_stderr"].values, np.std(resampled[name], axis=0)
        known = found > ROUNDING * np.abs(stated[name].values)  # all draws may agree, or have none
        assert not np.any(error[~known] > ROUNDING * np.abs(stated[name].values[~known]))
        if known.any():
            off[name] = float(np.median(error[known] / found[known]))
    assert off
    assert {name: share for name, share in off.items() if abs(np.log(share)) > 0.3} == {}  # below ln 2 / 2
