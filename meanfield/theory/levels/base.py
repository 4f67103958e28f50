"""A level of theory that `predict` chooses from: what it is asked, which nets it serves and what it answers.

There are levels of nets of layers, of loops and of Transformers (`meanfield.theory.levels`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import xarray as xr

from meanfield.common.validation import Array, inputs_described
from meanfield.nets.inputs import Batch
from meanfield.optimizers.first_steps import FirstStep
from meanfield.quantities.registry import Coordinates, predicted_dataset


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `predict` is asked beside the level, and its defaults."""

    inputs: Array | None = None
    batch: Batch | None = None
    loss: str = "squared"
    pairs: Iterable[Any] | None = None
    spread: bool = False
    correlations: bool = False
    by_site: bool = False
    scales: bool = False
    accuracy: float | None = None
    step: FirstStep = field(default_factory=FirstStep)

    @property
    def asked(self) -> set[str]:
        """Names of the options that differ from their defaults."""
        given = {name for name in ("inputs", "batch", "pairs", "accuracy") if getattr(self, name) is not None}
        flags = {name for name in ("spread", "correlations", "by_site", "scales") if getattr(self, name)}
        differs = {"loss": self.loss != "squared", "optimizer": not self.step.is_descent}
        return given | flags | {name for name, asked in differs.items() if asked}

    @property
    def of_one_step(self) -> bool:
        """Whether what the step changes is asked relative to layers, and of outputs, as always of other optimizers."""
        return self.scales or not self.step.is_descent


class Level(ABC):
    """One level of theory for one kind of net, loops being one.

    Attributes:
        name: how `predict` calls it.
        family: what kind of net it is for.
        whose: those of that kind that it serves, in words.
        refusals: by option that some level of this kind takes, why another one does not: the first that applies is
            given, filled in with the ``level``, the net's ``kind`` and its ``readout``.
    """

    name: ClassVar[str]
    family: ClassVar[type]
    whose: ClassVar[str]
    refusals: ClassVar[Mapping[str, str]]

    def has(self, net: Any, inputs: Array | None) -> bool:
        """Whether there is this level of theory for the net; there is unless a level says otherwise."""
        return True

    @abstractmethod
    def takes(self, net: Any, options: Options) -> set[str]:
        """Names of the options that this level takes for it."""

    @abstractmethod
    def predict(self, net: Any, options: Options) -> xr.Dataset:
        """The dataset of `meanfield.predict`, for what this level serves."""

    def serves(self, net: Any, options: Options) -> str | None:
        """None, or the reason why this level does not predict this."""
        if not self.has(net, options.inputs):
            return f"{self.name!r} is for {self.whose}"
        accepted, readout = self.takes(net, options), getattr(net, "readout", "")
        for option, sentence in self.refusals.items():
            if option in options.asked - accepted:
                return sentence.format(level=self.name, kind=type(net).__name__, readout=readout)
        return None

    def dataset(
        self,
        net: Any,
        options: Options,
        values: Mapping[str, Array],
        attrs: Mapping[str, Any] | None = None,
        coords: Coordinates | None = None,
    ) -> xr.Dataset:
        """The values with the level, the inputs and ``attrs`` as attributes."""
        described = {"level": self.name, **inputs_described(options.inputs), **(attrs or {})}
        return predicted_dataset(net, values, described, coords)


ACCURACY = (
    "accuracy is that of averages over softmaxes of random logits, of Transformers at level 'mean_field'; this is "
    "level {level!r} of {kind}: leave it out"
)
OPTIMIZER = (
    "the step of another optimizer than descent is predicted at level 'mean_field' of nets of layers and of loops; "
    "this is level {level!r} of {kind}: leave optimizer out, or draw it with `simulate`"
)
SCALES = (
    "scales of layers relative to themselves and of the outputs are predicted at level 'mean_field' of nets of layers; "
    "this is level {level!r} of {kind}: leave scales out, or draw them by `simulate` with `Energies(scales=True)`"
)
REFUSED = {"accuracy": ACCURACY, "optimizer": OPTIMIZER, "scales": SCALES}
