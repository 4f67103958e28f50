"""The command on orders of updates: verdicts, controls, files, refusals."""

import numpy as np
import pytest
import xarray as xr

from meanfield.verification.verdicts import Verdict
from sims import update_orders as claims
from sims.claims.catalogue import CLAIMS
from sims.update_orders import STUDY as simulation
from tests.sims.claim_controls import runs_off
from tests.sims.commands import finished_run, without_figure

LADDERS = ["--widths", "64", "128", "256", "--depths", "4", "8", "16", "32", "--width", "48", "--depth", "2"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("orders") / "run.nc"
    arguments = ["--optimizers", "muon", *LADDERS, "--draws", "24", "--steps", "4", "--workers", "1"]
    return finished_run(simulation, arguments, path)


def test_first_order_is_flat_and_second_order_is_not_under_the_other_table(finished):
    finding = claims.judge_order(finished, "muon", "many", 1, 1)
    assert finding.verdict is Verdict.CONFIRMED
    assert ", allowance 0.1; " in finding.evidence
    assert ", band " in finding.evidence
    row = claims.order_slope(finished, "muon", "one", "depth", 4, 2)
    assert row.plain + 5 * row.plain_stderr < -0.25
    assert len(claims.findings(finished)) == 8


def test_second_order_of_the_first_step_falls_with_width(finished):
    """(W_1 h) . (W_2^T delta) is the overlap of two independent vectors."""
    row = claims.order_slope(finished, "muon", "many", "width", 1, 2)
    assert abs(row.plain + 0.5) < 5 * row.plain_stderr


@pytest.mark.parametrize("exponent", [-0.5, 0.5])
def test_first_order_that_falls_or_grows_is_refuted(finished, exponent):
    """Negative controls: terms that lose or gain a root of the depth."""
    name = "order_norm_by_depth"
    tilted = finished.assign({name: finished[name] * finished["depth"] ** exponent})
    assert claims.judge_order(tilted, "muon", "many", 1, 1).verdict is Verdict.REFUTED


@pytest.mark.parametrize("exponent", [-0.25, 0.25])
def test_a_slope_between_claim_and_rival_confirms_neither(finished, exponent):
    """Two-sided: what grows is as far from flat as what falls."""
    name = "order_norm_by_depth"
    draws = 1 + 0.02 * np.cos(finished["draw"] + finished["depth"])
    between = finished.assign({name: (0 * finished[name] + finished["depth"] ** exponent) * draws})
    assert claims.judge_order(between, "muon", "many", 1, 1).verdict is not Verdict.CONFIRMED


def test_all_orders_are_judged_together(finished):
    finding = claims.judge_orders(finished)
    assert "6 slopes" in finding.evidence
    assert "k = 2: after the last step" in finding.claim
    name = "order_norm_by_width"
    tilted = finished[name].where(finished["order"] < 2, finished[name] * finished["width"] ** 2)
    assert claims.judge_orders(finished.assign({name: tilted})).verdict is Verdict.REFUTED


def test_optimizers_without_momentum_are_few(tmp_path):
    """AdamW and Lion take one step; so do Muon, Shampoo and SOAP. (Sophia does not clip where curvature is large.)"""
    sizes = ["--widths", "8", "16", "32", "--depths", "1", "2", "4", "--width", "8", "--depth", "1"]
    names = ["adamw", "lion", "muon", "shampoo", "soap"]
    arguments = ["--optimizers", *names, "--tables", "many", *sizes, "--draws", "2", "--steps", "2", "--workers", "1"]
    orders = finished_run(simulation, arguments, tmp_path / "run.nc")["order_norm_by_depth"]
    for first, others in (("adamw", ("lion",)), ("muon", ("shampoo", "soap"))):
        for other in others:
            np.testing.assert_allclose(orders.sel(optimizer=other), orders.sel(optimizer=first), rtol=1e-6, atol=1e-12)


def test_blocks_of_one_matrix_have_no_second_order(tmp_path, capsys):
    sizes = ["--widths", "16", "24", "32", "--depths", "1", "2", "3", "--width", "16", "--depth", "2"]
    arguments = ["--optimizers", "adamw", *sizes, "--block-depth", "1", "--draws", "2", "--steps", "2"]
    assert without_figure(simulation, [*arguments, "--workers", "1"], tmp_path / "run.nc") == 0
    printed = capsys.readouterr().out
    assert "adamw, k = 1 table, step 1: the terms of order 1" in printed
    assert "terms of order 2" not in printed


@pytest.mark.parametrize("block_depth", [2, 4])
def test_base_rates_fall_with_the_layers_of_a_block(block_depth, monkeypatch):
    seen = {}

    def asked_for_one(options, results, run_of, *_):
        run_of("sgd", "many", 8, 4)
        return xr.Dataset()

    monkeypatch.setattr(claims, "measure_ladders", asked_for_one)
    monkeypatch.setattr(claims, "run_under", lambda *_, **__: None)
    monkeypatch.setattr(claims, "hyperparameters", lambda *_, rates, **__: seen.update(rates))
    claims.measure(simulation.parse(["--optimizers", "sgd", "--block-depth", str(block_depth)]), None, {})
    assert seen["sgd"] == pytest.approx(0.4 * 2 / block_depth)


def test_an_optimizer_given_twice_is_one(tmp_path):
    sizes = ["--widths", "8", "16", "32", "--depths", "1", "2", "4", "--width", "8", "--depth", "1"]
    arguments = ["--optimizers", "muon", "muon", *sizes, "--draws", "4", "--steps", "2", "--workers", "1"]
    assert finished_run(simulation, arguments, tmp_path / "run.nc")["optimizer"].values.tolist() == ["muon"]


# Worlds in which claims of this study get another verdict: their negative controls.


def first_step_is_flat(runs):
    """Second-order terms of one step of one size, with signs that scatter."""
    (run,) = CLAIMS["S9"].runs
    dataset = runs[run]
    changed = {}
    for way in ("width", "depth"):
        name = f"order_norm_by_{way}"
        noise = 1 + 0.1 * np.random.default_rng(1).normal(size=dataset[name].shape)
        changed[name] = (0 * dataset[name] + 1) * noise
    return {run: dataset.assign(changed)}


CONTROLS = {
    "S3b": runs_off("S3b", "order_norm"),
    "S3c": runs_off("S3c", "order_norm"),
    "S9": first_step_is_flat,
}
