"""The learning rate that is best in training: searched for by training nets under many rates from several seeds.

Which rates to try next, and where the minimum is, is a plain algorithm that trains nothing. Rates are points of one
fixed lattice, 10^(i / 64) for whole numbers i, so that two searches that meet at a rate mean the same number, and what
has been computed there serves both.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import ceil, floor, log, log10, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import summarise
from meanfield.common.validation import Array, require_choice, require_count, require_instances, require_positive
from meanfield.execution.chunks import PieceStore
from meanfield.execution.run import Run, simulate_all, store_in
from meanfield.execution.training import TrainingOptions, training_run, with_training_options
from meanfield.execution.workers import Workers
from meanfield.nets.net import Net
from meanfield.optimizers.elementwise import SGD, AdamW
from meanfield.quantities.registry import measured_dataset, plain_dataset
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.simulation.training.trained import IDLE, checked_rates

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
    apart = log_rates[log_rates > centre + 1e-9].min() - log_rates[log_rates < centre - 1e-9].max()  # its neighbours
    return centre, float(apart) / sqrt(12)


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


# Samples of the batch on which the stable rate is drawn, and nets that are drawn for it.
CURVATURE_SAMPLES, CURVATURE_DRAWS = 256, 16
# The rates of an exhaustive grid of so many points, as Zhang et al. 2026, section 4.2, have 80 of them.
GRID_ENDS = (1e-4, 1e1)
FEWEST_RATES, BOTH_SIDES = 3, "a minimum needs rates on both sides"
# A learning rate and a seed, which make a run of training.
RateAndSeed = tuple[float, int]
SPACINGS = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
# A net whose units have all died has the loss of outputs 0, to rounding.
LOSS_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A net with its data, the manner of training, and of the search for its best rate; `tune_all` carries it out.

    Attributes:
        net, data: as for `meanfield.train`.
        training: the options of training, as `meanfield.execution.training.TrainingOptions` has them.
        seeds: of initial weights and mini-batches, two or more; or how many.
        guess, spacing, grid, most_rates: as for `tuned_rate`.
        curvature_draws: nets that are drawn for the stable rate, which 0 leaves out.
    """

    net: Net
    data: tuple[ArrayLike, ArrayLike]
    training: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | Sequence[int] = 4
    guess: float | None = None
    spacing: float = 1 / 8
    grid: int | Sequence[float] | None = None
    most_rates: int = 64
    curvature_draws: int = CURVATURE_DRAWS

    def __post_init__(self) -> None:
        require_choice("spacing", self.spacing, SPACINGS)  # type: ignore[arg-type]
        require_count("most_rates", self.most_rates, minimum=8, why=BOTH_SIDES)
        if self.guess is not None:
            self._require_guess(self.guess)
        seeds = self.each_seed
        if len(seeds) < 2:
            raise ValueError("seeds is one; give two or more, as one has no standard error")
        if repeated := [seed for seed in set(seeds) if seeds.count(seed) > 1]:
            raise ValueError(
                f"seeds has {repeated[0]} twice; the standard error takes each as independent: give others"
            )
        if self.silent_loss() == 0:
            raise ValueError(
                "outputs of 0 have no loss here, so that there is nothing to minimise; give targets that are not all 0"
            )

    @staticmethod
    def _require_guess(guess: float) -> None:
        require_positive("guess", guess, why="it is a learning rate")
        if not abs(log10(guess)) <= FARTHEST / LATTICE:
            raise ValueError(f"guess is {guess}; rates are searched for between 1e-15 and 1e15, so give one of these")

    def describe(self) -> dict[str, Any]:
        """All that its numbers depend on, as plain values."""
        how = {name: getattr(self, name) for name in ("guess", "spacing", "most_rates")} | {"rates": self.rates}
        return {"net": self.net.describe(), **self.checked.measure.describe(), **how}

    @property
    def options(self) -> TrainingOptions:
        """How nets train."""
        return TrainingOptions.named(self.training)

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates of the grid; empty where rates are searched for."""
        if self.grid is None:
            return ()
        if np.ndim(self.grid) == 0:
            count = require_count("grid", self.grid, minimum=FEWEST_RATES, why=BOTH_SIDES)
            return tuple(np.geomspace(*GRID_ENDS, count).tolist())
        rates = tuple(sorted(set(checked_rates(self.grid)))) if np.size(self.grid) else ()
        if len(rates) < FEWEST_RATES:
            raise ValueError(f"grid has {len(rates)} rate(s); give {FEWEST_RATES} or more, as {BOTH_SIDES}")
        return rates

    @property
    def descends(self) -> bool:
        """Whether it is gradient descent without momentum, for which the stable rate is a guess."""
        return self.options.method == SGD(0.0)

    @property
    def begins_at_curvature(self) -> bool:
        """Whether the stable rate says where the search begins."""
        return self.descends and bool(self.curvature_draws) and self.guess is None and self.grid is None

    def is_idle(self, seed: int) -> bool:
        """Whether no rate moves the net of this seed, as its outputs and gradients are 0, or no float holds their
        squares."""
        return self.checked.measure.first_size(self.net, seed) <= IDLE

    def idle_reason(self) -> str:
        """Why no rate moves the net of any seed; nothing where one does."""
        largest = 0.0
        for seed in self.each_seed:
            size = self.checked.measure.first_size(self.net, seed)
            if size > IDLE:
                return ""
            largest = max(largest, size)
        from_all = f"from all {len(self.each_seed)} seeds, so that no rate trains"
        if largest:
            return (
                f"outputs and gradients are {largest:.2g} or less {from_all}: the inputs or the weights are so small "
                "that no float holds the squares of these; give inputs and initial weights of the size of 1"
            )
        dead = "units of the nets have died; give a larger width, a smaller depth or other seeds"
        why = dead if np.any(self.data[0]) else "inputs are all 0; give inputs that are not"
        return f"outputs and gradients are 0 {from_all}: the {why}"

    @cached_property
    def checked(self) -> Run:
        """Training under the rates of the grid, or one: its data are checked once, however often it is asked for."""
        return self.run(self.rates or [1.0])

    def run(self, rates: Sequence[float]) -> Run:
        """Training under these rates from all seeds."""
        return training_run(self.net, self.data, rates=rates, seeds=self.seeds, **self.training)

    def run_pairs(self, pairs: Sequence[RateAndSeed]) -> Run:
        """Training of these rates from these seeds alone."""
        rates = tuple(sorted({rate for rate, _ in pairs}))
        measure = replace(self.checked.measure, rates=rates, pairs=tuple(sorted(pairs)))
        return Run(self.net, measure, measure.runs, 0)

    @property
    def each_seed(self) -> tuple[int, ...]:
        """The seeds, one by one."""
        return tuple(self.checked.measure.seeds)

    def curvature(self) -> Run:
        """Draws of descent's stable rate on the first samples; the first draw is the net of the first seed."""
        inputs, _ = self._first_samples
        how = self.options
        measure = Sharpness(inputs=inputs, loss=how.loss, precision=how.precision, backend=how.backend)
        return Run(self.net, measure, self.curvature_draws, self.each_seed[0])

    def own_curvature(self) -> Run:
        """The same of the optimizer that trains, in double precision, as its second moments may lie far apart.

        Raises:
            ValueError: it is none of `WITH_STABLE_RATE`.
        """
        (inputs, targets), how = self._first_samples, self.options
        of_moments: dict[str, Any] = {}
        if isinstance(how.method, AdamW):
            size = min(how.batch_size or len(inputs), len(inputs))
            of_moments = {"targets": targets, "epsilon": how.epsilon, "batch_size": size}
        measure = Sharpness(inputs=inputs, loss=how.loss, optimizer=how.optimizer, backend=how.backend, **of_moments)
        return Run(self.net, measure, self.curvature_draws, self.each_seed[0])

    @property
    def _first_samples(self) -> tuple[Any, Any]:
        inputs, targets = self.data
        return np.asarray(inputs)[:CURVATURE_SAMPLES], np.asarray(targets)[:CURVATURE_SAMPLES]

    def silent_loss(self) -> float:
        """The loss of outputs 0, which a net has whose units have all died."""
        if self.options.loss == "cross_entropy":
            return log(self.net.output_shape[1])
        return float(np.square(np.asarray(self.data[1], dtype=float)).mean() / 2)

    def searched_losses(self, final: float | Array) -> Array:
        """Losses as the search takes them: a net that has died is no better than one that has diverged."""
        silent = self.silent_loss()
        return np.where(np.abs(final - silent) <= LOSS_ROUNDING * silent, np.inf, final)


# Where an optimizer other than gradient descent begins to be searched.
USUAL_RATE = 1e-2
RESOLUTION = (
    "error of the minimum by the distance of the rates that were tried, 0 where a parabola has its vertex there"
)


@with_training_options
def tuned_rate(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    seeds: int | Sequence[int] = 4,
    guess: float | None = None,
    spacing: float = 1 / 8,
    grid: int | Sequence[float] | None = None,
    most_rates: int = 64,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
    **options: Any,
) -> xr.Dataset:
    """The learning rate that minimises the training loss after so many steps or epochs, with its error over seeds.

    All rates meet the same initial weights and mini-batches. The loss is that on all data after the last step, as it
    has no noise of a mini-batch and no part of the way there. Every seed has a search of its own: its rates begin on a
    ladder of half decades around a guess, which is extended until the least loss lies inside it; then they are refined
    within half a decade of that loss (of several valleys, a search may end in any). Rates are points of one fixed
    lattice, and no run depends on those beside it.

    Args:
        net, data: as for `train`.
        seeds: of initial weights and mini-batches, two or more; or how many. The standard error falls as their root.
        guess: where to begin; if left out, 2 / lambda_max for plain gradient descent, and 0.01 for other optimizers
            and for nets without curvature, whose outputs are so large that their softmax is 0 or 1.
        spacing: of the finest rates, in decades: 1/2, 1/4, 1/8, 1/16 or 1/32.
        grid: rates to train under, all of them, in place of a search; or how many, evenly spaced in the logarithm from
            10^-4 to 10, as Zhang et al. 2026 have 80.
        most_rates: where the search of a seed stops if it has not ended; ``complete`` says so.
        workers: number of processes, where 1 computes in this one; or `Workers`.
        resume_in: as for `simulate`, a folder for finished runs.
        options: as for `train`: ``steps``, ``epochs``, ``batch_size``, ``optimizer``, ``loss``, ``weight_decay``,
            ``epsilon``, ``schedule``, ``precision``, ``backend`` and ``role_factors``, with which the rate that is
            searched for is that of the base model.

    Returns:
        Dataset of ``final_loss`` over ``rate`` and ``seed``, infinite where training diverged, NaN at rates that the
        search of a seed did not ask for;
        ``seed_tuned_rate_log10``, the minimum of a parabola of ln(loss) over log10(rate) within half a decade of
        it, NaN where no minimum lies inside. Where there is no parabola, as beside a cliff, it is the rate of the least
        loss, and NAME_stderr is the distance between its neighbours over sqrt(12), else 0.
        Their mean over seeds ``tuned_rate_log10`` with NAME_stderr, that over seeds and the mean of theirs together,
        and ``tuned_rate``; ``stable_rate``, 2 / lambda_max of plain gradient descent, of 16 nets drawn on the first 256
        samples (shuffle data that are in order of their classes), with its error.
        A net whose units have all died counts as diverged. Attributes: ``complete``, and ``located``, the seeds that
        have a minimum. Losses are dimensionless, and so are rates.

    Raises:
        TypeError, ValueError, MemoryError: as `train`; fewer than two seeds or one twice, an unknown spacing, too few
            rates, outputs of 0 that have no loss; nets that no rate moves from any seed, as all their units have died
            or all inputs are 0, or so small that no float holds their squares; a stable rate outside 1e-15 .. 1e15 to
            begin at.

    Source: Zhang et al. 2026, sections 4.1 and 4.2.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.MLP(depth=2, width=16, input_width=8, outputs=3)
        >>> tuned = mf.tuned_rate(net, data, steps=8, batch_size=16, seeds=2)
        >>> tuned["seed_tuned_rate_log10"].dims
        ('seed',)
    """
    how: dict[str, Any] = {"seeds": seeds, "guess": guess, "spacing": spacing, "grid": grid, "most_rates": most_rates}
    tuning = Tuning(net=net, data=data, training=options, **how)
    (made,) = tune_all([tuning], workers=workers, store=store_in(resume_in))
    if made.attrs["without_minimum"]:
        raise ValueError(made.attrs["without_minimum"])
    _warn_unless_located(tuning, made)
    return made


def _warn_unless_located(tuning: Tuning, tuned: xr.Dataset) -> None:
    """Warn where no seed has a minimum, with what its losses do instead."""
    if tuned.attrs["located"]:
        return
    rates, losses = tuned["rate"].values, tuning.searched_losses(tuned["final_loss"].values)
    lost = "training diverges, or nets die, at all of them; " if not (losses < np.inf).any() else ""
    warnings.warn(
        f"no seed has a minimum among the {len(rates)} rates {rates[0]:.2g} .. {rates[-1]:.2g} that were tried: {lost}"
        "try another guess (from 1e-15 to 1e15), a larger most_rates, or inputs of the size of 1",
        RuntimeWarning,
        stacklevel=3,
    )


def tune_all(
    tunings: Sequence[Tuning], *, workers: int | Workers = 1, store: PieceStore | None = None
) -> list[xr.Dataset]:
    """Several searches on one set of workers, round by round; the datasets of `tuned_rate`, in order.

    Args:
        tunings: what to search.
        workers, store: as for `simulate_all`.
    """
    tunings = require_instances("tunings", tunings, Tuning, "searches, such as meanfield.transfer.Tuning(net=, data=)")
    workers = Workers.of(workers)
    for tuning in tunings:
        tuning.checked.require_memory(workers.here)
    how: dict[str, Any] = {"workers": workers, "store": store}
    drawn = iter(simulate_all([tuning.curvature() for tuning in tunings if tuning.curvature_draws], **how))
    stable = [next(drawn) if tuning.curvature_draws else xr.Dataset() for tuning in tunings]
    reasons = [of.idle_reason() or _out_of_range(of, rates) for of, rates in zip(tunings, stable, strict=True)]
    owners = [(number, seed) for number, tuning in enumerate(tunings) for seed in tuning.each_seed]  # of a search
    searches = [_begun(tunings[number], stable[number], reasons[number]) for number, _ in owners]
    finals: list[dict[RateAndSeed, float]] = [{} for _ in tunings]

    def train(asked: Mapping[int, Sequence[RateAndSeed]]) -> None:
        trained = simulate_all([tunings[number].run_pairs(pairs) for number, pairs in asked.items()], **how)
        for number, of_pairs in zip(asked, trained, strict=True):
            of_pair = of_pairs["final_loss"].stack(pair=("rate", "seed")).dropna("pair")
            finals[number] |= dict(zip(of_pair["pair"].values, of_pair.values.tolist(), strict=True))

    def losses_of(asked: Sequence[tuple[int, int]]) -> list[float]:
        pairs: dict[int, list[RateAndSeed]] = defaultdict(list)
        for search, rung in asked:
            number, seed = owners[search]
            pairs[number].append((rate_of(rung), seed))
        train(pairs)
        places = ((owners[search], rate_of(rung)) for search, rung in asked)
        return [tunings[of].searched_losses(finals[of][rate, seed]).item() for (of, seed), rate in places]

    def is_hopeless(search: int) -> bool:
        number, seed = owners[search]
        return tunings[number].is_idle(seed)

    searched(searches, losses_of, is_hopeless)
    grids = {number: of for number, of in enumerate(tunings) if of.rates and not reasons[number]}
    train({number: list(product(of.rates, of.each_seed)) for number, of in grids.items()})
    cut_short = {number for search, (number, _) in zip(searches, owners, strict=True) if not search.complete}
    complete = [bool(tuning.rates) or number not in cut_short for number, tuning in enumerate(tunings)]
    parts = zip(tunings, complete, finals, stable, reasons, strict=True)
    return [_dataset(*part) for part in parts]


def _out_of_range(tuning: Tuning, stable: xr.Dataset) -> str:
    """Why no search begins at the stable rate, though it is a number; nothing where one does."""
    usual = _median(stable)
    if not tuning.begins_at_curvature or not np.isfinite(usual) or abs(log10(usual)) <= FARTHEST / LATTICE:
        return ""
    return (
        f"2 / lambda_max is {usual:.2g}, and rates are searched for between 1e-15 and 1e15: give inputs of another "
        "size, or a guess in between"
    )


def _median(stable: xr.Dataset) -> float:
    """2 / lambda_max in the median over nets; infinite where it has not been drawn."""
    return float(stable["stable_rate_quantile"].sel(quantile=0.5)) if stable else float("inf")


def _begun(tuning: Tuning, stable: xr.Dataset, without: str) -> RateSearch:
    """The search of one seed, which wants nothing where a grid says which rates to train under, or none helps.

    It begins at the usual rate where there is no curvature, as of outputs so large that their softmax is 0 or 1.
    """
    median = _median(stable) if tuning.begins_at_curvature and not without else float("inf")
    start = round(LATTICE * log10(tuning.guess or (median if np.isfinite(median) else USUAL_RATE)))
    return RateSearch(start, round(tuning.spacing * LATTICE), 0 if tuning.rates or without else tuning.most_rates)


def _dataset(
    tuning: Tuning, complete: bool, finals: Mapping[RateAndSeed, float], stable: xr.Dataset, without: str
) -> xr.Dataset:
    """All losses, NaN of pairs that were not trained, the minimum of every seed, and the stable rate."""
    rates = sorted({rate for rate, _ in finals})
    table = np.array([[finals.get((rate, seed), np.nan) for seed in tuning.each_seed] for rate in rates])
    table = table.reshape(len(rates), len(tuning.each_seed))
    seeds, errors = minima(np.log10(rates), tuning.searched_losses(table))
    located = np.isfinite(seeds)
    attrs = tuning.checked.measure.dataset(tuning.net, {}, {}).attrs
    attrs |= {"complete": int(complete and located.all()), "located": int(located.sum()), "without_minimum": without}
    values = {"final_loss": table, "seed_tuned_rate_log10": seeds}
    coords: dict[str, Any] = {"rate": rates, "seed": list(tuning.each_seed)}
    losses = plain_dataset(tuning.net, values, attrs, coords)
    losses["seed_tuned_rate_log10_stderr"] = ("seed", errors, {"long_name": RESOLUTION, "units": "1"})
    means = _means(tuning.net, seeds[located], errors[located])
    return xr.merge([losses, means, stable], combine_attrs="override")


def _means(net: Net, located: Array, errors: Array) -> xr.Dataset:
    """Mean of the seeds' minima, and the rate there; NaN where fewer than two seeds have one.

    Seeds share the rates that were tried: where these bound the minima, errors do not fall with the number of seeds.
    """
    if len(located) < 2:
        located, errors = np.full(2, np.nan), np.zeros(2)
    over_seeds = summarise(located[:, None])
    estimate = replace(over_seeds, covariance=over_seeds.covariance + errors.mean() ** 2)
    mean = measured_dataset(net, {"tuned_rate_log10": estimate}, {})
    return mean.merge(plain_dataset(net, {"tuned_rate": 10.0 ** estimate.mean[0]}, {}))
