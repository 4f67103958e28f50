"""The command on batch sizes: verdicts and what overturns them, files, refusals."""

import numpy as np
import pytest

from figures import batch_size as figure
from meanfield.verification.verdicts import Verdict
from sims.batch_size import claims
from sims.batch_size.__main__ import STUDY as simulation
from tests.sims.claim_controls import put
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run on images of a file."""
    folder = tmp_path_factory.mktemp("batch")
    np.save(folder / "images.npy", np.random.default_rng(0).normal(size=(4, 1, 5, 4)))
    sizes = ["--width", "96", "--channels", "16", "--depth", "2", "--batches", "1", "4", "8", "32", "--draws", "128"]
    sizes += ["--workers", "1", "--image-grid", "5", "4"]
    return finished_run(simulation, [*sizes, "--images", str(folder / "images.npy")], folder / "run.nc")


def test_verdicts(finished):
    assert claims.judge_enumeration(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_sampling(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_mean_field(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_printed(finished).verdict is Verdict.REFUTED
    assert claims.judge_square_root(finished).verdict is Verdict.REFUTED
    assert claims.judge_depth(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_output_share(finished).verdict is Verdict.REFUTED
    assert len(claims.findings(finished)) == len(claims.JUDGES)
    assert "ConvNet, images, labels teacher" in finished["case"]


def test_labels_shared_by_mistake_are_refuted(finished):
    """Negative control: terms as they would be if every sample of a batch had the same label."""
    share = finished["label_term_alike"] / finished["label_term_mean_field"]
    shared = {f"label_term{end}": finished[f"label_term{end}"] * share for end in ("", "_stderr")}
    assert claims.judge_mean_field(finished.assign(shared)).verdict is Verdict.REFUTED


def test_a_learning_rate_that_does_move_by_one_over_the_batch_is_not_refuted(finished):
    """Negative control: a label term that is flat up to 1/B."""
    at = {"case": claims.INDEPENDENT}
    changed = finished.copy(deep=True)
    for end in ("", "_stderr"):
        scale = float(finished["label_term"].sel(at)[0]) * (1 if not end else 0.02)
        changed[f"label_term{end}"].loc[at] = scale * (1 + 1 / finished["batch"].values)
    assert claims.judge_printed(changed).verdict is not Verdict.REFUTED
    assert claims.judge_printed(finished).verdict is Verdict.REFUTED


def test_a_floor_is_told_from_none(finished):
    """Negative control: terms that fall as 1/B leave no floor to confirm."""
    changed = finished.copy(deep=True)
    for name in (claims.WITH_MEAN, claims.TAUGHT):
        first = float(finished["label_term"].sel(case=name)[0])
        changed["label_term"].loc[{"case": name}] = first / finished["batch"].values
        changed["label_term_stderr"].loc[{"case": name}] = 0.01 * first / finished["batch"].values
    assert claims.judge_floor(changed).verdict is Verdict.REFUTED


def test_the_identity_without_its_correction_is_refuted(finished):
    wrong = finished.assign(enumerated_gap=finished["uncorrected_gap"])
    assert claims.judge_enumeration(wrong).verdict is not Verdict.CONFIRMED
    exchanged = {"sampled_energy_identity": finished["sampled_energy_limit"]}
    assert claims.judge_sampling(finished.assign(exchanged)).verdict is Verdict.REFUTED


def test_figure_shows_the_numbers(finished):
    scales, terms, _ = figure.draw(finished).axes
    at = finished.sel(case="linear MLP, rho 0, labels mean 0")
    np.testing.assert_allclose(scales.lines[0].get_ydata(), finished["batch"].values, rtol=1e-12)
    label = finished["label_term_mean_field"].sel(case=figure.SHARE)
    np.testing.assert_allclose(terms.lines[0].get_ydata(), label)
    assert float(at["other_sample"]) == pytest.approx(0, abs=1e-12)


# Worlds in which claims of this study get another verdict: their negative controls.


def no_correction_for_batches(runs):
    dataset = runs["batch_size"]
    return {"batch_size": dataset.assign(enumerated_gap=dataset["uncorrected_gap"])}


def batches_as_printed(runs):
    dataset = runs["batch_size"]
    name = "label_term"
    for case in map(str, dataset["case"].values):
        dataset = put(dataset, name, 0 * dataset[name].sel(case=case) + 1.0, case=case)
    return {"batch_size": dataset}


def no_floor(runs):
    """Label terms of all cases that fall as 1/B."""
    dataset, name = runs["batch_size"], "label_term"
    for case in map(str, dataset["case"].values):
        falling = dataset[name].sel(case=case).isel(batch=0) / dataset["batch"]
        dataset = put(dataset, name, falling.values, case=case)
    return {"batch_size": dataset}


CONTROLS = {
    "A9": no_correction_for_batches,
    "A10a": no_floor,
    "A10b": batches_as_printed,
}
