"""A learning rate to start from, with nothing tuned: by a scale of the optimizer's first step on the data.

Which of the scales of a first step names a rate, and where it fails, is what trials of training said
(`meanfield.transfer.trials`).
"""

import warnings
from collections.abc import Iterable, Mapping
from math import exp, hypot, inf, isfinite, log
from pathlib import Path
from typing import Any, TypeVar

import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.validation import PremiseWarning, require_choice
from meanfield.execution.training import step_scales
from meanfield.execution.workers import Workers
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Net
from meanfield.nets.recognised import as_family, require_net
from meanfield.nets.residual import ResidualConvNet, ResidualMLP
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import IN_NOISE, IN_USE, Hybrid
from meanfield.optimizers.elementwise import AdamW, Lion
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.matrices import Muon, MuonKimi
from meanfield.quantities.step_scales import median_scale
from meanfield.simulation.step_moves import EpsilonWarning
from meanfield.transfer.trials import (
    BATCH_NORMALISED,
    BEYOND_WIDTHS,
    BY_THE_RELATIVE_CHANGE,
    CALIBRATIONS,
    CONNECTED,
    CONVOLUTIONAL,
    COURSES,
    DEEP_CONVOLUTIONAL_BRANCHES,
    FOLLOWED_UNDER,
    GPTS_OVER_WIDTH,
    LARGEST_BATCH,
    LINEAR_LOOPS,
    MUON_ADAMW,
    NOTABLE_OF_BATCH,
    NOTABLE_WIDTH,
    OF_CHARACTERS,
    OF_DEEP_BRANCHES,
    OF_FIRST,
    OF_MOMENTUM,
    OF_MUON,
    OF_TIED,
    OTHER_LOOPS,
    OVER_WIDTH,
    PLAIN,
    PLAIN_CONNECTED,
    PLAIN_CONVOLUTIONAL,
    POST_NORM,
    PRE_NORM,
    ROOT_LOOPS,
    SCALES,
    SCALES_THAT_MISS,
    SLOPES,
    STAYS,
    TRANSFORMER,
    TRIAL_BATCH,
    TRIAL_WIDTHS,
    TRIED,
    UNDER_MUON,
    UNTRIED_WIDTHS,
    WIDER_NETS,
    WIDTHS_FOLLOWED,
    Calibration,
)


def calibration_of(net: Net, optimizer: str) -> Calibration:
    """That of the net's kind, as `calibration_of_kind`."""
    return calibration_of_kind(kind_of_net(net), optimizer)


def kind_of_net(net: Net) -> str:
    """Which kind of nets it is."""
    return TRANSFORMER if isinstance(net, TokenStream) else CONVOLUTIONAL if is_convolutional(net) else CONNECTED


def calibration_of_kind(kind: str, optimizer: str) -> Calibration:
    """That of nets of this kind, by a name of `CALIBRATIONS`, or a ValueError where none was tried."""
    require_choice("optimizer", optimizer, CALIBRATIONS)
    if kind not in CALIBRATIONS[optimizer]:
        raise ValueError(
            f"no trial has a constant for {kind} under {trains(optimizer)}; take another optimizer, or search the rate "
            "by training"
        )
    return CALIBRATIONS[optimizer][kind]


Named = TypeVar("Named")


def step_that_names(optimizer: Named) -> Named | str:
    """The step whose scale names rates of this optimizer: its first; of Muon beside AdamW that in noise."""
    return IN_NOISE.get(optimizer, optimizer) if isinstance(optimizer, str) else optimizer


def trial_name(optimizer: str | Optimizer | Hybrid) -> str:
    """The name under which `CALIBRATIONS` may have this optimizer; as it calls itself where they have none."""
    step = FirstStep(optimizer)
    if isinstance(step.optimizer, str):
        return step.optimizer
    kinds: dict[str, bool] = {name: IN_USE[name] == optimizer for name in ("sgd", "sgd_momentum")}
    kinds |= {"adamw": isinstance(optimizer, AdamW), "lion": isinstance(optimizer, Lion)}
    kinds["muon"] = _is_muon(optimizer)
    kinds["muon-adamw"] = isinstance(optimizer, Hybrid) and (
        _is_muon(optimizer.hidden) and isinstance(optimizer.others, AdamW)
    )
    return next((name for name, is_it in kinds.items() if is_it), step.name)


def _is_muon(optimizer: Any) -> bool:
    return isinstance(optimizer, Muon) and not isinstance(optimizer, MuonKimi)


def trains(step: str) -> str:
    """The optimizer that trains, by the name of its step."""
    return next((name for name, later in IN_NOISE.items() if later == step), step)


def departures(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that one step of this optimizer does not tell how this net trains.

    Args:
        net: any net or loop.
        optimizer: a `trial_name`.
    """
    sentences = slopes_parts(_families(net), optimizer)
    if not isinstance(net, TokenStream | TiedLoop):
        sentences += under_muon(optimizer)
    if isinstance(net, TokenStream) and net.is_tied:
        sentences.append(OF_TIED)
    elif isinstance(net, TokenStream) and (net.input_law == "tokens" or net.output_grid or _has_factors(net)):
        sentences.append(OF_CHARACTERS)
    if isinstance(net, TiedLoop) and not _families(net):
        sentences.append(OTHER_LOOPS)
    return tuple(sentences)


def is_batch_normalised(net: Net) -> bool:
    """Whether a net normalises over its batch somewhere."""
    return any(part.couples_samples for unit in net.units for part in unit.maps)


def under_muon(optimizer: str) -> list[str]:
    """How trials of plain and residual nets parted from the first step of Muon with AdamW, where it is asked for."""
    return [UNDER_MUON] if optimizer == "muon-adamw" else []


def slopes_parts(families: Iterable[str], optimizer: str) -> list[str]:
    """`slopes_part` of each of these families that has one, that of AdamW for Lion where Lion was not tried.

    Of residual convolutional nets with deep branches also that descent alone was tried, under others.
    """
    names = (optimizer, trains(optimizer), _tried(optimizer))
    sentences = []
    for family in families:
        if known := [name for name in names if name in SLOPES.get(family, {})]:
            sentences.append(slopes_part(family, known[0]))
        elif family in DEEP_CONVOLUTIONAL_BRANCHES.values():
            sentences.append(OF_DEEP_BRANCHES.format(family=family))
    return sentences


def misses(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a starting rate of this net misses its stated interval."""
    return misses_of(_families(net), optimizer, wide=wide_kind(kind_of_net(net), widest(naming_net(net, optimizer))))


def wide_kind(kind: str, width: int) -> str:
    """The kind of nets of this width where they are notably wider than those of the trials; else nothing."""
    return kind if width >= NOTABLE_WIDTH * TRIAL_WIDTHS.get(kind, inf) else ""


def widest(net: Net) -> int:
    """Units, or channels, of the widest layer; inputs are none."""
    return max(net.value_channels[1:])


def width_of(net: Any) -> dict[str, int]:
    """The width of a residual net like those of the trials, by the name of its field; nothing of other nets."""
    name = {ResidualMLP: "width", ResidualConvNet: "channels"}.get(type(net))
    return {name: getattr(net, name)} if name else {}


def at_width(net: Net, width: Mapping[str, int]) -> Net | None:
    """The net at another width; None where it then takes other inputs or gives other outputs."""
    other: Any = net.replace(**width)
    return other if (other.input_shape, other.output_shape) == (net.input_shape, net.output_shape) else None


def widens(start: Any, end: Any) -> bool:
    """Whether two residual nets like those of the trials differ in their width."""
    widths = [width_of(net) for net in (start, end)]
    return all(widths) and widths[0] != widths[1]


def naming_net(net: Net, optimizer: str | Optimizer | Hybrid) -> Net:
    """The net whose first step names rates of this one: where rates stay over the width, that of the trials' width.

    As it is where it is no wider, and where a narrower one takes other inputs or gives other outputs.
    """
    own = width_of(net)
    trial = {name: TRIAL_WIDTHS[kind_of_net(net)] for name in own}
    if not own or max(own.values()) <= max(trial.values()) or not stays_over_width(net, optimizer):
        return net
    return at_width(net, trial) or net


def against_width(of: str, optimizer: str, kind: str, *, residual: bool) -> str:
    """What trials say against a rate that one step carries to another width by this change.

    ``kind``: of the nets, as in `trials`; ``residual``: whether they are like the residual nets of the trials.
    """
    tried = _tried(optimizer)
    name = "descent" if tried == "sgd" else trains(optimizer)
    if kind == TRANSFORMER:
        return GPTS_OVER_WIDTH.get(name) or UNTRIED_WIDTHS.format(optimizer=name)
    if of == "outputs" or (residual and tried == "sgd"):
        return OVER_WIDTH.get(tried) or UNTRIED_WIDTHS.format(optimizer=name)
    return BY_THE_RELATIVE_CHANGE if residual and tried == "adamw" else UNTRIED_WIDTHS.format(optimizer=name)


def beyond_widths(optimizer: str, kind: str, widths: Iterable[int], *, branch: int = 1) -> str:
    """That trials did not follow rates of residual nets over these widths, so that what carries them there is a guess.

    ``branch``: layers in one. Empty where trials did.
    """
    low, high = WIDTHS_FOLLOWED[kind]
    is_followed = optimizer in FOLLOWED_UNDER and branch == 1 and all(low <= width <= high for width in widths)
    return "" if is_followed else BEYOND_WIDTHS


def differ_in_kind(start: Any, end: Any) -> str:
    """That two nets differ in more than sizes, over which no trial has carried a rate; empty where they do not."""
    names = [name for name in OF_KIND if getattr(start, name, None) != getattr(end, name, None)]
    said = f"the nets differ in {', '.join(names)}, over which no trial has carried a rate: tune the second one"
    return said if names else ""


def differ_in_width(start: Any, end: Any) -> bool:
    """Whether two nets have layers of other widths: units, channels, growth or inner units of their fields."""
    return _widths(start) != _widths(end)


def _widths(net: Any) -> list[set[int]]:
    """The numbers of each field of widths, or those of all layers of a net that has no such field."""
    fields = [getattr(net, name) for name in ("width", "channels", "growth", "block_width") if hasattr(net, name)]
    each = [field if isinstance(field, tuple) else (field,) for field in fields if field is not None]
    return [set(widths) for widths in each or [net.value_channels[1:]]]


def misses_of(families: Iterable[str], optimizer: str, *, wide: str = "") -> tuple[str, ...]:
    """The same of a net of these families; ``wide``: its kind, where it is notably wider than those of the trials."""
    of_kinds = WIDER_NETS.get(_tried(optimizer), {})
    of_width = [of_kinds[wide]] if wide in of_kinds else []
    name = "sgd" if _tried(optimizer) == "sgd" else optimizer
    whose = "this rate" if optimizer == name else "the rate of descent without momentum"
    ratio, known = SCALES_THAT_MISS.get(name, (1.0, {}))
    of_families = [
        f"in {family} of the trials {whose} would have been {known[family][0] / ratio:.2g} to "
        f"{known[family][1] / ratio:.2g} times the tuned one"
        for family in families
        if family in known
    ]
    return (*of_families, *of_width)


def require_tried(optimizer: str, kind: str) -> None:
    """Raise ValueError unless trials have trained nets of this kind so, and say which scale carries their rates.

    ``optimizer``: a `trial_name`; ``kind``: as in `trials`.
    """
    scales = ", ".join(map(repr, SCALES))
    if optimizer not in CALIBRATIONS:
        later = IN_NOISE.get(optimizer)
        why = f"no trial has trained by {optimizer}, so that none says which scale names its rates: give of"
        if later in CALIBRATIONS:
            why = f"the first step of {optimizer} does not tell how its rates go: give optimizer={later!r}, or of"
        raise ValueError(f"{why}, one of {scales}")
    if kind not in CALIBRATIONS[optimizer]:
        raise ValueError(
            f"no trial says which scale names rates of {kind} under {trains(optimizer)}: tune at two depths or widths, "
            f"or give of, one of {scales}"
        )


def change_that_carries(net: Net, optimizer: str | Optimizer | Hybrid, *, widened: bool = False) -> str:
    """What a first step on data moves by 1 at the rates that it carries, one of `SCALES`, where none is asked for.

    Of plain and residual nets and loops that by which claims E1 hold their tuned rates to one step, of Muon beside
    AdamW in noise the one that was nearest in these runs. Of residual nets with batch normalisation (E1c) and of
    Transformers (E1e), whose rates no change was shown to carry, the outputs. ``widened``: to a residual net of another
    width (`widens`).
    """
    return change_of(trial_name(optimizer), relative=_is_relative(net), widened=widened)


def _is_relative(net: Net) -> bool:
    """Whether rates of nets of this kind go by the relative change of the layers over the depth."""
    require_net(net, loops=True, units=True)
    return is_plain(net) or isinstance(net, TiedLoop)


def change_of(optimizer: str, *, relative: bool, widened: bool = False) -> str:
    """The same by a `trial_name`; ``relative``: of a kind of nets whose rates go by that change over the depth."""
    if optimizer == MUON_ADAMW:
        return "last"
    return "relative" if relative or (widened and goes_by_relative("relative", optimizer)) else "outputs"


def stays_over_width(net: Net, optimizer: str | Optimizer | Hybrid) -> bool:
    """Whether rates of a net stayed over the width in the trials, which no scale of a first step tells (claim E1j)."""
    return bool(width_of(net)) and descends(optimizer)


def goes_by_relative(of: str, optimizer: str) -> bool:
    """Whether this change is the one by which rates of residual nets went over the width (claim E1j)."""
    return of == "relative" and _tried(optimizer) == "adamw"


def rate_stays(start: Any, end: Any, optimizer: str | Optimizer | Hybrid) -> bool:
    """Whether a rate stays between two nets of different widths, and the second can have the width of the first."""
    return widens(start, end) and stays_over_width(end, optimizer) and at_width(end, width_of(start)) is not None


def descends(optimizer: str | Optimizer | Hybrid) -> bool:
    """Whether a first step is that of descent in all weights, with momentum or without."""
    step = FirstStep(optimizer)
    return step.is_descent and not isinstance(step.method, Hybrid)


def is_plain(net: Net) -> bool:
    """Whether no unit of a net adds to another one, as those of loops do."""
    return not isinstance(net, TiedLoop) and all(unit.skip is None for unit in net.units)


def is_convolutional(net: Net) -> bool:
    """Whether a net, no Transformer, has sites that kernels join."""
    return bool(net.grid) and not isinstance(net, TokenStream)


def _families(net: Net) -> list[str]:
    """Those of the families above that the net belongs to."""
    belongs = {
        PLAIN: is_plain(net),
        PLAIN_CONNECTED: is_plain(net) and kind_of_net(net) == CONNECTED,
        PLAIN_CONVOLUTIONAL: is_plain(net) and is_convolutional(net),
        BATCH_NORMALISED: is_convolutional(net) and not is_plain(net) and is_batch_normalised(net),
        PRE_NORM: isinstance(net, TokenStream) and net.is_pre_norm and not (net.is_tied or _has_factors(net)),
        POST_NORM: isinstance(net, TokenStream) and not net.is_pre_norm,
        LINEAR_LOOPS: isinstance(net, TiedLoop) and float(net.alpha) == 1,
        ROOT_LOOPS: isinstance(net, TiedLoop) and float(net.alpha) == 0.5,
    }
    families = [family for family, is_it in belongs.items() if is_it]
    if isinstance(net, ResidualConvNet) and net.scaling == "init" and net.block_depth in DEEP_CONVOLUTIONAL_BRANCHES:
        families.append(DEEP_CONVOLUTIONAL_BRANCHES[net.block_depth])
    return families


def _has_factors(net: TokenStream) -> bool:
    """Whether a Transformer multiplies its branches by a factor that depends on the depth, or has its weights do so."""
    return getattr(net, "scaling", "none") != "none"


def slopes_part(family: str, optimizer: str) -> str:
    """How tuned rates of a family of `SLOPES` fell beside what one step of the optimizer says; empty if not tried."""
    require_choice("family", family, SLOPES)
    if optimizer not in SLOPES[family]:
        return ""
    tuned, of_step, data = SLOPES[family][optimizer]
    low, high = tuned < min(of_step), tuned > max(of_step)
    away = f"one step carries too {'large' if low else 'small'} a rate to greater depth: " if low or high else ""
    return (
        f"{away}tuned rates of {family} fell as L^({tuned:.2f}) under {trains(optimizer)} in trials {data} where "
        f"{'its first step' if trains(optimizer) == optimizer else 'a step in noise'} says L^({max(of_step):.2f}) to "
        f"L^({min(of_step):.2f})"
    )


def untried(optimizer: str) -> str:
    """That no net was trained by this optimizer until it learned; empty where some were."""
    if trains(optimizer) in TRIED:
        return ""
    name = trains(optimizer)
    few = {"sgd_momentum": OF_MOMENTUM, "muon": OF_MUON}
    return (
        few.get(name)
        or f"no trial has trained nets by {name} until they learned: whether tuned rates follow its step is not known"
    )


# Fields of nets that are no sizes, and no part of the head or of the inputs.
OF_KIND = ("activation", "scaling", "block_depth", "norm", "normalisation", "padding", "kernel", "alpha", "tied")
# Factors on the rate that are worth a warning.
NOTABLE = 1.1
# Standard errors of the median that the interval takes in.
ERRORS_HELD = 2.0
DYING = (
    "a tenth or more of the drawn nets do not move at their first step, as their gradients are 0 and units have died: "
    "their rates have no end, and so has the interval; give a larger width or a smaller depth"
)
WORDS = {
    "rate": "learning rate to start from",
    "low": "lower end of the learning rates to expect",
    "high": "upper end of the learning rates to expect",
}


def starting_rate(
    net: Net,
    data: tuple[ArrayLike, ArrayLike],
    *,
    loss: str = "cross_entropy",
    optimizer: str | Optimizer = "sgd",
    epsilon: float = 0.0,
    batch_size: int | None = None,
    draws: int = 32,
    seed: int = 0,
    workers: int | Workers = 1,
    resume_in: Path | None = None,
) -> xr.Dataset:
    """A learning rate for a net on data under an optimizer, with nothing tuned, and the interval to expect it in.

        rate = median over draws of a scale / c

    The scale is the rate at which the optimizer's first step moves the outputs by 1 (descent, Muon) or the last layer
    by its own size (AdamW, Lion, Muon with AdamW), in mean squares (`step_scales`); of Muon with AdamW it is the step
    "muon-adamw-in-noise", in which AdamW's layers move as far as they do once gradients are noise. The constant c is
    that of trials of small nets, and so is the factor either way that the interval holds. But for descent and Muon
    alone kinds of nets have constants of their own: that of fully-connected nets is six times that of convolutional
    ones under AdamW (claim E2), seven times under Lion, and nine times under Muon with AdamW. Under descent tuned rates
    of residual nets stayed over the width, and the outputs' scale does not (E1j): there the first step of a wider net
    is that of the same net at the width of the trials, 64 units or 16 channels. The attributes say which nets, data and
    steps these were. Tune around the rate where you can, and carry what you tuned over depth by
    `transfer_learning_rate`, which needs no constant.

    Args:
        net, data, loss, epsilon, batch_size, draws, seed, workers, resume_in: as for `step_scales`. Take the batch size
            that you will train with.
        optimizer: "sgd" (without momentum), "sgd_momentum" (0.9), "adamw", "lion", "muon-adamw" (both at one rate) or
            "muon" (for all weights); or one of `meanfield.optimizers` of these kinds but the pair.

    Returns:
        Dataset of ``rate``, ``low`` and ``high``, with all that `step_scales` gives beside, of the net that was drawn.
        The interval is the factor of the trials and two standard errors of the median, in squares of their logarithms;
        0 to infinity where a tenth or more of the drawn nets do not move. Attributes: ``scale``, the name of the scale,
        ``scale_over_rate`` c, ``factor``, ``rests_on``, ``premises`` and ``warnings``, which are given as a
        `PremiseWarning`, too.

    Raises:
        TypeError, ValueError: as `step_scales`; an optimizer that no trial has a constant for; nets that no rate moves,
            in half or more of the draws.
        MemoryError, OverflowError: as `step_scales`.

    Source: Zhang et al. 2026, eqs. 7 - 9, under the loss and the optimizer of training; constants by own trials.

    Examples:
        >>> import numpy as np
        >>> import meanfield as mf
        >>> rng = np.random.default_rng(0)
        >>> data = rng.standard_normal((64, 8)), rng.integers(0, 3, 64)
        >>> net = mf.ResidualMLP(depth=3, width=16, stem=1, input_width=8, outputs=3)
        >>> found = mf.starting_rate(net, data, optimizer="adamw", batch_size=16)
        >>> bool(found["low"] < found["rate"] < found["high"]), found.attrs["scale"]
        (True, 'last_learning_rate_scale')
    """
    require_net(net, units=True)
    step = step_that_names(optimizer)
    name = calibrated(trial_name(step))
    spec: Any = as_family(net)
    calibration = calibration_of(spec, name)
    measured = naming_net(spec, name)
    how: dict[str, Any] = {"loss": loss, "epsilon": epsilon, "batch_size": batch_size, "draws": draws, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpsilonWarning)  # said below, with what it means here
        own = net if measured == spec else measured
        scales = step_scales(own, data, optimizer=step, workers=workers, resume_in=resume_in, **how)
    tokens = isinstance(spec, TokenStream)
    of_batch = other_batch(name, scales.attrs["batch_size"], tokens=tokens)
    sentences = (softened(scales), of_batch, *misses(spec, name), *departures(spec, name))
    premises = premises_of(name, loss, tokens=tokens)
    if measured != spec:
        (field, width), *_ = width_of(measured).items()
        premises = (*premises, f"{STAYS}: scales are of the net with {field}={width}, the width of the trials")
    return with_rate(scales, calibration, premises, sentences)


def with_rate(
    scales: xr.Dataset, calibration: Calibration, premises: Iterable[str], sentences: Iterable[str]
) -> xr.Dataset:
    """The rate that scales of a first step name by a calibration beside them, as `starting_rate` gives it.

    Args:
        scales: as `step_scales` gives them.
        calibration: that of the net and the optimizer.
        premises: what the rate assumes.
        sentences: what speaks against it, beside what the calibration says and what the scales show; some may be empty.
    """
    median, error = median_scale(scales, SCALES[calibration.of])
    rate, factor = median / calibration.ratio, exp(hypot(log(calibration.factor), ERRORS_HELD * error))
    against = tuple(filter(None, (calibration.warning, "" if isfinite(error) else DYING, *sentences)))
    for sentence in against:
        warnings.warn(sentence, PremiseWarning, stacklevel=3)
    numbers = {"rate": rate, "low": rate / factor, "high": rate * factor}
    variables = {which: ((), number, {"long_name": WORDS[which], "units": "1"}) for which, number in numbers.items()}
    described = {
        "scale": SCALES[calibration.of],
        "scale_over_rate": calibration.ratio,
        "factor": calibration.factor,
        "rests_on": calibration.trials,
        "premises": "; ".join(premises),
        "warnings": "; ".join(against),
    }
    return scales.assign(variables).assign_attrs(described)


def named_rate(scales: xr.Dataset, net: Net, optimizer: str | Optimizer) -> tuple[float, float]:
    """The rate that the scales of a first step name, with nothing tuned, and the relative error of their median.

    Args:
        scales: as `step_scales` gives them for the net.
        optimizer: as for `starting_rate`.

    Raises:
        ValueError: an optimizer that no trial has a constant for; nets that half or more of which no rate moves.
    """
    calibration = calibration_of(net, calibrated(trial_name(optimizer)))
    median, error = median_scale(scales, SCALES[calibration.of])
    return median / calibration.ratio, error


def softened(scales: xr.Dataset) -> str:
    """That epsilon changes the first step, as the constants are those of steps that it leaves alone; empty if not."""
    share = scales.attrs.get("kept_share", 1.0)
    if share * NOTABLE > 1:
        return ""
    return (
        f"epsilon {scales.attrs['epsilon']:g} leaves {share:.2g} of the signs of the first step, the mean of "
        "|G| / (|G| + epsilon): gradients are not far above it, and the constant is that of steps that epsilon leaves "
        "alone"
    )


def calibrated(name: str) -> str:
    """The name of an optimizer (`trial_name`), or a ValueError where no trial has a constant for it."""
    if (later := step_that_names(name)) in CALIBRATIONS and later != name:
        raise ValueError(
            f"the first step of {name} names no rate: give the name {later!r}, a step whose AdamW layers move as far "
            "as they do once gradients are noise"
        )
    if name not in CALIBRATIONS:
        known = ", ".join(repr(trains(step)) for step in CALIBRATIONS)
        raise ValueError(
            f"no trial has a constant for {trains(name)}: there are starting rates for {known} (descent without "
            "momentum, and with one of 0.9 that is neither dampened nor Nesterov's); take one of these, or "
            "`meanfield.tuned_rate`"
        )
    return name


# Rows judge descent's and some of AdamW's exponents, and findings have all of them.
WHERE_COURSES_STAND = "E3a to E3c, docs/findings.md"


def premises_of(name: str, loss: str, *, tokens: bool) -> tuple[str, ...]:
    """What a starting rate under an optimizer of `CALIBRATIONS` assumes; ``tokens``: of a Transformer."""
    kind = {
        "sgd": "descent without momentum",
        "sgd_momentum": "descent with momentum 0.9",
        "muon": "Muon with momentum 0.95",
        MUON_ADAMW: "Muon with momentum 0.95 on hidden matrices and AdamW on all else, both at this rate",
    }.get(name, f"{name} at its usual betas")
    trained = () if loss == "cross_entropy" else (f"the trials were of cross-entropy; this loss is {loss}",)
    course = COURSES[_tried(trains(name))]
    (low, high), (few, many) = course.peak, course.steps
    batches = "" if tokens else f", of batches of {TRIAL_BATCH}"
    return (
        f"nets of the size of those of the trials, trained by {kind}, without weight decay",
        f"a constant rate: under {course.trained} peaks of a warmup and a cosine that train best were {low:g} to "
        f"{high:g} times as large",
        "inputs of mean 0 and variance 1",
        *trained,
        f"as many steps as in the trials{batches}: over 128 to 2,048 steps T tuned rates of {course.trained}, in nets "
        f"of 4 units, went as T^({few[0]:g} +- {few[1]:g}) with batches of 16 and as T^({many[0]:g} +- {many[1]:g}) "
        f"with batches of 256 ({WHERE_COURSES_STAND})",
    )


def other_batch(name: str, batch_size: int, *, tokens: bool) -> str:
    """By how much a batch of another size than that of the trials moved tuned rates; empty where that is little.

    ``tokens``: samples are those of a Transformer, of several tokens each, which were in batches of their own sizes.
    """
    course = COURSES[_tried(trains(name))]
    short, long = ((batch_size / TRIAL_BATCH) ** power for power in course.batch)
    if tokens or max(short, long, 1 / short, 1 / long) < NOTABLE_OF_BATCH:
        return ""
    of_first = OF_FIRST if name == MUON_ADAMW else ""
    is_beyond = not TRIAL_BATCH <= batch_size <= LARGEST_BATCH
    return (
        f"trials had batches of {TRIAL_BATCH}, and this one has {batch_size:,}: by how tuned rates of {course.trained} "
        f"went with batches of {TRIAL_BATCH} to {LARGEST_BATCH} in nets of 4 units, the one that trains best is "
        f"{short:.2g} times this rate after 128 steps, and {long:.2g} times after 2,048 ({WHERE_COURSES_STAND})"
        f"{', if that goes on beyond them, which was not tried' if is_beyond else ''}{of_first}"
    )


def _tried(name: str) -> str:
    """The optimizer of the trials whose numbers serve this one: of the same first step; Muon had AdamW beside it."""
    return {"sgd_momentum": "sgd", "lion": "adamw", "muon-adamw": "muon"}.get(name, name)
