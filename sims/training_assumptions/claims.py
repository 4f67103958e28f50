"""Zheng et al. 2026, assumptions G.1 - G.3 and claims F.1, F.2 in training, against measured ratios."""

from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from meanfield.common import Array
from meanfield.verification import (
    OFF,
    Claim,
    Contest,
    Finding,
    Judges,
    Kind,
    LadderRow,
    against_conditions,
    checks,
    ladder_slope,
)
from sims.common.blocks.ladders import DIRECTIONS

NAME = "training_assumptions"

# What each assumption says is of order one, and in words.
ASSUMPTIONS = {
    "G.1 weights": ("weight_step_ratio", "weight_travel_ratio"),
    "G.1 features": ("feature_step_ratio", "feature_travel_ratio"),
    "G.2": ("activation_ratio",),
    "G.3": ("sample_update_ratio",),
    "F.1": ("weight_alignment",),
    "F.2": ("update_alignment",),
}
WORDS = {
    "G.1 weights": "weights do not lose to their updates (G.1)",
    "G.1 features": "features do not lose to their updates (G.1)",
    "G.2": "activations keep the order of what they are given (G.2)",
    "G.3": "a batch moves features as a sample's own part does (G.3)",
    "F.1": "weights reach a fixed share of their norm (F.1)",
    "F.2": "updates reach a fixed share of their norm (F.2)",
}
RATIOS = tuple(name for names in ASSUMPTIONS.values() for name in names)
# What the paper says of updates that are sums over samples, and of gradients; the rest it says of any update.
OF_GRADIENTS = ("G.3", "F.2")
# Where the paper looks (appendix G.2), and the mean over what all blocks have: the assumptions are of every layer.
FIRST, LAST = "last block, layer 1", "last block, layer 2"
PLACES = ("input", FIRST, LAST, "all blocks")
# Where G.3 is judged: in single layers its denominator scatters so much that hundreds of draws leave it undecided.
STEADY = ("input", "all blocks")
# Slopes of ratios that are all but exactly 1 are not told from zero by less.
EXACT = 1e-3
# What independence leaves of |W| + |D|: a large square matrix W of Gaussians, of norm 2 in units of its edge, plus D of
# rank one and norm d has the norm d + 1/d where d > 1, else 2; least against 2 + d at the golden ratio.
# Source: Benaych-Georges and Nadakuditi 2012.
INDEPENDENT = (5**0.5 - 1) / 2

JUDGES = Judges()


def findings(dataset: xr.Dataset) -> list[Finding]:
    """What the paper says of the run's optimizer, and under gradient descent that G.3 needs no premise."""
    is_descent = bool(ladders_of(dataset, ASSUMPTIONS["G.3"]))
    stated = [name for name in ASSUMPTIONS if is_descent or name not in OF_GRADIENTS]
    assumed = [judge_assumption(dataset, name) for name in stated]
    return [*assumed, judge_batch(dataset)] if is_descent else assumed


@JUDGES.decide(
    claim="Under {optimizer}, {claimed}, at any width, depth and step",
    rival="half a power of width or depth or more",
    measured="slopes in width and in depth of the ratios that the assumption bounds, by place, after the first, middle "
    "and last step",
    cases=[{"name": name} for name in ASSUMPTIONS],
)
def judge_assumption(dataset: xr.Dataset, name: str) -> Contest:
    ratios = rows(dataset, ASSUMPTIONS[name])
    if name == "G.3":
        ratios = [row for row in ratios if row.place in STEADY]
    return _of_order_one(dataset, ratios, WORDS[name])


@JUDGES.decide(
    claim="G.3 holds at any batch size, so that it needs no premise",
    rival="half a power of batch or more",
    measured="slopes in B of the ratio of a sample's own part, divided by B, to the whole update, by place and step",
)
def judge_batch(dataset: xr.Dataset) -> Contest:
    return _of_order_one(dataset, rows(dataset, ASSUMPTIONS["G.3"], ("batch",)))


def _of_order_one(dataset: xr.Dataset, ratios: list[LadderRow], claimed: str = "") -> Contest:
    lost = [row for row in ratios if np.isnan(row.slope.settled)]
    if lost:
        raise ValueError(f"{lost[0].where}: ratios are zero or not finite at too many sizes for a slope")
    claim, rival = against_conditions(ratios)
    hardest = int(np.argmax(claim.excess))
    worst, far = (ratios[place].slope for place in (hardest, int(np.argmax(np.abs(claim.difference)))))
    words = (
        f"{len(ratios)} slopes, hardest {worst} ({ratios[hardest].where}), "
        f"allowance {claim.allowance[hardest]:.3f}; farthest {far}"
    )
    made = Contest(claim, rival, comparisons=len(ratios), apart=OFF, gaussian=True)
    return made.saying(words, claimed=claimed, optimizer=dataset.attrs["optimizer"])


def rows(dataset: xr.Dataset, names: tuple[str, ...], directions: tuple[str, ...] = DIRECTIONS) -> list[LadderRow]:
    """Slopes of ratios at every place and step."""
    slopes = []
    for direction in directions:
        for name in names:
            at = dataset[f"{name}_by_{direction}"].transpose("place", "step", direction, "draw")
            for place in places_for(name):
                granted = EXACT + input_grant(dataset, name, place, direction)
                for step, values in zip(map(int, at["step"].values), at.sel(place=place).values, strict=True):
                    sizes, words = dataset[direction].values, name.replace("_", " ")
                    row = LadderRow(words, direction, ladder_slope(sizes, values), place=place, step=step)
                    slopes.append(replace(row, granted=granted, may_fall=travel_grant(name, sizes, values)))
    return slopes


def places_for(name: str) -> tuple[str, ...]:
    """The places at which a ratio is defined: features are those behind whole blocks, the last one's at ``LAST``."""
    return tuple(place for place in PLACES if place != FIRST or not name.startswith("feature"))


def ladders_of(dataset: xr.Dataset, names: tuple[str, ...] = RATIOS) -> tuple[str, ...]:
    """Those of some ratios that the run has: under gradient descent all of them."""
    return tuple(name for name in names if f"{name}_by_depth" in dataset)


def input_grant(dataset: xr.Dataset, name: str, place: str, direction: str) -> float:
    """The slope that the norm of a Gaussian input matrix leaves in width.

    |W_0|_R of n x d_0 elements is its limit times 1 + sqrt(d_0 / n), and a fit of c / n does not take the root away.
    """
    if (place, direction) != ("input", "width") or not name.startswith("weight"):
        return 0.0
    sizes = dataset["width"].values
    norm = 1 + np.sqrt(float(dataset.attrs["numbers"]) / sizes)
    return abs(ladder_slope(sizes, np.stack([norm, norm], axis=1)).settled)


def travel_grant(name: str, sizes: Array, values: Array) -> float:
    """The slope by which weights may fall against the sum of the norms that they and their change have.

    Weights that keep what they began with, and a change that forgets it as nets grow, end independent of one another,
    which is no cancellation: from the ratio of the smallest nets down to `INDEPENDENT` over the whole ladder.
    """
    if name != "weight_travel_ratio":
        return 0.0
    smallest = float(np.mean(np.log(values[0])))
    return max(smallest - np.log(INDEPENDENT), 0.0) / float(np.log(sizes[-1] / sizes[0]))


# One optimizer of elements and one of matrices, of which the paper assumes G.1 and G.2 and shows nothing; and ladders
# on which they take a quarter of what the default ones take.
OTHERS = ("adamw", "muon")
SHORTER = ("--widths", "16", "24", "32", "48", "128", "--depths", "1", "2", "4", "8", "32", "--times", "2")
# What the default preset trains.
NETS = "ReLU nets of eq. 28 on two classes of digits, 200 full-batch steps"

CLAIMS = (
    Claim(
        id="S7a",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumptions G.1, G.2, G.3, figures 10-13",
        statement="under gradient descent no update cancels, no activation collapses, and the share of a sample's own "
        "update by which a batch (here of 20) moves its features depends on neither width, depth nor step",
        printed='"three key assumptions ... we formally restate these assumptions and empirically verify their '
        'validity in the width-depth scaling context" (appendix G)',
        hypotheses=f"G.3: B is of order one, here 20. {NETS}, widths 16 .. 256 at 4 blocks and 1 .. 64 blocks at width "
        "64",
        checks=checks(
            NAME,
            *(partial(judge_assumption, name=name) for name in ASSUMPTIONS if name.startswith("G")),
            arguments=("--times", "3"),
        ),
    ),
    Claim(
        id="S7b",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, assumptions G.1, G.2",
        statement="under AdamW and Muon no update cancels and no activation collapses",
        printed='"Delta W_l does not destructively cancel out the existing weight W_l ... the activation function '
        'preserves the asymptotic order of the feature norms" (appendix G.1)',
        hypotheses=f"{NETS}, widths 16 .. 128 at 4 blocks and 1 .. 32 blocks at width 64",
        checks=tuple(
            check
            for optimizer in OTHERS
            for check in checks(
                NAME,
                *(partial(judge_assumption, name=name) for name in ("G.1 weights", "G.1 features", "G.2")),
                arguments=("--optimizer", optimizer, *SHORTER),
            )
        ),
    ),
    Claim(
        id="S7c",
        kind=Kind.BEYOND,
        source="Zheng et al. 2026, assumption G.3 beyond its premise, a batch of order one",
        statement="under gradient descent a batch of any size B moves a sample's features as 1/B of the sample's own "
        "update does",
        printed='"the batch size satisfies B = Theta(1), ... |Delta W_l h_(l-1)(x^(i))|_R = Theta(1/B |Delta W_l^(i) '
        'h_(l-1)(x^(i))|_R)" (assumption G.3)',
        hypotheses=f"{NETS}, width 64, 4 blocks, B = 10 .. 80",
        checks=checks(NAME, judge_batch, arguments=("--times", "3")),
        replaced_by="it moves them by a share of the sample's own update that falls with B slowly or not at all (0.06 "
        "to 0.3 for B = 10 .. 80), not as 1/B: the ratio falls as B^(-0.8) to B^(-1.1)",
        premise="that batches are of order one, which the paper says; samples of larger ones move features alike",
    ),
)
