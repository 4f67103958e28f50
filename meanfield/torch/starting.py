"""A learning rate to start a PyTorch model from, with nothing tuned."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
import xarray as xr
from torch import nn

from meanfield.common.validation import require_instance
from meanfield.simulation.step_moves import EpsilonWarning
from meanfield.torch.kinds import KINDS, departures, kind_of, misses
from meanfield.torch.scales import first_model, require_last, step_scales
from meanfield.torch.steps import step_of
from meanfield.transfer.starting import calibrated, premises_of, softened, with_rate
from meanfield.transfer.trials import CALIBRATIONS, SMALL_START, STARTED_SMALL

# What losses of PyTorch are called that are the trials'.
CROSS_ENTROPY = ("cross_entropy", "CrossEntropyLoss")


def starting_rate(
    model: nn.Module | Callable[[], nn.Module],
    loss: Callable[[Any, Any], torch.Tensor],
    batches: Iterable[tuple[Any, Any]],
    *,
    optimizer: Any,
    kind: str | None = None,
    measured: xr.Dataset | None = None,
    **options: Any,
) -> xr.Dataset:
    """A learning rate for a PyTorch model under an optimizer, with nothing tuned, and the interval to expect it in.

        rate = median over draws of a scale / c

    The scale is the rate at which the optimizer's step moves the outputs by 1 (descent, Muon) or the last layer by its
    own size (AdamW, Lion), in mean squares, and c and the factor of the interval are those of trials of small nets, as
    for `meanfield.starting_rate`. It is a rate to tune around, and the rate of the first parameter group.

    Args:
        model, loss, batches, optimizer: as for `step_scales`. Take batches of the size that you will train with.
            There are constants for SGD without momentum, Adam and AdamW, Lion and Muon, by name or by class.
        kind: whose constant is taken, of "connected", "convolutional" and "transformer" nets; if left out, by the
            classes of the modules: any with attention (attn) in its name, any convolution, or neither.
        measured: what `step_scales` has given for the same arguments, where it is at hand; it is not measured again,
            and a function is asked for one model, to read its classes.
        options: of `step_scales`. The last layer is as there: choose modules where the last block is another.

    Returns:
        Dataset of ``rate``, ``low`` and ``high`` with all that `step_scales` gives beside, and the attributes of
        `meanfield.starting_rate`; ``kind`` says whose constant it is, and ``last_layer`` which value is the last.
        Warnings are given as a `meanfield.PremiseWarning`, too.

    Raises:
        TypeError, ValueError: as `step_scales`; an optimizer that no trial has a constant for; a last layer whose value
            starts at 0, where the scale is its own; models that no rate moves, in half or more of the draws.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training; constants by own trials.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model():
        ...     return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> found = mft.starting_rate(model, nn.functional.cross_entropy, batches, optimizer=torch.optim.AdamW)
        >>> bool(found["low"] < found["rate"] < found["high"]), found.attrs["scale"], found.attrs["kind"]
        (True, 'last_learning_rate_scale', 'connected')
    """
    shown, model = first_model(model, **options)
    name, kind = calibrated(step_of(optimizer, model).trial_name(shown)), kind_of(shown, kind)
    calibration = CALIBRATIONS[name][KINDS[kind]]
    if measured is not None:
        require_instance("measured", measured, xr.Dataset, "the dataset of step_scales")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpsilonWarning)  # said below, with what it means here
        scales = step_scales(model, loss, batches, optimizer=optimizer, **options) if measured is None else measured
    require_last(scales, calibration.of)
    of_loss = scales.attrs["loss"]
    premises = (
        *premises_of(name, "cross_entropy" if of_loss in CROSS_ENTROPY else f"{of_loss}, which may be another"),
        f"a model like {KINDS[kind]} of the trials, which were the library's families",
    )
    against = misses(kind, shown, scales, name), departures(kind, shown, scales, name)
    small = _started_small(scales) if calibration.of == "last" and kind == "transformer" else ""
    found_rate = with_rate(scales, calibration, premises, [small, softened(scales), *against[0], *against[1]])
    return found_rate.assign_attrs(kind=kind)


def _started_small(scales: xr.Dataset) -> str:
    """That the last layer starts far below 1, the size of the trials; empty where it does not."""
    size = scales.attrs["last_mean_square"]
    if not size < SMALL_START:
        return ""
    return f"the last layer starts at a mean square of {size:.2g}, far below 1: {STARTED_SMALL}"
