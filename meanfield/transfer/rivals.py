"""Rules that rest on more than the one-step theory: a power that is given or fitted, PathSum, the stable rate.

`transfer_learning_rate` takes them as objects, those of `RIVALS` also by name; "auto" never chooses them.
"""

from dataclasses import dataclass
from functools import cached_property
from math import hypot, isfinite, log
from typing import Any, Self

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import require_choice, require_positive
from meanfield.nets.families.layered import Sequential
from meanfield.nets.families.residual import Residual
from meanfield.theory.laws.learning_rate import POWER
from meanfield.theory.laws.residual import log_path_sum_scale
from meanfield.transfer.rules import SIZES, Net, Rule, differing, family
from meanfield.transfer.stability import stable_rate

SAME_TRAINING = "the same data, batch size, optimizer and training time at both ends"


@dataclass(frozen=True)
class GivenPower(Rule):
    """By (L / L0)^x with a given exponent, for every family: the depth counts plain layers and blocks alike, m + K.

    Args:
        exponent: x; 0 leaves the rate unchanged, whatever the nets differ in.
        along: "depth", or "width" for (n / n0)^x.
        name: how refusals and `explain_transfer` call it.

    Source: Zhang et al. 2026, section 5, with x = -3/2; L counted as in its section 3.4. Of Transformers its depth is
    twice the blocks and a constant, which is left out here: its table 5 takes (D + 1) / (D0 + 1) of D blocks.
    """

    exponent: float
    along: str = "depth"
    name: str = "given_power"

    def __post_init__(self) -> None:
        require_choice("along", self.along, ("depth", "width"))
        if not isfinite(self.exponent):
            raise ValueError(f"the exponent is {self.exponent}; give a finite number, such as -1.5")

    @classmethod
    def through(cls, first: tuple[float, Net], second: tuple[float, Net]) -> Self:
        """The power through two anchors, pairs (tuned rate, net) whose nets differ in depth alone or in width alone.

        x = ln(rate_2 / rate_1) / ln(L_2 / L_1): Zhang et al. 2025, section 4.3, fit such a line in each segment of
        depths.

        Raises:
            ValueError: nets that do not differ in their depth or in their width alone.
        """
        rates = [
            require_positive("the rate of an anchor", rate, why="it is a learning rate") for rate, _ in (first, second)
        ]
        changed = [along for along in ("depth", "width") if _size(first[1], along) != _size(second[1], along)]
        if len(changed) != 1 or differing(first[1], second[1], SIZES):
            what = ", ".join(differing(first[1], second[1])) or "nothing"
            raise ValueError(
                f"the two anchors differ in {what}; give two nets that differ in depth alone or width alone"
            )
        sizes = [_size(net, changed[0]) for _, net in (first, second)]
        return cls(log(rates[1] / rates[0]) / log(sizes[1] / sizes[0]), changed[0], "two_anchors")

    @property
    def title(self) -> str:  # type: ignore[override]
        size = {"depth": "L / L0", "width": "n / n0"}[self.along]
        return f"({size})^{self.exponent:.3g}" if self.exponent else "the rate as it is"

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        return f"tuned rates follow {self.title}", SAME_TRAINING

    def refusal(self, start: Net, end: Net) -> str:
        if not self.exponent:
            return ""
        if differences := differing(start, end, SIZES):
            return f"the nets differ in {', '.join(differences)}, and a power knows the {self.along} alone"
        if self.along == "width" and start.depth != end.depth:
            return "the nets differ in depth, and a power of the width knows the width alone"
        return ""

    def log_ratio(self, start: Net, end: Net) -> float:
        return self.exponent * log(_size(end, self.along) / _size(start, self.along))


def _size(net: Any, along: str) -> float:
    """Plain layers and blocks of a net, or its mean width."""
    if along == "depth":
        return net.depth + sum(getattr(net, part, 0) for part in ("stem", "tail"))
    widths = net.channels_by_layer[1:] if isinstance(net, Sequential) else (net.width,)
    return sum(widths) / len(widths)


class PathSum(Rule):
    """By (sum over paths of p^3)^(-1/2), with p the layers on a path from input to output.

    A plain net has one path, so that the rule is (L / L0)^(-3/2); each block of a residual net doubles the paths.

    Source: Chen et al. 2024, as Zhang et al. 2026, section 4.3, quotes it.
    """

    name = "path_sum"
    title = "PathSum, the cubes of the lengths of all paths"
    assumptions = (SAME_TRAINING,)

    def refusal(self, start: Net, end: Net) -> str:
        for net in (start, end):
            if not isinstance(net, Sequential):
                return f"PathSum counts layers on the paths of layered nets; it says nothing of a {family(net)}"
        differences = differing(start, end, (*SIZES, "stem", "tail", "block_depth"))
        return (
            f"the nets differ in {', '.join(differences)}, and PathSum knows lengths of paths alone"
            if differences
            else ""
        )

    def log_ratio(self, start: Net, end: Net) -> float:
        return _log_path_sum(end) - _log_path_sum(start)


def _log_path_sum(net: Net) -> float:
    """ln of (sum over paths of p^3)^(-1/2)."""
    if isinstance(net, Residual):
        return float(log_path_sum_scale(net.blocks, net.block_depth, net.stem + net.tail)[0])
    return POWER * log(net.depth)


@dataclass(frozen=True, eq=False)
class StableRate(Rule):
    """By 2 / lambda_max of the loss's curvature on a batch at initialisation, for each net (`stable_rate`).

    Args:
        data, loss, draws, seed, level: as for `stable_rate`.

    Source: docs/theory.md section 21.
    """

    data: tuple[ArrayLike, ArrayLike]
    loss: str = "cross_entropy"
    draws: int = 16
    seed: int = 0
    level: str | None = None

    name = "stable_rate"
    title = "2 / lambda_max on the data"
    assumptions = ("tuned rates keep their ratio to 2 / lambda_max at initialisation on the given data", SAME_TRAINING)

    def refusal(self, start: Net, end: Net) -> str:
        return ""

    def log_ratio(self, start: Net, end: Net) -> float:
        return log(float(self.of(end)["stable_rate"])) - log(float(self.of(start)["stable_rate"]))

    def log_error(self, start: Net, end: Net) -> float:
        if self.level:
            return 0.0
        stable = [self.of(net) for net in (start, end)]
        return hypot(*(float(rates["stable_rate_stderr"] / rates["stable_rate"]) for rates in stable))

    def of(self, net: Net) -> xr.Dataset:
        """Sharpness and stable rate of one net; each is found once."""
        if net not in self._known:
            options: Any = {"loss": self.loss, "draws": self.draws, "seed": self.seed, "level": self.level}
            self._known[net] = stable_rate(net, self.data, **options)
        return self._known[net]

    @cached_property
    def _known(self) -> dict[Net, xr.Dataset]:
        return {}


# Rules that need nothing but the nets, and that theory does not choose.
RIVALS: dict[str, Rule] = {
    rule.name: rule for rule in (GivenPower(0.0, name="unchanged"), GivenPower(POWER, name="three_halves"), PathSum())
}
