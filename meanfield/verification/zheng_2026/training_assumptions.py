"""Zheng et al. 2026, assumptions G.1 - G.3 and claims F.1, F.2 in training, against measured ratios."""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification.claims import Claim, checks
from meanfield.verification.judges import Contest, Judges
from meanfield.verification.ladder_slopes import OFF, LadderRow, against_conditions, ladder_slope

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
# Sizes in which the conditions are stated, and that in which G.3 has a premise instead, B = Theta(1).
DIRECTIONS = ("width", "depth")
PLACES = ("input", "blocks")
# Slopes of ratios that are all but exactly 1 are not told from zero by less.
EXACT = 1e-3


def places_of(measured: xr.Dataset) -> xr.Dataset:
    """The ratios of the input layer, their mean over what all blocks have, and the loss.

    The paper does not say which block its figures 10 - 13 show. The output matrix is left out: it gives one number, of
    which a ratio between two can be as large as it likes.
    """
    places = {"training_loss": measured["training_loss"]}
    for name in RATIOS:
        values = measured[name]
        within = str(values.dims[-1])
        inside = values.isel({within: slice(1, -1 if within == "matrix" else None)}).mean(within)
        both = xr.concat([values.isel({within: 0}), inside], dim="place")
        places[name] = both.assign_attrs(values.attrs)
    return xr.Dataset(places, {"place": list(PLACES)})


def input_grant(dataset: xr.Dataset, name: str, place: str, direction: str) -> float:
    """The slope that the norm of a Gaussian input matrix leaves in width.

    |W_0|_R of n x d_0 elements is its limit times 1 + sqrt(d_0 / n), and a fit of c / n does not take the root away.
    """
    if (place, direction) != ("input", "width") or not name.startswith("weight"):
        return 0.0
    sizes = dataset["width"].values
    norm = 1 + np.sqrt(float(dataset.attrs["numbers"]) / sizes)
    return abs(ladder_slope(sizes, np.stack([norm, norm], axis=1)).settled)


def rows(dataset: xr.Dataset, names: tuple[str, ...], directions: tuple[str, ...] = DIRECTIONS) -> list[LadderRow]:
    """Slopes of ratios at every place and step."""
    slopes = []
    for direction in directions:
        for name in names:
            at = dataset[f"{name}_by_{direction}"].transpose("place", "step", direction, "draw")
            for place, by_step in zip(map(str, at["place"].values), at.values, strict=True):
                granted = EXACT + input_grant(dataset, name, place, direction)
                for step, values in zip(map(int, at["step"].values), by_step, strict=True):
                    slope, words = ladder_slope(dataset[direction].values, values), name.replace("_", " ")
                    slopes.append(LadderRow(words, direction, slope, place=place, step=step, granted=granted))
    return slopes


# The judges of `sims.training_assumptions`.
JUDGES = Judges()
findings = JUDGES.findings


@JUDGES.decide_each(*({"name": name} for name in ASSUMPTIONS))
def judge_assumption(dataset: xr.Dataset, name: str) -> Contest:
    """{claimed}, at any width, depth and step; rival: half a power of width or depth or more."""
    return _of_order_one(rows(dataset, ASSUMPTIONS[name]), WORDS[name])


@JUDGES.decide
def judge_batch(dataset: xr.Dataset) -> Contest:
    """G.3 holds at any batch size, so that it needs no premise; rival: half a power of batch or more."""
    return _of_order_one(rows(dataset, ASSUMPTIONS["G.3"], ("batch",)))


def _of_order_one(ratios: list[LadderRow], claimed: str = "") -> Contest:
    lost = [row for row in ratios if np.isnan(row.slope.settled)]
    if lost:
        raise ValueError(f"{lost[0].where}: ratios are zero or not finite at too many sizes for a slope")
    claim, rival = against_conditions(ratios)
    hardest = int(np.argmax(claim.excess))
    worst, far = (ratios[place].slope for place in (hardest, int(np.argmax(np.abs(claim.difference)))))
    words = (
        f"{len(ratios)} slopes, hardest {worst.settled:+.3f} +- {worst.settled_stderr:.3f} ({ratios[hardest].where}), "
        f"allowance {claim.allowance[hardest]:.3f}; farthest {far.settled:+.3f} +- {far.settled_stderr:.3f}"
    )
    return Contest(claim, rival, apart=OFF, comparisons=len(ratios)).saying(words, claimed=claimed)


CLAIMS = (
    Claim(
        id="S7",
        source="Zheng et al. 2026, assumptions G.1, G.2, G.3",
        statement="in training no update cancels, no activation collapses, a batch moves features as one sample does",
        checks=checks(
            "training_assumptions",
            *(partial(judge_assumption, name=name) for name in ASSUMPTIONS if name.startswith("G")),
            arguments=("--times", "3"),
        ),
    ),
)
