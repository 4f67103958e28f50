"""The referee's report as one HTML page that holds its figures."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from sims.claims.judgements import Judgement, section_of, table_of
from sims.claims.kinds import by_kind
from sims.claims.runs import Evidence, Result

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
