"""What the papers print: slopes measured on trained nets, and exponents of eta* by family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.common.estimates import fit_power_law
from meanfield.nets.families.residual import Residual
from meanfield.nets.families.tied_loop import TiedLoop

# P0's exponent, for every net that it treats.
P0_EXPONENT = -1.5


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


# P0 table 1, on CIFAR-10, CIFAR-100 and ImageNet.
TABLE_1 = {"CNN": (-1.339, -1.392, -1.329), "ResNet": (-1.435, -1.355, -1.567), "ViT": (-1.441, -1.371, -1.178)}

# P0 table 3, CNN on CIFAR-10 by activation; and appendix F, the gain per layer of GELU at weights of variance 2/fan_in.
RELU_SLOPE, GELU_SLOPE = -1.339, -1.379
HE_GAIN = 0.912

COMMON_SWEEP = tuple(range(3, 31))
JUDGED = ("P0 table 1, all nine", "P0 table 5, ViT", "P0 table 6, audio")

# P0 table 5 with its source net; the rescaled rates that it prints follow from effective depths D + 1, D the blocks.
VIT_RATES = {7: 5.360e-3, 9: 4.874e-3, 11: 3.249e-3, 13: 2.462e-3, 21: 1.194e-3}

# P0 table 6, whose slope -1.578 the fit reproduces.
AUDIO_RATES = {6: 6.31e-2, 10: 2.39e-2, 14: 2.39e-2, 18: 9.03e-3}


def measured_slopes() -> list[MeasuredSlope]:
    """The means over table 1, whole and by architecture, and the fits through the rates that tables 5 and 6 print."""
    means = {"P0 table 1, all nine": sum(TABLE_1.values(), ())} | {f"P0 table 1, {k}": v for k, v in TABLE_1.items()}
    found = [_mean(source, slopes) for source, slopes in means.items()]
    return [*found, _fit("P0 table 5, ViT", VIT_RATES), _fit("P0 table 6, audio", AUDIO_RATES)]


def _mean(source: str, slopes: tuple[float, ...]) -> MeasuredSlope:
    error = float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))
    return MeasuredSlope(source, COMMON_SWEEP, float(np.mean(slopes)), error, len(slopes) - 1)


def _fit(source: str, rates: dict[int, float]) -> MeasuredSlope:
    law = fit_power_law(list(rates), list(rates.values()))
    return MeasuredSlope(source, tuple(rates), law.exponent, law.stderr, len(rates) - 2)


def judged_slopes() -> list[MeasuredSlope]:
    """Those on which a verdict can rest: the mean of table 1, and the two sweeps whose depths are printed."""
    return [found for found in measured_slopes() if found.source in JUDGED]


def printed_exponents(architecture: Any) -> dict[str, float]:
    """Exponents x of eta* ~ L^x that papers print for a net or a loop, by paper."""
    if isinstance(architecture, TiedLoop):  # eq. 4, and table 1 for stacks, after Dey et al.
        return {"P2": float(architecture.alpha) - 1}
    if isinstance(architecture, Residual):
        return printed_residual_exponents(architecture.scaling, architecture.block_depth)
    return {"P0": P0_EXPONENT}


def printed_residual_exponents(scaling: str, block_depth: int) -> dict[str, float]:
    """Exponents in the number of blocks: P0 sections 3.1, 3.4 for any branch, P1 condition B.1 and table 1 for SGD."""
    found = {"P0": P0_EXPONENT} if scaling in ("init", "multiplier_sqrt") else {}
    if scaling == "multiplier_sqrt" and block_depth == 1:
        found["P1"] = 0.0
    if scaling == "multiplier_linear" and block_depth > 1:
        found["P1"] = 1.0
    return found
