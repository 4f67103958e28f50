"""Worlds in which claims of Zhang et al. 2026 on the first step get another verdict."""

import numpy as np

from meanfield.theory.laws import log_path_sum_scale
from sims.cnn_overlap.claims import P0_HEAD
from tests.sims.claim_controls.changes import ERROR, SCALE, put


def _residual(runs, exponent, **net):
    """Scales of one residual net that fall as a power of the blocks."""
    dataset = runs["residual_depth"]
    place = {"activation": "relu", **net}
    first = float(dataset[SCALE].sel(place)[0])
    return put(dataset, SCALE, first * (dataset["blocks"] / dataset["blocks"][0]) ** exponent, **place)


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
    return {"cnn_overlap": put(dataset, "label_term_limit", deepest["label_term_law"], depth=deepest["depth"].item())}


CNN_RUNS = ("cnn_overlap", f"cnn_overlap-{'-'.join(word.lstrip('-') for word in P0_HEAD)}")


def _in_both_readouts(runs, change):
    return {run: change(runs[run]) for run in CNN_RUNS}


def _by_depth_of_the_deepest(dataset, name, power):
    """A term of the deepest net that grows as this power of the layer."""
    deepest = dataset.isel(depth=-1)
    return put(dataset, name, deepest["layer"].astype(float) ** power, depth=deepest["depth"].item())


def cubes(runs):
    """Label terms that grow as l^3 under both readouts, the mean field's with them."""

    def change(dataset):
        made = _by_depth_of_the_deepest(dataset, "label_term_limit", 3.0)
        return _by_depth_of_the_deepest(made, "label_term_mean_field", 3.0)

    return _in_both_readouts(runs, change)


def _limits(runs, name, values):
    return _in_both_readouts(runs, lambda dataset: dataset.assign({f"{name}_deep": ("deep_depth", values)}))


def cubes_in_the_limit(runs):
    return _limits(runs, "label_term", [2.9, 2.95])


def minus_three_halves_in_the_limit(runs):
    return _limits(runs, SCALE.removeprefix("label_"), [-1.45, -1.47])


def theory_of_another_power(runs):
    """Mean fields half a power off in the layer."""

    def change(dataset):
        grown = dataset["label_term_mean_field"] * dataset["layer"].astype(float) ** 2
        made = _by_depth_of_the_deepest(dataset, "label_term_limit", 3.0)
        return made.assign(label_term_mean_field=grown.transpose(*dataset["label_term_mean_field"].dims))

    return _in_both_readouts(runs, change)


def output_terms_at_most_square(runs):
    """Output terms that grow as l^2 and label terms that grow as l^3, in draws and in the limit."""

    def change(dataset):
        for name in ("output_term", "adjusted_output_term"):
            if name in dataset:
                dataset = _by_depth_of_the_deepest(dataset, name, 2.0)
        for name in ("label_term", "adjusted_label_term"):
            if name in dataset:
                dataset = _by_depth_of_the_deepest(dataset, name, 3.0)
        return dataset.drop_vars(["output_term_finite_channels", "label_term_finite_channels"], errors="ignore")

    return _limits(_in_both_readouts(runs, change), "output_term", [2.0, 2.0])


def three_halves_at_all_depths(runs):
    """Scales, and their mean field, that fall as L^(-3/2), finite channels adding nothing."""
    name = SCALE.removeprefix("label_")

    def change(dataset):
        law = dataset["depth"].astype(float) ** -1.5
        for drawn in (name, f"adjusted_{name}"):
            if drawn in dataset:
                dataset = put(dataset, drawn, law)
        levels = {f"{name}_{level}": 0 * dataset[name] + law for level in ("mean_field", "finite_channels")}
        return dataset.assign(levels)

    return _in_both_readouts(runs, change)


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


def padding_as_printed(runs):
    """Scales off by one factor at every depth, and a share lost that is the boundary fraction at every layer."""
    dataset = runs["cnn_padding"]
    circular = dataset[SCALE].sel(padding="circular")
    dataset = put(dataset, SCALE, 1.2 * circular, padding="zero")
    lost = 0 * dataset["far_ratio"] + dataset["far_boundary_fraction"]
    return {"cnn_padding": dataset.assign(far_ratio=1 - lost)}


def padding_of_another_exponent(runs):
    """Scales whose ratio grows as the depth on every grid."""
    dataset = runs["cnn_padding"]
    circular = dataset[SCALE].sel(padding="circular")
    return {"cnn_padding": put(dataset, SCALE, circular * dataset["depth"], padding="zero")}


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
        dataset = put(dataset, name, 0 * dataset[name].sel(case=case) + 1.0, case=case)
    return {"batch_size": dataset}


def no_floor(runs):
    """Label terms of all cases that fall as 1/B."""
    dataset, name = runs["batch_size"], "label_term"
    for case in map(str, dataset["case"].values):
        falling = dataset[name].sel(case=case).isel(batch=0) / dataset["batch"]
        dataset = put(dataset, name, falling.values, case=case)
    return {"batch_size": dataset}


def squares_stay_as_they_begin(runs):
    dataset, name = runs["overlap_recursion"], "squared_overlap"
    second = dataset[name].isel(layer=1, drop=True) + 0 * dataset[name]
    return {"overlap_recursion": dataset.assign({name: second, f"{name}_stderr": ERROR * second})}


def gelu_with_the_gain_of_relu(runs):
    dataset = runs["activation_drift"]
    return {"activation_drift": put(dataset, "gate_energy", 0.5, case="gelu, he")}


def gelu_as_printed(runs):
    """Every case but ReLU: energies and gains of unit variance, and scales a little steeper than ReLU's."""
    dataset = runs["activation_drift"]
    relu = dataset[SCALE].sel(case="relu")
    steeper = relu * (dataset["depth"] / dataset["depth"][0]) ** -0.04
    layers = f"{SCALE}_mean_field"
    for case in ("gelu, fan_in", "gelu, he", "gelu, energy"):
        gain = float(dataset["gain"].sel(case=case))
        dataset = put(dataset, "pre_activation_energy", 1.0, case=case)
        dataset = put(dataset, "gate_energy", gain, case=case)
        dataset = put(dataset, SCALE, steeper.transpose("width", "depth"), case=case)
        dataset = put(dataset, layers, dataset[layers].sel(case="relu"), case=case)
    return {"activation_drift": dataset}


def softmax_of_order_one(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": put(dataset, "output_error", 1.0, head="mup")}


def uniform_softmax(runs):
    dataset = runs["cross_entropy"]
    return {"cross_entropy": put(dataset, "output_error", 1 - 1 / dataset.attrs["classes"], head="fan_in")}


def losses_half_a_power_apart(runs):
    """eta* under cross-entropy falls by half a power of the depth faster than under squared loss, in all nets alike."""
    dataset, name = runs["cross_entropy"], "update_energy"
    squared = dataset[name].sel(loss="squared")
    dataset = put(dataset, name, squared * dataset["depth"], loss="cross_entropy")
    return {"cross_entropy": dataset.assign({f"{name}_stderr": ERROR * dataset[name]})}


def one_prefactor(runs):
    """Scales of all stencils that are those of the first at every depth."""
    dataset = runs["cnn_finite_channels"]
    first = dataset[SCALE].isel(stencil=0, drop=True)
    return {"cnn_finite_channels": dataset.assign({SCALE: 0 * dataset[SCALE] + first})}


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
    return {"residual_depth": put(dataset, SCALE, rule, **place)}


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


def placement_does_not_matter(runs):
    """Drawn scales of both norms at both widths fall as one power; rates of both tuned in training do, too."""
    dataset, searched = runs["transformer_depth"], runs["learning_rate_search"]
    for name, depth in ((SCALE, "depth"), (f"narrow_{SCALE}", "wide_depth")):
        dataset = put(dataset, name, dataset[depth].astype(float) ** -1.5)
    rates = 0 * searched["tuned_rate_log10"] - 1.5 * np.log10(searched["depth"])
    located = 64 + 0 * searched["located"]
    tuned = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": ERROR + 0 * rates, "located": located}
    return {"transformer_depth": dataset, "learning_rate_search": searched.assign(tuned)}


def tangents_as_assumed(runs):
    """One rho for all directions at all depths, but for fluctuations as n^(-1/2), the remainder among them."""
    dataset, name = runs["transformer_depth"], "tangent_propagation"
    rho = 1 + 0 * dataset[f"{name}_by_width"]
    noise = (0 * rho + dataset["width"] ** -0.5).transpose(*rho.dims)
    changed = {name: rho, f"{name}_spread": noise, f"{name}_remainder": noise.sel(direction="shared", drop=True)}
    made = {f"{key}_by_width": values for key, values in changed.items()}
    made |= {f"{key}_by_width_stderr": ERROR * values for key, values in changed.items()}
    return {"transformer_depth": dataset.assign(made | {f"{name}_by_width_largest_share": 0 * rho})}


CONTROLS = {
    "A1": overlaps_conserved,
    "A2": label_term_not_of_kernels,
    "A3": no_minima,
    "A3a": cubes,
    "A3b": cubes_in_the_limit,
    "A3c": theory_of_another_power,
    "A4": outputs_negligible,
    "A4a": output_terms_at_most_square,
    "A5a": no_shared_overlaps,
    "A5b": power_law_at_all_depths,
    "A5c": three_halves_at_all_depths,
    "A5d": minus_three_halves_in_the_limit,
    "A6": uniform_correction,
    "A7a": padding_as_printed,
    "A7b": padding_of_another_exponent,
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
    "A17a": gelu_with_the_gain_of_relu,
    "A17b": gelu_as_printed,
    "A18a": softmax_of_order_one,
    "A18b": uniform_softmax,
    "A18c": losses_half_a_power_apart,
    "A20a": post_norm_falls_as_pre_norm,
    "A20b": pre_norm_as_printed,
    "A20c": placement_does_not_matter,
    "A20d": tangents_as_assumed,
    "A20e": pre_norm_as_printed,
    "A22": path_sum_is_right,
    "A23b": one_prefactor,
}
