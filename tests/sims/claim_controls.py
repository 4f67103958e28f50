"""A negative control for every claim: a world in which the verdict must be another one.

Each takes the datasets of a run, by simulation, and gives them as they would be if the paper were right where it is
wrong, or wrong where it is right. ``CONTROLS`` maps the claim's id to the control.
"""

import numpy as np
import xarray as xr

from meanfield.theory.laws.residual import log_path_sum_scale
from meanfield.verification.catalogue import CLAIMS

SCALE = "label_learning_rate_scale"
# Relative errors of numbers that are made up here.
ERROR = 1e-3
MANY_DRAWS = 64


def _put(dataset, name, values, **where):
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


def _residual(runs, exponent, **net):
    """Scales of one residual net that fall as a power of the blocks."""
    dataset = runs["residual_depth"]
    place = {"activation": "relu", **net}
    first = float(dataset[SCALE].sel(place)[0])
    return _put(dataset, SCALE, first * (dataset["blocks"] / dataset["blocks"][0]) ** exponent, **place)


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


def label_term_not_of_kernels(runs):
    dataset = runs["identities"]
    return {"identities": dataset.assign(kernel_term=0 * dataset["kernel_term"] + 1.0)}


def no_minima(runs):
    dataset = runs["cnn_overlap"]
    deepest = dataset.isel(depth=-1)
    return {"cnn_overlap": _put(dataset, "label_term_limit", deepest["label_term_law"], depth=deepest["depth"].item())}


def outputs_negligible(runs):
    exact, drawn = runs["mlp_depth"], runs["cnn_overlap"]
    falling = 0 * exact["log_output_over_label"] - np.log(exact["share_depth"])
    deepest = drawn.isel(depth=-1)
    grown = drawn
    for name in ("output_term", "adjusted_output_term"):
        grown = _put(grown, name, 0.01 * deepest["layer"] ** 2, depth=deepest["depth"].item())
    grown = grown.drop_vars(["output_term_finite_channels", "label_term_finite_channels"])
    return {
        "mlp_depth": exact.assign(log_output_over_label=falling, scale_slope=0 * exact["scale_slope"] - 1.5),
        "cnn_overlap": _put(grown, "adjusted_label_term", deepest["layer"] ** 3, depth=deepest["depth"].item()),
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


def padding_as_printed(runs):
    """Scales off by one factor at every depth, and a share lost that is the boundary fraction at every layer."""
    dataset = runs["cnn_padding"]
    circular = dataset[SCALE].sel(padding="circular")
    dataset = _put(dataset, SCALE, 1.2 * circular, padding="zero")
    lost = 0 * dataset["far_ratio"] + dataset["far_boundary_fraction"]
    return {"cnn_padding": dataset.assign(far_ratio=1 - lost)}


def more_is_missing(runs):
    dataset = runs["cnn_padding"]
    return {"cnn_padding": dataset.assign(missing_largest=dataset["missing_largest"] * dataset["set_taps"])}


def no_correction_for_batches(runs):
    dataset = runs["batch_size"]
    return {"batch_size": dataset.assign(enumerated_gap=dataset["uncorrected_gap"])}


def batches_as_printed(runs):
    dataset = runs["batch_size"]
    name = "label_term"
    for case in map(str, dataset["case"].values):
        dataset = _put(dataset, name, 0 * dataset[name].sel(case=case) + 1.0, case=case)
    return {"batch_size": dataset}


def no_floor(runs):
    """Label terms of all cases that fall as 1/B."""
    dataset, name = runs["batch_size"], "label_term"
    for case in map(str, dataset["case"].values):
        falling = dataset[name].sel(case=case).isel(batch=0) / dataset["batch"]
        dataset = _put(dataset, name, falling.values, case=case)
    return {"batch_size": dataset}


def squares_stay_as_they_begin(runs):
    dataset, name = runs["overlap_recursion"], "squared_overlap"
    second = dataset[name].isel(layer=1, drop=True) + 0 * dataset[name]
    return {"overlap_recursion": dataset.assign({name: second, f"{name}_stderr": ERROR * second})}


def gelu_as_printed(runs):
    """Every case but ReLU: energies and gains of unit variance, and scales a little steeper than ReLU's."""
    dataset = runs["activation_drift"]
    relu = dataset[SCALE].sel(case="relu")
    steeper = relu * (dataset["depth"] / dataset["depth"][0]) ** -0.04
    layers = f"{SCALE}_mean_field"
    for case in ("gelu, fan_in", "gelu, he", "gelu, energy"):
        gain = float(dataset["gain"].sel(case=case))
        dataset = _put(dataset, "pre_activation_energy", 1.0, case=case)
        dataset = _put(dataset, "gate_energy", gain, case=case)
        dataset = _put(dataset, SCALE, steeper.transpose("width", "depth"), case=case)
        dataset = _put(dataset, layers, dataset[layers].sel(case="relu"), case=case)
    return {"activation_drift": dataset}


def softmax_of_order_one(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": _put(dataset, "output_error", 1.0, head="mup")}


def uniform_softmax(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": _put(dataset, "output_error", 1 - 1 / dataset.attrs["classes"], head="fan_in")}


def variance_of_another_power(runs):
    dataset = runs["overlap_recursion"]
    name = "overlap_variance_by_width"
    first = dataset[name].isel(width_above=0)
    return {
        "overlap_recursion": dataset.assign(
            {name: first * (dataset["width_above"] / dataset["width_above"][0]) ** -0.5}
        )
    }


def ungated_blocks(runs):
    dataset = runs["residual_overlap"]
    return {"residual_overlap": dataset.assign(gated_overlap_below=dataset["ungated_below"])}


def initialisation_as_printed(runs):
    return {"residual_depth": _residual(runs, -1.5, block_depth=1, scaling="init")}


def multiplier_as_printed(runs):
    return {"residual_depth": _residual(runs, -1.5, block_depth=1, scaling="multiplier_sqrt")}


def blocks_count_as_layers(runs):
    dataset = runs["residual_depth"]
    layers = dataset["backbone_layers"]
    for block_depth in dataset["block_depth"].values:
        dataset = _residual({"residual_depth": dataset}, -1.0, block_depth=block_depth, scaling="init")
    claimed = -1.5 * layers / layers.sum(layers.dims[1])
    slope = dataset["backbone_slope"]
    return {"residual_depth": dataset.assign(backbone_slope=(0 * slope + claimed.values))}


def path_sum_is_right(runs):
    dataset = runs["residual_depth"]
    place = {"activation": "relu", "block_depth": 1, "scaling": "init"}
    rule = np.exp(log_path_sum_scale(dataset["blocks"].values))
    return {"residual_depth": _put(dataset, SCALE, rule, **place)}


def _local_slopes(runs, norm, slopes):
    """Slopes of the mean field of one norm put in its place."""
    dataset = runs["transformer_depth"]
    changed = dataset["local_slope_mean_field"].copy()
    changed.loc[{"norm": norm}] = slopes
    return {"transformer_depth": dataset.assign(local_slope_mean_field=changed)}


def post_norm_falls_as_pre_norm(runs):
    return _local_slopes(runs, "post", runs["transformer_depth"]["local_slope_mean_field"].sel(norm="pre").values)


def pre_norm_as_printed(runs):
    return _local_slopes(runs, "pre", -1.5)


def tangents_as_assumed(runs):
    """One rho for all directions at all depths, but for fluctuations as n^(-1/2), the remainder among them."""
    dataset, name = runs["transformer_depth"], "tangent_propagation"
    rho = 1 + 0 * dataset[f"{name}_by_width"]
    noise = (0 * rho + dataset["width"] ** -0.5).transpose(*rho.dims)
    changed = {name: rho, f"{name}_spread": noise, f"{name}_remainder": noise.sel(direction="shared", drop=True)}
    made = {f"{key}_by_width": values for key, values in changed.items()}
    made |= {f"{key}_by_width_stderr": ERROR * values for key, values in changed.items()}
    return {"transformer_depth": dataset.assign(made | {f"{name}_by_width_largest_share": 0 * rho})}


def tied_growth_as_printed(runs):
    dataset = runs["looped_energy"]
    place = {"model": "looped", "scaling": "sqrt"}
    return {"looped_energy": _put(dataset, "correlation_term", dataset["loops"].astype(float), **place)}


def stacks_grow_as_loops(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": _put(dataset, "log_energy", dataset["log_energy"].sel(model="looped"), model="deep")}


def models_exchanged(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": dataset.sel(model=["deep", "looped"]).assign_coords(model=dataset["model"])}


def cross_term_grows(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": _put(dataset, "cross_term_spread", np.sqrt(dataset["cross_width"]))}


def energies_creep(runs):
    """At alpha = 1, a power of the loops so small that no draw would show it."""
    dataset, name = runs["looped_energy"], "log_energy_by_alpha"
    creeping = 0.01 * np.log(dataset["far_loops"])
    return {"looped_energy": dataset.assign({name: dataset[name].where(dataset["alpha"] != 1.0, creeping)})}


def _updates_fall(beyond, *, like_widths=False):
    """Changes that go as (eps L)^2 times L^beyond, and where asked alike at every width."""

    def control(runs):
        dataset = runs["looped_update"]
        for update in ("isotropic", "aligned"):
            if like_widths:
                dataset = _put(dataset, "by_width", 0 * dataset["width"] + 1.0, update=update)
            for alpha in map(float, dataset["alpha"].values):
                law = dataset["loops"].astype(float) ** (2 * (1 - alpha) + beyond)
                dataset = _put(dataset, "update_energy", law, update=update, alpha=alpha)
        return {"looped_update": dataset}

    return control


def _looped_transformer(model, scaling, name, power):
    """Numbers of one kind of Transformers that go as a power of the loops, before training and after it."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float) ** power * (1 + 0 * dataset["update"])
        return {"looped_transformer": _put(dataset, name, law, model=model, scaling=scaling)}

    return control


def _first_order_change(scaling, power):
    """Streams of looped Transformers that one update moves as a power of the loops."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float).values ** power
        for rule in ("isotropic", "aligned"):
            dataset = _put(dataset, "first_order_change", law, rule=rule, scaling=scaling)
        return {"looped_transformer": dataset}

    return control


def rates_do_not_matter(runs):
    dataset = runs["looped_transformer"]
    return {"looped_transformer": _put(dataset, "energy_by_rate", 2.0, scaling="sqrt")}


def _off_by_a_power(dataset, name):
    """Values that go as the size itself, in every draw nearly alike."""
    direction = name.rsplit("_", 1)[1]
    draws = 1 + ERROR * np.cos(dataset["draw"])
    return dataset.assign({name: 0 * dataset[name] + dataset[direction] * draws})


def _runs_off(claim, *names):
    """These variables grow with the width, in all runs of a claim that have them."""

    def control(runs):
        changed = {}
        for run in CLAIMS[claim].runs:
            dataset = runs[run]
            for name in (f"{name}_by_width" for name in names):
                dataset = _off_by_a_power(dataset, name) if name in dataset else dataset
            changed[run] = dataset
        return changed

    return control


def second_order_stays(runs):
    """Terms of second order under the k = 1 table keep their size in depth, in every draw nearly alike."""
    dataset, name = runs["update_orders"], "order_norm_by_depth"
    level = 1 + ERROR * np.cos(dataset["draw"])
    stays = dataset[name].where(dataset["table"] != "one", level)
    return {"update_orders": dataset.assign({name: stays})}


def cells_of_no_use(*beginnings):
    """Nets with cells of these names at their standard values are those under the whole table."""

    def control(runs):
        dataset = runs["table_cells"]
        for name in dataset.data_vars:
            direction = str(name).rsplit("_", 1)[1]
            cell, values = f"{direction}_cell", dataset[name].copy()
            for at in map(str, dataset[cell].values):
                if at.startswith(beginnings):
                    values.loc[{cell: at}] = values.sel({cell: f"{at.split(':')[0]}: whole table"})
            dataset = dataset.assign({name: values})
        return {"table_cells": dataset}

    return control


def features_stay(runs):
    """|h_L| of nets with ReLU is the same at all sizes, but for small differences between draws."""
    (run,) = CLAIMS["S2b"].runs
    dataset = runs[run]
    flat = {f"feature_norm_by_{way}": 0 * dataset[f"feature_norm_by_{way}"] + 1 for way in ("width", "depth")}
    noise = 1 + ERROR * np.random.default_rng(0).normal(size=flat["feature_norm_by_depth"].shape)
    flat["feature_norm_by_depth"] = flat["feature_norm_by_depth"] * noise
    return {run: dataset.assign(flat)}


def first_step_is_flat(runs):
    """Second-order terms of one step of one size, with signs that scatter."""
    (run,) = CLAIMS["S9"].runs
    dataset = runs[run]
    changed = {}
    for way in ("width", "depth"):
        name = f"order_norm_by_{way}"
        noise = 1 + 0.1 * np.random.default_rng(1).normal(size=dataset[name].shape)
        changed[name] = (0 * dataset[name] + 1) * noise
    return {run: dataset.assign(changed)}


def activations_collapse(runs):
    (run,) = CLAIMS["S7"].runs
    dataset, name = runs[run], "activation_ratio_by_width"
    collapsed = 0 * dataset[name] + _off_by_a_power(dataset, name)[name]
    return {run: dataset.assign({name: collapsed})}


def _tuned(claim):
    """Rates of every family that a claim is about fall exactly as it says, from many seeds."""
    families = [check.judge.keywords["family"] for check in CLAIMS[claim].checks]

    def exact(runs):
        dataset = runs["learning_rate_search"]
        chosen = dataset["family"].isin(families)
        depth = dataset["depth"]
        law = ((depth + 1) * (depth**2 + depth + 1)) ** -0.5 + 0 * dataset["one_step_scale"]
        changed = {
            "tuned_rate_log10": np.log10(law if claim == "A21b" else dataset["one_step_scale"]),
            "tuned_rate_log10_stderr": 0 * dataset["one_step_scale"] + ERROR**2,
            "located": 0 * dataset["located"] + 64,
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return {"learning_rate_search": dataset.assign(put)}

    return exact


def _looped(scaling, slope):
    """Tuned rates of looped Transformers fall over the number of loops exactly so, from many seeds."""

    def exact(runs):
        dataset = runs["looped_rates"]
        chosen, rates = dataset["scaling"] == scaling, dataset["tuned_rate_log10"]
        logs = slope * np.log10(dataset["loops"]) + 0 * rates
        changed = {
            "tuned_rate_log10": logs,
            "tuned_rate_log10_stderr": 0 * rates + ERROR**2,
            "located": 0 * dataset["located"] + 64,
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return {"looped_rates": dataset.assign(put)}

    return exact


def _features_of_transformers(claim, power):
    """|h_L| of GPT-like nets goes as this power of width and depth under every table, in many draws nearly alike."""

    def control(runs):
        changed = {}
        for run in CLAIMS[claim].runs:
            dataset, spread = _many_draws(runs[run])
            for along in ("width", "depth"):
                values = dataset[f"feature_norm_by_{along}"]
                powers = (0 * values + dataset[along] ** (power + spread)).transpose(*values.dims)
                dataset = dataset.assign({values.name: powers})
            changed[run] = dataset
        return changed

    return control


def _many_draws(dataset):
    """The same draws again and again, and something small that differs between them."""
    draws = MANY_DRAWS
    repeated = dataset.isel(draw=np.arange(draws) % dataset.sizes["draw"]).assign_attrs(draws=draws)
    return repeated, ERROR**2 * xr.DataArray(np.linspace(-1, 1, draws), dims="draw")


def linear_losses_are_lower(runs):
    dataset, spread = _many_draws(runs["looped_rates"])
    losses = dataset["least_loss"]
    linear = losses["scaling"] == "linear"
    lower = (losses.sel(scaling="sqrt", drop=True) - 1 + spread).where(linear, losses)
    return {"looped_rates": dataset.assign(least_loss=lower.transpose(*losses.dims))}


def stable_rates_are_best(runs):
    dataset = runs["learning_rate_search"]
    exact = {"tuned_rate_log10": np.log10(dataset["stable_rate"]), "located": 0 * dataset["located"] + 64}
    errors = {
        "stable_rate_stderr": ERROR**2 * dataset["stable_rate"],
        "tuned_rate_log10_stderr": 0 * dataset["stable_rate"] + ERROR,
    }
    return {"learning_rate_search": dataset.assign(exact | errors)}


def _carried(rule, loss):
    """Every net has so much more loss at the carried rate than at the unchanged one."""

    def control(runs):
        dataset, spread = _many_draws(runs["learning_rate_transfer"])
        unchanged = 0.5 * dataset["loss"].sel(rule="unchanged").fillna(0.0).clip(max=1.0)
        losses = dataset["loss"].copy()
        losses.loc[{"rule": "unchanged"}] = unchanged
        losses.loc[{"rule": rule}] = (unchanged + loss + spread).transpose(*unchanged.dims)
        return {"learning_rate_transfer": dataset.assign(loss=losses, loss_slope=0 * dataset["loss_slope"])}

    return control


def _printed(**changed):
    """Printed tables of which all optima move so far, or of which one rule's least losses are so much higher."""

    def control(runs):
        dataset = runs["reported_losses"]
        drift = 0 * dataset["drift"] + changed.get("drift", dataset["drift"])
        higher = changed.get("higher", 0.0) * (dataset["parameterization"] == "many")
        return {"reported_losses": dataset.assign(drift=drift, least_loss=dataset["least_loss"] + higher)}

    return control


CONTROLS = {
    "A1": overlaps_conserved,
    "A2": label_term_not_of_kernels,
    "A3": no_minima,
    "A4": outputs_negligible,
    "A5a": no_shared_overlaps,
    "A5b": power_law_at_all_depths,
    "A6": uniform_correction,
    "A7": padding_as_printed,
    "A8": more_is_missing,
    "A9": no_correction_for_batches,
    "A10a": no_floor,
    "A10b": batches_as_printed,
    "A11a": variance_of_another_power,
    "A11b": squares_stay_as_they_begin,
    "A12": ungated_blocks,
    "A13": initialisation_as_printed,
    "A14": multiplier_as_printed,
    "A15": blocks_count_as_layers,
    "A17": gelu_as_printed,
    "A18a": softmax_of_order_one,
    "A18b": uniform_softmax,
    "A20a": post_norm_falls_as_pre_norm,
    "A20b": pre_norm_as_printed,
    "A20c": pre_norm_as_printed,
    "A20d": tangents_as_assumed,
    "A21b": _tuned("A21b"),
    "A22": path_sum_is_right,
    "L1a": energies_creep,
    "L1b": tied_growth_as_printed,
    "L2": stacks_grow_as_loops,
    "L3": models_exchanged,
    "L4": cross_term_grows,
    "L5a": _updates_fall(-1.0),
    "L5b": _updates_fall(0.0),
    "L5c": _updates_fall(0.0, like_widths=True),
    "L5d": _updates_fall(-1.0),
    "L1t": _looped_transformer("looped", "sqrt", "correlation_term", 3.0),
    "L5t": _first_order_change("linear", 1.0),
    "L5u": _first_order_change("sqrt", 1.0),
    "L6a": _looped_transformer("looped", "linear", "residual_energy", 1.0),
    "L6b": _looped_transformer("deep", "sqrt", "residual_energy", 1.0),
    "L6c": rates_do_not_matter,
    "L7a": _looped("linear", 0.0),
    "L7b": _looped("sqrt", -0.5),
    "L7c": linear_losses_are_lower,
    "S1": _runs_off("S1", "weight_product"),
    "S2a": _runs_off("S2a", "weight_product"),
    "S2b": features_stay,
    "S3a": _runs_off("S3a", "weight_product"),
    "S3b": _runs_off("S3b", "order_norm"),
    "S4": _runs_off("S4", "weight_product"),
    "S5a": _runs_off("S5a", "feature_norm", "feature_update_norm"),
    "S5b": _runs_off("S5b", "feature_norm"),
    "S5c": second_order_stays,
    "S5d": cells_of_no_use("sgd: learning rate", "sgd: weight decay"),
    "S5e": cells_of_no_use(""),
    "S5f": cells_of_no_use("adamw: adamw epsilon", "shampoo: shampoo epsilon"),
    "S5g": cells_of_no_use(""),
    "S5h": _runs_off("S5h", "feature_norm", "feature_update_norm"),
    "S6": _runs_off("S6", "weight_alignment", "update_alignment"),
    "S7": activations_collapse,
    "S9": first_step_is_flat,
    **{claim: _printed(drift=0.0) for claim in ("S10a", "S10d")},
    **{claim: _printed(drift=4.0) for claim in ("S10b", "S10c", "S10e")},
    **{claim: _printed(higher=2.0) for claim in ("S10f", "S10g")},
    **{claim: _printed(higher=-2.0) for claim in ("S10h", "S10i")},
    **{claim: _features_of_transformers(claim, 1.0) for claim in ("S11a", "S11c", "S11e")},
    **{claim: _features_of_transformers(claim, 0.0) for claim in ("S11b", "S11d")},
    "S8": _runs_off("S8", "stable_rank"),
    **{claim: _tuned(claim) for claim in ("T1", "T2", "T3", "T4", "T5")},
    "T7": stable_rates_are_best,
    "T6a": _carried("three_halves", -0.1),
    "T6b": _carried("finite_depth", 0.1),
    "T6c": _carried("stable_ratio", 0.1),
}
