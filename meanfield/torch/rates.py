"""A learning rate for a PyTorch model: to start from with nothing tuned, or carried from another that was tuned.

Both go by trials of training, of nets of some kinds (`meanfield.transfer.trials`): the classes of a model's modules
say which kind it is.
"""

import warnings
from collections.abc import Callable, Iterable
from math import exp, hypot, isinf, isnan, nan
from typing import Any

import torch
import xarray as xr
from torch import nn

from meanfield.common.seeds import checked_seed
from meanfield.common.validation import (
    PremiseWarning,
    require_choice,
    require_draws,
    require_instance,
    require_instances,
    require_positive,
)
from meanfield.optimizers import IN_NOISE
from meanfield.quantities.step_scales import median_scale
from meanfield.simulation.step_moves import EpsilonWarning
from meanfield.torch.models import taken_batches
from meanfield.torch.parts import blocks, branch_layers, leaves
from meanfield.torch.scales import DRAWS, first_model, require_last, step_scales
from meanfield.torch.skips import NO, UNKNOWN, YES
from meanfield.torch.steps import step_of
from meanfield.transfer.one_step import MOVED, OF_LATER, whose_step
from meanfield.transfer.rules import SAME_TRAINING
from meanfield.transfer.starting import (
    ERRORS_HELD,
    against_width,
    beyond_widths,
    calibrated,
    calibration_of_kind,
    change_of,
    goes_by_relative,
    misses_of,
    other_batch,
    premises_of,
    require_tried,
    slopes_parts,
    softened,
    step_that_names,
    trains,
    under_muon,
    untried,
    wide_kind,
    with_rate,
)
from meanfield.transfer.trials import (
    BATCH_NORMALISED,
    CONNECTED,
    CONVOLUTIONAL,
    DEEP_CONVOLUTIONAL_BRANCHES,
    OF_BATCH_NORM,
    OF_CHARACTERS,
    PLAIN,
    PLAIN_CONNECTED,
    PLAIN_CONVOLUTIONAL,
    POST_NORM,
    PRE_NORM,
    SCALES,
    SMALL_START,
    STARTED_SMALL,
    STAYS,
    TRANSFORMER,
    TRIAL_BATCH,
    UNTRIED_CONVOLUTIONS,
)

# As users call the kinds of `meanfield.transfer.trials`.
KINDS = {"connected": CONNECTED, "convolutional": CONVOLUTIONAL, "transformer": TRANSFORMER}


def kind_of(model: nn.Module, kind: Any) -> str:
    """One of `KINDS`, as it is given, or else by the model's modules.

    A model with a module that has attention, or attn, in its name or its class's is a Transformer, as is one of tokens
    whose blocks have layer normalisation and no convolution; one with convolutions is convolutional.
    """
    if kind is not None:
        require_choice("kind", kind, KINDS)
        return kind
    names = [type(module).__name__.lower() for module in model.modules()]
    own = [name.rpartition(".")[2].lower() for name, _ in model.named_modules()]
    convolves = any(name.startswith("conv") for name in names)
    inside = [part for block in blocks(model) for part in model.get_submodule(block).modules()]
    norms = any(type(part).__name__.lower().startswith(("layernorm", "rmsnorm")) for part in inside)
    reads_tokens = "embedding" in names and norms and not convolves
    if reads_tokens or any("attention" in name or "attn" in name for name in (*names, *own)):
        return "transformer"
    return "convolutional" if convolves else "connected"


def families_of(kind: str, model: nn.Module, scales: xr.Dataset) -> list[str]:
    """Families of the trials that the model of these scales belongs to.

    Transformers by their normalisation, residual convolutional nets by that of batches, or without one by the layers
    of a block.
    """
    if kind == "transformer":
        family = {"pre": PRE_NORM, "post": POST_NORM}.get(scales.attrs["normalised"])
        return [family] if family else []
    if kind == "convolutional" and is_like_residual(kind, model, scales):
        deep = DEEP_CONVOLUTIONAL_BRANCHES.get(branch_layers(model))
        return [deep] if deep else []
    if kind == "convolutional" and are_all(YES, scales) and is_batch_normalised(model):
        return [BATCH_NORMALISED]
    if not are_all(NO, scales):
        return []
    return [PLAIN, PLAIN_CONVOLUTIONAL if kind == "convolutional" else PLAIN_CONNECTED]


def are_all(answer: str, *measured: xr.Dataset) -> bool:
    """Whether this is the answer of all models to whether they have skip connections."""
    return all(scales.attrs["skips"] == answer for scales in measured)


def is_like_residual(kind: str, model: nn.Module, *measured: xr.Dataset) -> bool:
    """Whether models are like the residual nets whose rates trials followed over widths: without normalisation."""
    norms = any("norm" in type(model.get_submodule(leaf)).__name__.lower() for leaf in leaves(model))
    return kind != "transformer" and not norms and are_all(YES, *measured)


def of_branches(kind: str, scales: xr.Dataset, of: str, modules: Any) -> str:
    """That a scale is of branches, where no block tells the stream from them; empty where it is not."""
    inline = kind != "transformer" and are_all(YES, scales) and not scales.attrs["blocks"] and modules is None
    return OF_BRANCHES if inline and of != "outputs" else ""


def is_batch_normalised(model: nn.Module) -> bool:
    """Whether a module normalises over its batch, by its class."""
    return any("batchnorm" in type(module).__name__.lower() for module in model.modules())


def misses(kind: str, model: nn.Module, scales: xr.Dataset, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a rate named for a model like this one misses its interval."""
    wide = wide_kind(KINDS[kind], scales.attrs.get("width", 0))
    known = misses_of(families_of(kind, model, scales), optimizer, wide=wide)
    by_signs = optimizer in ("adamw", "lion")
    return (*known, UNTRIED_CONVOLUTIONS) if by_signs and kind == "convolutional" and _is_untried(model) else known


def _is_untried(model: nn.Module) -> bool:
    """Whether a convolutional model has kernels of some channels each, or a normalisation that is not of batches."""
    names = [type(model.get_submodule(leaf)).__name__.lower() for leaf in leaves(model)]
    grouped = any(getattr(module, "groups", 1) > 1 for module in model.modules() if hasattr(module, "kernel_size"))
    return grouped or any("norm" in name and "batchnorm" not in name for name in names)


def departures(kind: str, model: nn.Module, scales: xr.Dataset, optimizer: str) -> list[str]:
    """One sentence for each way in which trials say that one step does not tell how models like this one train."""
    reads_tokens = any(isinstance(module, nn.Embedding) for module in model.modules())
    of_tokens = [OF_CHARACTERS] if kind == "transformer" and reads_tokens else []
    muon = [] if kind == "transformer" else under_muon(optimizer)
    return [*slopes_parts(families_of(kind, model, scales), optimizer), *muon, *of_tokens]


UNTOLD = (
    "whether the model has skip connections could not be told, and the outputs were taken, as of models that have: "
    "give of='relative' for one without"
)
OF_BRANCHES = (
    "skip connections lead around layers that stand in no block, so that this scale is of branches and not of the "
    "stream that they add to: make every block a module of its own, or give modules= and the values of the stream"
)
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
    own size (AdamW, Lion, and by name "muon-adamw"), in mean squares, and c and the factor of the interval are those of
    trials of small nets, as for `meanfield.starting_rate`, but the step of a wide model is its own, and a warning says
    what that did. It is a rate to tune around, and the rate of the first parameter group.

    Args:
        model, loss, batches, optimizer: as for `step_scales`. Take batches of the size that you will train with.
            There are constants for SGD without momentum or with one of 0.9, Adam and AdamW, Lion and Muon, by name or
            by class, and for Muon with AdamW at one rate, by the name "muon-adamw".
        kind: whose constant is taken, of "connected", "convolutional" and "transformer" nets; if left out, by the
            names and classes of the modules: any with attention (attn) in it, or a table of embeddings with layer
            normalisation; any convolution; or neither.
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
    optimizer = step_that_names(optimizer)
    step = step_of(optimizer, model)
    name, kind = calibrated(step.trial_name(shown)), kind_of(shown, kind)
    calibration = calibration_of_kind(KINDS[kind], name)
    if measured is not None:
        require_instance("measured", measured, xr.Dataset, "the dataset of step_scales")
        _require_of_step(measured, step.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpsilonWarning)  # said below, with what it means here
        scales = step_scales(model, loss, batches, optimizer=optimizer, **options) if measured is None else measured
    require_last(scales, calibration.of)
    of_loss = scales.attrs["loss"]
    premises = (
        *premises_of(
            name,
            "cross_entropy" if of_loss in CROSS_ENTROPY else f"{of_loss}, which may be another",
            tokens=kind == "transformer",
        ),
        f"a model like {KINDS[kind]} of the trials, which were the library's families",
    )
    against = misses(kind, shown, scales, name), departures(kind, shown, scales, name)
    of_batch = other_batch(name, scales.attrs.get("batch_size", TRIAL_BATCH), tokens=kind == "transformer")
    small = _started_small(scales) if calibration.of == "last" and kind == "transformer" else ""
    of_part = of_branches(kind, scales, calibration.of, options.get("modules"))
    said = [small, softened(scales), of_batch, of_part, *against[0], *against[1]]
    found_rate = with_rate(scales, calibration, premises, said)
    return found_rate.assign_attrs(kind=kind)


def _require_of_step(measured: xr.Dataset, step: str) -> None:
    """Raise ValueError unless a dataset is of a step of this name, and says what this version of the library reads."""
    if "skips" not in measured.attrs or "last_kind" not in measured.attrs:
        raise ValueError("measured is of another version of the library: measure it again, by step_scales")
    if (own := measured.attrs["optimizer"]) != step:
        raise ValueError(f"measured is of one step of {own}; the rate goes by {step!r}: measure that step")


def _started_small(scales: xr.Dataset) -> str:
    """That the last layer starts far below 1, the size of the trials; empty where it does not."""
    size = scales.attrs["last_mean_square"]
    if not size < SMALL_START:
        return ""
    return f"the last layer starts at a mean square of {size:.2g}, far below 1: {STARTED_SMALL}"


BOTH_SIZES = (
    "the models differ in width and depth, over which no scale carries a rate at once under descent, as rates of "
    "residual nets stayed over the width (E1j): carry it to a model of the first one's width that is as deep as the "
    "second, and keep it; or give of"
)
# Under which rates of residual models stay over the width (E1j).
DESCENT_STAYS = ("sgd", "sgd_momentum")
CARRIED_WORDS = {
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

    with the scale that tuned rates of nets that learn were held to: of residual nets that of the outputs (claim E1a),
    of nets without skip connections that of the relative change of the layers (E1b), by which residual nets without
    normalisation are carried to another width under Adam and Lion, too (E1j). For "muon-adamw" it is that of the last
    layer in "muon-adamw-in-noise", a step of both as in noise. Under descent rates of residual nets stayed over the
    width (E1j), and so does the rate between two of one depth; where both differ, no scale says it, and none is given:
    carry the rate between models of one width, and keep it over the width. Both models take the same batches and random
    numbers. It is a statement about one step at initial weights; the answers of all four scales are given beside, and
    where they part, trust none without a second tuned rate.

    Args:
        rate: the learning rate tuned on ``small``, of the first parameter group.
        small, large: the model that was tuned and the one to train, each as for `step_scales`.
        loss, batches, optimizer: as for `step_scales`, but not an optimizer that steps one of the models.
        of: what the step moves: "outputs", "last", "relative" or "absolute"; as above if left out.
        kind: of both models, as for `starting_rate`.
        measured: what `step_scales` has given for both under the same arguments, where it is at hand; a function
            ``small`` is then asked for one model, to read its classes.
        options: of `step_scales`.

    Returns:
        Dataset of ``rate``, with ``low`` and ``high``, two standard errors of the medians away; and ``rates`` over
        ``of``, by all four scales, NaN where the last layer starts at 0. Attributes: ``of``; ``stays``, "width" where
        the rate stays over the width and no scale carries it; ``premises`` and ``warnings``, which are given as a
        `meanfield.PremiseWarning`, too.

    Raises:
        TypeError, ValueError: as `step_scales`; a rate that is no positive number; models whose last layers are of
            different classes; where ``of`` is left out, an optimizer that no trial has trained by, and residual models
            of two widths and two depths under descent.

    Source: Zhang et al. 2026, eq. 9, section 5, by the scale of one step of the optimizer that trains.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> import meanfield.torch as mft
        >>> def model(depth):
        ...     hidden = [layer for _ in range(depth) for layer in (nn.Linear(16, 16), nn.ReLU())]
        ...     return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), *hidden, nn.Linear(16, 3))
        >>> batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(8)]
        >>> how = {"optimizer": torch.optim.AdamW}
        >>> carried = mft.carry(0.01, lambda: model(2), lambda: model(8), nn.functional.cross_entropy, batches, **how)
        >>> bool(carried["low"] < carried["rate"]), carried.attrs["of"]
        (True, 'relative')
    """
    rate = require_positive("rate", rate, why="it is a learning rate")
    if of is None:
        optimizer = step_that_names(optimizer)
    shown, small = first_model(small, **options)
    step = step_of(optimizer, small)
    name, kind = step.trial_name(shown), kind_of(shown, kind)
    if of is None:
        require_tried(name, KINDS[kind])
    else:
        require_choice("of", of, SCALES)
    if measured is None:
        number = require_draws("draws", options.get("draws", DRAWS))
        taken = taken_batches(batches, number, checked_seed(options.get("seed", 0)))
        both = [step_scales(model, loss, taken, optimizer=optimizer, **options) for model in (small, large)]
    else:
        both = list(require_instances("measured", measured, xr.Dataset, "datasets of step_scales"))
        for scales in both:
            _require_of_step(scales, step.name)
    last = [str(scales.attrs["last_kind"]) for scales in both]
    if last[0] != last[1]:
        raise ValueError(
            f"the last layer is a {last[0]} of one model and a {last[1]} of the other, whose scales are of two kinds; "
            "choose modules that both have, such as their blocks"
        )
    deepens = len({(scales.attrs.get("blocks"), scales.sizes["layer"]) for scales in both}) > 1
    widened = len({scales.attrs.get("width") for scales in both}) > 1
    plain, residual = kind != "transformer" and are_all(NO, *both), is_like_residual(kind, shown, *both)
    is_asked = of is None and kind != "transformer" and name not in IN_NOISE.values()
    untold = is_asked and any(are_all(UNKNOWN, scales) for scales in both)
    keeps_over_width = of is None and widened and residual and name in DESCENT_STAYS
    if keeps_over_width and deepens:
        raise ValueError(BOTH_SIZES)
    of = of or change_of(name, relative=plain, widened=widened and residual)
    for scales in both:
        require_last(scales, of)
    rates = {each: _carried(rate, both, each, wanted=of) for each in SCALES}
    said = [each for scales in both if deepens for each in departures(kind, shown, scales, name)]
    said += [OF_BATCH_NORM] if deepens and is_batch_normalised(shown) else []
    said += [UNTOLD] if untold else []
    said += [of_branches(kind, scales, of, options.get("modules")) for scales in both]
    if widened and (keeps_over_width or (residual and goes_by_relative(of, name))):
        said.append(beyond_widths(name, KINDS[kind], [scales.attrs["width"] for scales in both]))
    elif widened:
        said.append(against_width(of, name, KINDS[kind], residual=residual))
    against = tuple(dict.fromkeys(filter(None, said)))
    for sentence in against:
        warnings.warn(sentence, PremiseWarning, stacklevel=2)
    middle, error = (rate, 0.0) if keeps_over_width else rates[of]
    numbers: dict[str, Any] = {
        "rate": ((), middle),
        "low": ((), middle * exp(-ERRORS_HELD * error)),
        "high": ((), middle * exp(ERRORS_HELD * error)),
        "rates": ("of", [each for each, _ in rates.values()]),
    }
    variables = {which: (*value, {"long_name": CARRIED_WORDS[which], "units": "1"}) for which, value in numbers.items()}
    premises = "; ".join(filter(None, (STAYS if keeps_over_width else "", *_premises(name, of))))
    how = {each: both[0].attrs[each] for each in ("optimizer", "loss", "precision", "seed", "draws", "torch")}
    attrs = how | {
        "of": of,
        "stays": "width" if keeps_over_width else "",
        "kind": kind,
        "premises": premises,
        "warnings": "; ".join(against),
    }
    return xr.Dataset(variables, {"of": list(rates)}, attrs)


def _carried(rate: float, both: list[xr.Dataset], of: str, wanted: str) -> tuple[float, float]:
    """The rate by one scale, and its relative error, 0 from a model to itself.

    NaN where a last layer starts at 0, and of another scale than the wanted one where nothing moves.
    """
    if both[0] is both[1]:
        return rate, 0.0
    values = [float(scales[SCALES[of]]) for scales in both]
    if any(map(isnan, values)) or (of != wanted and any(map(isinf, values))):
        return nan, nan
    medians = [median_scale(scales, SCALES[of]) for scales in both]
    return rate * medians[1][0] / medians[0][0], hypot(*(error for _, error in medians))


def _premises(name: str, of: str) -> tuple[str, ...]:
    trained = trains(name)
    return (
        f"tuned rates of {trained} keep their ratio to the rate at which {whose_step(name)} moves {MOVED[of]} by 1",
        OF_LATER if trained != name else "the step at initial weights: momentum and weight decay have no part in it",
        "initial weights as the models draw them, batches as they are given; the median model",
        SAME_TRAINING,
        untried(name),
    )
