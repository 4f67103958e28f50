"""Every claim of the papers that a simulation here decides, from the modules of the judges that decide it."""

import re

from meanfield.verification.claims import Claim
from meanfield.verification.wang_2026 import loop_growth, loop_rates, loop_updates, looped_transformers
from meanfield.verification.zhang_2026.batches import batch_sizes, cross_entropies
from meanfield.verification.zhang_2026.identities import aggregators, label_average, layer_norm
from meanfield.verification.zhang_2026.plain_nets import (
    activation_drift,
    depth_growth,
    depth_laws,
    overlap_conservation,
    padding,
)
from meanfield.verification.zhang_2026.plain_nets.growth import printed_laws
from meanfield.verification.zhang_2026.training import carried_rates, tuned_rates
from meanfield.verification.zhang_2026.transformers import depth_exponents, tangent_propagation
from meanfield.verification.zheng_2026 import hyperparameter_tables

_PLAIN = (overlap_conservation, printed_laws, depth_growth, depth_laws, padding, activation_drift)
_IDENTITIES = (aggregators, label_average, layer_norm)
_OTHER_NETS = (
    batch_sizes,
    cross_entropies,
    depth_exponents,
    tangent_propagation,
    carried_rates,
    loop_growth,
    loop_updates,
    loop_rates,
    looped_transformers,
    tuned_rates,
)
_SPECTRAL = (hyperparameter_tables,)
_ALL = [claim for module in (*_PLAIN, *_IDENTITIES, *_OTHER_NETS, *_SPECTRAL) for claim in module.CLAIMS]


def _place(claim: Claim) -> tuple[str, int, str]:
    """Subject, number and part: A20a is part a of A20."""
    subject, number, part = re.fullmatch(r"([A-Z])(\d+)([a-z]?)", claim.id).groups()  # type: ignore[union-attr]
    return subject, int(number), part


CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=_place)}
