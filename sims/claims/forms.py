"""Sections as data, rendered as Markdown and HTML; what is said of a claim, and claims counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from meanfield.verification import Claim, Finding, Kind, Verdict, power_in_words
from sims.claims.runs import NOT_RUN, Result
from sims.common.markup import Glossary
from sims.common.tables import Grid, markdown_of, table


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
        runs: by the name of a run what is known of it, perhaps nothing.
    """

    name: str
    verdict: str
    words: str
    items: Sequence[Item]
    runs: Mapping[str, str]

    def markdown(self) -> str:
        runs = ", ".join(" ".join([f"`{name}`", *([known] if known else [])]) for name, known in self.runs.items())
        lines = [f"### {self.name}", "", f"{markdown_of(self.verdict)}, {markdown_of(self.words)}.", ""]
        for item in self.items:
            words = ". ".join([item.words, *map(_capital, _named(item.more))])
            lines.append(f"- {markdown_of(item.name, _capital(item.name))}: {markdown_of(words)}.")
        return "\n".join([*lines, f"- Runs: {runs}."])

    def html(self, glossary: Glossary) -> str:
        """With links to the pages of the runs, which stand beside."""
        entries = []
        for item in self.items:
            words = "<br>".join(map(glossary.cell, [item.words, *_named(item.more)]))
            entries.append(f"<dt>{glossary.verdict(item.name, _capital(item.name))}</dt><dd>{words}</dd>")
        runs = ", ".join(
            f'<a href="{name}.html"><code>{name}</code></a> {escape(known)}'.strip()
            for name, known in self.runs.items()
        )
        lines = [
            f'<article id="{self.name}"><h3>{self.name} {glossary.verdict(self.verdict)}</h3>',
            f"<p>{glossary.cell(self.words)}</p>",
            *["<dl>", *entries, "</dl>"],
            f"<p>Runs: {runs}</p></article>",
        ]
        return "\n".join(lines)


def _named(more: Mapping[str, str]) -> Iterable[str]:
    return (f"{name}: {words}" for name, words in more.items())


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


HEADER = ("claim", "kind", "statement", "source", "verdict", "what holds instead, or what is lacking")


@dataclass(frozen=True)
class Judgement:
    """A claim, its verdict, and what that rests on.

    Attributes:
        verdict: one, or why there is none.
        origin: what is known of the run as a whole, by name.
        runs: what is known of each run that the claim rests on, perhaps nothing.
        seeds: for every finding what other seeds say of it; empty where nobody asked them.
        seconds: of a processor that a run took, by its name, where it is known.
    """

    claim: Claim
    verdict: str
    findings: Sequence[Finding] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, result: Result) -> Judgement:
        """The judgement of a claim that is judged now."""
        return cls(result.claim, result.verdict, result.findings, runs=dict.fromkeys(result.claim.runs, ""))

    @property
    def instead(self) -> dict[str, str]:
        """The law that replaces a refuted claim, and the premise that fails; of an open one what is lacking."""
        if self.verdict == Verdict.INCONCLUSIVE:
            lacking = self.claim.undecided or _lacking(self.claim, self.findings, self.seconds)
            return {"lacking": lacking} if lacking else {}
        if self.verdict != Verdict.REFUTED:
            return {}
        instead = "; ".join(filter(None, (self.claim.replaced_by, _unmade(self.claim, self.findings))))
        return {"instead": instead, "premise that fails": self.claim.premise}


def _unmade(claim: Claim, findings: Sequence[Finding]) -> str:
    """How many of its runs are not made; nothing of a record of other comparisons."""
    if len(findings) != len(claim.checks):
        return ""
    pairs = zip(claim.checks, findings, strict=True)
    missing = len({check.run for check, finding in pairs if finding.evidence == NOT_RUN})
    verb = "is" if missing == 1 else "are"
    return f"{missing} of its {len(claim.runs)} runs {verb} not judged yet" if missing else ""


def _lacking(claim: Claim, findings: Sequence[Finding], seconds: Mapping[str, float]) -> str:
    """Runs that are not judged yet, and draws that would decide the rest that is open, where the runs say so.

    Then how long these draws take, where it is known of every run. Nothing of a record of other comparisons.
    """
    if len(findings) != len(claim.checks):
        return ""
    pairs = zip(claim.checks, findings, strict=True)
    asked = [(check.run, finding) for check, finding in pairs if finding.verdict == Verdict.INCONCLUSIVE]
    made = [(run, finding) for run, finding in asked if finding.evidence != NOT_RUN]
    needs = [(finding.needed / finding.made, run, finding) for run, finding in made if finding.needed and finding.made]
    parts = list(filter(None, [_unmade(claim, findings)]))
    if needs and len(needs) == len(made):
        most = max(needs, key=lambda need: need[0])[-1]
        parts.append(f"draws: about {most.needed:,.0f} would decide, {most.made:,.0f} are made")
        times = {run: max(ratio for ratio, of_run, _ in needs if of_run == run) for _, run, _ in needs}
        if all(run in seconds for run in times):
            parts[-1] += f", in about {spent(sum(times[run] * seconds[run] for run in times))} of a processor"
    return "; ".join(parts)


def spent(seconds: float) -> str:
    """A time in words."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 36_000 else f"{seconds / 3600:.3g} h"


def table_of(judgements: Sequence[Judgement]) -> Grid:
    """A row for every claim: what an author or a user of the law looks up."""
    rows = []
    for judgement in judgements:
        claim = judgement.claim
        kind = f"{claim.kind}, an identity" if claim.identity else str(claim.kind)
        instead = next(iter(judgement.instead.values()), "")
        rows.append((claim.id, kind, claim.statement, claim.source, judgement.verdict, instead))
    return table(HEADER, rows)


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


def by_kind(verdicts: Sequence[tuple[Claim, str]]) -> Grid:
    """The verdicts of claims counted for every kind that occurs, and together."""
    counts = Counter((claim.kind, verdict) for claim, verdict in verdicts)
    occurring = [kind for kind in Kind if any(kind is counted for counted, _ in counts)]
    rows = [(str(kind), *(str(counts[kind, verdict]) for verdict in Verdict), kind.meaning) for kind in occurring]
    total = Counter(verdict for _, verdict in verdicts)
    totals = (TOGETHER, *(str(total[verdict]) for verdict in Verdict), "")
    return table(HEADER_OF_KINDS, [*rows, totals])
