"""What judges of looped and deep stacks grant beside standard errors."""

from functools import partial

import numpy as np

from sims import looped_energy, looped_update
from sims.looped_transformer import claims as looped_transformer
from tests.verification.grants.made import ERROR, exactly, fitted_slope, power_law


def energies_of_loops(dataset, share):
    energy = dataset["log_energy_mean_field"] + share * 10 / dataset.attrs["width"]
    return dataset.assign(log_energy=energy, log_energy_stderr=ERROR + 0 * energy)


def correlations(dataset, share, deep, looped):
    """Of different steps, in stacks and in loops: 0.05 is none."""
    one, values = np.eye(dataset.sizes["increment"]), dataset["increment_correlation"].copy()
    for model, other in (("deep", deep(share)), ("looped", looped(share))):
        values.loc[{"model": model}] = one + (1 - one) * other
    return dataset.assign(increment_correlation=values, increment_correlation_stderr=ERROR + 0 * values)


def updates_by_width(dataset, share):
    return exactly(dataset, "by_width", power_law(dataset["width"], 0.1 * share), update="aligned")


def energies_of_transformers(dataset, share, model, scaling):
    """A tenth of H, over all loops or over the last three."""
    loops = dataset["loops"].astype(float)
    first = 0 if model == "looped" else -3
    steps = np.log(loops / loops[first]) / np.log(loops[-1] / loops[first])
    law = (1.1 ** (share * steps) + 0 * dataset["update"]).values
    return exactly(dataset, "residual_energy", law, model=model, scaling=scaling)


def explosions(dataset, share):
    grown = 10 ** (1.2 - 0.2 * share) * (dataset["state"] == "after") + (dataset["state"] == "before")
    return exactly(dataset, "energy_by_rate", grown.values, scaling="sqrt")


def damped_stacks(dataset, share):
    loops = dataset["loops"].astype(float)
    law = 0.5 ** ((2 - share) * np.log(loops / loops[0]) / np.log(loops[-1] / loops[0]))
    return exactly(dataset, "correlation_term", (law + 0 * dataset["update"]).values, model="deep", scaling="linear")


def expansions(dataset, share):
    """C = H - H_0 of tied loops as (eps L)^2 L^(0.05 share)."""
    far = dataset["far_loops"].astype(float)
    law = 1e-3 * far ** (2 * (1 - dataset["alpha"]) + 0.05 * share)
    return dataset.assign(log_energy_by_alpha=np.log1p(law))


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
    "energies of loops": ("looped_energy", energies_of_loops, looped_energy.judge_mean_field),
    "correlations in stacks": (
        "looped_energy",
        partial(correlations, deep=lambda share: 0.05 * share, looped=lambda share: 0.9),
        looped_energy.judge_correlations,
    ),
    "correlations in loops": (
        "looped_energy",
        partial(correlations, deep=lambda share: 0.0, looped=lambda share: 0.05 * (2 - share)),
        looped_energy.judge_correlations,
    ),
    "updates by width": ("looped_update", updates_by_width, looped_update.judge_width),
    "looped energies": (
        "looped_transformer",
        partial(energies_of_transformers, model="looped", scaling="linear"),
        looped_transformer.judge_loops_bounded,
    ),
    "deep energies": (
        "looped_transformer",
        partial(energies_of_transformers, model="deep", scaling="sqrt"),
        looped_transformer.judge_stacks_bounded,
    ),
    "explosions": ("looped_transformer", explosions, looped_transformer.judge_loops_explode),
    "damped stacks": ("looped_transformer", damped_stacks, looped_transformer.judge_stacks_damped),
    "energies of looped Transformers": (
        "looped_transformer",
        energies_of_looped_transformers,
        looped_transformer.judge_mean_field,
    ),
    "growths of looped Transformers": (
        "looped_transformer",
        growths_of_looped_transformers,
        looped_transformer.judge_growth,
    ),
    "updates at 1/L": (
        "looped_transformer",
        partial(updates_of_looped_transformers, scaling="linear", exponent=0.0),
        partial(looped_transformer.judge_update, rule="isotropic"),
    ),
    "updates at 1/sqrt(L)": (
        "looped_transformer",
        partial(updates_of_looped_transformers, scaling="sqrt", exponent=1.0),
        looped_transformer.judge_update_below,
    ),
    "updates below the threshold": ("looped_update", updates_below_the_threshold, looped_update.judge_below_threshold),
    "isotropic updates": ("looped_update", isotropic_updates, looped_update.judge_recursion),
    "aligned updates": ("looped_update", aligned_updates, looped_update.judge_aligned),
    "bounded energies of loops": (
        "looped_energy",
        partial(bounded_energies, model="looped", scaling="linear"),
        looped_energy.judge_tied_bounded,
    ),
    "bounded energies of stacks": (
        "looped_energy",
        partial(bounded_energies, model="deep", scaling="sqrt"),
        looped_energy.judge_independent_bounded,
    ),
    "printed growths": ("looped_energy", printed_growths, looped_energy.judge_printed_growth),
    "energies of stacks": ("looped_energy", energies_of_stacks, looped_energy.judge_independent_growth),
}

COMPUTED = {
    "expansions": ("looped_energy", expansions, looped_energy.judge_expansion),
}
