"""Tables of Zhang et al. 2026 at our sizes: verdicts on made-up rates, with what must be refuted, and what was run."""

import numpy as np
import pytest
import xarray as xr

from meanfield.verification import ALL_SLOPES, TABLE_1, TABLE_4, Verdict
from meanfield.verification.published import ADAM_SLOPES, GELU_SLOPE, KERNEL_SLOPES, PRE_NORM_SLOPE
from sims.common.training_data import FAMILIES
from sims.learning_rate_search import printed_tables as tables
from sims.learning_rate_search.__main__ import STUDY as simulation
from tests.sims.claim_controls import ERROR, families_of, many_draws, scattered, with_families

DEPTHS, DRAWS = [2, 4, 8, 16], 64
CHANCE = np.log(10)


def made_up(families, exponent=-1.5, *, step=-1.5, error=0.005, loss=0.1, optimizer="sgd"):
    """Rates of 64 seeds that go as a power of the depth, beside one step of another, with losses of a parabola."""
    axes = {"family": list(families), "depth": DEPTHS}
    log_depth = xr.DataArray(np.tile(np.log10(DEPTHS), (len(families), 1)), axes)
    rates = exponent * log_depth - 1
    tried = xr.DataArray(np.linspace(-5, 1, 61), dims="rate")
    draws = xr.DataArray(np.linspace(-1, 1, DRAWS), dims="draw")
    losses = loss + 0.05 * (tried - rates) ** 2 + 1e-4 * draws * (1 + tried)
    values = {
        "tuned_rate_log10": rates,
        "tuned_rate_log10_stderr": error + 0 * rates,
        "located": (rates.dims, np.full(rates.shape, DRAWS)),
        "absolute_scale": 10 ** (step * log_depth),
        "absolute_scale_stderr": 0.01 * 10 ** (step * log_depth),
        "final_loss": losses.transpose("family", "depth", "rate", "draw"),
        "chance_loss": ("family", np.full(len(families), CHANCE)),
    }
    dataset = xr.Dataset(values, axes | {"rate": 10**tried.values})
    return dataset.assign_attrs(optimizer=optimizer, draws=DRAWS)


@pytest.mark.parametrize(
    ("exponent", "step", "verdict"),
    [
        (-1.5, -1.5, Verdict.CONFIRMED),
        (-1.11, -1.0, Verdict.CONFIRMED),
        (-1.79, -2.4, Verdict.CONFIRMED),
        (-1.0, -1.0, Verdict.REFUTED),
        (-1.9, -1.5, Verdict.REFUTED),
        (0.0, -1.5, Verdict.REFUTED),
        (-3.0, -1.5, Verdict.REFUTED),
    ],
)
def test_exponents_outside_the_range_of_the_paper_are_refuted(exponent, step, verdict):
    for family in tables.PRINTED["sgd"]:
        assert tables.judge_exponent(made_up([family], exponent, step=step), family).verdict is verdict


def test_the_rival_is_one_step_where_it_says_something_else():
    """Or no change, or twice the paper's, whichever is nearest; one step beside the range is no rival."""
    cases = [(-1.4, -1.5, 0.0), (-1.7, -2.4, -2.4), (-0.2, -2.4, 0.0), (-1.0, -0.9, 0.0), (-1.0, -0.6, -0.6)]
    for exponent, step, rival in [*cases, (-1.6, -1.5, -3.0)]:
        decided = tables.judge_exponent.decide(made_up([tables.CNN], exponent, step=step), tables.CNN)
        assert decided.words["rival"] == pytest.approx(rival)


def test_rates_that_are_known_too_badly_decide_nothing():
    """Not in the range, nor beyond it, where an exponent twice as large is as near."""
    for exponent, error in ((-1.5, 0.3), (-2.3, 0.15)):
        badly = made_up([tables.CNN], exponent, error=error)
        assert tables.judge_exponent(badly, tables.CNN).verdict is Verdict.INCONCLUSIVE


def test_nets_that_hardly_learn_and_families_that_were_not_run_count_nothing():
    idle = made_up([tables.VIT], loss=0.9)
    other = made_up([tables.CNN])
    judges = [lambda dataset: tables.judge_exponent(dataset, tables.VIT), tables.judge_zero_shot, tables.judge_loss]
    for judge in judges:
        for dataset in (idle, other, made_up([tables.VIT]).isel(depth=[0])):
            finding = judge(dataset)
            assert finding.verdict is Verdict.INCONCLUSIVE
            assert finding.power.startswith("none: ")


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [
        (-1.5, Verdict.CONFIRMED),
        (-0.9, Verdict.CONFIRMED),
        (-0.75, Verdict.INCONCLUSIVE),
        (-0.6, Verdict.REFUTED),
        (0.0, Verdict.REFUTED),
    ],
)
def test_a_carried_rate_is_nearer_where_the_exponent_is_beyond_half_of_it(exponent, verdict):
    """The same of losses, whose parabola is the same at all depths."""
    dataset = made_up([tables.VIT], exponent)
    unchanged, by_law = tables.carried(dataset.sel(family=tables.VIT))
    logs = np.log10(np.array([2, 8, 16]) / 4)
    np.testing.assert_allclose(unchanged, -exponent * logs, atol=1e-12)
    np.testing.assert_allclose(by_law, (-exponent - 1.5) * logs, atol=1e-12)
    assert tables.judge_zero_shot(dataset).verdict is verdict
    assert tables.judge_loss(dataset).verdict is verdict


def test_losses_that_a_rate_saves_are_those_of_the_curve():
    """Of exponent -3/2 the carried rate costs nothing, and the unchanged one the parabola; chance is the most."""
    at = made_up([tables.VIT]).sel(family=tables.VIT)
    saved = tables._saved(at.sel(depth=8), -1 - 1.5 * np.log10(4), 0.0).mean(axis=0)
    np.testing.assert_allclose(saved, 0.05 * (1.5 * np.log10(2)) ** 2, atol=2e-3)
    dead = at.assign(final_loss=at["final_loss"].where(np.log10(at["rate"]) < -2.3, np.inf))
    lost = tables._saved(dead.sel(depth=8), -2.0, 0.0).mean()
    there = tables.losses_at([-2.0 - 1.5 * np.log10(2)], at["final_loss"].sel(depth=8), CHANCE).mean()
    assert lost == pytest.approx(CHANCE - there)


def test_errors_are_those_of_many_made_up_rates():
    """Of the middle of two rates, by 2,000 draws of the four tuned rates."""
    dataset = made_up([tables.VIT], -1.2, error=0.05)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        noise = rng.normal(scale=0.05, size=(1, len(DEPTHS)))
        unchanged, by_law = tables.carried((dataset["tuned_rate_log10"] + noise).to_dataset().isel(family=0))
        drawn.append(float((np.sign(unchanged - by_law) * (unchanged + by_law)).mean() / 2))
    decided = tables.judge_zero_shot.decide(dataset)
    np.testing.assert_allclose(decided.claim.stderr, np.std(drawn), rtol=0.1)
    np.testing.assert_allclose(decided.rival.difference, np.mean(drawn), rtol=0.05)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_errors_of_carried_rates_fall_with_nets_as_far_as_those_scatter(share):
    dataset = made_up([tables.VIT], -0.75, error=0.05)
    decided = tables.judge_zero_shot.decide(scattered(dataset, share))
    assert decided.fixed == pytest.approx(1 - share)


def test_printed_exponents_lie_in_the_range_that_the_paper_names():
    """All of tables 1, 3 and 4 and of figure 7; our families are there, and the runs can be asked for."""
    printed = [slope for families in tables.PRINTED.values() for slopes in families.values() for slope in slopes]
    assert {GELU_SLOPE, PRE_NORM_SLOPE, *KERNEL_SLOPES.values(), *ADAM_SLOPES.values()} <= set(printed)
    assert set(sum((*TABLE_1.values(), *TABLE_4.values()), ())) <= set(printed)
    assert ALL_SLOPES[0] <= min(printed)
    assert max(printed) <= ALL_SLOPES[1]
    names = {family for families in tables.PRINTED.values() for family in families}
    assert {family.removesuffix(" on mnist") for family in names} <= set(FAMILIES)


def test_rows_rest_on_runs_of_families_that_they_are_about():
    for claim in tables.CLAIMS:
        assert claim.preset == "evidence"
        for check in claim.checks:
            options = simulation.parse([*check.arguments, "--preset", "evidence"])
            named = getattr(check.judge, "keywords", {"family": tables.VIT})
            assert named["family"] in options.families
            assert named["family"] in tables.PRINTED[options.optimizer]


def test_a_report_judges_the_families_that_its_run_has():
    """Under AdamW those of table 3; rates are carried under descent alone, as in table 5."""
    two = [tables.CNN, tables.VIT]
    assert len(tables.findings(made_up(two))) == 4
    assert len(tables.findings(made_up(two, optimizer="adamw"))) == 1
    assert tables.findings(made_up(two, optimizer="lion")) == []
    assert tables.findings(made_up(["mlp"])) == []


# Worlds in which claims of this study get another verdict: their negative controls.


def of_exponent(dataset, exponent):
    """All families learn, and their tuned rates go as this power of the depth, where one step says -3/2.

    They lie in the middle of the rates that were tried.
    """
    dataset, spread = many_draws(dataset)
    tried, power = np.log10(dataset["rate"]), np.log10(dataset["depth"]) + 0 * dataset["absolute_scale"]
    rates = exponent * (power - power.mean()) + tried.mean()
    exact = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": ERROR + 0 * rates, "located": 64 + 0 * rates}
    exact |= {"absolute_scale": 10 ** (-1.5 * power), "absolute_scale_stderr": ERROR * 10 ** (-1.5 * power)}
    losses = 0.1 + 0.1 * (tried - rates) ** 2 + spread
    return dataset.assign(exact | {"final_loss": losses.transpose(*dataset["final_loss"].dims)})


def _of_exponent(claim):
    """Every table is right."""
    return lambda runs: {
        name: of_exponent(with_families(runs[name], families), -1.5) for name, families in families_of(claim).items()
    }


CONTROLS = {claim.id: _of_exponent(claim.id) for claim in tables.CLAIMS}
