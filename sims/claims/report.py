"""The referee's report as text, Markdown, JSON and one HTML page."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Claim
from sims.claims.forms import Judgement, by_kind, in_words, section_of, table_of
from sims.claims.runs import Evidence, Result
from sims.common.markup import Glossary, table_html
from sims.common.page import framed, verdict_choice
from sims.common.report import Document, folded, used_words
from sims.common.tables import table

QUESTION = "Which of the papers' claims hold?"
# So many of the longest runs are named under a report.
LONGEST = 5


def document(results: Sequence[Result], evidence: Mapping[str, Evidence]) -> Document:
    """How many there are of each verdict, by kind of claim too; a line for every claim; the processor time of runs."""
    kinds = by_kind(_verdicts(results))
    counts = [row[:-1] for row in kinds.rows]  # the words say what each kind means
    return Document(
        question=QUESTION,
        answer=f"{_counts(results)}.",
        parts=[
            table(kinds.header[:-1], counts, "Verdicts by kind of claim"),
            "\n".join(["Verdicts", *map(_line, results)]),
            _times(evidence),
        ],
        words={str(result.claim.kind): result.claim.kind.meaning for result in results},
    )


def _line(result: Result) -> str:
    """A claim, its verdict, and what it says in a line."""
    claim = result.claim
    return f"{claim.id:5} {result.verdict:12}  {claim.brief or claim.statement}"


def write(results: Sequence[Result], evidence: Mapping[str, Evidence], folder: Path, title: str) -> dict[str, Path]:
    """Write all forms of the report, each file whole; their paths by name."""
    forms = {
        "data": ("json", json.dumps([record(result) for result in results], indent=2) + "\n"),
        "table": ("md", markdown(results, title)),
        "page": ("html", page(results, evidence, title)),
    }
    written = {name: folder / f"verdicts.{suffix}" for name, (suffix, _) in forms.items()}
    for name, path in written.items():
        write_text_whole(path, forms[name][1])
    return written


def record(result: Result) -> dict[str, Any]:
    """One claim as data."""
    claim = result.claim
    return {
        "id": claim.id,
        "kind": str(claim.kind),
        "verdict": str(result.verdict),
        "statement": claim.statement,
        "source": claim.source,
        "printed": claim.printed,
        "hypotheses": claim.hypotheses,
        "identity": claim.identity,
        "findings": result.as_data(),
        "commands": list(result.commands),
    } | Judgement.of(result).instead


def markdown(results: Sequence[Result], title: str) -> str:
    """One table row per claim, how many there are of each verdict, and one section per claim."""
    judgements = [Judgement.of(result) for result in results]
    parts = [
        f"# Verdicts: {title}",
        table_of(judgements).markdown(),
        _counts(results),
        by_kind(_verdicts(results)).markdown(),
        "## Evidence",
        *(section_of(judgement).markdown() for judgement in judgements),
    ]
    return "\n\n".join(parts)


def _times(evidence: Mapping[str, Evidence]) -> str:
    """What the runs took here, reading of finished ones too, and which took longest."""
    longest = sorted(evidence.values(), key=lambda run: -run.seconds)[:LONGEST]
    lines = [folded(f"{run.seconds:4.0f}  {run.command}", "  ", 8) for run in longest if run.seconds >= 1]
    total = sum(run.seconds for run in evidence.values())
    named = "; the page has those of every run. The longest:" if lines else ""
    return "\n".join([f"Processor seconds: {total:.0f} in all{named}", *lines])


def _counts(results: Sequence[Result]) -> str:
    return in_words(result.verdict for result in results)


def _verdicts(results: Sequence[Result]) -> list[tuple[Claim, str]]:
    return [(result.claim, result.verdict) for result in results]


def page(results: Sequence[Result], evidence: Mapping[str, Evidence], title: str) -> str:
    """Table of verdicts with links to a section for every claim, and from there to the page of every run."""
    judgements = [Judgement.of(result) for result in results]
    kinds = {str(result.claim.kind): result.claim.kind.meaning for result in results}
    glossary = Glossary(used_words(json.dumps([record(result) for result in results]), kinds), first=kinds)
    claims = {result.claim.id: f"#{result.claim.id}" for result in results}
    runs = table(
        ["run", "processor seconds", "command"],
        [[run.run, f"{run.seconds:.0f}", run.command] for run in evidence.values()],
    )
    choice = verdict_choice([result.verdict for result in results])
    sections = {
        "Verdicts": f"{choice}\n{table_html(table_of(judgements), glossary, linked=claims)}",
        "By kind": table_html(by_kind(_verdicts(results)), glossary),
        "Evidence": "\n".join(section_of(judgement).html(glossary) for judgement in judgements),
        "Runs": table_html(runs, glossary, linked={run.run: run.page.name for run in evidence.values()}),
        "Words": glossary.html(),
    }
    opening = (
        f'<p class="answer">{_counts(results)}.</p>\n<p>Runs of {escape(title)}. Every claim leads to what '
        "decides it, and from there to the pages of its runs, which have their figures.</p>"
    )
    return framed(QUESTION, opening, sections)
