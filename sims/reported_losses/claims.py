"""What Zheng et al. 2026 say of transfer and of losses, each sentence with the judges that put it to printed losses."""

from dataclasses import dataclass, replace
from functools import partial
from math import log

import numpy as np
import xarray as xr
from scipy.stats import fisher_exact

from meanfield.common import critical_z
from meanfield.verification import (
    DOUBT,
    Bands,
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    checks,
    judge,
    lower,
    of_rival,
)

# Zheng et al. 2026, section 5 and tables 15 - 40: what the losses that the paper prints say of its own claims.

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
BY_CONDITION = (*OTHERS_BY_CONDITION[:2], SHAMPOO_BY_CONDITION, *OTHERS_BY_CONDITION[2:])
# Muon-Kimi without LayerNorm, by the standard and under condition 3.1; and from how many blocks on the paper speaks.
UNNORMALISED_STANDARD, UNNORMALISED_MANY, LARGE = 20, 21, 32
# A net that knows nothing of its text has this loss: GPT-2 tells so many tokens apart.
VOCABULARY = 50257
# The optimum stays if it moves over the whole ladder by no more than one octave, the spacing of the paper's grids; a
# rule that misses the root of the size moves it by half an octave per doubling.
CELL, OFF = 1.0, 0.5
# Behind moves of optima of which one lies at an end of its grid; and what that means.
BOUND, AT_LEAST = " or further", "an optimum at an end of its grid may lie beyond, so that moves are at least as large"
# Printed runs are not ours to repeat until one verdict in a million is wrong. Here one in a hundred may be, over all
# comparisons of all tables.
COMPARISONS = 30
# Standard errors within which losses of the base model do not tell one of its rates from the best.
ALIKE = 2.0

# Of optima and losses, each net at its own best value; of sentences on single optimizers; of carried rates.
OF_OPTIMA, OF_SINGLE, OF_CARRIED = Judges(), Judges(), Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    return [finding for judges in (OF_OPTIMA, OF_SINGLE, OF_CARRIED) for finding in judges.findings(dataset)]


# How far the best base value moves.


@OF_OPTIMA.decide(
    brief="{rule_name}: in {direction} the best value moves by at most an octave ({which})",
    claim="{of}: over the ladder in {direction} the best base value moves by no more than an octave, on average over"
    " tables {numbers}",
    rival="{of}: over the ladder in {direction} the best base value moves further, as half an octave per doubling "
    "does, on average over tables {numbers}",
    measured="by how many octaves the best value of the largest size differs from that of the smallest, with errors "
    "that hold the choice of estimator",
    cases=[{"tables": tables} for tables in KEPT_OR_LOST],
)
def judge_transfer(dataset: xr.Dataset, tables: tuple[int, ...]) -> Ruling:
    """The average is over sizes of moves, so that moves up and down do not cancel. A move that is only known to be
    at least so large cannot confirm that there is none.
    """
    at = dataset.sel(table=list(tables))
    doublings = float(np.log2(at["ladder"].max() / at["ladder"].min()))
    moved, stderr = float(abs(at["drift"]).mean()), float((at["drift_stderr"] ** 2).sum() ** 0.5) / len(tables)
    rival = Deviation(max(OFF * doublings - moved, 0.0), stderr, CELL)
    made = Contest(Deviation(moved, stderr, CELL), rival, apart=OFF * doublings)
    each = ", ".join(f"{row['setting'].item()} {drift_words(row)}" for row in (at.sel(table=table) for table in tables))
    numbers = " ".join(map(str, tables))
    evidence = f"moves by {moved:.2f} +- {stderr:.2f} octaves in {doublings:g} doublings ({each})"
    which = f"table{'s' * (len(tables) > 1)} {numbers}"
    words = worded(at.isel(table=0)) | {"numbers": numbers, "which": which}
    ruling = weighed(made, float(at["repeats"].sum()), evidence, words)
    if ruling.verdict is Verdict.CONFIRMED and bool(at["drift_is_bound"].any()):
        return replace(ruling, verdict=Verdict.INCONCLUSIVE, evidence=f"{evidence}; {AT_LEAST}")
    return ruling


@OF_OPTIMA.decide(
    brief="{setting}: in {direction} the best moves less under {rule_name} than {other_name} ({own}, {other})",
    claim="{setting}, {of}: over the ladder in {direction} the best base value moves less than under {rule} (table "
    "{own} against {other})",
    rival="it moves further",
    measured="by how many octaves the best value of the largest size differs from that of the smallest, up or down, "
    "under either rule",
    cases=[{"other": other, "own": own} for other, own in BY_OPTIMIZER],
)
def judge_steadier(dataset: xr.Dataset, other: int, own: int) -> Ruling:
    at, against = (dataset.sel(table=table) for table in (own, other))
    difference = float(abs(at["drift"]) - abs(against["drift"]))
    stderr = float(np.hypot(at["drift_stderr"], against["drift_stderr"]))
    evidence = (
        f"{difference:+.2f} +- {stderr:.2f} octaves further ({' against '.join(map(drift_words, (at, against)))})"
    )
    rule = str(against["parameterization"].values)
    named = worded(at) | {"rule": TITLES[rule], "other_name": NAMES[rule]}
    return weighed(lower(difference, stderr, unit="octaves"), float(at["repeats"]), evidence, named)


def drift_words(row: xr.Dataset) -> str:
    """How far the optimum of one table moves, with its error; marked where it is at least so far."""
    return f"{float(row['drift']):+.2f} +- {float(row['drift_stderr']):.2f}" + BOUND * bool(row["drift_is_bound"])


# Which rule ends lower, each net at its own best value.


@OF_OPTIMA.decide(
    brief="{setting}: {rule_name} ends below {other_name} at the largest {direction} ({below}, {above})",
    claim="{setting}, {of}: the least loss at the largest {direction} is below that of {other} (table {below} "
    "against {above})",
    rival="it is above",
    measured="the difference of the two printed losses, each the least over its grid",
    cases=[{"above": a, "below": b} for a, b in (*LOWER_THAN_STANDARD, SOPHIA_IN_WIDTH)],
)
def judge_lower(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    return _lower(dataset, above, below, slice(-1, None), "at the largest size")


@OF_OPTIMA.decide(
    brief="{setting}: {rule_name} ends below {other_name} on average over {direction}s ({below}, {above})",
    claim="{setting}, {of}: the least loss, averaged over sizes above the base model's in {direction}, is below that"
    " of {other} (table {below} against {above})",
    rival="it is above",
    measured="the mean difference of printed losses, each the least over its grid",
    cases=[{"above": a, "below": b} for a, b in (SHAMPOO_BY_CONDITION, *OTHERS_BY_CONDITION)],
)
def judge_lower_on_average(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    return _lower(dataset, above, below, slice(1, None), "averaged over sizes above the base model's")


def _lower(dataset: xr.Dataset, above: int, below: int, sizes: slice, words: str) -> Ruling:
    at, of_other = (dataset.sel(table=table) for table in (below, above))
    differences = (at["least_loss"] - of_other["least_loss"]).values
    differences = differences[np.isfinite(differences)][sizes]
    difference, stderr = float(differences.mean()), float(at["scatter"]) * (2 / len(differences)) ** 0.5
    made = lower(difference, stderr, unit="nats")
    evidence = f"{difference:+.4f} +- {stderr:.4f} nats {words}"
    named = worded(at) | {"other": worded(of_other)["of"], "other_name": worded(of_other)["rule_name"]}
    return weighed(made, float(at["repeats"]), evidence, named)


# What is lost without LayerNorm.


@OF_SINGLE.decide(
    brief="Without LayerNorm, from 32 blocks on, 3.1 loses fewer runs than standard",
    claim="Without LayerNorm, from 32 blocks on fewer runs are lost under condition 3.1 than in the standard "
    "parameterization",
    rival="fewer are lost in the standard parameterization",
    measured="printed runs that end below the loss of a net that knows nothing, by Fisher's exact test on one side or "
    "the other",
)
def judge_stability(dataset: xr.Dataset) -> Ruling:
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


def _stable(dataset: xr.Dataset, table: int, large: bool) -> tuple[int, int]:
    """Runs of large nets, or of small ones, that end below the loss of a net that knows nothing; and all such runs."""
    at = dataset.sel(table=table)
    sizes = at["ladder"].values
    losses = at["loss"].values[(sizes >= LARGE) == large][:, np.isfinite(at["log2_value"].values)]
    return int(np.sum(losses < log(VOCABULARY))), losses.size


def _chance(better: tuple[int, int], worse: tuple[int, int]) -> float:
    """Of as many stable runs, or more, on the ``better`` side if both lose runs alike (Fisher's exact test)."""
    table = [[ended, made - ended] for ended, made in (better, worse)]
    return float(fisher_exact(table, alternative="greater").pvalue)


@OF_SINGLE.decide(
    brief="Without LayerNorm, from 32 blocks on, the best rate of 3.1 stays within an octave",
    claim="Without LayerNorm, from 32 blocks on the best rate under condition 3.1 stays within an octave",
    rival="it moves by half an octave per doubling",
    measured="places of the least printed losses, where the grid has a rate on either side of them",
)
def judge_unnormalised_transfer(dataset: xr.Dataset) -> Ruling:
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


# What a user pays who carries the base model's best rate to deeper nets.


@OF_CARRIED.decide(
    brief="{setting}: {rule_name} ends below {other_name} at the carried rate ({below}, {above})",
    claim="{setting}: at the best rate of the base model, carried over the ladder in {direction}, losses are lower "
    "under {of} than under {other} (table {below} against {above})",
    rival="they are higher",
    measured="the difference of printed losses at that rate, averaged over sizes above the base model's, with an error "
    "that holds which rate is carried",
    cases=[{"above": above, "below": below} for above, below in BY_CONDITION],
)
def judge_carried(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    at, of_other = (dataset.sel(table=table) for table in (below, above))
    made = carried(dataset, below, above)
    each = ", ".join(f"{mean:+.3f} at 2^{value:g}" for value, mean in made.choices.items())
    evidence = f"{made.mean:+.4f} +- {made.stderr:.4f} nats at 2^{made.value:g}, {made.last:+.3f} at the largest size"
    if len(made.choices) > 1:
        evidence += f"; the base model's losses do not tell its best rate from others: {each}"
    named = worded(at) | {"other": worded(of_other)["of"], "other_name": worded(of_other)["rule_name"]}
    return weighed(lower(made.mean, made.stderr, unit="nats"), float(at["repeats"]), evidence, named)


@dataclass(frozen=True)
class Carried:
    """Losses of one rule less those of another, at one base value that is carried to all sizes.

    Attributes:
        value: log2 of the base value, the best of the base model by the mean of both tables' runs of it.
        mean, stderr: the difference averaged over sizes above the base model's. The error holds the scatter of losses
            and which value is carried, of those that the base model's losses do not tell apart.
        last: the same at the largest size alone.
        choices: log2 of each of those values, and the mean difference there.
    """

    value: float
    mean: float
    stderr: float
    last: float
    choices: dict[float, float]


def carried(dataset: xr.Dataset, below: int, above: int) -> Carried:
    """Of table ``below`` less table ``above``, two rules in one setting over the same depths.

    All is nan where their grids have no base value in common.
    """
    own, other = (_losses(dataset.sel(table=table)) for table in (below, above))
    grid = sorted(set(own) & set(other))
    if not grid:
        return Carried(np.nan, np.nan, np.nan, np.nan, {})
    base = {value: (own[value][0] + other[value][0]) / 2 for value in grid}
    best = min(base, key=lambda value: base[value])
    scatter = float(dataset["scatter"].sel(table=below))
    # Both are means of two runs, so that their difference scatters as one run does.
    like = [value for value in grid if base[value] <= base[best] + ALIKE * scatter]
    differences = {value: own[value][1:] - other[value][1:] for value in like}
    choices = {value: float(difference.mean()) for value, difference in differences.items()}
    chosen = max(abs(mean - choices[best]) for mean in choices.values())
    noise = scatter * (2 / differences[best].size) ** 0.5
    return Carried(best, choices[best], float(np.hypot(noise, chosen)), float(differences[best][-1]), choices)


def _losses(at: xr.Dataset) -> dict[float, np.ndarray]:
    """log2 of a base value -> losses by size, the base model's first."""
    within = np.isfinite(at["ladder"].values)
    values = at["log2_value"].values
    return {float(value): at["loss"].values[within, place] for place, value in enumerate(values) if np.isfinite(value)}


# What all of these share.

TITLES = {"standard": "standard parameterization", "many": "condition 3.1 (k >= 2)", "one": "condition B.1 (k = 1)"}
# In a line.
NAMES = {"standard": "standard", "many": "3.1", "one": "B.1"}


def worded(at: xr.Dataset) -> dict[str, str]:
    named = {name: str(at[name].values) for name in ("setting", "direction")}
    rule = str(at["parameterization"].values)
    return named | {"of": TITLES[rule], "rule_name": NAMES[rule]}


def weighed(made: Contest, repeats: float, evidence: str, words: dict[str, str]) -> Ruling:
    """The ruling at the error rate of printed runs, whose scatter is known from so many ``repeats``."""
    freedom = max(repeats, 2.0)
    band = critical_z(COMPARISONS, freedom + 1, DOUBT)
    bands = Bands(band, band, freedom)
    return Ruling(judge(made.claim, made.rival, bands), evidence, words, *made.powers(bands, bands))


# What is claimed.

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
        undecided=ONCE.format("four gaps at the largest size, of 0.01 to 0.06 nats, are 1.5 to 4 times their errors"),
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
