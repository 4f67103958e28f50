"""Zheng et al. 2026, section 5 and tables 15 - 40: what the losses that the paper prints say of its own claims."""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.estimates import critical_z
from meanfield.verification.claims import Check, Claim, Kind, of_rival
from meanfield.verification.judges import Contest, Judges, Ruling, lower
from meanfield.verification.verdicts import DOUBT, Bands, Deviation, Verdict, judge

# Tables by what they follow, as they are judged: standard parameterization, condition 3.1, condition B.1.
WIDTH_STANDARD, WIDTH_MANY = (15, 26, 31, 36), (16, 27, 32, 37)
DEPTH_MANY, DEPTH_ONE = (18, 29, 34, 39), (19, 30, 35, 40)
# Of one optimizer, over depths: condition B.1 against condition 3.1, and the standard parameterization against it.
SHAMPOO_BY_CONDITION, SHAMPOO_BY_STANDARD, SOPHIA_BY_STANDARD = (35, 34), (33, 34), (38, 39)
MUON_BY_STANDARD = (28, 29)
BY_OPTIMIZER = (SHAMPOO_BY_CONDITION, SHAMPOO_BY_STANDARD, SOPHIA_BY_STANDARD, MUON_BY_STANDARD)
# The standard parameterization of Muon-Kimi, over depths.
MUON_KIMI = (17,)
DECAY_WIDTH_STANDARD, DECAY_WIDTH_MANY, DECAY_DEPTH_MANY = (22,), (23,), (25,)
KEPT_OR_LOST = (
    *(WIDTH_STANDARD, WIDTH_MANY, DEPTH_MANY, DEPTH_ONE),
    *(DECAY_WIDTH_STANDARD, DECAY_WIDTH_MANY, DECAY_DEPTH_MANY),
    *((other,) for other, _ in BY_OPTIMIZER),
    MUON_KIMI,
)
# Pairs of tables in which the caption says that the second one's losses are lower.
LOWER_THAN_STANDARD = ((15, 16), (26, 27), (31, 32), (17, 18), (24, 25), (28, 29), (33, 34), (38, 39))
OTHERS_BY_CONDITION = ((19, 18), (30, 29), (40, 39))
SOPHIA_IN_WIDTH = (36, 37)
# The optimum stays if it moves over the whole ladder by no more than one octave, the spacing of the paper's grids; a
# rule that misses the root of the size moves it by half an octave per doubling.
CELL, OFF = 1.0, 0.5
# Behind moves of optima of which one lies at an end of its grid; and what that means.
BOUND, AT_LEAST = " or further", "an optimum at an end of its grid may lie beyond, so that moves are at least as large"
# Printed runs are not ours to repeat until one verdict in a million is wrong. Here one in a hundred may be, over all
# comparisons of all tables.
COMPARISONS = 30

# The judges of `sims.reported_losses`.
JUDGES = Judges()
findings = JUDGES.findings


def weighed(made: Contest, repeats: float, evidence: str, words: dict[str, str]) -> Ruling:
    """The ruling at the error rate of printed runs, whose scatter is known from so many ``repeats``."""
    freedom = max(repeats, 2.0)
    band = critical_z(COMPARISONS, freedom + 1, DOUBT)
    bands = Bands(band, band, freedom)
    return Ruling(judge(made.claim, made.rival, bands), evidence, words, *made.powers(bands, bands))


@JUDGES.decide_each(*({"tables": tables} for tables in KEPT_OR_LOST))
def judge_transfer(dataset: xr.Dataset, tables: tuple[int, ...]) -> Ruling:
    """{of}: over the ladder in {direction} the best base value moves by no more than an octave, on average over tables
    {numbers}; rival: {of}: over the ladder in {direction} the best base value moves further, as half an octave per
    doubling does, on average over tables {numbers}; measured: by how many octaves the best value of the largest size
    differs from that of the smallest, with errors that hold the choice of estimator.

    The average is over sizes of moves, so that moves up and down do not cancel. A move that is only known to be at
    least so large cannot confirm that there is none.
    """
    at = dataset.sel(table=list(tables))
    doublings = float(np.log2(at["ladder"].max() / at["ladder"].min()))
    moved, stderr = float(abs(at["drift"]).mean()), float((at["drift_stderr"] ** 2).sum() ** 0.5) / len(tables)
    rival = Deviation(max(OFF * doublings - moved, 0.0), stderr, CELL)
    made = Contest(Deviation(moved, stderr, CELL), rival, apart=OFF * doublings)
    each = ", ".join(f"{row['setting'].item()} {drift_words(row)}" for row in (at.sel(table=table) for table in tables))
    numbers = " ".join(map(str, tables))
    evidence = f"moves by {moved:.2f} +- {stderr:.2f} octaves in {doublings:g} doublings ({each})"
    words = worded(at.isel(table=0)) | {"numbers": numbers}
    ruling = weighed(made, float(at["repeats"].sum()), evidence, words)
    if ruling.verdict is Verdict.CONFIRMED and bool(at["drift_is_bound"].any()):
        return replace(ruling, verdict=Verdict.INCONCLUSIVE, evidence=f"{evidence}; {AT_LEAST}")
    return ruling


def drift_words(row: xr.Dataset) -> str:
    """How far the optimum of one table moves, with its error; marked where it is at least so far."""
    return f"{float(row['drift']):+.2f} +- {float(row['drift_stderr']):.2f}" + BOUND * bool(row["drift_is_bound"])


@JUDGES.decide_each(*({"other": other, "own": own} for other, own in BY_OPTIMIZER))
def judge_steadier(dataset: xr.Dataset, other: int, own: int) -> Ruling:
    """{setting}, {of}: over the ladder in {direction} the best base value moves less than under {rule} (table {own}
    against {other}); rival: it moves further; measured: by how many octaves the best value of the largest size differs
    from that of the smallest, up or down, under either rule."""
    at, against = (dataset.sel(table=table) for table in (own, other))
    difference = float(abs(at["drift"]) - abs(against["drift"]))
    stderr = float(np.hypot(at["drift_stderr"], against["drift_stderr"]))
    evidence = (
        f"{difference:+.2f} +- {stderr:.2f} octaves further ({' against '.join(map(drift_words, (at, against)))})"
    )
    named = worded(at) | {"rule": TITLES[str(against["parameterization"].values)]}
    return weighed(lower(difference, stderr, unit="octaves"), float(at["repeats"]), evidence, named)


@JUDGES.decide_each(*({"above": a, "below": b} for a, b in (*LOWER_THAN_STANDARD, SOPHIA_IN_WIDTH)))
def judge_lower(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    """{setting}, {of}: the least loss at the largest {direction} is below that of {other} (table {below} against
    {above}); rival: it is above; measured: the difference of the two printed losses, each the least over its grid."""
    return _lower(dataset, above, below, slice(-1, None), "at the largest size")


@JUDGES.decide_each(*({"above": a, "below": b} for a, b in (SHAMPOO_BY_CONDITION, *OTHERS_BY_CONDITION)))
def judge_lower_on_average(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    """{setting}, {of}: the least loss, averaged over sizes above the base model's in {direction}, is below that of
    {other} (table {below} against {above}); rival: it is above; measured: the mean difference of printed losses, each
    the least over its grid."""
    return _lower(dataset, above, below, slice(1, None), "averaged over sizes above the base model's")


def _lower(dataset: xr.Dataset, above: int, below: int, sizes: slice, words: str) -> Ruling:
    at, of_other = (dataset.sel(table=table) for table in (below, above))
    differences = (at["least_loss"] - of_other["least_loss"]).values
    differences = differences[np.isfinite(differences)][sizes]
    difference, stderr = float(differences.mean()), float(at["scatter"]) * (2 / len(differences)) ** 0.5
    made = lower(difference, stderr, unit="nats")
    evidence = f"{difference:+.4f} +- {stderr:.4f} nats {words}"
    named = worded(at) | {"other": TITLES[str(of_other["parameterization"].values)]}
    return weighed(made, float(at["repeats"]), evidence, named)


TITLES = {"standard": "standard parameterization", "many": "condition 3.1 (k >= 2)", "one": "condition B.1 (k = 1)"}


def worded(at: xr.Dataset) -> dict[str, str]:
    named = {name: str(at[name].values) for name in ("setting", "direction")}
    return named | {"of": TITLES[str(at["parameterization"].values)]}


def kept(tables: tuple[int, ...]) -> Check:
    """The best base value stays, on average over these tables."""
    return Check("reported_losses", partial(judge_transfer, tables=tables))


def lost(tables: tuple[int, ...]) -> Check:
    """It moves."""
    return Check("reported_losses", of_rival(partial(judge_transfer, tables=tables)))


def _ends_lower(*pairs: tuple[int, int]) -> tuple[Check, ...]:
    return tuple(Check("reported_losses", partial(judge_lower, above=above, below=below)) for above, below in pairs)


def _lower_by_condition(*pairs: tuple[int, int]) -> tuple[Check, ...]:
    judges = (partial(judge_lower_on_average, above=above, below=below) for above, below in pairs)
    return tuple(Check("reported_losses", judge_pair) for judge_pair in judges)


# What all rows here rest on.
PRINTED = "one printed run a cell; scatter by repeats of the base model; one verdict in a hundred may be wrong"
WIDTHS, DEPTHS = "widths 128 .. 4096 at 4 blocks", "4 .. 256 blocks at width 256"
FOUR = "Muon-Kimi, Muon and Shampoo, each with AdamW, and Sophia"

CLAIMS = (
    Claim(
        id="S10a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, tables 15, 26, 31, 36",
        statement="GPT-2, as printed: under standard parameterization the best learning rate moves with the width, by "
        "more than an octave on average over four optimizers",
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
        printed='"when width is scaled, whereas muP keeps the optimal base learning rate nearly invariant" (section '
        "5.2)",
        hypotheses=f"{FOUR}; {WIDTHS}, where the paper claims it of Sophia above 256 alone; {PRINTED}",
        checks=(kept(WIDTH_MANY),),
    ),
    Claim(
        id="S10c",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, tables 18, 29, 34, 39",
        statement="GPT-2, as printed: under condition 3.1 the best base learning rate moves over depths by about an "
        "octave at most, not by half an octave per doubling, on average over four optimizers (judged alone, "
        "Muon-Kimi's table decides so, and no other)",
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
        printed='"Condition B.1 shifts the optimal learning rate as depth increases, indicating a failure of HP '
        'transfer in practical multi-transformation architectures" (section 5.3)',
        hypotheses=f"{FOUR}; {DEPTHS}; {PRINTED}",
        checks=(lost(DEPTH_ONE),),
    ),
    Claim(
        id="S10e",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 22, 23, 25",
        statement="GPT-2, as printed: the best weight decay stays within an octave under condition 3.1, and not by the "
        "standard in width",
        printed='"SP fails to transfer the optimal base weight decay across widths. ... Condition 3.1 (k >= 2) '
        'approximately transfers the optimal base weight decay" (tables 22 and 23)',
        hypotheses=f"Muon-Kimi with AdamW; {WIDTHS}, {DEPTHS}; {PRINTED}",
        checks=(lost(DECAY_WIDTH_STANDARD), kept(DECAY_WIDTH_MANY), kept(DECAY_DEPTH_MANY)),
    ),
    Claim(
        id="S10f",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 16, 18, 25, 27, 29, 32, 34, 39",
        statement="GPT-2, as printed: the largest nets end lower under condition 3.1 than by the standard",
        printed='"muP from Condition 3.1 (k >= 2) transfers the optimal base learning rate across depths, and '
        'achieves lower loss than SP as the depth increases" (table 18)',
        hypotheses=f"every table whose caption says so; each net at its own best value; {PRINTED}",
        checks=_ends_lower(*LOWER_THAN_STANDARD),
    ),
    Claim(
        id="S10g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 34, 35, figure 7",
        statement="GPT-2 with Shampoo, as printed: condition 3.1 reaches lower loss than condition B.1 in depth",
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
        printed='"Muon-AdamW, Shampoo-AdamW, and Sophia, respectively. They show the similar advantage of the muP '
        'formulation from Condition 3.1 over SP" (section 5.2)',
        hypotheses="a reading: captions claim it of the other optimizers in width, and of Sophia in depth alone. "
        f"Width 4096, each net at its own best rate; {PRINTED}",
        checks=_ends_lower(SOPHIA_IN_WIDTH),
        replaced_by="the widest net ends 0.6 nats lower by the standard, at a rate 3 octaves below the base model's",
        premise="that what figures 1, 5 and 6 show of losses in width holds of Sophia; its own captions do not say so",
    ),
)
