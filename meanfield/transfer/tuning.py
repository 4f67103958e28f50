"""The learning rate that is best in training: searched for by training nets under many rates from several seeds."""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import log10
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.arrays import Array
from meanfield.common.estimates import summarise
from meanfield.common.validation import require_instances
from meanfield.execution.pieces import PieceStore
from meanfield.execution.run import simulate_all, store_in
from meanfield.execution.team import Workers
from meanfield.nets.net import Net
from meanfield.optimizers.base import Optimizer
from meanfield.quantities.datasets import measured_dataset, plain_dataset
from meanfield.transfer.rate_search import FARTHEST, LATTICE, RateSearch, minima, rate_of, searched
from meanfield.transfer.tuning_task import Pair, Tuning

# Where an optimizer other than gradient descent begins to be searched.
USUAL_RATE = 1e-2
RESOLUTION = (
    "error of the minimum by the distance of the rates that were tried, 0 where a parabola has its vertex there"
)


def tuned_rate(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    steps: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    optimizer: str | Optimizer = "sgd",
    loss: str = "cross_entropy",
    seeds: int | Sequence[int] = 4,
    guess: float | None = None,
    spacing: float = 1 / 8,
    grid: int | Sequence[float] | None = None,
    most_rates: int = 64,
    weight_decay: float = 0.0,
    epsilon: float = 1e-8,
    precision: str = "float64",
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """The learning rate that minimises the training loss after so many steps or epochs, with its error over seeds.

    All rates meet the same initial weights and mini-batches. The loss is that on all data after the last step, as it
    has no noise of a mini-batch and no part of the way there. Every seed has a search of its own: its rates begin on a
    ladder of half decades around a guess, which is extended until the least loss lies inside it; then they are refined
    within half a decade of that loss (of several valleys, a search may end in any). Rates are points of one fixed
    lattice, and no run depends on those beside it.

    Args:
        net, data, steps, epochs, batch_size, optimizer, loss, weight_decay, epsilon, precision: as for `train`.
        seeds: of initial weights and mini-batches, two or more; or how many. The standard error falls as their root.
        guess: where to begin; if left out, 2 / lambda_max for plain gradient descent, and 0.01 for other optimizers
            and for nets without curvature, whose outputs are so large that their softmax is 0 or 1.
        spacing: of the finest rates, in decades: 1/2, 1/4, 1/8, 1/16 or 1/32.
        grid: rates to train under, all of them, in place of a search; or how many, evenly spaced in the logarithm from
            10^-4 to 10, as Zhang et al. 2026 have 80.
        most_rates: where the search of a seed stops if it has not ended; ``complete`` says so.
        workers: number of processes, where 1 computes in this one; or `Workers`.
        resume_in: as for `simulate`, a folder for finished runs.

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
            or all inputs are 0; a stable rate outside 1e-15 .. 1e15 to begin at.

    Source: Zhang et al. 2026, sections 4.1 and 4.2.
    """
    training: dict[str, Any] = {"steps": steps, "epochs": epochs, "batch_size": batch_size, "optimizer": optimizer}
    training |= {"loss": loss, "weight_decay": weight_decay, "epsilon": epsilon, "precision": precision}
    how: dict[str, Any] = {"seeds": seeds, "guess": guess, "spacing": spacing, "grid": grid, "most_rates": most_rates}
    tuning = Tuning(net=net, data=data, training=training, **how)
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
    finals: list[dict[Pair, float]] = [{} for _ in tunings]

    def train(asked: Mapping[int, Sequence[Pair]]) -> None:
        trained = simulate_all([tunings[number].run_pairs(pairs) for number, pairs in asked.items()], **how)
        for number, of_pairs in zip(asked, trained, strict=True):
            of_pair = of_pairs["final_loss"].stack(pair=("rate", "seed")).dropna("pair")
            finals[number] |= dict(zip(of_pair["pair"].values, of_pair.values.tolist(), strict=True))

    def losses_of(asked: Sequence[tuple[int, int]]) -> list[float]:
        pairs: dict[int, list[Pair]] = defaultdict(list)
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
    tuning: Tuning, complete: bool, finals: Mapping[Pair, float], stable: xr.Dataset, without: str
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
