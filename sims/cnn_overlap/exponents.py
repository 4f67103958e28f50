"""Exponents of one ladder of nets, each by one measure for label term, output term and learning-rate scale.

Terms grow with the layer and are fitted over the deeper half of a net; scales fall with the depth and are fitted over
the ladder. Both are taken at infinitely many channels. What they tend to in deep nets is read off the mean field of
nets of the same channels and outputs that are much deeper.
"""

import json
import warnings
from dataclasses import dataclass

import numpy as np
import xarray as xr

import meanfield as mf
from meanfield.common import Array, PowerLaw
from meanfield.nets import ConvNet
from meanfield.theory import learning_rate_exponent
from meanfield.verification import NO_LAW, Series, best, deeper_half, exponent_of, growth_exponent

SCALE, LABEL_SCALE = "learning_rate_scale", "label_learning_rate_scale"
# Depths at which the mean field stands for deep nets: exponents are had at all but the first.
DEEP = (64, 128, 256)


@dataclass(frozen=True)
class Measured:
    """An exponent at infinitely many channels.

    Attributes:
        law: as drawn, less what finite channels add in theory.
        granted: what that, or the road to infinitely many channels, may leave.
        theory: the mean field's; NaN where it is not predicted.
    """

    law: PowerLaw
    granted: float
    theory: float


def exponent_at_depths(ladder: xr.Dataset, name: str) -> Measured:
    """Of a term over the deeper half of the deepest net, or of a scale over the ladder of depths."""
    if name in (SCALE, LABEL_SCALE):
        law, added = scale_slope(ladder, best(ladder, name)), steepening(ladder, name)
        theory = predicted_scale_slope(ladder, name, "mean_field")
        return Measured(PowerLaw(law.exponent - added, law.stderr, law.prefactor), abs(added), theory)
    deepest = ladder.isel(depth=-1)
    known = f"{name}_mean_field"
    theory = exponent_of(deepest[known].values) if known in deepest else float("nan")
    if f"{name}_limit" not in deepest:
        law, added = growth_exponent(deepest, best(deepest, name)), added_exponent(deepest, name)
        return Measured(PowerLaw(law.exponent - added, law.stderr, law.prefactor), abs(added), theory)
    deep = np.log1p(limit_allowance(deepest)[deeper_half(deepest.sizes["layer"])])
    return Measured(growth_exponent(deepest, f"{name}_limit"), abs(deep[-1] - deep[0]) / np.log(2), theory)


def limit_allowance(dataset: xr.Dataset) -> Array:
    """What theory leaves open at infinitely many channels, relative to it: nothing, but for inputs drawn with few
    channels, and for what the extrapolation of smooth gates may leave."""
    return np.asarray((dataset["thin_input_allowance"] + dataset["extrapolation_left"]).values)


def added_exponent(deepest: xr.Dataset, name: str) -> float:
    """What finite channels add to a growth exponent by theory's ratio; 0 where there is none."""
    if f"{name}_finite_channels" not in deepest:
        return 0.0
    finite, limit = (exponent_of(deepest[f"{name}_{level}"].values) for level in ("finite_channels", "mean_field"))
    return finite - limit


def scale_slope(ladder: xr.Dataset, name: str) -> PowerLaw:
    """Log-log slope of a drawn learning-rate scale over a ladder of depths; NaN where a scale does not exist."""
    return Series.of(ladder, name).law("depth") if np.all(np.isfinite(ladder[name])) else NO_LAW


def predicted_scale_slope(ladder: xr.Dataset, name: str, level: str) -> float:
    """The same slope of a predicted scale, its points weighted as the drawn ones; NaN where it is not predicted."""
    if f"{name}_{level}" not in ladder:
        return float("nan")
    return Series.of(ladder, best(ladder, name)).slope_of("depth", np.log(ladder[f"{name}_{level}"].values))


def steepening(ladder: xr.Dataset, name: str) -> float:
    """What finite channels add to the slope of a scale by theory's ratios; 0 where there are none."""
    if f"{name}_finite_channels" not in ladder:
        return 0.0
    levels = ("finite_channels", "mean_field")
    finite, limit = (predicted_scale_slope(ladder, name, level) for level in levels)
    return finite - limit


def net_of(dataset: xr.Dataset) -> ConvNet:
    """The net that a dataset records."""
    spec = json.loads(dataset.attrs["architecture"])
    return ConvNet(**{name: value for name, value in spec.items() if name != "family"})


def no_power_law(net: ConvNet) -> str:
    """Why the terms of this net follow no power of the layer at large depth; "" where they do."""
    if np.isfinite(learning_rate_exponent(net)):
        return ""
    return "as layers lose signals at edges" if net.sigma.homogeneous else "as smooth gates change energies"


def deep_exponents(net: ConvNet) -> xr.Dataset:
    """NAME_deep over ``deep_depth`` (all of `DEEP` but the first): the mean field's exponents of nets so deep.

    Terms are fitted over the deeper half of the layers, scales between a depth and the one before. Channels, outputs,
    readout and head are the net's own, inputs white: what inputs have in common between sites is the same in the end.
    Empty where there is no power law; without what has no mean field.
    """
    if no_power_law(net):
        return xr.Dataset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.PremiseWarning)  # of finite channels, which are no part of the limit
        deep = [mf.predict(net.replace(depth=depth), level="mean_field") for depth in DEEP]
    terms = [name for name in ("label_term", "output_term", "overlap_energy") if name in deep[-1]]
    exponents = {name: [exponent_of(at[name].values) for at in deep[1:]] for name in terms}
    for name in (name for name in (SCALE, LABEL_SCALE) if name in deep[-1]):
        logs = np.array([float(at[f"log_{name}"]) for at in deep])
        exponents[name] = [
            float(change / step) for change, step in zip(np.diff(logs), np.diff(np.log(DEEP)), strict=True)
        ]
    columns = {f"{name}_deep": ("deep_depth", values) for name, values in exponents.items()}
    return xr.Dataset(columns, coords={"deep_depth": list(DEEP[1:])})
