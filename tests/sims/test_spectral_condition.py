"""The command on the spectral conditions: verdicts, controls, files, refusals."""

import numpy as np
import pytest
import xarray as xr

from meanfield.verification.verdicts import Verdict
from sims import spectral_condition as claims
from sims.claims.catalogue import CLAIMS
from sims.common.blocks import gaussian_norm, limit_norm
from sims.spectral_condition import STUDY as simulation
from tests.sims.claim_controls import ERROR, runs_off
from tests.sims.commands import finished_run, without_figure

LADDERS = ["--widths", "32", "64", "128", "--depths", "2", "4", "8", "16", "--width", "32", "--depth", "2"]


@pytest.fixture(scope="module", params=[1, 2])
def finished(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("spectral") / "run.nc"
    options = ["--optimizers", "adamw", "muon", "--block-depth", str(request.param), "--draws", "40"]
    return finished_run(simulation, [*options, *LADDERS, "--workers", "1"], path)


def verdict_of(dataset, words):
    return next(finding.verdict for finding in claims.findings(dataset) if words in finding.claim)


def test_verdicts(finished):
    assert verdict_of(finished, "first-order") is Verdict.CONFIRMED
    assert verdict_of(finished, "C2.1") is Verdict.CONFIRMED
    assert verdict_of(finished, "F.1") is not Verdict.REFUTED
    higher = [finding for finding in claims.findings(finished) if "higher order" in finding.claim]
    assert len(higher) == (claims.block_depth(finished) > 1)


def test_products_off_by_a_root_of_depth_are_refuted(finished):
    """Negative control: the learning rate of the other condition."""
    name = "update_product_by_depth"
    tilted = finished.assign({name: finished[name] * finished["depth"] ** 0.5})
    assert verdict_of(tilted, "first-order") is Verdict.REFUTED
    assert verdict_of(tilted, "C2.1") is Verdict.REFUTED


def test_features_of_rectified_blocks_grow_where_linear_ones_do_not(tmp_path):
    """k = 1 with ReLU behind every matrix: a positive mean is added L times, and L^(-1/2) does not hold it."""
    sizes = ["--widths", "16", "24", "32", "--depths", "4", "16", "64", "--width", "32", "--depth", "2"]
    arguments = ["--optimizers", "adamw", *sizes, "--block-depth", "1", "--draws", "12", "--workers", "1"]
    slopes = {}
    for activation in ("linear", "relu"):
        dataset = finished_run(simulation, [*arguments, "--activation", activation], tmp_path / f"{activation}.nc")
        (slopes[activation],) = (row.slope for row in claims.feature_rows(dataset) if row.direction == "depth")
    assert abs(slopes["linear"].plain) < 0.1
    assert slopes["relu"].plain > 0.4


def test_updates_of_several_steps_are_no_identity(tmp_path):
    sizes = ["--widths", "8", "16", "32", "--depths", "1", "2", "4", "--width", "8", "--depth", "1"]
    arguments = ["--optimizers", "muon", *sizes, "--draws", "3", "--workers", "1"]
    once, thrice = (
        finished_run(simulation, [*arguments, "--steps", steps], tmp_path / f"{steps}.nc") for steps in ("1", "3")
    )
    name = "update_product_by_width"
    product = {"update_product_name": "a_0 |dW_0|", "optimizer": "muon"}
    assert float(once[name].sel(product).std("draw").max()) < 1e-9
    ratio = thrice[name].sel(product) / once[name].sel(product)
    assert float(ratio.min()) > 1
    assert float(ratio.max()) <= 3 + 1e-9
    assert float(ratio.std("draw").max()) > 1e-4
    assert "an identity" in claims.judge_group(once, "C2.1").evidence
    assert "an identity" not in claims.judge_group(thrice, "C2.1").evidence
    assert "an identity" not in claims.judge_group(once, "C1").evidence


def test_gaussian_norms_are_those_of_drawn_matrices():
    rng = np.random.default_rng(0)
    for shape in ((64, 64), (128, 16), (1, 200), (64, 256)):
        drawn = [np.linalg.norm(rng.normal(size=shape), 2) for _ in range(200)]
        scale = np.sqrt(shape[1] / shape[0])
        assert gaussian_norm(*shape) == pytest.approx(scale * np.mean(drawn), rel=0.01)
    assert limit_norm(64, 16) == pytest.approx(np.sqrt(16 / 64) * 8)


def test_biases_meet_their_condition(tmp_path, capsys):
    path = tmp_path / "run.nc"
    arguments = ["--preset", "smoke", "--biases", "--optimizers", "adamw", *LADDERS, "--draws", "12", "--workers", "1"]
    assert without_figure(simulation, [*arguments, "--full"], path) == 0
    assert "a_l |W^(2)| |db^(1)|" in capsys.readouterr().out
    with xr.open_dataset(path, engine="netcdf4") as stored:
        rows = {(row.name, row.direction): row.slope for row in claims.update_rows(stored.load())}
    expected = (("a_l |db^(2)|", "depth", -1), ("a_l |db^(2)|", "width", 0), ("a_0 |db_0|", "depth", 0))
    for name, direction, exponent in expected:
        assert rows[name, direction].settled == pytest.approx(exponent, abs=1e-6)


# Worlds in which claims of this study get another verdict: their negative controls.


def features_stay(runs):
    """|h_L| of nets with ReLU is the same at all sizes, but for small differences between draws."""
    (run,) = CLAIMS["S2b"].runs
    dataset = runs[run]
    flat = {f"feature_norm_by_{way}": 0 * dataset[f"feature_norm_by_{way}"] + 1 for way in ("width", "depth")}
    noise = 1 + ERROR * np.random.default_rng(0).normal(size=flat["feature_norm_by_depth"].shape)
    flat["feature_norm_by_depth"] = flat["feature_norm_by_depth"] * noise
    return {run: dataset.assign(flat)}


CONTROLS = {
    "S1": runs_off("S1", "weight_product"),
    "S2a": runs_off("S2a", "weight_product"),
    "S2b": features_stay,
    "S4": runs_off("S4", "weight_product"),
    "S6": runs_off("S6", "weight_alignment", "update_alignment"),
}
