"""The command on tuned rates of looped Transformers: numbers of the library, verdicts on made-up rates, refusals."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from figures import looped_rates as figure
from meanfield.verification import Verdict
from sims import looped_rates as study
from sims.claims.catalogue import CLAIMS
from sims.looped_rates import STUDY as simulation
from tests.sims.claim_controls import ERROR, many_draws
from tests.sims.commands import finished_run

SMALL = ["--loops", "1", "2", "--width", "8", "--tokens", "4", "--steps", "6", "--batch-size", "4"]
SMALL += ["--tuning-seeds", "2", "--draws", "3", "--spacing", "0.5", "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(simulation, SMALL, tmp_path_factory.mktemp("rates") / "run.nc")


@pytest.fixture
def made_up(finished):
    """Slopes -1/2 and 0 over 1 .. 8 loops, 64 seeds; losses 0.1 lower under the linear factor, to 0.01 a seed.

    All nets learn, and one step has slope 0.
    """
    noise = np.random.default_rng(0).normal(size=(2, 4, 64))
    loops = np.array([1, 2, 4, 8])
    logs = np.array([-2 - 0.5 * np.log10(loops), np.full(4, -2.0)])
    values = {
        "tuned_rate_log10": logs + 0.01 * noise.mean(axis=2),
        "tuned_rate_log10_stderr": np.full((2, 4), 0.01),
        "located": np.full((2, 4), 64),
        "absolute_scale": np.ones((2, 4)),
        "absolute_scale_stderr": np.full((2, 4), 0.01),
    }
    shaped = {name: (("scaling", "loops"), value) for name, value in values.items()}
    losses = 2.5 - 0.1 * np.array([0, 1])[:, None, None] + 0.01 * noise
    coords = {"scaling": finished["scaling"].values, "loops": loops}
    losses_of_nets = {"tuned_loss": (("scaling", "loops", "draw"), losses), "learned_loss": 3.0}
    changed = finished[[]].assign(shaped | losses_of_nets)
    return changed.assign_coords(coords).assign_attrs(draws=64)


def test_tuned_rates_are_those_of_the_library(finished):
    """Of the net and data that the run planned; both scalings share the seeds of a number of loops."""
    tunings = simulation.checked(simulation.parse(SMALL))["tunings"]
    net, data, seeds = tunings[3].net, tunings[3].data, tunings[3].seeds
    assert (net.depth, net.scaling, net.tied, net.readout) == (2, "multiplier_linear", True, "every")
    assert data[1].shape == (24, 4)
    assert tunings[1].seeds == seeds != tunings[2].seeds
    how = {"steps": 6, "batch_size": 4, "optimizer": "adamw", "precision": "float32", "spacing": 0.5}
    tuned = mf.tuned_rate(net, data, seeds=seeds, **how)
    at = finished.sel(scaling="linear", loops=2)
    np.testing.assert_array_equal(at["final_loss"].sel(rate=tuned["rate"].values), tuned["final_loss"])
    np.testing.assert_array_equal(at["tuned_rate_log10"], tuned["tuned_rate_log10"])
    how.pop("spacing")
    trained = mf.train(net, data, rates=[float(tuned["tuned_rate"])], seeds=range(seeds[-1] + 1, seeds[-1] + 4), **how)
    np.testing.assert_array_equal(at["tuned_loss"], trained["final_loss"].isel(rate=0))


def test_aligned_and_shifted_rates_are_told_apart(made_up):
    assert [finding.verdict for finding in study.JUDGES.findings(made_up)] == [Verdict.CONFIRMED] * 5
    exchanged = made_up.assign_coords(scaling=made_up["scaling"].values[::-1])
    assert [finding.verdict for finding in study.JUDGES.findings(exchanged)] == [Verdict.REFUTED] * 5
    few = made_up.isel(draw=slice(3)).assign_attrs(draws=3)
    assert study.judge_loss(few).verdict is Verdict.INCONCLUSIVE


def test_blocks_of_their_own_go_as_one_step_or_not(made_up):
    """One step falls as L^(-1/2) under the square root and stays under 1/L; a third of that slope is refuted."""
    steps = made_up["tuned_rate_log10"].isel(scaling=0) + xr.DataArray([0.0, 0.0], dims="scaling")
    steps = steps.where(made_up["scaling"] == "sqrt", 0.0).transpose("scaling", "loops")
    scales = {"relative_scale": 10.0**steps, "relative_scale_stderr": 0.001 * 10.0**steps}
    own = made_up.assign(scales).assign_attrs(blocks="own", optimizer="adamw")
    assert [finding.verdict for finding in study.findings(own)] == [Verdict.CONFIRMED] * 2
    less = own.assign(tuned_rate_log10=own["tuned_rate_log10"] / 3)
    assert [finding.verdict for finding in study.findings(less)] == [Verdict.REFUTED, Verdict.CONFIRMED]


@pytest.mark.parametrize(
    ("slope", "aligned", "shifted"),
    [
        (0.12, Verdict.CONFIRMED, Verdict.REFUTED),
        (-0.12, Verdict.CONFIRMED, Verdict.REFUTED),
        (0.21, Verdict.REFUTED, Verdict.CONFIRMED),
        (-0.21, Verdict.REFUTED, Verdict.CONFIRMED),
        (0.166, Verdict.CONFIRMED, Verdict.INCONCLUSIVE),
    ],
)
def test_the_narrow_band_is_a_factor_of_root_two(made_up, slope, aligned, shifted):
    """From 1 to 8 loops it is left by L^(1/6), in either direction."""
    logs = slope * np.log10(made_up["loops"]) + 0 * made_up["tuned_rate_log10"]
    errors = 0.001 + 0 * made_up["tuned_rate_log10_stderr"]
    tilted = made_up.assign(tuned_rate_log10=logs, tuned_rate_log10_stderr=errors)
    assert study.judge_linear(tilted).verdict is aligned
    assert study.judge_shift(tilted).verdict is shifted


def test_nets_that_know_pairs_of_letters_alone_decide_nothing(made_up):
    findings = study.JUDGES.findings(made_up.assign(learned_loss=2.0))
    assert [finding.verdict for finding in findings] == [Verdict.INCONCLUSIVE] * 5


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_net_without_a_loss_decides_nothing(made_up, lost):
    losses = made_up["tuned_loss"].copy()
    losses[0, -1, 0] = lost
    finding = study.judge_loss(made_up.assign(tuned_loss=losses))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "1 of 128 nets" in finding.evidence


def test_losses_are_compared_seed_by_seed(made_up):
    """What both scalings have in common with a seed leaves no error."""
    common = made_up["tuned_loss"].sel(scaling="sqrt") + 0 * made_up["tuned_loss"]
    shifted = common - 0.1 * (made_up["scaling"] == "linear")
    mean, stderr = study.loss_difference(made_up.assign(tuned_loss=shifted).sel(loops=8))
    assert mean == pytest.approx(-0.1)
    assert stderr == pytest.approx(0, abs=1e-12)


def test_report_and_figure(finished):
    printed = simulation.document(finished).text()
    assert max(map(len, printed.splitlines())) <= 100
    for words in ("Slopes of the tuned rate in L over 1 .. 2", "linear - sqrt", "constant rate"):
        assert words in printed
    panels = figure.draw(finished).axes
    stars = [line for line in panels[3].lines if line.get_marker() == "*"]
    rates = 10 ** finished["tuned_rate_log10"].sel(scaling="linear").values
    np.testing.assert_allclose(np.ravel([star.get_xdata() for star in stars]), rates)


# Worlds in which claims of this study get another verdict: their negative controls.


def _looped(scaling, slope=None):
    """Tuned rates of looped Transformers that learn fall over loops exactly so, or as one step; from many seeds."""

    def exact(runs):
        dataset = runs["looped_rates"]
        chosen, rates = dataset["scaling"] == scaling, dataset["tuned_rate_log10"]
        one_step = np.log10(dataset["absolute_scale"])
        logs = (one_step if slope is None else slope * np.log10(dataset["loops"])) + 0 * rates
        changed = {
            "tuned_rate_log10": logs,
            "tuned_rate_log10_stderr": 0 * rates + ERROR**2,
            "located": 0 * dataset["located"] + 64,
            "absolute_scale_stderr": ERROR**2 * dataset["absolute_scale"],
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return {"looped_rates": _learned(dataset.assign(put))}

    return exact


def own_blocks_follow_one_step(runs, claim):
    """Tuned rates of GPTs that learn, of own blocks, fall as one step by the relative change."""
    (name,) = {check.run for check in CLAIMS[claim].checks}
    dataset = runs[name]
    scale = dataset["relative_scale"]
    put = {
        "tuned_rate_log10": np.log10(scale),
        "tuned_rate_log10_stderr": 0 * scale + ERROR**2,
        "located": 0 * dataset["located"] + 64,
        "relative_scale_stderr": ERROR**2 * scale,
    }
    return {name: _learned(dataset.assign(put))}


def _learned(dataset):
    """All nets end below the loss of pairs of letters."""
    return dataset.assign(learned_loss=1 + dataset["tuned_loss"].max())


def linear_losses_are_lower(runs):
    dataset, spread = many_draws(runs["looped_rates"])
    losses = dataset["tuned_loss"]
    linear = losses["scaling"] == "linear"
    lower = (losses.sel(scaling="sqrt", drop=True) - 1 + spread).where(linear, losses)
    return {"looped_rates": _learned(dataset.assign(tuned_loss=lower.transpose(*losses.dims)))}


CONTROLS = {
    **{claim: partial(own_blocks_follow_one_step, claim=claim) for claim in ("E1e", "E1l")},
    "L7a": _looped("linear", 0.0),
    "T5": _looped("linear"),
    "L7b": _looped("sqrt", -0.5),
    "L7c": linear_losses_are_lower,
    "L7d": _looped("sqrt", -0.5),
}
