"""What Zheng et al. 2026 say of transfer and of losses, each sentence with the judges that put it to printed losses."""

from functools import partial

from meanfield.verification import Check, Claim, Kind, checks, of_rival
from sims.reported_losses.judges import (
    BY_CONDITION,
    DECAY_DEPTH_MANY,
    DECAY_WIDTH_MANY,
    DECAY_WIDTH_STANDARD,
    DEPTH_MANY,
    DEPTH_ONE,
    LOWER_THAN_STANDARD,
    MUON_BY_STANDARD,
    MUON_KIMI,
    OTHERS_BY_CONDITION,
    SHAMPOO_BY_CONDITION,
    SHAMPOO_BY_STANDARD,
    SOPHIA_BY_STANDARD,
    SOPHIA_IN_WIDTH,
    WIDTH_MANY,
    WIDTH_STANDARD,
    judge_carried,
    judge_lower,
    judge_lower_on_average,
    judge_stability,
    judge_steadier,
    judge_transfer,
    judge_unnormalised_transfer,
)

NAME = "reported_losses"


def kept(tables: tuple[int, ...]) -> Check:
    """The best base value stays, on average over these tables."""
    return Check(NAME, partial(judge_transfer, tables=tables))


def lost(tables: tuple[int, ...]) -> Check:
    """It moves."""
    return Check(NAME, of_rival(partial(judge_transfer, tables=tables)))


def _ends_lower(*pairs: tuple[int, int]) -> tuple[Check, ...]:
    return tuple(Check(NAME, partial(judge_lower, above=above, below=below)) for above, below in pairs)


def _lower_by_condition(*pairs: tuple[int, int]) -> tuple[Check, ...]:
    return tuple(Check(NAME, partial(judge_lower_on_average, above=above, below=below)) for above, below in pairs)


# What all rows here rest on.
PRINTED = "one printed run a cell; scatter by repeats of the base model; one verdict in a hundred may be wrong"
# Why a row stays open: nobody can draw these runs again.
ONCE = "{}; these runs are printed once, and no run of ours adds to them"
WIDTHS, DEPTHS = "widths 128 .. 4096 at 4 blocks", "4 .. 256 blocks at width 256"
FOUR = "Muon-Kimi, Muon and Shampoo, each with AdamW, and Sophia"


def _steadier(other: int, own: int) -> tuple[Check, ...]:
    """The best rate moves less under condition 3.1 than under another rule."""
    return checks(NAME, partial(judge_steadier, other=other, own=own))


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
        id="S10a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, tables 15, 26, 31, 36",
        statement="GPT-2, as printed: under standard parameterization the best learning rate moves with the width, by "
        "more than an octave on average over four optimizers",
        brief="GPT-2: the best rate moves with the width, by the standard",
        printed='"SP exhibits substantial shifts in the optimal learning rate when width is scaled" (section 5.2)',
        hypotheses=f"{FOUR}; {WIDTHS}; {PRINTED}",
        checks=(lost(WIDTH_STANDARD),),
    ),
    Claim(
        id="S10b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, tables 16, 27, 32, 37",
        statement="GPT-2, as printed: under condition 3.1 the best base learning rate moves over widths by about an "
        "octave at most, not by half an octave per doubling, on average over four optimizers (judged alone, "
        "no table decides)",
        brief="GPT-2: the best base rate stays over widths under condition 3.1",
        printed='"when width is scaled, whereas muP keeps the optimal base learning rate nearly invariant" (section '
        "5.2)",
        hypotheses=f"{FOUR}; {WIDTHS}, where the paper claims it of Sophia above 256 alone; {PRINTED}",
        checks=(kept(WIDTH_MANY),),
        undecided=ONCE.format("that of Muon is uncertain by an octave, and others move either way"),
    ),
    Claim(
        id="S10c",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, tables 18, 29, 34, 39",
        statement="GPT-2, as printed: under condition 3.1 the best base learning rate moves over depths by about an "
        "octave at most, not by half an octave per doubling, on average over four optimizers (judged alone, "
        "Muon-Kimi's table decides so, and no other)",
        brief="GPT-2: the best base rate stays over depths under condition 3.1",
        printed='"Under depth scaling, muP also preserves HP transferability" (section 5.2)',
        hypotheses=f"{FOUR}; {DEPTHS}; {PRINTED}",
        checks=(kept(DEPTH_MANY),),
    ),
    Claim(
        id="S10d",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.3, tables 19, 30, 35, 40",
        statement="GPT-2, as printed: under condition B.1 the best base learning rate moves with the depth, by more "
        "than an octave on average over four optimizers (with Shampoo alone it stays: S10j)",
        brief="GPT-2: the best base rate moves with the depth under condition B.1",
        printed='"Condition B.1 shifts the optimal learning rate as depth increases, indicating a failure of HP '
        'transfer in practical multi-transformation architectures" (section 5.3)',
        hypotheses=f"{FOUR}; {DEPTHS}; {PRINTED}",
        checks=(lost(DEPTH_ONE),),
        undecided=ONCE.format("the base model of Muon does not tell its best rate within two octaves"),
    ),
    Claim(
        id="S10e",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 22, 23, 25",
        statement="GPT-2, as printed: the best weight decay stays within an octave under condition 3.1, and not by the "
        "standard in width",
        brief="GPT-2: the best weight decay stays under 3.1, and not by the standard in width",
        printed='"SP fails to transfer the optimal base weight decay across widths. ... Condition 3.1 (k >= 2) '
        'approximately transfers the optimal base weight decay" (tables 22 and 23)',
        hypotheses=f"Muon-Kimi with AdamW; {WIDTHS}, {DEPTHS}; {PRINTED}",
        checks=(lost(DECAY_WIDTH_STANDARD), kept(DECAY_WIDTH_MANY), kept(DECAY_DEPTH_MANY)),
        undecided=ONCE.format("best decays are uncertain by 0.6 to 0.8 octaves"),
    ),
    Claim(
        id="S10f",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 16, 18, 25, 27, 29, 32, 34, 39",
        statement="GPT-2, as printed: the largest nets end lower under condition 3.1 than by the standard",
        brief="GPT-2: the largest nets end lower under condition 3.1 than by the standard",
        printed='"muP from Condition 3.1 (k >= 2) transfers the optimal base learning rate across depths, and '
        'achieves lower loss than SP as the depth increases" (table 18)',
        hypotheses=f"every table whose caption says so; each net at its own best value; {PRINTED}",
        checks=_ends_lower(*LOWER_THAN_STANDARD),
        undecided=ONCE.format("three gaps at the largest size, of 0.01 to 0.06 nats, are 1.5 to 4 times their errors"),
    ),
    Claim(
        id="S10g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 34, 35, figure 7",
        statement="GPT-2 with Shampoo, as printed: condition 3.1 reaches lower loss than condition B.1 in depth",
        brief="GPT-2 with Shampoo: condition 3.1 ends lower than condition B.1 in depth",
        printed='"For Shampoo-AdamW, muP from Condition B.1 (k = 1) gives weaker depth scaling and higher validation '
        'loss than muP from Condition 3.1 (k >= 2)" (table 35)',
        hypotheses=f"each net at its own best rate, averaged over 8 .. 256 blocks at width 256; {PRINTED}",
        checks=_lower_by_condition(SHAMPOO_BY_CONDITION),
    ),
    Claim(
        id="S10h",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.3",
        statement="Muon-Kimi, Muon and Sophia train deep GPT-2 better under condition 3.1 than under B.1, if better "
        "means lower loss (the paper compares rates; lower loss it claims of Shampoo alone, S10g)",
        brief="GPT-2 with Muon-Kimi, Muon, Sophia: condition 3.1 ends lower than B.1 in depth",
        printed='"our theory predicts that Condition 3.1 should provide a better parameterization" (section 5.3)',
        hypotheses="a reading of 'a better parameterization': the text compares rates, not losses. Muon-Kimi, Muon and "
        f"Sophia, each net at its own best rate, averaged over 8 .. 256 blocks at width 256; {PRINTED}",
        checks=_lower_by_condition(*OTHERS_BY_CONDITION),
        replaced_by="Muon ends lower under B.1 at every depth above the base, by 0.025 nats on average; Muon-Kimi "
        "(B.1 lower by 0.007 +- 0.003) and Sophia (by 0.02 +- 0.03) are undecided. At the rate carried from the base "
        "model, which is what a user pays, B.1 ends 0.12, 0.13 and 0.23 nats higher with Muon-Kimi, Shampoo and "
        "Sophia, and 0.051 lower with Muon, whose base model does not tell its best rate within two octaves (S10t)",
        premise="that a rate which stays is a rate which trains better; what stays under condition 3.1 is the rate",
    ),
    Claim(
        id="S10i",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.2, 'similar advantage' of figure 8 read as figure 1's",
        statement="Sophia in width: as for the other optimizers, condition 3.1 has the lower loss at the largest width",
        brief="GPT-2 with Sophia: condition 3.1 ends lower at the largest width",
        printed='"Muon-AdamW, Shampoo-AdamW, and Sophia, respectively. They show the similar advantage of the muP '
        'formulation from Condition 3.1 over SP" (section 5.2)',
        hypotheses="a reading: captions claim it of the other optimizers in width, and of Sophia in depth alone. "
        f"Width 4096, each net at its own best rate; {PRINTED}",
        checks=_ends_lower(SOPHIA_IN_WIDTH),
        replaced_by="the widest net ends 0.6 nats lower by the standard, at a rate 3 octaves below the base model's",
        premise="that what figures 1, 5 and 6 show of losses in width holds of Sophia; its own captions do not say so",
    ),
    Claim(
        id="S10j",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.3 ('similar trends')",
        statement=f"GPT-2 with Shampoo, as printed: under condition B.1 the best rate {MOVES}",
        brief="GPT-2 with Shampoo: the best rate moves with the depth under condition B.1",
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
        brief="GPT-2 with Shampoo: the best rate moves with the depth by the standard",
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
        brief="GPT-2 with Sophia: the best rate moves with the depth by the standard",
        printed=NOT_UNIVERSAL,
        hypotheses=f"{OCTAVE}; table 38; {DEPTHS}; {PRINTED}",
        checks=(lost(SOPHIA_BY_STANDARD[:1]),),
        undecided=ONCE.format("one table, whose move of 1.8 octaves is uncertain by half an octave"),
    ),
    Claim(
        id="S10m",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, figure 7",
        statement="GPT-2 with Shampoo, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than under B.1",
        brief="GPT-2 with Shampoo: the best rate moves less in depth under 3.1 than under B.1",
        printed='"models trained with Shampoo-AdamW: ... Condition 3.1 yields more stable HP transfer" (figure 7)',
        hypotheses=f"stable means that the best rate stays; tables 34 and 35; {PRINTED}",
        checks=_steadier(*SHAMPOO_BY_CONDITION),
        undecided=ONCE.format("two tables, whose moves differ by 1.6 errors"),
    ),
    Claim(
        id="S10n",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 6",
        statement="GPT-2 with Shampoo, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than by the standard",
        brief="GPT-2 with Shampoo: the best rate moves less in depth under 3.1 than by standard",
        printed=RELIABLE,
        hypotheses=f"reliable means that the best rate stays; tables 33 and 34; {PRINTED}",
        checks=_steadier(*SHAMPOO_BY_STANDARD),
        undecided=ONCE.format("two tables, whose moves differ by 2.4 errors"),
    ),
    Claim(
        id="S10o",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 8",
        statement="GPT-2 with Sophia, as printed: over 4 .. 256 blocks the best rate moves less under condition 3.1 "
        "than by the standard",
        brief="GPT-2 with Sophia: the best rate moves less in depth under 3.1 than by standard",
        printed=RELIABLE,
        hypotheses=f"reliable means that the best rate stays; tables 38 and 39; {PRINTED}",
        checks=_steadier(*SOPHIA_BY_STANDARD),
        undecided=ONCE.format("two tables, whose moves differ by 2.3 errors"),
    ),
    Claim(
        id="S10p",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, table 17",
        statement="GPT-2 with Muon-Kimi, as printed: under standard parameterization the best rate stays within an "
        "octave over 4 .. 256 blocks",
        brief="GPT-2 with Muon-Kimi: the best rate stays over depths by the standard",
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
        brief="GPT-2 with Muon: the best rate moves less in depth under 3.1 than by standard",
        printed='"For Muon-AdamW, SP shifts the optimal base learning rate across depths" (table 28)',
        hypotheses="the captions say of condition 3.1 (table 29) that it 'approximately transfers' what the standard "
        f"'shifts'; {PRINTED}",
        checks=_steadier(*MUON_BY_STANDARD),
        undecided=ONCE.format("two tables, whose moves differ by less than an error"),
    ),
    Claim(
        id="S10r",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 3, tables 20, 21",
        statement="GPT-2 with Muon-Kimi and without LayerNorm, as printed: from 32 blocks on fewer runs are lost under "
        "condition 3.1 than by the standard",
        brief="GPT-2 without LayerNorm: under 3.1 fewer deep runs are lost than by the standard",
        printed='"without LayerNorm, muP from Condition 3.1 (k >= 2) has stable runs ... at large depth L >= 32" '
        "(table 21)",
        hypotheses="stable means a loss below that of a net that knows nothing, ln 50257. Rates are 2^-11 .. 2^-7 "
        "under condition 3.1 and 2^-13 .. 2^-9 by the standard; one printed run a cell. That 20 of 20 runs are "
        "stable against 18 of 20 is no difference by Fisher's exact test; ten lost by the standard would be one, at "
        "one wrong verdict in a hundred over all printed tables",
        checks=checks(NAME, judge_stability),
        undecided=ONCE.format("20 of 20 runs against 18 of 20 is what chance gives once in four times"),
    ),
    Claim(
        id="S10s",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.4, figure 3, table 21",
        statement="GPT-2 with Muon-Kimi and without LayerNorm, as printed: from 32 blocks on the best rate under "
        "condition 3.1 stays",
        brief="GPT-2 without LayerNorm: the best rate stays from 32 blocks on under 3.1",
        printed='"and approximately transfers the optimal base learning rate at large depth L >= 32" (table 21)',
        hypotheses="a best rate at an end of the grid says nothing of where the best rate is; one printed run a cell",
        checks=checks(NAME, judge_unnormalised_transfer),
        undecided=ONCE.format("best rates stand at the ends of their grids"),
    ),
    Claim(
        id="S10t",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.3",
        statement="GPT-2, as printed: at the best rate of the base model, carried to 8 .. 256 blocks, losses are lower "
        "under condition 3.1 than under B.1, with each of four optimizers",
        brief="GPT-2: at the base model's best rate condition 3.1 ends lower than B.1 in depth",
        printed='"our theory predicts that Condition 3.1 should provide a better parameterization" (section 5.3)',
        hypotheses=f"a reading: better for whoever tunes the base model and carries its rate. {FOUR}; {DEPTHS}; one "
        f"rate for both conditions, as the base model is the same; {PRINTED}",
        checks=tuple(Check(NAME, partial(judge_carried, above=above, below=below)) for above, below in BY_CONDITION),
        undecided=ONCE.format("the base model does not tell its best rate from its neighbours"),
    ),
)
