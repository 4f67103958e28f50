"""The coordinate check of GPT-like nets: nets under tables, numbers of the library, verdicts on made-up slopes."""

import numpy as np
import pytest
import xarray as xr

from figures import transformer_coordinate_check as figure
from meanfield.common import stream
from meanfield.simulation import TrainedFeatures
from sims import transformer_coordinate_check as study
from sims.claims.catalogue import CLAIMS
from sims.common.training_data import training_data
from sims.transformer_coordinate_check import STUDY as simulation
from sims.transformer_coordinate_check import WINDOWS
from tests.sims.claim_controls import many_draws
from tests.sims.commands import finished_run

SMALL = ["--preset", "smoke", "--widths", "16", "32", "48", "--depths", "1", "2", "3", "--tokens", "4"]
SMALL += ["--samples", "2", "--draws", "2", "--steps", "2", "--workers", "1", "--optimizers", "adamw"]
SIZES = {"tokens": 4, "inputs": 2}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(simulation, SMALL, tmp_path_factory.mktemp("gpt") / "run.nc")


def test_nets_have_what_tables_say():
    """At the base model all tables agree; away from it condition 3.1 has 1/r_L on branches and 1/r_n on outputs."""
    wide = study.net_under(study.values_of("adamw", "many", 128, 8), 128, 8, "layer", **SIZES)
    base = study.text_net(64, 8, "layer", **SIZES)
    assert [unit.multiplier for unit in wide.units] == [1.0] + [1 / 8] * 16
    assert wide.readout_unit.multiplier == 1 / 2
    for name, weight in wide.weights.items():
        factor = 1 / 2 if wide.role_of(name) == "hidden" else 1.0
        assert weight.variance == pytest.approx(factor * base.weights[name].variance)
    standard = study.net_under(study.values_of("adamw", "standard", 128, 8), 128, 8, "layer", **SIZES)
    assert {unit.multiplier for unit in standard.units[1:]} == {1 / 2}
    of_base = (
        study.net_under(study.values_of("adamw", table, 64, 2), 64, 2, "none", **SIZES) for table in ("one", "many")
    )
    assert len(set(of_base)) == 1


def test_numbers_are_those_of_the_library(finished):
    """A net under a table on windows that every draw takes for itself."""
    given = study.values_of("adamw", "one", 48, 1)
    net = study.net_under(given, 48, 1, "none", **SIZES)
    inputs, targets = training_data("text", net, samples=WINDOWS * 2, seed=0)
    of_draws = [
        TrainedFeatures(optimizer="adamw", hyperparameters=given, momentum=True, steps=2, inputs=x, targets=y)
        for x, y in _own_batches(inputs, targets)
    ]
    norms = [measure.draw(net, 0, range(2))["feature_norm"][draw] for draw, measure in enumerate(of_draws)]
    at = finished["feature_norm_by_width"].sel(normalisation="none", optimizer="adamw", table="one", width=48)
    np.testing.assert_allclose(at.sel(place="last"), [norm[:, -1] for norm in norms])
    np.testing.assert_allclose(at.sel(place="input"), [norm[:, 0] for norm in norms])


def _own_batches(inputs, targets):
    """What each of two draws trains on, in the order in which it takes it, alone."""
    for draw in range(2):
        own = stream(0, "batch", draw).permutation(len(inputs))[:2]
        yield inputs[own], targets[own]


@pytest.fixture
def made_up(finished):
    """|h_L| as the size^(power by table), one draw as another to a hundredth of the power, 32 draws."""

    def of_powers(**powers):
        dataset = finished.isel(draw=np.arange(32) % 2).assign_attrs(draws=32)
        noise = xr.DataArray(0.01 * np.random.default_rng(0).normal(size=32), dims="draw")
        names = dataset["table"].values
        power = xr.DataArray([powers[name] for name in names], {"table": names}, "table") + noise
        changed = {}
        for along in study.DIRECTIONS:
            values = dataset[f"feature_norm_by_{along}"]
            changed[values.name] = (0 * values + dataset[along] ** power).transpose(*values.dims)
        return study.findings(dataset.assign(changed))

    return of_powers


def test_growth_and_flatness_are_told_apart(made_up):
    def verdicts(**powers):
        return [str(finding.verdict) for finding in made_up(**powers)]

    assert verdicts(many=0.0, one=0.0, standard=1.0) == ["CONFIRMED"] * 6
    assert verdicts(many=1.0, one=1.0, standard=0.0) == ["REFUTED"] * 6
    assert verdicts(many=0.0, one=0.6, standard=0.4) == ["CONFIRMED", "CONFIRMED", "REFUTED"] * 2


def test_what_rises_and_falls_again_is_no_growth(finished):
    """A straight line through L^(-1) exp(-c / L) rises where c is large, and the limit falls."""
    dataset = finished.isel(draw=np.arange(32) % 2).assign_attrs(draws=32)
    depth, noise = dataset["depth"].astype(float), 0.01 * np.random.default_rng(0).normal(size=32)
    law = np.exp(-np.log(depth) - 4 * depth[0] / depth) * depth ** xr.DataArray(noise, dims="draw")
    values = dataset["feature_norm_by_depth"]
    dataset = dataset.assign({values.name: (0 * values + law).transpose(*values.dims)})
    slope = study.features_slope(dataset, "none", str(dataset["optimizer"][0].item()), "standard", "depth")
    assert slope.plain > study.GROWTH
    assert slope.settled < -0.9
    finding = study.judge_growth(dataset, "none", ("depth",))
    assert str(finding.verdict) == "INCONCLUSIVE"
    assert "as of no power of the size" in finding.evidence


def test_nets_that_leave_the_floats_are_not_flat_and_have_grown(finished):
    lost = finished.assign({name: np.inf + 0 * values for name, values in finished.data_vars.items()})
    by_table = ["REFUTED", "CONFIRMED", "REFUTED"]
    assert [str(finding.verdict) for finding in study.findings(lost)] == by_table * 2


def test_report_and_figure(finished):
    printed = simulation.document(finished).text()
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.partition(":")[0] for line in lines[:2]] == ["Question", "Answer"]
    assert not lines[2]
    drawn = figure.draw(finished).axes
    assert [axes.get_title() for axes in drawn] == ["LayerNorm"] * 2 + ["no normalisation"] * 2


# Worlds in which claims of this study get another verdict: their negative controls.


def _features_of_transformers(claim, power):
    """|h_L| of GPT-like nets goes as this power of width and depth under every table, in many draws nearly alike."""

    def control(runs):
        changed = {}
        for run in CLAIMS[claim].runs:
            dataset, spread = many_draws(runs[run])
            for along in ("width", "depth"):
                values = dataset[f"feature_norm_by_{along}"]
                powers = (0 * values + dataset[along] ** (power + spread)).transpose(*values.dims)
                dataset = dataset.assign({values.name: powers})
            changed[run] = dataset
        return changed

    return control


CONTROLS = {
    **{claim: _features_of_transformers(claim, 1.0) for claim in ("S11a", "S11c", "S11e", "S11f")},
    **{claim: _features_of_transformers(claim, 0.0) for claim in ("S11b", "S11d", "S11g")},
}
