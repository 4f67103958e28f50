"""Worlds in which claims of Zheng et al. 2026 get another verdict."""

import numpy as np

from sims.claims.catalogue import CLAIMS
from sims.common.blocks import DIRECTIONS, WATCHED
from tests.sims.claim_controls.changes import ERROR, many_draws, off_by_a_power


def _runs_off(claim, *names):
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


def _all_flat(claim):
    """Everything that a coordinate check watches is the same at all sizes, in every draw nearly alike."""

    def control(runs):
        (run,) = CLAIMS[claim].runs
        dataset = runs[run]
        watched = [f"{name}_by_{way}" for name in WATCHED for way in DIRECTIONS]
        level = 1 + ERROR * np.cos(dataset["draw"])
        return {run: dataset.assign({name: (0 * dataset[name] + 1) * level for name in watched})}

    return control


def second_order_stays(runs):
    """Terms of second order under the k = 1 table keep their size in depth, in every draw nearly alike."""
    run, name = "update_orders-optimizers-muon", "order_norm_by_depth"
    dataset = runs[run]
    level = 1 + ERROR * np.cos(dataset["draw"])
    stays = dataset[name].where(dataset["table"] != "one", level)
    return {run: dataset.assign({name: stays})}


def table_is_wrong(claim, *planted):
    """Values that the nets of all runs of a claim were given are off by these powers.

    Each is (optimizer, role, hyperparameter, direction, power); rates and decays change no norm before the first step.
    """

    def control(runs):
        return {run: off_table(runs[run], *planted) for run in CLAIMS[claim].runs}

    return control


def off_table(dataset, *planted):
    """A run of `sims.table_cells` under tables with these cells off."""
    for optimizer, role, hyperparameter, direction, power in planted:
        name, at = f"value_by_{direction}", {"optimizer": optimizer, "role": role, "hyperparameter": hyperparameter}
        here = (dataset["optimizer"] == optimizer) & (dataset["role"] == role)
        here = here & (dataset["hyperparameter"] == hyperparameter)
        assert int(here.sum()) == 1, at
        off = dataset[name] * (dataset[direction] / dataset[direction][0]) ** power
        dataset = dataset.assign({name: dataset[name].where(~here, off).transpose(*dataset[name].dims)})
    return dataset


# A wrong table that the moves of slopes took for a right one: rates as 1/sqrt(r_n), decays as 1/r_n.
WRONG_LION = (
    ("lion", "hidden", "learning_rate", "width", 0.5),
    ("lion", "hidden", "weight_decay", "width", -2.0),
)


def gradients_stay(runs):
    """Gradients, and what SGD makes of them, are the same at all depths, in every draw nearly alike."""
    dataset, changed = runs["table_cells"], {}
    level = 1 + ERROR * np.cos(dataset["draw"])
    for name in (f"role_{of}_by_depth" for of in ("direction_norm", "gradient_norm", "gradient_element")):
        changed[name] = (0 * dataset[name] + dataset[name].isel(depth=0).mean("draw")) * level
        changed[name] = changed[name].transpose(*dataset[name].dims)
    return {"table_cells": dataset.assign(changed)}


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


def _activations_collapse(claim):
    """Ratios of activations fall with the width, in all runs of a claim."""

    def control(runs):
        name, changed = "activation_ratio_by_width", {}
        for run in CLAIMS[claim].runs:
            dataset = runs[run]
            collapsed = 0 * dataset[name] + off_by_a_power(dataset, name)[name]
            changed[run] = dataset.assign({name: collapsed})
        return changed

    return control


def no_premise_on_batches(runs):
    """The ratio of assumption G.3 is the same for batches of all sizes, in every draw nearly alike."""
    (run,) = CLAIMS["S7c"].runs
    dataset, name = runs[run], "sample_update_ratio_by_batch"
    level = 1 + ERROR * np.cos(dataset["draw"])
    return {run: dataset.assign({name: 0 * dataset[name] + level})}


def _printed(**changed):
    """Printed tables of which all optima surely move so far, or of which one rule's losses are so much higher."""

    def control(runs):
        dataset = runs["reported_losses"]
        higher = changed.get("higher", 0.0) * (dataset["parameterization"] == "many")
        given = {"least_loss": dataset["least_loss"] + higher, "loss": dataset["loss"] + higher}
        if "drift" in changed:
            given |= _surely(dataset, changed["drift"])
        return {"reported_losses": dataset.assign(given)}

    return control


def _surely(dataset, drift):
    """Moves of optima inside their grids, known to a tenth of an octave."""
    alike = 0 * dataset["drift"]
    return {"drift": alike + drift, "drift_stderr": alike + 0.1, "drift_is_bound": alike > 0}


def rates_move_but_under_condition(runs):
    """Printed tables of which all optima move by four octaves but those under condition 3.1, as the paper says."""
    dataset = runs["reported_losses"]
    moved = 4.0 * (dataset["parameterization"] != "many")
    return {"reported_losses": dataset.assign(_surely(dataset, moved))}


def runs_are_lost(runs):
    """All nets of 64 and more blocks without LayerNorm, under condition 3.1 alone."""
    dataset = runs["reported_losses"]
    lost = (dataset["table"] == 21) & (dataset["ladder"] >= 64)
    return {"reported_losses": dataset.assign(loss=dataset["loss"].where(~lost, 11.0))}


def best_rates_inside(runs):
    """Best rates with a rate on either side, all at one place."""
    dataset = runs["reported_losses"]
    return {"reported_losses": dataset.assign(bracketed=0 * dataset["bracketed"] + 1, optimum=0 * dataset["optimum"])}


def _features_of_transformers(claim, power):
    """|h_L| of GPT-like nets goes as this power of width and depth under every table, in many draws nearly alike."""

    def control(runs):
        changed = {}
        for run in CLAIMS[claim].runs:
            dataset, spread = many_draws(runs[run])
            for along in ("width", "depth"):
                values = dataset[f"feature_norm_by_{along}"]
                powers = (0 * values + dataset[along] ** (power + spread)).transpose(*values.dims)
                dataset = dataset.assign({values.name: powers})
            changed[run] = dataset
        return changed

    return control


CONTROLS = {
    "S1": _runs_off("S1", "weight_product"),
    "S2a": _runs_off("S2a", "weight_product"),
    "S2b": features_stay,
    "S3a": _runs_off("S3a", "weight_product"),
    "S3b": _runs_off("S3b", "order_norm"),
    "S3c": _runs_off("S3c", "order_norm"),
    "S4": _runs_off("S4", "weight_product"),
    "S5a": _runs_off("S5a", "feature_norm", "feature_update_norm"),
    "S5b": _all_flat("S5b"),
    "S5c": second_order_stays,
    "S5d": gradients_stay,
    "S5e": table_is_wrong("S5e", ("lion", "hidden", "learning_rate", "width", 1.0)),
    "S5f": gradients_stay,
    "S5g": table_is_wrong("S5g", *WRONG_LION),
    "S5h": _runs_off("S5h", "feature_norm", "feature_update_norm"),
    "S5j": table_is_wrong("S5j", ("lion", "hidden_bias", "learning_rate", "depth", 1.0)),
    "S5k": table_is_wrong("S5k", ("lion", "hidden_bias", "weight_decay", "width", -1.0)),
    "S5l": _all_flat("S5l"),
    "S5i": _runs_off("S5i", "feature_norm"),
    "S6": _runs_off("S6", "weight_alignment", "update_alignment"),
    **{claim: _activations_collapse(claim) for claim in ("S7a", "S7b")},
    "S7c": no_premise_on_batches,
    "S9": first_step_is_flat,
    **{claim: _printed(drift=0.0) for claim in ("S10a", "S10d")},
    **{claim: _printed(drift=4.0) for claim in ("S10b", "S10c", "S10e")},
    **{claim: _printed(higher=2.0) for claim in ("S10f", "S10g")},
    **{claim: _printed(higher=-2.0) for claim in ("S10h", "S10i")},
    **dict.fromkeys((f"S10{letter}" for letter in "jklmnoq"), rates_move_but_under_condition),
    "S10p": _printed(drift=4.0),
    "S10r": runs_are_lost,
    "S10s": best_rates_inside,
    "S10t": _printed(higher=2.0),
    "S8": _runs_off("S8", "stable_rank"),
    **{claim: _features_of_transformers(claim, 1.0) for claim in ("S11a", "S11c", "S11e", "S11f")},
    **{claim: _features_of_transformers(claim, 0.0) for claim in ("S11b", "S11d", "S11g")},
}
