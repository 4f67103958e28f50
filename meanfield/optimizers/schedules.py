"""How the learning rate goes over the steps of training: every step takes a share of the rate that is given."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from meanfield.common.validation import Array, not_negative, require_positive, settle


class Schedule(ABC):
    """Shares of a learning rate by step, as frozen settings; the largest share is 1, so that the rate is the peak."""

    @abstractmethod
    def shares(self, steps: int) -> Array:
        """The share of the rate that each of so many steps takes, (steps,)."""


@dataclass(frozen=True)
class Constant(Schedule):
    """Every step takes the whole rate."""

    def shares(self, steps: int) -> Array:
        return np.ones(steps)


@dataclass(frozen=True)
class WarmupCosine(Schedule):
    """The rate rises linearly to its peak, and falls from there by half a cosine.

    Of T steps the first W, ``warmup`` T to the nearest whole number, take shares 1/(W + 1), 2/(W + 1), .. of the rate,
    and the next one the whole of it. From there step t = W + 1, .., T takes
    final + (1 - final) (1 + cos(pi (t - W - 1) / (T - W))) / 2, so that no step is without effect.

    The cosine ends at 0, as Loshchilov and Hutter 2017 have it; a tenth of the steps is the usual warmup. Language
    models often end at a tenth of the peak: ``final=0.1`` (Hoffmann et al. 2022).

    Args:
        warmup: the share of steps that warm up, at least 0 and below 1.
        final: the share of the rate at which the cosine ends, from 0 to 1.

    Raises:
        TypeError, ValueError: what is no number, or lies outside its range.

    Source: Loshchilov and Hutter 2017, eq. 5, without restarts; warmup as in Goyal et al. 2017, section 2.2.

    Examples:
        >>> import meanfield as mf
        >>> mf.WarmupCosine(warmup=0.25).shares(8).round(3).tolist()
        [0.333, 0.667, 1.0, 0.933, 0.75, 0.5, 0.25, 0.067]
    """

    warmup: float = 0.1
    final: float = 0.0

    def __post_init__(self) -> None:
        warmup, final = (not_negative(f"{name} of a schedule", getattr(self, name)) for name in ("warmup", "final"))
        if warmup >= 1:
            raise ValueError(f"warmup of a schedule is {warmup:g}; give a share of the steps, below 1")
        if final > 1:
            raise ValueError(f"final of a schedule is {final:g}; give a share of the rate, at most 1")
        settle(self, warmup=warmup, final=final)

    def shares(self, steps: int) -> Array:
        warm = round(self.warmup * steps)
        rising = np.arange(1, warm + 1) / (warm + 1)
        falling = (1 + np.cos(np.pi * np.arange(steps - warm) / max(1, steps - warm))) / 2
        return np.concatenate([rising, self.final + (1 - self.final) * falling])


@dataclass(frozen=True)
class Exponential(Schedule):
    """The rate grows by one factor a step, from this share of it at the first step to the whole of it at the last."""

    first: float

    def __post_init__(self) -> None:
        first = require_positive("first of a schedule", self.first, why="nothing grows from 0 by a factor")
        if first > 1:
            raise ValueError(f"first of a schedule is {first:g}; give a share of the rate, at most 1")
        settle(self, first=first)

    def shares(self, steps: int) -> Array:
        return self.first ** np.linspace(1, 0, steps)


# By the names that options take.
SCHEDULES: dict[str, Schedule] = {"constant": Constant(), "warmup_cosine": WarmupCosine()}
