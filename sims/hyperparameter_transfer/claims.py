"""Zheng et al. 2026, sections 5.2 and 5.3: the tuned base rate stays under condition 3.1, and moves under other tables.

Statements, sizes and bands were set before any run. A base rate stays where it moves by half an octave at most; the
rival moves by half an octave with every doubling of the size, as under a table that misses the root of the size. A
size counts where nets have learned at the rate tuned there. A move is the difference of two means of logarithms over
seeds, and what skews either cancels in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from meanfield.common import Array
from meanfield.verification import (
    Check,
    Claim,
    Contest,
    Deviation,
    Finding,
    Judges,
    Kind,
    Ruling,
    Verdict,
    lower,
    span,
    tuned_rates,
)
from sims.hyperparameter_transfer.nets import CONDITIONS, FAMILIES, GPT, RESIDUAL

NAME = "hyperparameter_transfer"
DIRECTIONS = ("width", "depth")
# Octaves by which a base rate that stays may move, and those by which the rival's moves with every doubling.
STAYS, PER_DOUBLING = 0.5, 0.5
# The optimizers that the rows are about.
CLAIMED = ("adamw", "muon-adamw")
# Tables that the base rate is said to stay under, and to move under, with the size that grows.
KEPT = tuple(("many", direction) for direction in DIRECTIONS)
LOST = (("standard", "width"), ("one", "depth"))


@dataclass(frozen=True)
class RateMoves:
    """By how many octaves tuned base rates of the sizes beyond the base model differ from its own.

    Attributes:
        sizes: all of the ladder but the first: (S,).
        octaves, stderr: of the tuned rate over the base model's; NaN where one of them has none.
        freedom: degrees of freedom of the errors, by Welch and Satterthwaite.
        learned: whether nets have learned at the rate tuned there.
        base_learned: whether the base model has.
    """

    sizes: Array
    octaves: Array
    stderr: Array
    freedom: Array
    learned: NDArray[np.bool_]
    base_learned: bool

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which sizes say something."""
        return np.asarray(self.learned & np.isfinite(self.octaves) & self.base_learned)


def moves_of(dataset: xr.Dataset, family: str, optimizer: str, table: str, direction: str) -> RateMoves:
    """Those of one ladder."""
    at = dataset.sel(family=family, optimizer=optimizer, table=table)
    name = f"tuned_rate_log10_by_{direction}"
    rates, errors = at[name].values, at[f"{name}_stderr"].values
    least = np.maximum(at[f"located_by_{direction}"].values - 1, 1)
    squares, fourths = (errors[1:] ** power + errors[0] ** power for power in (2, 4))
    of_errors = errors[1:] ** 4 / least[1:] + errors[0] ** 4 / least[0]
    exact = (least[1:] + least[0]).astype(float)  # of errors that are alike, or 0
    freedom = np.divide(squares**2, of_errors, out=exact, where=fourths > 0)
    learned = has_learned(at, direction)
    octaves, stderr = (rates[1:] - rates[0]) / np.log10(2), np.sqrt(squares) / np.log10(2)
    return RateMoves(at[direction].values[1:], octaves, stderr, freedom, learned[1:], bool(learned[0]))


def has_learned(at: xr.Dataset, direction: str) -> NDArray[np.bool_]:
    """Of every size of a ladder, whether the mean loss at the tuned rate is below that of nets that have learned."""
    losses = at[f"tuned_loss_by_{direction}"].clip(max=at["chance_loss"]).mean("draw", skipna=False)
    return np.asarray((losses < at["learned_loss"]).values)


def lacks_of(at: xr.Dataset, direction: str) -> tuple[Array, Array]:
    """What the loss at the carried rate lacks of that at the tuned one, with its error over pairs of nets; (S,).

    Losses above chance count as chance.
    """
    carried, tuned = (
        at[f"{name}_loss_by_{direction}"].clip(max=at["chance_loss"]).values for name in ("carried", "tuned")
    )
    lacking = carried - tuned
    return lacking.mean(axis=-1), lacking.std(axis=-1, ddof=1) / np.sqrt(lacking.shape[-1])


# Findings of a run of all families: over both ladders, two tables each.
JUDGES = Judges(
    "Zheng et al. 2026",
    findings=len(FAMILIES) * len(CLAIMED) * (len(KEPT) + len(LOST)),
    budget=tuned_rates.TRAINED_BUDGET,
)


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of every family, optimizer and table that was run."""
    judged = []
    for family, optimizer in product(*(map(str, dataset[dim].values) for dim in ("family", "optimizer"))):
        for judge, places in ((judge_stays, KEPT), (judge_moves, LOST)):
            judged += [judge(dataset, family, optimizer, *at) for at in places if at[0] in dataset["table"].values]
    return judged


@JUDGES.decide(
    claim="Under {condition} the tuned base rate of {nets} by {optimizer} stays within half an octave over the "
    "{direction}",
    brief="{nets} by {optimizer}: the base rate stays over the {direction}, {condition}",
    source="section 5.2",
    rival="it moves by half an octave or more with every doubling of the {direction}",
    measured="base rates that minimise the training loss, in octaves of the base model's, where nets have learned",
)
def judge_stays(dataset: xr.Dataset, family: str, optimizer: str, table: str, direction: str) -> Contest | Ruling:
    words = _words(family, table)
    if lost := _unsaid(dataset, family, optimizer, table, direction):
        return _no_verdict(lost, words)
    moves = moves_of(dataset, family, optimizer, table, direction)
    there = moves.counted
    octaves, stderr = moves.octaves[there], moves.stderr[there]
    away = PER_DOUBLING * np.log2(moves.sizes[there] / float(dataset[direction][0]))
    claim = Deviation(octaves, stderr, STAYS)
    rival = Deviation(max(away[-1] - abs(octaves[-1]), 0.0), stderr[-1])
    made = Contest(claim, rival, apart=away, back=away[-1], **_carried_by(dataset, moves))
    return made.saying(_in_words(moves), **words)


@JUDGES.decide(
    claim="Under {condition} the tuned base rate of {nets} by {optimizer} moves by more than half an octave over the "
    "{direction}",
    brief="{nets} by {optimizer}: the base rate moves over the {direction}, {condition}",
    source="sections 5.2, 5.3",
    rival="it stays within half an octave",
    measured="base rates that minimise the training loss, in octaves of the base model's, where nets have learned",
)
def judge_moves(dataset: xr.Dataset, family: str, optimizer: str, table: str, direction: str) -> Contest | Ruling:
    """From the smallest size to the largest."""
    words = _words(family, table)
    if lost := _unsaid(dataset, family, optimizer, table, direction):
        return _no_verdict(lost, words)
    moves = moves_of(dataset, family, optimizer, table, direction)
    how = _carried_by(dataset, moves)
    made = lower(STAYS - abs(float(moves.octaves[-1])), float(moves.stderr[-1]), unit="octaves", **how)
    return made.saying(_in_words(moves), **words)


def _words(family: str, table: str) -> dict[str, Any]:
    return {"nets": FAMILIES[family], "condition": CONDITIONS[table]}


def _unsaid(dataset: xr.Dataset, family: str, optimizer: str, table: str, direction: str) -> str:
    """Why a ladder says nothing; nothing where its base model and its largest size do."""
    for dim, name in {"family": family, "optimizer": optimizer, "table": table}.items():
        if name not in dataset[dim].values:
            return f"{name} was not run"
    moves = moves_of(dataset, family, optimizer, table, direction)
    if not moves.base_learned:
        return "the base model has not learned at its tuned rate"
    if not moves.learned[-1]:
        return f"nets of {direction} {moves.sizes[-1]} have not learned at the rate tuned there"
    return "" if moves.counted[-1] else f"fewer than two nets of {direction} {moves.sizes[-1]} have a tuned rate"


def _no_verdict(why: str, words: dict[str, Any]) -> Ruling:
    return Ruling(Verdict.INCONCLUSIVE, why, words, f"none: {why}")


def _carried_by(dataset: xr.Dataset, moves: RateMoves) -> dict[str, Any]:
    """The nets behind a move, in the counts that a contest takes."""
    effective = float(moves.freedom[moves.counted].min()) + 1
    return {"draws": int(dataset.attrs["tuning_seeds"]), "effective": effective, "gaussian": True}


def _in_words(moves: RateMoves) -> str:
    each = zip(moves.sizes[moves.counted], moves.octaves[moves.counted], moves.stderr[moves.counted], strict=True)
    left_out = moves.sizes[~moves.counted]
    note = f"; left out {span(left_out)}, where nets have not learned" if left_out.size else ""
    return ", ".join(f"{octaves:+.2f} +- {error:.2f} octaves at {size}" for size, octaves, error in each) + note


# Residual nets train in minutes, GPTs in hours: their rows have a run of their own.
OWN_RUN = {RESIDUAL: ("--families", RESIDUAL), GPT: ()}
# Twice as wide, and twice as deep, on half the nets.
LARGER = ("--larger", "2", "--tuning-seeds", "4")
# Of these Muon's with AdamW under condition 3.1 alone, on as many nets as smaller sizes.
LARGER_MUON = ("--optimizers", "muon-adamw", "--tables", "many", "--larger", "2")


def _checks(
    family: str, judge: Any, places: Sequence[tuple[str, str]], told: Mapping[str, tuple[str, ...]] = {}
) -> tuple[Check, ...]:
    """One for every optimizer and place; ``told``: what an optimizer's run is told, if not the family's own."""
    return tuple(
        Check(
            NAME,
            partial(judge, family=family, optimizer=optimizer, table=table, direction=direction),
            told.get(optimizer, OWN_RUN[family]),
        )
        for optimizer, (table, direction) in product(CLAIMED, places)
    )


STAYS_PRINTED = (
    '"muP keeps the optimal base learning rate nearly invariant. Under depth scaling, muP also preserves HP '
    'transferability" (section 5.2)'
)
MOVES_PRINTED = (
    '"SP exhibits substantial shifts in the optimal learning rate when width is scaled" (section 5.2); "Condition B.1 '
    'shifts the optimal learning rate as depth increases" (section 5.3)'
)
# What all rows share.
HOW = (
    "AdamW, and Muon on hidden weights with AdamW at a tenth of its rate on all others; the best of three weight "
    "decays of the base model is carried by the table. Beyond what the paper states: it tunes rates without weight "
    "decay by Muon-Kimi and Muon, each with AdamW, under a schedule and with clipped gradients, and has the validation "
    "loss; ours is that of training, at a constant rate. 'Nearly invariant' is read as half an octave, from width 32 "
    "and 4 blocks on, where claims on the printed tables (S10) have the whole octave of their grids"
)
OF_RESIDUAL = (
    "two layers a branch with ReLU behind every matrix (eq. 28), 448 steps of batches of 8 on all digits, widths to "
    f"128 and 16 blocks (preset paper: to 256 and 32); the paper trains GPT-2. {HOW}"
)
OF_GPT = (
    "pre-norm with LayerNorm, text of 16 characters a window, at sizes where nets beat pairs of letters; trained by "
    "the presets evidence (widths to 128 and 16 blocks) and paper (to 256 and 32) alone, as the others have no time "
    f"for nets that learn. {HOW}"
)

OF_LARGER = (
    "at twice these sizes, width 256 and 32 blocks, with rates tuned on 4 nets; written down before this run, after "
    "those to width 128 and 16 blocks (E5c, E5d), where Muon's with AdamW had moved by -0.58 and -0.54 octaves over "
    "the width"
)


CLAIMS = (
    Claim(
        id="E5a",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, section 5.2, tables 4, 6, on residual nets of our own",
        statement="residual nets, of width 32 to 128 and 4 to 16 blocks: under condition 3.1 the tuned base rate "
        "stays within half an octave over widths and depths, by AdamW and by Muon with AdamW",
        brief="residual nets: the tuned base rate stays over all sizes under condition 3.1",
        printed=STAYS_PRINTED,
        hypotheses=OF_RESIDUAL,
        checks=_checks(RESIDUAL, judge_stays, KEPT),
        undecided="moves of -0.16, -0.58 (widths), +0.13 and +0.07 (depths) have errors of 0.4 to 0.6 octaves from 8 "
        "nets: 220 to 420 nets would decide all but the second, in 4 to 7 hours",
        preset="evidence",
    ),
    Claim(
        id="E5b",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, sections 5.2, 5.3, tables 10, 12, on residual nets of our own",
        statement="residual nets, of width 32 to 128 and 4 to 16 blocks: the tuned base rate moves by more than half "
        "an octave over widths by the standard, and over depths under condition B.1, by AdamW and by Muon with AdamW",
        brief="residual nets: the base rate moves by the standard, and under B.1 in depth",
        printed=MOVES_PRINTED,
        hypotheses=OF_RESIDUAL,
        checks=_checks(RESIDUAL, judge_moves, LOST),
        undecided="moves of +0.06, -0.99 (widths), -0.04 and +0.43 (depths) have errors of 0.4 to 0.8 octaves from 8 "
        "nets: 200 nets would leave 0.08 to 0.16, in more than 3 hours",
        preset="evidence",
    ),
    Claim(
        id="E5c",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, section 5.2, figures 1, 5, at small scale",
        statement="GPTs of characters, of width 32 to 128 and 4 to 16 blocks: under condition 3.1 the tuned base rate "
        "stays within half an octave over widths and depths, by AdamW and by Muon with AdamW",
        brief="GPTs of characters: the tuned base rate stays over all sizes under condition 3.1",
        printed=STAYS_PRINTED,
        hypotheses=f"{OF_GPT}. By Muon with AdamW the rate moves by -0.58 +- 0.02 octaves over the width, "
        "a little more than half an octave and inside the band",
        checks=_checks(GPT, judge_stays, KEPT),
        preset="evidence",
    ),
    Claim(
        id="E5d",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, sections 5.2, 5.3, figures 1, 2, 5, at small scale",
        statement="GPTs of characters, of width 32 to 128 and 4 to 16 blocks: the tuned base rate moves by more than "
        "half an octave over widths by the standard, and over depths under condition B.1, by AdamW and by Muon with "
        "AdamW",
        brief="GPTs of characters: the base rate moves by the standard, and under B.1 in depth",
        printed=MOVES_PRINTED,
        hypotheses=OF_GPT,
        checks=_checks(GPT, judge_moves, LOST),
        undecided="by Muon with AdamW it moves by -0.54 +- 0.02 octaves over widths by the standard, at the edge of "
        "half an octave and as under condition 3.1 (-0.58 +- 0.02), so that more nets would not show the paper's "
        "contrast; the three other moves, -1.66, +0.65 and +0.76 octaves, are larger",
        preset="evidence",
    ),
    Claim(
        id="E5e",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, section 5.2, figures 1, 5, at small scale",
        statement="GPTs of characters, from width 32 to 256 and from 4 to 32 blocks: under condition 3.1 the tuned "
        "base rate stays within half an octave, by AdamW and by Muon with AdamW",
        brief="GPTs: the base rate stays to width 256 and 32 blocks under condition 3.1",
        printed=STAYS_PRINTED,
        hypotheses=f"{OF_GPT}; {OF_LARGER}; by Muon with AdamW on 8 nets, after 4 had -0.76 +- 0.03 over the width, "
        "which did not decide",
        checks=_checks(GPT, judge_stays, KEPT, dict(zip(CLAIMED, (LARGER, LARGER_MUON), strict=True))),
        replaced_by="three of four stay, by AdamW over width and depth (+0.01 +- 0.06 and -0.06 +- 0.07 octaves) and "
        "by Muon with AdamW over the depth (+0.05 +- 0.02); over the width Muon's falls by -0.78 +- 0.02, to 0.58 "
        "times, and the carried rate costs 0.045 +- 0.003 in the loss at width 256",
        premise="what a table keeps at one size over the width in the first steps sets the rate that trains best",
        preset="evidence",
    ),
    Claim(
        id="E5f",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, sections 5.2, 5.3, figures 1, 2, 5, at small scale",
        statement="GPTs of characters, from width 32 to 256 and from 4 to 32 blocks: the tuned base rate moves by more "
        "than half an octave over the width by the standard, and over the depth under condition B.1, by AdamW and by "
        "Muon with AdamW",
        brief="GPTs: the base rate moves to width 256 by the standard, to 32 blocks under B.1",
        printed=MOVES_PRINTED,
        hypotheses=f"{OF_GPT}; {OF_LARGER}",
        checks=_checks(GPT, judge_moves, LOST, dict.fromkeys(CLAIMED, LARGER)),
        undecided="two of four move, AdamW's by the standard (-2.17 +- 0.09 octaves) and Muon's under condition B.1 "
        "(+1.30 +- 0.04); AdamW's under condition B.1, +0.94 +- 0.10, needs 19 nets a rate where 4 are made, 11 hours "
        "on two cores; Muon's by the standard, -0.49 +- 0.06, is at the edge of half an octave and moves less than "
        "under condition 3.1, so that more nets would not show the paper's contrast",
        preset="evidence",
    ),
)
