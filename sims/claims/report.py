"""The referee's report as text, Markdown and JSON, and as one HTML page."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Claim, Verdict
from sims.claims.kinds import HEADER, as_markdown, by_kind, in_words
from sims.claims.page import page, shown_by
from sims.claims.runs import Evidence, Result
from sims.common.report import folded, report
from sims.common.tables import table

QUESTION = "Which of the papers' claims hold?"


def text(results: Sequence[Result], evidence: Mapping[str, Evidence]) -> str:
    """How many there are of each verdict, by kind of claim too, every claim with its findings, then the processor time
    of every run."""
    counts = [row[:-1] for row in by_kind(_verdicts(results))]
    kinds = table(HEADER[:-1], counts, "Verdicts by kind of claim")
    words = {str(result.claim.kind): result.claim.kind.meaning for result in results}
    parts = [kinds, *map(_entry, results), _times(evidence)]
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
    } | dict(instead(result))


def instead(result: Result) -> list[tuple[str, str]]:
    """The law that replaces a refuted claim, and the premise that fails."""
    if result.verdict is not Verdict.REFUTED:
        return []
    return [("instead", result.claim.replaced_by), ("premise that fails", result.claim.premise)]


def markdown(results: Sequence[Result], title: str) -> str:
    """One table row per claim."""
    lines = [
        f"# Verdicts: {title}",
        "",
        "| id | kind | claim | source | verdict | evidence | instead |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        evidence = "<br>".join(
            f"{finding.verdict}: {finding.claim}; rival: {finding.rival}; {shown_by(finding)}"
            for finding in result.findings
        )
        replaced = dict(instead(result)).get("instead", "")
        claim = result.claim
        cells = (claim.id, claim.kind, claim.statement, claim.source, result.verdict, evidence, replaced)
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", _counts(results), "", as_markdown(_verdicts(results)), ""])


def _times(evidence: Mapping[str, Evidence]) -> str:
    """Of runs that were not read from an earlier report, the longest first."""
    made = sorted(evidence.values(), key=lambda run: -run.seconds)
    total = sum(run.seconds for run in made)
    words = ", ".join(f"{run.run} {run.seconds:.0f}" for run in made if run.seconds >= 1)
    return folded(f"{total:.0f} in all; {words or 'no run of a second'}", "Processor seconds: ", 2)


def _entry(result: Result) -> str:
    head = f"{result.claim.id:6}{result.verdict:14}"
    lines = [folded(f"{result.claim.kind}: {result.claim.statement} ({result.claim.source})", head, 20)]
    said = {"printed": result.claim.printed, "assumed": result.claim.hypotheses}
    lines += [folded(f"{name}: {words}", " " * 6, 20) for name, words in said.items()]
    for finding in result.findings:
        words = f"{finding.claim}; rival: {finding.rival}; {shown_by(finding)}"
        lines.append(folded(words, f"      {finding.verdict:14}", 20))
    lines += [folded(f"{name}: {words}", " " * 6, 8) for name, words in instead(result)]
    return "\n".join(lines)


def _counts(results: Sequence[Result]) -> str:
    return in_words(result.verdict for result in results)


def _verdicts(results: Sequence[Result]) -> list[tuple[Claim, str]]:
    return [(result.claim, result.verdict) for result in results]
