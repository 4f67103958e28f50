"""The command on coordinate checks: verdicts, controls, files, refusals."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy.stats import skew

from figures import coordinate_check as figure
from meanfield.verification.verdicts import Finding, Shares, Verdict
from sims import coordinate_check
from sims.claims.catalogue import CLAIMS
from sims.common import blocks
from sims.common.blocks import DIRECTIONS, WATCHED, Watched, watched
from sims.coordinate_check import STUDY as simulation
from tests.sims.claim_controls import ERROR, runs_off
from tests.sims.commands import finished_run

LADDERS = ["--widths", "32", "48", "64", "96", "128", "--depths", "2", "4", "8", "16", "--width", "32", "--depth", "2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("coordinates") / "run.nc"
    arguments = ["--optimizers", "muon", *LADDERS, "--draws", "24", "--steps", "3", "--workers", "1"]
    return finished_run(simulation, arguments, path)


def test_tables_keep_features_flat_and_nothing_does_not(finished):
    assert coordinate_check.judge_flat(finished, "muon", "many").verdict is not Verdict.REFUTED
    assert coordinate_check.judge_standard(finished, "muon").verdict is Verdict.REFUTED
    assert len(coordinate_check.findings(finished)) == 3


def test_the_standard_parameterization_passed_off_as_a_table_is_refuted(finished):
    """Negative control: the columns exchanged."""
    order = [{"standard": "many", "many": "standard"}.get(str(name), str(name)) for name in finished["table"].values]
    swapped = finished.sel(table=order).assign_coords(table=finished["table"])
    assert coordinate_check.judge_flat(swapped, "muon", "many").verdict is Verdict.REFUTED
    assert coordinate_check.judge_standard(swapped, "muon").verdict is not Verdict.REFUTED


def test_updates_of_full_rank_passed_off_as_those_of_elements_are_refuted(tmp_path):
    """Negative control: Muon makes all singular values of a gradient alike, 64 of them in nets no wider than that."""
    sizes = ["--widths", "8", "16", "32", "--width", "8", "--depths", "1", "2", "4", "--depth", "1", "--steps", "1"]
    batch = ["--activation", "relu", "--samples", "64", "--outputs", "16", "--draws", "48", "--tables", "many"]
    run = finished_run(simulation, ["--optimizers", "muon", *sizes, *batch, "--workers", "1"], tmp_path / "muon.nc")
    assert coordinate_check.judge_ranks(run.assign_coords(optimizer=["lion"])).verdict is Verdict.REFUTED


def test_a_fourth_power_of_depth_is_refuted(finished):
    """Negative control: features that grow as L^(1/2) along the ladder in depth."""
    name = "feature_update_norm_by_depth"
    tilted = finished.assign({name: finished[name] * finished["depth"] ** 0.5})
    assert coordinate_check.judge_flat(tilted, "muon", "many").verdict is Verdict.REFUTED


def test_nets_that_leave_the_floats_are_not_flat(finished):
    name = "feature_update_norm_by_width"
    gone = finished.assign({name: finished[name].where(finished["width"] < 64)})
    assert coordinate_check.judge_flat(gone, "muon", "many").verdict is Verdict.REFUTED
    standard = coordinate_check.judge_standard(gone, "muon")
    assert standard.verdict is Verdict.REFUTED
    assert "60% of nets leave the floats or stand still" in standard.evidence


def test_a_draw_that_stands_still_does_not_hide_how_the_others_grow(finished):
    """As Shampoo's do: outputs so large that the gradient of one draw vanishes."""
    name = "feature_update_norm_by_width"
    still = (finished["draw"] == 0) & (finished["width"] > 100)
    kept = finished.assign({name: finished[name].where(~still, 1e-40)})
    assert coordinate_check.judge_standard(kept, "muon").verdict is Verdict.REFUTED


def test_middle_slopes_scatter_as_medians_and_leave_sizes_out_at_which_many_nets_are_lost():
    sizes, draws = np.array([16.0, 32.0, 64.0, 128.0]), 4000
    values = sizes[:, None] ** np.random.default_rng(0).normal(1.0, 0.3, draws)
    middle, stderr, gone = coordinate_check._middle_slope(sizes, values)
    assert (middle, stderr, gone) == pytest.approx((1.0, 0.3 * np.sqrt(np.pi / 2 / draws), 0.0), rel=0.06)
    values[-1, ::2] = np.inf
    values[-1, 1::2] *= 1e3
    assert coordinate_check._middle_slope(sizes, values)[::2] == pytest.approx((middle, 1 / 8), rel=0.02)


@pytest.mark.parametrize("sso", ["sso", "sso-adamw"])
def test_single_precision_rounds_all_optimizers_but_sso(sso, tmp_path):
    sizes = ["--widths", "4", "6", "8", "--depths", "1", "2", "3", "--width", "4", "--depth", "1", "--draws", "2"]
    arguments = [*sizes, "--optimizers", "adamw", sso, "--steps", "3", "--workers", "1", "--precision"]
    single, double = (
        finished_run(simulation, [*arguments, precision], tmp_path / f"{precision}.nc")
        for precision in ("float32", "float64")
    )
    changes = double["feature_update_norm_by_width"].isel(step=-1)
    rounded = single["feature_update_norm_by_width"].isel(step=-1)
    np.testing.assert_allclose(rounded, changes, rtol=1e-3)
    is_sso = np.array(["sso" in str(label) for label in changes["optimizer"].values])
    alike = (rounded == changes) | (rounded.isnull() & changes.isnull())  # of nets that leave the floats
    same = alike.all([dim for dim in changes.dims if dim != "optimizer"]).values
    np.testing.assert_array_equal(same, is_sso)
    assert f"3 steps in float32 ({sso}: float64), 2 draws" in " ".join(simulation.document(single).text().split())
    assert "3 steps in float64, 2 draws" in " ".join(simulation.document(double).text().split())


@pytest.mark.parametrize(("distance", "verdict"), [(4.0, Verdict.INCONCLUSIVE), (6.0, Verdict.REFUTED)])
def test_a_slope_without_a_table_is_refuted_from_five_errors_on(finished, monkeypatch, distance, verdict):
    monkeypatch.setattr(coordinate_check, "_middle_slope", lambda *_: (distance, 1.0, 0.0))
    assert coordinate_check.judge_standard(finished, "muon").verdict is verdict


def test_flat_draws_are_not_refuted_as_standard(finished):
    """Negative control: what the table keeps flat, in the place of the standard parameterization."""
    order = ["many" if str(name) == "standard" else str(name) for name in finished["table"].values]
    swapped = finished.sel(table=order).assign_coords(table=finished["table"])
    assert coordinate_check.judge_standard(swapped, "muon").verdict is not Verdict.REFUTED


def test_with_relu_behind_each_matrix_the_table_of_one_layer_fails(tmp_path):
    """Eq. 28 at k = 1: increments of positive mean add up, which 1/sqrt(L) does not hold down and 1/L does."""
    sizes = ["--widths", "8", "12", "16", "--depths", "4", "8", "16", "32", "--width", "32", "--depth", "1"]
    arguments = ["--activation", "relu", "--block-depth", "1", "--tables", "one", "many", "--optimizers", "sgd"]
    run = finished_run(
        simulation, [*arguments, *sizes, "--draws", "8", "--steps", "1", "--workers", "1"], tmp_path / "run.nc"
    )
    last = Watched("feature_norm", 1, "place", "last")
    grown, flat = (last.slope(run, "sgd", table, "depth") for table in ("one", "many"))
    assert grown.settled - 5 * grown.settled_stderr > 0.4
    assert abs(flat.settled) + 5 * flat.settled_stderr < 0.2


def test_optimizers_that_were_not_run_are_not_confirmed(finished):
    names = ("muon", "sgd")
    assert coordinate_check.judge_tables(finished, names).verdict is not Verdict.CONFIRMED
    assert "1 of 2 optimizers" in coordinate_check.judge_tables(finished, names).evidence


def _times(role, name, factor):
    """The table's hyperparameters with one of them multiplied by a function of the ratio of widths."""

    def changed(optimizer, table, width, depth, **options):
        given = blocks.hyperparameters(optimizer, table, width, depth, **options)
        given[role][name] *= factor(width / blocks.BASE_WIDTH)
        return given

    return changed


@pytest.mark.parametrize(
    ("optimizer", "role", "name", "power"),
    [
        ("muon", "output", "learning_rate", 0.5),
        ("adamw", "output", "learning_rate", 1.0),
        ("muon", "input", "learning_rate", -0.5),
        ("muon", "hidden", "learning_rate", 0.5),
    ],
)
def test_a_rate_off_by_a_root_is_refuted(tmp_path, monkeypatch, optimizer, role, name, power):
    """Of output weights as well, which the stream below them does not feel."""
    monkeypatch.setattr(coordinate_check, "hyperparameters", _times(role, name, lambda ratio: ratio**power))
    sizes = ["--widths", "32", "64", "128", "256", "--depths", "1", "2", "3", "--width", "16", "--depth", "1"]
    arguments = ["--optimizers", optimizer, "--tables", "many", *sizes, "--draws", "48", "--steps", "1"]
    run = finished_run(simulation, [*arguments, "--workers", "1"], tmp_path / "run.nc")
    ruled = coordinate_check.judge_flat(run, optimizer, "many")
    assert ruled.verdict is Verdict.REFUTED
    assert f"by {role} weights alone" in ruled.evidence or role == "input"


def test_the_other_table_is_judged_by_the_rival(finished):
    """What is flat under the table for k = 1 refutes the claim that it is not."""
    flat = coordinate_check.judge_other_tables(finished, ("muon",))
    assert flat.verdict is not Verdict.REFUTED
    assert "k = 1 table" in flat.claim


def test_growth_without_a_table_does_not_press_the_tables_together(finished):
    """Panels of tables have an axis about their own numbers, one for all of them; so have those without a table."""
    wild = finished.copy(deep=True)
    for direction in ("width", "depth"):
        wild[f"feature_update_norm_by_{direction}"].loc[{"table": "standard"}] *= 1e6
    limits = [
        {tuple(axes.get_ylim()) for axes in figure.draw(dataset).axes if ("k " in axes.get_title()) == tables}
        for dataset in (finished, wild)
        for tables in (True, False)
    ]
    assert limits[0] == limits[2]
    assert len(limits[0]) == 1
    assert max(limits[3])[1] == figure.HIGHEST


SHARES = Shares(0.2, 0.3), Shares(0.1, 0.6)
BACK = Shares(0.5, None), Shares(0.9, None)


def _of_two(monkeypatch, verdicts, powers=SHARES, backs=BACK):
    """The ruling on a table that three optimizers need, of which two were run."""
    made = {
        name: Finding("flat", "steep", verdict, "numbers", power, back)
        for name, verdict, power, back in zip(("sgd", "adamw"), verdicts, powers, backs, strict=True)
    }
    monkeypatch.setattr(coordinate_check, "judge_flat", lambda dataset, name, table: made[name])
    run = xr.Dataset(coords={"optimizer": list(made)}, attrs={"block_depth": 2, "activation": "linear"})
    return [coordinate_check.judge_tables(run, names) for names in (("sgd", "adamw"), ("sgd", "adamw", "muon"))]


def test_what_holds_for_those_that_were_run_is_not_yet_true_of_all(monkeypatch):
    run, all_three = _of_two(monkeypatch, [Verdict.CONFIRMED, Verdict.CONFIRMED])
    assert (run.verdict, all_three.verdict) == (Verdict.CONFIRMED, Verdict.INCONCLUSIVE)
    assert all_three.evidence.startswith("2 of 3 optimizers: sgd CONFIRMED: numbers")
    run, all_three = _of_two(monkeypatch, [Verdict.REFUTED, Verdict.CONFIRMED])
    assert (run.verdict, all_three.verdict) == (Verdict.REFUTED, Verdict.REFUTED)


def test_one_optimizer_refutes_a_table_and_all_of_them_its_rival(monkeypatch):
    run, all_three = _of_two(monkeypatch, [Verdict.CONFIRMED, Verdict.CONFIRMED])
    assert (run.power, run.power_of_rival) == (Shares(0.1, 0.6), Shares(0.9, None))
    assert (all_three.power, all_three.power_of_rival) == (Shares(0.1, 0.6), "none: muon not run")
    lost = (SHARES[0], "none: lost"), (BACK[0], "none: lost")
    run, _ = _of_two(monkeypatch, [Verdict.CONFIRMED, Verdict.REFUTED], *lost)
    assert (run.power, run.power_of_rival) == (SHARES[0], "adamw: none: lost")


def test_a_table_and_its_rival_are_told_in_either_direction(monkeypatch):
    """Each optimizer says its own verdict, which is the opposite where claim and rival are exchanged."""
    run, _ = _of_two(monkeypatch, [Verdict.CONFIRMED, Verdict.REFUTED])
    assert run.evidence == "2 of 2 optimizers: sgd CONFIRMED: numbers; adamw REFUTED: numbers"
    assert run.evidence_of_rival == "2 of 2 optimizers: sgd REFUTED: numbers; adamw CONFIRMED: numbers"


def _mean_square_skewness(slopes):
    """Over (number, draw), in units of what as many Gaussian draws show."""
    draws = slopes.shape[1]
    gaussian = 6 * (draws - 2) / ((draws + 1) * (draws + 3))
    return np.mean(skew(slopes, axis=1) ** 2) / gaussian


def test_slopes_of_logarithms_are_gaussian(finished):
    """So that bands count all draws as degrees of freedom; a skewness of 0.6 in each number would show (control)."""
    slopes = []
    for direction, number in product(DIRECTIONS, watched(finished)):
        at = finished[f"{number.variable}_by_{direction}"].sel(optimizer="muon", table="many", **number.selection)
        logs = np.log(at.transpose(direction, "draw").values)
        slopes.append(np.polyfit(np.log(finished[direction].values), logs, 1)[0])
    slopes = np.array([of_number for of_number in slopes if of_number.std() > coordinate_check.ROUNDING])
    assert len(slopes) > 20
    assert _mean_square_skewness(slopes) < 1.6
    standard = (slopes - slopes.mean(1, keepdims=True)) / slopes.std(1, keepdims=True)
    assert _mean_square_skewness(np.exp(0.2 * standard)) > 1.6  # log-normal numbers


def test_the_epsilon_of_soap_is_an_option_that_the_report_names(tmp_path):
    """Gradients are of rank four: what momenta have beside them is divided by epsilon alone, and grows as it falls."""
    sizes = ["--widths", "16", "24", "32", "--depths", "1", "2", "3", "--width", "16", "--depth", "1", "--draws", "2"]
    arguments = [*sizes, "--optimizers", "soap", "muon", "--tables", "many", "--steps", "3", "--workers", "1"]
    usual, same, small = (
        finished_run(simulation, [*arguments, *given], tmp_path / f"{number}.nc")
        for number, given in enumerate(([], ["--soap-epsilon", "0.002"], ["--soap-epsilon", "1e-8"]))
    )
    for run, words in ((usual, "0.002"), (same, "0.002"), (small, "1e-08")):
        assert f"SOAP's epsilon {words} in the base model" in simulation.document(run).text()
    moved, alike, grown = (
        run["feature_update_norm_by_width"].sel(place="last").isel(step=-1) for run in (usual, same, small)
    )
    np.testing.assert_array_equal(moved, alike)
    np.testing.assert_array_equal(moved.sel(optimizer="muon"), grown.sel(optimizer="muon"))
    assert float(grown.sel(optimizer="soap").max()) > 100 * float(moved.sel(optimizer="soap").max())


def test_plain_nets_neither_decay_nor_have_epsilons_that_matter():
    """By the hyperparameters that nets are trained with, which is all that the option changes."""

    def values(*words):
        options = simulation.parse(["--preset", "smoke", "--optimizers", "adamw", *words])
        return coordinate_check.values_of(options, "adamw", "many", 64, 2)

    acting, plain = values(), values("--plain")
    assert plain != acting
    for role, given in acting.items():
        assert given["weight_decay"] * given["learning_rate"] > 1e-3
        assert plain[role].get("weight_decay", 0.0) == 0.0
        assert plain[role]["adamw_epsilon"] < 1e-6 * given["adamw_epsilon"] * 10
    assert acting["output"]["learning_rate"] > 10 * plain["output"]["learning_rate"]


# Worlds in which claims of this study get another verdict: their negative controls.


def _all_flat(claim):
    """Everything that a coordinate check watches is the same at all sizes, in every draw nearly alike."""

    def control(runs):
        (run,) = CLAIMS[claim].runs
        dataset = runs[run]
        names = [f"{name}_by_{way}" for name in WATCHED for way in DIRECTIONS]
        level = 1 + ERROR * np.cos(dataset["draw"])
        return {run: dataset.assign({name: (0 * dataset[name] + 1) * level for name in names})}

    return control


CONTROLS = {
    "S5a": runs_off("S5a", "feature_norm", "feature_update_norm"),
    "S5b": _all_flat("S5b"),
    "S5h": runs_off("S5h", "feature_norm", "feature_update_norm"),
    "S5i": runs_off("S5i", "feature_norm"),
    "S5l": _all_flat("S5l"),
    "S8": runs_off("S8", "stable_rank"),
}
