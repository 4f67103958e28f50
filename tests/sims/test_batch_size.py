"""The command on batch sizes: verdicts and what overturns them, files, refusals."""

import contextlib
import io

import numpy as np
import pytest
import xarray as xr

from figures import batch_size as figure
from meanfield.verification.verdicts import Verdict
from sims.batch_size import claims
from sims.batch_size.study import STUDY as simulation
from tests.sims.commands import assert_refused, without_figure


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on images of a file: what it has written, and what it has printed."""
    folder = tmp_path_factory.mktemp("batch")
    np.save(folder / "images.npy", np.random.default_rng(0).normal(size=(4, 1, 5, 4)))
    sizes = [
        "--width",
        "96",
        "--channels",
        "16",
        "--depth",
        "2",
        "--batches",
        "1",
        "4",
        "8",
        "32",
        "--draws",
        "128",
        "--workers",
        "1",
        "--image-grid",
        "5",
        "4",
    ]
    images = ["--images", str(folder / "images.npy")]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert without_figure(simulation, [*sizes, *images], folder / "run.nc") == 0
    with xr.open_dataset(folder / "run.nc", engine="netcdf4") as stored:
        return stored.load(), printed.getvalue()


@pytest.fixture
def finished(run):
    return run[0]


def test_verdicts(finished):
    assert claims.judge_enumeration(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_sampling(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_mean_field(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_printed(finished).verdict is Verdict.REFUTED
    assert claims.judge_square_root(finished).verdict is Verdict.REFUTED
    assert claims.judge_depth(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_output_share(finished).verdict is Verdict.REFUTED
    assert len(claims.findings(finished)) == len(claims.JUDGES)


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


def test_printed_report(run):
    for words in ("ConvNet, images, labels teacher", "with Cov/B", "muP head", "Law", "Verdicts", "run.png"):
        assert words in run[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batches", "1", "2"], "a fit to the larger of them needs three or more"),
        (["--batches", "0", "1", "2"], "--batches is 0"),
        (["--draws", "1"], "one draw"),
        (["--images", "none.npy"], "neither"),
        (["--image-grid", "0", "4"], "--image-grid is 0"),
        (["--outputs", "0"], "outputs is 0"),
    ],
)
def test_bad_input_gets_one_line(tmp_path, capsys, arguments, message):
    assert_refused(simulation, ["--preset", "smoke", *arguments], message, tmp_path, capsys)
