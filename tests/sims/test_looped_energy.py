"""The command on residual energies of loops: verdicts, controls, figure, report, refusals."""

import numpy as np
import pytest

from meanfield.verification.verdicts import Verdict
from sims import looped_energy
from tests.sims.claim_controls import put

# By what the cross term is followed along.
CROSS = {
    "cross_width": looped_energy.judge_cross_in_width,
    "cross_loops": looped_energy.judge_cross_in_loops,
    "cross_eps_loops": looped_energy.judge_cross_in_eps,
}


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("looped_energy")


def test_verdicts(finished):
    assert looped_energy.judge_mean_field(finished).verdict is Verdict.CONFIRMED
    assert looped_energy.judge_printed_growth(finished).verdict is Verdict.REFUTED
    assert looped_energy.judge_correlations(finished).verdict is Verdict.CONFIRMED
    for judge in (looped_energy.judge_cross_term, *CROSS.values()):
        assert judge(finished).verdict is Verdict.CONFIRMED
    assert len(looped_energy.JUDGES.findings(finished)) == len(looped_energy.JUDGES)


def test_a_small_power_of_the_loops_is_not_bounded(finished):
    """Negative controls: energies that grow as L^0.15 in draws, and as L^0.001 in theory, at alpha = 1."""
    assert looped_energy.judge_tied_bounded(finished).verdict is Verdict.CONFIRMED
    grown = finished["log_energy"] + 0.15 * np.log(finished["loops"])
    assert looped_energy.judge_tied_bounded(finished.assign(log_energy=grown)).verdict is not Verdict.CONFIRMED
    assert looped_energy.judge_threshold(finished).verdict is Verdict.CONFIRMED
    name = "log_energy_by_alpha"
    creeping = finished[name].where(finished["alpha"] != 1.0, 0.001 * np.log(finished["far_loops"]))
    assert looped_energy.judge_threshold(finished.assign({name: creeping})).verdict is Verdict.INCONCLUSIVE
    assert looped_energy.judge_expansion(finished).verdict is Verdict.CONFIRMED
    off = np.log1p(np.expm1(finished[name]) * finished["far_loops"] ** -0.1)
    assert looped_energy.judge_expansion(finished.assign({name: off})).verdict is not Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("power", "verdict"), [(-0.5, Verdict.CONFIRMED), (0.05, Verdict.INCONCLUSIVE), (0.1, Verdict.REFUTED)]
)
def test_energies_that_creep_at_the_threshold_do_not_converge(power, verdict):
    """Made up: ln H goes as L^0.2 below alpha = 1/2, and as this power of L at it."""
    steps = np.array(looped_energy.STACK_STEPS)
    energy = steps ** np.array([[0.2], [power]])
    assert looped_energy.threshold_ruling(np.array([0.4, 0.5]), energy, 0.5, 4096).verdict is verdict


def test_stacks_are_followed_closely_on_both_sides_of_their_threshold(finished):
    evidence = looped_energy.judge_independent_threshold(finished).evidence
    assert all(f"(alpha = {alpha})" in evidence for alpha in (0.45, 0.5, 0.55))


def test_tied_loops_treated_as_independent_are_refuted(finished):
    """Negative control: the prediction of stacks in place of that of loops."""
    name = "log_energy_mean_field"
    deep = finished[name].sel(model=["deep", "deep"]).assign_coords(model=finished["model"])
    assert looped_energy.judge_mean_field(finished.assign({name: deep})).verdict is Verdict.REFUTED


def test_an_exponent_off_by_a_twentieth_is_told_apart(finished):
    """Negative control: predictions at alpha + 0.05, that is of C_L lower by a factor of L^-0.1, at the most loops."""
    name = "log_energy_mean_field"
    shifted = finished[name].copy()
    for scaling in ("sqrt", "linear"):
        correlation = np.expm1(finished[name].sel(scaling=scaling)) * finished["loops"] ** -0.1
        shifted.loc[{"scaling": scaling}] = np.log1p(correlation).transpose("model", "loops")
    assert looped_energy.judge_mean_field(finished.assign({name: shifted})).verdict is not Verdict.CONFIRMED


def test_growth_as_printed_is_not_refuted(finished):
    """Negative control: correlation terms that do grow as L."""
    drawn = finished["correlation_term"].copy()
    printed = drawn.sel(model="looped", scaling="sqrt")[0] * finished["loops"] / finished["loops"][0]
    factor = printed / drawn.sel(model="looped", scaling="sqrt")
    drawn.loc[{"model": "looped", "scaling": "sqrt"}] = printed.values
    stderr = finished["correlation_term_stderr"].copy()
    stderr.loc[{"model": "looped", "scaling": "sqrt"}] *= factor.values
    finding = looped_energy.judge_printed_growth(
        finished.assign(correlation_term=drawn, correlation_term_stderr=stderr)
    )
    assert finding.verdict is Verdict.CONFIRMED


def test_correlated_stacks_are_seen(finished):
    """Negative control: models exchanged."""
    swapped = finished.sel(model=["deep", "looped"]).assign_coords(model=finished["model"])
    assert looped_energy.judge_correlations(swapped).verdict is not Verdict.CONFIRMED


@pytest.mark.parametrize("along", CROSS)
@pytest.mark.parametrize("power", [0.5, 0.25])
def test_a_cross_term_beyond_its_bound_is_seen(finished, along, power):
    """Negative controls: spreads that go as the rival says, and as half of it."""
    sizes = finished[along].astype(float)
    power = 1 - power if along == "cross_eps_loops" else power
    share = finished[f"{along}_spread_stderr"] / finished[f"{along}_spread"]
    made = finished.assign({f"{along}_spread": sizes**power, f"{along}_spread_stderr": share * sizes**power})
    assert CROSS[along](made).verdict is Verdict.REFUTED


# Worlds in which claims of this study get another verdict: their negative controls.


def tied_growth_as_printed(runs):
    dataset = runs["looped_energy"]
    place = {"model": "looped", "scaling": "sqrt"}
    return {"looped_energy": put(dataset, "correlation_term", dataset["loops"].astype(float), **place)}


def stacks_grow_as_loops(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": put(dataset, "log_energy", dataset["log_energy"].sel(model="looped"), model="deep")}


def models_exchanged(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": dataset.sel(model=["deep", "looped"]).assign_coords(model=dataset["model"])}


def cross_term_grows(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": put(dataset, "cross_width_spread", np.sqrt(dataset["cross_width"]))}


def energies_creep(runs):
    """At alpha = 1, a power of the loops so small that no draw would show it."""
    dataset, name = runs["looped_energy"], "log_energy_by_alpha"
    creeping = 0.01 * np.log(dataset["far_loops"])
    return {"looped_energy": dataset.assign({name: dataset[name].where(dataset["alpha"] != 1.0, creeping)})}


CONTROLS = {
    "L1a": energies_creep,
    "L1b": tied_growth_as_printed,
    "L2": stacks_grow_as_loops,
    "L3": models_exchanged,
    "L4": cross_term_grows,
}
