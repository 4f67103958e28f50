"""The dataset of a measured model: rates and scales over its sizes, and what moves the modules of the largest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import chdtrc

from meanfield.common import Array
from meanfield.transfer import SCALES, median_scale
from sims.measure_model.asked import ModelSize

# The parameters of all other groups together, beside those of the strongest group one by one.
OTHERS = "all other groups"
NAN_RATE = {"rate": nan, "low": nan, "high": nan}


@dataclass(frozen=True, kw_only=True)
class MeasuredSize:
    """What is known of one size.

    Attributes:
        size: keywords of the factory; ``label``: the same in words.
        scales: `meanfield.torch.step_scales`.
        started, carried: the rates that they name, if any; ``no_rate``, ``not_carried``: why there is none.
        warnings: what speaks against them.
    """

    size: ModelSize
    label: str
    scales: xr.Dataset
    started: xr.Dataset | None = None
    carried: xr.Dataset | None = None
    no_rate: str = ""
    not_carried: str = ""
    warnings: Sequence[str] = field(default=())

    @property
    def parameters(self) -> int:
        """How many train."""
        return int(json.loads(self.scales.attrs["architecture"])["parameters"])

    @property
    def called(self) -> list[str]:
        """Names of the modules that were called, in the order of their first calls."""
        return list(dict.fromkeys(str(name).partition("#")[0] for name in self.scales["module"].values))


def most_moved(shown: xr.Dataset) -> int:
    """The number of the module that moves most by its own size; by none where all start at 0."""
    return int(np.nanargmax(np.append(shown["relative_update_energy"].values, -1.0)) % len(shown["layer"]))


def collected(
    sizes: Sequence[MeasuredSize],
    largest: MeasuredSize,
    shown: xr.Dataset,
    alone: xr.Dataset | None,
    tuned: MeasuredSize | None = None,
) -> xr.Dataset:
    """All of it.

    Args:
        sizes: every size.
        largest: the one with most parameters.
        shown: step scales of its chosen modules, with groups.
        alone: step scales of the one that moves most, with the parameters of the strongest group one by one.
        tuned: the size that a rate is carried from, if any.
    """
    medians = np.array([[_median(each.scales, SCALES[of]) for each in sizes] for of in SCALES])
    values, errors = medians[..., 0], medians[..., 1]
    variables = _rates(sizes) | {
        "scale": (("of", "size"), values, "rate at which one step moves this by 1, median over draws"),
        "scale_stderr": (("of", "size"), errors, f"the same: {ERROR}"),
        "parameters": ("size", [each.parameters for each in sizes], "parameters that train"),
        "last_layer": ("size", [each.scales.attrs["last_layer"] for each in sizes], "module that is the last layer"),
    }
    coords: dict[str, Any] = {"size": [each.label for each in sizes], "of": list(SCALES)}
    by_name, names = _by_name(sizes, largest)
    variables |= by_name
    coords["module"] = names
    variables |= _of_places(shown)
    coords |= {"place": shown["module"].values.astype(str), "group": shown["group"].values.astype(str)}
    if alone is not None:
        variables["energy_alone"] = ("parameter", alone["update_energy_of_group"].values[:, 0], ALONE)
        coords["parameter"] = alone["group"].values.astype(str)
    numbers_of = {name: [float(each.size[name]) for each in sizes] for name in sizes[0].size}
    varied = [name for name, each in numbers_of.items() if len(set(each)) > 1]
    variables |= _slopes([numbers_of[name] for name in varied], values, errors)
    # A size with the name of something else in the dataset has "model_" before it.
    taken = {*variables, *WORDS}
    coordinate = {name: f"model_{name}" if name in taken else name for name in numbers_of}
    coords |= {coordinate[name]: ("size", each) for name, each in numbers_of.items()}
    if axes := [coordinate[name] for name in varied]:
        coords["axis"] = axes
    dataset = xr.Dataset(
        {
            name: (dims, numbers, {"long_name": words, "units": "1"})
            for name, (dims, numbers, words) in variables.items()
        },
        coords,
    )
    for name, coordinate in dataset.coords.items():
        coordinate.attrs["long_name"] = WORDS.get(str(name), f"size of the model: {name}")
    return dataset.assign_attrs(_attributes(sizes, largest, shown, axes, tuned))


ERROR = "standard error over draws"
ALONE = "mean square of the change of the module that moves most, by one parameter alone"
WORDS = {
    "size": "size of the model",
    "of": "what one step moves: all modules, all relative to themselves, the last layer to itself, the outputs",
    "module": "leaf of the model",
    "axis": "size that slopes are over",
    "place": "module that is shown at the largest size",
    "group": "group of parameters",
    "parameter": "parameter of the strongest group, moved alone",
}
Variables = dict[str, tuple[Any, Any, str]]


def _rates(sizes: Sequence[MeasuredSize]) -> Variables:
    """Those to start from and those that are carried, NaN where there are none."""
    words = {
        "rate": "learning rate",
        "low": "lower end of the learning rates",
        "high": "upper end of the learning rates",
    }
    variables: Variables = {}
    for kind, what in (("started", "to start from"), ("carried", "carried from the tuned size")):
        made = [getattr(each, kind) for each in sizes]
        for name, said in words.items():
            numbers = [nan if each is None else float(each[name]) for each in made]
            variables[f"{kind}_{name}"] = ("size", numbers, f"{said} {what}")
    if any(each.carried is not None for each in sizes):
        none = np.full(len(SCALES), nan)
        by_scale = [none if each.carried is None else each.carried["rates"].values for each in sizes]
        of = ["" if each.carried is None else _carrier(each.carried.attrs) for each in sizes]
        variables["carried_of"] = ("size", of, "what the step moves by 1 at the carried rate")
        variables["carried_rates"] = (("size", "of"), np.array(by_scale), "learning rate carried by each of the scales")
    return variables


def _carrier(attrs: Mapping[str, Any]) -> str:
    """What the step moves by 1 at a carried rate; of a rate that no scale carries, that it stays."""
    return f"none: it stays over the {attrs['stays']}" if attrs["stays"] else str(attrs["of"])


def _median(scales: xr.Dataset, name: str) -> tuple[float, float]:
    """The median over draws, and its standard error; NaN where there is none."""
    if bool(scales[name].isnull()):
        return nan, nan
    try:
        median, error = median_scale(scales, name)
    except ValueError:  # half of the draws do not move, which the reason for no rate says
        return nan, nan
    return median, median * error


def _slopes(sizes: Sequence[Sequence[float]], values: Array, errors: Array) -> Variables:
    """d ln scale / d ln size over every axis, of all axes together, by weighted least squares of known errors."""
    if not sizes:
        return {}
    columns = [np.log(numbers) for numbers in sizes]
    design = np.stack([np.ones(values.shape[1]), *columns], axis=1)
    fits = [fitted(design, row, errors_of) for row, errors_of in zip(values, errors, strict=True)]
    slopes, stderrs, chances = (np.array(each) for each in zip(*fits, strict=True))
    words = "power of the size that the scale goes as"
    return {
        "slope": (("of", "axis"), slopes, words),
        "slope_stderr": (("of", "axis"), stderrs, f"{words}: {ERROR}"),
        "chance": (("of",), chances, "chance that points of these errors on powers of the sizes scatter as much"),
    }


def fitted(design: Array, values: Array, errors: Array) -> tuple[Array, Array, float]:
    """Slopes of ln values with their standard errors, and the chance of as much scatter; NaN where values are missing.

    Args:
        design: a column of ones, and logarithms of sizes.
        values, errors: positive, with their standard errors.
    """
    none = np.full(design.shape[1] - 1, nan)
    if not (np.isfinite(values).all() and np.isfinite(errors).all()):
        return none, none, nan
    relative = np.maximum(errors / values, 1e-12)  # draws that are all alike have no error
    weighted = design / relative[:, None]
    covariance = np.linalg.pinv(weighted.T @ weighted)
    coefficients = covariance @ (weighted.T @ (np.log(values) / relative))
    freedom = len(values) - design.shape[1]
    scatter = (np.log(values) - design @ coefficients) / relative
    chance = float(chdtrc(freedom, scatter @ scatter)) if freedom > 0 else nan
    return coefficients[1:], np.sqrt(np.diag(covariance))[1:], chance


def _by_name(sizes: Sequence[MeasuredSize], largest: MeasuredSize) -> tuple[Variables, list[str]]:
    """Energies of all leaves, over sizes and names, those of the largest size first; NaN where a size has none."""
    ordered = [largest, *(each for each in sizes if each is not largest)]
    names = list(dict.fromkeys(str(name) for each in ordered for name in each.scales["module"].values))
    variables: Variables = {}
    for name in ("update_energy", "relative_update_energy"):
        for end in ("", "_stderr"):
            numbers = np.full((len(sizes), len(names)), nan)
            for row, each in zip(numbers, sizes, strict=True):
                row[[names.index(str(module)) for module in each.scales["module"].values]] = each.scales[f"{name}{end}"]
            words = each.scales[f"{name}{end}"].attrs["long_name"]
            variables[f"{name}{end}"] = (("size", "module"), numbers, words)
    return variables, names


def _of_places(shown: xr.Dataset) -> Variables:
    variables: Variables = {"place_kind": ("place", shown["kind"].values.astype(str), "class of the module")}
    for name in ("update_energy", "relative_update_energy"):
        for end in ("", "_stderr"):
            words = f"{shown[name + end].attrs['long_name']}, of a module that is shown"
            variables[f"place_{name}{end}"] = ("place", shown[f"{name}{end}"].values, words)
    for end in ("", "_stderr"):
        numbers = shown[f"update_energy_of_group{end}"]
        words = f"{numbers.attrs['long_name']}, of a module that is shown"
        variables[f"place_energy_of_group{end}"] = (("group", "place"), numbers.values, words)
    return variables


def _attributes(
    sizes: Sequence[MeasuredSize],
    largest: MeasuredSize,
    shown: xr.Dataset,
    axes: Sequence[str],
    tuned: MeasuredSize | None,
) -> dict[str, Any]:
    attrs = largest.scales.attrs
    started = next((each.started.attrs for each in sizes if each.started is not None), {})
    others = [each for each in sizes if tuned is not None and each.label != tuned.label]
    every = [each.carried.attrs for each in others if each.carried is not None]
    carried = every[0] if every else {}
    rate, rate_of = shown_rate(largest)
    return {
        "family": json.loads(attrs["architecture"])["family"],
        **{name: attrs[name] for name in ("optimizer", "loss", "draws", "precision", "normalised")},
        "block_names": attrs["block_names"],
        "kind": started.get("kind", carried.get("kind", "")),
        "axes": " ".join(axes),
        "largest": largest.label,
        "shown_rate": rate,
        "shown_rate_of": rate_of,
        "scale_of_rate": next((of for of, name in SCALES.items() if name == started.get("scale")), "outputs"),
        "scale_over_rate": started.get("scale_over_rate", nan),
        "carried_by": " or ".join(dict.fromkeys(map(_carrier, every))),
        "rests_on": started.get("rests_on", ""),
        "premises": started.get("premises", ""),
        "carried_premises": "; ".join(
            dict.fromkeys(premise for of_size in every for premise in of_size["premises"].split("; "))
        ),
        "warnings": "\n".join(dict.fromkeys(sentence for each in sizes for sentence in each.warnings)),
        "no_rate": "\n".join(dict.fromkeys(each.no_rate for each in sizes if each.no_rate)),
        "not_carried": "\n".join(dict.fromkeys(each.not_carried for each in sizes if each.not_carried)),
    }


def shown_rate(largest: MeasuredSize) -> tuple[float, str]:
    """The rate at which changes are shown, and what it is: carried, to start from, or one that moves outputs by 1."""
    if largest.carried is not None:
        return float(largest.carried["rate"]), "the carried rate"
    if largest.started is not None:
        return float(largest.started["rate"]), "the rate to start from"
    outputs, _ = _median(largest.scales, SCALES["outputs"])
    return (outputs, "the rate that moves the outputs by 1") if isfinite(outputs) else (1.0, "learning rate 1")
