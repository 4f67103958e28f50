"""Which recorded verdicts other seeds contradict: of claims, and of their comparisons one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from meanfield.verification import Claim, Verdict
from sims import simulation
from sims.claims.catalogue import CLAIMS
from sims.claims.record import Entry, seeds_of

CONTRARY = {Verdict.CONFIRMED: Verdict.REFUTED, Verdict.REFUTED: Verdict.CONFIRMED}


@dataclass(frozen=True)
class Tally:
    """Verdicts from other seeds: how many, how many that contradict the recorded one, and how many that are neither."""

    verdicts: int
    alarms: int
    undecided: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, Mapping[str, int]]]) -> Tally:
        """Of recorded verdicts, each with the counts of the seeds."""
        total: Counter[str] = Counter()
        alarms = 0
        for recorded, counts in pairs:
            total.update(counts)
            alarms += counts.get(CONTRARY.get(recorded, ""), 0)  # type: ignore[call-overload]
        return cls(total.total(), alarms, total[Verdict.INCONCLUSIVE])

    def __str__(self) -> str:
        return f"{self.verdicts:,} such verdicts {self.alarms} are false alarms and {self.undecided:,} are INCONCLUSIVE"


def takes_seed(claim: Claim) -> bool:
    """Whether a run that the claim rests on draws anything: twenty seeds of the others are one verdict."""
    return any("seed" in simulation(check.simulation).parse([]) for check in claim.checks)


def of_claims(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> Tally:
    """Of the claims that a seed enters."""
    seeded = {name: seeds_of(entry)["claim"] for name, entry in counted.items() if takes_seed(CLAIMS[name])}
    return Tally.of((kept[name]["verdict"], counts) for name, counts in seeded.items())


def of_comparisons(kept: Mapping[str, Entry], counted: Mapping[str, Entry]) -> Tally:
    """Of the comparisons that both records have; those whose numbers no seed changes count nothing."""
    pairs = []
    for name, entry in counted.items():
        findings, comparisons = kept[name].get("findings", []), seeds_of(entry)["comparisons"]
        if len(findings) == len(comparisons):
            pairs += [(own["verdict"], counts) for own, counts in zip(findings, comparisons, strict=True)]
    return Tally.of(pairs)
