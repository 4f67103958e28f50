"""Tables and sections as data, rendered as text, Markdown and HTML; what is said of a claim, and claims counted by
kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from meanfield.verification import Claim, Finding, Kind, Verdict, power_in_words
from sims.claims.runs import Result
from sims.common.report import folded
from sims.common.tables import table

# Blue, vermilion, grey: told apart by readers with any colour vision; the word stands beside.
COLORS = {Verdict.CONFIRMED: "#0072b2", Verdict.REFUTED: "#d55e00", Verdict.INCONCLUSIVE: "#767676"}


@dataclass(frozen=True)
class Table:
    """Rows of words under a header; a cell that is a `Verdict` stands out."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self, title: str) -> str:
        return table(self.header, self.rows, title)

    def markdown(self) -> str:
        body = [[_markdown(cell) for cell in row] for row in self.rows]
        lines = [self.header, ["---"] * len(self.header), *body]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def html(self, linked: bool = False) -> str:
        """The table; ``linked``: the first cell of a row names a section of the same page."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        rows = [[_html(cell) for cell in row] for row in self.rows]
        if linked:
            rows = [[f'<a href="#{name}">{name}</a>', *cells] for name, *cells in rows]
        lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
        return "\n".join(["<table>", *(f"<tr>{line}</tr>" for line in (head, *lines)), "</table>"])


@dataclass(frozen=True)
class Item:
    """One thing that a section says: a verdict or another name, the words, and more words by name."""

    name: str
    words: str
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A name and its verdict, what this is on, and what it rests on.

    Attributes:
        runs: by the name of a run what is known of it, perhaps nothing; plain text leaves runs out, for their names
            are long.
    """

    name: str
    verdict: str
    words: str
    items: Sequence[Item]
    runs: Mapping[str, str]

    def text(self) -> str:
        lines = [folded(self.words, f"{self.name:6}{self.verdict:14}", 20)]
        for item in self.items:
            words = "; ".join([item.words, *_named(item.more)])
            lines.append(folded(words, f"{'':6}{item.name:13} ", 20))
        return "\n".join(lines)

    def markdown(self) -> str:
        runs = ", ".join(" ".join([f"`{name}`", *([known] if known else [])]) for name, known in self.runs.items())
        lines = [f"### {self.name}", "", f"{_markdown(self.verdict)}, {_markdown(self.words)}.", ""]
        for item in self.items:
            words = ". ".join([item.words, *map(_capital, _named(item.more))])
            lines.append(f"- {_markdown(item.name, _capital(item.name))}: {_markdown(words)}.")
        return "\n".join([*lines, f"- Runs: {runs}."])

    def html(self) -> str:
        entries = []
        for item in self.items:
            words = "<br>".join(map(escape, [item.words, *_named(item.more)]))
            entries.append(f"<dt>{_html(item.name, _capital(item.name))}</dt><dd>{words}</dd>")
        runs = ", ".join(
            f'<a href="#{name}"><code>{name}</code></a> {escape(known)}'.strip() for name, known in self.runs.items()
        )
        return (
            f'<article id="{self.name}"><h2>{self.name} {_html(self.verdict)}</h2><p>{escape(self.words)}</p>\n'
            + "\n".join(["<dl>", *entries, "</dl>"])
            + f"<p>Runs: {runs}</p></article>"
        )


def _named(more: Mapping[str, str]) -> Iterable[str]:
    return (f"{name}: {words}" for name, words in more.items())


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _markdown(cell: str, shown: str = "") -> str:
    """A verdict in bold; other words without what Markdown would take for columns or emphasis."""
    escaped = (shown or cell).replace("|", "\\|").replace("*", "\\*")
    return f"**{escaped}**" if isinstance(cell, Verdict) else escaped


def _html(cell: str, shown: str = "") -> str:
    """A verdict in its colour."""
    escaped = escape(shown or cell)
    if not isinstance(cell, Verdict):
        return escaped
    return f'<span class="verdict" style="color:{COLORS[cell]}">{escaped}</span>'


HEADER = ("claim", "kind", "statement", "source", "verdict", "what holds instead")


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict, and what that rests on.

    Attributes:
        verdict: one, or why there is none.
        origin: what is known of the run as a whole, by name.
        runs: what is known of each run that the claim rests on, perhaps nothing.
        seeds: for every finding what other seeds say of it; empty where nobody asked them.
    """

    claim: Claim
    verdict: str
    findings: Sequence[Finding] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[str] = ()

    @classmethod
    def of(cls, result: Result) -> Judgement:
        """The judgement of a claim that is judged now."""
        return cls(result.claim, result.verdict, result.findings, runs=dict.fromkeys(result.claim.runs, ""))

    @property
    def instead(self) -> dict[str, str]:
        """The law that replaces a refuted claim, and the premise that fails."""
        if self.verdict != Verdict.REFUTED:
            return {}
        return {"instead": self.claim.replaced_by, "premise that fails": self.claim.premise}


def table_of(judgements: Sequence[Judgement]) -> Table:
    """A row for every claim: what an author or a user of the law looks up."""
    rows = []
    for judgement in judgements:
        claim = judgement.claim
        kind = f"{claim.kind}, an identity" if claim.identity else str(claim.kind)
        words = (claim.id, kind, claim.statement, claim.source, judgement.verdict, judgement.instead.get("instead", ""))
        rows.append(words)
    return Table(HEADER, rows)


def section_of(judgement: Judgement) -> Section:
    """What the source prints and assumes, every comparison with its numbers, and what holds of a refuted claim."""
    claim = judgement.claim
    seeds = judgement.seeds or [""] * len(judgement.findings)
    items = [
        Item("printed", claim.printed),
        Item("assumed", claim.hypotheses),
        *map(_comparison, judgement.findings, seeds),
        *(Item(name, words) for name, words in {**judgement.instead, **judgement.origin}.items() if words),
    ]
    words = f"{claim.kind}: {claim.statement} ({claim.source})"
    return Section(claim.id, judgement.verdict, words, items, judgement.runs)


def _comparison(finding: Finding, seeds: str) -> Item:
    numbers = {
        "rival": finding.rival,
        "measured": finding.measured,
        "numbers": finding.evidence,
        "power": power_in_words(finding.power),
        "seeds": seeds,
    }
    return Item(finding.verdict, finding.claim, {name: words for name, words in numbers.items() if words})


TOGETHER = "all kinds"

# A kind, how many of its claims have each verdict, and what the kind means.
HEADER_OF_KINDS = ("kind", *Verdict, "what such a claim is")


def in_words(verdicts: Iterable[str]) -> str:
    """How many there are of each verdict."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)


def by_kind(verdicts: Sequence[tuple[Claim, str]]) -> Table:
    """The verdicts of claims counted for every kind that occurs, and together."""
    counts = Counter((claim.kind, verdict) for claim, verdict in verdicts)
    occurring = [kind for kind in Kind if any(kind is counted for counted, _ in counts)]
    rows = [(str(kind), *(str(counts[kind, verdict]) for verdict in Verdict), kind.meaning) for kind in occurring]
    total = Counter(verdict for _, verdict in verdicts)
    return Table(HEADER_OF_KINDS, [*rows, (TOGETHER, *(str(total[verdict]) for verdict in Verdict), "")])
