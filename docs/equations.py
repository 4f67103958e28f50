"""An equation in LaTeX as MathML that browsers draw as TeX would: they know a part of MathML, and no script is needed.

What the converter leaves to them, or gets wrong, is mended in its tree: letters of a word are one identifier, bars and
brackets are fences that grow only where LaTeX says so, accents stand close, and a function's name stands apart.
"""

import re
import unicodedata
from xml.etree import ElementTree

from latex2mathml.converter import convert

NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'
# LaTeX that the converter lacks, or that it makes alike for both sides, by a character that stands for it.
SPELLINGS = {r"\lbrace": "\ue000", r"\rbrace": "\ue001", r"\lvert": "\ue002", r"\rvert": "\ue003"}
FENCES = {"\ue000": ("{", "prefix"), "\ue001": ("}", "postfix"), "\ue002": ("|", "prefix"), "\ue003": ("|", "postfix")}
FENCES |= {"⟨": ("⟨", "prefix"), "⟩": ("⟩", "postfix"), "⌊": ("⌊", "prefix"), "⌋": ("⌋", "postfix")}
FUNCTIONS = {"log", "ln", "exp", "cos", "arccos", "arcsin", "max", "min", "sup"}
THIN = {"width": "0.167em"}
# Elements of which the first part is what the others stand at.
AT_BASE = ("msub", "msup", "msubsup", "munder", "mover", "munderover")


def mathml(latex: str, display: str) -> str:
    """The element `math` of an equation, ``display`` being "inline" or "block"."""
    for spelling, character in SPELLINGS.items():
        latex = re.sub(rf"{re.escape(spelling)}(?![a-zA-Z])", character, latex)
    root = ElementTree.fromstring(convert(latex, display=display).replace(NAMESPACE, ""))
    for element in list(root.iter()):
        _mend(element)
    for row in reversed(list(root.iter())):  # a row inside before the row that it stands in, where it may be a name
        if row.tag in ("math", "mrow", "mstyle"):
            row[:] = _spaced(_words(row))
    return ElementTree.tostring(root, encoding="unicode").replace("<math", f"<math{NAMESPACE}", 1)


def _mend(element: ElementTree.Element) -> None:
    """One element by itself."""
    if element.text in FENCES:
        element.text, form = FENCES[element.text]
        element.tag, sized = "mo", "minsize" in element.attrib
        element.attrib |= {"form": form} | ({} if sized else {"stretchy": "false"})
    if element.get("mathvariant") == "script":  # an attribute that browsers ignore: they would show a plain letter
        del element.attrib["mathvariant"]
        element.text = _script(element.text or "")
    if element.tag == "mover" and element[1].tag == "mo":
        element.set("accent", "true")
        if element[1].text == "^" and len(element[0]) == 0:  # over one letter; \\widehat has a row below
            element[1].set("stretchy", "false")


def _script(letter: str) -> str:
    """The script letter itself; those that Unicode had before the others lack the first word of their names."""
    name = f"SCRIPT {'CAPITAL' if letter.isupper() else 'SMALL'} {letter.upper()}"
    try:
        return unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        return unicodedata.lookup(name)


def _words(row: ElementTree.Element) -> list[ElementTree.Element]:
    """Upright letters that follow each other as one identifier, which needs no attribute to be upright."""
    merged: list[ElementTree.Element] = []
    for element in row:
        letters = element.tag == "mi" and element.get("mathvariant") == "normal" and element.text
        if letters and merged and merged[-1].tag == "mi" and merged[-1].get("upright"):
            merged[-1].text = f"{merged[-1].text}{element.text}"
            continue
        if letters:
            element.set("upright", "true")
        merged.append(element)
    for element in merged:
        if element.attrib.pop("upright", None) and len(element.text or "") > 1:
            del element.attrib["mathvariant"]
    return merged


def _spaced(elements: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """A thin space between a name of several letters, with what stands at it, and what it multiplies or takes."""
    spaced: list[ElementTree.Element] = []
    for before, element, after in zip([None, *elements], elements, [*elements[1:], None], strict=False):
        if _is_name(element) and _is_factor(before, ")]}"):
            spaced.append(ElementTree.Element("mspace", THIN))
        spaced.append(element)
        # Where a name follows, it brings the space.
        if _is_name(element) and _is_factor(after, "") and not _is_name(after):
            spaced.append(ElementTree.Element("mspace", THIN))
    return spaced


def _is_name(element: ElementTree.Element) -> bool:
    """Whether it is a function's name or another word, or has one as its base."""
    base = element
    while base.tag in AT_BASE or (base.tag == "mrow" and len(base) == 1):
        base = base[0]
    return base.text in FUNCTIONS or (base.tag == "mi" and len(base.text or "") > 1)


def _is_factor(element: ElementTree.Element | None, closing: str) -> bool:
    """Whether it may be multiplied: no space, and no sign but for a bracket that closes."""
    while element is not None and element.tag == "mrow" and len(element):
        element = element[-1 if closing else 0]
    if element is None or element.tag in ("mspace", "mtext"):
        return False
    return element.tag != "mo" or element.text in FUNCTIONS or (closing != "" and (element.text or " ") in closing)
