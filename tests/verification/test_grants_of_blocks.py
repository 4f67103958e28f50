"""What judges of residual nets and Transformers grant beside standard errors, as in `test_grants`.

Where a run itself holds what is granted, it is given a number here, from which the judge's grant follows.
"""

from functools import partial

import numpy as np
import pytest

from meanfield.theory.laws.residual import log_path_sum_scale
from meanfield.verification.verdicts import Verdict
from meanfield.verification.zhang_2026.residual_nets import overlaps, slopes
from meanfield.verification.zhang_2026.transformers import depth_exponents, tangent_propagation
from meanfield.verification.zheng_2026 import spectral_products, takeaways, training_assumptions, transformer_checks
from tests.sims.claim_controls.changes import SCALE
from tests.verification.granted import ERROR, assert_computed, assert_drawn, exactly, fitted_slope, power_law


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


def _in_draws(dataset, name, along, exponent, **where):
    """With powers of the size at a place, nearly alike in all draws."""
    values, size = dataset[name].astype(float).copy(), dataset[along].astype(float)
    at = values.sel(where)
    law = (size / size[0]) ** (exponent + 1e-10 * np.cos(dataset["draw"])) + 0 * at.fillna(0)
    values.loc[where] = law.transpose(*at.dims).values
    return dataset.assign({name: values})


def growths_in_transformers(dataset, share):
    """Norms grow by the quarter power or faster: here by 0.25 (2 - share)."""
    for along in ("width", "depth"):
        dataset = _in_draws(dataset, f"feature_norm_by_{along}", along, 0.25 * (2 - share), table="standard")
    return dataset


DRAWN = {
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


def slopes_of_backbones(dataset, share):
    """A tenth of an exponent, of layers and of blocks."""
    layers = dataset["backbone_layers"]
    off = -1.5 * layers / layers.sum("count") + 0.1 * share + 0 * dataset["backbone_slope"]
    return dataset.assign(backbone_slope=off)


def test_slopes_of_backbones_may_be_off_by_a_tenth(smoke_run):
    assert_computed(smoke_run("residual_depth"), slopes_of_backbones, slopes.judge_effective_depth)


@pytest.mark.parametrize(("exponent", "refuted"), [(-0.51, False), (-0.49, True)])
def test_nothing_is_granted_to_second_orders_that_fall_as_a_root(exponent, refuted, smoke_runs):
    dataset = smoke_runs["update_orders-optimizers-muon"]
    for table, power in (("many", 0.0), ("one", exponent)):
        dataset = _in_draws(dataset, "order_norm_by_depth", "depth", power, table=table)
    assert (takeaways.judge_second_order(dataset).verdict is Verdict.REFUTED) == refuted


@pytest.mark.parametrize(
    ("run", "norm", "judge"),
    [
        (
            "spectral_condition-optimizers-sgd-times-6",
            "feature_norm",
            partial(spectral_products.judge_group, name="features"),
        ),
        (
            "training_assumptions-times-3",
            "activation_ratio",
            partial(training_assumptions.judge_assumption, name="G.2"),
        ),
    ],
)
def test_exponents_of_norms_that_are_all_but_exact_may_be_off_by_a_thousandth(run, norm, judge, smoke_runs):
    for share, refuted in ((0.9, False), (1.1, True)):
        dataset = smoke_runs[run]
        for along in ("width", "depth"):
            dataset = _in_draws(dataset, f"{norm}_by_{along}", along, 0.001 * share)
        assert (judge(dataset).verdict is Verdict.REFUTED) == refuted


def test_of_biases_the_mean_over_draws_is_followed(smoke_runs):
    """It stays here, while draws scatter the more the wider the net: their mean square grows by an exponent of 0.01."""
    dataset, name = smoke_runs["spectral_condition-biases-optimizers-sgd-times-6"], "update_product"
    bias = next(label for label in map(str, dataset[f"{name}_name"].values) if "|db" in label)
    values, apart = dataset[f"{name}_by_width"].astype(float).copy(), 1 - 2 * (dataset["draw"] % 2)
    scattered = 1 + 0.1 * apart * np.log2(dataset["width"] / dataset["width"][0])
    place = {f"{name}_name": bias}
    values.loc[place] = (scattered + 0 * values.sel(place)).transpose(*values.sel(place).dims).values
    rows = spectral_products._rows(dataset.assign({values.name: values}), name)
    found = [row.slope.plain for row in rows if row.name == bias and row.direction == "width"]
    assert found == [pytest.approx(0.0, abs=1e-3)]
