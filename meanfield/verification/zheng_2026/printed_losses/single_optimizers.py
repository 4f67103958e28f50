"""Zheng et al. 2026, sections 5.3, 5.4 and appendix E: sentences on single optimizers, and the printed losses."""

from functools import partial
from math import log

import numpy as np
import xarray as xr
from scipy.stats import fisher_exact

from meanfield.verification.claims import Check, Claim, Kind, checks
from meanfield.verification.judges import Judges, Ruling
from meanfield.verification.verdicts import DOUBT, Verdict
from meanfield.verification.zheng_2026.printed_losses.reported_losses import (
    CELL,
    COMPARISONS,
    DEPTHS,
    MUON_BY_STANDARD,
    MUON_KIMI,
    PRINTED,
    SHAMPOO_BY_CONDITION,
    SHAMPOO_BY_STANDARD,
    SOPHIA_BY_STANDARD,
    judge_steadier,
    kept,
    lost,
)

# Muon-Kimi without LayerNorm, by the standard and under condition 3.1; and from how many blocks on the paper speaks.
UNNORMALISED_STANDARD, UNNORMALISED_MANY, LARGE = 20, 21, 32
# A net that knows nothing of its text has this loss: GPT-2 tells so many tokens apart.
VOCABULARY = 50257

JUDGES = Judges()
findings = JUDGES.findings


def _stable(dataset: xr.Dataset, table: int, large: bool) -> tuple[int, int]:
    """Runs of large nets, or of small ones, that end below the loss of a net that knows nothing; and all such runs."""
    at = dataset.sel(table=table)
    sizes = at["ladder"].values
    losses = at["loss"].values[(sizes >= LARGE) == large][:, np.isfinite(at["log2_value"].values)]
    return int(np.sum(losses < log(VOCABULARY))), losses.size


@JUDGES.decide
def judge_stability(dataset: xr.Dataset) -> Ruling:
    """Without LayerNorm, from 32 blocks on fewer runs are lost under condition 3.1 than in the standard
    parameterization; rival: fewer are lost in the standard parameterization; measured: printed runs that end below the
    loss of a net that knows nothing, by Fisher's exact test on one side or the other."""
    tables = UNNORMALISED_MANY, UNNORMALISED_STANDARD
    counts = {large: [_stable(dataset, table, large) for table in tables] for large in (True, False)}
    (many, of_many), (_, of_standard) = counts[True]
    chances = [_chance(*pair) for pair in (counts[True], counts[True][::-1])]
    alarm = DOUBT / COMPARISONS
    decided = [
        verdict for verdict, chance in zip((Verdict.CONFIRMED, Verdict.REFUTED), chances, strict=True) if chance < alarm
    ]
    large, small = (" against ".join(f"{ended} of {made}" for ended, made in counts[size]) for size in (True, False))
    needed = next(
        (
            lost
            for lost in range(of_standard + 1)
            if _chance((many, of_many), (of_standard - lost, of_standard)) < alarm
        ),
        None,
    )
    would = "no number of them" if needed is None else f"{needed} or more of them"
    return Ruling(
        decided[0] if decided else Verdict.INCONCLUSIVE,
        f"stable under condition 3.1 against the standard: {large} runs, which chance alone gives with probability "
        f"{chances[0]:.2g} (less than {alarm:.2g} decides); below {LARGE} blocks {small}",
        power=f"that as few are lost by the standard is refuted by {would}, with {of_many - many} under condition 3.1",
    )


def _chance(better: tuple[int, int], worse: tuple[int, int]) -> float:
    """Of as many stable runs, or more, on the ``better`` side if both lose runs alike (Fisher's exact test)."""
    table = [[ended, made - ended] for ended, made in (better, worse)]
    return float(fisher_exact(table, alternative="greater").pvalue)


@JUDGES.decide
def judge_unnormalised_transfer(dataset: xr.Dataset) -> Ruling:
    """Without LayerNorm, from 32 blocks on the best rate under condition 3.1 stays within an octave; rival: it moves by
    half an octave per doubling; measured: places of the least printed losses, where the grid has a rate on either side
    of them."""
    at = dataset.sel(table=UNNORMALISED_MANY)
    large = at["ladder"].values >= LARGE
    bracketed, optima = at["bracketed"].values[large].astype(bool), at["optimum"].values[large]
    cost = at["carried_cost"].values[large]
    words = f"the base model's best rate costs {cost.min():.2f} .. {cost.max():.2f} nats there"
    if not bracketed.all():
        ends = f"{np.sum(~bracketed)} of {len(bracketed)} best rates are the largest or the least that was tried"
        power = "none: where the best rate is at an end of the grid, it may lie anywhere beyond"
        return Ruling(Verdict.INCONCLUSIVE, f"{ends}; {words}", power=power)
    moved = float(np.ptp(optima))
    verdict = Verdict.CONFIRMED if moved <= CELL else Verdict.REFUTED
    power = "exact: a move of more than an octave is refuted"
    return Ruling(verdict, f"moves by {moved:.2f} octaves; {words}", power=power)


def _steadier(other: int, own: int) -> tuple[Check, ...]:
    """The best rate moves less under condition 3.1 than under another rule."""
    return checks("reported_losses", partial(judge_steadier, other=other, own=own))


# How far a best rate has to go to be said to move.
MOVES = "moves by more than an octave over 4 .. 256 blocks"
OCTAVE = "that a move is more than an octave, the spacing of the paper's grids, is our reading"
NOT_UNIVERSAL = (
    '"this apparent SP depth transfer is not universal. Figure 6 and 8 in Appendix E show that for Shampoo-AdamW and '
    'Sophia" (section 5.4)'
)
RELIABLE = (
    '"for Shampoo-AdamW and Sophia, the muP parameterization gives substantially more reliable depth-wise HP transfer '
    'than SP" (section 5.4)'
)

CLAIMS = (
    Claim(
        id="S10j",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.3 ('similar trends')",
        statement=f"GPT-2 with Shampoo, as printed: under condition B.1 the best rate {MOVES}",
        printed='"The same comparison for Shampoo-AdamW and Sophia in Figures 7 and 9 at Appendix E.3 shows similar '
        'trends" (section 5.3)',
        hypotheses=f"a reading: the trend is that of figure 2, a shift under condition B.1; {OCTAVE}; table 35; "
        f"{DEPTHS}; {PRINTED}",
        checks=(lost(SHAMPOO_BY_CONDITION[:1]),),
        replaced_by="it moves by 0.4 +- 0.2 octaves (the best of the grid is the same at all depths)",
        premise="that what condition B.1 does to the rate with Muon it does with every optimizer",
    ),
    Claim(
        id="S10k",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.4 ('not universal')",
        statement=f"GPT-2 with Shampoo, as printed: under standard parameterization the best rate {MOVES}",
        printed=NOT_UNIVERSAL,
        hypotheses=f"a reading: table 33 prints losses that rise with the depth, and no shift; {OCTAVE}; {DEPTHS}; "
        f"{PRINTED}",
        checks=(lost(SHAMPOO_BY_STANDARD[:1]),),
        replaced_by="it moves by 0.3 +- 0.1 octaves, while losses rise with the depth (S10f)",
        premise="that a parameterization whose losses rise with the depth loses its rate",
    ),
    Claim(
        id="S10l",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.4 ('not universal')",
        statement=f"GPT-2 with Sophia, as printed: under standard parameterization the best rate {MOVES}",
        printed=NOT_UNIVERSAL,
        hypotheses=f"{OCTAVE}; table 38; {DEPTHS}; {PRINTED}",
        checks=(lost(SOPHIA_BY_STANDARD[:1]),),
    ),
    Claim(
        id="S10m",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, figure 7",
        statement="GPT-2 with Shampoo, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than under B.1",
        printed='"models trained with Shampoo-AdamW: ... Condition 3.1 yields more stable HP transfer" (figure 7)',
        hypotheses=f"stable means that the best rate stays; tables 34 and 35; {PRINTED}",
        checks=_steadier(*SHAMPOO_BY_CONDITION),
    ),
    Claim(
        id="S10n",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 6",
        statement="GPT-2 with Shampoo, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than by the standard",
        printed=RELIABLE,
        hypotheses=f"reliable means that the best rate stays; tables 33 and 34; {PRINTED}",
        checks=_steadier(*SHAMPOO_BY_STANDARD),
    ),
    Claim(
        id="S10o",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 8",
        statement="GPT-2 with Sophia, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than by the standard",
        printed=RELIABLE,
        hypotheses=f"reliable means that the best rate stays; tables 38 and 39; {PRINTED}",
        checks=_steadier(*SOPHIA_BY_STANDARD),
    ),
    Claim(
        id="S10p",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, table 17",
        statement="GPT-2 with Muon-Kimi, as printed: under standard parameterization the best rate stays within an "
        "octave over 4 .. 256 blocks",
        printed='"For Muon-Kimi-AdamW, with LayerNorm, SP transfers the optimal base learning rate across the tested '
        'depths" (table 17)',
        hypotheses=f"nets with LayerNorm, which the paper holds responsible; {PRINTED}",
        checks=(kept(MUON_KIMI),),
    ),
    Claim(
        id="S10q",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 28, 29",
        statement="GPT-2 with Muon, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 than "
        "by the standard",
        printed='"For Muon-AdamW, SP shifts the optimal base learning rate across depths" (table 28)',
        hypotheses="the captions say of condition 3.1 (table 29) that it 'approximately transfers' what the standard "
        f"'shifts'; {PRINTED}",
        checks=_steadier(*MUON_BY_STANDARD),
    ),
    Claim(
        id="S10r",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 3, tables 20, 21",
        statement="GPT-2 with Muon-Kimi and without LayerNorm, as printed: from 32 blocks on fewer runs are lost under "
        "condition 3.1 than by the standard",
        printed='"without LayerNorm, muP from Condition 3.1 (k >= 2) has stable runs ... at large depth L >= 32" '
        "(table 21)",
        hypotheses="stable means a loss below that of a net that knows nothing, ln 50257. Rates are 2^-11 .. 2^-7 "
        "under condition 3.1 and 2^-13 .. 2^-9 by the standard; one printed run a cell. That 20 of 20 runs are "
        "stable against 18 of 20 is no difference by Fisher's exact test; ten lost by the standard would be one, at "
        "one wrong verdict in a hundred over all printed tables",
        checks=checks("reported_losses", judge_stability),
    ),
    Claim(
        id="S10s",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 3, table 21",
        statement="GPT-2 with Muon-Kimi and without LayerNorm, as printed: from 32 blocks on the best rate under "
        "condition 3.1 stays",
        printed='"and approximately transfers the optimal base learning rate at large depth L >= 32" (table 21)',
        hypotheses="a best rate at an end of the grid says nothing of where the best rate is; one printed run a cell",
        checks=checks("reported_losses", judge_unnormalised_transfer),
    ),
)
