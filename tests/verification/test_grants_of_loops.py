"""What judges of looped and deep stacks grant beside standard errors, as in `test_grants`."""

from functools import partial

import numpy as np
import pytest

from meanfield.verification.wang_2026 import loop_growth, loop_updates, looped_transformers
from tests.verification.granted import ERROR, assert_drawn, exactly, fitted_slope, power_law


def energies_of_looped_transformers(dataset, share):
    """A share 1/N + 1/V of what C adds to H, for N units and V words."""
    at = dataset.isel(update=0).sel(model="looped")
    granted = (1 / dataset.attrs["width"] + 1 / dataset.attrs["vocabulary"]) * at["correlation_term"]
    law = at["residual_energy_mean_field"] + share * granted
    law = law.where(np.isfinite(law), 1.0).transpose("scaling", "loops")
    return exactly(dataset, "residual_energy", law.values, model="looped", update=0)


def _correction(loops):
    """What a relative correction 1/L makes of a slope, between the first and the last of the last three."""
    first, last = loops.values[[-3, -1]]
    return float(np.log((1 + 1 / first) / (1 + 1 / last)) / np.log(last / first))


def growths_of_looped_transformers(dataset, share):
    """A relative correction 1/L."""
    law = power_law(dataset["loops"], 1 + share * _correction(dataset["loops"]))
    return exactly(dataset, "correlation_term", law, model="looped", scaling="sqrt", update=0)


def updates_of_looped_transformers(dataset, share, scaling, exponent):
    """A relative correction 1/L."""
    law = power_law(dataset["loops"], exponent + share * _correction(dataset["loops"]))
    return exactly(dataset, "first_order_change", law, rule="isotropic", scaling=scaling)


def updates_below_the_threshold(dataset, share):
    """10/N of the recursion's slope, for N units."""
    recursion = dataset["log_update_energy_mean_field"].sel(alpha=0.5)
    granted = 10 / dataset.attrs["ladder_width"] * fitted_slope(dataset["loops"], recursion.values)
    law = power_law(dataset["loops"], 1 + share * granted)
    return exactly(dataset, "update_energy", law, update="isotropic", alpha=0.5)


def isotropic_updates(dataset, share):
    """10/N of what the recursion says, for N units."""
    for alpha in (1.0, 1.5):
        recursion = np.exp(dataset["log_update_energy_mean_field"].sel(alpha=alpha).values)
        law = recursion * (1 + share * 10 / dataset.attrs["ladder_width"])
        dataset = exactly(dataset, "update_energy", law, update="isotropic", alpha=alpha)
    return dataset


def aligned_updates(dataset, share):
    """What the fit leaves of the recursion: 0.1 where its slope far up is made another by so much."""
    exponent = 2 * (1 - dataset["alpha"])
    near, far = (np.log(dataset[name].astype(float)) for name in ("loops", "far_loops"))
    recursions = {
        "log_update_energy_mean_field": exponent * near + 0 * dataset["log_update_energy_mean_field"],
        "log_update_energy_far": (exponent + 0.1) * far + 0 * dataset["log_update_energy_far"],
    }
    dataset = dataset.assign(recursions)
    for alpha in (1.0, 1.5):
        law = power_law(dataset["loops"], 2 * (1 - alpha) + 0.1 * share)
        dataset = exactly(dataset, "update_energy", law, update="aligned", alpha=alpha)
    return dataset


def _log_energies(dataset, values, **where):
    """With these values of ln H at a place, and errors of a millionth."""
    changed = {f"log_energy{end}": dataset[f"log_energy{end}"].copy() for end in ("", "_stderr")}
    changed["log_energy"].loc[where], changed["log_energy_stderr"].loc[where] = values, ERROR
    return dataset.assign(changed)


def bounded_energies(dataset, share, model, scaling):
    """A factor of H that is exp(10/N), for N units, in the last net alone."""
    law = dataset["log_energy_mean_field"].sel(model=model, scaling=scaling).values.copy()
    law[-1] += share * 10 / dataset.attrs["width"]
    return _log_energies(dataset, law, model=model, scaling=scaling)


def printed_growths(dataset, share):
    """10/N in the exponent, for N units."""
    law = power_law(dataset["loops"], 1 + share * 10 / dataset.attrs["width"])
    return exactly(dataset, "correlation_term", law, model="looped", scaling="sqrt")


def energies_of_stacks(dataset, share):
    """A factor of H that is exp(10/N), for N units."""
    for scaling in ("sqrt", "linear"):
        law = dataset["log_energy_mean_field"].sel(model="deep", scaling=scaling).values
        dataset = _log_energies(dataset, law + share * 10 / dataset.attrs["width"], model="deep", scaling=scaling)
    return dataset


DRAWN = {
    "energies of looped Transformers": (
        "looped_transformer",
        energies_of_looped_transformers,
        looped_transformers.judge_mean_field,
    ),
    "growths of looped Transformers": (
        "looped_transformer",
        growths_of_looped_transformers,
        looped_transformers.judge_growth,
    ),
    "updates at 1/L": (
        "looped_transformer",
        partial(updates_of_looped_transformers, scaling="linear", exponent=0.0),
        partial(looped_transformers.judge_update, rule="isotropic"),
    ),
    "updates at 1/sqrt(L)": (
        "looped_transformer",
        partial(updates_of_looped_transformers, scaling="sqrt", exponent=1.0),
        looped_transformers.judge_update_below,
    ),
    "updates below the threshold": ("looped_update", updates_below_the_threshold, loop_updates.judge_below_threshold),
    "isotropic updates": ("looped_update", isotropic_updates, loop_updates.judge_recursion),
    "aligned updates": ("looped_update", aligned_updates, loop_updates.judge_aligned),
    "bounded energies of loops": (
        "looped_energy",
        partial(bounded_energies, model="looped", scaling="linear"),
        loop_growth.judge_tied_bounded,
    ),
    "bounded energies of stacks": (
        "looped_energy",
        partial(bounded_energies, model="deep", scaling="sqrt"),
        loop_growth.judge_independent_bounded,
    ),
    "printed growths": ("looped_energy", printed_growths, loop_growth.judge_printed_growth),
    "energies of stacks": ("looped_energy", energies_of_stacks, loop_growth.judge_independent_growth),
}


@pytest.mark.parametrize("name", DRAWN)
def test_no_more_is_granted_than_is_said(name, smoke_run):
    simulation, made, judge = DRAWN[name]
    assert_drawn(smoke_run(simulation), made, judge)
