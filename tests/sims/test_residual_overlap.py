"""The command on overlaps in residual nets: tables, verdicts, files, refusals."""

import pytest
import xarray as xr

from meanfield.verification.verdicts import Verdict
from sims import residual_overlap as claims
from sims.residual_overlap import STUDY as simulation
from tests.sims.commands import finished_run


def _finished(path, *arguments):
    return finished_run(simulation, [*arguments, "--workers", "1"], path)


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("residual_overlap")


def test_verdicts(finished):
    for judge in (claims.judge_one_block, claims.judge_mean_law, claims.judge_one_unit):
        assert judge(finished).verdict is Verdict.CONFIRMED


def test_gates_that_are_ignored_are_refuted(finished):
    """Negative controls: the rivals of the first two claims put in their place."""
    wrong = finished.assign(gated_overlap_below=finished["ungated_below"])
    assert claims.judge_one_block(wrong).verdict is Verdict.REFUTED
    law = finished["overlap"] - finished["overlap_excess"]
    faster = law * finished["growth_ungated"] / finished["growth"]
    wrong = finished.assign(overlap_excess=finished["overlap"] - faster)
    assert claims.judge_mean_law(wrong).verdict is Verdict.REFUTED


def test_a_block_that_adds_a_fifth_too_much_is_refuted(finished):
    below = finished["overlap_below"]
    wrong = finished.assign(gated_overlap_below=below + 1.2 * (finished["gated_overlap_below"] - below))
    assert claims.judge_one_block(wrong).verdict is Verdict.REFUTED


def test_directions_that_begin_apart_are_refuted(finished):
    wrong = finished.assign(overlap=finished["overlap"].where(finished["across"] == 0, 0.0))
    assert claims.judge_one_unit(wrong).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("power", "error", "verdict"),
    [(-1.0, 0.02, Verdict.CONFIRMED), (0.0, 0.02, Verdict.REFUTED), (-1.0, 1.0, Verdict.INCONCLUSIVE)],
)
def test_epsilon_is_judged_by_its_slope_in_the_width(finished, power, error, verdict):
    width = finished["width"].astype(float)
    value = 0.1 * width**power * xr.ones_like(finished["gate_deviation_by_width"])
    made = finished.assign(gate_deviation_by_width=value, gate_deviation_stderr_by_width=error * value)
    made = made.assign_attrs(draws=2048)
    finding = claims.judge_vanishing_deviation(made)
    assert finding.verdict is verdict
    assert ("not resolved" in finding.evidence) == (error == 1.0)
    assert ("about 33,000 needed (2,048 made)" in finding.evidence) == (error == 1.0)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.CONFIRMED), (0.0, Verdict.REFUTED)])
def test_epsilon_of_two_units_is_held_against_its_law(finished, factor, verdict):
    """On made means, with errors of a twentieth: the run's own draws leave it open."""
    law = finished["gate_deviation_law"]
    made = finished.assign(gate_deviation=factor * law, gate_deviation_stderr=0.05 * law)
    assert claims.judge_deviation_law(made).verdict is verdict
    assert claims.judge_deviation_law(finished).verdict is Verdict.INCONCLUSIVE


def test_linear_nets_have_no_epsilon(tmp_path, capsys):
    arguments = ["--activation", "linear", "--scaling", "multiplier_sqrt", "--tail", "1"]
    dataset = _finished(tmp_path / "run.nc", "--depth", "3", "--width", "8", "--draws", "1024", *arguments)
    findings = claims.findings(dataset)
    assert [finding.verdict for finding in findings] == [Verdict.CONFIRMED] * 3
    assert "n epsilon" not in capsys.readouterr().out
    assert (dataset["growth"] <= dataset["growth_bound"]).where(dataset["growth"].notnull(), True).all()


def test_printed_report(tmp_path, capsys):
    arguments = ["--preset", "smoke", "--draws", "64", "--block-depth", "2", "--stem", "0", "--pair", "1,1:2,3"]
    _finished(tmp_path / "run.nc", *arguments, "--full")
    printed = capsys.readouterr().out
    for words in ("1,1:2,3", "block_depth 2", "T + (c/K) T~", "e^(cq) bound", "n = 8", "Verdicts", "run.png"):
        assert words in printed
    assert "directions of one unit" not in printed


# Worlds in which claims of this study get another verdict: their negative controls.


def ungated_blocks(runs):
    dataset = runs["residual_overlap"]
    return {"residual_overlap": dataset.assign(gated_overlap_below=dataset["ungated_below"])}


CONTROLS = {
    "A12": ungated_blocks,
}
