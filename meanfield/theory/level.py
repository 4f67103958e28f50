"""What a level of theory is to `predict`: it says which architectures and options it serves, and predicts them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from meanfield.common.validation import Array, inputs_described
from meanfield.nets.inputs import Batch
from meanfield.nets.layered import Sequential
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
    accuracy: float | None = None

    @property
    def asked(self) -> set[str]:
        """Names of the options that differ from their defaults."""
        given = {name for name in ("inputs", "batch", "pairs", "accuracy") if getattr(self, name) is not None}
        flags = {name for name in ("spread", "correlations", "by_site") if getattr(self, name)}
        return given | flags | ({"loss"} if self.loss != "squared" else set())


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

    @abstractmethod
    def has(self, net: Any, inputs: Array | None) -> bool:
        """Whether there is this level of theory for the net."""

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
OVERLAPS = "overlaps of pairs and spreads are predicted at level 'exact' alone; level is {level!r}"
BATCHES = (
    "batch and loss are predicted at level 'mean_field' of plain nets, under a pooled readout where its label term is; "
    "this is level {level!r} of {kind} with readout {readout!r}: leave them out"
)


class NetLevel(Level):
    """A level of theory for nets of layers."""

    family = Sequential
    refusals: ClassVar[Mapping[str, str]] = {
        "correlations": "correlations are those of the steps of a TiedLoop; nets have none: leave the option out",
        "pairs": OVERLAPS,
        "spread": OVERLAPS,
        "by_site": "by_site is the label term's at level 'mean_field', for plain labels and squared loss, where it is "
        "predicted; level is {level!r}, readout {readout!r}: leave the option out",
        "batch": BATCHES,
        "loss": BATCHES,
        "accuracy": ACCURACY,
    }


def with_label_term(log_overlap: Array, log_label: Array | None) -> dict[str, Array]:
    """The overlap energy and, where it is known, the label term with its scale; with their logarithms."""
    logs = {"overlap_energy": log_overlap}
    if log_label is not None:
        logs |= {"label_term": log_label, "label_learning_rate_scale": -0.5 * log_mean(log_label)}
    return with_logarithms(logs)


def with_logarithms(logs: Mapping[str, Any]) -> dict[str, Array]:
    """Quantities from their natural logarithms, infinite where they overflow, and those as log_NAME."""
    with np.errstate(over="ignore", under="ignore"):
        plain = {name: np.exp(log) for name, log in logs.items()}
    return plain | {f"log_{name}": log for name, log in logs.items()}


def log_mean(logs: Array) -> Array:
    """ln of the mean over the last axis of what has these logarithms."""
    if logs.shape[-1] == 1:
        return logs[..., 0]
    return np.asarray(logsumexp(logs, axis=-1) - np.log(logs.shape[-1]))
