"""Zheng et al. 2026, takeaways 1 to 3: block depth decides the rule for depth, and SGD alone needs more than 1/L."""

import numpy as np
import xarray as xr

from meanfield.verification.claims import Check, Claim, Kind
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.series import OFF
from meanfield.verification.verdicts import Deviation
from meanfield.verification.zheng_2026 import table_cells
from meanfield.verification.zheng_2026.coordinate_checks import (
    NETS,
    OF_MANY_LAYERS,
    flatness,
    judge_other_tables,
)

# The optimizer in which second-order terms were seen to settle within ten steps.
SETTLED = "muon"

# The judges of takeaway 2, on `sims.table_cells`.
CELLS = Judges()


def _depth_cells(dataset: xr.Dataset, *names: str) -> list[table_cells.Cell]:
    """Cells of hyperparameters of these names along the ladder in depth, of all optimizers that were run."""
    measured = table_cells.measured_cells(dataset, *table_cells.run_optimizers(dataset))
    return [cell for cell in measured if cell.direction == "depth" and cell.hyperparameter in names]


@CELLS.decide
def judge_rates_in_depth(dataset: xr.Dataset) -> Contest:
    """Of all optimizers SGD alone needs learning rates and weight decays that scale with the depth; rival: the power of
    one is half a power off; measured: the power of L at which what each rate or decay multiplies meets its condition,
    against the printed one, each a quarter power at most."""
    measured = _depth_cells(dataset, "learning_rate", "weight_decay")
    scaling = list(dict.fromkeys(cell.optimizer for cell in measured if cell.printed))
    if scaling != ["sgd"]:
        named = ", ".join(scaling) or "no optimizer"
        raise ValueError(f"tables of {named} have such cells; run all optimizers at a block depth of two")
    return table_cells.contest_of(dataset, measured)


@CELLS.decide
def judge_epsilons_in_depth(dataset: xr.Dataset) -> Contest:
    """No epsilon scales with the depth: the gradients beside which hidden weights have theirs keep their size; rival:
    one does; measured: the power of L of the gradients beside which each epsilon stands that tables scale with the
    depth."""
    measured = [cell for cell in _depth_cells(dataset, "adamw_epsilon", "shampoo_epsilon") if cell.printed]
    needed, stderr = (np.array(v) for v in zip(*((c.needed, c.stderr) for c in measured), strict=True))
    claim = Deviation(needed, stderr, table_cells.NEAREST)
    most = int(np.argmax(claim.excess))
    rival = Deviation(max(OFF - abs(needed[most]), 0.0), stderr[most], table_cells.NEAREST)
    words = ", ".join(f"{c.name} {c.needed:+.3f} +- {c.stderr:.3f}" for c in measured)
    return Contest(claim, rival, gaussian=True, comparisons=len(measured), apart=OFF).saying(words)


def _other_table(*arguments: str) -> Check:
    """The table for k = 1 on blocks of two layers, of one optimizer."""
    return flatness("one", (SETTLED,), *arguments, judge=judge_other_tables)


CLAIMS = (
    Claim(
        id="S5b",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, section 5.3",
        statement="with ReLU behind every matrix, on blocks of k = 2 layers, the table for k = 1 does not keep "
        "features, their changes and every role's share in them flat (which is not the block depth's doing: with ReLU "
        "it fails at k = 1 as well, S2b)",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="the paper shows it on Transformers; checked with Muon on nets of eq. 28, where |h_L| grows with "
        f"the depth already before training, as outputs of ReLU have a mean (S2b). Ten steps, {NETS}",
        checks=(_other_table("--activation", "relu"),),
    ),
    Claim(
        id="S5d",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, takeaway 2",
        statement="for every optimizer but SGD the learning rates and weight decays of width alone, with the "
        "multiplier 1/L, keep nets flat in depth",
        printed='"For the modern optimizers considered in this paper, except SGD, ... taking the corresponding '
        'width-scaling muP implementation and adding the hidden residual multiplier" (section 4.3)',
        hypotheses="epsilons are as tables 4 and 6 have them: hidden ones scale with the depth, too (S5f). Linear "
        f"blocks of k = 2 layers, eight optimizers, ten steps (SSO: five; SOAP with an epsilon of 0.002, S5a), {NETS}; "
        "SGD's cells as in S5e",
        checks=(
            *OF_MANY_LAYERS,
            Check("table_cells", judge_rates_in_depth),
        ),
    ),
    Claim(
        id="S5f",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 2, read literally; appendices C.6, C.9 and tables 4, 6 say otherwise",
        statement="epsilons need no rule for depth either",
        printed='"For most modern optimizers, ... the muP formulation from Condition 3.1 is just width-scaling muP '
        'plus a hidden residual multiplier" (takeaway 2)',
        hypotheses=f"a reading: 'just' counts epsilons in. AdamW and Shampoo, k = 2, {table_cells.RUN}",
        checks=(Check("table_cells", judge_epsilons_in_depth),),
        replaced_by="the paper's own tables 4 and 6: AdamW's epsilon falls as 1/L, Shampoo's as 1/L^2",
        premise="that 'just' covers epsilons, which appendices C.6 and C.9 except",
    ),
    Claim(
        id="S5i",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, read as a statement on the linear nets of eq. 2",
        statement="in linear nets of blocks of k = 2 layers the table for k = 1 does not keep features, their changes "
        "and every role's share in them flat",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="a reading: the paper shows it on Transformers, and its own counting of orders (eq. 5 with the "
        "norms of condition B.1) leaves them flat and loses the second order alone, as L^(-1/2). Muon, ten steps, "
        f"{NETS}",
        checks=(_other_table(),),
        replaced_by="features, their changes and every role's share are flat, and only the second order of updates is "
        "lost (S5c), as the paper's eq. 5 has it",
        premise="that what condition B.1 loses is seen in the size of features or of their changes",
    ),
)
