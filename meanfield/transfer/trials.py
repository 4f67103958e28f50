"""What trials of training say of the first step of an optimizer: which of its scales names a rate, and where it fails.

All trials were of small nets, for one epoch or less. Those that claim T4 judges (`python -m sims.learning_rate_search`)
are of Transformers under descent; all others are a prototype's. Medians over draws of a scale, on the data and under
the loss of training, stand over the tuned rate of the same net.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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


DIGITS = "nine families of nets on digits, depths 2 .. 16, one epoch of batches of 16"
CALIBRATIONS: Mapping[str, Calibration] = {
    "sgd": Calibration(
        of="outputs",
        ratio=0.63,
        factor=2.2,
        trials="pre-norm vision Transformers and batch-normalised ResNets on 5,000 images of MNIST, depths 2 .. 16, 64 "
        "steps of batches of 64, where the scale was 0.30 to 1.38 of tuned rates; on digits it was 0.54 to 0.86 in "
        "residual nets",
    ),
    "adamw": Calibration(of="last", ratio=2.45, factor=2.4, trials=f"36 nets, {DIGITS}, six seeds"),
    "lion": Calibration(
        of="last",
        ratio=2.45,
        factor=2.4,
        trials=f"36 nets, {DIGITS}, six seeds, of AdamW",
        warning="no net was trained by Lion: its first step is that of AdamW, and the constant is AdamW's",
    ),
    "muon": Calibration(
        of="outputs",
        ratio=4.5,
        factor=5.6,
        trials=f"36 nets, {DIGITS}, where the scale was 0.8 to 25 times tuned rates",
        warning="under Muon no constant served all families: the scale of the outputs was 0.8 to 25 times the tuned "
        "rate, so that this one is an order of magnitude",
    ),
}

# Slopes over depths 2 .. 16 on digits where they part: tuned, and by the first step, of all layers, relative, outputs.
PRE_NORM, ROOT_LOOPS = "pre-norm Transformers", "loops of factor L^(-1/2)"
PRE_NORM_TUNED = -0.57  # by T4, +- 0.06; the prototype had -0.61
SLOPES: Mapping[str, Mapping[str, tuple[float, tuple[float, float, float]]]] = {
    PRE_NORM: {
        "sgd": (PRE_NORM_TUNED, (-1.42, -1.09, -1.00)),
        "adamw": (-0.64, (-1.18, -0.83, -0.91)),
        "muon": (-0.68, (-1.17, -0.84, -0.94)),
    },
    ROOT_LOOPS: {
        "sgd": (-1.57, (-3.16, -2.30, -3.51)),
        "adamw": (-0.43, (-1.34, -0.47, -1.68)),
        "muon": (-0.31, (-1.46, -0.58, -1.79)),
    },
}
# Under descent, beside the step of all layers on white inputs and labels, which theory predicts.
PRE_NORM_TRAINED = (
    f"tuned rates of {PRE_NORM} fell as L^({PRE_NORM_TUNED} +- 0.06) over 2 to 16 units in one epoch on digits, where "
    "one step on white inputs and labels says L^(-1.48)"
)
POST_NORM_TRAINED = "tuned rates of post-norm ones fell as L^(-1.38 +- 0.08), by one step L^(-1.80)"
# The scale of the outputs over tuned rates of descent on digits, where it left the factor of `CALIBRATIONS`.
PLAIN, POST_NORM = "plain nets", "post-norm Transformers"
OUTPUTS_UNDER_DESCENT: Mapping[str, tuple[float, float]] = {
    PLAIN: (0.63, 3.8),
    PRE_NORM: (0.83, 1.9),
    POST_NORM: (1.2, 2.4),
    ROOT_LOOPS: (0.01, 0.55),
}
# The tuned optimizers: what others do has not been tried.
TRIED = ("sgd", "adamw", "muon")
# From here on plain nets hardly learned in the one epoch of the trials, so that their tuned rates say little.
PLAIN_LAYERS = 8

LONGER = (
    "training as long as in the trials: eight times the steps lowered tuned rates of AdamW by a factor of 1.5, about "
    "T^(-0.2) in T steps; those of descent stayed"
)


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
    tried = "adamw" if optimizer == "lion" else optimizer
    families = _families(net)
    sentences = [part for family in families if family in SLOPES and (part := slopes_part(family, tried))]
    if isinstance(net, TokenStream) and (net.input_law == "tokens" or net.output_grid):
        sentences.append(
            "in trials Transformers of 16 channels on characters learned the frequencies of letters alone, which is "
            "their head's work, and tuned rates fell half as steeply with depth as one step says (pre-norm "
            "L^(-0.45), not L^(-0.9), under AdamW)"
        )
    if PLAIN in families and len(net.units) >= PLAIN_LAYERS:
        sentences.append(
            f"plain nets of {PLAIN_LAYERS} layers or more hardly learned in the one epoch of the trials, so that their "
            "tuned rates say little of how one step names them"
        )
    return tuple(sentences)


def misses(net: Net, optimizer: str) -> tuple[str, ...]:
    """One sentence for each way in which trials say that a starting rate of this net misses its stated interval."""
    if optimizer != "sgd":
        return ()
    ratio = CALIBRATIONS[optimizer].ratio
    known = {family: OUTPUTS_UNDER_DESCENT[family] for family in _families(net)}
    return tuple(
        f"in {family} on digits this rate would have been {low / ratio:.2g} to {high / ratio:.2g} times the tuned one"
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
    tuned, of_step = SLOPES[family][optimizer]
    return (
        f"tuned rates of {family} fell as L^({tuned:.2f}) under {optimizer} in trials on digits, where its first step "
        f"says L^({max(of_step):.2f}) to L^({min(of_step):.2f})"
    )


def untried(optimizer: str) -> str:
    """That no net was trained by this optimizer; empty where some were."""
    if optimizer in TRIED:
        return ""
    return f"no trial has trained nets by {optimizer}: whether tuned rates follow its first step is not known"
