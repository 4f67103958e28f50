"""Worlds in which claims of Wang et al. 2026 get another verdict."""

import numpy as np

from sims.claims.catalogue import CLAIMS
from tests.sims.claim_controls.changes import ERROR, many_draws, put


def tied_growth_as_printed(runs):
    dataset = runs["looped_energy"]
    place = {"model": "looped", "scaling": "sqrt"}
    return {"looped_energy": put(dataset, "correlation_term", dataset["loops"].astype(float), **place)}


def stacks_grow_as_loops(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": put(dataset, "log_energy", dataset["log_energy"].sel(model="looped"), model="deep")}


def models_exchanged(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": dataset.sel(model=["deep", "looped"]).assign_coords(model=dataset["model"])}


def cross_term_grows(runs):
    dataset = runs["looped_energy"]
    return {"looped_energy": put(dataset, "cross_width_spread", np.sqrt(dataset["cross_width"]))}


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
                dataset = put(dataset, "by_width", 0 * dataset["width"] + 1.0, update=update)
            for alpha in map(float, dataset["alpha"].values):
                law = dataset["loops"].astype(float) ** (2 * (1 - alpha) + beyond)
                dataset = put(dataset, "update_energy", law, update=update, alpha=alpha)
        return {"looped_update": dataset}

    return control


def _looped_transformer(model, scaling, name, power):
    """Numbers of one kind of Transformers that go as a power of the loops, before training and after it."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float) ** power * (1 + 0 * dataset["update"])
        return {"looped_transformer": put(dataset, name, law, model=model, scaling=scaling)}

    return control


def _first_order_change(scaling, power):
    """Streams of looped Transformers that one update moves as a power of the loops."""

    def control(runs):
        dataset = runs["looped_transformer"]
        law = dataset["loops"].astype(float).values ** power
        for rule in ("isotropic", "aligned"):
            dataset = put(dataset, "first_order_change", law, rule=rule, scaling=scaling)
        return {"looped_transformer": dataset}

    return control


def rates_do_not_matter(runs):
    dataset = runs["looped_transformer"]
    return {"looped_transformer": put(dataset, "energy_by_rate", 2.0, scaling="sqrt")}


def _looped(scaling, slope=None):
    """Tuned rates of looped Transformers that learn fall over loops exactly so, or as one step; from many seeds."""

    def exact(runs):
        dataset = runs["looped_rates"]
        chosen, rates = dataset["scaling"] == scaling, dataset["tuned_rate_log10"]
        one_step = np.log10(dataset["absolute_scale"])
        logs = (one_step if slope is None else slope * np.log10(dataset["loops"])) + 0 * rates
        changed = {
            "tuned_rate_log10": logs,
            "tuned_rate_log10_stderr": 0 * rates + ERROR**2,
            "located": 0 * dataset["located"] + 64,
            "absolute_scale_stderr": ERROR**2 * dataset["absolute_scale"],
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return {"looped_rates": _learned(dataset.assign(put))}

    return exact


def own_blocks_follow_one_step(runs):
    """Tuned rates of GPTs that learn, of own blocks, fall as one step by the relative change."""
    (name,) = {check.run for check in CLAIMS["E1e"].checks}
    dataset = runs[name]
    scale = dataset["relative_scale"]
    put = {
        "tuned_rate_log10": np.log10(scale),
        "tuned_rate_log10_stderr": 0 * scale + ERROR**2,
        "located": 0 * dataset["located"] + 64,
        "relative_scale_stderr": ERROR**2 * scale,
    }
    return {name: _learned(dataset.assign(put))}


def _learned(dataset):
    """All nets end below the loss of pairs of letters."""
    return dataset.assign(learned_loss=1 + dataset["tuned_loss"].max())


def linear_losses_are_lower(runs):
    dataset, spread = many_draws(runs["looped_rates"])
    losses = dataset["tuned_loss"]
    linear = losses["scaling"] == "linear"
    lower = (losses.sel(scaling="sqrt", drop=True) - 1 + spread).where(linear, losses)
    return {"looped_rates": _learned(dataset.assign(tuned_loss=lower.transpose(*losses.dims)))}


CONTROLS = {
    "E1e": own_blocks_follow_one_step,
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
    "L6b": _looped_transformer("deep", "sqrt", "residual_energy", 0.3),
    "L6c": rates_do_not_matter,
    "L7a": _looped("linear", 0.0),
    "T5": _looped("linear"),
    "L7b": _looped("sqrt", -0.5),
    "L7c": linear_losses_are_lower,
    "L7d": _looped("sqrt", -0.5),
}
