"""Every claim of the papers that a simulation here decides."""

from meanfield.verification.claims import Claim
from meanfield.verification.wang_2026 import claims as loops
from meanfield.verification.zhang_2026.batches import claims as batches
from meanfield.verification.zhang_2026.identities import claims as identities
from meanfield.verification.zhang_2026.plain_nets import claims as plain
from meanfield.verification.zhang_2026.residual_nets import claims as residual
from meanfield.verification.zheng_2026 import claims as spectral

_ALL = (*plain.CLAIMS, *identities.CLAIMS, *batches.CLAIMS, *residual.CLAIMS, *loops.CLAIMS, *spectral.CLAIMS)

CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=lambda one: (one.id[0], int(one.id[1:])))}
