"""A learning rate that was tuned on one PyTorch model, carried to another of its kind."""

import warnings
from collections.abc import Callable, Iterable
from math import exp, hypot
from typing import Any

import torch
import xarray as xr
from torch import nn

from meanfield.common.seeds import checked_seed
from meanfield.common.validation import (
    PremiseWarning,
    require_choice,
    require_draws,
    require_instances,
    require_positive,
)
from meanfield.torch.kinds import KINDS, departures, kind_of
from meanfield.torch.models import taken_batches
from meanfield.torch.scales import DRAWS, first_model, require_last, step_scales
from meanfield.torch.steps import step_of
from meanfield.transfer.medians import median_scale
from meanfield.transfer.one_step import MOVED
from meanfield.transfer.rules import SAME_TRAINING
from meanfield.transfer.starting import ERRORS_HELD
from meanfield.transfer.trials import CALIBRATIONS, SCALES, untried

WORDS = {
    "rate": "learning rate for the second model",
    "low": "lower end of the learning rate by the errors of medians",
    "high": "upper end of the learning rate by the errors of medians",
    "rates": "learning rate by each of the scales",
}


def carry(
    rate: float,
    small: nn.Module | Callable[[], nn.Module],
    large: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    optimizer: Any,
    of: str | None = None,
    kind: str | None = None,
    measured: tuple[xr.Dataset, xr.Dataset] | None = None,
    **options: Any,
) -> xr.Dataset:
    """The learning rate for one PyTorch model from the rate that was tuned on another, of another depth or width.

        rate x (median scale of the second model) / (median scale of the first)

    with the scale that named tuned rates best in trials (`starting_rate`): that of the outputs under descent and Muon,
    of the last layer under AdamW and Lion. Both models take the same batches and random numbers. It is a statement
    about one step at initial weights; the answers of all four scales are given beside, and where they part, trust none
    without a second tuned rate.

    Args:
        rate: the learning rate tuned on ``small``, of the first parameter group.
        small, large: the model that was tuned and the one to train, each as for `step_scales`.
        loss, batches, optimizer: as for `step_scales`, but not an optimizer that steps one of the models.
        of: what the step moves: "outputs", "last", "relative" or "absolute"; by the optimizer if left out.
        kind: of both models, as for `starting_rate`.
        measured: what `step_scales` has given for both under the same arguments, where it is at hand; a function
            ``small`` is then asked for one model, to read its classes.
        options: of `step_scales`.

    Returns:
        Dataset of ``rate``, with ``low`` and ``high``, two standard errors of the medians away; and ``rates`` over
        ``of``, by all four scales, NaN where the last layer starts at 0. Attributes: ``of``, ``premises`` and
        ``warnings``, which are given as a `meanfield.PremiseWarning`, too.

    Raises:
        TypeError, ValueError: as `step_scales`; a rate that is no positive number; models whose last layers are of
            different classes; an optimizer that no trial has trained by, where ``of`` is left out.

    Source: Zhang et al. 2026, eq. 9, section 5, by the scale of one step of the optimizer that trains.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(width):
        ...     hidden = [nn.Linear(width, width), nn.ReLU()]
        ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), *hidden, nn.Linear(width, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> how = {"optimizer": torch.optim.AdamW}
        >>> carried = mft.carry(0.01, lambda: model(16), lambda: model(64), nn.functional.cross_entropy, batches, **how)
        >>> float(carried["rate"]) < 0.01, carried.attrs["of"]
        (True, 'last')
    """
    rate = require_positive("rate", rate, why="it is a learning rate")
    shown, small = first_model(small, **options)
    name, kind = step_of(optimizer, small).trial_name(shown), kind_of(shown, kind)
    of = _wanted(of, name, kind)
    if measured is None:
        number = require_draws("draws", options.get("draws", DRAWS))
        taken = taken_batches(batches, number, checked_seed(options.get("seed", 0)))
        both = [step_scales(model, loss, taken, optimizer=optimizer, **options) for model in (small, large)]
    else:
        both = list(require_instances("measured", measured, xr.Dataset, "datasets of step_scales"))
    last = [str(scales.attrs["last_kind"]) for scales in both]
    if last[0] != last[1]:
        raise ValueError(
            f"the last layer is a {last[0]} of one model and a {last[1]} of the other, whose scales are of two kinds; "
            "choose modules that both have, such as their blocks"
        )
    for scales in both:
        require_last(scales, of)
    rates = {each: _carried(rate, both, each) for each in SCALES}
    against = _against(name, kind, shown, both)
    for sentence in against:
        warnings.warn(sentence, PremiseWarning, stacklevel=2)
    middle, error = rates[of]
    numbers: dict[str, Any] = {
        "rate": ((), middle),
        "low": ((), middle * exp(-ERRORS_HELD * error)),
        "high": ((), middle * exp(ERRORS_HELD * error)),
        "rates": ("of", [each for each, _ in rates.values()]),
    }
    variables = {which: (*value, {"long_name": WORDS[which], "units": "1"}) for which, value in numbers.items()}
    premises = "; ".join(filter(None, _premises(name, of)))
    how = {each: both[0].attrs[each] for each in ("optimizer", "loss", "precision", "seed", "draws", "torch")}
    attrs = how | {"of": of, "kind": kind, "premises": premises, "warnings": "; ".join(against)}
    return xr.Dataset(variables, {"of": list(rates)}, attrs)


def _wanted(of: str | None, name: str, kind: str) -> str:
    """What the step moves, as it is asked for, or by the trials of the optimizer."""
    if of is not None:
        require_choice("of", of, SCALES)
        return of
    if name not in CALIBRATIONS:
        raise ValueError(
            f"no trial has trained by {name}, so that none says which scale names its rates: give of, one of "
            f"{', '.join(map(repr, SCALES))}"
        )
    return CALIBRATIONS[name][KINDS[kind]].of


def _carried(rate: float, both: list[xr.Dataset], of: str) -> tuple[float, float]:
    """The rate by one scale, and its relative error; NaN where a last layer starts at 0."""
    if any(scales[SCALES[of]].isnull() for scales in both):
        return float("nan"), float("nan")
    medians = [median_scale(scales, SCALES[of]) for scales in both]
    return rate * medians[1][0] / medians[0][0], hypot(*(error for _, error in medians))


def _premises(name: str, of: str) -> tuple[str, ...]:
    return (
        f"tuned rates of {name} keep their ratio to the rate at which its first step moves {MOVED[of]} by 1",
        "the step at initial weights: momentum and weight decay have no part in it",
        "initial weights as the models draw them, batches as they are given; the median model",
        SAME_TRAINING,
        untried(name),
    )


def _against(name: str, kind: str, model: nn.Module, both: list[xr.Dataset]) -> tuple[str, ...]:
    """Where trials say that one step does not tell how these models train."""
    if both[0].attrs["blocks"] == both[1].attrs["blocks"]:
        return ()
    return tuple(dict.fromkeys(each for scales in both for each in departures(kind, model, scales, name)))
