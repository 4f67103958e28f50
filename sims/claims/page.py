"""The referee's report as one HTML page that holds its figures."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from meanfield.verification import Finding, Verdict, power_in_words
from sims.claims.kinds import HEADER, by_kind
from sims.claims.runs import Evidence, Result

# Blue, vermilion, grey: told apart by readers with any colour vision; the word stands beside.
COLORS = {Verdict.CONFIRMED: "#0072b2", Verdict.REFUTED: "#d55e00", Verdict.INCONCLUSIVE: "#767676"}

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
    rows = "\n".join(map(_row, results))
    sections = "\n".join(map(_section, results))
    figures = "\n".join(map(_figure, evidence.values()))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>meanfield: verdicts</title><style>{STYLE}</style></head><body>
<h1>What the papers claim, and what the networks do</h1>
<p>{escape(title)}. A claim is CONFIRMED if it lies inside its error band and the band excludes the stated rival,
REFUTED if it lies outside, INCONCLUSIVE if the run cannot tell. Every claim links to the run that decides it.</p>
{_kinds(results)}
<table><tr><th>id</th><th>kind</th><th>claim</th><th>source</th><th>verdict</th></tr>
{rows}
</table>
{sections}
<h2>Runs</h2>
{figures}
</body></html>
"""


def _row(result: Result) -> str:
    claim = result.claim
    return (
        f'<tr><td><a href="#{claim.id}">{claim.id}</a></td><td>{claim.kind}</td><td>{escape(claim.statement)}</td>'
        f"<td>{escape(claim.source)}</td><td>{_verdict(result.verdict)}</td></tr>"
    )


def _kinds(results: Sequence[Result]) -> str:
    """How many verdicts there are of each kind of claim."""
    head = "".join(f"<th>{name}</th>" for name in HEADER)
    rows = by_kind([(result.claim, result.verdict) for result in results])
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "\n".join([f"<table><tr>{head}</tr>", *(f"<tr>{line}</tr>" for line in lines), "</table>"])


def shown_by(finding: Finding) -> str:
    """What was measured, the numbers behind a verdict, and how far off the claim would have been refuted."""
    return f"measured: {finding.measured}; {finding.evidence}; power: {power_in_words(finding.power)}"


def _section(result: Result) -> str:
    claim = result.claim
    said = {"Kind": f"{claim.kind}: {claim.kind.meaning}", "Printed": claim.printed, "Assumed": claim.hypotheses}
    entries = [f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in said.items()]
    for finding in result.findings:
        entries.append(f"<dt>{_verdict(finding.verdict)} {escape(finding.claim)}</dt>")
        entries.append(f"<dd>rival: {escape(finding.rival)}<br>{escape(shown_by(finding))}</dd>")
    if result.verdict is Verdict.REFUTED:
        entries.append(f"<dt>Instead</dt><dd>{escape(claim.replaced_by)}</dd>")
        entries.append(f"<dt>Premise that fails</dt><dd>{escape(claim.premise)}</dd>")
    links = ", ".join(f'<a href="#{name}"><code>{name}</code></a>' for name in claim.runs)
    body = "\n".join(entries)
    heading = f"{claim.id} {_verdict(result.verdict)}"
    return (
        f'<article id="{claim.id}"><h2>{heading}</h2><p>{escape(claim.statement)} ({escape(claim.source)})</p>'
        f"<dl>{body}</dl><p>Runs: {links}</p></article>"
    )


def _figure(evidence: Evidence) -> str:
    image = b64encode(evidence.figure.read_bytes()).decode()
    return (
        f'<figure id="{evidence.run}"><h3>{evidence.run}</h3>'
        f'<img alt="figure of {evidence.run}" src="data:image/png;base64,{image}">'
        f"<figcaption><code>{escape(evidence.command)}</code>, "
        f"dataset {escape(evidence.path.name)}</figcaption></figure>"
    )


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict" style="color:{COLORS[verdict]}">{verdict}</span>'
