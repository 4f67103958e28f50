"""What a claim is to its source: every claim has a kind, and verdicts are counted by kind wherever they are counted."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from meanfield.verification.claims import UNPRINTED, Claim, Kind
from meanfield.verification.verdicts import Finding, Verdict
from sims.claims import record, report, seeds
from sims.claims.catalogue import CLAIMS
from sims.claims.forms import by_kind
from sims.claims.recorded_page import recorded_page
from sims.claims.report import page
from sims.claims.runs import Result
from sims.claims.seeds import Counts

# Three claims of two kinds, with verdicts.
SOME = {"A2": Verdict.CONFIRMED, "A3": Verdict.REFUTED, "T7": Verdict.REFUTED}
RESULTS = [
    Result(CLAIMS[name], (Finding("law", "other", verdict, "numbers", measured="slopes"),), ())
    for name, verdict in SOME.items()
]


def test_every_claim_has_a_kind():
    assert {claim.id: claim.kind for claim in CLAIMS.values() if not isinstance(claim.kind, Kind)} == {}
    assert len({kind.meaning for kind in Kind}) == len(Kind)


def test_claims_of_our_own_and_no_others_have_no_sentence_of_a_paper():
    own = {name for name, claim in CLAIMS.items() if claim.kind is Kind.OWN}
    assert own == {name for name, claim in CLAIMS.items() if claim.printed.startswith(UNPRINTED)}
    assert all('"' in claim.printed for name, claim in CLAIMS.items() if name not in own)


# Words with which a claim says itself what it is, and the kinds that it can then be of.
SAID = [
    ("hypotheses", r"a reading: ", Kind.READING),
    ("hypotheses", r"it is one: ", Kind.PREMISE),
    ("source", r".*, read (as|literally)", Kind.READING),
    (
        "source",
        r".*(beyond its premise|without (an?|the|its) (condition|premise)|has it where eps L = O\(1\))",
        Kind.BEYOND,
    ),
    ("source", r"(?!.*beyond).*, assumptions? ", Kind.PREMISE),
]


@pytest.mark.parametrize(("field", "words", "kind"), SAID)
def test_kinds_are_what_the_claims_say_of_themselves(field, words, kind):
    saying = {name: claim.kind for name, claim in CLAIMS.items() if re.match(words, getattr(claim, field))}
    assert saying
    assert {name: own for name, own in saying.items() if own is not kind} == {}


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"kind": "as stated"},
            TypeError,
            "kind of claim A2 is 'as stated'; choose one of Kind.AS_STATED, Kind.PREMISE",
        ),
        ({"kind": Kind.OWN}, ValueError, "claims of our own, and no others, begin it with 'no sentence of a paper'"),
        ({"printed": f"{UNPRINTED}: a question"}, ValueError, "claim A2 is of the kind <Kind.AS_STATED: 'as stated'>"),
    ],
)
def test_kinds_that_are_none_are_refused(changed, error, message):
    with pytest.raises(error, match=re.escape(message)):
        replace(CLAIMS["A2"], **changed)


def test_a_claim_without_a_kind_is_none():
    with pytest.raises(TypeError, match="kind"):
        Claim(id="X1", statement="law", source="paper", checks=(), printed='"law"', hypotheses="none")


def test_counts_of_kinds_add_up():
    every = [
        (claim, str(verdict)) for claim, verdict in zip(CLAIMS.values(), list(Verdict) * len(CLAIMS), strict=False)
    ]
    *rows, (_, *together, _) = by_kind(every).rows
    assert [name for name, *_ in rows] == list(Kind)
    columns = zip(*(map(int, counts) for _, *counts, _ in rows), strict=True)
    assert [sum(column) for column in columns] == [int(count) for count in together]
    assert sum(map(int, together)) == len(CLAIMS)
    of_kinds = Counter(claim.kind for claim in CLAIMS.values())
    assert {name: sum(map(int, counts)) for name, *counts, _ in rows} == of_kinds


def test_reports_print_kinds_and_count_by_them(tmp_path, monkeypatch):
    """Text, Markdown, HTML, data and the recorded page: kinds beside claims, and verdicts of each kind and all."""
    text = report.document(RESULTS, {}).text()
    for row in (r"as stated +1 +1 +0", r"own +0 +1 +0", r"all kinds +1 +2 +0"):
        assert re.search(rf"^ *{row}$", text, re.MULTILINE)
    assert "\n  own: our own: no source says it" in text
    assert "T7    REFUTED       2 / lambda_max" in text
    rows = ("| as stated | 1 | 1 | 0 |", "| own | 0 | 1 | 0 |", "| all kinds | 1 | 2 | 0 |")
    table = report.markdown(RESULTS, "some")
    assert all(row in table for row in (*rows, "| T7 | own | 2 / lambda_max"))
    html = page(RESULTS, {}, "some")
    of_all = '<td>all kinds</td><td class="number">1</td><td class="number">2</td><td class="number">0</td>'
    assert of_all in html
    assert '<a href="#T7">T7</a></td><td data-name="kind"><span class="word" data-word="2">own</span></td>' in html
    assert [report.record(result)["kind"] for result in RESULTS] == ["as stated", "as stated", "own"]
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    kept = {name: {"verdict": verdict} for name, verdict in SOME.items()}
    (tmp_path / "default.json").write_text(json.dumps(kept))
    recorded = recorded_page("default")
    assert all(row in recorded for row in (*rows, "| T7 | own | 2 / lambda\\_max".replace("\\_", "_")))


def test_counts_over_seeds_print_kinds():
    counts = {result.claim.id: Counts.of([result, result]) for result in RESULTS}
    assert re.search(r"T7 +own +0 +2 +0", seeds.text(counts))
