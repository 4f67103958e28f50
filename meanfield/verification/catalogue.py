"""Every claim of the papers that a simulation here decides, from the modules of the judges that decide it."""

import re

from meanfield.verification.claims import Claim
from meanfield.verification.wang_2026 import loop_growth, loop_rates, loop_updates, looped_transformers
from meanfield.verification.zhang_2026.plain_nets import (
    depth_growth,
    depth_laws,
)
from meanfield.verification.zhang_2026.plain_nets.growth import printed_laws
from meanfield.verification.zhang_2026.training import carried_rates
from meanfield.verification.zhang_2026.transformers import depth_exponents, tangent_propagation
from meanfield.verification.zheng_2026 import hyperparameter_tables

_PLAIN = (overlap_conservation, printed_laws, depth_growth, depth_laws, padding)
_OTHER_NETS = (
    depth_exponents,
    tangent_propagation,
    loop_growth,
    loop_updates,
    loop_rates,
    looped_transformers,
)
_SPECTRAL = (
    spectral_products,
    coordinate_checks,
    table_cells,
    takeaways,
    training_assumptions,
    update_ranks,
    reported_losses,
    single_optimizers,
    carried_losses,
    transformer_checks,
    hyperparameter_tables,
)
_ALL = [claim for module in (*_PLAIN, *_OTHER_NETS, *_SPECTRAL) for claim in module.CLAIMS]


def _place(claim: Claim) -> tuple[str, int, str]:
    """Subject, number and part: A20a is part a of A20."""
    subject, number, part = re.fullmatch(r"([A-Z])(\d+)([a-z]?)", claim.id).groups()  # type: ignore[union-attr]
    return subject, int(number), part


CLAIMS: dict[str, Claim] = {claim.id: claim for claim in sorted(_ALL, key=_place)}
