"""What further judges of plain and residual nets and of Transformers grant beside standard errors, as in `test_grants`.

Where a run itself holds what is granted, it is given a number here, from which the judge's grant follows.
"""

from functools import partial

import numpy as np
import pytest

from meanfield.theory.laws.residual import log_path_sum_scale
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zhang_2026.batches import batch_sizes, cross_entropies
from meanfield.verification.zhang_2026.plain_nets import activation_drift, depth_growth, padding, stencil_slopes
from meanfield.verification.zhang_2026.residual_nets import overlaps, slopes
from meanfield.verification.zhang_2026.transformers import depth_exponents, tangent_propagation
from meanfield.verification.zheng_2026 import transformer_checks
from tests.sims.claim_controls.changes import SCALE
from tests.verification.granted import ERROR, assert_computed, assert_drawn, exactly, fitted_slope, power_law


def prefactors_of_losses(dataset, share):
    """A tenth in the energy: a twentieth in eta*."""
    squared = dataset["update_energy"].sel(head="mup", loss="squared")
    law = (dataset.attrs["classes"] - 1) * np.exp(0.1 * share) * squared
    for loss, values in (("squared", squared), ("cross_entropy", law)):
        dataset = exactly(dataset, "update_energy", values.values, head="mup", loss=loss)
    return dataset


def output_terms_of_softmax(dataset, share):
    """Relatively 2 (C + 5) L / n, for C classes."""
    place = {"net": "MLP", "head": "he", "loss": "cross_entropy"}
    at = dataset.sel(place)
    granted = 2 * (dataset.attrs["classes"] + 5) * dataset["depth"] / dataset.attrs["width"]
    law = at["label_term"] * at["output_term_mean_field"] / at["label_term_mean_field"] * (1 + granted) ** share
    dataset = exactly(dataset, "label_term", at["label_term"].values, **place)
    return exactly(dataset, "output_term", law.values, **place)


def terms_by_batch(dataset, share, cases):
    """A tenth of the mean field, where finite width is said to make so much."""
    law = dataset["label_term_mean_field"]
    made = dataset.assign(label_term_allowance=0.1 * law)
    return exactly(made, "label_term", (law.sel(case=cases) * (1 + 0.1 * share)).values, case=cases)


def terms_of_padding(dataset, share):
    """A tenth of the mean field, where finite width is said to make so much."""
    dataset = dataset.assign(finite_width_allowance=0.1 + 0 * dataset["finite_width_allowance"])
    law = dataset["label_term_mean_field"].sel(padding="zero") * (1 + 0.1 * share)
    values = law.transpose(*dataset["label_term"].sel(padding="zero").dims).values
    return exactly(dataset, "label_term", values, padding="zero")


def slightly_steeper(dataset, share):
    """Slopes by the printed difference of -0.04, and by twice that to either side."""
    for case, slope in (("relu", -1.4), ("gelu, fan_in", -1.44 - 0.08 * share)):
        narrower = np.sqrt(dataset["width"].values[0] / dataset["width"].values)[:, None]
        dataset = exactly(dataset, SCALE, narrower * power_law(dataset["depth"], slope), case=case)
    return dataset


def stationary_energies(dataset, share):
    """A tenth, where finite width makes nothing."""
    name = "pre_activation_energy"
    dataset = dataset.assign({f"{name}_correction": 0 * dataset[f"{name}_correction"]})
    return exactly(dataset, name, 1 - 0.1 * share, case="gelu, fan_in")


def energies_of_gates(dataset, share):
    """The square of the correction of order 1/n: a hundredth where that is a tenth."""
    for name in ("pre_activation_energy", "gate_energy"):
        law = dataset[f"{name}_mean_field"].sel(layers=dataset["layer"].values).rename(layers="layer")
        dataset = dataset.assign({f"{name}_correction": 0.1 + 0 * dataset[f"{name}_correction"]})
        dataset = exactly(dataset, name, (law * (1.1 + 0.01 * share)).transpose(*dataset[name].dims).values)
    return dataset


def output_terms_by_layer(dataset, share):
    """As much as finite channels add to the exponent: 0.1 here."""
    layer = dataset["layer"].astype(float)
    finite = dataset["output_term_mean_field"] * layer**0.1
    dataset = dataset.assign(output_term_finite_channels=finite.transpose(*dataset["output_term_mean_field"].dims))
    return _of_deepest(dataset, "adjusted_output_term", layer.values ** (2.1 + 0.1 * share))


def growths_by_layer(dataset, share):
    """What extrapolation leaves more of at the end of the deeper half, a fifth, than where it begins, a tenth."""
    layers = dataset["layer"].values
    left = 0.1 + 0.1 * np.log2(dataset["layer"] / (layers[-1] // 2)) + 0 * dataset["extrapolation_left"]
    made = dataset.assign(extrapolation_left=left, thin_input_allowance=0 * dataset["thin_input_allowance"])
    law = dataset["label_term_mean_field"].isel(depth=-1).values * layers ** (share * np.log2(1.2 / 1.1))
    return _of_deepest(made, "label_term_limit", law)


def _of_deepest(dataset, name, values):
    """With these values of the deepest net by layer, and errors of a millionth that are independent."""
    depth, covariance = dataset["depth"].values[-1], dataset[f"{name}_covariance"].copy()
    covariance.loc[{"depth": depth}] = np.diag((ERROR * values) ** 2)
    return exactly(dataset, name, values, depth=depth).assign({f"{name}_covariance": covariance})


def transfer_rules(dataset, share):
    """As much as finite channels add to the slope."""
    added = depth_growth.steepening(dataset, "learning_rate_scale")
    law = power_law(dataset["depth"], -1.5 + added - share * abs(added))
    return exactly(dataset, "adjusted_learning_rate_scale", law)


def slopes_of_stencils(dataset, share):
    """What finite width does to the slope of one site."""
    dataset = dataset.transpose("stencil", "depth", ...)
    granted = abs(fitted_slope(dataset["depth"], dataset["log_one_site_shift"].values))
    law = dataset[f"{SCALE}_mean_field"].transpose("stencil", "depth").values
    return exactly(dataset, SCALE, law * power_law(dataset["depth"], share * granted))


def one_exponent(dataset, share):
    """As much as the mean field's slopes differ from their mean."""
    dataset = dataset.transpose("stencil", "depth", ...)
    logs = np.log(dataset[f"{SCALE}_mean_field"].transpose("stencil", "depth").values)
    expected = fitted_slope(dataset["depth"], logs.T)
    granted = np.outer(expected - expected.mean(), np.log(dataset["depth"].values))
    return exactly(dataset, SCALE, power_law(dataset["depth"], -1.4) * np.exp(share * granted))


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
    name, layers, widths = tangent_propagation.RHO, dataset["wide_layer"].astype(float), dataset["width"].values
    for width in widths:
        net = {"width": width, "norm": "post", "direction": "shared"}
        values = dataset[name].sel(net)
        law = 0 * values + layers ** (0.1 * share + 0.1 * (width == widths[-2]))
        dataset = exactly(dataset, name, law.transpose(*values.dims).values, **net)
    return dataset


def growths_in_transformers(dataset, share):
    """Norms grow by the quarter power or faster: here by 0.25 (2 - share), nearly alike in all draws."""
    for along in ("width", "depth"):
        name = f"feature_norm_by_{along}"
        values, size = dataset[name].astype(float).copy(), dataset[along].astype(float)
        at = values.sel(table="standard")
        law = (size / size[0]) ** (0.25 * (2 - share) + 1e-10 * np.cos(dataset["draw"])) + 0 * at.fillna(0)
        values.loc[{"table": "standard"}] = law.transpose(*at.dims).values
        dataset = dataset.assign({name: values})
    return dataset


DRAWN = {
    "prefactors of losses": ("cross_entropy", prefactors_of_losses, cross_entropies.judge_prefactor),
    "output terms of softmax": ("cross_entropy", output_terms_of_softmax, cross_entropies.judge_output_term),
    "terms by batch": ("batch_size", partial(terms_by_batch, cases=slice(None)), batch_sizes.judge_mean_field),
    "floors by batch": (
        "batch_size",
        partial(terms_by_batch, cases=[batch_sizes.WITH_MEAN, batch_sizes.TAUGHT]),
        batch_sizes.judge_floor,
    ),
    "terms of padding": ("cnn_padding", terms_of_padding, padding.judge_mean_field),
    "slightly steeper": (
        "activation_drift",
        slightly_steeper,
        partial(activation_drift.judge_slightly_steeper, rule="fan_in"),
    ),
    "stationary energies": ("activation_drift", stationary_energies, activation_drift.judge_stationary),
    "energies of gates": ("activation_drift", energies_of_gates, activation_drift.judge_energies),
    "output terms by layer": ("cnn_overlap", output_terms_by_layer, depth_growth.judge_output_term),
    "growths by layer": ("cnn_overlap", growths_by_layer, partial(depth_growth.judge_growth, name="label_term")),
    "transfer rules": ("cnn_overlap", transfer_rules, depth_growth.judge_transfer_rule),
    "slopes of stencils": ("cnn_finite_channels", slopes_of_stencils, stencil_slopes.judge_slopes),
    "one exponent": ("cnn_finite_channels", one_exponent, stencil_slopes.judge_one_exponent),
    "depths of branches": ("residual_depth", depths_of_branches, slopes.judge_block_depth),
    "printed exponents": ("residual_depth", printed_exponents, slopes.judge_initialisation),
    "path sums": ("residual_depth", path_sums, slopes.judge_path_sum),
    "vanishing deviations": ("residual_overlap", vanishing_deviations, overlaps.judge_vanishing_deviation),
    "excesses of overlaps": ("residual_overlap", excesses_of_overlaps, overlaps.judge_mean_law),
    "exponents": ("transformer_depth", exponents_of_transformers, partial(depth_exponents.judge_theory, norm="post")),
    "tangents": ("transformer_depth", tangents_of_transformers, tangent_propagation.judge_post_bounded),
    "growths": (
        "transformer_coordinate_check",
        growths_in_transformers,
        partial(transformer_checks.judge_growth, normalisation="layer"),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_no_more_is_granted_than_is_said(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    assert_drawn(smoke_run(simulation), made, judge)


@pytest.mark.parametrize("name", ["terms by batch", "terms of padding"])
def test_finite_width_is_granted_above_the_mean_field_alone(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    assert judge(made(smoke_run(simulation), -0.5)).verdict is Verdict.REFUTED


def slopes_by_batch(dataset, share):
    """A tenth of an exponent."""
    return dataset.assign(depth_slope=-1.5 + 0.1 * share + 0 * dataset["depth_slope"])


def rates_of_gelu(dataset, share):
    """A fifth of the rival's rate, in the last layer."""
    changed = dataset[f"{SCALE}_mean_field"].copy()
    for case in ("gelu, fan_in", "gelu, he", "gelu, energy"):
        rival = activation_drift.rate_of_gain(activation_drift.far_gain(dataset, case))
        last = float(changed.sel(case=case, layers=59)) * np.exp(0.2 * share * rival)
        changed.loc[{"case": case, "layers": 60}] = last
    return dataset.assign({changed.name: changed})


def slopes_of_backbones(dataset, share):
    """A tenth of an exponent, of layers and of blocks."""
    layers = dataset["backbone_layers"]
    off = -1.5 * layers / layers.sum("count") + 0.1 * share + 0 * dataset["backbone_slope"]
    return dataset.assign(backbone_slope=off)


COMPUTED = {
    "slopes by batch": ("batch_size", slopes_by_batch, batch_sizes.judge_depth),
    "rates of GELU": ("activation_drift", rates_of_gelu, activation_drift.judge_asymptote),
    "slopes of backbones": ("residual_depth", slopes_of_backbones, slopes.judge_effective_depth),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_numbers_are_confirmed_within_what_is_said_alone(name, smoke_run):
    simulation, made, judge = COMPUTED[name]
    assert_computed(smoke_run(simulation), made, judge)
