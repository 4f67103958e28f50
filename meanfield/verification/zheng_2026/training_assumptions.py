"""P1's assumptions G.1 - G.3 and claims F.1, F.2 in training, held against measured ratios: slopes and verdicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from meanfield.verification.ladder_slopes import LadderSlope, ladder_slope
from meanfield.verification.verdicts import Deviation, Finding, weigh

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
# Sizes in which P1's conditions are stated, and that in which G.3 has a premise instead, B = Theta(1).
DIRECTIONS = ("width", "depth")
PLACES = ("input", "blocks")
# The exponent by which a ratio that is not of order one is off.
OFF = 0.5
# Slopes of ratios that are all but exactly 1 are not told from zero by less.
EXACT = 1e-3


def places_of(measured: xr.Dataset) -> xr.Dataset:
    """The ratios of the input layer and their mean over what blocks have, as P1's figures show; the loss as it is.

    The output matrix is left out: it gives one number, of which a ratio between two can be as large as it likes.
    """
    found = {"training_loss": measured["training_loss"]}
    for name in RATIOS:
        values = measured[name]
        within = str(values.dims[-1])
        inside = values.isel({within: slice(1, -1 if within == "matrix" else None)}).mean(within)
        both = xr.concat([values.isel({within: 0}), inside], dim="place")
        found[name] = both.assign_attrs(values.attrs)
    return xr.Dataset(found, {"place": list(PLACES)})


@dataclass(frozen=True)
class Row:
    """The slope of one ratio along one ladder at one step, and what is granted besides the slope's own allowance."""

    name: str
    place: str
    step: int
    direction: str
    slope: LadderSlope

    granted: float = 0.0

    @property
    def where(self) -> str:
        return f"{self.name.replace('_', ' ')}, {self.place}, step {self.step}, in {self.direction}"


def input_grant(dataset: xr.Dataset, name: str, place: str, direction: str) -> float:
    """The slope that the norm of a Gaussian input matrix leaves in width.

    |W_0|_R of n x d_0 elements is its limit times 1 + sqrt(d_0 / n), and a fit of c / n does not take the root away.
    """
    if (place, direction) != ("input", "width") or not name.startswith("weight"):
        return 0.0
    sizes = dataset["width"].values
    norm = 1 + np.sqrt(float(dataset.attrs["numbers"]) / sizes)
    return abs(ladder_slope(sizes, np.stack([norm, norm], axis=1)).settled)


def rows(dataset: xr.Dataset, names: tuple[str, ...], directions: tuple[str, ...] = DIRECTIONS) -> list[Row]:
    """Slopes of ratios at every place and step."""
    found = []
    for direction in directions:
        for name in names:
            at = dataset[f"{name}_by_{direction}"].transpose("place", "step", direction, "draw")
            for place, by_step in zip(map(str, at["place"].values), at.values, strict=True):
                granted = EXACT + input_grant(dataset, name, place, direction)
                for step, values in zip(at["step"].values, by_step, strict=True):
                    slope = ladder_slope(dataset[direction].values, values)
                    found.append(Row(name, place, int(step), direction, slope, granted))
    return found


def findings(dataset: xr.Dataset) -> list[Finding]:
    """One per assumption, and whether G.3 needs its premise."""
    return [*(judge_assumption(dataset, name) for name in ASSUMPTIONS), judge_batch(dataset)]


def judge_assumption(dataset: xr.Dataset, name: str) -> Finding:
    """The slopes in width and depth of all its ratios, at every step, are zero; rival: half a power."""
    found = rows(dataset, ASSUMPTIONS[name])
    return _finding(dataset, f"{WORDS[name]}, at any width, depth and step", found)


def judge_batch(dataset: xr.Dataset) -> Finding:
    """G.3's ratio does not fall with the batch size either; rival: half a power of it or more."""
    found = rows(dataset, ASSUMPTIONS["G.3"], ("batch",))
    return _finding(dataset, "G.3 holds at any batch size, so that it needs no premise", found)


def _finding(dataset: xr.Dataset, claim: str, found: list[Row]) -> Finding:
    direction = " or ".join(dict.fromkeys(row.direction for row in found))
    rival = f"half a power of {direction} or more"
    lost = [row for row in found if np.isnan(row.slope.settled)]
    if lost:
        raise ValueError(f"{lost[0].where}: ratios are zero or not finite at too many sizes for a slope")
    slopes, stderr, allowance = (
        np.array([getattr(row.slope, field) for row in found]) for field in ("settled", "settled_stderr", "allowance")
    )
    allowance = allowance + [row.granted for row in found]
    inside = Deviation(slopes, stderr, allowance)
    beyond = Deviation(np.maximum(OFF - np.abs(slopes), 0.0), stderr, allowance)
    weakest = int(np.argmin(beyond.excess))
    excluded = Deviation(*(values[[weakest]] for values in (beyond.difference, stderr, allowance)))
    hardest, far = int(np.argmax(inside.excess)), found[int(np.argmax(np.abs(slopes)))].slope
    worst, place = found[hardest].slope, found[hardest].where
    shown = (
        f"{len(found)} slopes, hardest {worst.settled:+.3f} +- {worst.settled_stderr:.3f} ({place}), allowance "
        f"{allowance[hardest]:.3f}; farthest {far.settled:+.3f} +- {far.settled_stderr:.3f}"
    )
    draws = dataset.attrs["draws"]
    return weigh((claim, rival), inside, excluded, comparisons=len(found), draws=draws, shown=shown)
