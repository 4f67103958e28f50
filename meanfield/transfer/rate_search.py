"""The search for the learning rate that minimises a loss: which rates to try next, and where the minimum is.

A plain algorithm that trains nothing. Rates are points of one fixed lattice, 10^(i / 64) for whole numbers i, so that
two searches that meet at a rate mean the same number, and what has been computed there serves both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, sqrt

import numpy as np

from meanfield.common.validation import Array

# Points of the lattice to a decade. A ladder of half decades comes first; its spacing is then halved again and again.
LATTICE = 64
COARSE = LATTICE // 2
# The parabola is fitted within so many decades of its vertex, to at least so many losses of up to so many times the
# least, and the window is moved to the vertex so many times: losses of one seed are rugged where training is barely
# stable, and wide windows repeat the minimum best.
REACH, FEWEST, HIGHEST, MOVES = 0.5, 4, 2.0, 8
# Where the weight of a loss in the fit would vanish.
WEIGHTLESS = 0.625
# The search lies between 10^-15 and 10^15: where no minimum is in between, there is none.
FARTHEST = 15 * LATTICE

# [(number of a search, rung), ..] -> their losses.
LossesOf = Callable[[Sequence[tuple[int, int]]], Sequence[float]]


def rate_of(rung: int) -> float:
    """10^(rung / 64)."""
    return float(10.0 ** (rung / LATTICE))


@dataclass
class RateSearch:
    """An adaptive search for the minimum of the loss of one seed over rates.

    Ask `wanted` for the next rungs, compute their losses, infinite where training diverged, `tell` them, and repeat
    until nothing is wanted. A coarse ladder is extended until the least loss lies inside it; then the spacing within
    half a decade of it is halved down to ``spacing``, anew wherever a smaller loss turns up. At last all rates within
    the reach of the parabola around its vertex are asked for. Of several valleys the search may end in any.

    Attributes:
        start: the rung to begin at.
        spacing: of the finest rungs, in points of the lattice: a power of two, up to `COARSE`.
        most: rungs that may be tried in all.
        losses: of every rung that was told.
    """

    start: int
    spacing: int
    most: int
    losses: dict[int, float] = field(default_factory=dict)

    def tell(self, losses: Mapping[int, float]) -> None:
        """Losses of some rungs; NaN counts as infinite."""
        self.losses |= {rung: float("inf") if np.isnan(loss) else loss for rung, loss in losses.items()}

    def wanted(self) -> list[int]:
        """The rungs to try next; none where the search has ended, at the minimum, the last rung or the end of rates."""
        missing = [rung for rung in self._asked() if rung not in self.losses and abs(rung) <= FARTHEST]
        return missing[: max(0, self.most - len(self.losses))]

    @property
    def complete(self) -> bool:
        """Whether the search ended because nothing was left to ask."""
        return not [rung for rung in self._asked() if rung not in self.losses]

    def _asked(self) -> list[int]:
        """What the first stage that is not complete asks for, the rungs that are nearest to the minimum first."""
        if not self.losses:
            begin = COARSE * round(self.start / COARSE)
            return [begin + COARSE * step for step in (0, -1, 1)]
        best = min(sorted(self.losses), key=self.losses.__getitem__)
        if not np.isfinite(self.losses[best]):
            return [min(self.losses) - COARSE * step for step in (1, 2, 3)]
        asked, spacing = _within(COARSE, best, COARSE), COARSE
        while asked <= set(self.losses) and spacing > self.spacing:
            spacing //= 2
            asked = _within(COARSE, best, spacing)
        if asked <= set(self.losses) and np.isfinite(vertex := self._vertex):
            asked = _within(REACH * LATTICE, vertex, self.spacing)
        return sorted(asked, key=lambda rung: abs(rung - best))

    @property
    def _vertex(self) -> float:
        """Where the minimum is by the losses that were told, in points of the lattice."""
        rungs = sorted(self.losses)
        at, _ = _minimum(np.array(rungs) / LATTICE, np.array([self.losses[rung] for rung in rungs]))
        return LATTICE * at


def _within(reach: float, centre: float, spacing: int) -> set[int]:
    """The rungs of this spacing that are no farther from a centre."""
    return set(range(spacing * ceil((centre - reach) / spacing), floor(centre + reach) + 1, spacing))


def searched(
    searches: Sequence[RateSearch], losses_of: LossesOf, is_hopeless: Callable[[int], bool] = lambda search: False
) -> None:
    """Carry all searches to their ends, the rungs of one round of all of them together.

    Args:
        searches: to be told.
        losses_of: [(number of the search, rung), ..] -> their losses.
        is_hopeless: whether a search whose first losses are all infinite ends there, by its number.
    """
    begun: set[int] = set()
    while asked := [(number, rung) for number, search in enumerate(searches) for rung in search.wanted()]:
        told = dict(zip(asked, losses_of(asked), strict=True))
        for number, search in enumerate(searches):
            search.tell({rung: loss for (of, rung), loss in told.items() if of == number})
            if number not in begun and np.isinf(list(search.losses.values())).all() and is_hopeless(number):
                search.most = 0
            begun.add(number)


def minima(log_rates: Array, losses: Array) -> tuple[Array, Array]:
    """log10 of the rate at which each seed's loss is least, by a parabola, and the error of those that have none.

    The parabola is the least-squares fit of ln(loss) over log10(rate) within `REACH` of a centre, each loss weighted by
    (1 - (distance / WEIGHTLESS)^2)^2. Losses above `HIGHEST` times the least are left out: beyond the edge of
    stability they rise as no parabola does. The centre is the rate of the least loss, and then the vertex, inside the
    fitted rates, until it rests. Where fewer than `FEWEST` losses are left or the parabola is not open above, the
    centre is the minimum; where it leads to the first or the last rate, that of the least loss is. Where losses rise
    faster above the minimum than below, the vertex lies below the minimum: by 0.1 to 0.2 decades for three steps of
    gradient descent on a quadratic. A cubic lies 0.09 below there. In the 36 nets of `sims.learning_rate_search
    --spacing 0.125` it lies 0.024 +- 0.006 above the parabola's vertex on average, and scatters 1.2 times as widely
    over seeds.

    A minimum without a vertex inside the fitted rates is one of the rates that were tried: the loss is least somewhere
    between its neighbours r_- and r_+, and uniform over them has the standard deviation (r_+ - r_-) / sqrt(12). Beside
    a cliff that is also the root mean square distance, as the true minimum is uniform from there to r_+. The error
    of a vertex is that of its losses, which the spread over seeds holds, and counts as 0 here.

    Args:
        log_rates: (R,), ascending.
        losses: (R, seeds), infinite where training diverged, NaN at rates at which a seed was not trained.

    Returns:
        minima (seeds,), NaN where none lies inside; errors (seeds,), 0 of vertices.
    """
    trained = ~np.isnan(losses)
    own = [_minimum(log_rates[there], of_seed[there]) for of_seed, there in zip(losses.T, trained.T, strict=True)]
    places, errors = np.array(own, dtype=float).reshape(-1, 2).T
    return places, errors


def _minimum(log_rates: Array, losses: Array) -> tuple[float, float]:
    least = int(np.argmin(losses)) if len(losses) else 0
    if least in (0, len(losses) - 1) or not np.isfinite(losses[least]):
        return float("nan"), float("nan")
    usable = (losses > 0) & (losses <= HIGHEST * losses[least])
    centre, inside = float(log_rates[least]), False
    for _ in range(MOVES):
        before = centre
        centre, inside = _vertex(log_rates[usable], np.log(losses[usable]), centre)
        if abs(centre - before) < 1 / LATTICE**2:
            break
    if inside:
        return centre, 0.0
    if not log_rates[0] < centre < log_rates[-1]:  # the parabola led to an end of the rates, where losses are higher
        centre = float(log_rates[least])
    return centre, _between_neighbours(log_rates, centre) / sqrt(12)


def _between_neighbours(log_rates: Array, centre: float) -> float:
    """How far it is from the last rate below a centre to the first above it."""
    return float(log_rates[log_rates > centre + 1e-9].min() - log_rates[log_rates < centre - 1e-9].max())


def _vertex(log_rates: Array, logs: Array, centre: float) -> tuple[float, bool]:
    """That of the parabola around a centre, and whether it is inside; the centre itself where there is none."""
    away = log_rates - centre
    near = np.abs(away) <= REACH + 1e-9
    if near.sum() < FEWEST:
        return centre, False
    away = away[near]
    curve, slope, _ = np.polyfit(away, logs[near], 2, w=1 - (away / WEIGHTLESS) ** 2)
    if curve <= 0:
        return centre, False
    moved = -slope / (2 * curve)
    return centre + float(np.clip(moved, away[0], away[-1])), bool(away[0] < moved < away[-1])
