"""Zheng et al. 2026, section 5.3: what a user pays who carries the base model's best rate to deeper nets."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Judges, Ruling, lower
from meanfield.verification.verdicts import Finding
from meanfield.verification.zheng_2026.printed_losses.reported_losses import (
    DEPTHS,
    FOUR,
    OTHERS_BY_CONDITION,
    PRINTED,
    SHAMPOO_BY_CONDITION,
    weighed,
    worded,
)

BY_CONDITION = (*OTHERS_BY_CONDITION[:2], SHAMPOO_BY_CONDITION, *OTHERS_BY_CONDITION[2:])
# Standard errors within which losses of the base model do not tell one of its rates from the best.
ALIKE = 2.0

JUDGES = Judges()
findings = JUDGES.findings


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


@JUDGES.decide_each(*({"above": above, "below": below} for above, below in BY_CONDITION))
def judge_carried(dataset: xr.Dataset, above: int, below: int) -> Ruling:
    """{setting}: at the best rate of the base model, carried over the ladder in {direction}, losses are lower under
    {of} than under {other} (table {below} against {above}); rival: they are higher; measured: the difference of printed
    losses at that rate, averaged over sizes above the base model's, with an error that holds which rate is carried."""
    at, of_other = (dataset.sel(table=table) for table in (below, above))
    made = carried(dataset, below, above)
    each = ", ".join(f"{mean:+.3f} at 2^{value:g}" for value, mean in made.choices.items())
    evidence = f"{made.mean:+.4f} +- {made.stderr:.4f} nats at 2^{made.value:g}, {made.last:+.3f} at the largest size"
    if len(made.choices) > 1:
        evidence += f"; the base model's losses do not tell its best rate from others: {each}"
    named = worded(at) | {"other": worded(of_other)["of"]}
    return weighed(lower(made.mean, made.stderr, unit="nats"), float(at["repeats"]), evidence, named)


def _lower_when_carried(above: int, below: int) -> Callable[[xr.Dataset], Finding]:
    return partial(judge_carried, above=above, below=below)


CLAIMS = (
    Claim(
        id="S10t",
        kind=Kind.READING,
        source="Zheng et al. 2026, section 5.3",
        statement="GPT-2, as printed: at the best rate of the base model, carried to 8 .. 256 blocks, losses are lower "
        "under condition 3.1 than under B.1, with each of four optimizers",
        printed='"our theory predicts that Condition 3.1 should provide a better parameterization" (section 5.3)',
        hypotheses=f"a reading: better for whoever tunes the base model and carries its rate. {FOUR}; {DEPTHS}; one "
        f"rate for both conditions, as the base model is the same; {PRINTED}",
        checks=checks("reported_losses", *(_lower_when_carried(*pair) for pair in BY_CONDITION)),
    ),
)
