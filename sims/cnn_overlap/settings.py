"""The same nets under other readouts, numbers of outputs and heads: what decides the exponent of eta*.

A step has two parts: what the labels cause (the label term B) and what the net's own outputs cause (the output term
A). Errors below the head are proportional to its weights, and the outputs are, too. So with s the variance of these
weights, B goes as s and A as s^2, net by net: draws under one head are draws under all heads of the same readout.

At leading order in 1/channels independent outputs add up: with M of them M B is a constant, and M A a constant and a
part that goes as M. So predictions at two numbers of outputs are predictions at all.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

import meanfield as mf
from meanfield.common import Array
from meanfield.nets import ConvNet
from meanfield.theory import output_term
from meanfield.verification import PAPERS_EXPONENT, Rung, Series, at_finite_channels, best
from sims.common.datasets import labels_in_mean_field, over, suffixed


@dataclass(frozen=True)
class ReadoutSetting:
    """What stands on top of the layers."""

    readout: str
    outputs: int
    head: str

    def __str__(self) -> str:
        return f"{self.readout}, {self.outputs}, {self.head}"

    @property
    def drawn(self) -> tuple[str, int]:
        """What nets are drawn with; the variance of the head's weights is no part of it."""
        return self.readout, self.outputs

    @classmethod
    def of(cls, net: ConvNet) -> ReadoutSetting:
        return cls(net.readout, net.outputs, net.head)

    def on(self, net: ConvNet) -> ConvNet:
        return net.replace(readout=self.readout, outputs=self.outputs, head=self.head)


# Zhang et al. 2026: global pooling, ten classes, weights of variance 1/n.
PAPERS = ReadoutSetting("pooled", 10, "fan_in")
SETTINGS = (PAPERS, ReadoutSetting("pooled", 10, "mup"), ReadoutSetting("convolution", 100, "he"))
# Nets beside those that a run asks for are drawn so many times less often.
FEWER = 8
FEWEST_DRAWS = 2
# Numbers of outputs between which an exponent is looked for; no net needs to have them.
FEWEST_OUTPUTS, MOST_OUTPUTS = 1e-3, 1e9
OUTPUT_SCALE = "output_learning_rate_scale"
# Of each scale, the parts of the mean square that it is the root of.
PARTS = {"learning_rate_scale": "BA", "label_learning_rate_scale": "B", OUTPUT_SCALE: "A"}
LEVELS = ("finite_channels", "mean_field")


def settings_of(net: ConvNet) -> list[ReadoutSetting]:
    """Those that a run sets side by side: the paper's, and two more, and that of its net."""
    return list(dict.fromkeys([*SETTINGS, ReadoutSetting.of(net)]))


def nets_beside(net: ConvNet) -> list[ConvNet]:
    """Nets to draw so that every setting is a drawn one, or that under another head."""
    by_readout = {setting.drawn: setting for setting in reversed(settings_of(net))}
    own = ReadoutSetting.of(net).drawn
    return [setting.on(net) for drawn, setting in reversed(by_readout.items()) if drawn != own]


def draws_beside(draws: int) -> int:
    return max(FEWEST_DRAWS, draws // FEWER)


@contextmanager
def premises_in_the_report() -> Iterator[None]:
    """Without warnings of what a factor corrects, or the report says."""
    with warnings.catch_warnings():
        for premise in ("inputs are drawn with", "the mean field of the"):
            warnings.filterwarnings("ignore", premise, mf.PremiseWarning)
        yield


@dataclass(frozen=True)
class DrawnNet:
    """A net, its draws and what theory has of its terms, which serve all heads of its readout."""

    net: ConvNet
    known: xr.Dataset

    @classmethod
    def beside(cls, net: ConvNet, drawn: xr.Dataset, inputs: Any) -> DrawnNet:
        with premises_in_the_report():
            leading = labels_in_mean_field(net, inputs=inputs)
        finite = at_finite_channels(Rung(net, drawn, leading, inputs))
        levels = [suffixed(leading, "mean_field"), suffixed(finite, "finite_channels")]
        return cls(net, xr.merge([drawn, *levels], combine_attrs="override"))

    def serves(self, setting: ReadoutSetting) -> bool:
        return ReadoutSetting.of(self.net).drawn == setting.drawn

    def under(self, setting: ReadoutSetting) -> float:
        """By how much the variance of the head's weights is larger."""
        return setting.on(self.net).head_variance / self.net.head_variance


def at_settings(sources: Sequence[DrawnNet]) -> xr.Dataset:
    """What the nets of one depth have in every setting, over ``setting``; the first is the run's own."""
    settings = settings_of(sources[0].net)
    of = [(setting, source) for setting in settings for source in sources if source.serves(setting)]
    rows = [
        terms_under(source.known, source.under(setting)) | {"load": _load(source.net, setting.outputs)}
        for setting, source in of
    ]
    made = over({"setting": [str(setting) for setting in settings]}, rows)
    return made.rename({name: f"setting_{name}" for name in made.data_vars})


def _load(net: ConvNet, outputs: float) -> float:
    """Outputs times depth over channels."""
    return outputs * net.depth / net.channels_by_layer[-1]


def terms_under(known: xr.Dataset, factor: float) -> dict[str, float]:
    """eta* of the update and of each part alone, and A / B at the last layer, the head's variance ``factor`` times as
    large: drawn with errors, and as both levels of theory have them (NaN where they do not)."""
    weights = {"B": factor, "A": factor**2}
    row: dict[str, float] = {}
    for name, parts in PARTS.items():
        row |= _drawn_scale(known, name, {part: weights[part] for part in parts})
    row |= _drawn_ratio(known, factor)
    for level in LEVELS:
        terms = {part: known.get(f"{name}_{level}") for part, name in {"B": "label_term", "A": "output_term"}.items()}
        by_layer = {part: np.nan if term is None else weights[part] * term.values for part, term in terms.items()}
        for name, parts in PARTS.items():
            row[f"{name}_{level}"] = float(np.mean(sum(by_layer[part] for part in parts)) ** -0.5)
        row[f"output_over_label_{level}"] = float(np.ravel(by_layer["A"] / by_layer["B"])[-1])
    return row


def _covariances(known: xr.Dataset) -> dict[str, Array]:
    """Between layers, of the means of B and of A, and of both with each other as far as sums tell it."""
    whole, label, output = (
        known[f"{best(known, name)}_covariance"].values for name in ("update_energy", "label_term", "output_term")
    )
    return {"B": label, "A": output, "BA": (whole - label - output) / 2}


def _drawn_scale(known: xr.Dataset, name: str, weights: Mapping[str, float]) -> dict[str, float]:
    """(sum of weighted means over layers)^(-1/2), with its error and the largest share of a draw in any part."""
    terms = {"B": "label_term", "A": "output_term"}
    mean = sum(weight * float(known[best(known, terms[part])].mean()) for part, weight in weights.items())
    of = {part: float(covariance.mean()) for part, covariance in _covariances(known).items()}
    variance = sum(weight**2 * of[part] for part, weight in weights.items())
    if len(weights) > 1:
        variance += 2 * weights["B"] * weights["A"] * of["BA"]
    share = max(float(known[f"{terms[part]}_largest_share"].max()) for part in weights)
    row = {name: mean**-0.5, f"{name}_stderr": 0.5 * mean**-1.5 * variance**0.5}
    return row | {f"{name}_largest_share": share}


def _drawn_ratio(known: xr.Dataset, factor: float) -> dict[str, float]:
    label, output = (float(known[best(known, name)][-1]) for name in ("label_term", "output_term"))
    of = {part: float(covariance[-1, -1]) for part, covariance in _covariances(known).items()}
    relative = of["A"] / output**2 + of["B"] / label**2 - 2 * of["BA"] / (output * label)
    ratio = factor * output / label
    return {"output_over_label": ratio, "output_over_label_stderr": ratio * relative**0.5}


@dataclass(frozen=True)
class ByOutputs:
    """M times the mean over layers of a net's terms in mean field: of B, of A where outputs are independent labels, and
    what A has beyond, per output."""

    label: float
    as_labels: float
    beyond: float

    @classmethod
    def of(cls, source: DrawnNet, inputs: Any) -> ByOutputs:
        """From A at another number of outputs beside; NaN where it is not predicted."""
        if not {"output_term_mean_field", "label_term_mean_field"} <= set(source.known):
            return cls(np.nan, np.nan, np.nan)
        outputs, other = source.net.outputs, 1 if source.net.outputs > 1 else 2
        label, here = (outputs * float(source.known[f"{name}_term_mean_field"].mean()) for name in ("label", "output"))
        there = other * float(output_term(source.net.replace(outputs=other), inputs).mean())
        beyond = (here - there) / (outputs - other)
        return cls(label, there - other * beyond, beyond)

    def log_scale(self, outputs: float, factor: float) -> float:
        """ln eta* with so many outputs, and so much more variance of the head's weights."""
        energy = factor * self.label + factor**2 * (self.as_labels + self.beyond * outputs)
        return float(-0.5 * np.log(energy / outputs))


def turning_points(dataset: xr.Dataset, by_depth: Sequence[Sequence[DrawnNet]], inputs: Any) -> xr.Dataset:
    """``setting_turning``: outputs times depth over channels, of the deepest net, at which eta* has the exponent that
    the paper prints, in mean field over these depths; NaN where it has it nowhere, or only one depth is drawn."""
    laws = [[ByOutputs.of(source, inputs) for source in sources] for sources in zip(*by_depth, strict=True)]
    values = []
    for setting in settings_of(by_depth[-1][0].net):
        at = scales_under(dataset, str(setting))
        for source, law in zip(by_depth[-1], laws, strict=True):
            if source.serves(setting):
                values.append(_turning_point(at, source, law, source.under(setting)))
    return xr.Dataset({"setting_turning": ("setting", values)})


def _turning_point(at: xr.Dataset, source: DrawnNet, laws: Sequence[ByOutputs], factor: float) -> float:
    def above(log_outputs: float) -> float:
        logs = np.array([law.log_scale(np.exp(log_outputs), factor) for law in laws])
        return Series.of(at, "learning_rate_scale").slope_of("depth", logs) - PAPERS_EXPONENT

    few, many = np.log(FEWEST_OUTPUTS), np.log(MOST_OUTPUTS)
    if len(laws) < 2 or not above(few) > 0 > above(many):
        return float("nan")
    return _load(source.net, float(np.exp(brentq(above, few, many))))


def setting_of(dataset: xr.Dataset) -> ReadoutSetting:
    """That of the run's own net."""
    spec = json.loads(dataset.attrs["architecture"])
    return ReadoutSetting(spec["readout"], spec["outputs"], spec["head"])


def draws_under(dataset: xr.Dataset, setting: ReadoutSetting) -> int:
    """How many draws a setting rests on."""
    is_own = setting_of(dataset).drawn == setting.drawn
    return int(dataset.attrs["draws" if is_own else "draws_beside"])


def scales_under(dataset: xr.Dataset, setting: str) -> xr.Dataset:
    """The scales of one setting over depth, under their names in nets."""
    at = dataset.sel(setting=setting)
    own = [name for name in at.data_vars if str(name).startswith("setting_")]
    return at[own].rename({name: str(name).removeprefix("setting_") for name in own})


def slope_under(at: xr.Dataset, name: str, level: str) -> float:
    """Slope in the depth of a predicted scale, its points weighted as the drawn ones; NaN where it is not predicted."""
    logs = np.log(at[f"{name}_{level}"].values)
    return Series.of(at, name).slope_of("depth", logs) if np.all(np.isfinite(logs)) else float("nan")
