"""What trials of training said of the first step of an optimizer: which scale named tuned rates, and where it failed.

They were of small nets. Those of nets that learn are recorded runs: claims E1 and E2 judge them (`python -m
sims.learning_rate_search --preset evidence`), and L7b and E1e those of GPTs (`python -m sims.looped_rates --preset
evidence`). T4 judges Transformers under descent. All others are a prototype's, for one epoch or less. Medians over
draws of a scale, on the data and under the loss of training, stand over the tuned rate of the same net.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from meanfield.optimizers.by_name import IN_NOISE
from meanfield.optimizers.elementwise import AdamWInNoise

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
DESCENT = Calibration(
    of="outputs",
    ratio=0.63,
    factor=2.5,
    trials=f"44 residual nets {LEARNED}, fully connected, convolutional and batch-normalised, on digits and MNIST, "
    "where the scale was 0.26 to 1.14 of tuned rates, and 0.87 to 4.7 where branches had two or three convolutions; "
    "before, of the constant's own, pre-norm vision Transformers and batch-normalised ResNets on MNIST for 64 steps of "
    "batches of 64, where it was 0.30 to 1.38",
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
        factor=DESCENT.factor,
        trials=f"8 residual nets {LEARNED} of digits, width 64, where the scale was 3.8 to 5.4 times tuned rates; "
        "the interval is as wide as without momentum",
        warning=OF_MOMENTUM,
    ),
    CONVOLUTIONAL: Calibration(
        of="outputs",
        ratio=2.2,
        factor=DESCENT.factor,
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
        trials=f"28 nets {LEARNED} of digits, width 64, where the scale was 2.2 to 10.6 times tuned rates",
    ),
    CONVOLUTIONAL: Calibration(
        of="last",
        ratio=0.79,
        factor=2.0,
        trials=f"20 nets {LEARNED} of MNIST and digits, 16 channels, where the scale was 0.50 to 1.49 of tuned rates",
    ),
    TRANSFORMER: Calibration(
        of="last",
        ratio=2.2,
        factor=3.1,
        trials="16 pre-norm GPTs of characters, 1 .. 8 blocks of 32 channels, of their own or tied, branches times "
        "(2L)^(-1/2) or 1/(2L), 448 steps of batches of 8, which learned more than pairs of letters, where the scale "
        "was 1.7 to 6.7 times tuned rates; and two of PyTorch, 1 and 4 blocks of 48 channels whose branches end in "
        "weights of variance 1/(2 L n), 400 steps of batches of 16, where it was 1.4 and 0.8 times",
        warning="the constant for Transformers is of pre-norm GPTs of 32 and 48 channels, whose branches have a factor "
        "in the depth",
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
AS_WIDE = "the interval is as wide as under AdamW"
_LION = {
    CONNECTED: Calibration(
        of="last",
        ratio=25,
        factor=_SIGNS[CONNECTED].factor,
        trials=f"19 plain and residual nets {LEARNED} of digits, width 64, where the scale was 15 to 51 times tuned "
        f"rates, and 8 tied loops, where it was 12 to 39 times; {AS_WIDE}",
    ),
    CONVOLUTIONAL: Calibration(
        of="last",
        ratio=3.5,
        factor=_SIGNS[CONVOLUTIONAL].factor,
        trials=f"12 plain and residual nets {LEARNED} of MNIST, 16 channels, where the scale was 2.6 to 4.9 times "
        f"tuned rates; {AS_WIDE}",
    ),
    TRANSFORMER: replace(
        _SIGNS[TRANSFORMER],
        ratio=float(f"{_SIGNS[TRANSFORMER].ratio / SHORTER:.2g}"),
        trials=f"AdamW's constant over {SHORTER:.2f}, by which its steps are shorter than Lion's once gradients are "
        f"noise; under AdamW: {_SIGNS[TRANSFORMER].trials}",
        warning=f"no Transformer was trained by Lion until it learned; {_SIGNS[TRANSFORMER].warning}",
    ),
}
CALIBRATIONS: Mapping[str, Mapping[str, Calibration]] = {
    "sgd": dict.fromkeys(_SIGNS, DESCENT),
    "sgd_momentum": _MOMENTUM,
    "adamw": _SIGNS,
    "lion": _LION,
    "muon": dict.fromkeys(_SIGNS, _MUON),
    MUON_ADAMW: _MUON_ADAMW,
}

# Slopes over depths 2 .. 16 where they part: tuned, by the first step of all layers, relative and outputs, or by a step
# in noise, relative and of the last layer, and on what; of Transformers on MNIST over 4 .. 16 and 4 .. 8 units;
# of plain convolutional nets over 2 .. 8, as deeper ones did not learn.
PLAIN, PLAIN_CONNECTED, PLAIN_CONVOLUTIONAL, PRE_NORM, POST_NORM, LINEAR_LOOPS, ROOT_LOOPS = (
    "plain nets",
    "plain fully-connected nets",
    "plain convolutional nets",
    "pre-norm Transformers",
    "post-norm Transformers",
    "loops of factor 1/L",
    "loops of factor L^(-1/2)",
)
TWO_LAYER_CONVOLUTIONAL, THREE_LAYER_CONVOLUTIONAL = (
    f"residual convolutional nets with branches of {layers} layers" for layers in ("two", "three")
)
BATCH_NORMALISED = "residual convolutional nets with batch normalisation"
# By the layers of a branch.
DEEP_CONVOLUTIONAL_BRANCHES = {2: TWO_LAYER_CONVOLUTIONAL, 3: THREE_LAYER_CONVOLUTIONAL}
ON_DIGITS, ON_MNIST = "on digits,", "on MNIST, of 32 channels,"
WHERE_THEY_LEARN = f"{ON_MNIST} over the depths that learn,"
SLOPES: Mapping[str, Mapping[str, tuple[float, tuple[float, ...], str]]] = {
    PLAIN_CONNECTED: {
        "lion": (-1.08, (-1.27, -1.44, -0.96), ON_DIGITS),
        MUON_ADAMW: (-1.00, (-1.16, -1.35), ON_DIGITS),
    },
    TWO_LAYER_CONVOLUTIONAL: {"sgd": (-0.27, (0.20, 0.17, 0.19), "on MNIST, of 16 channels and variance 1/K,")},
    THREE_LAYER_CONVOLUTIONAL: {
        "sgd": (-0.41, (1.26, 1.06, 0.95), "on MNIST, of 2 and 4 blocks of 16 channels, with an error of 0.40,")
    },
    PLAIN_CONVOLUTIONAL: {"sgd": (-2.47, (-1.37, -1.58, -1.31), ON_MNIST)},
    PRE_NORM: {
        "sgd": (-0.28, (-1.13, -0.73, -0.57), WHERE_THEY_LEARN),
        "adamw": (-0.64, (-1.18, -0.83, -0.91), ON_DIGITS),
        "muon": (-0.68, (-1.17, -0.84, -0.94), ON_DIGITS),
    },
    POST_NORM: {"sgd": (-1.00, (-1.52, -1.52, -1.30), WHERE_THEY_LEARN)},
    LINEAR_LOOPS: {
        "sgd": (-0.31, (-0.03, -0.06, -0.21), ON_DIGITS),
        "adamw": (-0.26, (0.09, 0.07, -0.08), ON_DIGITS),
        "lion": (-0.12, (0.09, 0.07, -0.08), "on digits, with an error of 0.09,"),
        "muon-adamw": (-0.31, (0.04, 0.02, -0.12), ON_DIGITS),
    },
    ROOT_LOOPS: {
        "sgd": (-1.69, (-3.22, -2.34, -3.56), ON_DIGITS),
        "adamw": (-0.75, (-1.35, -0.47, -1.70), ON_DIGITS),
        "lion": (-0.21, (-1.35, -0.47, -1.70), "on digits, with an error of 0.13,"),
        "muon-adamw": (-0.72, (-1.48, -0.59, -1.81), ON_DIGITS),
    },
}
OF_DEEP_BRANCHES = (
    "whether one step says how rates of {family} go over depth was tried under descent alone, where they fell though "
    "it says that they rise (E1m, open): check at a second depth"
)
# Under descent, in an epoch and of nets that learn (T4), beside the step of all layers on white inputs and labels, as
# theory has it.
PLAIN_CONVOLUTIONAL_TRAINED = (
    f"tuned rates of {PLAIN_CONVOLUTIONAL} of 32 channels fell as L^(-2.47 +- 0.10) over 2 to 8 layers in eight epochs "
    "on MNIST, where one step on white inputs and labels says L^(-1.49)"
)
RESIDUAL_CONVOLUTIONAL_TRAINED = (
    "tuned rates of residual convolutional nets of variance 1/K, 16 channels, fell over 2 to 16 blocks as K^(-1.23 +- "
    "0.04) on digits and as K^(-1.39 +- 0.10) and, with more pixels, K^(-1.54 +- 0.08) on MNIST, where one step on "
    "white inputs and labels says K^(-1.20)"
)
PRE_NORM_TRAINED = (
    f"tuned rates of {PRE_NORM} fell as L^(-0.57 +- 0.06) over 2 to 16 units in one epoch on digits, and in eight on "
    "MNIST as L^(-0.28 +- 0.07) over the depths that learn, 4 to 16, where one step on white inputs and labels says "
    "L^(-1.48)"
)
POST_NORM_TRAINED = (
    f"tuned rates of {POST_NORM} fell as L^(-1.38 +- 0.08) over 2 to 16 units in one epoch on digits, and in eight on "
    "MNIST as L^(-1.00 +- 0.10) over the depths that learn, 4 and 8, where one step on white inputs and labels says "
    "L^(-1.80)"
)
OF_BATCH_NORM = (
    "whether one step says how rates of nets with batch normalisation go over depth is open (E1c): in the one family "
    "that was tried, residual and convolutional, the outputs' exponent was off by 0.20 under descent, by 0.06 under "
    "AdamW and by 0.35 under Lion, where the relative change of the layers was not off, and more of such nets would "
    "have to be trained: check at a second depth"
)
UNDER_MUON = (
    "under Muon with AdamW at one rate tuned rates of plain and residual nets that learn fell faster over depths of 2 "
    "to 16 than the first step says: as K^(-0.83) in residual nets of variance 1/K, where its outputs say "
    "K^(-0.30) (E1a), and as L^(-1.00) in plain ones, where its relative change says L^(-0.71) (E1b); the last layer's "
    f"scale of optimizer={MUON_ADAMW!r}, which is drawn on data= and was chosen after these runs, was off by 0.35 in "
    "the exponent at the most, and by 0.12 on average"
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
# By the optimizer, its constant and the scale over tuned rates of families where that left the stated factor of it.
SCALES_THAT_MISS: Mapping[str, tuple[float, Mapping[str, tuple[float, float]]]] = {
    "sgd": (
        DESCENT.ratio,
        {
            PLAIN: (0.46, 3.9),
            TWO_LAYER_CONVOLUTIONAL: (0.87, 2.45),
            THREE_LAYER_CONVOLUTIONAL: (1.81, 4.67),
            PRE_NORM: (0.79, 1.9),
            POST_NORM: (1.1, 2.6),
            ROOT_LOOPS: (0.01, 0.36),
        },
    ),
    "lion": (_LION[CONVOLUTIONAL].ratio, {BATCH_NORMALISED: (0.91, 1.56)}),
}
# Loops whose factor was not tried.
OTHER_LOOPS = (
    "tuned rates of loops left one step under the factors that were tried, 1/L and L^(-1/2) (E1d); this one was not"
)
# Of GPTs, by the optimizer, beside what one step says.
GPTS_OVER_WIDTH: Mapping[str, str] = {
    name: f"tuned rates of GPTs of characters that learn went by {octaves} octaves (factors of 2) from 32 to 128 "
    f"channels, and by {wider} to 256, under {name} without a table (E5d, E5f), with hidden weights of one variance: "
    f"{remedy}"
    for name, octaves, wider, remedy in (
        (
            "adamw",
            "-1.66 +- 0.04",
            "-2.17 +- 0.09",
            "one step says -1.6 and -2.9 by the relative change of the layers (of='relative'), and -2.7 and -4.4 by "
            "the outputs; best group parameters by a table, under which it stayed (E5e)",
        ),
        ("muon-adamw", "-0.54 +- 0.02", "-0.49 +- 0.06", "tune at two widths, as tables did not keep it (E5e)"),
    )
}
# How far a learning-rate finder was from tuned rates, by the optimizer.
FINDERS: Mapping[str, str] = {
    "adamw": "under AdamW rates of a range test were far from tuned ones in 16 small residual nets that learn (E2c): a "
    "tenth of that of the least loss was 5 to 58 times as large, that of the steepest descent 5 to 11 times in "
    "fully-connected nets and 0.03 to 0.2 times in convolutional ones; begin at `meanfield.starting_rate`, which named "
    "0.76 to 1.4 times the tuned rate of 12 others (E2d)",
    "muon-adamw": "under Muon with AdamW rates of a range test were far from tuned ones in small plain and residual "
    "nets that learn: a tenth of that of the least loss was 1.8 to 9.2 times as large, that of the steepest descent "
    "0.05 to 45 times; begin at `meanfield.starting_rate`",
}
# Units or channels of the nets of the trials; others are wide from twice as many on, where this was met (E1j, E2f).
TRIAL_WIDTHS, NOTABLE_WIDTH = {CONNECTED: 64, CONVOLUTIONAL: 16}, 2
OF_WIDER_NETS = (
    "trials had width 64, or 16 channels, and tuned rates of descent hardly went with the width of residual nets, "
    "where the outputs' scale does: the rate so named was 0.34 to 0.57 times the tuned one at width 128, 0.17 to 0.33 "
    "times at width 256, and 0.33 to 0.42 times at 32 channels (E2f, E1j)"
)
# By optimizer and kind of nets.
WIDER_NETS: Mapping[str, Mapping[str, str]] = {
    "sgd": dict.fromkeys((CONNECTED, CONVOLUTIONAL), OF_WIDER_NETS),
    "adamw": {
        CONVOLUTIONAL: "trials by signs had 16 channels: in two residual nets of 32 channels the rate so named was "
        "0.59 and 0.67 times the tuned one under AdamW, at the lower edge of what is stated (E1j), and nets of more "
        "channels were not tried"
    },
}
UNTRIED_WIDTHS = (
    "how tuned rates of such nets go with their width under {optimizer} was not tried with nets that learn, so that "
    "this is what one step says: carry rates over the depth alone, or tune at two widths"
)
WITHOUT_DATA_OVER_WIDTHS = (
    "tuned rates of residual nets that learn stayed over the width under descent, from 64 to 256 units and from 16 to "
    "32 channels (E1j), which this rule does not say: keep the rate over the width, or give data=(inputs, targets)"
)
# Widths between which trials followed rates of residual nets with branches of one layer, by kind, and under what.
WIDTHS_FOLLOWED, FOLLOWED_UNDER = {CONNECTED: (64, 256), CONVOLUTIONAL: (16, 32)}, ("sgd", "adamw")
BEYOND_WIDTHS = (
    "trials followed rates over the width from 64 to 256 units and from 16 to 32 channels, in residual nets with "
    "branches of one layer, under descent without momentum and AdamW (E1j): this is beyond, so tune at two widths"
)
BY_THE_RELATIVE_CHANGE = (
    "under AdamW trials held rates of residual nets over the width to the relative change of the layers (E1j), and not "
    "to this one: give of='relative'"
)
# By which the outputs carry rates from width 64 to 256 in the same nets, and what tuned rates did.
STAYS = "the rate stays over the width, as tuned rates of residual nets that learn did under descent (E1j)"
OVER_WIDTH: Mapping[str, str] = {
    "sgd": "from width 64 to 256 the outputs' scale of descent fell to 0.23 to 0.30 in residual nets of 2 to 32 "
    "blocks, and tuned rates went to 0.65 to 1.13 times: leave the rate over widths (other nets were not tried)",
    "adamw": "from width 64 to 256 the outputs' scale of AdamW fell to 0.14 to 0.18 in residual nets of 2 to 32 "
    "blocks, and tuned rates to 0.26 to 0.55: give of='relative' over widths, which says 0.25 to 0.35 (other nets were "
    "not tried)",
}

# The tuned optimizers: what others do has not been tried.
TRIED = ("sgd", "adamw", "lion", "muon-adamw")
OF_MUON = (
    "by Muon in all weights nets were trained for an epoch alone: whether tuned rates of nets that learn follow its "
    "step is not known"
)
OF_TIED = (
    "tuned rates of looped GPTs of characters that learn, a block of 32 channels that is applied 1 to 8 times under "
    "AdamW, went as L^(0.02) with branches times L^(-1/2) and as L^(0.11) with 1/L, where one step of all layers says "
    "L^(-0.68) and L^(0.01) (L7b, T5)"
)
OF_CHARACTERS = (
    "one step carries too small a rate to greater depth: tuned rates of GPTs of characters that learn, under AdamW, "
    "fell with branches times (2 L)^(-1/2) as L^(-0.14) at 32 channels, where it says L^(-0.49) (E1e), and as "
    "L^(-0.25) at 64, where it says L^(-0.51) (E1l); without a factor as L^(-0.13) over 4 to 32 blocks, where it says "
    "L^(-0.8) (E5f); with 1/(2 L) they nearly stayed, as it says"
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
