"""Terms of plain nets at infinitely many channels, from draws at finite ones; and theory at finite ones.

A drawn mean over its leading order goes to 1 as the channels C grow, but not as a series in 1/C alone: corrections grow
with the depth over the channels. Where theory knows the ratio at C channels (`finite_channel_factor`), drawn means are
divided by it. Elsewhere they are divided by the exact ratio of one site with C units, which that of several sites
follows. What remains is rho = 1 + b/C, and draws at C and at C/f channels tell b:

    rho(infinite) = rho(C) + [rho(C) - rho(C/f)] / (f - 1) .

It leaves some (b/C)^2, below a thousandth where b/C is a few hundredths. Where one site has no exact theory (smooth
gates), all of the correction is taken for b/C. There, and in linear nets with edges or given inputs, which follow one
site less closely, f (b/C)^2 is granted for what may be left.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.common.estimates import Estimate
from meanfield.common.validation import Array, PremiseWarning, takes
from meanfield.nets.layered import MLP, Sequential
from meanfield.theory import finite_channel_factor, finite_channel_refusal, predict, thin_input_warning
from meanfield.theory.recursions import GATES

EXTRAPOLATED = ("label_term", "overlap_energy")
LABEL_SCALE = "label_learning_rate_scale"
# The scales that means over layers of terms set.
TERMS_OF_SCALES = {LABEL_SCALE: "label_term", "learning_rate_scale": "update_energy"}


@dataclass(frozen=True)
class Rung:
    """A net with the dataset of its draws, its mean field, and its inputs where they are given."""

    net: Sequential
    drawn: xr.Dataset
    leading: xr.Dataset
    inputs: Array | None = None

    @cached_property
    def ratios(self) -> dict[str, Array]:
        """Terms at C channels over their leading order, as far as theory has them, else those of one site."""
        known = [name for name in EXTRAPOLATED if has_channel_factor(self.net, self.inputs, name)]
        alone = one_site_ratios(self.net)
        # Where all points are alike both terms have the same factor.
        return alone | dict.fromkeys(known, finite_channel_factor(self.net, quantity=known[0])) if known else alone


def best(dataset: xr.Dataset, name: str) -> str:
    """The name of the estimate with the least error: the adjusted one, where there is one."""
    return f"adjusted_{name}" if f"adjusted_{name}" in dataset else name


@takes(Sequential)
def has_channel_factor(net: Sequential, inputs: Array | None = None, name: str = "label_term") -> bool:
    """Whether all points are alike, and theory has a term at C channels over its leading order.

    With edges or given inputs every pair of points is followed by itself, which takes longer than a second run.
    """
    return inputs is None and net.covers_evenly and not finite_channel_refusal(net, quantity=name)


@takes(Sequential)
def one_site_ratios(net: Sequential) -> dict[str, Array]:
    """Terms of one site over their leading order in 1/channels, exactly, by layer 1 .. L; empty for smooth gates."""
    if net.activation not in GATES:
        return {}
    shared = {name: getattr(net, name) for name in ("depth", "activation", "outputs", "head")}
    site = MLP(width=_channels(net), **shared)
    with warnings.catch_warnings():
        # Of what this function corrects.
        warnings.simplefilter("ignore", PremiseWarning)
        exact, leading = (predict(site, level=level) for level in ("exact", "mean_field"))
    names = (*EXTRAPOLATED, "output_term")
    return {name: np.exp((exact[f"log_{name}"] - leading[f"log_{name}"]).values) for name in names}


@takes(Rung)
def at_finite_channels(rung: Rung) -> xr.Dataset:
    """The mean field times the ratios above: terms, and the scales that they set, at the net's own channels.

    Output terms, and label terms without a channel factor, have the ratio of one site, which grids do not follow
    exactly. Empty for smooth gates; without output terms where few channels of drawn inputs fluctuate, as the ratio
    lacks their part.
    """
    terms = {name: rung.leading[name] * ratio for name, ratio in rung.ratios.items() if name in rung.leading}
    if rung.inputs is None and thin_input_warning(rung.net):
        terms.pop("output_term", None)
    if {"label_term", "output_term"} <= set(terms):
        terms["update_energy"] = terms["label_term"] + terms["output_term"]
    scales = {scale: terms[name].mean("layer") ** -0.5 for scale, name in TERMS_OF_SCALES.items() if name in terms}
    return xr.Dataset(terms | scales)


@takes(Rung)
def at_infinite_channels(many: Rung, few: Rung | None) -> xr.Dataset:
    """Label term, overlap energy and the label term's eta* at infinitely many channels, by the formula above.

    Args:
        many, few: draws with C channels and with C/f; no ``few`` where theory has the channel factor.

    Returns:
        NAME_limit of every term that is drawn and predicted, with its _stderr, _largest_share and _covariance; and
        ``extrapolation_left``, by layer: what may be left, relative to the mean field; 0 for ReLU.
    """
    columns: dict[str, Any] = {}
    left = np.zeros(many.net.depth)
    for name in (name for name in EXTRAPOLATED if name in many.leading and name in many.drawn):
        limit = _over_theory(many, name)
        if few is not None:
            factor = _channels(many.net) / _channels(few.net)
            limit, step = _extrapolated(limit, _over_theory(few, name), factor)
            left = np.maximum(left, 0.0 if many.net.activation == "relu" else step)
        scale = many.leading[name].values
        limit = Estimate(limit.mean * scale, limit.covariance * np.multiply.outer(scale, scale), limit.largest_share)
        columns |= _columns(f"{name}_limit", limit)
        if name == "label_term":
            columns |= _scale(f"{LABEL_SCALE}_limit", limit)
    return xr.Dataset(columns | {"extrapolation_left": ("layer", left)})


def _channels(net: Sequential) -> int:
    """Of every hidden layer, where all have as many; of the last."""
    return net.channels_by_layer[-1]


def _over_theory(rung: Rung, name: str) -> Estimate:
    """A drawn term over its mean field and its ratio at finite channels, by layer."""
    scale = 1 / (rung.leading[name].values * rung.ratios.get(name, 1.0))
    drawn = best(rung.drawn, name)
    mean, covariance = (rung.drawn[f"{drawn}{end}"].values * scale for end in ("", "_covariance"))
    return Estimate(mean, covariance * scale[:, None], rung.drawn[f"{name}_largest_share"].values)


def _extrapolated(many: Estimate, few: Estimate, factor: float) -> tuple[Estimate, Array]:
    """rho(infinite), and f (b/C)^2."""
    step = (many.mean - few.mean) / (factor - 1)
    covariance = (factor**2 * many.covariance + few.covariance) / (factor - 1) ** 2
    share = np.maximum(many.largest_share, few.largest_share)
    return Estimate(many.mean + step, covariance, share), left_by_extrapolation(step, factor)


def _columns(name: str, limit: Estimate) -> dict[str, Any]:
    """A term by layer as variables of a dataset."""
    return {
        name: ("layer", limit.mean),
        f"{name}_stderr": ("layer", limit.stderr),
        f"{name}_largest_share": ("layer", limit.largest_share),
        f"{name}_covariance": (("layer", "layer_other"), limit.covariance),
    }


def _scale(name: str, limit: Estimate) -> dict[str, Any]:
    """The scale that the term's mean over layers sets: (mean)^(-1/2), with its error; NaN of a negative mean."""
    mean, stderr = limit.mean.mean(), limit.covariance.mean() ** 0.5
    mean = mean if mean > 0 else np.nan
    columns = {name: mean**-0.5, f"{name}_stderr": 0.5 * mean**-1.5 * stderr}
    return columns | {f"{name}_largest_share": limit.largest_share.max()}


@dataclass(frozen=True)
class Extrapolated:
    """log eta* by depth at infinite width, with its standard error and what extrapolation may leave."""

    log_scale: Array
    stderr: Array
    left: Array


@takes(xr.Dataset, str, str)
def extrapolated(dataset: xr.Dataset, case: str, name: str) -> Extrapolated:
    """log x + (log x - log y) / (f - 1) for x at width n and y at n/f: free of what is linear in 1/n.

    Scales fall as n^(-1/2) before all else, so that y is brought to width n by f^(-1/2) first.
    """
    at = dataset.sel(case=case)
    narrow, wide = np.log(at[name].transpose("width", "depth").values * np.sqrt(dataset["width"].values[:, None]))
    wide_scale = np.log(float(dataset["width"][-1])) / 2
    errors = [(at[f"{name}_stderr"] / at[name]).isel(width=end).values for end in (0, 1)]
    factor = float(dataset["width"][1] / dataset["width"][0])
    step = (wide - narrow) / (factor - 1)
    stderr = np.hypot(factor * errors[1], errors[0]) / (factor - 1)
    return Extrapolated(wide + step - wide_scale, stderr, left_by_extrapolation(step, factor))


def left_by_extrapolation(step: ArrayLike, factor: float) -> Array:
    """f (a/n)^2, where a/n is the part linear in 1/n: extrapolation leaves -f b/n^2, b taken to be a^2 at most."""
    return np.asarray(factor * np.square(step))
