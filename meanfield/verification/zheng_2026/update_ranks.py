"""Zheng et al. 2026: the rank of updates (assumption C.1), and what gradients of low rank do to SOAP (C.10)."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from meanfield.verification.claims import Check, Claim, Kind
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.series import OFF, LadderRow, against_conditions, ladder_slope, ladder_values
from meanfield.verification.zheng_2026.coordinate_checks import DIRECTIONS, NETS, flatness

# Optimizers that step every element by itself, of which the paper assumes it.
OF_ELEMENTS = ("sgd", "adamw", "lion", "sophia")

RUN = ("--tables", "many", "--optimizers", *OF_ELEMENTS, "--times", "2")
# Outputs of a linear net bound the rank of its gradients, four of them here; masks of ReLU lift that to the samples.
RELU = ("--activation", "relu")

JUDGES = Judges()


def rank_rows(dataset: xr.Dataset, optimizers: Sequence[str]) -> list[LadderRow]:
    """Slopes of the stable rank of input, hidden and output updates after the first and the last step."""
    rows, roles = [], list(map(str, dataset["role"].values))
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    for direction, optimizer, role, step in product(DIRECTIONS, optimizers, roles, steps):
        at = {"optimizer": optimizer, "role": role, "step": step, "table": dataset["table"].values[0]}
        law = ladder_slope(dataset[direction].values, ladder_values(dataset, "stable_rank", direction, **at))
        rows.append(LadderRow("stable rank", direction, law, optimizer, role, step))
    return rows


@JUDGES.decide
def judge_ranks(dataset: xr.Dataset) -> Contest:
    """Updates of {optimizers} have a stable rank |A|_F^2 / |A|_2^2 that neither width nor depth changes; rival: it
    grows or falls as the root of one of them; source: assumption C.1, eq. 15; measured: slopes of the stable rank in
    width and in depth, of input, hidden and output weights, after the first and the last step."""
    optimizers = [name for name in map(str, dataset["optimizer"].values) if name in OF_ELEMENTS]
    rows = rank_rows(dataset, optimizers)
    claim, rival = against_conditions(rows)
    hardest = rows[int(np.argmax(claim.excess))]
    law = hardest.slope
    largest = max(float(dataset[f"stable_rank_by_{direction}"].max()) for direction in DIRECTIONS)
    made = Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows))
    shown = f"{len(rows)} slopes, hardest {law} ({hardest.where}), allowance "
    most = int(dataset.attrs["samples"])
    return made.saying(
        f"{shown}{law.allowance:.3f}; largest {largest:.1f} for {most} samples and {dataset.attrs['outputs']} outputs",
        optimizers=", ".join(optimizers),
    )


CLAIMS = (
    Claim(
        id="S8",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumption C.1, eq. 15",
        statement="updates of SGD, AdamW, Lion and Sophia have a stable rank that neither width nor depth changes",
        printed='"|A_l|_2 = Theta(|A_l|_F), where the hidden constants are independent of width and depth" (equation '
        "15)",
        hypotheses="eight samples and four outputs, which cap the rank of gradients of linear nets at four whatever "
        "their size; with ReLU behind every matrix the cap is the eight samples. k = 2, ten steps with momentum, "
        "widths 32 .. 256 and 2 .. 32 blocks",
        checks=(
            Check("coordinate_check", judge_ranks, RUN),
            Check("coordinate_check", judge_ranks, (*RUN, *RELU)),
        ),
    ),
    Claim(
        id="S5l",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, appendix C.10, table 4",
        statement="SOAP's table keeps features, their changes and every role's share in them flat at an epsilon of "
        "1e-8, the usual value of programs, too",
        printed='"First, omit the momentum and the stabilization term in the AdamW operator" (appendix C.10)',
        hypotheses="beyond what the paper derives, which has no momentum and no epsilon. SOAP at k = 2, ten steps with "
        f"momentum, {NETS}",
        checks=(flatness("many", ("soap",), "--soap-epsilon", "1e-8"),),
        replaced_by="with an epsilon of 0.002, as large as small singular values of gradients of the base model, they "
        "are flat (S5a)",
        premise="that no direction of the momentum is without a squared gradient: gradients of eight samples and four "
        "outputs are of rank eight at most, and where the momentum has a turned direction in which no squared gradient "
        "has come in yet, it is divided by epsilon alone",
    ),
)
