"""Nets of one family over sizes, what was tuned on each, and the rates that rules carry from one to another."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import Array
from meanfield.transfer import GivenPower, Rule

# The rules of a run, in the order of reports; some know the depth alone.
EVERYWHERE = ("unchanged", "finite_depth", "auto", "two_anchors", "stable_ratio", "stable_rate", "wrong_sign")
OF_DEPTH = ("three_halves", "power_law", "path_sum")
RULES = {"depth": (EVERYWHERE[0], *OF_DEPTH, *EVERYWHERE[1:]), "width": EVERYWHERE}
# Slopes of losses are taken over so many decades on either side.
REACH = 1 / 8
# Negative controls: plain nets need smaller rates the deeper they are, and no net a larger one as n^(1/2).
WRONG_SIGN = {"depth": GivenPower(1.5), "width": GivenPower(0.5, "width")}


@dataclass(frozen=True)
class Ladder:
    """Nets that differ in depth or in width, from the smallest, and `mf.tuned_rate` of each.

    Attributes:
        across: "depth" or "width".
        segment: so many sizes share two anchors, their first two.
        chance: the loss of equal probabilities, as which losses above it count.
    """

    nets: Sequence[Any]
    tuned: Sequence[xr.Dataset]
    across: str
    segment: int
    chance: float

    def seeds_tuned(self, place: int) -> Array:
        """log10 of the tuned rate of each seed: (seed,); NaN where training showed no minimum."""
        return np.asarray(self.tuned[place]["seed_tuned_rate_log10"])

    def carried(self, rule: str, place: int) -> Array:
        """log10 of the rate that a rule gives for one net from what every seed found on the others: (seed,).

        Raises:
            TypeError, ValueError: the rule does not serve these nets.
        """
        first = self.seeds_tuned(0)
        if rule == "stable_rate":
            return np.full(len(first), self._log_stable(place))
        if rule == "stable_ratio":
            return first + self._log_stable(place) - self._log_stable(0)
        if rule == "two_anchors":
            return self._from_anchors(place)
        known: str | Rule = WRONG_SIGN[self.across] if rule == "wrong_sign" else rule
        return first + np.log10(self._ratio(known, 0, place))

    def carried_error(self, rule: str, place: int) -> float:
        """Standard error of `carried` from the draws of the stable rate, in decades."""
        used = {"stable_rate": [place], "stable_ratio": [0, place]}.get(rule, [])
        relative = [float(self.tuned[at]["stable_rate_stderr"] / self.tuned[at]["stable_rate"]) for at in used]
        return float(np.hypot.reduce([0.0, *relative]) / np.log(10))

    def loss_slope(self, place: int, log_rate: float) -> float:
        """d(loss) / d(log10 rate) at a rate: over a quarter of a decade of the mean loss of the nets that were tuned.

        Between rates that a seed was tried at its loss is interpolated; beyond them it is constant.
        """
        losses, ends = self.tuned[place]["final_loss"], [log_rate - REACH, log_rate + REACH]
        logs, bounded = np.log10(losses["rate"].values), np.minimum(losses.values, self.chance)
        tried = [(logs[~np.isnan(of_seed)], of_seed[~np.isnan(of_seed)]) for of_seed in bounded.T]
        below, above = np.mean([np.interp(ends, *of_seed) for of_seed in tried], axis=0)
        return float(above - below) / (2 * REACH)

    def _log_stable(self, place: int) -> float:
        return float(np.log10(self.tuned[place]["stable_rate"]))

    def _from_anchors(self, place: int) -> Array:
        """By the power through the first two sizes of the segment, seed by seed."""
        low = place - place % self.segment
        if place - low < 2:
            raise ValueError("it is tuned here, at an anchor")
        carried = []
        for rates in zip(self.seeds_tuned(low), self.seeds_tuned(low + 1), strict=True):
            if np.isfinite(rates).all():
                first, second = zip(10.0 ** np.array(rates), self.nets[low : low + 2], strict=True)
                carried.append(rates[0] + np.log10(self._ratio(GivenPower.through(first, second), low, place)))
            else:
                carried.append(np.nan)
        return np.array(carried)

    def _ratio(self, rule: str | Rule, start: int, end: int) -> float:
        """Rate at one net over that at another; what a premise warns of is for those who use the rate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mf.PremiseWarning)
            return mf.transfer_learning_rate(1.0, self.nets[start], self.nets[end], rule=rule)
