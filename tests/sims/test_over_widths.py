"""Tuned rates over the width: verdicts on made-up rates, with what must be refuted."""

import re
import warnings
from functools import partial
from math import log10

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.transfer import calibration_of_kind
from meanfield.verification import tuned_rates
from meanfield.verification.verdicts import Verdict
from sims.claims.catalogue import CLAIMS
from sims.common.training_data import trained_net, training_data
from sims.learning_rate_search import named_rates, over_widths
from sims.learning_rate_search.first_steps import WIDENED
from tests.sims.claim_controls import ERROR, all_learned, scattered

RUNS = {"sgd": CLAIMS["E1j"].checks[0].run, "adamw": CLAIMS["E1j"].checks[1].run}
CHANNELS = {"sgd": CLAIMS["E2g"].checks[0].run, "adamw": CLAIMS["E2g"].checks[1].run}


@pytest.mark.parametrize(
    ("name", "kind", "times", "data", "narrow"),
    [
        ("mlp", "mlp", 1.0, "", "mlp"),
        ("cnn 4x4 on mnist", "cnn 4x4", 1.0, "mnist", "cnn 4x4 on mnist"),
        ("residual mlp init x4", "residual mlp init", 4.0, "", "residual mlp init"),
        ("cnn 4x4 x0.5 on own x2.npz", "cnn 4x4", 0.5, "own x2.npz", "cnn 4x4 on own x2.npz"),
        ("mlp xx", "mlp xx", 1.0, "", "mlp xx"),
    ],
)
def test_a_name_says_kind_width_and_data(name, kind, times, data, narrow):
    read = tuned_rates.FamilyName.of(name)
    assert (read.kind, read.times, read.data, read.narrow) == (kind, times, data, narrow)


@pytest.mark.parametrize("optimizer", over_widths.CARRIES)
def test_rates_are_carried_over_the_width_as_the_library_does(optimizer):
    """Where a rate stays the library keeps it; otherwise it goes by the change of the claim."""
    nets = [trained_net("residual mlp init", 2, width, "digits") for width in (16, 32)]
    data = training_data("digits", nets[0], samples=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        carried = mf.explain_transfer(0.1, *nets, optimizer=optimizer, data=data, draws=2)
    scale = over_widths.CARRIES[optimizer]
    assert (carried.rate == 0.1) is (scale is None)
    assert scale in (None, f"{carried.of}_scale")


@pytest.mark.parametrize("optimizer", RUNS)
def test_rates_that_are_carried_so_are_confirmed_and_those_of_the_outputs_are_not(smoke_runs, optimizer):
    scale = over_widths.CARRIES[optimizer]
    exact = _carried(smoke_runs[RUNS[optimizer]], scale)
    assert over_widths.judge_widths(exact).verdict is Verdict.CONFIRMED
    rival = _carried(smoke_runs[RUNS[optimizer]], over_widths.RIVAL)
    assert over_widths.judge_widths(rival).verdict is Verdict.REFUTED


def test_the_middle_between_both_is_not_decided(smoke_runs):
    run = smoke_runs[RUNS["sgd"]]
    outputs = over_widths.Widened.of(all_learned(run)).gone(over_widths.RIVAL)[0]
    halfway = {family: 0.5 * outputs.sel(family=family) for family in outputs["family"].values}
    middle = _gone(run, lambda family: halfway[family])
    finding = over_widths.judge_widths(middle)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert over_widths.judge_widths(_gone(run, lambda family: 0.4 * halfway[family])).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(("share", "of_rate"), [(0.25, 0.02), (0.25, 0.1), (0.5, 0.15)])
def test_errors_are_those_of_repeated_runs(smoke_runs, share, of_rate):
    """Of tuned rates: far from the middle between both, and so that they reach it, where they are not understated."""
    run, rng, repeats = smoke_runs[RUNS["sgd"]], np.random.default_rng(0), 400
    outputs = over_widths.Widened.of(all_learned(run)).gone(over_widths.RIVAL)[0]
    exact = _gone(run, lambda family: share * outputs.sel(family=family))
    exact = exact.assign(tuned_rate_log10_stderr=0 * exact["tuned_rate_log10"] + of_rate)
    found = []
    for _ in range(repeats):
        rates = exact["tuned_rate_log10"] + rng.normal(scale=of_rate, size=exact["tuned_rate_log10"].shape)
        widened = over_widths.Widened.of(exact.assign(tuned_rate_log10=rates))
        gone = widened.tuned[0]
        found.append(float((abs(gone) - abs(widened.gone(over_widths.RIVAL)[0] - gone)).mean()))
    stated, within = over_widths.judge_widths.decide(exact).claim.stderr.item(), 4 / np.sqrt(2 * repeats)
    assert stated > (1 - within) * np.std(found)
    if of_rate < 0.05:
        assert stated < (1 + within) * np.std(found)


def test_errors_of_both_scales_are_added(smoke_runs):
    """As they are of the same draws: never less than if they were independent, and at most twice the larger."""
    exact = _carried(smoke_runs[RUNS["adamw"]], over_widths.CARRIES["adamw"])
    off = _gone(smoke_runs[RUNS["adamw"]], lambda family: float(exact["depth"][0]))
    names = [over_widths.CARRIES["adamw"], over_widths.RIVAL]
    off = off.assign({f"{name}_stderr": 0.05 * np.log(10) * off[name] for name in names})
    nets = int(over_widths.Widened.of(off).learned.sum())
    stated = over_widths.judge_widths.decide(off).claim.stderr.item()
    assert stated == pytest.approx(2 * 0.05 * 2**0.5 / nets**0.5, rel=1e-3)


def test_other_optimizers_nets_and_widths_are_not_judged(smoke_runs):
    exact = _carried(smoke_runs[RUNS["sgd"]], None)
    with_momentum = over_widths.judge_widths(exact.assign_attrs(optimizer="sgd_momentum"))
    assert "under sgd_momentum stay, more closely" in with_momentum.claim
    muon = exact.assign_attrs(optimizer="muon-adamw")
    assert over_widths.findings(muon) == []
    assert over_widths.judge_widths(muon).evidence == "nothing is claimed of muon-adamw over the width"
    plain = exact.assign_coords(family=["mlp", "mlp x4", "cnn", "cnn x2", "residual mlp init", "residual mlp init x1"])
    assert over_widths.findings(plain) == []
    assert over_widths.Widened.of(plain).wide["family"].values.tolist() == ["mlp x4", "cnn x2"]


def test_nets_without_a_scale_count_nothing(smoke_runs):
    exact = _carried(smoke_runs[RUNS["sgd"]], None)
    scale = exact[over_widths.RIVAL].copy()
    scale.loc[{"family": "residual mlp multiplier x4", "depth": 8}] = np.nan
    finding = over_widths.judge_widths(exact.assign({over_widths.RIVAL: scale}))
    assert finding.evidence.startswith("of 5 nets")
    assert np.isfinite(over_widths.judge_widths.decide(exact.assign({over_widths.RIVAL: scale})).claim.stderr)


def test_nets_that_learn_at_one_width_alone_count_nothing(smoke_runs):
    exact = _carried(smoke_runs[RUNS["sgd"]], None)
    is_wide = xr.DataArray([family in WIDENED.values() for family in exact["family"].values], dims="family")
    idle = exact.assign(final_loss=exact["final_loss"].where(~is_wide, 2.0))
    finding = over_widths.judge_widths(idle)
    assert (finding.verdict, finding.evidence) == (Verdict.INCONCLUSIVE, "no net of two widths learns at both")
    assert over_widths.table_of(idle) == ""
    alone = exact.isel(family=~is_wide.values)
    assert over_widths.findings(alone) == []
    assert over_widths.table_of(alone) == ""


def test_a_table_shows_how_far_rates_and_scales_went(smoke_runs):
    exact = _gone(smoke_runs[RUNS["adamw"]], lambda family: log10(0.37))
    text = over_widths.table_of(exact).text()
    assert re.search(r"residual cnn init x2 on mnist 2 +0\.37 \+- 0\.00", text)
    shown = over_widths.judge_widths(exact).evidence
    assert "residual mlp multiplier x4, 0.37, 0.37" in shown


@pytest.mark.parametrize("optimizer", CHANNELS)
def test_starting_rates_of_wide_nets_are_held_to_the_factor_that_they_state(smoke_runs, optimizer):
    """Descent's are named by the step of the narrow nets, AdamW's by their own; the other way is refuted."""
    exact = _named(smoke_runs[CHANNELS[optimizer]])
    finding = over_widths.judge_wider(exact)
    assert finding.verdict is Verdict.CONFIRMED
    assert "residual cnn init x4 on mnist 1, 1" in finding.evidence
    stated = max(calibration_of_kind(kind, optimizer).factor for kind in named_rates.KINDS.values())
    off = _named(smoke_runs[CHANNELS[optimizer]], 1.25 * stated)
    assert over_widths.judge_wider(off).verdict is Verdict.REFUTED
    if optimizer == "sgd":
        narrow = over_widths.judge_wider(exact.assign_attrs(channels=4))
        assert (narrow.verdict, narrow.evidence) == (
            Verdict.INCONCLUSIVE,
            "the narrow nets have channels 4, and `mf.starting_rate` takes the step at 16",
        )
    alone = over_widths.judge_wider(exact.sel(family=["residual cnn init"]))
    assert (alone.verdict, alone.evidence) == (Verdict.INCONCLUSIVE, "no residual net of two widths was run")
    other = {"sgd": "adamw", "adamw": "sgd"}[optimizer]
    assert over_widths.judge_wider(exact.assign_attrs(optimizer=other)).verdict is Verdict.REFUTED


def _gone(run, how_far):
    """All nets learn, and tuned rates of wide ones are those of narrow ones, moved so far in log10."""
    dataset = all_learned(run)
    rates = dataset["tuned_rate_log10"].fillna(0.0)
    for wide in map(str, over_widths.Widened.of(dataset).wide["family"].values):
        narrow = rates.sel(family=tuned_rates.FamilyName.of(wide).narrow)
        rates.loc[{"family": wide}] = (narrow + how_far(wide)).values
    scales = [str(name) for name in dataset.data_vars if str(name).endswith("_scale") and f"{name}_stderr" in dataset]
    exact = {f"{name}_stderr": ERROR * dataset[name] for name in scales}
    exact |= {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": ERROR + 0 * rates}
    return scattered(dataset.assign(exact | {"located": 0 * dataset["located"] + 64}), 1.0)


def _carried(run, scale):
    """Tuned rates of wide nets are carried by this scale of one step."""
    gone = over_widths.Widened.of(all_learned(_gone(run, lambda family: 0.0))).gone(scale)[0]
    return _gone(run, lambda family: gone.sel(family=family))


def _carried_as_claimed(runs, of):
    return {run: _carried(runs[run], over_widths.CARRIES[optimizer]) for optimizer, run in of.items()}


def _named(run, off=1.0):
    """Nets learn, and wide ones are tuned at the rates that `mf.starting_rate` names, over this factor."""
    dataset = _gone(run, lambda family: 0.0).assign_attrs(channels=16, width=64)
    optimizer, rates = dataset.attrs["optimizer"], dataset["tuned_rate_log10"].copy()
    for wide in map(str, over_widths.Widened.of(dataset).wide["family"].values):
        named = tuned_rates.FamilyName.of(wide).narrow if over_widths.CARRIES[optimizer] is None else wide
        constant = calibration_of_kind(named_rates.KINDS[named_rates.kind_of(wide)], optimizer)
        scale = dataset[f"{constant.of}_scale"].sel(family=named).values
        rates.loc[{"family": wide}] = np.log10(scale / constant.ratio / off)
    return dataset.assign(tuned_rate_log10=rates)


def _named_as_claimed(runs):
    return {run: _named(runs[run]) for run in CHANNELS.values()}


CONTROLS = {
    "E1j": partial(_carried_as_claimed, of=RUNS),
    "E1k": partial(_carried_as_claimed, of=CHANNELS),
    "E2g": _named_as_claimed,
}
