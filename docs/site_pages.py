"""What `mkdocs build` adds to the pages of docs/: the files of the root, evidence, the library's contents, equations.

README.md is the first page of the site. The page of evidence is made of the recorded verdicts, and the names of claims
on the page of verdicts lead to it. The page of the library lists what `meanfield/__init__.pyi` lists, in its order and
under its comments, and every quantity of the registry. How to cite is made of CITATION.cff. Equations become MathML,
which needs no script (`equations.py`), and figures open at full size.
"""

import re
from html import unescape
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
    """Set equations, and make every figure a link to itself at full size."""
    html = PICTURE.sub(r'<a class="figure" href="\2" target="_blank">\1</a>', html)
    return EQUATION.sub(lambda equation: mathml(unescape(equation[2]), KINDS[equation[1]]), html)
