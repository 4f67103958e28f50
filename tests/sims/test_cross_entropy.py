"""The command on losses: verdicts and what overturns them, files, refusals."""

import pytest
import xarray as xr

from figures import cross_entropy as figure
from meanfield.verification.verdicts import Verdict
from sims import cross_entropy as claims
from sims.cross_entropy import STUDY as simulation
from tests.sims.claim_controls import ERROR, put
from tests.sims.commands import finished_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    sizes = ["--depths", "1", "2", "4", "--width", "96", "--channels", "32", "--draws", "256", "--workers", "1"]
    return finished_run(simulation, sizes, tmp_path_factory.mktemp("loss") / "run.nc")


def test_verdicts(finished):
    assert claims.judge_label_term(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_prefactor(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_exponent(finished).verdict is Verdict.CONFIRMED
    assert claims.judge_error(finished, "mup").verdict is Verdict.CONFIRMED
    assert claims.judge_error(finished, "he").verdict is Verdict.REFUTED
    assert claims.judge_error_of_paper_head(finished).verdict is Verdict.REFUTED
    assert len(claims.findings(finished)) == len(claims.JUDGES)


def test_a_label_term_without_the_right_prefactor_is_refuted(finished):
    """Negative control: classes weighted by C instead of C - 1."""
    loss = xr.where(finished["loss"] == "cross_entropy", 10 / 9, 1.0)
    wrong = {f"label_term{end}": finished[f"label_term{end}"] * loss**5 for end in ("", "_stderr")}
    assert claims.judge_label_term(finished.assign(wrong)).verdict is Verdict.REFUTED


def test_exponents_half_apart_are_refuted(finished):
    """Negative control: cross-entropy whose eta* falls steeper by 1/2."""
    steeper = xr.where(finished["loss"] == "cross_entropy", finished["depth"].astype(float), 1.0)
    wrong = {f"update_energy{end}": finished[f"update_energy{end}"] * steeper for end in ("", "_stderr")}
    assert claims.judge_exponent(finished.assign(wrong)).verdict is Verdict.REFUTED


def test_a_softmax_that_is_not_uniform_is_seen(finished):
    """Negative control: the heads exchanged."""
    heads = finished["head"].values[::-1]
    swapped = finished.assign(
        {
            f"output_error{end}": finished[f"output_error{end}"].sel(head=heads).assign_coords(head=finished["head"])
            for end in ("", "_stderr")
        }
    )
    assert claims.judge_error(swapped, "mup").verdict is Verdict.REFUTED


def test_figure_shows_the_numbers(finished):
    _, ratios, errors = figure.draw(finished).axes
    assert ratios.lines[-1].get_ydata()[0] == pytest.approx(1 / 3)
    assert errors.lines[-1].get_ydata()[0] == pytest.approx(0.9)


# Worlds in which claims of this study get another verdict: their negative controls.


def softmax_of_order_one(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": put(dataset, "output_error", 1.0, head="mup")}


def uniform_softmax(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": put(dataset, "output_error", 1 - 1 / dataset.attrs["classes"], head="fan_in")}


def losses_half_a_power_apart(runs):
    """eta* under cross-entropy falls by half a power of the depth faster than under squared loss, in all nets alike."""
    dataset, name = runs["cross_entropy"], "update_energy"
    squared = dataset[name].sel(loss="squared")
    dataset = put(dataset, name, squared * dataset["depth"], loss="cross_entropy")
    return {"cross_entropy": dataset.assign({f"{name}_stderr": ERROR * dataset[name]})}


CONTROLS = {
    "A18a": softmax_of_order_one,
    "A18b": uniform_softmax,
    "A18c": losses_half_a_power_apart,
}
