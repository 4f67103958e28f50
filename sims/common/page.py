"""The page of one run, NAME.html: answer, verdicts, figure, tables, words, and how all of it was made.

A page is one file that loads nothing. Its policy allows the style and the script that it carries, by their digests,
and pictures that stand in it: so nothing that came in with the data can act, whatever it says.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

import xarray as xr

from meanfield.quantities import QUANTITIES
from meanfield.verification import Verdict
from sims.common.markup import Glossary, code_html, table_html
from sims.common.report import Document, NextStep, used_words
from sims.common.tables import Grid, table

STYLE, SCRIPT = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
# Of a picture in a page, in bytes: with a third more for its letters, and tables, it stays below 2 MB.
LARGEST_PICTURE = 1_300_000


def run_page(document: Document, dataset: xr.Dataset, path: Path, figure: str) -> str:
    """What is said of a dataset that stands at a path, as a page beside it; ``figure``: see `figure_html`."""
    return report_page(document, figure, {"How it was made": _made(dataset.attrs), "Data": _opened(dataset, path.name)})


def report_page(document: Document, figure: str = "", about: Mapping[str, str] | None = None) -> str:
    """All that a report says, with a figure and sections ``about`` it, if there are any."""
    glossary = Glossary(used_words(document.text(), document.words))
    brief = [document.brief] if document.brief and document.brief not in document.parts else []
    sections = {
        "Verdicts": _verdicts(document, glossary),
        "Figure": figure,
        "Tables": "\n".join(_part(part, glossary) for part in [*brief, *document.parts]),
        "What to run next": _steps(document.steps),
        **(about or {}),
        "Words": glossary.html(),
    }
    heading = f'<p class="lines">{glossary.prose(document.heading)}</p>' if document.heading else ""
    return framed(document.question, f'<p class="answer">{glossary.prose(document.answer)}</p>\n{heading}', sections)


def framed(title: str, opening: str, sections: Mapping[str, str]) -> str:
    """A whole page: its title, what stands below it, and sections by their headings, with links to each; none empty."""
    filled = {heading: body for heading, body in sections.items() if body}
    ids = {heading: heading.lower().replace(" ", "-") for heading in filled}
    links = "\n".join(f'<a href="#{ids[heading]}">{heading}</a>' for heading in filled)
    bodies = "\n".join(
        f'<section id="{ids[heading]}">\n<h2>{heading}</h2>\n{body}\n</section>' for heading, body in filled.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style></head>
<body>
<h1>{escape(title)}</h1>
{opening}
<nav>{links}</nav>
{bodies}
<script>{SCRIPT}</script>
</body></html>
"""


def _hashed(inline: str) -> str:
    return f"'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        "img-src data:",
        f"style-src {_hashed(STYLE)}",
        f"script-src {_hashed(SCRIPT)}",
        "base-uri 'none'",
        "form-action 'none'",
    )
)


def figure_html(picture: bytes, kind: str, words: str) -> str:
    """A picture to look into, as a file that is part of the page: what it styles and names stays its own.

    An SVG that stands in the page itself would need its style attributes allowed, and could take another's names.
    """
    what = f"image/{'svg+xml' if kind == 'svg' else kind}"
    image = f'<img alt="{escape(words)}" src="data:{what};base64,{b64encode(picture).decode()}" draggable="false">'
    buttons = "".join(
        f'<button type="button" data-zoom="{change}" aria-label="{name}" title="{name}">{sign}</button>'
        for change, name, sign in (("in", "larger", "+"), ("out", "smaller", "\N{MINUS SIGN}"), ("fit", "fit", "fit"))
    )
    hint = "Pinch, or click the figure and turn the wheel, or press + and -; 0 fits it. Drag moves it."
    return (
        f'<figure><div class="picture" tabindex="0" role="group" aria-label="{escape(words)}">{image}</div>\n'
        f'<figcaption><span class="buttons">{buttons}</span> {hint}</figcaption></figure>'
    )


def verdict_choice(verdicts: Sequence[str]) -> str:
    """Boxes that say which verdicts the rows of the tables in the same section may have."""
    boxes = "".join(
        f'<label><input type="checkbox" class="{verdict.lower()}" checked> '
        f'<span class="verdict {verdict.lower()}">{verdict}</span> {verdicts.count(verdict)}</label>\n'
        for verdict in Verdict
        if verdict in verdicts
    )
    return f'<fieldset class="choice"><legend>Show</legend>\n{boxes}</fieldset>'


def _verdicts(document: Document, glossary: Glossary) -> str:
    """All of them with their evidence, and a choice of which are shown."""
    verdicts = [finding.verdict for finding in document.findings]
    return f"{verdict_choice(verdicts)}\n{table_html(document.verdicts, glossary)}" if verdicts else ""


def _part(part: str | Grid, glossary: Glossary) -> str:
    return table_html(part, glossary) if isinstance(part, Grid) else f'<p class="lines">{glossary.prose(part)}</p>'


def _steps(steps: Sequence[NextStep]) -> str:
    """Options to add to the command, each with what it is good for."""
    entries = (f"<dt><code>{escape(options)}</code></dt><dd>{escape(why)}</dd>" for options, why in steps)
    return "\n".join(['<dl class="short">', *entries, "</dl>"]) if steps else ""


def _made(attrs: Mapping[str, object]) -> str:
    """The command to copy; what it was made with."""
    record = json.loads(str(attrs.get("provenance", "{}")))
    said = {name: attrs[name] for name in ("draws", "seed", "backend", "precision", "run") if name in attrs}
    said |= {f"version of {name}": version for name, version in record.get("versions", {}).items()}
    said |= {name: words for name, words in record.items() if name not in ("versions", "seeds", *said)}
    said |= json.loads(str(attrs.get("made", "{}")))
    entries = (
        f"<dt>{escape(str(name).replace('_', ' '))}</dt><dd>{escape(str(words))}</dd>" for name, words in said.items()
    )
    return "\n".join([code_html(str(attrs.get("command", "made by hand"))), '<dl class="short">', *entries, "</dl>"])


def _opened(dataset: xr.Dataset, name: str) -> str:
    """How to open it, and what is in it."""
    first = next((known for known in QUANTITIES if known in dataset), min(map(str, dataset.data_vars), default=""))
    lines = [
        "import xarray as xr",
        "",
        f"dataset = xr.open_dataset({json.dumps(name)})",
        f"dataset[{json.dumps(first)}]",
    ]
    rows = [
        [
            str(variable),
            ", ".join(f"{dim} ({dataset.sizes[dim]})" for dim in dataset[variable].dims),
            *(str(dataset[variable].attrs.get(said, "")) for said in ("long_name", "units")),
        ]
        for variable in [*dataset.coords, *sorted(map(str, dataset.data_vars))]
    ]
    grid = table(["variable", "dims", "what it is", "units"], rows)
    inside = f"<details><summary>{len(rows)} variables</summary>\n{table_html(grid, Glossary({}))}\n</details>"
    return f"{code_html(chr(10).join(lines))}\n{inside}"
