"""Reports that lose a row, a judge or a part to numbers that make none: the rest is printed, and the reason."""

import json
from argparse import Namespace
from functools import partial

import numpy as np
import pytest
import xarray as xr

from meanfield.common import fit_power_law
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Judges, Ruling
from meanfield.verification.verdicts import Verdict
from sims.claims.runs import Evidence, judged
from sims.common.report import Report
from sims.common.results import Results
from sims.common.tables import row_or_reason, rows, table

JUDGES = Judges()
REASON = "a power law needs positive finite stderr"


@JUDGES.decide(
    claim="{family}: the slope is {claimed:.2f}",
    rival="it is not",
    measured="the slope of {family}",
    cases=[{"family": "mlp"}, {"family": "loop"}],
)
def judge_slope(dataset, family):
    error = dataset["error"].sel(family=family).values
    law = fit_power_law(dataset["size"].values, dataset["y"].sel(family=family).values, error)
    return Ruling(Verdict.CONFIRMED, f"slope {law.exponent:.2f}", {"claimed": law.exponent}, "exact: all")


@pytest.fixture
def dataset():
    """Two families over three sizes, of which one has no errors."""
    sizes = np.array([1.0, 2.0, 4.0])
    values = {"y": (("family", "size"), [sizes, sizes]), "error": (("family", "size"), [0.1 * sizes, 0 * sizes])}
    return xr.Dataset(values, {"family": ["mlp", "loop"], "size": sizes}, {"draws": 4, "run": "key"})


def slope_of(at):
    return [f"{fit_power_law(at['size'].values, at['y'].values, at['error'].values).exponent:.2f}"]


def _slope_table(dataset):
    return table(["family", "slope"], rows(dataset, ["family"], slope_of), "Slopes")


def _steep_part(dataset):
    return f"Steep: {fit_power_law(dataset['size'].values, dataset['y'].values[1], dataset['error'].values[1])}"


def _sizes(dataset):
    return "Sizes: 1 to 4"


REPORT = {"question": "Is it so?", "heading": "Heading", "parts": [_slope_table, _steep_part, _sizes]}


def test_one_judge_without_numbers_leaves_the_others_their_verdicts(dataset):
    """Its sentences stand without the words that it has not said."""
    known, lost = JUDGES.findings(dataset)
    assert (known.verdict, known.claim) == (Verdict.CONFIRMED, "mlp: the slope is 1.00")
    assert (lost.verdict, lost.claim) == (Verdict.INCONCLUSIVE, "loop: the slope is ?")
    assert lost.evidence.startswith(f"no verdict: {REASON}")
    assert lost.power == "none: no verdict"


def test_a_fault_of_a_judge_is_no_verdict(dataset):
    with pytest.raises(KeyError, match="y"):
        judge_slope(dataset.drop_vars("y"), "mlp")


def test_claims_are_judged_beside_one_that_cannot_be(dataset):
    def claim(family):
        words = dict.fromkeys(("source", "statement", "printed", "hypotheses"), "words")
        return Claim(
            id=family, kind=Kind.READING, checks=checks("simulation", lambda made: judge_slope(made, family)), **words
        )

    made = {"simulation": Evidence("simulation", "", None, dataset)}
    results = [judged(claim(family), made) for family in ("loop", "mlp")]
    assert [result.verdict for result in results] == [Verdict.INCONCLUSIVE, Verdict.CONFIRMED]


def test_rows_and_parts_that_cannot_be_made_say_why_and_the_others_stand(dataset):
    printed = Report(**REPORT, findings=JUDGES.findings, answer=lambda *_: "Yes.").document(dataset).text()
    assert printed.startswith("Question: Is it so?\nAnswer:   Yes.")
    lines = printed.splitlines()
    assert "   mlp   1.00" in lines
    assert any(line.startswith(f"loop: {REASON}") for line in lines)
    assert f"steep part: cannot be made of these numbers: {REASON}" in printed
    assert "Sizes: 1 to 4" in lines


def test_an_answer_or_findings_that_cannot_be_made_leave_the_tables(dataset):
    def fails(*_):
        raise ZeroDivisionError("nothing to divide by")

    printed = Report(**REPORT, findings=fails, answer=lambda *_: "Yes.").document(dataset).text()
    assert "Verdicts: cannot be made of these numbers: nothing to divide by" in printed
    printed = Report(**REPORT, findings=JUDGES.findings, answer=fails).document(dataset).text()
    assert "Answer:   answer: cannot be made of these numbers: nothing to divide by" in printed
    assert "Sizes: 1 to 4" in printed


def test_a_fault_of_a_report_is_an_error(dataset):
    def fails(*_):
        raise TypeError("a fault")

    with pytest.raises(TypeError, match="a fault"):
        Report(**REPORT, findings=JUDGES.findings, answer=fails).document(dataset).text()


def test_a_row_of_its_own_says_why_it_has_no_cells(dataset):
    mlp, loop = (row_or_reason(name, partial(slope_of, dataset.sel(family=name))) for name in ("mlp", "loop"))
    lines = table(["family", "slope"], [mlp, loop]).text().splitlines()
    assert lines[:-1] == table(["family", "slope"], [mlp]).text().splitlines()
    assert lines[-1].startswith(f"loop: {REASON}")


def test_a_dataset_is_on_disk_before_its_report_and_figure_are_made(dataset, tmp_path, capsys):
    """Both fail: the command ends well, says why, and where the dataset is."""
    options = Namespace(
        out=tmp_path / "run.nc", force=False, command="command", check_only=False, draws=4, full=True, format="text"
    )
    results = Results("name", "key", options)

    def fails(*_):
        assert (tmp_path / "run.nc").exists()
        raise ValueError("no line goes through it")

    assert results.deliver(lambda: dataset, fails, fails) == 0
    printed = capsys.readouterr().out
    assert "report: cannot be made of these numbers: no line goes through it" in printed
    assert f"dataset  {tmp_path / 'run.nc'}" in printed
    assert "figure   figure: cannot be made of these numbers: no line goes through it" in printed
    assert "page     there is no report to put on it" in printed
    assert json.loads(xr.load_dataset(tmp_path / "run.nc").attrs["provenance"])
