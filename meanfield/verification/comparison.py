"""Measured beside predicted: how many standard errors apart, and in what ratio."""

import json
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from meanfield.common.validation import Array, PremiseWarning, takes
from meanfield.nets.inputs import PLAIN_BATCH
from meanfield.verification.verdicts import CONVERGED_SHARE, draws_to_converge, needing

ArrayOrFloat = TypeVar("ArrayOrFloat", xr.DataArray, float)

# Differences and errors below this, relative to the prediction, are rounding: there is nothing random to compare. By
# the precision of what was drawn; sums over units and layers add up to some hundred roundings of single precision.
ROUNDINGS = {"float64": 1e-9, "float32": 1e-5}
ROUNDING = ROUNDINGS["float64"]

# What must be the same in both, besides the net's spec, with the values that datasets take for granted. All else may
# differ: the level of a prediction; of a measurement the seed, the draws, the kind of weights, backend and precision.
SHARED = {"loss": "squared", "batch": json.dumps(PLAIN_BATCH.describe()), "given_inputs": "none", "fixed_layers": 0}


def score(
    measured: ArrayOrFloat, stderr: ArrayOrFloat, predicted: ArrayOrFloat, rounding: float = ROUNDING
) -> ArrayOrFloat:
    """(measured - predicted) / stderr, and 0 where neither a difference nor an error is left beyond ``rounding``."""
    return xr.apply_ufunc(_scores, measured, stderr, predicted, kwargs={"relative": rounding}, join="inner")


@takes(xr.Dataset)
def rounding_of(measured: xr.Dataset) -> float:
    """Of the precision that a dataset records: double where it records none."""
    return ROUNDINGS[measured.attrs.get("precision", "float64")]


def _scores(measured: Array, stderr: Array, predicted: Array, relative: float) -> Array:
    """As `score`; in one call, as reports ask for thousands, each of a single number."""
    with np.errstate(all="ignore"):
        difference = measured - predicted
        rounding = relative * np.abs(predicted)
        exact = (np.abs(difference) <= rounding) & (stderr <= rounding)
        return np.where(exact, 0.0, difference / np.where(stderr > 0, stderr, np.nan))


def compare(measured: xr.Dataset, predicted: xr.Dataset) -> xr.Dataset:
    """Differences in standard errors, and ratios, of every quantity that both datasets hold.

    Args:
        measured, predicted: datasets of `simulate` and `predict`, or alike, of the same net (or loop), loss, batch and
            inputs, over the same layers.

    Returns:
        For every shared NAME: ``NAME_zscore`` = (measured - predicted) / standard error, ``NAME_ratio`` =
        measured / predicted and ``NAME_ratio_stderr``, over the quantity's dims, and ``NAME_largest_share`` of one
        draw where it was measured. No allowance for finite width is made here. Differences and errors within the
        rounding of the precision that ``measured`` records count for 0.

    Warns:
        PremiseWarning: one draw makes more than a quarter of a mean, whose standard error then says nothing.

    Raises:
        TypeError: what is no dataset.
        ValueError: datasets of different nets or layers, saying in what they differ, or without a measured quantity
            that both hold.

    Examples:
        >>> import meanfield as mf
        >>> net = mf.MLP(depth=4, width=64)
        >>> compared = mf.compare(mf.simulate(net, draws=64, seed=0), mf.predict(net, level="exact"))
        >>> bool((abs(compared["update_energy_zscore"]) < 4).all())
        True
    """
    for which, given in (("measured", measured), ("predicted", predicted)):
        if not isinstance(given, xr.Dataset):
            raise TypeError(
                f"{which} is of type {type(given).__name__}; give a dataset, as simulate and predict return"
            )
    shared = [str(name) for name in predicted.data_vars if name in measured and f"{name}_stderr" in measured]
    if not shared:
        held = f"measured holds {list(measured.data_vars)}, predicted holds {list(predicted.data_vars)}"
        raise ValueError(f"nothing to compare: {held}")
    _require_same_net(measured, predicted)
    _require_same_places(measured[shared], predicted[shared])
    columns, rounding = {}, rounding_of(measured)
    for name in shared:
        error = measured[f"{name}_stderr"]
        columns[f"{name}_zscore"] = score(measured[name], error, predicted[name], rounding)
        columns[f"{name}_ratio"] = measured[name] / predicted[name]
        columns[f"{name}_ratio_stderr"] = error / predicted[name]
        if f"{name}_largest_share" in measured:
            columns[f"{name}_largest_share"] = measured[f"{name}_largest_share"]
    if told := heavy_means(measured, shared):
        warnings.warn(told, PremiseWarning, stacklevel=2)
    return xr.Dataset(columns)


def heavy_means(measured: xr.Dataset, names: Sequence[str]) -> str:
    """A sentence where one draw makes more than `CONVERGED_SHARE` of one of these means, or nothing."""
    shares = {name: float(measured[end].max()) for name in names if (end := f"{name}_largest_share") in measured}
    heavy = {name: share for name, share in shares.items() if share > CONVERGED_SHARE}
    if not heavy:
        return ""
    means = ", ".join(f"{share:.0%} of {name}" for name, share in heavy.items())
    made = measured.attrs.get("draws")
    needed = "" if made is None else needing(draws_to_converge(max(heavy.values()), made), made)
    return f"one draw makes {means} at some place, where standard errors and z-scores by them say nothing{needed}"


def _require_same_net(measured: xr.Dataset, predicted: xr.Dataset) -> None:
    """Raise ValueError unless both are of one net, and of one loss, batch and inputs, as far as they say."""
    first, second = (_said(dataset) for dataset in (measured, predicted))
    if not (first and second):
        return
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if names:
        apart = ", ".join(f"{name} ({first.get(name)} and {second.get(name)})" for name in names)
        raise ValueError(f"measured and predicted differ in {apart}; predict what was drawn")


def _said(dataset: xr.Dataset) -> dict[str, Any]:
    """What a dataset says of its net and of how that was moved; nothing where its attributes are lost."""
    if "architecture" not in dataset.attrs:
        return {}
    return json.loads(dataset.attrs["architecture"]) | {
        name: dataset.attrs.get(name, usual) for name, usual in SHARED.items()
    }


def _require_same_places(measured: xr.Dataset, predicted: xr.Dataset) -> None:
    """Raise ValueError unless both hold the same layers (or steps, pairs, sites), none left out and none added."""
    for dim in set(measured.sizes) & set(predicted.sizes):
        if not measured[dim].equals(predicted[dim]):
            sizes = f"{measured.sizes[dim]} and {predicted.sizes[dim]} values"
            raise ValueError(f"measured and predicted differ in {dim} ({sizes}); select the same of both")
