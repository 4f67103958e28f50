"""What trials of training say of the first step of an optimizer: which of its scales names a rate, and where it fails.

Trials were of small nets. Those of nets that learn are recorded runs: claims E1 and E2 judge them (`python -m
sims.learning_rate_search --preset evidence`), and L7b and E1e those of GPTs (`python -m sims.looped_rates --preset
evidence`). T4 judges Transformers under descent. All others are a prototype's, for one epoch or less. Medians over
draws of a scale, on the data and under the loss of training, stand over the tuned rate of the same net.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from meanfield.common.validation import require_choice
from meanfield.nets.loop import TiedLoop
from meanfield.nets.net import Net
from meanfield.nets.transformer import TokenStream
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.elementwise import SGD, AdamW, Lion
from meanfield.optimizers.first_steps import FirstStep
from meanfield.optimizers.matrices import Muon, MuonKimi

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
DIGITS = "nine families of nets on digits, depths 2 .. 16, one epoch of batches of 16"
LEARNED = "that learn, depths 2 .. 16, 896 steps of batches of 16"
_DESCENT = Calibration(
    of="outputs",
    ratio=0.63,
    factor=2.2,
    trials=f"28 residual nets {LEARNED}, fully connected, convolutional and batch-normalised, on digits and MNIST, "
    "where the scale was 0.35 to 1.14 of tuned rates; before, of the constant's own, pre-norm vision Transformers and "
    "batch-normalised ResNets on MNIST for 64 steps of batches of 64, where it was 0.30 to 1.38",
)
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
    factor=5.6,
    trials=f"36 nets, {DIGITS}, where the scale was 0.8 to 25 times tuned rates",
    warning="under Muon no constant served all families: the scale of the outputs was 0.8 to 25 times the tuned "
    "rate, so that this one is an order of magnitude",
)
_OF_ADAMW = "no net was trained by Lion: its first step is that of AdamW, and the constant is AdamW's"
KINDS = (CONNECTED, CONVOLUTIONAL, TRANSFORMER)
CALIBRATIONS: Mapping[str, Mapping[str, Calibration]] = {
    "sgd": dict.fromkeys(KINDS, _DESCENT),
    "adamw": _SIGNS,
    "lion": {
        kind: replace(of_kind, warning="; ".join(filter(None, (_OF_ADAMW, of_kind.warning))))
        for kind, of_kind in _SIGNS.items()
    },
    "muon": dict.fromkeys(KINDS, _MUON),
}

# Slopes over depths 2 .. 16 where they part: tuned, by the first step of all layers, relative and outputs, and on what.
PRE_NORM, POST_NORM, ROOT_LOOPS = "pre-norm Transformers", "post-norm Transformers", "loops of factor L^(-1/2)"
ON_DIGITS, ON_MNIST = "on digits,", "on MNIST, of 32 channels that learn,"
SLOPES: Mapping[str, Mapping[str, tuple[float, tuple[float, float, float], str]]] = {
    PRE_NORM: {
        "sgd": (-0.35, (-1.16, -0.79, -0.68), ON_MNIST),
        "adamw": (-0.64, (-1.18, -0.83, -0.91), ON_DIGITS),
        "muon": (-0.68, (-1.17, -0.84, -0.94), ON_DIGITS),
    },
    POST_NORM: {"sgd": (-0.98, (-1.50, -1.50, -1.39), ON_MNIST)},
    ROOT_LOOPS: {
        "sgd": (-1.65, (-3.22, -2.34, -3.56), ON_DIGITS),
        "adamw": (-0.65, (-1.35, -0.47, -1.70), ON_DIGITS),
        "muon": (-0.31, (-1.46, -0.58, -1.79), ON_DIGITS),
    },
}
# Under descent, T4 and nets that learn, beside the step of all layers on white inputs and labels, as theory has it.
PRE_NORM_TRAINED = (
    f"tuned rates of {PRE_NORM} fell as L^(-0.57 +- 0.06) over 2 to 16 units in one epoch on digits, and as "
    "L^(-0.35 +- 0.04) in eight on MNIST, where one step on white inputs and labels says L^(-1.48)"
)
POST_NORM_TRAINED = (
    "those of post-norm ones fell as L^(-1.38 +- 0.08) and L^(-0.98 +- 0.04) on the same data, where it says L^(-1.80)"
)
# Initial values of mean square below this, relative to which a step is large and soon is not.
SMALL_START = 0.1
STARTED_SMALL = (
    "in GPTs of 48 channels whose weights start at a standard deviation of 0.02 this rate would have been 0.5 times "
    "the tuned one with 1 block, and 0.2 times with 4"
)
UNTRIED_CONVOLUTIONS = (
    "convolutional nets of the trials had kernels that join all channels, and no normalisation or that of batches: in "
    "a ConvNeXt (kernels of single channels, LayerNorm, two blocks of 8 channels, branches times 0.1) this rate would "
    "have been 6 to 12 times the one that trains best, in a first look with two seeds"
)
# The scale of the outputs over tuned rates of descent, where it left the factor of `CALIBRATIONS`.
PLAIN = "plain nets"
OUTPUTS_UNDER_DESCENT: Mapping[str, tuple[float, float]] = {
    PLAIN: (0.46, 3.9),
    PRE_NORM: (0.79, 1.9),
    POST_NORM: (1.1, 2.6),
    ROOT_LOOPS: (0.01, 0.36),
}
# The tuned optimizers: what others do has not been tried.
TRIED = ("sgd", "adamw", "muon")
LONGER = (
    "training as long as in the trials: eight times the steps lowered tuned rates of AdamW by a factor of 1.5, about "
    "T^(-0.2) in T steps; those of descent stayed"
)
OF_CHARACTERS = (
    "tuned rates of GPTs of characters that learn, of 32 channels under AdamW, fell as L^(-0.14), not L^(-0.49) as one "
    "step says, with branches times L^(-1/2); with 1/L they stayed, as it says (E1e)"
)
CONSTANT = (
    "a constant rate: peaks of a warmup and a cosine that train best were 1.7 to 3.6 times as large in a first look"
)


def calibration_of(net: Net, optimizer: str) -> Calibration:
    """That of the net's kind, by a name of `CALIBRATIONS`."""
    kind = TRANSFORMER if isinstance(net, TokenStream) else CONVOLUTIONAL if net.grid else CONNECTED
    return CALIBRATIONS[optimizer][kind]


def trial_name(optimizer: str | Optimizer | Hybrid) -> str:
    """The name under which `CALIBRATIONS` may have this optimizer; as it calls itself where they have none."""
    step = FirstStep(optimizer)
    if isinstance(step.optimizer, str):
        return step.optimizer
    kinds = {"sgd": SGD(0.0) == optimizer, "adamw": isinstance(optimizer, AdamW), "lion": isinstance(optimizer, Lion)}
    kinds["muon"] = isinstance(optimizer, Muon) and not isinstance(optimizer, MuonKimi)
    return next((name for name, is_it in kinds.items() if is_it), step.name)


def departures(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that one step of this optimizer does not tell how this net trains.

    Args:
        net: any net or loop.
        optimizer: a `trial_name`.
    """
    sentences = slopes_parts(_families(net), optimizer)
    if isinstance(net, TokenStream) and (net.input_law == "tokens" or net.output_grid):
        sentences.append(OF_CHARACTERS)
    return tuple(sentences)


def slopes_parts(families: Iterable[str], optimizer: str) -> list[str]:
    """`slopes_part` of each of these families that has one, that of AdamW for Lion."""
    tried = "adamw" if optimizer == "lion" else optimizer
    return [part for family in families if family in SLOPES and (part := slopes_part(family, tried))]


def misses(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a starting rate of this net misses its stated interval."""
    return misses_of(_families(net), optimizer)


def misses_of(families: Iterable[str], optimizer: str) -> tuple[str, ...]:
    """The same of a net of these families."""
    if optimizer != "sgd":
        return ()
    known = {family: OUTPUTS_UNDER_DESCENT[family] for family in families}
    return tuple(
        f"in {family} of the trials this rate would have been {low / _DESCENT.ratio:.2g} to "
        f"{high / _DESCENT.ratio:.2g} times the tuned"
        for family, (low, high) in known.items()
    )


def _families(net: Net) -> list[str]:
    """Those of the families above that the net belongs to."""
    belongs = {
        PLAIN: all(unit.skip is None for unit in net.units),
        PRE_NORM: isinstance(net, TokenStream) and net.is_pre_norm,
        POST_NORM: isinstance(net, TokenStream) and not net.is_pre_norm,
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
        f"tuned rates of {family} fell as L^({tuned:.2f}) under {optimizer} in trials {data} where its first step "
        f"says L^({max(of_step):.2f}) to L^({min(of_step):.2f})"
    )


def untried(optimizer: str) -> str:
    """That no net was trained by this optimizer; empty where some were."""
    if optimizer in TRIED:
        return ""
    return f"no trial has trained nets by {optimizer}: whether tuned rates follow its first step is not known"
