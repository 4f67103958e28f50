"""The command on overlaps: tables, verdicts, files, refusals."""

import numpy as np
import pytest

from meanfield.verification.verdicts import Verdict
from sims import overlap_recursion as claims
from sims.overlap_recursion import STUDY as simulation
from tests.sims.claim_controls import ERROR
from tests.sims.commands import without_figure


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("overlap_recursion")


def test_verdicts(finished):
    assert claims.judge_square(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_conditional_mean(finished).verdict is Verdict.REFUTED
    assert claims.judge_added_variance(finished).verdict is Verdict.CONFIRMED


def test_a_recursion_off_by_a_fifth_is_refuted(finished):
    """Negative control."""
    wrong = finished.assign(squared_overlap_exact=1.2 * finished["squared_overlap_exact"])
    assert claims.judge_square(wrong).verdict is Verdict.REFUTED


def test_a_conserved_conditional_mean_would_not_be_refuted(finished):
    """Negative control: hand the gated overlap to the claim as if it were the overlap at the fixed layer."""
    at = finished["layer"] == finished.attrs["fixed_layers"]
    right = finished.assign(overlap_given=finished["overlap_given"].where(~at, finished["gated_overlap_given"]))
    assert claims.judge_conditional_mean(right).verdict is not Verdict.REFUTED


def test_a_variance_that_falls_as_the_root_is_refuted(finished):
    widths = finished["width_above"] / finished["width_above"][0]
    names = ["overlap_variance_by_width", "overlap_variance_stderr_by_width"]
    wrong = finished.assign({name: finished[name] * widths**0.5 for name in names})
    assert claims.judge_added_variance(wrong).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("square", "verdict"),
    [
        (lambda layer: np.exp(0.2 * layer), Verdict.REFUTED),
        (lambda layer: layer, Verdict.REFUTED),
        (lambda layer: np.exp(-1 / layer), Verdict.CONFIRMED),
        (lambda layer: 1 + 0 * layer, Verdict.CONFIRMED),
        (lambda layer: np.exp(0.2 * np.log(layer) - 1 / layer), Verdict.INCONCLUSIVE),
    ],
)
def test_no_bound_survives_a_rise_in_proportion_to_depth(finished, square, verdict):
    """Powers of the layer have no bound either; what is met as 1/l has, and little beyond that is undecided."""
    values = square(finished["layer"].astype(float)) + 0 * finished["squared_overlap"]
    made = {"squared_overlap": values, "squared_overlap_exact": np.exp(0.2 * finished["layer"]) + 0 * values}
    made["squared_overlap_stderr"] = 0.004 * values
    assert claims.judge_uniform_bound(finished.assign(made)).verdict is verdict
    assert claims.judge_uniform_bound(finished.sel(layer=[1, 2])).verdict is Verdict.INCONCLUSIVE


def test_printed_report(tmp_path, capsys):
    arguments = ["--preset", "smoke", "--draws", "64", "--workers", "1", "--pair", "1,1:2,3", "--pair", "2,1:2,2"]
    assert without_figure(simulation, [*arguments, "--full"], tmp_path / "run.nc") == 0
    printed = capsys.readouterr().out
    for words in ("1,1:2,3", "2,1:2,2", "mean T^2", "Layers 1 .. 2", "C = 128", "Verdicts", "run.png"):
        assert words in printed


# Worlds in which claims of this study get another verdict: their negative controls.


def squares_stay_as_they_begin(runs):
    dataset, name = runs["overlap_recursion"], "squared_overlap"
    second = dataset[name].isel(layer=1, drop=True) + 0 * dataset[name]
    return {"overlap_recursion": dataset.assign({name: second, f"{name}_stderr": ERROR * second})}


CONTROLS = {
    "A11b": squares_stay_as_they_begin,
}
