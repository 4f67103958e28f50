"""What judges of one step of an optimizer grant beside standard errors."""

from functools import partial

import numpy as np

from sims.optimizer_depth import claims
from sims.optimizer_depth.claims import BASE, DESCENT
from tests.verification.grants.made import exactly, fitted_slope, power_law

# What finite width may do to a slope, in place of what it does.
SHIFT = 0.05


def _granted(dataset):
    shifts = {claims.SHIFT: 0 * dataset[claims.SHIFT] + SHIFT}
    return dataset.assign(shifts | {claims.OF_WIDTH + claims.SHIFT: SHIFT})


def _off_theory(dataset, prefix, along, share, **where):
    """Scales of the mean field times a power of the size, under all optimizers but descent."""
    name = prefix + claims.LABEL_SCALE
    for optimizer in map(str, dataset["optimizer"].values):
        power = 0.0 if optimizer == DESCENT else SHIFT * share
        law = np.exp(dataset[f"log_{name}_mean_field"].sel(optimizer=optimizer, **where).values)
        dataset = exactly(dataset, name, law * power_law(dataset[along], power), optimizer=optimizer, **where)
    return _granted(dataset)


def steps_of_blocks(dataset, share):
    return _off_theory(dataset, "", "blocks", share, family="multiplier_linear")


def steps_of_layers(dataset, share):
    return _off_theory(dataset, claims.OF_PLAIN, "depth", share)


def steps_of_widths(dataset, share):
    return _off_theory(dataset, claims.OF_WIDTH, "width", share)


def rates_of_tables(dataset, share):
    """Powers that are off by the grant and by what the mean field's slope over these blocks lacks of its limit."""
    name, family = claims.LABEL_SCALE, "multiplier_sqrt"
    for optimizer in map(str, dataset["optimizer"].values):
        logs = dataset[f"log_{name}_mean_field"].sel(optimizer=optimizer, family=family)
        lacking = abs(fitted_slope(dataset["blocks"], logs.values) - claims.limit_of(family, optimizer))
        law = np.exp(logs.values) * power_law(dataset["blocks"], 0.0)
        if optimizer != DESCENT:
            law = power_law(dataset["blocks"], -0.5 + share * (SHIFT + lacking))
        dataset = exactly(dataset, name, law, optimizer=optimizer, family=family)
    return _granted(dataset)


def settings(dataset, share):
    """Ratios off by L M / (4 n), of 4 layers and 8 outputs."""
    name = claims.OF_SETTING + claims.SCALE
    granted = 4 * 8 / (4 * dataset.attrs["setting_width"])
    for optimizer in map(str, dataset["optimizer"].values):
        if optimizer == DESCENT:
            continue
        off = np.where(dataset["setting"] == BASE, 1.0, np.exp(share * granted))
        dataset = exactly(dataset, name, off, optimizer=optimizer)
    return dataset


DRAWN = {
    "steps of blocks": (
        "optimizer_depth",
        steps_of_blocks,
        partial(claims.judge_coherent, family="multiplier_linear"),
    ),
    "steps of layers": ("optimizer_depth", steps_of_layers, claims.judge_plain),
    "steps of widths": ("optimizer_depth", steps_of_widths, claims.judge_width),
    "rates of tables": ("optimizer_depth", rates_of_tables, partial(claims.judge_tables, family="multiplier_sqrt")),
    "settings": ("optimizer_depth", settings, claims.judge_forgotten),
}
