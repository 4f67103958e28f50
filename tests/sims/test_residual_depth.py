"""The command on residual nets: slopes, verdicts, files, refusals."""

import numpy as np
import pytest

from meanfield.theory.laws import log_path_sum_scale
from meanfield.verification.verdicts import Verdict
from sims import residual_depth as claims
from sims.residual_depth import STUDY as simulation
from tests.sims.claim_controls import SCALE, put


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("residual_depth")


def test_verdicts(finished):
    assert claims.judge_theory(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_block_depth(finished).verdict is Verdict.REFUTED
    assert claims.judge_effective_depth(finished).verdict is Verdict.REFUTED
    assert claims.judge_path_sum(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_exponent(finished, "multiplier_sqrt", 1, -1.5, "").verdict is Verdict.REFUTED
    assert claims.judge_exponent(finished, "multiplier_linear", 2, 1.0, "").verdict is Verdict.CONFIRMED
    assert len(claims.JUDGES.findings(finished)) == len(claims.JUDGES)


def test_far_slopes_are_the_law():
    """Further up than in the run that all tests share."""
    plan = simulation.checked(simulation.parse(["--preset", "smoke"]))
    for net in (net for net in plan["nets"] if net.scaling in claims.SCALED):
        slope = claims._local_slope(net, "label_learning_rate_scale", 400)
        assert slope == pytest.approx(claims.residual_exponent(net.scaling, net.block_depth), abs=0.02)


def test_slopes_of_another_scaling_are_refuted(finished):
    """Negative control: initialisation and multiplier exchanged, in theory alone."""
    name = "log_label_learning_rate_scale_theory"
    scaling = {"init": "multiplier_sqrt", "multiplier_sqrt": "init"}
    order = [scaling.get(drawn, drawn) for drawn in map(str, finished["scaling"].values)]
    swapped = finished[name].sel(scaling=order).assign_coords(scaling=finished["scaling"])
    assert claims.judge_theory(finished.assign({name: swapped})).verdict is Verdict.REFUTED


def test_a_true_minus_three_halves_is_not_refuted(finished):
    """Negative control: scales that do fall as K^(-3/2)."""
    at = finished["label_learning_rate_scale"].sel(activation="relu", block_depth=1, scaling="init")
    drawn = finished["label_learning_rate_scale"].copy()
    right = at[0] * (finished["blocks"] / finished["blocks"][0]) ** -1.5
    drawn.loc[{"activation": "relu", "block_depth": 1, "scaling": "init"}] = right.values
    finding = claims.judge_exponent(finished.assign(label_learning_rate_scale=drawn), "init", 1, -1.5, "")
    assert finding.verdict is not Verdict.REFUTED


# Worlds in which claims of this study get another verdict: their negative controls.


def _residual(runs, exponent, **net):
    """Scales of one residual net that fall as a power of the blocks."""
    dataset = runs["residual_depth"]
    place = {"activation": "relu", **net}
    first = float(dataset[SCALE].sel(place)[0])
    return put(dataset, SCALE, first * (dataset["blocks"] / dataset["blocks"][0]) ** exponent, **place)


def initialisation_as_printed(runs):
    return {"residual_depth": _residual(runs, -1.5, block_depth=1, scaling="init")}


def multiplier_as_printed(runs):
    return {"residual_depth": _residual(runs, -1.5, block_depth=1, scaling="multiplier_sqrt")}


def blocks_count_as_layers(runs):
    dataset = runs["residual_depth"]
    layers = dataset["backbone_layers"]
    for block_depth in dataset["block_depth"].values:
        dataset = _residual({"residual_depth": dataset}, -1.0, block_depth=block_depth, scaling="init")
    claimed = -1.5 * layers / layers.sum(layers.dims[1])
    slope = dataset["backbone_slope"]
    return {"residual_depth": dataset.assign(backbone_slope=(0 * slope + claimed.values))}


def path_sum_is_right(runs):
    dataset = runs["residual_depth"]
    place = {"activation": "relu", "block_depth": 1, "scaling": "init"}
    rule = np.exp(log_path_sum_scale(dataset["blocks"].values))
    return {"residual_depth": put(dataset, SCALE, rule, **place)}


CONTROLS = {
    "A13": initialisation_as_printed,
    "A14": multiplier_as_printed,
    "A15": blocks_count_as_layers,
    "A22": path_sum_is_right,
}
