"""Every claim of the papers that a simulation here decides."""

from meanfield.verification.catalogue import loops, plain, residual
from meanfield.verification.claims import Claim

CLAIMS: dict[str, Claim] = {
    claim.id: claim
    for claim in sorted(
        (*plain.CLAIMS, *residual.CLAIMS, *loops.CLAIMS), key=lambda claim: (claim.id[0], int(claim.id[1:]))
    )
}
