"""Tables and sections of a report: Markdown and HTML say the same."""

import re
from dataclasses import replace
from html import unescape

import pytest

from meanfield.verification import Finding, Verdict
from sims.claims.catalogue import CLAIMS
from sims.claims.forms import HEADER, Judgement, section_of, table_of
from sims.claims.runs import NOT_RUN
from sims.common.markup import Glossary, table_html
from sims.common.tables import Grid, table

FINDING = Finding("|law| < 1", "2 * law", Verdict.REFUTED, "worst 9 s.e.", "exact: a|b", measured="slopes & more")
JUDGEMENT = Judgement(
    CLAIMS["A3"], Verdict.REFUTED, [FINDING], {"recorded": "seed 0"}, {"run": "8 draws"}, ["3 REFUTED"]
)
FORMS = {
    "markdown": lambda part: part.markdown().replace("\\|", "|").replace("\\*", "*"),
    "html": lambda part: unescape(re.sub(r"<[^>]+>", " ", _html(part))),
}


def _html(part):
    return table_html(part, Glossary({})) if isinstance(part, Grid) else part.html(Glossary({}))


def _words(text):
    """Words alone: lines break where they may, and names begin with a capital in some forms."""
    return " ".join(text.split()).lower()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_section_says_what_the_verdict_rests_on(form):
    claim, said = JUDGEMENT.claim, _words(FORMS[form](section_of(JUDGEMENT)))
    expected = [claim.id, f"{claim.kind}: {claim.statement} ({claim.source})", claim.printed, claim.hypotheses]
    expected += [claim.replaced_by, claim.premise, FINDING.claim, "rival: 2 * law", "measured: slopes & more"]
    expected += ["numbers: worst 9 s.e.", "power: exact: a|b", "seeds: 3 REFUTED", "seed 0"]
    assert [words for words in expected if _words(words) not in said] == []
    assert said.count("refuted") >= 3
    assert "8 draws" in said


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_every_form_of_a_table_has_all_cells_and_marks_verdicts(form):
    grid = table_of([JUDGEMENT, replace(JUDGEMENT, claim=CLAIMS["A2"], verdict="not recorded")])
    said = _words(FORMS[form](grid))
    assert [words for row in (HEADER, *grid.rows) for words in row if _words(words) not in said] == []
    marked = {"markdown": r"\*\*(.+?)\*\*", "html": r'<span class="verdict refuted">(.+?)</span>'}[form]
    assert re.findall(marked, {"markdown": grid.markdown(), "html": _html(grid)}[form]) == ["REFUTED"]


def test_what_holds_instead_is_said_of_refuted_claims_alone():
    open_one = replace(JUDGEMENT, verdict=Verdict.INCONCLUSIVE)
    assert [row[-1] for row in table_of([JUDGEMENT, open_one]).rows] == [CLAIMS["A3"].replaced_by, ""]
    assert "premise that fails" not in section_of(open_one).markdown()


def test_open_claims_say_what_is_lacking():
    """By design what the claim says; else the most draws that a comparison asks for, where all that are open do."""
    by_design = Judgement(CLAIMS["S10s"], Verdict.INCONCLUSIVE, [FINDING])
    assert table_of([by_design]).rows[0][-1] == CLAIMS["S10s"].undecided != ""
    few, many = (replace(FINDING, verdict=Verdict.INCONCLUSIVE, needed=need, made=16) for need in (20.0, 1900.0))
    claim = replace(CLAIMS["E4a"], undecided="")
    by_draws = Judgement(claim, Verdict.INCONCLUSIVE, [few, many, FINDING])
    assert table_of([by_draws]).rows[0][-1] == "draws: about 1,900 would decide, 16 are made"
    # 20 / 16 times 16 minutes, and 1,900 / 16 times 32 minutes.
    timed = replace(by_draws, seconds={claim.checks[0].run: 960.0, claim.checks[1].run: 1920.0})
    assert table_of([timed]).rows[0][-1].endswith(", 16 are made, in about 63.7 h of a processor")
    half = replace(by_draws, seconds={claim.checks[0].run: 960.0})
    assert table_of([half]).rows == table_of([by_draws]).rows
    assert table_of([replace(by_draws, findings=[few])]).rows[0][-1] == ""
    unknown = replace(by_draws, findings=[few, FINDING, replace(FINDING, verdict=Verdict.INCONCLUSIVE)])
    assert table_of([unknown]).rows[0][-1] == ""
    waiting = replace(by_draws, findings=[few, many, replace(few, evidence=NOT_RUN, needed=None, made=None)])
    assert table_of([waiting]).rows[0][-1] == (
        "1 of its 3 runs is not judged yet; draws: about 1,900 would decide, 16 are made"
    )
    assert "would decide" in section_of(by_draws).markdown()


def test_refuted_claims_say_which_runs_are_not_made():
    claim = CLAIMS["E1a"]
    made = [replace(FINDING, verdict=Verdict.REFUTED) for _ in claim.checks]
    refuted = Judgement(claim, Verdict.REFUTED, made)
    assert table_of([refuted]).rows[0][-1] == claim.replaced_by
    waiting = replace(refuted, findings=[*made[:-1], replace(FINDING, evidence=NOT_RUN)])
    assert table_of([waiting]).rows[0][-1] == f"{claim.replaced_by}; 1 of its 4 runs is not judged yet"


def test_identities_are_called_so():
    assert [row[1] for row in table_of([Judgement(CLAIMS["A2"], Verdict.CONFIRMED)]).rows] == ["as stated, an identity"]


def test_cells_do_not_part_a_row_or_become_marks():
    grid = table(("a", "b"), [("|x| * 2", "<y> & z")])
    assert grid.markdown().splitlines()[-1] == "| \\|x\\| \\* 2 | <y> & z |"
    assert '<td data-name="a">|x| * 2</td><td data-name="b">&lt;y&gt; &amp; z</td>' in _html(grid)
    linked = table_html(table_of([JUDGEMENT]), Glossary({}), linked={"A3": "#A3"})
    assert '<td data-name="claim"><a href="#A3">A3</a></td>' in linked
