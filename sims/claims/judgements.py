"""What is said of judged claims in every form, whether they are judged now or were recorded: a table and sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from meanfield.verification import Claim, Finding, Verdict, power_in_words
from sims.claims.forms import Item, Section, Table
from sims.claims.runs import Result

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
