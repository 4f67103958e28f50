"""What a law in the size of a net may be about: how each quantity is drawn, its theory, and what it tends to."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from meanfield.common.seeds import streams_by_purpose
from meanfield.common.validation import Array, PremiseWarning
from meanfield.nets.layered import Sequential
from meanfield.nets.net import Chain, Net
from meanfield.simulation.draws import draw_inputs
from meanfield.simulation.measures.base import Measure
from meanfield.simulation.measures.energies import Energies
from meanfield.simulation.training.sharpness import Sharpness, rate_at
from meanfield.theory.learning_rate import law_over_depth
from meanfield.theory.prediction import predict
from meanfield.theory.tangent_kernels import mean_field_curvatures

EXACT, MEAN_FIELD = LEVELS = ("exact", "mean_field")
LABEL_SCALE = "label_learning_rate_scale"
# Samples of the batch on which curvatures are drawn, where none is given.
SAMPLES = 32


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
        companions: variables that are drawn with it and have theory where it has none.
    """

    name: str
    words: str
    power: float
    companions: tuple[str, ...] = ()

    @property
    def drawn(self) -> tuple[str, ...]:
        """The variables that are taken of what is measured."""
        return (self.name, *self.companions)

    @abstractmethod
    def measure(self, net: Net, seed: int, inputs: Array | None, loss: str) -> Measure:
        """What is read off every draw of a net; the seed draws a batch where the measure needs one.

        It is that of the question, so that nets of one input share the batch: another one would move their means by
        more than their errors, which are those of draws.
        """

    @abstractmethod
    def theory(self, net: Net, measure: Measure) -> Theory:
        """What theory says of these draws."""

    def limit(self, net: Net, depths: Sequence[int]) -> tuple[float, str]:
        """The exponent in the depth that it tends to, or NaN and why none is known."""
        return nan, f"what {self.words} tends to is known of no net"


@dataclass(frozen=True)
class EnergyScale(LawQuantity):
    """The learning rate at which a mean energy of the layers is 1."""

    name: str
    words: str
    companions: tuple[str, ...] = ()
    power = -0.5

    def measure(self, net: Net, seed: int, inputs: Array | None, loss: str) -> Measure:
        return Energies(inputs=inputs, loss=loss)

    def theory(self, net: Net, measure: Any) -> Theory:
        numbers: dict[tuple[str, str], float] = {}
        refusals: dict[str, str] = {}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", PremiseWarning)
            for level in LEVELS:
                try:
                    predicted = predict(net, level=level, inputs=measure.inputs, loss=measure.loss)  # type: ignore[arg-type]
                except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
                    refusals |= dict.fromkeys(self.drawn, str(error))
                    continue
                left_out = predicted.attrs.get("left_out", f"it is not among what level {level!r} predicts")
                refusals |= {name: left_out for name in self.drawn if name not in predicted}
                numbers |= {(name, level): float(predicted[name]) for name in self.drawn if name in predicted}
        known = {name for name, _ in numbers}
        missing = {name: why for name, why in refusals.items() if name not in known}
        return Theory(numbers, missing, tuple(str(each.message) for each in said))

    def limit(self, net: Net, depths: Sequence[int]) -> tuple[float, str]:
        if not isinstance(net, Sequential):
            return nan, f"no power of the depth is known that eta* of a {type(net).__name__} tends to"
        exponent, why = law_over_depth(net, depths)
        return exponent, f"eta* of this {type(net).__name__} tends to no power of the depth: {why}" if why else ""


class OutputScale(LawQuantity):
    """The learning rate at which the outputs move by 1."""

    name = "output_learning_rate_scale"
    words = "eta* of the outputs"
    power = -0.5

    def measure(self, net: Net, seed: int, inputs: Array | None, loss: str) -> Measure:
        return Energies(inputs=inputs, loss=loss, scales=True)

    def theory(self, net: Net, measure: Measure) -> Theory:
        return Theory({}, {self.name: "the change of the readout's own weights is followed at no level"})


class StableRate(LawQuantity):
    """2 / lambda_max of the loss on a batch: the given one, or white Gaussian inputs by the net's law."""

    name = "stable_rate"
    words = "2 / lambda_max"
    power = 1.0

    def measure(self, net: Net, seed: int, inputs: Array | None, loss: str) -> Measure:
        if inputs is None:
            batch = Chain.of(net, inputs=SAMPLES)
            drawn = draw_inputs(batch, streams_by_purpose(seed, range(1)))[0]
            inputs = drawn.swapaxes(0, 1).reshape(batch.input_shape)
        return Sharpness(inputs=inputs, loss=loss)

    def theory(self, net: Net, measure: Any) -> Theory:
        try:
            curvatures = mean_field_curvatures(net, measure.inputs, measure.loss)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            return Theory({}, {self.name: str(error)})
        return Theory({(self.name, MEAN_FIELD): float(np.mean(rate_at(curvatures)))}, {})


WHOLE = EnergyScale("learning_rate_scale", "eta*", (LABEL_SCALE,))
LAW_QUANTITIES: dict[str, LawQuantity] = {
    quantity.name: quantity
    for quantity in (WHOLE, EnergyScale(LABEL_SCALE, "eta* of the label term"), OutputScale(), StableRate())
}
