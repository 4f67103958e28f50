"""How often each verdict is reached over seeds: what of a verdict is the luck of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from meanfield.verification import Claim, Verdict
from sims.claims.catalogue import CLAIMS
from sims.claims.runs import Result, RunOptions, evidence, judged
from sims.common.report import Document
from sims.common.tables import Grid, table

QUESTION = "Which verdicts are the luck of a seed?"


@dataclass(frozen=True)
class Counts:
    """How many seeds give each verdict: of a claim, and of each of its comparisons.

    A comparison whose evidence is the same from all seeds counts nothing: more seeds say no more of it than one.
    """

    claim: Counter[str]
    comparisons: list[Counter[str]]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Counts:
        """From the results of one claim, seed by seed."""
        comparisons = []
        for seeds in zip(*(result.findings for result in results), strict=True):
            differ = len({finding.evidence for finding in seeds}) > 1
            comparisons.append(Counter(str(finding.verdict) for finding in seeds if differ))
        return cls(Counter(str(result.verdict) for result in results), comparisons)


def counted(claims: Sequence[Claim], first: RunOptions, seeds: int, folder: Path) -> dict[str, Counts]:
    """By claim, how many of so many seeds give each verdict; every seed has a folder of its own."""
    results: dict[str, list[Result]] = {claim.id: [] for claim in claims}
    for seed in range(first.seed, first.seed + seeds):
        made = evidence(claims, replace(first, seed=seed), folder / f"seed-{seed}")
        for claim in claims:
            results[claim.id].append(judged(claim, made))
    return {name: Counts.of(made) for name, made in results.items()}


def text(counts: Mapping[str, Counts]) -> str:
    """A line for every claim, with its kind; which of them differ between seeds, and which no seed decides."""
    split = [name for name, count in counts.items() if len(count.claim) > 1]
    lines = [
        [name, CLAIMS[name].kind, *(str(count.claim[verdict]) for verdict in Verdict)] for name, count in counts.items()
    ]
    answer = f"Those of {', '.join(split)} differ between seeds." if split else "None: all seeds agree."
    parts: list[str | Grid] = (
        [f"{left}: with --times N they have N times the draws."] if (left := not_replicated(counts)) else []
    )
    parts.append(table([["claim", "kind"], *Verdict], lines, "Seeds by verdict"))
    return Document(question=QUESTION, answer=answer, parts=parts).text()


def not_replicated(counts: Mapping[str, Counts]) -> str:
    """Which claims no seed decides, in words, or nothing: that all agree on INCONCLUSIVE repeats no verdict."""
    return undecided_by_all({name: count.claim for name, count in counts.items()})


def undecided_by_all(by_claim: Mapping[str, Mapping[str, int]]) -> str:
    """The same, from the counts of verdicts by claim."""
    left = [name for name, counts in by_claim.items() if set(counts) == {Verdict.INCONCLUSIVE}]
    return f"Not replicated, as all seeds leave it INCONCLUSIVE: {', '.join(left)}" if left else ""
