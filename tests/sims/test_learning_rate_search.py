"""The command that searches for tuned rates: its numbers, its verdicts on made-up rates, report, figure, refusals."""

import json

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from figures import learning_rate_search as figure
from meanfield.common import derived_seed
from meanfield.nets.maps import BatchNormalisation, Dropout
from meanfield.theory import scales_at
from meanfield.verification import Finding, tuned_rates
from meanfield.verification.verdicts import Verdict
from sims.claims.catalogue import CLAIMS
from sims.common.training_data import trained_net, training_data
from sims.learning_rate_scale.claims import finite_depth_slope
from sims.learning_rate_search import __main__ as study
from sims.learning_rate_search import claims, conclusions, first_steps, named_rates, printed_tables
from sims.learning_rate_search.__main__ import STUDY as simulation
from tests.sims.claim_controls import ERROR, all_learned, families_of, with_families
from tests.sims.commands import finished_run

FAMILIES = ["mlp", "cnn", "loop linear", "transformer post"]
# Under whose names made-up rates are judged, in the order of the families above.
JUDGED = ["mlp", "cnn on mnist", "residual mlp init", "transformer post on mnist"]
SMALL = ["--depths", "2", "4", "--channels", "4", "--width", "16", "--draws", "2", "--samples", "64", "--workers", "1"]
SMALL += ["--epochs", "1", "--spacing", "0.125"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    pytest.importorskip("sklearn")
    path = tmp_path_factory.mktemp("search") / "run.nc"
    return finished_run(simulation, [*SMALL, "--families", *FAMILIES], path)


@pytest.fixture
def made_up(finished):
    """Five depths, 64 seeds of nets that learn, and rates that follow one step but for errors of 0.005 decades."""
    scale = finished["one_step_scale"].interp(depth=[2, 2.5, 3, 3.5, 4], method="linear")
    noise = np.random.default_rng(0).normal(scale=0.005, size=scale.shape)
    rates = np.log10(scale) + noise
    changed = {"one_step_scale": scale, "tuned_rate_log10": rates, "tuned_rate_log10_stderr": 0 * rates + 0.005}
    changed |= {"stable_rate": 10**rates, "stable_rate_stderr": 0.005 * 10**rates, "located": 0 * rates + 64}
    changed |= {"absolute_scale": scale, "absolute_scale_stderr": 0.001 * scale, "absolute_mean_scale": scale}
    changed |= {"final_loss": (0.1 + 0 * rates).expand_dims(rate=[1.0], draw=64)}
    kept = finished[["printed_slope", "chance_loss"]].assign(changed).assign_coords(family=JUDGED)
    return kept.assign_attrs(finished.attrs | {"draws": 64})


def test_losses_are_those_of_training(finished):
    at = finished.sel(family="mlp", depth=4)
    rates = at["rate"].values[at["final_loss"].notnull().all("draw").values]
    net = trained_net("mlp", 4, 16, "digits")
    data = training_data("digits", net, samples=64)
    first = int(np.argmin(at["final_loss"].sel(rate=rates).values[:, 0]))
    assert 0 < first < len(rates) - 1
    how = {"epochs": 1, "batch_size": 16, "precision": "float32", "spacing": 0.125}
    tuned = mf.tuned_rate(net, data, seeds=seeds_of("mlp", 4), **how)
    np.testing.assert_array_equal(tuned["final_loss"], at["final_loss"].sel(rate=tuned["rate"].values))
    np.testing.assert_allclose(tuned["tuned_rate_log10"], at["tuned_rate_log10"])
    np.testing.assert_allclose(tuned["stable_rate_quantile"].sel(quantile=0.5), at["stable_rate"])


def test_a_range_test_is_that_of_the_library(finished):
    net = trained_net("mlp", 4, 16, "digits")
    data = training_data("digits", net, samples=64)
    how = {"batch_size": 16, "precision": "float32"}
    tested = mf.range_test(net, data, seeds=seeds_of("range test mlp", 4, 8), **how)
    at = finished.sel(family="mlp", depth=4)
    for name in named_rates.SUGGESTIONS:
        np.testing.assert_array_equal(tested[f"seed_{name}_rate"], at[f"seed_{name}_rate"])
        log_rate, error = named_rates.suggestion(at, name)
        assert 10 ** float(log_rate) == pytest.approx(float(tested[f"{name}_rate"]))
        assert float(error) > 0


def seeds_of(family, depth, count=2):
    first = derived_seed(0, f"{family} {depth}") % 2**62
    return range(first, first + count)


def test_one_step_scales_are_those_of_each_net(finished):
    """A Transformer of depth 4 has two blocks."""
    scale = finished["one_step_scale"]
    predicted = mf.predict(trained_net("mlp", 4, 16, "digits"), level="mean_field")["label_learning_rate_scale"]
    np.testing.assert_allclose(scale.sel(family="mlp", depth=4), predicted)
    blocks = scales_at(trained_net("transformer post", 1, 4, "digits"), [1, 2])
    np.testing.assert_allclose(scale.sel(family="transformer post"), blocks)


def test_rates_that_follow_the_law_are_told_from_those_that_do_not(made_up):
    """Shuffled labels of depth give slope 0, and rates without a slope refute the law wherever it has one."""
    for family in JUDGED:
        assert claims.judge_one_step(made_up, family).verdict is Verdict.CONFIRMED
    idle = made_up.assign(final_loss=2 + made_up["final_loss"])
    verdicts = [claims.judge_one_step(idle, family).verdict for family in JUDGED]
    assert verdicts == [Verdict.INCONCLUSIVE] * len(JUDGED)
    assert claims.judge_stable_rate(idle).verdict is Verdict.INCONCLUSIVE
    order = np.random.default_rng(1)
    slopes = []
    for _ in range(200):
        names = ("tuned_rate_log10", "tuned_rate_log10_stderr", "located")
        place = order.permutation(made_up.sizes["depth"])
        shuffled = made_up.assign({name: (made_up[name].dims, made_up[name].values[:, place]) for name in names})
        slopes.append(tuned_rates.tuned_slope(tuned_rates.family_at(shuffled, "mlp")).exponent)
    assert abs(np.mean(slopes)) < 4 * np.std(slopes) / np.sqrt(200)
    assert claims.judge_stable_rate(made_up).verdict is Verdict.CONFIRMED
    off = made_up.assign(stable_rate=made_up["stable_rate"] * 6)
    assert claims.judge_stable_rate(off).verdict is Verdict.REFUTED
    flat = made_up.assign(tuned_rate_log10=0 * made_up["tuned_rate_log10"])
    assert claims.judge_one_step(flat, "mlp").verdict is Verdict.REFUTED
    level = flat.assign(absolute_scale=1 + 0 * flat["absolute_scale"])
    assert claims.judge_one_step(level, "residual mlp init").verdict is Verdict.CONFIRMED


def test_only_gradient_descent_is_held_to_the_curvature(made_up):
    by_lion = claims.findings(made_up.assign_attrs(optimizer="lion"))
    assert len(by_lion) == len(claims.findings(made_up.assign_attrs(optimizer="sgd"))) - 1
    assert not any("lambda_max" in finding.claim for finding in by_lion)
    ratio = np.array([0.009, 0.019])
    assert "says nothing of lion" in conclusions.with_nothing_tuned(["mlp"], "lion", "stable_rate", ratio)
    assert "0.009 to 0.019 times" in conclusions.with_nothing_tuned(["mlp"], "sgd", "stable_rate", ratio)


def test_slopes_and_errors_are_those_of_least_squares(made_up):
    """Errors by 2,000 draws of the rates; degrees of freedom between those of one depth and of all."""
    at = tuned_rates.family_at(made_up, "cnn on mnist")
    law = tuned_rates.tuned_slope(at)
    logs = np.log10(at["depth"].values)
    np.testing.assert_allclose(law.exponent, np.polyfit(logs, at["tuned_rate_log10"].values, 1)[0])
    rng = np.random.default_rng(2)
    drawn = [np.polyfit(logs, rng.normal(scale=0.005, size=len(logs)), 1)[0] for _ in range(2000)]
    np.testing.assert_allclose(law.stderr, np.std(drawn), rtol=0.1)
    assert 63 <= tuned_rates.freedom(at) <= 63 * len(logs)
    # The papers' weights are the same where all errors are.
    np.testing.assert_allclose(claims.weighted_slope(at).exponent, law.exponent)


def test_the_law_of_plain_nets(made_up):
    """As the recursion has it; rates that follow it are no -3/2."""
    depths = np.array([2, 4, 8, 16, 32])
    law = ((depths + 1) * (depths**2 + depths + 1.0)) ** -0.5
    rates = made_up.isel(family=[0]).assign_coords(depth=depths)
    assert np.isclose(claims.law_slope(rates), finite_depth_slope(depths))
    followed = rates.assign(tuned_rate_log10=(("family", "depth"), np.log10(law)[None]))
    assert claims.judge_finite_depth(followed, "mlp").verdict is Verdict.CONFIRMED
    steeper = followed.assign(tuned_rate_log10=(("family", "depth"), -1.5 * np.log10(depths)[None]))
    assert claims.judge_finite_depth(steeper, "mlp").verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("apart", "verdict"),
    [(0.0, Verdict.CONFIRMED), (0.13, Verdict.CONFIRMED), (-0.17, Verdict.REFUTED), (0.149, Verdict.INCONCLUSIVE)],
)
def test_norms_have_one_slope_within_a_tenth(made_up, apart, verdict):
    """Post-norm rates that fall as L^(-3/2), to 0.0001 decades."""
    slopes = xr.DataArray([-1.5 + apart, -1.5], {"family": list(claims.NORMS)}, "family")
    rates = slopes * np.log10(made_up["depth"])
    located = 64 + 0 * rates
    made = xr.Dataset({"tuned_rate_log10": rates, "tuned_rate_log10_stderr": 1e-4 + 0 * rates, "located": located})
    assert claims.judge_placement(made).verdict is verdict
    assert claims.judge_placement(made.isel(depth=[0])).verdict is Verdict.INCONCLUSIVE


def test_depths_without_a_minimum_are_left_out(made_up):
    lost = made_up["tuned_rate_log10_stderr"].copy()
    lost.loc[{"family": "mlp", "depth": 3}] = np.nan
    partly = made_up.assign(tuned_rate_log10_stderr=lost)
    assert tuned_rates.family_at(partly, "mlp").sizes["depth"] == 4
    none = made_up.assign(tuned_rate_log10_stderr=np.nan * lost, tuned_rate_log10=np.nan * lost)
    assert np.isnan(tuned_rates.tuned_slope(tuned_rates.family_at(none, "mlp")).exponent)
    assert claims.judge_one_step(none, "mlp").verdict is Verdict.INCONCLUSIVE


def test_stable_rates_are_confirmed_of_all_nets_or_of_none(made_up):
    """Not where a net has no minimum, nor where the error is that of stable rates, of which few nets are drawn."""
    lost = made_up["tuned_rate_log10"].where((made_up["family"] != "cnn on mnist") | (made_up["depth"] != 3))
    finding = claims.judge_stable_rate(made_up.assign(tuned_rate_log10=lost))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "1 of 20 nets that learn have no minimum" in finding.evidence
    errors = {"tuned_rate_log10_stderr": 0.001, "stable_rate_stderr": 0.15}
    swapped = made_up.assign({name: 0 * made_up["stable_rate"] + error for name, error in errors.items()})
    few = swapped.assign(stable_rate=10 ** made_up["tuned_rate_log10"])
    assert claims.judge_stable_rate(few).verdict is Verdict.INCONCLUSIVE
    many = few.assign(stable_rate_stderr=1e-4 * few["stable_rate"])
    assert claims.judge_stable_rate(many).verdict is Verdict.CONFIRMED


def test_the_band_counts_the_nets_that_are_drawn_for_stable_rates(made_up):
    (tuning, *_) = simulation.checked(simulation.parse([*SMALL, "--families", "mlp", "--curvature-draws", "7"]))[
        "tunings"
    ]
    assert tuning.curvature().draws == 7
    errors = {"tuned_rate_log10_stderr": 0.001, "stable_rate_stderr": 0.15}
    unsure = made_up.assign({name: 0 * made_up["stable_rate"] + error for name, error in errors.items()})
    few, many = (claims.judge_stable_rate(unsure.assign_attrs(curvature_draws=nets)).evidence for nets in (4, 400))
    assert float(few.split("where ")[1].split()[0]) > 2 * float(many.split("where ")[1].split()[0])
    assert tuning.curvature().measure.precision == tuning.training["precision"] == "float32"


def test_a_run_without_a_minimum_is_reported(finished):
    none = {name: np.nan * finished[name] for name in ("tuned_rate_log10", "tuned_rate_log10_stderr")}
    blind = finished.assign(none | {"seed_tuned_rate_log10": np.nan * finished["seed_tuned_rate_log10"]})
    assert claims.judge_stable_rate(blind).verdict is Verdict.INCONCLUSIVE
    printed = simulation.document(blind).text()
    assert "no slope was met in mlp, cnn, loop linear, transformer post" in " ".join(printed.split())
    assert "nan" not in printed
    figure.draw(blind)


def test_a_net_whose_seeds_have_one_minimum_leaves_the_report_whole(finished):
    """All seeds at one rate of the search: without an error, as in old datasets, the weighted fit alone is missing."""
    seeds, errors = (finished[f"seed_tuned_rate_log10{end}"].copy() for end in ("", "_stderr"))
    place = {"family": "loop linear", "depth": 2}
    seeds.loc[place], errors.loc[place] = -0.5, 0.25
    none = finished["tuned_rate_log10_stderr"].copy()
    none.loc[place] = 0.0
    changed = {"seed_tuned_rate_log10": seeds, "seed_tuned_rate_log10_stderr": errors, "tuned_rate_log10_stderr": none}
    equal = finished.assign(changed)
    assert np.isnan(claims.weighted_slope(tuned_rates.family_at(equal, "loop linear")).exponent)
    printed = simulation.document(equal).text()
    assert "cannot be made" not in printed
    assert "no verdict" not in printed
    assert all(f"{family} 2" in printed for family in FAMILIES)
    assert "have a minimum without a parabola" in " ".join(printed.split())
    spread = conclusions.spreads(equal.sel(place).expand_dims("family"))
    np.testing.assert_allclose(spread, 0.25)
    figure.draw(equal)


def test_a_net_that_no_rate_trains_has_its_reason_in_the_report(finished):
    dead = finished.assign_attrs(without_minimum='{"mlp 4": "the units of the nets have died"}')
    assert "mlp 4: the units of the nets have died" in simulation.document(dead).text()
    assert json.loads(finished.attrs["without_minimum"]) == {}


def test_a_rate_at_which_a_seed_diverged_is_not_the_best_on_average(finished):
    losses = finished["final_loss"].copy()
    place = {"family": "mlp", "depth": 4}
    every = np.isfinite(losses.sel(place).values).all(axis=1)
    assert f"  {losses.sel(place).values[every].mean(axis=1).min():.4g}  " in study.RATE_TABLE(finished).text()
    alone = int(np.flatnonzero(every)[-1])
    losses[{"family": 0, "depth": 1, "rate": alone}] = [0.0123, np.inf]
    assert "0.0123" not in study.RATE_TABLE(finished.assign(final_loss=losses)).text()


def test_seeds_that_a_precision_takes(finished):
    """Standard deviations of 0.02, 0.1, 0.3 decades, and less, take 1, 25, 225 seeds; a lone minimum says nothing."""
    seeds = np.sqrt([2, 0])[None] * np.array([0.0199, 0.0999, 0.2999])[:, None]
    seeds = np.vstack([seeds, [np.nan, 1.0]])
    errors = {"seed_tuned_rate_log10_stderr": (("net", "draw"), 0 * seeds)}
    wide = finished[[]].assign(errors | {"seed_tuned_rate_log10": (("net", "draw"), seeds)})
    assert "takes 25 seeds in the median net, and 225 where" in conclusions.seeds_needed(wide)


def test_nets_that_left_one_step_are_tuned_at_two_depths():
    at_one = "tune at one depth"
    assert conclusions.to_do(["mlp", "residual cnn init"], "sgd").startswith(f"{at_one}, and carry")
    assert "Tune" not in conclusions.to_do(["mlp", "cnn"], "adamw")
    both = conclusions.to_do(["mlp", "cnn", "loop sqrt"], "sgd")
    assert both.startswith(f"{at_one} but for those below")
    assert "Tune cnn, loop sqrt at two depths" in both
    assert at_one not in conclusions.to_do(["transformer pre"], "adamw")
    assert "Tune" in conclusions.to_do(["cnn"], "sgd_momentum")
    assert "Tune" not in conclusions.to_do(["cnn batch norm"], "sgd")
    assert "Check at a second depth: no trial has trained nets by sophia" in conclusions.to_do(["mlp"], "sophia")
    assert "second depth" not in conclusions.to_do(["residual mlp init"], "muon-adamw")
    assert "Tune mlp at two depths" in conclusions.to_do(["mlp", "residual mlp init"], "muon-adamw")
    normalised = conclusions.to_do(["residual cnn init batch norm on mnist"], "adamw")
    assert "Check residual cnn init batch norm on mnist at a second depth" in normalised


@pytest.mark.parametrize(
    ("family", "optimizer", "named"),
    [
        ("mlp", "muon-adamw", True),
        ("residual cnn init on mnist", "muon-adamw", True),
        ("transformer pre", "muon-adamw", False),
        ("transformer pre", "sgd_momentum", False),
        ("transformer pre", "adamw", True),
        ("mlp", "sophia", False),
    ],
)
def test_a_starting_rate_is_advised_where_the_library_has_a_constant(family, optimizer, named):
    assert conclusions.is_named(family, optimizer) is named
    said = conclusions.with_nothing_tuned([family], optimizer, "stable_rate", np.array([1.0]))
    assert ("mf.starting_rate" in said) is named


def test_report_and_figure(finished):
    printed = simulation.document(finished).text()
    assert max(map(len, printed.splitlines())) <= 100
    assert printed.startswith("Question: ")
    assert all(family in printed for family in FAMILIES)
    assert "In practice: tune at one depth" in " ".join(printed.split())
    listed = simulation.document(finished.assign_attrs(command="python -m sims.learning_rate_search")).steps
    steps = dict(listed)
    assert len(steps) == len(listed), "an option is named once"
    assert steps["--preset evidence"].startswith("convolutional nets, too: ")
    assert steps["--preset evidence"].endswith(f"({study.PRESETS['evidence'].takes} on two cores)")
    slopes, *panels = figure.draw(finished).axes
    assert len(panels) == len(FAMILIES)
    (panel,) = [axes for axes in panels if axes.get_title().splitlines()[0].endswith("  mlp")]
    marks = [container[0] for container in panel.containers if container[0].get_marker() == "o"]
    rates = np.concatenate([line.get_ydata() for line in marks])
    np.testing.assert_allclose(np.sort(rates), np.sort(10 ** finished["tuned_rate_log10"].sel(family="mlp").values))
    assert {text.get_text() for text in slopes.texts} <= {str(number) for number in range(1, len(FAMILIES) + 1)}


@pytest.mark.parametrize(
    ("family", "kind", "printed"),
    [
        ("cnn batch norm", BatchNormalisation, np.nan),
        ("cnn dropout", Dropout, np.nan),
        ("residual cnn init batch norm", BatchNormalisation, -1.701),
        ("residual cnn init dropout", Dropout, -1.568),
    ],
)
def test_ablations_have_their_map_and_no_one_step_scale(family, kind, printed):
    options = simulation.parse([*SMALL, "--families", family])
    plan = simulation.checked(options)
    for tuning in plan["tunings"]:
        assert any(isinstance(part, kind) for unit in tuning.net.units for part in unit.maps)
    assert np.isnan(list(study._one_step(plan["tunings"], [family], plan["depths"]))).tolist() == [True, True]
    np.testing.assert_equal(printed_tables.printed_slope(family), printed)


def test_families_have_names_together():
    options = simulation.parse([*SMALL, "--families", "normalised nets", "mlp", "residual nets on both data"])
    simulation.checked(options)
    assert options.families == ["residual cnn init batch norm on mnist", "mlp", *first_steps.BY_KIND]


def test_families_say_how_many_times_as_wide_they_are():
    """Beside --wider, on any data; several families at once are taken as they are."""
    names = ["mlp x4", "residual cnn init x0.5 on mnist", "mlp"]
    options = simulation.parse([*SMALL, "--wider", "2", "--families", *names])
    nets = [tuning.net for tuning in simulation.checked(options)["tunings"][:: len(options.depths)]]
    assert [nets[0].width, nets[1].channels, nets[2].width] == [4 * nets[2].width, options.channels, 2 * options.width]
    assert nets[1].grid == (7, 7)
    for wrong, words in {
        "mlp x0.3": "give a factor that makes a whole number",
        "mlp x-1": "must be positive",
        "mlp xnan": "must be a positive number",
        "mlp xx": "choose one of",
        "plain nets x4": "are several, taken as they are: name each, as 'mlp'",
    }.items():
        with pytest.raises(ValueError, match=words):
            simulation.checked(simulation.parse([*SMALL, "--families", wrong]))


def test_wider_nets_are_those_of_more_channels_and_units():
    """In all families, and in what the dataset says of itself."""
    given = ["--families", "mlp", "cnn", "transformer post", *SMALL]
    wider, asked = (
        simulation.parse([*given, *more]) for more in (["--wider", "1.5"], ["--channels", "6", "--width", "24"])
    )
    nets = [[tuning.net for tuning in simulation.checked(options)["tunings"]] for options in (wider, asked)]
    assert nets[0] == nets[1]
    assert study._sizes(wider) == {"channels": 6, "width": 24}


def test_the_papers_fit_weighs_depths_by_their_variances():
    """Against NumPy's line with weights 1 / error; that of tuned slopes weighs all depths alike."""
    depths, logs, errors = np.array([2, 4, 8, 32]), np.array([-1.0, -1.2, -1.9, -2.4]), np.array([0.02, 0.3, 0.05, 0.1])
    columns = {"tuned_rate_log10": ("depth", logs), "tuned_rate_log10_stderr": ("depth", errors)}
    at = xr.Dataset(columns, {"depth": depths})
    for slope, weights in ((claims.weighted_slope, 1 / errors), (tuned_rates.tuned_slope, np.ones(4))):
        assert slope(at).exponent == pytest.approx(np.polyfit(np.log10(depths), logs, 1, w=weights)[0])
    (variance, _), _ = np.polyfit(np.log10(depths), logs, 1, w=1 / errors, cov="unscaled")[1]
    assert claims.weighted_slope(at).stderr == pytest.approx(np.sqrt(variance))


def test_rows_name_the_scale_and_the_nets_that_were_run(finished):
    """One step of the net that trains, of nets that learn; white inputs are called so."""
    for name in ("T1", "T2", "T3", "T4"):
        assert "one step moves their layers" in CLAIMS[name].statement
        assert "nets whose loss is below a third of chance" in CLAIMS[name].hypotheses
        assert CLAIMS[name].preset == "evidence"
    for name in ("T2", "T3"):
        families = {check.judge.keywords["family"] for check in CLAIMS[name].checks}
        assert {family.split()[0] for family in families} == {"residual"}
        assert {"mlp", "cnn"} == {family.split()[1] for family in families}
    printed = " ".join(simulation.document(finished).text().split())
    assert "one step of the optimizer that trains says?" in printed
    assert "white: the mean field's learning-rate scale" in printed
    assert "No net of this run ends below a third" in printed


# Worlds in which claims of this study get another verdict: their negative controls.


def _tuned(claim):
    """Rates of every family that a claim is about fall exactly as it says, from many seeds of nets that learn."""

    def exact(runs):
        return {
            name: of_run(with_families(runs[name], of_claim), of_claim) for name, of_claim in families_of(claim).items()
        }

    def of_run(dataset, of_claim):
        chosen, scale = dataset["family"].isin(of_claim), dataset["absolute_scale"]
        depth = dataset["depth"]
        law = ((depth + 1) * (depth**2 + depth + 1)) ** -0.5 + 0 * scale
        changed = {
            "tuned_rate_log10": np.log10(law if claim == "A21b" else scale),
            "tuned_rate_log10_stderr": 0 * scale + ERROR**2,
            "absolute_scale_stderr": ERROR**2 * scale,
            "located": 0 * dataset["located"] + 64,
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return all_learned(dataset.assign(put))

    return exact


def stable_rates_are_best(runs):
    return {name: _best_at_stable_rates(runs[name]) for name in CLAIMS["T7"].runs}


def _best_at_stable_rates(dataset):
    exact = {"tuned_rate_log10": np.log10(dataset["stable_rate"]), "located": 0 * dataset["located"] + 64}
    errors = {
        "stable_rate_stderr": ERROR**2 * dataset["stable_rate"],
        "tuned_rate_log10_stderr": 0 * dataset["stable_rate"] + ERROR,
    }
    return all_learned(dataset.assign(exact | errors))


@pytest.mark.parametrize(
    ("off", "verdict", "begins"),
    [
        ([], Verdict.CONFIRMED, "Yes: no slope lies more than 3 s.e. beyond 0.15 from one step."),
        (["mlp"], Verdict.REFUTED, "No: the slopes of mlp lie more than 3 s.e. beyond 0.15 from one step."),
        (["mlp"], Verdict.CONFIRMED, "Yes: taken together; but the slopes of mlp lie more"),
    ],
)
def test_an_answer_of_yes_names_the_families_that_are_off(off, verdict, begins, monkeypatch):
    """A run's answer was "Yes: more than 3 s.e. beyond 0.15 from one step are the slopes of loop sqrt"."""
    monkeypatch.setattr(conclusions, "_apart", lambda dataset: off)
    monkeypatch.setattr(conclusions, "_unmet", lambda dataset: [])
    finding = Finding("tuned rates have the slopes of one step", "none", verdict, "", "none", measured="slopes")
    assert conclusions.answer_of(xr.Dataset(), [finding]).startswith(begins)


def placement_does_not_matter(runs):
    """Tuned rates of both norms fall as one power."""
    (run,) = CLAIMS["A20c"].runs
    rates = 0 * runs[run]["tuned_rate_log10"] - 1.5 * np.log10(runs[run]["depth"])
    located = 64 + 0 * runs[run]["located"]
    tuned = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": ERROR + 0 * rates, "located": located}
    return {run: runs[run].assign(tuned)}


CONTROLS = {
    "A20c": placement_does_not_matter,
    "A21b": _tuned("A21b"),
    **{claim: _tuned(claim) for claim in ("T1", "T2", "T3", "T4")},
    "T7": stable_rates_are_best,
}


def test_rates_of_some_seeds_are_those_of_all_where_all_are_taken(finished):
    """And two halves are told apart where one is bent; of one seed none is known."""
    at = finished.sel(family="mlp")
    whole = tuned_rates.of_seeds(at, slice(None))
    for name in ("tuned_rate_log10", "tuned_rate_log10_stderr"):
        np.testing.assert_allclose(whole[name], tuned_rates.with_minima(at)[name])
    assert not tuned_rates.of_seeds(at, slice(1)).sizes["depth"]
    logs, offs = np.log10([2.0, 4.0, 8.0])[:, None], np.tile(np.linspace(0, 0.1, 4), 2)
    bent = np.where(np.arange(8) < 4, 0.0, -logs) + offs
    values = {"seed_tuned_rate_log10": bent, "seed_tuned_rate_log10_stderr": 0 * bent}
    made = xr.Dataset({name: (("depth", "draw"), numbers) for name, numbers in values.items()}, {"depth": [2, 4, 8]})
    halves = [tuned_rates.of_seeds(made, part) for part in (slice(4), slice(4, None))]
    first, second = map(tuned_rates.tuned_slope, halves)
    assert first.exponent == pytest.approx(0, abs=1e-12)
    assert second.exponent == pytest.approx(-1)
    np.testing.assert_allclose(halves[0]["tuned_rate_log10_stderr"], np.std(offs[:4], ddof=1) / 2)
