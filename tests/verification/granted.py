"""Runs made anew as far from a claim as a share of what is granted, and what judges must say inside and outside."""

import numpy as np

from meanfield.verification.verdicts import Verdict

ERROR = 1e-6


def exactly(dataset, name, values, **where):
    """The dataset with these values of NAME at a place, and errors of a millionth."""
    changed = {name: dataset[name].astype(float).copy()}
    changed[name].loc[where] = np.asarray(values)
    changed[f"{name}_stderr"] = dataset[f"{name}_stderr"].copy()
    changed[f"{name}_stderr"].loc[where] = ERROR * np.abs(np.asarray(values))
    if f"{name}_largest_share" in dataset:
        changed[f"{name}_largest_share"] = 0 * dataset[f"{name}_largest_share"]
    return dataset.assign(changed)


def power_law(sizes, exponent):
    return (sizes / sizes[0]).astype(float).values ** exponent


def fitted_slope(sizes, logs):
    return np.polyfit(np.log(sizes), logs, 1)[0]


def assert_drawn(dataset, made, judge):
    """Drawn numbers a tenth inside of what is granted are not refuted, a tenth outside they are."""
    assert judge(made(dataset, 0.9)).verdict is not Verdict.REFUTED
    assert judge(made(dataset, 1.1)).verdict is Verdict.REFUTED


def assert_computed(dataset, made, judge):
    """Computed ones a tenth inside are confirmed, a tenth outside they are not."""
    assert judge(made(dataset, 0.9)).verdict is Verdict.CONFIRMED
    assert judge(made(dataset, 1.1)).verdict is not Verdict.CONFIRMED
