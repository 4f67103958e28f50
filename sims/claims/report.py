"""The referee's report as text, Markdown, JSON and one HTML page."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any

from meanfield.common import write_text_whole
from meanfield.verification import Claim
from sims.claims.forms import Judgement, by_kind, in_words, section_of, table_of
from sims.claims.runs import Evidence, Result
from sims.common.report import Document, folded
from sims.common.tables import LINE, table

QUESTION = "Which of the papers' claims hold?"


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
    """A claim: its verdict, and as much of what it says as a line takes."""
    claim = result.claim
    return shorten(f"{claim.id:5} {result.verdict:12}  {claim.statement}", LINE, placeholder=" ...")


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


STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .3rem .6rem; text-align: left; vertical-align: top; }
tr + tr { border-top: 1px solid #8884; } .verdict { font-weight: 600; white-space: nowrap; }
article { border-top: 2px solid #8884; margin-top: 2rem; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 0; }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: white; } code { font-size: .9em; }
"""


def page(results: Sequence[Result], evidence: Mapping[str, Evidence], title: str) -> str:
    """Table of verdicts with links, one section per claim, then the figure and command of every simulation."""
    judgements = [Judgement.of(result) for result in results]
    sections = "\n".join(section_of(judgement).html() for judgement in judgements)
    figures = "\n".join(map(_figure, evidence.values()))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>meanfield: verdicts</title><style>{STYLE}</style></head><body>
<h1>What the papers claim, and what the networks do</h1>
<p>{escape(title)}. A claim is CONFIRMED if it lies inside its error band and the band excludes the stated rival,
REFUTED if it lies outside, INCONCLUSIVE if the run cannot tell. Every claim links to the run that decides it.</p>
{by_kind([(result.claim, result.verdict) for result in results]).html()}
{table_of(judgements).html(linked=True)}
{sections}
<h2>Runs</h2>
{figures}
</body></html>
"""


def _figure(evidence: Evidence) -> str:
    image = b64encode(evidence.figure.read_bytes()).decode()
    return (
        f'<figure id="{evidence.run}"><h3>{evidence.run}</h3>'
        f'<img alt="figure of {evidence.run}" src="data:image/png;base64,{image}">'
        f"<figcaption><code>{escape(evidence.command)}</code>, "
        f"dataset {escape(evidence.path.name)}</figcaption></figure>"
    )
