"""Every claim of the papers that a simulation here decides."""

from meanfield.verification.catalogue import batches, identities, loops, plain, residual, spectral
from meanfield.verification.claims import Claim

_ALL = (*plain.CLAIMS, *identities.CLAIMS, *batches.CLAIMS, *residual.CLAIMS, *loops.CLAIMS, *spectral.CLAIMS)

CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=lambda one: (one.id[0], int(one.id[1:])))}
