"""The referee's report as text, Markdown and JSON, and as one HTML page."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Verdict
from sims.claims.page import page
from sims.claims.runs import Evidence, Result
from sims.common.report import folded, report

QUESTION = "Which of the papers' claims hold?"


def text(results: Sequence[Result]) -> str:
    """Every claim with its verdict and findings, then how many there are of each verdict."""
    return report(QUESTION, f"{_counts(results)}.", map(_entry, results))


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
    findings = [
        {"verdict": str(finding.verdict), "claim": finding.claim, "rival": finding.rival, "evidence": finding.evidence}
        for finding in result.findings
    ]
    return {
        "id": claim.id,
        "verdict": str(result.verdict),
        "statement": claim.statement,
        "source": claim.source,
        "findings": findings,
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
        "| id | claim | source | verdict | evidence | instead |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        evidence = "<br>".join(
            f"{finding.verdict}: {finding.claim}; rival: {finding.rival}; {finding.evidence}"
            for finding in result.findings
        )
        replaced = dict(instead(result)).get("instead", "")
        cells = (result.claim.id, result.claim.statement, result.claim.source, result.verdict, evidence, replaced)
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", _counts(results), ""])


def _entry(result: Result) -> str:
    head = f"{result.claim.id:6}{result.verdict:14}"
    lines = [folded(f"{result.claim.statement} ({result.claim.source})", head, 20)]
    for finding in result.findings:
        words = f"{finding.claim}; rival: {finding.rival}; {finding.evidence}"
        lines.append(folded(words, f"      {finding.verdict:14}", 20))
    lines += [folded(f"{name}: {words}", " " * 6, 8) for name, words in instead(result)]
    return "\n".join(lines)


def _counts(results: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
