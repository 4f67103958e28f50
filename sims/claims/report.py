"""The referee's report as text, Markdown, JSON and one HTML page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Claim
from sims.claims.forms import Table
from sims.claims.judgements import Judgement, section_of, table_of
from sims.claims.kinds import by_kind, in_words
from sims.claims.page import page
from sims.claims.runs import Evidence, Result
from sims.common.report import folded, report

QUESTION = "Which of the papers' claims hold?"


def text(results: Sequence[Result], evidence: Mapping[str, Evidence]) -> str:
    """How many there are of each verdict, by kind of claim too, every claim with its findings, then the processor time
    of every run."""
    kinds = by_kind(_verdicts(results))
    counts = Table(kinds.header[:-1], [row[:-1] for row in kinds.rows])  # the words say what each kind means
    words = {str(result.claim.kind): result.claim.kind.meaning for result in results}
    sections = [section_of(Judgement.of(result)).text() for result in results]
    parts = [counts.text("Verdicts by kind of claim"), *sections, _times(evidence)]
    return report(QUESTION, f"{_counts(results)}.", parts, words=words)


def write(results: Sequence[Result], evidence: Mapping[str, Evidence], folder: Path, title: str) -> dict[str, Path]:
    """Write all forms of the report, each file whole; their paths by name."""
    forms = {
        "json": json.dumps([record(result) for result in results], indent=2) + "\n",
        "md": markdown(results, title),
        "html": page(results, evidence, title),
    }
    written = {suffix: folder / f"verdicts.{suffix}" for suffix in forms}
    for suffix, path in written.items():
        write_text_whole(path, forms[suffix])
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
    """Of runs that were not read from an earlier report, the longest first."""
    made = sorted(evidence.values(), key=lambda run: -run.seconds)
    total = sum(run.seconds for run in made)
    words = ", ".join(f"{run.run} {run.seconds:.0f}" for run in made if run.seconds >= 1)
    return folded(f"{total:.0f} in all; {words or 'no run of a second'}", "Processor seconds: ", 2)


def _counts(results: Sequence[Result]) -> str:
    return in_words(result.verdict for result in results)


def _verdicts(results: Sequence[Result]) -> list[tuple[Claim, str]]:
    return [(result.claim, result.verdict) for result in results]
