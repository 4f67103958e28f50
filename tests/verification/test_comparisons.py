"""How many numbers share the false-alarm budget of a verdict, and by how many draws or seeds its errors are known."""

import numpy as np
import pytest

from meanfield.verification.verdicts import Bands
from sims import cnn_finite_channels as finite_channels
from sims import (
    coordinate_check,
    overlap_recursion,
    spectral_condition,
    training_assumptions,
    transformer_coordinate_check,
)
from sims.learning_rate_search import claims as learning_rate_search
from sims.learning_rate_transfer import claims as carried_rates
from tests.sims.claim_controls import SCALE, all_learned, with_families


def test_every_slope_is_one_comparison(smoke_runs):
    """Those of all optimizers or groups where one report judges them; of Transformers those of the check itself."""
    flat = transformer_coordinate_check.judge_flat.decide(smoke_runs["transformer_coordinate_check"], "layer", "many")
    assert flat.comparisons == flat.claim.difference.size == 2
    grown = transformer_coordinate_check.judge_growth.decide(smoke_runs["transformer_coordinate_check"], "layer")
    assert grown.comparisons == 2 * grown.claim.difference.size == 4
    assumed = training_assumptions.judge_assumption.decide(smoke_runs["training_assumptions-times-3"], "G.2")
    assert assumed.comparisons == assumed.claim.difference.size > 1
    run = smoke_runs["coordinate_check-tables-many-optimizers-muon-muon_kimi-soap-lion-sophia"]
    checked = coordinate_check.judge_flat.decide(run, "muon", "many")
    assert checked.comparisons == 5 * checked.claim.difference.size
    run = smoke_runs["spectral_condition-optimizers-sgd-times-6"]
    made = spectral_condition.judge_group.decide(run, "C1")
    everywhere = sum(len(ladders) for _, ladders in spectral_condition.groups(run).values())
    assert made.comparisons == everywhere > made.claim.difference.size
    run = smoke_runs["coordinate_check-tables-many-optimizers-sgd-adamw-lion-sophia-times-2"]
    ranked = coordinate_check.judge_ranks.decide(run)
    assert ranked.comparisons == ranked.claim.difference.size > 2


def test_variances_of_a_layer_rest_on_draws_of_their_own(smoke_run):
    dataset = smoke_run("overlap_recursion")
    made = overlap_recursion.judge_added_variance.decide(dataset)
    assert made.effective == made.draws == dataset.attrs["draws_given"]


def _located(dataset, family, seeds):
    """Tuned rates of a family whose errors are those of the first depth, known by so many seeds."""
    numbers = {"tuned_rate_log10": [0.0, -0.3], "tuned_rate_log10_stderr": [0.1, 1e-9], "located": seeds}
    changed = {name: dataset[name].astype(float).copy() for name in numbers}
    for name, values in numbers.items():
        changed[name].loc[{"family": family}] = values
    return dataset.assign(changed)


def test_a_difference_of_slopes_is_as_sure_as_the_norm_with_fewer_seeds(smoke_run):
    pre, post = learning_rate_search.NORMS
    dataset = with_families(smoke_run("learning_rate_search"), [pre, post])
    dataset = _located(_located(dataset, pre, 4), post, 40)
    assert learning_rate_search.judge_placement.decide(dataset).effective == pytest.approx(4)


def test_bands_of_ratios_know_how_few_curvatures_were_drawn(smoke_run):
    """Where all of the error is that of the stable rate, of sixteen nets."""
    dataset = smoke_run("learning_rate_search")
    one = 0 * dataset["one_step_scale"] + 1.0
    tuned = {"tuned_rate_log10": 0 * one, "tuned_rate_log10_stderr": 1e-12 * one, "located": 4 * one}
    dataset = dataset.assign(tuned | {"stable_rate": one, "stable_rate_stderr": 0.1 * one})
    known = np.isfinite(one).values
    (alarm,) = {round(band.alarm, 6) for band in learning_rate_search._ratio_bands(dataset, known)}
    judges = learning_rate_search.JUDGES
    expected = Bands.of(len(judges) * known.sum(), 16, gaussian=True, budget=judges.budget)
    assert alarm == pytest.approx(expected.alarm, rel=1e-6)


def test_an_error_that_four_seeds_tell_has_three_degrees_of_freedom(smoke_run):
    dataset = all_learned(_located(smoke_run("learning_rate_search"), "mlp", 4))
    assert learning_rate_search.judge_one_step.decide(dataset, "mlp").effective == pytest.approx(4)


def test_carried_rates_are_as_sure_as_what_was_tuned_on_the_first_net(smoke_run):
    """An error of the first net alone moves the losses of all of them."""
    dataset = smoke_run("learning_rate_transfer")
    errors = 0.1 * (dataset["size"] == dataset["size"][0]) + 0 * dataset["tuned_rate_log10_stderr"]
    dataset = dataset.assign(tuned_rate_log10_stderr=errors)
    moved = carried_rates._moved(dataset, "finite_depth", carried_rates.FIRST_TUNED)
    np.testing.assert_allclose(moved, 0.1 * dataset["loss_slope"].sel(rule="finite_depth"))


def test_errors_of_means_of_one_sign_add_up(smoke_run):
    """The first and the last of three layers, between which a slowing is told, are of the same draws."""
    dataset, name = smoke_run("overlap_recursion"), "squared_overlap"
    last = int(dataset["layer"][-1])
    first, middle = max(last // 4, 2), max(last // 2, 3)
    errors = (0.01 * dataset[name]).where(dataset["layer"].isin([first, last]), 0.0)
    made = overlap_recursion.judge_uniform_bound.decide(dataset.assign({f"{name}_stderr": errors}))
    share = (1 / middle - 1 / last) / (1 / first - 1 / middle)
    assert made.claim.stderr == pytest.approx(0.01 * (share + 1))


def test_the_mean_slope_of_independent_stencils_has_the_error_of_a_mean(smoke_run):
    dataset = smoke_run("cnn_finite_channels")
    dataset = dataset.assign({f"{SCALE}_stderr": 0.01 * dataset[SCALE]})
    stderr = finite_channels.judge_slopes.decide(dataset).claim.stderr
    assert stderr[-1] == pytest.approx(stderr[0] / dataset.sizes["stencil"] ** 0.5)
