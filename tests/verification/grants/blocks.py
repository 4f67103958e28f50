"""What judges of residual nets and Transformers grant beside standard errors."""

from functools import partial

import numpy as np

from meanfield.theory.laws import log_path_sum_scale
from sims import residual_depth, residual_overlap, transformer_coordinate_check
from sims.transformer_depth import claims as transformer_depth
from tests.sims.claim_controls import SCALE
from tests.verification.grants.made import ERROR, exactly, fitted_slope, in_draws, power_law


def blocks_of_finite_width(dataset, share):
    """ReLU nets are off by 2.5 times what finite width does to the slopes of linear ones, which are exact."""
    logs = {level: dataset[f"log_{SCALE}_{level}"] for level in ("theory", "mean_field")}
    for scaling in ("init", "multiplier_sqrt", "multiplier_linear"):
        for block_depth in dataset["block_depth"].values:
            net = {"scaling": scaling, "block_depth": block_depth}
            finite, limit = (
                fitted_slope(dataset["blocks"], at.sel(activation="linear", **net)) for at in logs.values()
            )
            for activation, power in (("linear", 0.0), ("relu", 2.5 * share * abs(finite - limit))):
                law = np.exp(logs["theory"].sel(activation=activation, **net).values)
                law = law * power_law(dataset["blocks"], power)
                dataset = exactly(dataset, SCALE, law, activation=activation, **net)
    return dataset


def deviations_of_gates(dataset, share):
    law = dataset["gate_deviation_law"] * (1 + share * 2 / dataset.attrs["width"])
    return dataset.assign(gate_deviation=law, gate_deviation_stderr=ERROR * abs(law))


def overlaps_of_one_unit(dataset, share):
    granted = (2 + np.log(dataset["growth_bound"])) / dataset.attrs["width"]
    law = dataset["overlap_scale"] * (1 + share * granted)
    return dataset.assign(overlap=law, overlap_stderr=ERROR * abs(law))


def slopes_of_transformers(dataset, share, norm, granted):
    changed = dataset["local_slope_mean_field"].copy()
    changed.loc[{"norm": norm}] = -1.5 + granted * share
    changed.loc[{"norm": transformer_depth.OTHER[norm]}] = -1.5
    return dataset.assign(local_slope_mean_field=changed)


def _short_by(dataset, lacking, **net):
    """With theory's slope far up that of the drawn blocks and LACKING, of one net."""
    far = dataset[f"{SCALE}_far_slope"].copy()
    far.loc[net] = fitted_slope(dataset["blocks"], dataset[f"log_{SCALE}_theory"].sel(net).values) + lacking
    return dataset.assign({far.name: far})


def depths_of_branches(dataset, share):
    """What theory's slopes lack of those far up, 0.1 for k layers and 0.1 for one."""
    for place, block_depth in enumerate(dataset["block_depth"].values):
        net = {"activation": "relu", "scaling": "init", "block_depth": block_depth}
        law = power_law(dataset["blocks"], -1 + (0.2 * share if place else 0.0))
        dataset = exactly(_short_by(dataset, 0.1, **net), SCALE, law, **net)
    return dataset


def printed_exponents(dataset, share):
    """What theory's slope lacks of that far up, 0.1, and 2.5 times what finite width does to that of linear nets."""
    net = {"scaling": "init", "block_depth": 1}
    linear = dataset.sel(activation="linear", **net)
    finite, limit = (
        fitted_slope(dataset["blocks"], linear[f"log_{SCALE}_{level}"].values) for level in ("theory", "mean_field")
    )
    law = power_law(dataset["blocks"], -1.5 + share * (0.1 + 2.5 * abs(finite - limit)))
    dataset = exactly(dataset, SCALE, np.exp(linear[f"log_{SCALE}_theory"].values), activation="linear", **net)
    return exactly(_short_by(dataset, 0.1, activation="relu", **net), SCALE, law, activation="relu", **net)


def path_sums(dataset, share):
    """By a factor e they depart from end to end: here by e^(2 - share)."""
    blocks = dataset["blocks"].values
    law = np.exp(log_path_sum_scale(blocks) + (2 - share) * np.linspace(0, 1, len(blocks)))
    return exactly(dataset, SCALE, law, activation="relu", scaling="init", block_depth=1)


def vanishing_deviations(dataset, share):
    """What a relative correction 2/n at the least width does to the slope over the first three."""
    width, name = dataset["width"].astype(float), "gate_deviation_by_width"
    granted = float(np.log1p(2 / width[0]) / np.log(width[2] / width[0]))
    law = (width / width[0]) ** (-1 + share * granted) + 0 * dataset[name].fillna(0)
    law = law.transpose(*dataset[name].dims)
    return dataset.assign({name: law, "gate_deviation_stderr_by_width": ERROR * law})


def excesses_of_overlaps(dataset, share):
    """The scale of the overlap times the logarithm of its growth, over n."""
    granted = dataset["overlap_scale"] * np.log(dataset["growth_bound"]) / dataset.attrs["width"]
    law = (share * granted + 0 * dataset["overlap_excess"]).transpose(*dataset["overlap_excess"].dims)
    return dataset.assign(overlap_excess=law, overlap_excess_stderr=ERROR * abs(law))


def exponents_of_transformers(dataset, share):
    """As much as from half the width to the width: a tenth here."""
    depths = dataset["wide_depth"].values
    for attention in dataset["attention_scale"].values:
        net = {"norm": "post", "attention_scale": attention, "depth": depths}
        theory = dataset[f"log_{SCALE}_mean_field"].sel(scaling="none", **net).values
        law = depths ** (fitted_slope(depths, theory) + 0.1 * share)
        dataset = exactly(dataset, SCALE, law, scaling="none", **net)
        del net["depth"]
        dataset = exactly(dataset, f"narrow_{SCALE}", law * depths**0.1, **net)
    return dataset


def tangents_of_transformers(dataset, share):
    """As much as from half the width to the width: a tenth here."""
    name, layers, widths = transformer_depth.RHO_BY_WIDTH, dataset["wide_layer"].astype(float), dataset["width"].values
    for width in widths:
        net = {"width": width, "norm": "post", "direction": "shared"}
        values = dataset[name].sel(net)
        law = 0 * values + layers ** (0.1 * share + 0.1 * (width == widths[-2]))
        dataset = exactly(dataset, name, law.transpose(*values.dims).values, **net)
    return dataset


def growths_in_transformers(dataset, share):
    """Norms grow by the quarter power or faster: here by 0.25 (2 - share)."""
    for along in ("width", "depth"):
        dataset = in_draws(dataset, f"feature_norm_by_{along}", along, 0.25 * (2 - share), table="standard")
    return dataset


def slopes_of_backbones(dataset, share):
    """A tenth of an exponent, of layers and of blocks."""
    layers = dataset["backbone_layers"]
    off = -1.5 * layers / layers.sum("count") + 0.1 * share + 0 * dataset["backbone_slope"]
    return dataset.assign(backbone_slope=off)


DRAWN = {
    "residual slopes": ("residual_depth", blocks_of_finite_width, residual_depth.judge_theory),
    "deviations of gates": ("residual_overlap", deviations_of_gates, residual_overlap.judge_deviation_law),
    "overlaps of one unit": ("residual_overlap", overlaps_of_one_unit, residual_overlap.judge_one_unit),
    "depths of branches": ("residual_depth", depths_of_branches, residual_depth.judge_block_depth),
    "printed exponents": ("residual_depth", printed_exponents, residual_depth.judge_initialisation),
    "path sums": ("residual_depth", path_sums, residual_depth.judge_path_sum),
    "vanishing deviations": ("residual_overlap", vanishing_deviations, residual_overlap.judge_vanishing_deviation),
    "excesses of overlaps": ("residual_overlap", excesses_of_overlaps, residual_overlap.judge_mean_law),
    "exponents": ("transformer_depth", exponents_of_transformers, partial(transformer_depth.judge_theory, norm="post")),
    "tangents": ("transformer_depth", tangents_of_transformers, transformer_depth.judge_post_bounded),
    "growths": (
        "transformer_coordinate_check",
        growths_in_transformers,
        partial(transformer_coordinate_check.judge_growth, normalisation="layer"),
    ),
}

COMPUTED = {
    "limits of Transformers": (
        "transformer_depth",
        partial(slopes_of_transformers, norm="post", granted=0.05),
        partial(transformer_depth.judge_limit, norm="post"),
    ),
    "norms in the limit": (
        "transformer_depth",
        partial(slopes_of_transformers, norm="pre", granted=0.15),
        transformer_depth.judge_placement_limit,
    ),
    "slopes of backbones": ("residual_depth", slopes_of_backbones, residual_depth.judge_effective_depth),
}
