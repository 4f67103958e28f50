"""Runs made anew: their numbers in closed form, with errors of a millionth."""

import numpy as np

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


def in_draws(dataset, name, along, exponent, **where):
    """With powers of the size at a place, nearly alike in all draws."""
    values, size = dataset[name].astype(float).copy(), dataset[along].astype(float)
    at = values.sel(where)
    law = (size / size[0]) ** (exponent + 1e-10 * np.cos(dataset["draw"])) + 0 * at.fillna(0)
    values.loc[where] = law.transpose(*at.dims).values
    return dataset.assign({name: values})


def power_law(sizes, exponent):
    return (sizes / sizes[0]).astype(float).values ** exponent


def fitted_slope(sizes, logs):
    return np.polyfit(np.log(sizes), logs, 1)[0]
