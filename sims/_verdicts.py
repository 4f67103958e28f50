"""The verdicts at the end of a printed report, with what a stranger needs to read them."""

from __future__ import annotations

from collections.abc import Iterable

from meanfield.verification.verdicts import CONVERGED_SHARE, Finding

LEGEND = f"""\
  s.e.: standard errors by which numbers miss a claim, or its rival, beyond what is granted for finite sizes.
  REFUTED: the claim misses by more than the band. CONFIRMED: it is well inside, and its rival misses by more.
  INCONCLUSIVE: neither, as where bands are wide, or one draw makes more than {CONVERGED_SHARE:.0%} of a mean.
"""


def verdicts(findings: Iterable[Finding]) -> str:
    """All findings under a heading, with the legend where errors of draws decide."""
    sentences = [finding.sentence() for finding in findings]
    legend = [LEGEND] if any("s.e." in sentence for sentence in sentences) else []
    return "\n".join(["Verdicts", *legend, *sentences])
