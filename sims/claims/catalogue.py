"""Every claim that a study decides, by its id: an index over the studies, which hold claims and judges."""

from meanfield.verification import Claim
from sims import NAMES, simulation
from sims.claims import across
from sims.common.study import Study

# What gathers claims is no study.
_STUDIES = [study for name in NAMES if name != "claims" and isinstance(study := simulation(name), Study)]


def _place(claim: Claim) -> tuple[str, int, str]:
    """Subject, number and part: A20a is part a of A20."""
    subject, behind = claim.id[0], claim.id[1:]
    number = behind.rstrip("abcdefghijklmnopqrstuvwxyz")
    return subject, int(number), behind.removeprefix(number)


_ALL = [*across.CLAIMS, *(claim for study in _STUDIES for claim in study.claims)]
CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=_place)}
