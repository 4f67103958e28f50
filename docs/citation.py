"""The page "How to cite": CITATION.cff, which reference managers read, as BibTeX."""

import re
from pathlib import Path
from textwrap import wrap

import yaml

HEAD = """\
# How to cite

{message}

```
{own}
```

The papers whose claims it measures:

```
{papers}
```

Both are made of `CITATION.cff` at the root of the project, which reference managers read.
"""
# Characters of a line.
LINE = 88
# What has a meaning in LaTeX.
SPECIAL = re.compile(r"([&%$#_{}])")


def citation_page(path: Path) -> str:
    """The page of a file in the citation file format."""
    cited = yaml.safe_load(path.read_text(encoding="utf-8"))
    papers = "\n\n".join(_entry(paper, _key(paper)) for paper in cited["references"])
    return HEAD.format(message=cited["message"], own=_entry(cited["preferred-citation"], cited["title"]), papers=papers)


def _key(paper: dict) -> str:
    """The first author's name and the year."""
    return f"{paper['authors'][0]['family-names'].lower()}{paper['year']}"


def _entry(work: dict, key: str) -> str:
    """Of the type "misc", which every style of BibTeX knows, for software as for preprints."""
    fields = {
        "author": " and ".join(_author(author) for author in work["authors"]),
        "title": f"{{{_escaped(work['title'])}}}",
        "year": str(work["year"]),
        "note": f"Version {work['version']}" if "version" in work else "",
        "eprint": next((_arxiv(known) for known in work.get("identifiers", ()) if _arxiv(known)), ""),
        "url": work.get("url", ""),
    }
    if fields["eprint"]:
        fields["archiveprefix"] = "arXiv"
    lines = [_field(name, value) for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def _field(name: str, value: str) -> str:
    """In lines that a page shows whole: BibTeX reads a new line as a space."""
    start = f"  {name} = {{"
    lines = wrap(f"{value}}},", LINE - 4, break_long_words=False, break_on_hyphens=False)
    return start + "\n    ".join(lines)


def _author(author: dict) -> str:
    """Family name first; the name of a group in braces, so that it is not taken apart."""
    if "name" in author:
        return f"{{{_escaped(author['name'])}}}"
    return f"{_escaped(author['family-names'])}, {_escaped(author['given-names'])}"


def _arxiv(identifier: dict) -> str:
    value = str(identifier["value"])
    return value.removeprefix("arXiv:") if value.startswith("arXiv:") else ""


def _escaped(words: str) -> str:
    return SPECIAL.sub(r"\\\1", words)
