"""The site: the evidence behind every verdict, how to cite, and what browsers read in the MathML of equations."""

import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import meanfield as mf
from sims.claims.catalogue import CLAIMS
from sims.claims.record import recorded

pytest.importorskip("latex2mathml")
pytest.importorskip("mkdocs")
yaml = pytest.importorskip("yaml")
DOCS = Path(mf.__file__).parent.parent / "docs"
STYLE = (DOCS / "site.css").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site_pages():
    """The module that adds to the pages of docs/."""
    sys.path.insert(0, str(DOCS))
    try:
        import site_pages
    finally:
        sys.path.remove(str(DOCS))
    return site_pages


@pytest.fixture(scope="module")
def made(site_pages):
    """A function that sets one equation."""
    return lambda latex: site_pages.on_page_content(rf'<span class="arithmatex">\({latex}\)</span>')


@pytest.fixture(scope="module")
def evidence(site_pages):
    """The page of evidence, as the site's build makes it."""
    plugins = SimpleNamespace(_current_plugin="site_pages")
    config = SimpleNamespace(site_dir="site", use_directory_urls=False, plugins=plugins)
    (page,) = (file for file in site_pages.on_files([], config) if file.src_uri == "evidence.md")
    return page.content_string.replace("\\|", "|").replace("\\*", "*")


def test_the_site_has_every_recorded_comparison(evidence):
    """In the section of its claim, with its verdict and all its numbers; and the sentence of the source."""
    sections = dict(section.split("\n", 1) for section in evidence.split("\n### ")[1:])
    kept = {claim.id: recorded(claim.preset or "default").get(claim.id) for claim in CLAIMS.values()}
    entries = {name: entry for name, entry in kept.items() if entry}
    assert list(sections) == list(CLAIMS)
    for name, entry in entries.items():
        claim, section = CLAIMS[name], sections[name]
        assert section.startswith(f"\n**{entry['verdict']}**, {claim.kind}: {claim.statement} ({claim.source}).\n")
        assert f"- Printed: {claim.printed}.\n- Assumed: {claim.hypotheses}.\n" in section
        for finding in entry["findings"]:
            words = [f"- **{finding['verdict']}**: {finding['claim']}", f"Rival: {finding['rival']}"]
            words += [f"Measured: {finding['measured']}", f"Numbers: {finding['evidence']}", "Power: "]
            assert ". ".join(words) in section
        for run, origin in entry["runs"].items():
            draws = "" if origin["draws"] is None else f"{origin['draws']:,} draws, "
            assert f"`{run}` {draws}code {origin['code']}" in section
        at = f"preset {claim.preset}, " if claim.preset else ""
        assert f"- Recorded: {at}seed {entry['seed']}, commit {entry['commit']}.\n" in section


def test_claims_on_the_page_of_verdicts_lead_to_their_evidence(site_pages, evidence):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="verdicts.md"))
    table = site_pages.on_page_markdown((DOCS / "verdicts.md").read_text(encoding="utf-8"), page)
    linked = re.findall(r"^\| \[(\w+)\]\(evidence\.md#(\w+)\) \|", table, re.MULTILINE)
    assert linked == [(name, name.lower()) for name in CLAIMS]
    assert set(re.findall(r"^### (\w+)$", evidence, re.MULTILINE)) == {name for name, _ in linked}


@pytest.mark.parametrize(("latex", "letter"), [("K", "K"), (r"\mathcal K", "\U0001d4a6"), (r"\mathcal H", "\u210b")])
def test_script_letters_are_characters_of_their_own(made, latex, letter):
    """Browsers drop the attribute `mathvariant` but for "normal": the tangent kernel read as the number of blocks."""
    assert f"<mi>{letter}</mi>" in made(latex)


@pytest.mark.parametrize(
    ("latex", "drawn"),
    [
        (r"\Big\lbrace x \Big\rbrace", '<mo minsize="1.623em" maxsize="1.623em" form="prefix">{</mo>'),
        (r"\lbrace x \rbrace", '<mo form="postfix" stretchy="false">}</mo>'),
        (r"\lvert x \rvert^2", '<mo form="prefix" stretchy="false">|</mo>'),
        (r"E[\frac{1}{2}]", '<mo stretchy="false">[</mo><mfrac>'),
        (r"\langle x \rangle", '<mo form="postfix" stretchy="false">⟩</mo>'),
        (r"\hat x", '<mover accent="true"><mi>x</mi><mo stretchy="false">^</mo></mover>'),
        (r"\bar x", '<mover accent="true"><mi>x</mi><mo stretchy="true">¯</mo></mover>'),
        (r"\mathrm{mean}_p", "<msub><mrow><mi>mean</mi></mrow><mi>p</mi></msub>"),
        (r"\log L", '<mi>log</mi><mspace width="0.167em" /><mi>L</mi>'),
        (r"\log(L)", '<mi>log</mi><mo stretchy="false">(</mo>'),
        (r"\arcsin x", '<mi>arcsin</mi><mspace width="0.167em" /><mi>x</mi>'),
        (
            r"E\mathrm{mean}(z)",
            '<mi>E</mi><mspace width="0.167em" /><mrow><mi>mean</mi></mrow><mo stretchy="false">(</mo>',
        ),
        (r"\mathrm{Var} z", '<mrow><mi>Var</mi></mrow><mspace width="0.167em" /><mi>z</mi>'),
        (r"(x) \mathrm{tr}", '<mo stretchy="false">)</mo><mspace width="0.167em" /><mrow><mi>tr</mi></mrow></mrow>'),
        (r"1 / \mathrm{fan},", "<mo>/</mo><mrow><mi>fan</mi></mrow><mo>,</mo>"),
        (r"\ln^2 L", '<msup><mi>ln</mi><mn>2</mn></msup><mspace width="0.167em" /><mi>L</mi>'),
    ],
)
def test_equations_are_drawn_as_latex_says(made, latex, drawn):
    """Fences grow where they are told to, accents stand close, words are words, functions stand apart."""
    assert drawn in made(latex)


def test_no_equation_needs_what_browsers_do_not_know(made):
    """Every equation of every document: no attribute that they drop, and no LaTeX left."""
    texts = [re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
             for path in DOCS.rglob("*.md")]  # fmt: skip
    found = [pair for text in texts for pair in re.findall(r"\$\$(.+?)\$\$|\$([^$\n][^$]*?)\$", text, re.DOTALL)]
    equations = {outer or inner for outer, inner in found}
    assert len(equations) > 500
    for latex in equations:
        tree = ElementTree.fromstring(made(latex))
        assert {element.get("mathvariant") for element in tree.iter()} <= {None, "normal"}, latex
        assert not set("\\{}") & set("".join(tree.itertext())) - (
            {"{", "}"} if "brace" in latex or r"\{" in latex else set()
        )
        for fence in (element for element in tree.iter() if element.text in tuple("()[]{}|")):
            assert fence.get("stretchy") == "false" or "minsize" in fence.attrib, latex


def test_long_equations_scroll_in_a_box_of_their_own(site_pages):
    """A box that the style of the site knows; else one long equation makes the whole page wider than a telephone."""
    shown = site_pages.on_page_content('<div class="arithmatex">\\[x\\]</div>')
    assert re.fullmatch(r'<div class="arithmatex"><math [^>]*display="block".*</math></div>', shown)
    assert re.search(r"^\.md-typeset div\.arithmatex \{\n  overflow-x: auto;", STYLE, re.MULTILINE)


def test_tables_of_sentences_fold_on_telephones(site_pages):
    """Those of verdicts have no room for six columns: each cell says its column then. Tables of numbers stay."""

    def table(sentence):
        rows = ["".join(f"<{tag}>{cell}</{tag}>" for cell in ["a <b", "b", "", sentence]) for tag in ("th", "td")]
        rows = [row.replace("a <b", "<code>a</code> &lt;b") for row in rows]
        return f"<table><thead><tr>{rows[0]}</tr></thead><tbody><tr>{rows[1]}</tr></tbody></table>"

    folded = site_pages.on_page_content(table("words " * 20))
    assert folded.startswith("<table data-folds>")
    assert re.findall(r'<td data-name="([^"]*)"', folded)[:3] == ["a &lt;b", "b", ""]
    assert site_pages.on_page_content(table("1.0")) == table("1.0")
    assert "table[data-folds] td:not([data-name" in STYLE


def test_equations_name_fonts_that_have_large_signs():
    """A browser without a font for mathematics of its own would draw small brackets, and no bars over letters."""
    (fonts,) = re.findall(r"math \{\n  font-family: (.+);", STYLE)
    assert fonts.split(", ")[-1] == "math"
    assert len(fonts.split(", ")) > 3


def test_commands_wrap_wherever_they_stand():
    """Indented code is a bare <pre>, first in the article or deep in a list: neither may be cut; reports scroll."""
    assert re.search(
        r"^\.md-typeset pre:not\(\.highlight > pre\) > code \{\n  overflow-wrap: anywhere;\n  white-space: pre-wrap;",
        STYLE,
        re.MULTILINE,
    )


def test_figures_open_at_full_size(site_pages):
    shown = site_pages.on_page_content('<p><img alt="Scales" src="../scales.png" /></p>')
    assert shown.startswith('<p><a class="figure" href="../scales.png" target="_blank"><img alt="Scales"')


CITED = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text(encoding="utf-8"))


def test_what_is_cited_is_this_version():
    own = CITED["preferred-citation"]
    version, released = re.search(
        r"^## (\S+) \((.+)\)$", (DOCS.parent / "CHANGELOG.md").read_text(), re.MULTILINE
    ).groups()
    assert {mf.__version__, version, CITED["version"], own["version"]} == {mf.__version__}
    # An unreleased version is of the year of the newest paper that it measures, or later.
    newest = max(paper["year"] for paper in CITED["references"])
    assert own["year"] >= newest
    assert released == "unreleased" or released.startswith(str(own["year"]))
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert CITED.get("repository-code") == project.get("urls", {}).get("Repository")
    assert CITED["license"] == project["license"]


def test_the_citation_file_has_what_its_format_requires():
    """Version 1.2.0: four keys, a name or names for every author, three keys for every reference."""
    assert CITED["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type"} <= set(CITED)
    assert CITED["type"] in ("software", "dataset")
    for work in (CITED["preferred-citation"], *CITED["references"]):
        assert {"type", "title", "authors"} <= set(work)
        assert work["type"] in ("article", "software")
        assert isinstance(work["year"], int)
        assert {known["type"] for known in work.get("identifiers", ())} <= {"doi", "other", "swh", "url"}
        for author in work["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})


def test_how_to_cite_is_bibtex(site_pages):
    """Entries whose braces match, with a key each, and every field once."""
    page = site_pages.citation_page(DOCS.parent / "CITATION.cff")
    blocks = re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    entries = [entry for block in blocks for entry in _bibtex(block)]
    works = [CITED["preferred-citation"], *CITED["references"]]
    keys = [key for key, _ in entries]
    assert keys == ["meanfield", "zhang2026", "zheng2026", "wang2026", "zhang2025"]
    for (_, fields), work in zip(entries, works, strict=True):
        assert len(fields["author"].split(" and ")) == len(work["authors"])
        assert fields["title"] == f"{{{work['title']}}}"
        assert fields["year"] == str(work["year"])
        assert fields.get("url") == work.get("url")
    assert entries[0][1]["note"] == f"Version {mf.__version__}"
    assert entries[1][1]["eprint"] == "2602.07494"


def _bibtex(text):
    """Key and fields of every entry, read as BibTeX does: values run to the brace that closes them."""
    while text := text.strip():
        kind, key = re.match(r"@(\w+)\{(\w+),", text).groups()
        assert kind == "misc"
        text, fields = text[text.index(",") + 1 :].strip(), {}
        while not text.startswith("}"):
            name, rest = re.match(r"(\w+) = \{(.*)", text, re.DOTALL).groups()
            depth, end = 1, -1
            while depth:
                end += 1
                depth += {"{": 1, "}": -1}.get(rest[end], 0)
            assert name not in fields
            assert not re.search(r"(?<!\\)[&%$#_]", rest[:end]) or name == "url"
            assert max(map(len, rest[:end].splitlines())) < 90  # as pages show it without scrolling
            fields[name], text = " ".join(rest[:end].split()), rest[end + 1 :].removeprefix(",").strip()
        text = text.removeprefix("}")
        yield key, fields
