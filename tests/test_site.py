"""Equations of the site: what browsers read in the MathML of the documents."""

import re
import sys
from pathlib import Path

import pytest

import meanfield as mf

pytest.importorskip("latex2mathml")
pytest.importorskip("mkdocs")
DOCS = Path(mf.__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def made():
    """A function that sets one equation."""
    sys.path.insert(0, str(DOCS))
    try:
        from site_pages import on_page_content
    finally:
        sys.path.remove(str(DOCS))
    return lambda latex: on_page_content(rf'<span class="arithmatex">\({latex}\)</span>')


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
