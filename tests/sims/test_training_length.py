"""Tuned rates over steps and batches: exponents and verdicts on made-up rates, with what must be refuted."""

import numpy as np
import pytest
import xarray as xr

from meanfield.execution.training import step_scales
from meanfield.transfer.tuning import tuned_rate
from meanfield.verification.verdicts import Verdict
from sims import training_length as study
from sims.claims.catalogue import CLAIMS
from sims.common.training_data import training_data
from sims.training_length import STUDY as simulation
from sims.training_length import exponent, judge_adamw, judge_batch, judge_descent, of_schedule
from tests.sims import claim_controls

# Of a tuned rate on 12 seeds, in decades.
ERROR = 0.03


@pytest.fixture(scope="module")
def smoke_dataset(smoke_run):
    return smoke_run(study.NAME)


def sized(dataset, **powers):
    """The sizes of the preset that the rows rest on, all nets of which learn, with errors as a prototype had them."""
    sizes = simulation.presets["evidence"]
    places = {"family": sizes["families"], "steps": sizes["steps"], "batch_size": sizes["batch_sizes"]}
    first = dataset.isel(family=[0], steps=[0], batch_size=[0])
    for name, values in places.items():
        first = first.isel({name: np.zeros(len(values), dtype=int)}).assign_coords({name: values})
    made = of_length(first, **powers).assign_attrs(draws=sizes["draws"])
    errors = {
        "tuned_rate_log10_stderr": 0 * made["tuned_rate_log10"] + ERROR,
        "located": 0 * made["located"] + sizes["draws"],
    }
    return made.assign(errors | {"outputs_scale_stderr": 0.08 * made["outputs_scale"]})


def constant(dataset, optimizer="sgd"):
    return dataset.sel(optimizer=optimizer, schedule="constant")


@pytest.mark.parametrize("power", [0.0, -0.2, -0.5])
def test_exponents_are_those_that_rates_were_made_with(smoke_dataset, power):
    at = constant(sized(smoke_dataset, in_steps=power, in_batch=0.25, ratio=-0.5))
    assert exponent(at, "steps").law.exponent == pytest.approx(power)
    assert exponent(at, "batch_size").law.exponent == pytest.approx(0.25)
    assert exponent(at, "batch_size", study.OUTPUTS).law.exponent == pytest.approx(-0.5)
    assert exponent(at, "steps", study.OUTPUTS).law.exponent == pytest.approx(-power)
    assert exponent(at, "steps").nets == 27


def test_families_and_batches_have_constants_of_their_own(smoke_dataset):
    """Rates that differ between families and batches by any factor have the same exponent in steps."""
    at = constant(sized(smoke_dataset, in_steps=-0.2))
    factors = xr.DataArray(np.random.default_rng(0).normal(size=(3, 3)), dims=("family", "batch_size"))
    moved = at.assign(tuned_rate_log10=at["tuned_rate_log10"] + factors)
    assert exponent(moved, "steps").law.exponent == pytest.approx(-0.2)
    assert exponent(moved, "batch_size").law.exponent != pytest.approx(0.0, abs=1e-3)


def test_errors_are_those_of_rates_that_scatter_by_theirs(smoke_dataset):
    """The scatter of exponents over many made-up studies; medians of scales are shared by all numbers of steps."""
    at, rng, slopes = constant(sized(smoke_dataset)), np.random.default_rng(1), []
    of_median = at["outputs_scale_stderr"] / at["outputs_scale"]
    for _ in range(400):
        noise = ERROR * rng.standard_normal(at["tuned_rate_log10"].shape)
        scale = at["outputs_scale"] * np.exp(of_median * rng.standard_normal(at["outputs_scale"].shape))
        made = at.assign(tuned_rate_log10=at["tuned_rate_log10"] + noise, outputs_scale=scale)
        slopes.append(
            [
                exponent(made, along, of).law.exponent
                for along, of in (("steps", ""), ("batch_size", ""), ("batch_size", "outputs_scale"))
            ]
        )
    errors = [exponent(at, along, of).law.stderr for along, of in (("steps", ""), ("batch_size", study.OUTPUTS))]
    spread = np.std(slopes, axis=0, ddof=1)
    np.testing.assert_allclose(spread[[0, 2]], errors, rtol=0.12)
    assert spread[2] > 1.2 * spread[1]


def test_a_net_that_hardly_learns_counts_nothing(smoke_dataset):
    made = sized(smoke_dataset, in_steps=-0.2)
    short = made["steps"] == made["steps"][0]
    wild = made.assign(tuned_rate_log10=made["tuned_rate_log10"].where(~short, 7.0), learns=made["learns"] & ~short)
    found = exponent(constant(wild), "steps")
    assert found.law.exponent == pytest.approx(-0.2)
    assert found.nets == 18
    idle = made.assign(learns=made["learns"] & False)
    finding = judge_descent(idle)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.evidence == "no exponent: no net learns for two numbers of steps or more"
    assert not exponent(constant(idle), "batch_size", study.OUTPUTS).known


def test_who_learns_is_told_by_the_loss(smoke_dataset):
    """Below a third of chance, which is ln 10 of ten classes, at a tuned rate."""
    assert float(smoke_dataset["chance_loss"]) == pytest.approx(np.log(10))
    learned = (smoke_dataset["least_loss"] < np.log(10) / 3) & np.isfinite(smoke_dataset["tuned_rate_log10"])
    assert smoke_dataset["learns"].equals(learned.transpose(*smoke_dataset["learns"].dims))
    assert 0 < int(learned.sum()) < learned.size


@pytest.mark.parametrize(
    ("power", "descent", "adamw"),
    [
        (0.0, Verdict.CONFIRMED, Verdict.REFUTED),
        (-0.2, Verdict.REFUTED, Verdict.CONFIRMED),
        (-0.5, Verdict.REFUTED, Verdict.REFUTED),
    ],
)
def test_verdicts_on_exponents_in_steps_at_the_errors_of_a_prototype(smoke_dataset, power, descent, adamw):
    made = sized(smoke_dataset, in_steps=power)
    assert judge_descent(made).verdict is descent
    assert judge_adamw(made).verdict is adamw


def test_exponents_that_are_near_are_one_and_others_are_refuted(smoke_dataset):
    """At errors that do not count, so that the allowance alone decides."""
    for power, verdict in ((0.09, Verdict.CONFIRMED), (-0.09, Verdict.CONFIRMED), (-0.12, Verdict.REFUTED)):
        assert judge_descent(of_length(smoke_dataset, in_steps=power)).verdict is verdict
    for power, rival in ((-0.11, "0"), (-0.29, "-0.5")):
        finding = judge_adamw(of_length(smoke_dataset, in_steps=power))
        assert (finding.verdict, finding.rival) == (Verdict.CONFIRMED, f"exponent {rival}")
    for ratio, verdict in ((0.09, Verdict.CONFIRMED), (0.12, Verdict.REFUTED), (-0.5, Verdict.REFUTED)):
        assert judge_batch(of_length(smoke_dataset, in_steps=-0.5, in_batch=0.5, ratio=ratio)).verdict is verdict


def test_shuffled_steps_have_no_exponent(smoke_dataset):
    """Steps that were mixed up, family by family and batch by batch: what fell as T^(-1/2) falls no more."""
    made, rng = sized(smoke_dataset, in_steps=-0.5), np.random.default_rng(2)
    mixed = rng.permuted(made["tuned_rate_log10"].values, axis=made["tuned_rate_log10"].dims.index("steps"))
    shuffled = made.assign(tuned_rate_log10=(made["tuned_rate_log10"].dims, mixed))
    slopes = [exponent(constant(of, "adamw"), "steps").law.exponent for of in (made, shuffled)]
    assert slopes[0] == pytest.approx(-0.5)
    assert abs(slopes[1]) < 0.25
    assert judge_adamw(shuffled).verdict is not Verdict.CONFIRMED


def test_the_step_to_warmup_is_a_factor_of_nets_that_learn_under_both(smoke_dataset):
    made = sized(smoke_dataset)
    peak = xr.where(made["schedule"] == study.WARMUP, np.log10(1.7), 0.0)
    moved = made.assign(tuned_rate_log10=made["tuned_rate_log10"] + peak).sel(optimizer="sgd")
    log, error, nets = of_schedule(moved)
    assert (10**log, error, nets) == (pytest.approx(1.7), pytest.approx(ERROR * np.sqrt(2 / 27)), 27)
    one = (moved["schedule"] == study.CONSTANT) & (moved["steps"] == 128)
    assert of_schedule(moved.assign(learns=moved["learns"] & ~one))[2] == 18
    assert np.isnan(of_schedule(moved.assign(learns=moved["learns"] & False))[0])


def test_rates_and_scales_are_those_of_the_library(smoke_dataset):
    """One place of a run, by the functions that users call."""
    options = simulation.parse(["--preset", "smoke", "--seed", "0"])
    plan = simulation.checked(options)
    tuning = plan["tunings"][-1]
    place = {name: values[-1] for name, values in plan["axes"].items()}
    at, seeds = smoke_dataset.sel(place), list(tuning.each_seed)
    data = training_data("digits", tuning.net, samples=32, seed=0)
    how = {"optimizer": "adamw", "batch_size": 32, "precision": "float32"}
    tuned = tuned_rate(
        tuning.net, data, seeds=seeds, spacing=0.25, steps=64, schedule="warmup_cosine", guess=tuning.guess, **how
    )
    assert float(at["tuned_rate_log10"]) == float(tuned["tuned_rate_log10"])
    np.testing.assert_array_equal(at["seed_tuned_rate_log10"], tuned["seed_tuned_rate_log10"])
    scales = step_scales(tuning.net, data, draws=study.STEP_DRAWS, seed=0, **how)
    assert float(at["outputs_scale"]) == float(scales["output_learning_rate_scale_quantile"].sel(quantile=0.5))
    assert float(at["last_scale"]) == float(scales["last_learning_rate_scale_quantile"].sel(quantile=0.5))


def test_no_two_places_share_a_seed():
    tunings = simulation.checked(simulation.parse(["--preset", "evidence"]))["tunings"]
    seeds = [seed for tuning in tunings for seed in tuning.each_seed]
    assert len(seeds) == len(set(seeds)) == 12 * 3 * 2 * 3 * 3 * 3


def test_a_run_without_the_judged_optimizers_has_no_verdicts(smoke_dataset):
    assert study.findings(smoke_dataset.sel(schedule=[study.WARMUP])) == []
    assert len(study.findings(smoke_dataset.sel(optimizer=["adamw"]))) == 1
    alone = smoke_dataset.sel(schedule=[study.WARMUP], optimizer=["adamw"])
    assert "schedule table" not in simulation.document(alone).text()


def test_the_report_says_what_rates_must_be_told(smoke_dataset):
    """At the least and at the most of the other size, as one slope for all is a mean."""
    made = of_length(smoke_dataset, in_steps=-0.5, in_batch=0.5, ratio=0.25)
    words = " ".join(simulation.document(made).text().split())
    assert (
        "under sgd, four times the steps multiply the tuned rate by 0.5 with batches of 8 and by 0.5 with batches of "
        "32; four times the batch multiply it by 2 after 16 steps and by 2 after 64"
    ) in words
    steeper = made["tuned_rate_log10"].where(made["batch_size"] == 8, lambda rates: 2 * rates)
    words = " ".join(simulation.document(made.assign(tuned_rate_log10=steeper)).text().split())
    assert "by 0.5 with batches of 8 and by 0.25 with batches of 32" in words
    assert "Exponents in steps T of the tuned rate, at each B by itself" in words


def test_rows_rest_on_runs_of_hours():
    for name in ("E3a", "E3b", "E3c"):
        assert CLAIMS[name].preset == "evidence"
        assert CLAIMS[name].runs == [study.NAME]


# Worlds in which claims of this study get another verdict: their negative controls.


def of_length(dataset, in_steps=0.0, in_batch=0.0, ratio=0.0):
    """Nets of a long study, all of which learn, tuned at powers of steps and batch; the outputs' scale over it."""
    rates = in_steps * np.log10(dataset["steps"]) + in_batch * np.log10(dataset["batch_size"])
    rates = (rates + 0 * dataset["learns"]).transpose(*dataset["learns"].dims)
    scale = 10.0 ** ((in_batch + ratio) * np.log10(dataset["batch_size"])) + 0 * dataset["outputs_scale"]
    exact = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": 0 * rates + claim_controls.ERROR}
    exact |= {
        "outputs_scale": scale,
        "outputs_scale_stderr": claim_controls.ERROR * scale,
        "located": (rates.dims, rates.values * 0 + 64),
    }
    return dataset.assign(exact | {"learns": (rates.dims, np.ones(rates.shape, dtype=bool))})


def _of_length(**powers):
    return lambda runs: {"training_length": of_length(runs["training_length"], **powers)}


CONTROLS = {
    "E3a": _of_length(),
    "E3b": _of_length(in_steps=-0.2),
    "E3c": _of_length(in_batch=0.5),
}
