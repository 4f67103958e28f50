"""What negative controls of several studies share, and those of claims that rest on runs of several studies.

A control is a world in which the verdict must be another one. It takes the datasets of a run, by simulation, and gives
them as they would be if the paper were right where it is wrong, or wrong where it is right. ``CONTROLS`` maps the
claim's id to the control. Those of claims that one study decides are the ``CONTROLS`` of its tests.
"""

import numpy as np
import xarray as xr

from sims.claims.catalogue import CLAIMS
from sims.learning_rate_search import printed_tables

SCALE = "label_learning_rate_scale"
# Relative errors of numbers that are made up here.
ERROR = 1e-3
MANY_DRAWS = 64


def scattered(dataset, share):
    """With single nets whose scatter makes a share of the squared errors of tuned rates."""
    draws = dataset.sizes.get("draw", 2)
    sides = xr.DataArray(np.linspace(-1, 1, draws), dims="draw")
    off = share**0.5 * draws**0.5 * sides / sides.std(ddof=1)
    return dataset.assign(seed_tuned_rate_log10=dataset["tuned_rate_log10"] + off * dataset["tuned_rate_log10_stderr"])


def put(dataset, name, values, **where):
    """The dataset with these values of NAME, and small errors if it has any, at a place."""
    changed = {name: dataset[name].astype(float).copy()}
    changed[name].loc[where] = np.asarray(values)
    if f"{name}_stderr" in dataset:
        changed[f"{name}_stderr"] = dataset[f"{name}_stderr"].copy()
        changed[f"{name}_stderr"].loc[where] = ERROR * np.abs(np.asarray(values))
    if f"{name}_covariance" in dataset:
        changed[f"{name}_covariance"] = dataset[f"{name}_covariance"].copy()
        changed[f"{name}_covariance"].loc[where] = np.diag(np.square(ERROR * np.asarray(values)))
    if f"{name}_largest_share" in dataset:
        changed[f"{name}_largest_share"] = 0 * dataset[f"{name}_largest_share"]
    return dataset.assign(changed)


def off_by_a_power(dataset, name):
    """Values that go as the size itself, in every draw nearly alike."""
    direction = name.rsplit("_", 1)[1]
    draws = 1 + ERROR * np.cos(dataset["draw"])
    return dataset.assign({name: 0 * dataset[name] + dataset[direction] * draws})


def many_draws(dataset):
    """The same draws again and again, and something small that differs between them."""
    draws = MANY_DRAWS
    repeated = dataset.isel(draw=np.arange(draws) % dataset.sizes["draw"]).assign_attrs(draws=draws)
    return repeated, ERROR**2 * xr.DataArray(np.linspace(-1, 1, draws), dims="draw")


def runs_off(claim, *names):
    """These variables grow with the width, in all runs of a claim that have them."""

    def control(runs):
        changed = {}
        for run in CLAIMS[claim].runs:
            dataset = runs[run]
            for name in (f"{name}_by_width" for name in names):
                dataset = off_by_a_power(dataset, name) if name in dataset else dataset
            changed[run] = dataset
        return changed

    return control


def families_of(claim):
    """Those that the checks of a claim are about, by run."""
    families = {}
    for check in CLAIMS[claim].checks:
        named = getattr(check.judge, "keywords", {"family": printed_tables.VIT})
        families.setdefault(check.run, []).append(named["family"])
    return families


def with_families(dataset, families):
    """With all of these families: those that a small run has not are others of its own by their names."""
    names = [str(name) for name in dataset["family"].values]
    spare = iter([name for name in names if name not in families])
    renamed = {next(spare): missing for missing in families if missing not in names}
    return dataset.assign_coords(family=[renamed.get(name, name) for name in names])


def all_learned(dataset):
    """All nets learn."""
    return dataset.assign(final_loss=0 * dataset["final_loss"].fillna(0.1).clip(max=1.0) + 0.1)


def overlaps_conserved(runs):
    dataset = runs["overlap_recursion"]
    at = int(dataset.attrs["fixed_layers"])
    own = dataset["overlap_given"].sel(layer=at)
    given = dataset["overlap_given"].where(dataset["layer"] <= at, own)
    exact = dataset["overlap_exact"]
    begun = exact.notnull()
    first = exact.isel(layer=begun.argmax("layer")).drop_vars("layer").where(begun)
    error = ERROR * abs(first).max()
    changed = {"overlap_given": given, "overlap": first, "overlap_stderr": 0 * first + error}
    return {
        "overlap_recursion": dataset.assign(changed),
        "cnn_finite_channels": _conserved_when_given(runs["cnn_finite_channels"]),
    }


def _conserved_when_given(dataset):
    at = int(dataset.attrs["fixed_layers"])
    drawn = dataset["overlap_given"]
    return dataset.assign(overlap_given=drawn.where(dataset["layer"] <= at, drawn.sel(layer=at)))


def outputs_negligible(runs):
    exact, drawn = runs["mlp_depth"], runs["cnn_overlap"]
    falling = 0 * exact["log_output_over_label"] - np.log(exact["share_depth"])
    deepest = drawn.isel(depth=-1)
    grown = drawn
    for name in ("output_term", "adjusted_output_term"):
        grown = put(grown, name, 0.01 * deepest["layer"] ** 2, depth=deepest["depth"].item())
    grown = grown.drop_vars(["output_term_finite_channels", "label_term_finite_channels"])
    return {
        "mlp_depth": exact.assign(log_output_over_label=falling, scale_slope=0 * exact["scale_slope"] - 1.5),
        "cnn_overlap": put(grown, "adjusted_label_term", deepest["layer"] ** 3, depth=deepest["depth"].item()),
    }


def no_shared_overlaps(runs):
    dataset = runs["learning_rate_scale"]
    return {"learning_rate_scale": dataset.assign({SCALE: 0 * dataset[SCALE] + dataset["depth"] ** -1.0})}


def power_law_at_all_depths(runs):
    dataset = runs["learning_rate_scale"]
    return {"learning_rate_scale": dataset.assign({SCALE: 0 * dataset[SCALE] + dataset["depth"] ** -1.5})}


def uniform_correction(runs):
    dataset = runs["mlp_depth"]
    return {"mlp_depth": dataset.assign(excess_at_share=0 * dataset["excess_at_share"] + 1 / dataset["width"])}


def variance_of_another_power(runs):
    dataset = runs["overlap_recursion"]
    name = "overlap_variance_by_width"
    first = dataset[name].isel(width_above=0)
    return {
        "overlap_recursion": dataset.assign(
            {name: first * (dataset["width_above"] / dataset["width_above"][0]) ** -0.5}
        )
    }


def second_order_stays(runs):
    """Terms of second order under the k = 1 table keep their size in depth, in every draw nearly alike."""
    run, name = "update_orders-optimizers-muon", "order_norm_by_depth"
    dataset = runs[run]
    level = 1 + ERROR * np.cos(dataset["draw"])
    stays = dataset[name].where(dataset["table"] != "one", level)
    return {run: dataset.assign({name: stays})}


def gradients_stay(runs):
    """Gradients, and what SGD makes of them, are the same at all depths, in every draw nearly alike."""
    dataset, changed = runs["table_cells"], {}
    level = 1 + ERROR * np.cos(dataset["draw"])
    for name in (f"role_{of}_by_depth" for of in ("direction_norm", "gradient_norm", "gradient_element")):
        changed[name] = (0 * dataset[name] + dataset[name].isel(depth=0).mean("draw")) * level
        changed[name] = changed[name].transpose(*dataset[name].dims)
    return {"table_cells": dataset.assign(changed)}


CONTROLS = {
    "A1": overlaps_conserved,
    "A4": outputs_negligible,
    "A5a": no_shared_overlaps,
    "A5b": power_law_at_all_depths,
    "A6": uniform_correction,
    "A11a": variance_of_another_power,
    "S3a": runs_off("S3a", "weight_product"),
    "S5c": second_order_stays,
    "S5d": gradients_stay,
}
