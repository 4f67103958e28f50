"""The command on carried rates: how rules carry, what they cost, verdicts with their control, files, refusals."""

import warnings

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from figures import learning_rate_transfer as figure
from meanfield.transfer import StableRate, naming_net
from meanfield.verification import Verdict
from sims.claims.catalogue import CLAIMS
from sims.common import images
from sims.common.training_data import FAMILIES, trained_net, training_data
from sims.learning_rate_transfer import claims, first_steps
from sims.learning_rate_transfer.__main__ import RULES, Ladder, _carried, _steps_of, planned
from sims.learning_rate_transfer.__main__ import STUDY as simulation
from tests.sims.claim_controls import many_draws
from tests.sims.commands import finished_run, without_figure

SMALL = ["--samples", "96", "--width", "16", "--tuning-seeds", "2", "--spacing", "0.5", "--workers", "1"]
SIZES = ["--families", "mlp", "--depths", "1", "2", "4", "--draws", "2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(simulation, [*SIZES, *SMALL], tmp_path_factory.mktemp("transfer") / "run.nc")


def _tuned(logs, stable):
    """As `mf.tuned_rate` gives it, for two seeds."""
    values = {
        "seed_tuned_rate_log10": ("seed", np.array(logs)),
        "stable_rate": stable,
        "stable_rate_stderr": 0.1 * stable,
    }
    return xr.Dataset(values)


def _ladder(across="depth"):
    nets = [mf.MLP(**{"depth": 4, "width": 16, across: size}) for size in (4, 8, 16)]
    tuned = [_tuned([-1.0, -1.2], 0.4), _tuned([-1.3, -1.7], 0.2), _tuned([np.nan, -2.0], 0.05)]
    return Ladder(nets, tuned, across, 4, 2.0)


@pytest.mark.parametrize(
    ("rule", "logs"),
    [
        ("unchanged", [-1.0, -1.2]),
        ("three_halves", [-1.0 - 1.5 * np.log10(4), -1.2 - 1.5 * np.log10(4)]),
        ("wrong_sign", [-1.0 + 1.5 * np.log10(4), -1.2 + 1.5 * np.log10(4)]),
        ("two_anchors", [-1.6, -2.2]),
        ("stable_ratio", [-1.0 - np.log10(8), -1.2 - np.log10(8)]),
        ("stable_rate", [np.log10(0.05)] * 2),
    ],
)
def test_rules_carry_what_each_seed_found(rule, logs):
    """From depth 4 to 16: two steps of the anchors' line, an eighth of the stable rate."""
    np.testing.assert_allclose(_ladder().carried(rule, 2), logs)


@pytest.mark.parametrize(("rule", "nets"), [("unchanged", 0), ("stable_rate", 1), ("stable_ratio", 2)])
def test_errors_of_stable_rates_are_those_of_carried_ones(rule, nets):
    """A share of 0.1 of each net's, in decades."""
    np.testing.assert_allclose(_ladder().carried_error(rule, 2), 0.1 * nets**0.5 / np.log(10))


def test_over_widths_the_control_and_the_anchors_follow_the_width():
    ladder = _ladder("width")
    np.testing.assert_allclose(ladder.carried("wrong_sign", 2), np.array([-1.0, -1.2]) + np.log10(2))
    np.testing.assert_allclose(ladder.carried("two_anchors", 2), [-1.6, -2.2])
    assert "three_halves" not in RULES["width"]


def test_slopes_of_the_loss_are_those_of_the_tuned_nets_mean():
    """Losses 1 and 3 a decade apart, of which chance bounds the larger by 2; beyond the rates that were tried, flat."""
    values = {"final_loss": (("rate", "seed"), np.array([[0.5, 1.5], [np.inf, 1.0]]))}
    ladder = Ladder([None], [xr.Dataset(values, {"rate": [0.1, 1.0]})], "depth", 4, 2.0)
    assert ladder.loss_slope(0, -0.5) == pytest.approx(0.5)
    assert ladder.loss_slope(0, 0.0) == pytest.approx(0.25)
    assert ladder.loss_slope(0, 1.0) == 0.0
    untried = xr.Dataset({"final_loss": (("rate", "seed"), [[0.5, 1.5], [np.nan, 1.0]])}, {"rate": [0.1, 1.0]})
    assert Ladder([None], [untried], "depth", 4, 2.0).loss_slope(0, -0.5) == pytest.approx(-0.25)


def test_the_slope_of_the_loss_is_that_of_the_net_that_a_rate_is_carried_to():
    """A loss of one per decade there, and none on the net that was tuned."""
    ladder, rates = _ladder(), [0.01, 0.1, 1.0]
    for place, of_place in enumerate(ladder.tuned[:2]):
        losses = np.array([0.0, 1.0, 2.0])[:, None] * place + np.zeros(2)
        ladder.tuned[place] = of_place.assign(final_loss=(("rate", "seed"), losses)).assign_coords(rate=rates)
    carried = [_carried(ladder, rule, place)["loss_slope"] for rule, place in (("tuned", 0), ("unchanged", 1))]
    assert carried == pytest.approx([0.0, 1.0])


def test_anchors_are_tuned_and_seeds_without_a_minimum_carry_nothing():
    with pytest.raises(ValueError, match="at an anchor"):
        _ladder().carried("two_anchors", 1)
    ladder = _ladder()
    blind = Ladder(ladder.nets, [_tuned([np.nan, -1.2], 0.4), *ladder.tuned[1:]], "depth", 4, 2.0)
    assert np.isnan(blind.carried("two_anchors", 2)).tolist() == [True, False]


def test_nets_that_take_the_same_inputs_share_them():
    first, *others = planned(simulation.parse([*SIZES, *SMALL]))["data"]["mlp"]
    assert all(own is first for own in others)


def test_carried_rates_are_those_of_the_library(finished):
    """From depth 1: the geometric mean of the seeds' rates by each rule; the stable ratio by the same draws."""
    nets = [trained_net("mlp", depth, 16, "digits") for depth in (1, 4)]
    at = finished.sel(family="mlp", size=4)
    tuned = 10.0 ** float(finished["tuned_rate_log10"].sel(family="mlp", size=1))
    for rule in ("finite_depth", "power_law", "path_sum"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mf.PremiseWarning)
            rate = mf.transfer_learning_rate(tuned, *nets, rule=rule)
        assert float(at["rate_log10"].sel(rule=rule)) == pytest.approx(np.log10(rate))
    data = training_data("digits", nets[0], samples=96)
    ratio = mf.transfer_learning_rate(tuned, *nets, rule=StableRate(data, draws=64))
    assert abs(float(at["rate_log10"].sel(rule="stable_ratio")) - np.log10(ratio)) < 0.4


def test_losses_are_those_of_training_at_the_carried_rate(finished):
    """One net trained by `mf.train`, from the seeds of the run; no rate depends on those beside it."""
    from meanfield.common.seeds import derived_seed

    net = trained_net("mlp", 2, 16, "digits")
    seeds = [derived_seed(0, f"trained mlp 2 {number}") for number in range(2)]
    rate = 10.0 ** float(finished["rate_log10"].sel(family="mlp", size=2, rule="three_halves"))
    data = training_data("digits", net, samples=96)
    trained = mf.train(net, data, rates=rate, seeds=seeds, epochs=1, batch_size=32, precision="float32")
    losses = finished["loss"].sel(family="mlp", size=2, rule="three_halves").values
    np.testing.assert_array_equal(losses, trained["final_loss"].values[0])


def made_up(saved, families=("mlp", "cnn"), draws=40):
    """Losses of a run in which L^(-3/2) saves so much in each family, the control loses, and all others save."""
    rng = np.random.default_rng(0)
    rules, sizes = ["tuned", *RULES["depth"]], [3, 6, 12]
    shape = {"family": list(families), "rule": rules, "size": sizes}
    rates = xr.DataArray(np.zeros((len(families), len(rules), 3)), shape) - 1.0
    rates.loc[{"rule": "unchanged"}] = 0.0
    rates.loc[{"rule": "wrong_sign"}] = 1.0
    loss = rates.expand_dims(draw=draws, axis=-1) * 0.0 + 1.0 + 0.05 * rng.normal(size=(*rates.shape, draws))
    loss.loc[{"rule": "unchanged"}] += 0.3
    loss.loc[{"rule": "wrong_sign"}] += 0.6
    loss.loc[{"rule": "three_halves"}] += 0.3 - xr.DataArray(list(saved), {"family": list(families)})
    sizes_only = rates.isel(rule=0, drop=True)
    values = {"tuned_rate_log10_stderr": 0 * sizes_only + 0.05, "stable_rate_stderr": 0 * sizes_only + 0.1}
    values |= {"stable_rate": 0 * sizes_only + 1, "loss_slope": 0 * rates, "decades_off_stderr": 0 * rates + 0.05}
    attrs = {"chance_loss": 2.3, "across": "depth", "draws": draws, "tuning_seeds": "6", "optimizer": "adamw"}
    return xr.Dataset({"rate_log10": rates, "loss": loss} | values, attrs=attrs)


def test_errors_of_carried_rates_are_those_of_what_they_rest_on():
    """Loss slopes s of 1 at all sizes but for the unchanged rate, 0: with errors t of tuned and u of stable rates.

    The rate tuned first moves all three sizes at once, (s t)^2; stable rates move each by itself, (s u)^2 / 3.
    """
    dataset = made_up((0.3, 0.3))
    dataset["loss_slope"].loc[{"rule": ["three_halves", "stable_ratio", "tuned"]}] = 1.0
    tuned, stable = 0.05, 0.1 / np.log(10)
    for rule, against, squares in (
        ("three_halves", "unchanged", tuned**2),
        ("stable_ratio", "unchanged", tuned**2 + stable**2 + stable**2 / 3),
        ("three_halves", "stable_ratio", stable**2 + stable**2 / 3),
        ("tuned", "wrong_sign", tuned**2 / 3),
    ):
        rates = dataset["rate_log10"].copy()
        rates.loc[{"rule": rule}] = rates.sel(rule=against) - 1.0
        moved = claims.savings(dataset.assign(rate_log10=rates), rule, against)
        still = claims.savings(dataset.assign(rate_log10=rates, loss_slope=0 * dataset["loss_slope"]), rule, against)
        np.testing.assert_allclose(moved["saved_stderr"] ** 2 - still["saved_stderr"] ** 2, squares, rtol=1e-9)
        np.testing.assert_allclose(still["saved_freedom"], 3 * 40 - 1)
        assert (moved["saved_freedom"] < still["saved_freedom"]).all()


def test_a_rate_tuned_on_few_nets_may_leave_a_saving_open():
    """A saving of 0.3 +- 0.006 by the nets that were trained; the rate's error adds 0.025 in a family, of 6 nets."""
    dataset = made_up((0.3, 0.3))
    dataset["loss_slope"].loc[{"rule": "unchanged"}] = 0.5
    assert claims.judge_three_halves(dataset).verdict is Verdict.INCONCLUSIVE
    assert claims.judge_three_halves(dataset.assign_attrs(tuning_seeds="60")).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("saved", "verdict"),
    [
        ((0.3, 0.2), Verdict.CONFIRMED),
        ((0.3, -0.2), Verdict.REFUTED),
        ((0.3, 0.0), Verdict.INCONCLUSIVE),
    ],
)
def test_a_rule_must_save_in_every_family(saved, verdict):
    assert claims.judge_three_halves(made_up(saved)).verdict is verdict


def test_an_average_over_families_may_hide_one_that_loses():
    names = {"three_halves": "finite_depth", "finite_depth": "three_halves"}
    dataset = made_up((0.5, -0.1))
    order = [names.get(str(name), str(name)) for name in dataset["rule"].values]
    swapped = dataset.sel(rule=order).assign_coords(rule=dataset["rule"])
    assert claims.judge_finite_depth(swapped).verdict is Verdict.CONFIRMED
    assert "cnn: saves -0.1" in claims.judge_finite_depth(swapped).evidence
    assert claims.judge_three_halves(dataset).verdict is Verdict.REFUTED


def test_the_error_of_an_average_is_that_of_independent_families():
    """That of each draw's mean over families and sizes, which for 4,000 draws has the same error to a few percent."""
    dataset = made_up((0.3, 0.3), draws=4000)
    made = claims._costs_less(dataset, "finite_depth", on_average=True)
    loss = dataset["loss"]
    saved = (loss.sel(rule="unchanged") - loss.sel(rule="finite_depth")).mean(["family", "size"])
    np.testing.assert_allclose(made.rival.difference, saved.mean())
    np.testing.assert_allclose(made.rival.stderr, saved.std(ddof=1) / 4000**0.5, rtol=0.1)


def test_the_wrong_sign_loses_and_would_not_pass_for_the_right_one():
    dataset = made_up((0.3, 0.3))
    assert claims.judge_wrong_sign(dataset).verdict is Verdict.CONFIRMED
    names = {"three_halves": "wrong_sign", "wrong_sign": "three_halves"}
    order = [names.get(str(name), str(name)) for name in dataset["rule"].values]
    swapped = dataset.sel(rule=order).assign_coords(rule=dataset["rule"])
    assert claims.judge_three_halves(swapped).verdict is Verdict.REFUTED


def test_rates_that_hardly_differ_decide_nothing():
    dataset = made_up((0.3, 0.3))
    rates = dataset["rate_log10"].copy()
    rates.loc[{"rule": "three_halves"}] = rates.sel(rule="unchanged") - 0.1
    finding = claims.judge_three_halves(dataset.assign(rate_log10=rates))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "differ in no family" in finding.evidence


def test_losses_above_chance_count_as_chance():
    dataset = made_up((0.3, 0.3))
    wild = dataset.assign(loss=dataset["loss"].where(dataset["rule"] != "wrong_sign", np.inf))
    costs = claims.loss_costs(wild).sel(rule="wrong_sign")
    tuned = wild["loss"].sel(rule="tuned")
    np.testing.assert_allclose(costs, 2.3 - tuned)


@pytest.mark.parametrize(("cost", "verdict"), [(0.0, Verdict.CONFIRMED), (0.1, Verdict.REFUTED)])
@pytest.mark.parametrize("rule", ["step_outputs", "one_step", "starting"])
def test_rates_of_one_step_cost_little_or_are_refuted(rule, cost, verdict):
    """Against tuned losses of 0.7, of nets that have learned; the same at 1.0 are of nets that have not."""
    dataset = made_up((0.3, 0.3), draws=400)
    costly = dataset["loss"].copy()
    costly.loc[{"rule": rule}] += cost
    carried = {
        "step_outputs": first_steps.judge_carried_by_step,
        "one_step": first_steps.judge_carried_by_default,
    }
    decide = (carried | {"starting": first_steps.judge_starting})[rule]
    learned = dataset.assign(loss=costly - 0.3).assign_attrs(tuning_seeds="60")
    assert decide(learned).verdict is verdict
    idle = decide(dataset.assign(loss=costly))
    assert (idle.verdict, idle.evidence) == (Verdict.INCONCLUSIVE, "no net learns at its tuned rate")
    unserved = learned["rate_log10"].where(learned["rule"] != rule)
    for lacking in (learned.sel(rule=learned["rule"] != rule), learned.assign(rate_log10=unserved)):
        finding = decide(lacking)
        assert (finding.verdict, finding.evidence) == (Verdict.INCONCLUSIVE, "this run has no rate by this rule")


def test_a_cost_counts_the_nets_that_learn_and_the_errors_of_rates():
    """Errors of rates move the three sizes of a family together, 0.05 decades by 4 a decade, and families apart."""
    dataset = made_up((0.3, 0.3))
    losses = dataset["loss"].copy()
    losses.loc[{"rule": "starting"}] += 0.2
    one, both = losses.copy() - 0.5, losses - 0.5
    one.loc[{"family": dataset["family"].values[1]}] += 0.5
    for learned, families in ((one, 1), (both, 2)):
        at = dataset.assign(loss=learned)
        cost, error, freedom, nets = first_steps.mean_cost(at, "starting")
        assert (round(cost, 1), nets) == (0.2, 3 * families)
        sloped = at.assign(loss_slope=0 * at["loss_slope"] + 4)
        _, wider, fewer, _ = first_steps.mean_cost(sloped, "starting")
        np.testing.assert_allclose(wider, np.hypot(error, 0.2 / families**0.5))
        # Of 6 tuned nets, and of as many families' sums as make the error.
        assert fewer == pytest.approx(5 * families, rel=0.02)
        assert freedom > 100


def test_rates_of_one_step_are_those_of_the_library(finished):
    """Medians of the nets that the run draws: carried as the outputs' scale, and by the starting rate's constant."""
    nets = [trained_net("mlp", depth, 16, "digits") for depth in (1, 4)]
    data = training_data("digits", nets[0], samples=96)
    how = {"batch_size": 32, "draws": 64, "seed": 0}
    scales = [mf.step_scales(net, data, precision="float32", **how) for net in nets]
    ratio = np.divide(*(float(of["output_learning_rate_scale_quantile"].sel(quantile=0.5)) for of in scales[::-1]))
    at = finished["rate_log10"].sel(family="mlp", size=4)
    tuned = float(finished["tuned_rate_log10"].sel(family="mlp", size=1))
    assert float(at.sel(rule="step_outputs")) == pytest.approx(tuned + np.log10(ratio))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        named = mf.starting_rate(nets[1], data, **how)
    assert float(at.sel(rule="starting")) == pytest.approx(np.log10(float(named["rate"])), abs=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "family", "across"),
    [
        ("muon-adamw", "residual mlp init", "depth"),
        ("adamw", "mlp", "depth"),
        ("adamw", "residual mlp init", "width"),
        ("sgd", "residual mlp init", "width"),
        ("sgd", "mlp", "width"),
    ],
)
def test_the_default_of_one_step_is_that_of_the_library(optimizer, family, across):
    """Carried as on data without another word, and named: under Muon with AdamW by a step in noise."""
    sizes = [(1, 16), (4, 16)] if across == "depth" else [(2, 16), (2, 80)]
    nets = [trained_net(family, depth, width, "digits") for depth, width in sizes]
    data = training_data("digits", nets[0], samples=96)
    how = {"batch_size": 32, "draws": 16, "seed": 0}
    first, later = _steps_of(optimizer)
    namers = [naming_net(net, later) for net in nets]
    asked = ((first, nets), (later, nets), (later, namers))
    drawn = [[mf.step_scales(net, data, optimizer=step, **how) for net in of_step] for step, of_step in asked]
    ladder = Ladder(nets, [_tuned([-1.0, -1.2], 0.5)] * 2, across, 4, 2.3, optimizer, *drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)
        carried = mf.explain_transfer(1.0, *nets, optimizer=optimizer, data=data, **how)
        named = mf.starting_rate(nets[1], data, optimizer=optimizer, **how)
    np.testing.assert_allclose(ladder.carried("one_step", 1), np.array([-1.0, -1.2]) + np.log10(carried.rate))
    np.testing.assert_allclose(ladder.carried_error("one_step", 1), carried.error / np.log(10))
    np.testing.assert_allclose(ladder.carried("starting", 1), np.log10(float(named["rate"])))
    stays = (optimizer, family, across) == ("sgd", "residual mlp init", "width")
    assert (carried.rate == 1) is stays
    assert (namers[1] != nets[1]) is stays


def test_figure_shows_the_numbers(finished):
    axes = figure.draw(finished).axes
    lines = [container.lines[0].get_ydata() for container in axes[0].containers]
    shown = finished["decades_off"].sel(family="mlp", size=[2, 4])
    np.testing.assert_allclose(lines[0], shown.sel(rule="unchanged"))
    cost = claims.loss_costs(finished).mean("draw").sel(family="mlp", size=[2, 4], rule="wrong_sign")
    np.testing.assert_allclose(axes[1].containers[1].lines[0].get_ydata(), cost)


def test_printed_report_over_widths(tmp_path, capsys):
    sizes = ["--families", "mlp", "--across", "width", "--widths", "8", "16", "--depth", "2", "--draws", "2"]
    assert without_figure(simulation, [*sizes, *SMALL, "--full"], tmp_path / "run.nc") == 0
    printed = capsys.readouterr().out
    for words in ("Question: Does a carried learning rate", "loss raw", "wrong sign (control)", "width", "run.png"):
        assert words in printed
    assert "three_halves" not in printed


def test_every_family_is_built_and_takes_its_data():
    for name in FAMILIES:
        net = trained_net(name, 2, 16, "mnist")
        assert net.output_shape[1] >= 10
    with pytest.raises(ValueError, match="which Transformers take; 'mlp' takes images"):
        trained_net("mlp", 2, 16, "text")


def test_a_missing_package_is_told_before_a_run_of_claims(monkeypatch):
    monkeypatch.setattr(images, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="install it with"):
        simulation.require_installed()


# Worlds in which claims of this study get another verdict: their negative controls.


def _costs(rule, loss):
    """Every net has so much more loss at the carried rate than at the unchanged one."""

    def control(runs):
        dataset, spread = many_draws(runs["learning_rate_transfer"])
        unchanged = 0.5 * dataset["loss"].sel(rule="unchanged").fillna(0.0).clip(max=1.0)
        losses = dataset["loss"].copy()
        losses.loc[{"rule": "unchanged"}] = unchanged
        losses.loc[{"rule": rule}] = (unchanged + loss + spread).transpose(*unchanged.dims)
        return {"learning_rate_transfer": dataset.assign(loss=losses, loss_slope=0 * dataset["loss_slope"])}

    return control


def _cheap(rule, claim="E4a"):
    """Nets of every optimizer learn, and the rule costs nothing."""

    def control(runs):
        changed = {}
        for name in dict.fromkeys(check.run for check in CLAIMS[claim].checks):
            dataset, spread = many_draws(runs[name])
            losses = 0 * dataset["loss"].fillna(0.0).clip(max=1.0) + 0.5 + spread
            rates = dataset["rate_log10"].copy()
            rates.loc[{"rule": rule}] = rates.loc[{"rule": rule}].fillna(-1.0)
            exact = {name: 0 * dataset[name].fillna(0.0) for name in ("loss_slope", "decades_off_stderr")}
            changed[name] = dataset.assign(exact | {"loss": losses, "rate_log10": rates})
            changed[name].attrs["tuning_seeds"] = str(dataset.sizes["draw"])
        return changed

    return control


CONTROLS = {
    "E4a": _cheap("step_outputs"),
    "E4b": _cheap("starting", "E4b"),
    "E4c": _cheap("one_step", "E4c"),
    "T6a": _costs("three_halves", -0.1),
    "T6b": _costs("finite_depth", 0.1),
    "T6c": _costs("stable_ratio", 0.1),
}
