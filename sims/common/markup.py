"""What pages are made of: words that explain themselves, verdicts in colour, tables that sort, code to copy.

All of it is HTML that `sims/common/page.css` and `page.js` style and move; nothing here has a style of its own, which
the page's policy would forbid. Everything that comes from data passes through `Glossary` or `escape`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape

from meanfield.verification import Verdict
from sims.common.tables import MISSING, WITHIN, Grid

# Cells that are a number, or begin with the one that they are about; `page.js` reads them alike.
NUMBER = re.compile(
    rf"[+-]?\d[\d.]*(,\d{{3}})*(e[+-]?\d+)?(/\d+)?( ?%)?({re.escape(WITHIN)}[\de.+-]+)?($| \(| \.\. | of \d| \*$)"
)


class Glossary:
    """Words of a page, with what they mean: each is marked where it stands, and explains itself on hover or focus.

    ``first``: those of them that have this meaning only where a text begins with them, up to its end or a sign.
    """

    def __init__(self, words: Mapping[str, str], first: Collection[str] = ()) -> None:
        self._words = words
        self._numbers = {word: number for number, word in enumerate(words, start=1)}
        longest_first = sorted(words, key=len, reverse=True)
        spaced = {word: re.escape(word).replace(r"\ ", r"\s+") for word in longest_first}
        forms = (rf"^{form}(?=$|[,:])" if word in first else rf"(?<!\w){form}(?!\w)" for word, form in spaced.items())
        self._pattern = re.compile(f"({'|'.join(forms)})" if words else "(?!)()")

    def prose(self, text: str) -> str:
        """Text whose words lead to their explanation, for keyboards too."""
        return self._marked(text, '<a class="word" href="#word-{0}" data-word="{0}">{1}</a>')

    def cell(self, text: str) -> str:
        """Text of a table, of which every word would be one stop more for a keyboard; a verdict has its colour."""
        if isinstance(text, Verdict):
            return self.verdict(text)
        return self._marked(text, '<span class="word" data-word="{0}">{1}</span>')

    def verdict(self, verdict: str, shown: str = "") -> str:
        """A verdict in its colour, and in its own words, if it has any; other words as they are."""
        if not isinstance(verdict, Verdict):
            return escape(shown or verdict)
        number = self._numbers.get(verdict)
        explained = f' data-word="{number}"' if number else ""
        return f'<span class="verdict {verdict.lower()}"{explained}>{escape(shown or verdict)}</span>'

    def button(self, text: str) -> str:
        """A header that sorts its column, and explains all of its words at once."""
        numbers = [self._number(word) for word in self._pattern.findall(text)]
        ids = " ".join(f"word-{number}" for number in numbers)
        explained = f' class="word" data-word="{" ".join(map(str, numbers))}" aria-describedby="{ids}"'
        return f'<button type="button"{explained if numbers else ""}>{escape(text)}</button>'

    def html(self) -> str:
        """All words with what they mean."""
        if not self._words:
            return ""
        entries = (
            f'<dt>{escape(word)}</dt><dd id="word-{self._numbers[word]}">{escape(meaning)}</dd>'
            for word, meaning in self._words.items()
        )
        return "\n".join(["<dl>", *entries, "</dl>"])

    def _marked(self, text: str, form: str) -> str:
        pieces = enumerate(self._pattern.split(text))
        return "".join(
            form.format(self._number(piece), escape(piece)) if place % 2 else escape(piece) for place, piece in pieces
        )

    def _number(self, word: str) -> int:
        return self._numbers[" ".join(word.split())]


def table_html(grid: Grid, glossary: Glossary, *, linked: Mapping[str, str] | None = None) -> str:
    """A table that sorts, in a box of its own, where it is wider than the screen; without numbers it folds instead.

    ``linked``: where names in its first column lead.
    """
    columns = list(zip(*grid.rows, strict=True)) or [()] * len(grid.header)
    kinds = [' class="number"' if _is_of_numbers(cells) else "" for cells in columns]
    folds = not any(kinds)
    names = [f' data-name="{escape(name)}"' if folds and name else "" for name in grid.header]
    head = "".join(f"<th{kind}>{glossary.button(name)}</th>" for kind, name in zip(kinds, grid.header, strict=True))
    body = []
    for row in grid.rows:
        cells = list(map(glossary.cell, row))
        if linked and row[0] in linked:
            cells[0] = f'<a href="{escape(linked[row[0]])}">{escape(row[0])}</a>'
        line = zip(kinds, names, cells, strict=True)
        body.append(f"<tr>{''.join(f'<td{kind}{name}>{cell}</td>' for kind, name, cell in line)}</tr>")
    title = f"<h3>{glossary.prose(grid.title)}</h3>" if grid.title else ""
    what = escape(" ".join(grid.title.split()) or "table")
    kind = ' class="words"' if folds else ""
    lines = [
        f'{title}<div class="scroll" tabindex="0" role="group" aria-label="{what}">',
        f"<table{kind}><thead><tr>{head}</tr></thead>",
        "<tbody>",
        *body,
        "</tbody></table></div>",
    ]
    return "\n".join([*lines, *(f'<p class="lines">{glossary.prose(reason)}</p>' for reason in grid.lost)])


def _is_of_numbers(cells: Sequence[str]) -> bool:
    """Whether there are at least as many numbers as different words, which say why there is none."""
    present = [cell for cell in cells if cell not in (MISSING, "")]
    words = {cell for cell in present if not NUMBER.match(cell)}
    return 0 < sum(NUMBER.match(cell) is not None for cell in present) >= len(words)


def code_html(lines: str) -> str:
    """What to type, with a button that copies it."""
    return f'<div class="code"><pre><code>{escape(lines)}</code></pre><button type="button">Copy</button></div>'
