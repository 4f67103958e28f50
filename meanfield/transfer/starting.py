"""A learning rate to start from, with nothing tuned: by a scale of the optimizer's first step on the data.

Which of the scales of a first step names a rate, and where it fails, is what trials of training say. They were of small
nets. Those of nets that learn are recorded runs: claims E1 and E2 judge them (`python -m sims.learning_rate_search
--preset evidence`), and L7b and E1e those of GPTs (`python -m sims.looped_rates --preset evidence`). T4 judges
Transformers under descent. All others are a prototype's, for one epoch or less. Medians over draws of a scale, on the
data and under the loss of training, stand over the tuned rate of the same net.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, hypot, isfinite, log
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
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import IN_NOISE, IN_USE, Hybrid
from meanfield.optimizers.elementwise import AdamW, AdamWInNoise, Lion
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.matrices import Muon, MuonKimi
from meanfield.quantities.step_scales import median_scale
from meanfield.simulation.step_moves import EpsilonWarning

# What a step moves by 1, as `transfer_learning_rate` calls it, and the scale of that name.
SCALES = {
    "absolute": "learning_rate_scale",
    "relative": "relative_learning_rate_scale",
    "last": "last_learning_rate_scale",
    "outputs": "output_learning_rate_scale",
}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How a scale of the first step stood to tuned rates.

    Attributes:
        of: the scale, one of `SCALES`.
        ratio: the scale over the tuned rate, in the middle of the nets of the trials.
        factor: within which, either way, the scale over ``ratio`` met the tuned rates of those nets.
        trials: which nets, data, steps and batches these were.
        warning: why the calibration is a poor one; empty where it is not.
    """

    of: str
    ratio: float
    factor: float
    trials: str
    warning: str = ""


# Kinds of nets, whose constants differ: without sites, with convolutions over sites, and Transformers.
CONNECTED, CONVOLUTIONAL, TRANSFORMER = "fully-connected nets and loops", "convolutional nets", "Transformers"
ON_ALL_FAMILIES = "nine families of nets on digits, depths 2 .. 16, one epoch of batches of 16"
LEARNED = "that learn, depths 2 .. 16, 896 steps of batches of 16"
_DESCENT = Calibration(
    of="outputs",
    ratio=0.63,
    factor=2.2,
    trials=f"28 residual nets {LEARNED}, fully connected, convolutional and batch-normalised, on digits and MNIST, "
    "where the scale was 0.35 to 1.14 of tuned rates; before, of the constant's own, pre-norm vision Transformers and "
    "batch-normalised ResNets on MNIST for 64 steps of batches of 64, where it was 0.30 to 1.38",
)
# Descent with momentum 0.9, of the same first step as without, and of later ones that are up to ten times as long.
OF_MOMENTUM = (
    "few nets were trained by descent with momentum until they learned: 8 fully-connected residual nets of digits and "
    "4 convolutional ones of MNIST"
)
_MOMENTUM = {
    CONNECTED: Calibration(
        of="outputs",
        ratio=4.6,
        factor=_DESCENT.factor,
        trials=f"8 residual nets {LEARNED} of digits, width 64, where the scale was 3.8 to 5.4 times tuned rates; "
        "the interval is as wide as without momentum",
        warning=OF_MOMENTUM,
    ),
    CONVOLUTIONAL: Calibration(
        of="outputs",
        ratio=2.2,
        factor=_DESCENT.factor,
        trials=f"4 residual nets {LEARNED} of MNIST, 16 channels, where the scale was 1.7 to 2.8 times tuned "
        "rates; the interval is as wide as without momentum",
        warning=OF_MOMENTUM,
    ),
}
_SIGNS = {
    CONNECTED: Calibration(
        of="last",
        ratio=4.5,
        factor=2.4,
        trials=f"28 nets {LEARNED} of digits, width 64, where the scale was 1.9 to 10.6 times tuned rates",
    ),
    CONVOLUTIONAL: Calibration(
        of="last",
        ratio=0.79,
        factor=1.6,
        trials=f"16 nets {LEARNED} of MNIST, 16 channels, where the scale was 0.50 to 1.27 of tuned rates",
    ),
    TRANSFORMER: Calibration(
        of="last",
        ratio=2.2,
        factor=3.1,
        trials="16 pre-norm GPTs of characters, 1 .. 8 blocks of 32 channels, of their own or tied, branches times "
        "(2L)^(-1/2) or 1/(2L), 448 steps of batches of 8, which learned more than pairs of letters, where the scale "
        "was 1.7 to 6.7 times tuned rates; and two of PyTorch, 1 and 4 blocks of 48 channels whose branches end in "
        "weights of variance 1/(2 L n), 400 steps of batches of 16, where it was 1.4 and 0.8 times",
        warning="of Transformers that learn, pre-norm GPTs of 32 and 48 channels alone were tried by signs, all with a "
        "factor in the depth on their branches",
    ),
}
_MUON = Calibration(
    of="outputs",
    ratio=4.5,
    factor=6.4,
    trials=f"36 nets, {ON_ALL_FAMILIES}, where the scale was 0.8 to 25 times tuned rates, and 8 plain nets {LEARNED}, "
    "by Muon with AdamW, where it was 2.4 to 29 times",
    warning="under Muon no constant served all families: the scale of the outputs was 0.8 to 29 times the tuned "
    "rate, so that this one is an order of magnitude; where AdamW steps the first and the last layer, give "
    "'muon-adamw'",
)
# Muon beside AdamW, at one rate: of the step whose AdamW layers move as far as they do once gradients are noise.
MUON_ADAMW = IN_NOISE["muon-adamw"]
_MUON_ADAMW = {
    CONNECTED: Calibration(
        of="last",
        ratio=74,
        factor=2.3,
        trials=f"24 nets {LEARNED} of digits (16 inputs) and MNIST (49), width 64, plain and residual, where the scale "
        "was 33 to 166 times tuned rates, and 45 to 70 times in the 12 residual ones of one layer a branch; 8 tied "
        "loops of digits, where it was 67 to 104 times",
    ),
    CONVOLUTIONAL: Calibration(
        of="last",
        ratio=7.9,
        factor=1.5,
        trials=f"20 nets {LEARNED} of MNIST and digits, 16 channels, plain, residual and batch-normalised, where the "
        "scale was 5.3 to 11.7 times tuned rates",
    ),
}
# Lion has the first step of AdamW, and later ones as long, where those of AdamW are shorter once gradients are noise.
SHORTER = AdamWInNoise().length
OF_LION = (
    "few nets were trained by Lion until they learned: 8 loops and 2 residual nets, in which the last layer's scale "
    "was 12 to 39 times tuned rates, and 2 convolutional residual nets, in which it was 3.7 and 4.0 times"
)
_LION = {
    kind: replace(
        of_kind,
        ratio=float(f"{of_kind.ratio / SHORTER:.2g}"),
        trials=f"AdamW's constant over {SHORTER:.2f}, by which its steps are shorter than Lion's once gradients are "
        f"noise; under AdamW: {of_kind.trials}",
        warning="; ".join(filter(None, (OF_LION, of_kind.warning))),
    )
    for kind, of_kind in _SIGNS.items()
}
CALIBRATIONS: Mapping[str, Mapping[str, Calibration]] = {
    "sgd": dict.fromkeys(_SIGNS, _DESCENT),
    "sgd_momentum": _MOMENTUM,
    "adamw": _SIGNS,
    "lion": _LION,
    "muon": dict.fromkeys(_SIGNS, _MUON),
    MUON_ADAMW: _MUON_ADAMW,
}

# Slopes over depths 2 .. 16 where they part: tuned, by the first step of all layers, relative and outputs, and on what;
# of plain convolutional nets over 2 .. 8, as deeper ones did not learn.
PLAIN, PLAIN_CONVOLUTIONAL, PRE_NORM, POST_NORM, LINEAR_LOOPS, ROOT_LOOPS = (
    "plain nets",
    "plain convolutional nets",
    "pre-norm Transformers",
    "post-norm Transformers",
    "loops of factor 1/L",
    "loops of factor L^(-1/2)",
)
ON_DIGITS, ON_MNIST = "on digits,", "on MNIST, of 32 channels,"
SLOPES: Mapping[str, Mapping[str, tuple[float, tuple[float, float, float], str]]] = {
    PLAIN_CONVOLUTIONAL: {"sgd": (-2.47, (-1.37, -1.58, -1.31), ON_MNIST)},
    PRE_NORM: {
        "sgd": (-0.35, (-1.16, -0.79, -0.68), ON_MNIST),
        "adamw": (-0.64, (-1.18, -0.83, -0.91), ON_DIGITS),
        "muon": (-0.68, (-1.17, -0.84, -0.94), ON_DIGITS),
    },
    POST_NORM: {"sgd": (-0.98, (-1.50, -1.50, -1.39), ON_MNIST)},
    LINEAR_LOOPS: {
        "sgd": (-0.31, (-0.03, -0.06, -0.21), ON_DIGITS),
        "adamw": (-0.26, (0.09, 0.07, -0.08), ON_DIGITS),
        **dict.fromkeys(("muon", MUON_ADAMW), (-0.31, (0.04, 0.02, -0.12), ON_DIGITS)),
    },
    ROOT_LOOPS: {
        "sgd": (-1.69, (-3.22, -2.34, -3.56), ON_DIGITS),
        "adamw": (-0.75, (-1.35, -0.47, -1.70), ON_DIGITS),
        "lion": (-0.21, (-1.35, -0.47, -1.70), ON_DIGITS),
        **dict.fromkeys(("muon", MUON_ADAMW), (-0.72, (-1.48, -0.59, -1.81), ON_DIGITS)),
    },
}
# Under descent, T4 and nets that learn, beside the step of all layers on white inputs and labels, as theory has it.
PLAIN_CONVOLUTIONAL_TRAINED = (
    f"tuned rates of {PLAIN_CONVOLUTIONAL} of 32 channels fell as L^(-2.47 +- 0.10) over 2 to 8 layers in eight epochs "
    "on MNIST, where one step on white inputs and labels says L^(-1.49)"
)
PRE_NORM_TRAINED = (
    f"tuned rates of {PRE_NORM} fell as L^(-0.57 +- 0.06) over 2 to 16 units in one epoch on digits, and as "
    "L^(-0.35 +- 0.04) in eight on MNIST, where one step on white inputs and labels says L^(-1.48)"
)
POST_NORM_TRAINED = (
    f"tuned rates of {POST_NORM} fell as L^(-1.38 +- 0.08) over 2 to 16 units in one epoch on digits, and as "
    "L^(-0.98 +- 0.04) in eight on MNIST (L^(-1.00 +- 0.10) over the depths that learn, 4 and 8), where one step on "
    "white inputs and labels says L^(-1.80)"
)
UNDER_MUON = (
    "under Muon with AdamW at one rate tuned rates of plain and residual nets that learn fell faster over depths of 2 "
    "to 16 than the first step says: as K^(-0.83) in residual nets of variance 1/K and as L^(-1.00) in plain ones, "
    "where its outputs say -0.30 and -0.14 (E1a, E1b); the last layer's scale of "
    f"optimizer={MUON_ADAMW!r}, chosen after these runs, was off by 0.35 in the exponent at the most, and by 0.12 on "
    "average"
)
# Initial values of mean square below this, relative to which a step is large and soon is not.
SMALL_START = 0.1
STARTED_SMALL = (
    "in GPTs of 48 channels whose weights start at a standard deviation of 0.02 this rate would have been 0.5 times "
    "the tuned one with 1 block, and 0.2 times with 4"
)
UNTRIED_CONVOLUTIONS = (
    "convolutional nets of the trials had kernels that join all channels, and no normalisation or that of batches: in "
    "a ConvNeXt (kernels of single channels, LayerNorm, two blocks of 8 channels, branches times 0.1) AdamW's rate "
    "would have been 6 to 12 times the one that trains best, in a first look with two seeds"
)
# The scale of the outputs over tuned rates of descent, where it left the factor of `CALIBRATIONS`.
OUTPUTS_UNDER_DESCENT: Mapping[str, tuple[float, float]] = {
    PLAIN: (0.46, 3.9),
    PRE_NORM: (0.79, 1.9),
    POST_NORM: (1.1, 2.6),
    ROOT_LOOPS: (0.01, 0.36),
}
# Units of a layer from which on nets are wider than those of the trials, and what was met there (claim E2f).
WIDER_THAN_TRIALS = 128
OF_WIDER_NETS = (
    "trials had width 64, and tuned rates of descent hardly go with the width, where the outputs' scale "
    "does: at width 128 the rate so named was 0.34 to 0.57 times the tuned one in residual nets of 2, 8 and 32 blocks, "
    "and at width 256 0.21 to 0.33 times (E2f)"
)
# By which the outputs carry rates from width 64 to 256 in the same nets, and what tuned rates did.
OVER_WIDTH: Mapping[str, str] = {
    "sgd": "from width 64 to 256 the outputs' scale of descent fell to 0.24 to 0.30 in residual nets of 2, 8 and 32 "
    "blocks, and tuned rates went to 1.02, 1.13 and 0.65 times: leave the rate over widths, or give of='relative', "
    "which says 0.50 to 0.58",
    "adamw": "from width 64 to 256 the outputs' scale of AdamW fell to 0.15 to 0.17 in residual nets of 2, 8 and 32 "
    "blocks, and tuned rates to 0.43, 0.26 and 0.29: give of='relative' or 'last' over widths, which say 0.26 to 0.29",
}
# The tuned optimizers: what others do has not been tried.
TRIED = ("sgd", "adamw", "muon", "muon-adamw")
OF_CHARACTERS = (
    "tuned rates of GPTs of characters that learn, of 32 channels under AdamW, fell as L^(-0.14), not L^(-0.49) as one "
    "step says, with branches times L^(-1/2); with 1/L they stayed, as it says (E1e)"
)


@dataclass(frozen=True, kw_only=True)
class Course:
    """How tuned rates went with the steps T, the batch B and the schedule, in nets of 4 units that learn (claim E3).

    Under Muon with AdamW, over the scales of the first step; how that of a later one goes with the batch was not tried.

    Attributes:
        trained: the optimizer of these nets.
        steps: exponents in T, over 128 .. 2,048, of constant rates with batches of 16 and of 256, with their errors.
        batch: exponents in B, over 16 .. 256, of the tuned constant rate over the scale that names it, after 128 and
            after 2,048 steps.
        peak: tuned peaks of a warmup and a cosine over the tuned constant rate at batches of 16, least and largest.
    """

    trained: str
    steps: tuple[tuple[float, float], tuple[float, float]]
    batch: tuple[float, float]
    peak: tuple[float, float]


COURSES: Mapping[str, Course] = {
    "sgd": Course(trained="descent", steps=((0.01, 0.03), (0.05, 0.08)), batch=(0.36, 0.40), peak=(2.3, 2.5)),
    "adamw": Course(trained="AdamW", steps=((-0.15, 0.03), (-0.54, 0.08)), batch=(0.40, 0.01), peak=(2.7, 3.0)),
    "muon": Course(
        trained="Muon with AdamW", steps=((-0.35, 0.04), (-0.90, 0.09)), batch=(0.34, -0.20), peak=(2.6, 3.1)
    ),
}
# Samples of a mini-batch of the trials, and a factor on the rate by another number that is worth a warning.
TRIAL_BATCH, LARGEST_BATCH, NOTABLE_OF_BATCH = 16, 256, 1.4
OF_FIRST = "; the scale was that of the first step, and how that in noise goes with the batch was not tried"


def calibration_of(net: Net, optimizer: str) -> Calibration:
    """That of the net's kind, as `calibration_of_kind`."""
    kind = TRANSFORMER if isinstance(net, TokenStream) else CONVOLUTIONAL if is_convolutional(net) else CONNECTED
    return calibration_of_kind(kind, optimizer)


def calibration_of_kind(kind: str, optimizer: str) -> Calibration:
    """That of nets of this kind, by a name of `CALIBRATIONS`, or a ValueError where none was tried."""
    require_choice("optimizer", optimizer, CALIBRATIONS)
    if kind not in CALIBRATIONS[optimizer]:
        raise ValueError(
            f"no trial has trained {kind} by {trains(optimizer)} until they learn, so that none has a constant for "
            "them; take another optimizer, or `meanfield.tuned_rate`"
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
    if isinstance(net, TokenStream) and (net.input_law == "tokens" or net.output_grid):
        sentences.append(OF_CHARACTERS)
    return tuple(sentences)


def under_muon(optimizer: str) -> list[str]:
    """How trials of plain and residual nets parted from the first step of Muon with AdamW, where it is asked for."""
    return [UNDER_MUON] if optimizer == "muon-adamw" else []


def slopes_parts(families: Iterable[str], optimizer: str) -> list[str]:
    """`slopes_part` of each of these families that has one, that of AdamW for Lion where Lion was not tried."""
    known = [family for family in families if family in SLOPES]
    names = [optimizer if optimizer in SLOPES[family] else _tried(optimizer) for family in known]
    return [part for family, name in zip(known, names, strict=True) if (part := slopes_part(family, name))]


def misses(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a starting rate of this net misses its stated interval."""
    is_wide = not isinstance(net, TokenStream) and not is_convolutional(net) and widest(net) >= WIDER_THAN_TRIALS
    return (*misses_of(_families(net), optimizer), *([OF_WIDER_NETS] if is_wide and _tried(optimizer) == "sgd" else []))


def widest(net: Net) -> int:
    """Units, or channels, of the widest layer; inputs are none."""
    return max(net.value_channels[1:])


def over_width(optimizer: str) -> str:
    """How tuned rates of residual nets went over widths beside the outputs' scale; empty where that was not tried."""
    return OVER_WIDTH.get(_tried(optimizer), "")


def misses_of(families: Iterable[str], optimizer: str) -> tuple[str, ...]:
    """The same of a net of these families."""
    if _tried(optimizer) != "sgd":
        return ()
    known = {family: OUTPUTS_UNDER_DESCENT[family] for family in families if family in OUTPUTS_UNDER_DESCENT}
    whose = "this rate" if optimizer == "sgd" else "the rate of descent without momentum"
    return tuple(
        f"in {family} of the trials {whose} would have been {low / _DESCENT.ratio:.2g} to "
        f"{high / _DESCENT.ratio:.2g} times the tuned"
        for family, (low, high) in known.items()
    )


def change_that_carries(net: Net, optimizer: str | Optimizer | Hybrid) -> str:
    """What a first step on data moves by 1 at the rates that it carries, one of `SCALES`, where none is asked for.

    That by which claims E1 hold tuned rates of nets of this kind to one step; of Muon beside AdamW in noise, the one
    that was nearest in these runs.
    """
    require_net(net, loops=True, units=True)
    parts = [part for unit in net.units for part in unit.maps]
    normalised = any(part.normalises or part.couples_samples for part in parts) and not isinstance(net, TokenStream)
    is_relative = is_plain(net) or normalised or isinstance(net, TiedLoop)
    name = trial_name(optimizer)
    return "relative" if is_relative and name != MUON_ADAMW else moved_of_residual(name)


def moved_of_residual(optimizer: str) -> str:
    """The same of residual nets and Transformers, by a `trial_name`."""
    return "last" if optimizer == MUON_ADAMW else "outputs"


def is_plain(net: Net) -> bool:
    """Whether no unit of a net adds to another one."""
    return all(unit.skip is None for unit in net.units)


def is_convolutional(net: Net) -> bool:
    """Whether a net, no Transformer, has sites that kernels join."""
    return bool(net.grid) and not isinstance(net, TokenStream)


def _families(net: Net) -> list[str]:
    """Those of the families above that the net belongs to."""
    belongs = {
        PLAIN: is_plain(net),
        PLAIN_CONVOLUTIONAL: is_plain(net) and is_convolutional(net),
        PRE_NORM: isinstance(net, TokenStream) and net.is_pre_norm,
        POST_NORM: isinstance(net, TokenStream) and not net.is_pre_norm,
        LINEAR_LOOPS: isinstance(net, TiedLoop) and float(net.alpha) == 1,
        ROOT_LOOPS: isinstance(net, TiedLoop) and float(net.alpha) < 1,
    }
    return [family for family, is_it in belongs.items() if is_it]


def slopes_part(family: str, optimizer: str) -> str:
    """How tuned rates of a family of `SLOPES` fell beside what one step of the optimizer says; empty if not tried."""
    require_choice("family", family, SLOPES)
    if optimizer not in SLOPES[family]:
        return ""
    tuned, of_step, data = SLOPES[family][optimizer]
    return (
        f"tuned rates of {family} fell as L^({tuned:.2f}) under {trains(optimizer)} in trials {data} where its first "
        f"step says L^({max(of_step):.2f}) to L^({min(of_step):.2f})"
    )


def untried(optimizer: str) -> str:
    """That no net was trained by this optimizer until it learned; empty where some were."""
    if trains(optimizer) in TRIED:
        return ""
    name = trains(optimizer)
    few = {"lion": OF_LION, "sgd_momentum": OF_MOMENTUM}
    return (
        few.get(name)
        or f"no trial has trained nets by {name} until they learned: whether tuned rates follow its step is not known"
    )


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
    ones under AdamW (claim E2), and nine times under Muon with AdamW; Lion's are AdamW's over 0.23, as its steps do not
    shrink once gradients are noise. The attributes say which nets, data and steps
    these were. Tune around the rate where you can, and carry what you tuned over depth by `transfer_learning_rate`,
    which needs no constant.

    Args:
        net, data, loss, epsilon, batch_size, draws, seed, workers, resume_in: as for `step_scales`. Take the batch size
            that you will train with.
        optimizer: "sgd" (without momentum), "sgd_momentum" (0.9), "adamw", "lion", "muon-adamw" (both at one rate) or
            "muon" (for all weights); or one of `meanfield.optimizers` of these kinds but the pair.

    Returns:
        Dataset of ``rate``, ``low`` and ``high``, with all that `step_scales` gives beside. The interval is the factor
        of the trials and two standard errors of the median, in squares of their logarithms; 0 to infinity where a tenth
        or more of the drawn nets do not move. Attributes: ``scale``, the
        name of the scale, ``scale_over_rate`` c, ``factor``, ``rests_on``, ``premises`` and ``warnings``, which are
        given as a `PremiseWarning`, too.

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
    how: dict[str, Any] = {"loss": loss, "epsilon": epsilon, "batch_size": batch_size, "draws": draws, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EpsilonWarning)  # said below, with what it means here
        scales = step_scales(net, data, optimizer=step, workers=workers, resume_in=resume_in, **how)
    tokens = isinstance(spec, TokenStream)
    of_batch = other_batch(name, scales.attrs["batch_size"], tokens=tokens)
    sentences = (softened(scales), of_batch, *misses(spec, name), *departures(spec, name))
    return with_rate(scales, calibration, premises_of(name, loss, tokens=tokens), sentences)


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
        f"{high:g} times as large (E3)",
        "inputs of mean 0 and variance 1",
        *trained,
        f"as many steps as in the trials{batches}: over 128 to 2,048 steps T tuned rates of {course.trained}, in nets "
        f"of 4 units, went as T^({few[0]:g} +- {few[1]:g}) with batches of 16 and as T^({many[0]:g} +- {many[1]:g}) "
        "with batches of 256 (E3)",
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
        f"{short:.2g} times this rate after 128 steps, and {long:.2g} times after 2,048 (E3)"
        f"{', if that goes on beyond them, which was not tried' if is_beyond else ''}{of_first}"
    )


def _tried(name: str) -> str:
    """The optimizer of the trials whose numbers serve this one: of the same first step; Muon had AdamW beside it."""
    return {"sgd_momentum": "sgd", "lion": "adamw", "muon-adamw": "muon"}.get(name, name)
