"""The site: the evidence behind every verdict, and what browsers read in the MathML of equations."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import meanfield as mf
from sims.claims.catalogue import CLAIMS
from sims.claims.record import recorded

pytest.importorskip("latex2mathml")
pytest.importorskip("mkdocs")
DOCS = Path(mf.__file__).parent.parent / "docs"


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
    entries = recorded("default")
    assert list(sections) == list(entries)
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
        assert f"- Recorded: seed {entry['seed']}, commit {entry['commit']}.\n" in section


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


def test_no_equation_of_the_theory_needs_an_attribute_that_browsers_drop(made):
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    equations = re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL)
    scripts = {outer or inner for outer, inner in equations if r"\mathcal" in (outer or inner)}
    assert len(scripts) > 10
    for latex in scripts:
        assert set(re.findall(r'mathvariant="(\w+)"', made(latex))) <= {"normal"}, latex
