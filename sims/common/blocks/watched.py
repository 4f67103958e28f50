"""What coordinate checks watch while nets train, and its slopes over ladders of width and depth."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import xarray as xr

from meanfield.verification import LadderSlope, ladder_slope, ladder_values

# By the dim along which it is: a place in the stream, or the role of the weights that change it.
WATCHED = {"feature_norm": "place", "feature_update_norm": "place", "output_update_norm": "", "own_change": "role"}


@dataclass(frozen=True)
class Watched:
    """One of the numbers that are watched: a variable, after a step, at a place of the stream or of one role.

    Attributes:
        dim, at: the dim of the dataset and the place or role on it; both empty for the outputs.
    """

    variable: str
    step: int
    dim: str = ""
    at: str = ""

    @property
    def selection(self) -> dict[str, Any]:
        return {"step": self.step} | ({self.dim: self.at} if self.dim else {})

    @property
    def symbol(self) -> str:
        """In the words of the report."""
        if self.variable == "output_update_norm":
            return "|Delta f|"
        if self.variable == "own_change":
            whose = self.at.replace("_bias", " biases") if self.at.endswith("_bias") else f"{self.at} weights"
            return f"|Delta {'f' if self.at == 'output' else 'h_L'}| by {whose} alone"
        letter = {"input": "h_0", "middle": "h_(L/2)", "last": "h_L"}[self.at]
        return f"|{letter}|" if self.variable == "feature_norm" else f"|Delta {letter}|"

    def slope(self, dataset: xr.Dataset, optimizer: str, table: str, direction: str) -> LadderSlope:
        """Over one ladder."""
        values = ladder_values(dataset, self.variable, direction, optimizer=optimizer, table=table, **self.selection)
        return ladder_slope(dataset[direction].values, values)


def watched(dataset: xr.Dataset) -> list[Watched]:
    """All numbers that are watched, after the first and the last step."""
    steps = dict.fromkeys((1, int(dataset["step"].values[-1])))
    numbers = []
    for step, name in product(steps, WATCHED):
        dim = WATCHED[name]
        numbers += [Watched(name, step, dim, str(at)) for at in dataset[dim].values] if dim else [Watched(name, step)]
    return numbers
