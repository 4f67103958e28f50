"""How often each verdict is reached over seeds: what of a verdict is the luck of one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from meanfield.verification import Claim, Verdict
from sims.claims.runs import RunOptions, evidence, judged
from sims.common.report import report
from sims.common.table import table

QUESTION = "Which verdicts are the luck of a seed?"


def counted(claims: Sequence[Claim], first: RunOptions, seeds: int, folder: Path) -> dict[str, Counter[str]]:
    """By claim, how many of so many seeds give each verdict; every seed has a folder of its own."""
    counts: dict[str, Counter[str]] = {claim.id: Counter() for claim in claims}
    for seed in range(first.seed, first.seed + seeds):
        made = evidence(claims, replace(first, seed=seed), folder / f"seed-{seed}")
        for claim in claims:
            counts[claim.id][str(judged(claim, made).verdict)] += 1
    return counts


def text(counts: Mapping[str, Counter[str]]) -> str:
    """A line for every claim."""
    split = [name for name, by_verdict in counts.items() if len(by_verdict) > 1]
    lines = [[name, *(str(by_verdict[verdict]) for verdict in Verdict)] for name, by_verdict in counts.items()]
    answer = f"Those of {', '.join(split)} differ between seeds." if split else "None: all seeds agree."
    return report(QUESTION, answer, [table(["claim", *Verdict], lines, "Seeds by verdict")])
