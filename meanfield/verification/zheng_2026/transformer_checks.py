"""Zheng et al. 2026, figures 1, 3, 5, 6 and 8: the size of features of GPT-like nets after ten steps, by table."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.verification.claims import Check, Claim, Kind, of_rival
from meanfield.verification.judges import Contest, Judges, Ruling
from meanfield.verification.series import OFF, LadderRow, LadderSlope, against_conditions
from meanfield.verification.verdicts import Deviation, Finding, Verdict
from meanfield.verification.zheng_2026.coordinate_checks import DIRECTIONS, TITLES, Watched, slope

# The least slope that is called growth: a doubling over a sixteenfold size.
GROWTH = 0.25
NORMALISED = {"layer": "With LayerNorm", "rms": "With RMS normalisation", "none": "Without normalisation"}

# The judges of `sims.transformer_coordinate_check`.
JUDGES = Judges()


def watched(dataset: xr.Dataset) -> list[Watched]:
    """The stream behind the last block before training; after it, that stream, its change and the outputs' change."""
    last = int(dataset["step"].values[-1])
    features = [Watched("feature_norm", step, "place", "last") for step in (0, last)]
    return [*features, Watched("feature_update_norm", last, "place", "last"), Watched("output_update_norm", last)]


def features_slope(dataset: xr.Dataset, normalisation: str, optimizer: str, table: str, direction: str) -> LadderSlope:
    """Of |h_L| after the last step."""
    at = dataset.sel(normalisation=normalisation)
    return slope(at, optimizer, table, direction, watched(dataset)[1])


def findings(dataset: xr.Dataset) -> list[Finding]:
    """Of every normalisation and table that was run."""
    tables, norms = (set(map(str, dataset[name].values)) for name in ("table", "normalisation"))
    judged = []
    for norm in (norm for norm in NORMALISED if norm in norms):
        directions = DIRECTIONS if norm == "layer" else ("depth",)
        judged += [judge_flat(dataset, norm, "many", directions)] if "many" in tables else []
        judged += [judge_growth(dataset, norm, directions)] if "standard" in tables else []
        judged += [judge_flat(dataset, norm, "one", ("depth",))] if "one" in tables else []
    return judged


@JUDGES.decide
def judge_flat(
    dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str] = DIRECTIONS
) -> Contest | Ruling:
    """{norm} the {title} keeps |h_L| flat in {ways} over {steps} steps; rival: {norm} |h_L| grows or falls under the
    {title} in {ways} over {steps} steps, by half a power or more; measured: slopes of |h_L| after the last step in the
    limit of large sizes, by a fit with a term in 1 / size."""
    rows = _rows(dataset, normalisation, table, directions)
    words = _words(dataset, normalisation, directions) | {"title": TITLES[table]}
    if any(np.isnan(row.slope.settled) for row in rows):
        return Ruling(Verdict.REFUTED, "some nets leave the range of floats", words)
    claim, rival = against_conditions(rows)
    shown = ", ".join(
        f"{row.slope} ({row.optimizer}, {row.direction}; allowance {row.slope.allowance:.3f})" for row in rows
    )
    return Contest(claim, rival, apart=OFF, gaussian=True, comparisons=len(rows)).saying(f"slopes {shown}", **words)


@JUDGES.decide
def judge_growth(dataset: xr.Dataset, normalisation: str, directions: Sequence[str] = DIRECTIONS) -> Contest | Ruling:
    """{norm} |h_L| grows in {ways} over {steps} steps of the standard parameterization, as a quarter power or faster;
    rival: it does not grow; measured: slopes of |h_L| after the last step, of a straight line and in the limit of large
    sizes.

    Growth is what both slopes show, and no growth what neither does: where |h_L| rises and falls again they disagree.
    """
    rows = _rows(dataset, normalisation, "standard", directions)
    words = _words(dataset, normalisation, directions)
    slopes, stderr = (
        np.array([[getattr(row.slope, fit + end) for row in rows] for fit in ("plain", "settled")])
        for end in ("", "_stderr")
    )
    if np.isnan(slopes).any():
        return Ruling(Verdict.CONFIRMED, "most nets leave the range of floats", words)
    steeper = slopes.argmax(axis=0), range(len(rows))
    claim = Deviation(np.maximum(GROWTH - slopes[steeper], 0.0), stderr[steeper])
    slowest = np.unravel_index(np.argmin(slopes / stderr), slopes.shape)
    rival = Deviation(max(slopes[slowest], 0.0), stderr[slowest])
    shown = ", ".join(
        f"{row.slope.plain:+.2f} +- {row.slope.plain_stderr:.2f}, in the limit {row.slope} ({row.optimizer}, "
        f"{row.direction})"
        for row in rows
    )
    disagree = np.any((slopes.max(axis=0) >= GROWTH) & (slopes.min(axis=0) < 0))
    note = "; one rises and the other falls, as of no power of the size" if disagree else ""
    made = Contest(claim, rival, apart=GROWTH, comparisons=slopes.size, gaussian=True, note=note)
    return made.saying(f"slopes {shown}", **words)


def _rows(dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str]) -> list[LadderRow]:
    return [
        LadderRow("|h_L|", along, features_slope(dataset, normalisation, name, table, along), optimizer=name)
        for name, along in product(map(str, dataset["optimizer"].values), directions)
    ]


def _words(dataset: xr.Dataset, normalisation: str, directions: Sequence[str]) -> dict[str, str]:
    steps = str(dataset.attrs["steps"])
    return {"norm": NORMALISED[normalisation], "ways": " and ".join(directions), "steps": steps}


# The paper's main example without arguments, on nets with LayerNorm and without; and AdamW for all weights.
ADAMW = ("--optimizers", "adamw", "--normalisations", "layer")
# The examples of its appendix.
APPENDIX = tuple(
    ("--optimizers", name, "--normalisations", "layer", "--tables", "many", "standard")
    for name in ("muon-adamw", "shampoo-adamw", "sophia")
)
OF_APPENDIX = (
    "the optimizers of figures 5, 6 and 8; Sophia, as it is run in practice, takes the curvature at drawn labels"
)
HYPOTHESES = "nets of characters, 32 to 128 channels wide and 2 to 16 blocks deep, ten steps on one batch"
OPTIMIZERS = "figure 1 is of Muon-Kimi with AdamW; AdamW for all weights (table 6) is ours"
UNNORMALISED = "Zheng et al. 2026, section 5.4, figure 3, read as the check of figure 1 without LayerNorm"


def _checks(judge: Callable[..., Finding], *runs: tuple[str, ...], **how: Any) -> tuple[Check, ...]:
    return tuple(Check("transformer_coordinate_check", partial(judge, **how), arguments) for arguments in runs)


def _not_flat(dataset: xr.Dataset, normalisation: str, table: str, directions: Sequence[str]) -> Finding:
    return of_rival(partial(judge_flat, normalisation=normalisation, table=table, directions=directions))(dataset)


CLAIMS = (
    Claim(
        id="S11a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, figure 1 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: under condition 3.1 ten steps "
        "keep |h_L| flat in width and depth",
        printed='"muP maintains stable and scale-invariant feature scales, consistent with Principle 2.1" (section '
        "5.2)",
        hypotheses=f"{OPTIMIZERS}; {HYPOTHESES}",
        checks=_checks(judge_flat, (), ADAMW, normalisation="layer", table="many"),
    ),
    Claim(
        id="S11b",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, section 5.2, figure 1 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: in the standard "
        "parameterization |h_L| grows with width and depth",
        printed='"under SP, the feature scale grows rapidly with both width and depth" (section 5.2)',
        hypotheses=f"{OPTIMIZERS}; {HYPOTHESES}",
        checks=_checks(judge_growth, (), ADAMW, normalisation="layer"),
    ),
    Claim(
        id="S11c",
        kind=Kind.READING,
        source=UNNORMALISED,
        statement="GPT-like nets without LayerNorm, Muon-Kimi with AdamW: under condition 3.1 ten steps keep |h_L| "
        "flat in depth",
        printed='"we remove LayerNorm layers and repeat the depth-scaling experiments ... muP remains stable even at '
        'large depths (L = 256)" (section 5.4)',
        hypotheses=f"Muon-Kimi with AdamW; {HYPOTHESES}",
        checks=_checks(judge_flat, (), normalisation="none", table="many", directions=("depth",)),
    ),
    Claim(
        id="S11d",
        kind=Kind.READING,
        source=UNNORMALISED,
        statement="GPT-like nets without LayerNorm, Muon-Kimi with AdamW: in the standard parameterization |h_L| grows "
        "with depth",
        printed='"SP becomes increasingly prone to loss divergence as depth increases in the absence of LayerNorm" '
        "(figure 3)",
        hypotheses="a reading: the sentence is about losses, of which S10r speaks. Of the default's nets |h_L| is 2.9, "
        f"5.5, 10.4 and 7.7 at 2, 3, 5 and 16 blocks, no power of L; Muon-Kimi with AdamW; {HYPOTHESES}",
        checks=_checks(judge_growth, (), normalisation="none", directions=("depth",)),
    ),
    Claim(
        id="S11e",
        kind=Kind.READING,
        source="Zheng et al. 2026, takeaway 3, read as a statement on the check of figure 1",
        statement="GPT-like nets with LayerNorm, Muon-Kimi with AdamW and AdamW alone: under condition B.1 (k = 1) ten "
        "steps do not keep |h_L| flat in depth",
        printed='"scaling from Condition 3.1 ... achieves stable feature learning and robust HP transfer ... '
        'Depth-muP-style scaling from Condition B.1 (k = 1) often fail" (takeaway 3)',
        hypotheses="a reading: the paper makes this check under condition 3.1 and by the standard alone, and shows "
        f"by rates (figure 2) what condition B.1 loses; {OPTIMIZERS}; {HYPOTHESES}",
        checks=_checks(_not_flat, (), ADAMW, normalisation="layer", table="one", directions=("depth",)),
        replaced_by="|h_L| is flat in depth under conditions 3.1 and B.1 alike: the check does not tell them apart",
        premise="what condition B.1 loses, the second order of updates (S5c), is seen in the size of features",
    ),
    Claim(
        id="S11f",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, appendix E, figures 5, 6 and 8 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon and Shampoo, each with AdamW, and Sophia: under condition 3.1 "
        "ten steps keep |h_L| flat in width and depth",
        printed='"Across these optimizer settings, ... the muP formulation from Condition 3.1 (k >= 2) keeps the '
        'final-block feature norm approximately scale-invariant" (appendix E.2)',
        hypotheses=f"{OF_APPENDIX}; {HYPOTHESES}",
        checks=_checks(judge_flat, *APPENDIX, normalisation="layer", table="many"),
    ),
    Claim(
        id="S11g",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, appendix E, figures 5, 6 and 8 (a, b)",
        statement="GPT-like nets with LayerNorm, Muon and Shampoo, each with AdamW, and Sophia: in the standard "
        "parameterization |h_L| grows with width and depth",
        printed='"Across these optimizer settings, ... SP exhibits feature-scale growth under width or depth '
        'scaling" (appendix E.2)',
        hypotheses=f"{OF_APPENDIX}; {HYPOTHESES}",
        checks=_checks(judge_growth, *APPENDIX, normalisation="layer"),
    ),
)
