"""What a search for the best learning rate is asked for: a net with its data, the manner of training, and the rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.validation import require_choice, require_count, require_positive
from meanfield.execution.run import Run
from meanfield.execution.training import NAMED, training_run
from meanfield.nets.net import Net
from meanfield.optimizers.elementwise import SGD
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.simulation.training.trained_losses import checked_rates
from meanfield.transfer.rate_search import FARTHEST, LATTICE

# Samples of the batch on which the stable rate is drawn, and nets that are drawn for it.
CURVATURE_SAMPLES, CURVATURE_DRAWS = 256, 16
# The rates of an exhaustive grid of so many points, as Zhang et al. 2026, section 4.2, have 80 of them.
GRID_ENDS = (1e-4, 1e1)
FEWEST_RATES, BOTH_SIDES = 3, "a minimum needs rates on both sides"
# A learning rate and a seed, which make a run of training.
Pair = tuple[float, int]
SPACINGS = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
# A net whose units have all died has the loss of outputs 0, to rounding.
ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A net with its data, the manner of training, and of the search for its best rate; `tune_all` carries it out.

    Attributes:
        net, data: as for `meanfield.train`.
        training: what else `meanfield.train` takes, but for rates, seeds, workers and resume_in.
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
    def rates(self) -> tuple[float, ...]:
        """Those of the grid; empty where rates are searched for."""
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
        optimizer = self.training.get("optimizer", "sgd")
        return (NAMED[optimizer] if isinstance(optimizer, str) else optimizer) == SGD(0.0)

    @property
    def begins_at_curvature(self) -> bool:
        """Whether the stable rate says where the search begins."""
        return self.descends and bool(self.curvature_draws) and self.guess is None and self.grid is None

    def is_idle(self, seed: int) -> bool:
        """Whether no rate moves the net of this seed, as its outputs are 0 on all samples and so are its gradients."""
        return bool(self.checked.measure.is_idle(self.net, seed))

    def idle_reason(self) -> str:
        """Why no rate moves the net of any seed; nothing where one does."""
        if not all(map(self.is_idle, self.each_seed)):
            return ""
        dead = "units of the nets have died; give a larger width, a smaller depth or other seeds"
        why = dead if np.any(self.data[0]) else "inputs are all 0; give inputs that are not"
        return f"outputs and gradients are 0 from all {len(self.each_seed)} seeds, so that no rate trains: the {why}"

    @cached_property
    def checked(self) -> Run:
        """Training under the rates of the grid, or one: its data are checked once, however often it is asked for."""
        return self.run(self.rates or [1.0])

    def run(self, rates: Sequence[float]) -> Run:
        """Training under these rates from all seeds."""
        return training_run(self.net, self.data, rates=rates, seeds=self.seeds, **self.training)

    def run_pairs(self, pairs: Sequence[Pair]) -> Run:
        """Training of these rates from these seeds alone."""
        rates = tuple(sorted({rate for rate, _ in pairs}))
        measure = replace(self.checked.measure, rates=rates, pairs=tuple(sorted(pairs)))
        return Run(self.net, measure, measure.runs, 0)

    @property
    def each_seed(self) -> tuple[int, ...]:
        """The seeds, one by one."""
        return tuple(self.checked.measure.seeds)

    def curvature(self) -> Run:
        """Draws of the stable rate on the first samples; the first draw is the net of the first seed."""
        inputs = np.asarray(self.data[0])[:CURVATURE_SAMPLES]
        how = {"loss": "cross_entropy", "precision": "float64"}
        measure = Sharpness(inputs=inputs, **{name: self.training.get(name, how[name]) for name in how})
        return Run(self.net, measure, self.curvature_draws, self.each_seed[0])

    def silent_loss(self) -> float:
        """The loss of outputs 0, which a net has whose units have all died."""
        if self.training.get("loss", "cross_entropy") == "cross_entropy":
            return log(self.net.output_shape[1])
        return float(np.square(np.asarray(self.data[1], dtype=float)).mean() / 2)

    def searched_losses(self, final: float | Array) -> Array:
        """Losses as the search takes them: a net that has died is no better than one that has diverged."""
        silent = self.silent_loss()
        return np.where(np.abs(final - silent) <= ROUNDING * silent, np.inf, final)
