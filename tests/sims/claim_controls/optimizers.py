"""Worlds in which one step of signs and of polar factors obeys the law of one step of descent."""

import numpy as np

from sims.optimizer_depth.claims import (
    BASE,
    DESCENT,
    LABEL_SCALE,
    NAME,
    OF_PLAIN,
    OF_SETTING,
    OF_WIDTH,
    SCALE,
    limit_of,
)
from tests.sims.claim_controls.changes import put


def others(dataset):
    return [str(name) for name in dataset["optimizer"].values if name != DESCENT]


def as_descent(dataset, family):
    """Scales of a family of residual nets that go with depth as the mean field of descent."""
    law = np.exp(dataset[f"log_{LABEL_SCALE}_mean_field"].sel(optimizer=DESCENT, family=family))
    for name in others(dataset):
        dataset = put(dataset, LABEL_SCALE, law.values, optimizer=name, family=family)
    return dataset


def as_power_of_descent(dataset, family):
    """The same, as the power that this tends to."""
    law = (dataset["blocks"] / dataset["blocks"][0]) ** limit_of(family, DESCENT)
    for name in others(dataset):
        dataset = put(dataset, LABEL_SCALE, law.values, optimizer=name, family=family)
    return dataset


def half_a_power_lower(dataset):
    """Scales of plain nets that fall with depth by half a power more than in the mean field of each optimizer."""
    name = OF_PLAIN + LABEL_SCALE
    for optimizer in dataset["optimizer"].values:
        power = 0.0 if optimizer == DESCENT else -0.5
        law = np.exp(dataset[f"log_{name}_mean_field"].sel(optimizer=optimizer)) * dataset["depth"] ** power
        dataset = put(dataset, name, law.values, optimizer=optimizer)
    return dataset


def one_power_of_the_width(dataset):
    """n^(-1/2) under all optimizers but descent, which does not depend on the width."""
    for optimizer in dataset["optimizer"].values:
        law = dataset["width"] ** (0.0 if optimizer == DESCENT else -0.5)
        dataset = put(dataset, OF_WIDTH + LABEL_SCALE, law.values, optimizer=optimizer)
    return dataset


def remembered(dataset):
    """Labels, loss, outputs and head change every scale as they change that of descent."""
    name = OF_SETTING + SCALE
    of_descent = dataset[name].sel(optimizer=DESCENT)
    for optimizer in others(dataset):
        base = float(dataset[name].sel(optimizer=optimizer, setting=BASE))
        dataset = put(dataset, name, (base * of_descent / of_descent.sel(setting=BASE)).values, optimizer=optimizer)
    return dataset


CONTROLS = {
    "O1": lambda runs: {NAME: as_descent(runs[NAME], "multiplier_sqrt")},
    "O2": lambda runs: {NAME: half_a_power_lower(runs[NAME])},
    "O3": lambda runs: {NAME: remembered(runs[NAME])},
    "O4": lambda runs: {NAME: as_power_of_descent(runs[NAME], "multiplier_sqrt")},
}
