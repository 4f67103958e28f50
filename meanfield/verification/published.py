"""What the papers print: slopes measured on trained nets, and exponents of eta* by family."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.common.power_laws import fit_power_law
from meanfield.nets.loop import TiedLoop
from meanfield.nets.residual import Residual
from meanfield.theory.laws import NoPower, branch_powers, scaling_with
from meanfield.theory.loops import step_exponent

PAPERS = ("Zhang et al. 2026", "Zheng et al. 2026", "Wang et al. 2026")
PLAIN, SPECTRAL, LOOPED = PAPERS

# Exponent of eta* in depth that Zhang et al. 2026 derive, for every net that they treat.
PAPERS_EXPONENT = -1.5


@dataclass(frozen=True)
class MeasuredSlope:
    """A slope d ln eta* / d ln L of tuned learning rates, with its standard error and degrees of freedom.

    ``depths`` are those that it was fitted over; the papers do not print them for table 1.
    """

    source: str
    depths: tuple[int, ...]
    slope: float
    stderr: float
    freedom: int


# Zhang et al. 2026, table 1: on CIFAR-10, CIFAR-100 and ImageNet.
TABLE_1 = {"CNN": (-1.339, -1.392, -1.329), "ResNet": (-1.435, -1.355, -1.567), "ViT": (-1.441, -1.371, -1.178)}

# Table 3, CNN on CIFAR-10 by activation; and appendix F, the gain per layer of GELU at weights of variance 2/fan_in.
RELU_SLOPE, GELU_SLOPE = -1.339, -1.379
HE_GAIN = 0.912
# Table 3, ResNet on CIFAR-10.
RESNET_BATCH_NORM_SLOPE, RESNET_DROPOUT_SLOPE = -1.701, -1.568
# Table 3, trained by Adam on CIFAR-10: a CNN, and a ResNet of branch weights times K^(-1/2).
ADAM_SLOPES = {"CNN": -1.207, "ResNet": -1.269}

# Table 3, pre-norm ViT on ImageNet; and figure 7, CNN on CIFAR-10 by kernel size.
PRE_NORM_SLOPE = -1.131
KERNEL_SLOPES = {3: -1.74, 4: -1.44, 5: -1.46}
# Table 4, ViT on CIFAR-10 by width, after one, two and three epochs.
TABLE_4 = {288: (-1.352, -1.531, -1.207), 384: (-1.360, -1.444, -1.501), 480: (-1.345, -1.647, -1.550)}
# Section 4.5: the range in which the slopes of all configurations lie; those of table 4 and figure 7 do, too.
ALL_SLOPES = (-1.8, -1.1)

COMMON_SWEEP = tuple(range(3, 31))

# Table 5 with its source net; the rescaled rates that it prints follow from effective depths D + 1, D the blocks.
VIT_RATES = {7: 5.360e-3, 9: 4.874e-3, 11: 3.249e-3, 13: 2.462e-3, 21: 1.194e-3}

# Table 6, whose slope -1.578 the fit reproduces.
AUDIO_RATES = {6: 6.31e-2, 10: 2.39e-2, 14: 2.39e-2, 18: 9.03e-3}


def measured_slopes() -> list[MeasuredSlope]:
    """The means over table 1, whole and by architecture, and the fits through the rates that tables 5 and 6 print."""
    means = {"table 1, all nine": sum(TABLE_1.values(), ())} | {f"table 1, {net}": v for net, v in TABLE_1.items()}
    slopes = [_mean(source, printed) for source, printed in means.items()]
    return [*slopes, _fit("table 5, ViT", VIT_RATES), _fit("table 6, audio", AUDIO_RATES)]


def _mean(source: str, slopes: tuple[float, ...]) -> MeasuredSlope:
    error = float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))
    return MeasuredSlope(f"{PLAIN}, {source}", COMMON_SWEEP, float(np.mean(slopes)), error, len(slopes) - 1)


def _fit(source: str, rates: dict[int, float]) -> MeasuredSlope:
    law = fit_power_law(list(rates), list(rates.values()))
    return MeasuredSlope(f"{PLAIN}, {source}", tuple(rates), law.exponent, law.stderr, len(rates) - 2)


def judged_slopes() -> list[MeasuredSlope]:
    """Those on which a verdict can rest: the mean of table 1, and the two sweeps whose depths are printed."""
    all_architectures, *_by_architecture, vit, audio = measured_slopes()
    return [all_architectures, vit, audio]


def printed_exponents(net: Any) -> dict[str, float]:
    """Exponents x of eta* ~ L^x that papers print for a net or a loop, by paper.

    Which family of a paper a net belongs to is read off its layers, or its steps, not off the names of its fields.
    """
    try:
        if isinstance(net, TiedLoop):  # eq. 4, and table 1 for stacks, after Dey et al.
            return {LOOPED: step_exponent(net) - 1}
        if isinstance(net, Residual):
            powers = branch_powers(net)
            return printed_residual_exponents(scaling_with(powers), len(powers.variances))
    except NoPower:
        return {}  # no paper treats such a family
    return {PLAIN: PAPERS_EXPONENT}


def printed_residual_exponents(scaling: str, block_depth: int, *, descent: bool = True) -> dict[str, float]:
    """Exponents in the number of blocks: Zhang et al. 2026, sections 3.1, 3.4, for any branch, under descent; Zheng et
    al. 2026, tables 11 and 5, for SGD, and tables 9, 10, 12 and 3, 4, 6, for optimizers that normalise."""
    printed = {PLAIN: PAPERS_EXPONENT} if descent and scaling in ("init", "multiplier_sqrt") else {}
    if scaling == "multiplier_sqrt" and block_depth == 1:
        printed[SPECTRAL] = 0.0 if descent else -0.5
    if scaling == "multiplier_linear" and block_depth > 1:
        printed[SPECTRAL] = 1.0 if descent else 0.0
    return printed
