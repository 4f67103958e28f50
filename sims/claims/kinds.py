"""Verdicts counted by what claims are to their sources: one on a reading of ours says nothing of what a paper says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from meanfield.verification import Claim, Kind, Verdict
from sims.claims.forms import Table

TOGETHER = "all kinds"

# A kind, how many of its claims have each verdict, and what the kind means.
HEADER = ("kind", *Verdict, "what such a claim is")


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
    return Table(HEADER, [*rows, (TOGETHER, *(str(total[verdict]) for verdict in Verdict), "")])
