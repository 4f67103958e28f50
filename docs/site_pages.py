"""What `mkdocs build` adds to the pages of docs/: the files of the root, evidence, the library's contents, equations.

README.md is the first page of the site. The page of evidence is made of the recorded verdicts, and the names of claims
on the page of verdicts lead to it. The page of the library lists what `meanfield/__init__.pyi` lists, in its order and
under its comments, and every quantity of the registry. How to cite is made of CITATION.cff. Equations become MathML,
which needs no script (`equations.py`), figures open at full size, and tables of sentences fold on telephones.
"""

import re
from html import escape, unescape
from itertools import count
from pathlib import Path

from citation import citation_page
from equations import mathml
from mkdocs.structure.files import File

import meanfield as mf
from sims.claims.recorded_page import evidence_page

ROOT = Path(__file__).parent.parent
# Pages that the root holds, by their names on the site.
PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# The name of a claim at the beginning of its row.
CLAIM = re.compile(r"^\| ([A-Z]\d+[a-z]?) \|", re.MULTILINE)
PICTURE = re.compile(r'(<img [^>]*src="([^"]+\.png)"[^>]*>)')
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEAD, CELL = (re.compile(rf"<{tag}\b[^>]*>(.*?)</{tag}>", re.DOTALL) for tag in ("th", "td"))
# Columns, and characters of the longest cell, from which on a table has no room beside itself on a telephone.
LEAST_FOLDING, SENTENCE = 4, 60
# An equation, and where it stands: in a line, or between lines.
KINDS = {"span": "inline", "div": "block"}
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files, config):
    """Add the pages of the root, and the evidence behind the verdicts of docs/verdicts.md."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "evidence.md", content=evidence_page("default")))
    files.append(File.generated(config, "cite.md", content=citation_page(ROOT / "CITATION.cff")))
    return files


def on_page_markdown(markdown, page, **_):
    """Turn links between the root and docs/ into links between pages, link claims, write the page of the library."""
    for name, source in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}(#\S+)?\)", rf"]({name}\1)", markdown)
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    if page.file.src_uri == "verdicts.md":
        markdown = CLAIM.sub(lambda claim: f"| [{claim[1]}](evidence.md#{claim[1].lower()}) |", markdown)
    return markdown + library() + quantities() if page.file.src_uri == "api.md" else markdown


def library():
    """A heading for every comment of the table of contents, and the docstring of every name."""
    lines = []
    for line in (ROOT / "meanfield" / "__init__.pyi").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            lines.append(f"\n## {line.removeprefix('# ').removesuffix('.')}\n")
        elif named := re.match(r"from \.\S+ import (\w+) as", line):
            lines.append(f"::: meanfield.{named[1]}\n")
    return "\n".join(lines)


def quantities():
    """The registry as a table: what a variable of a dataset means."""
    lines = [
        "\n## Every quantity of a dataset\n",
        "| name | symbol | meaning | scaling | source |",
        "|---|---|---|---|---|",
    ]
    for name, quantity in mf.QUANTITIES.items():
        cells = (quantity.symbol, quantity.definition, quantity.scaling, quantity.source)
        escaped = (re.sub(r"([|*<_~\[\]])", r"\\\1", cell) for cell in cells)
        lines.append(f"| `{name}` | {' | '.join(escaped)} |")
    return "\n".join(lines)


def on_page_content(html, **_):
    """Set equations, make every figure a link to itself at full size, and say which tables fold on a telephone."""
    html = TABLE.sub(_folding, html)
    html = PICTURE.sub(r'<a class="figure" href="\2" target="_blank">\1</a>', html)
    return EQUATION.sub(_set, html)


def _folding(table):
    """A table of sentences, whose cells then say what they are, as its head is not shown; another one as it is."""
    names = [_words(cell) for cell in HEAD.findall(table[0])]
    longest = max((len(_words(cell)) for cell in CELL.findall(table[0])), default=0)
    if len(names) < LEAST_FOLDING or longest < SENTENCE:
        return table[0]
    places = count()

    def named(_):
        return f'<td data-name="{escape(names[next(places) % len(names)])}"'

    return re.sub(r"<td\b", named, table[0]).replace("<table>", "<table data-folds>")


def _words(html):
    return unescape(re.sub(r"<[^>]+>", "", html)).strip()


def _set(equation):
    """An equation between lines in a box of its own, which scrolls where it is too long (`site.css`)."""
    drawn = mathml(unescape(equation[2]), KINDS[equation[1]])
    return f'<div class="arithmatex">{drawn}</div>' if equation[1] == "div" else drawn
