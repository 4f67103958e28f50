"""What a law in the size of a net may be about: how each quantity is drawn, its theory, and what it tends to.

Without data it is that of the mean over draws, which theory predicts. On data it is the median over draws, as a mean is
made by rare nets where energies scatter much, and a net that is trained is none of them.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import xarray as xr

from meanfield.common.seeds import streams_by_purpose
from meanfield.common.validation import PremiseWarning
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Chain, Net
from meanfield.optimizers.base import Optimizer
from meanfield.optimizers.by_name import Hybrid
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import QUANTITIES
from meanfield.quantities.step_scales import median_over_draws
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.base import Measure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.measures.step_scales import StepScales
from meanfield.simulation.training.sharpness import Sharpness
from meanfield.theory.learning_rate import law_over_depth
from meanfield.theory.prediction import predict
from meanfield.theory.tangent_kernels import mean_field_curvatures

EXACT, MEAN_FIELD = LEVELS = ("exact", "mean_field")
LABEL_SCALE = "label_learning_rate_scale"
# Samples of the batch on which curvatures are drawn, where none is given.
SAMPLES = 32
ON_DATA = "draws are on data, and theory has white inputs and labels"
WITH_EPSILON = "draws have an epsilon, and theory has none"


@dataclass(frozen=True, kw_only=True)
class DrawSetting:
    """Under what nets of one size are drawn.

    Attributes:
        loss: "squared" or "cross_entropy".
        optimizer, epsilon: whose first step from rest it is.
        inputs: a fixed batch, or None.
        data: inputs and targets of the net, from which every draw takes a mini-batch, or None.
        batch_size: samples of a mini-batch; all of them if None.
    """

    loss: str = "squared"
    optimizer: str | Optimizer | Hybrid = "sgd"
    epsilon: float = 0.0
    inputs: Any = None
    data: tuple[Any, Any] | None = None
    batch_size: int | None = None

    @property
    def step(self) -> FirstStep:
        """The step of all weights."""
        return FirstStep(self.optimizer, self.epsilon)

    @property
    def statistic(self) -> str:
        """Of the draws, "mean" or "median"."""
        return "mean" if self.data is None else "median"

    @property
    def without_theory(self) -> str:
        """Why no theory serves such draws of any net; empty if one may."""
        return ON_DATA if self.data is not None else WITH_EPSILON if self.epsilon else ""


@dataclass(frozen=True)
class Theory:
    """What theory says of one net: the numbers by (name, level), why others are missing, and the premises it breaks.

    Attributes:
        numbers: by name of a variable and level; those that there are.
        missing: by name, why there is none at any level.
        premises: what `predict` warned of.
    """

    numbers: dict[tuple[str, str], float]
    missing: dict[str, str]
    premises: tuple[str, ...] = ()


class LawQuantity(ABC):
    """A quantity whose law in the size of a net is asked for.

    Attributes:
        name: as `depth_law` takes it, and its variable is called.
        words: what reports call it.
        power: of the mean over draws that it is; -1/2 of a mean energy.
    """

    name: str
    words: str
    power: float

    def drawn(self, setting: DrawSetting) -> tuple[str, ...]:
        """The variables that are taken of what is measured: its own, and those whose theory may stand in."""
        return (self.name,)

    def refusal(self, setting: DrawSetting) -> str:
        """Why it is not drawn under this setting, in one sentence; empty if it is."""
        return ""

    @abstractmethod
    def measure(self, net: Net, seed: int, setting: DrawSetting) -> Measure:
        """What is read off every draw of a net; the seed draws a batch where the measure needs one.

        It is that of the question, so that nets of one input share the batch: another one would move their means by
        more than their errors, which are those of draws.
        """

    @abstractmethod
    def theory(self, net: Net, measure: Measure) -> Theory:
        """What theory says of these draws."""

    def limit(self, net: Net, depths: Sequence[int], setting: DrawSetting) -> tuple[float, str]:
        """The exponent in the depth that it tends to, or NaN and why none is known."""
        return nan, f"what {self.words} tends to is known of no net"


@dataclass(frozen=True)
class EnergyScale(LawQuantity):
    """The learning rate at which a mean square of what one step changes is 1.

    Attributes:
        of_whole_net: whether the readout moves with the layers under descent, too, as relative changes and outputs ask.
        companion: a variable that is drawn with it and has theory where it has none.
        has_limit: whether it tends to what its own label term tends to.
    """

    name: str
    words: str
    of_whole_net: bool = False
    companion: str = ""
    has_limit: bool = False
    power = -0.5

    def drawn(self, setting: DrawSetting) -> tuple[str, ...]:
        return (self.name, self.companion) if self.companion and setting.data is None else (self.name,)

    def refusal(self, setting: DrawSetting) -> str:
        if self.name != LABEL_SCALE or setting.data is None:
            return ""
        return (
            f"{LABEL_SCALE} is that of random labels, and data have labels of their own; take learning_rate_scale, or "
            "leave data out"
        )

    def measure(self, net: Net, seed: int, setting: DrawSetting) -> Measure:
        step: dict[str, Any] = {"optimizer": setting.optimizer, "epsilon": setting.epsilon, "loss": setting.loss}
        if setting.data is None:
            return Energies(inputs=setting.inputs, scales=self.of_whole_net, **step)
        inputs, targets = setting.data
        return StepScales(inputs=inputs, targets=targets, batch_size=setting.batch_size, **step)

    def theory(self, net: Net, measure: Any) -> Theory:
        names = (self.name, self.companion) if self.companion else (self.name,)
        asked: dict[str, Any] = {"inputs": measure.inputs, "loss": measure.loss}
        if not measure.step.is_descent:
            asked["optimizer"] = measure.optimizer
        numbers: dict[tuple[str, str], float] = {}
        refusals: dict[str, str] = {}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", PremiseWarning)
            for level in LEVELS:
                try:
                    scales = self.of_whole_net and level == MEAN_FIELD
                    predicted = predict(net, level=level, scales=scales, **asked)  # type: ignore[arg-type]
                except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
                    refusals |= dict.fromkeys(names, str(error))
                    continue
                left_out = predicted.attrs.get("left_out", f"it is not among what level {level!r} predicts")
                refusals |= {name: without_names(left_out) for name in names if name not in predicted}
                numbers |= {(name, level): float(predicted[name]) for name in names if name in predicted}
        known = {name for name, _ in numbers}
        missing = {name: why for name, why in refusals.items() if name not in known}
        return Theory(numbers, missing, tuple(str(each.message) for each in said))

    def limit(self, net: Net, depths: Sequence[int], setting: DrawSetting) -> tuple[float, str]:
        if not self.has_limit:
            return super().limit(net, depths, setting)
        if not isinstance(net, Sequential):
            return nan, f"no power of the depth is known that eta* of a {type(net).__name__} tends to"
        exponent, why = law_over_depth(net, depths, optimizer=setting.optimizer)
        return exponent, f"eta* of this {type(net).__name__} tends to no power of the depth: {why}" if why else ""


class StableRateLaw(LawQuantity):
    """2 / lambda_max of the loss on a batch: the given one, or white Gaussian inputs by the net's law."""

    name = "stable_rate"
    words = "2 / lambda_max"
    power = 1.0

    def refusal(self, setting: DrawSetting) -> str:
        if not setting.step.is_descent:
            return (
                f"stable_rate is the largest rate of gradient descent, and optimizer is {setting.step.name!r}; leave "
                "the optimizer out, or take another quantity"
            )
        if setting.data is not None:
            return "stable_rate takes a fixed batch as inputs, and no data; leave data out, or take another quantity"
        return ""

    def measure(self, net: Net, seed: int, setting: DrawSetting) -> Measure:
        inputs = setting.inputs
        if inputs is None:
            batch = Chain.of(net, inputs=SAMPLES)
            drawn = draw_inputs(batch, streams_by_purpose(seed, range(1)))[0]
            inputs = drawn.swapaxes(0, 1).reshape(batch.input_shape)
        return Sharpness(inputs=inputs, loss=setting.loss, optimizer=setting.step.optimizer)

    def theory(self, net: Net, measure: Any) -> Theory:
        try:
            curvatures = mean_field_curvatures(net, measure.inputs, measure.loss)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            return Theory({}, {self.name: str(error)})
        return Theory({(self.name, MEAN_FIELD): float(np.mean(measure.rate_at(curvatures)))}, {})


WHOLE = EnergyScale("learning_rate_scale", "eta*", companion=LABEL_SCALE, has_limit=True)
LAW_QUANTITIES: dict[str, LawQuantity] = {
    quantity.name: quantity
    for quantity in (
        WHOLE,
        EnergyScale(LABEL_SCALE, "eta* of the label term", has_limit=True),
        EnergyScale("relative_learning_rate_scale", "eta* of relative changes", of_whole_net=True),
        EnergyScale("last_learning_rate_scale", "eta* of the last layer", of_whole_net=True),
        EnergyScale("output_learning_rate_scale", "eta* of the outputs", of_whole_net=True),
        StableRateLaw(),
    )
}


def statistic_of(measured: xr.Dataset, name: str, statistic: str) -> tuple[float, float, float]:
    """The mean or the median over draws, its standard error, and the share that one draw has in it."""
    if statistic == "mean":
        return tuple(float(measured[f"{name}{end}"]) for end in ("", "_stderr", "_largest_share"))  # type: ignore
    return *median_over_draws(measured, name), 1 / measured.attrs["draws"]


def without_names(reasons: str) -> str:
    """Reasons of `predict`, without the names of the variables that stand before each."""
    return "; ".join(dict.fromkeys(REASON.sub("", reason) for reason in reasons.split("; ")))


REASON = re.compile(rf"^(?:(?:{'|'.join(map(re.escape, QUANTITIES))})(?:, )?)+: ")
