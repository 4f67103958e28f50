"""The referee's report as text, Markdown and JSON, and as one HTML page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from meanfield.files import write_text_whole
from meanfield.verification.verdicts import Verdict
from sims._claims_page import page
from sims._claims_runs import Evidence, Result

WIDTH = 118


def text(results: Sequence[Result]) -> str:
    """Every claim with its verdict and findings, then how many there are of each verdict."""
    return "\n\n".join([*map(_entry, results), _counts(results)])


def write(results: Sequence[Result], found: Mapping[str, Evidence], folder: Path, title: str) -> dict[str, Path]:
    """Write all forms of the report, each file whole; their paths by name."""
    forms = {
        "json": json.dumps([record(result) for result in results], indent=2) + "\n",
        "md": markdown(results, title),
        "html": page(results, found, title),
    }
    written = {suffix: folder / f"verdicts.{suffix}" for suffix in forms}
    for suffix, path in written.items():
        write_text_whole(path, forms[suffix])
    return written


def record(result: Result) -> dict[str, Any]:
    """One claim as data."""
    claim = result.claim
    findings = [
        {"verdict": str(one.verdict), "claim": one.claim, "rival": one.rival, "evidence": one.evidence}
        for one in result.findings
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
            f"{one.verdict}: {one.claim}; rival: {one.rival}; {one.evidence}" for one in result.findings
        )
        replaced = dict(instead(result)).get("instead", "")
        cells = (result.claim.id, result.claim.statement, result.claim.source, result.verdict, evidence, replaced)
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", _counts(results), ""])


def _entry(result: Result) -> str:
    head = f"{result.claim.id:4}{result.verdict:14}"
    lines = [
        fill(
            f"{result.claim.statement} ({result.claim.source})", WIDTH, initial_indent=head, subsequent_indent=" " * 18
        )
    ]
    for finding in result.findings:
        words = f"{finding.claim}; rival: {finding.rival}; {finding.evidence}"
        lines.append(fill(words, WIDTH, initial_indent=f"      {finding.verdict:14}", subsequent_indent=" " * 20))
    for name, words in instead(result):
        lines.append(fill(f"{name}: {words}", WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8))
    return "\n".join(lines)


def _counts(results: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
