"""What a dataset says of the energies of all draws: means with errors, and how single draws scatter about them."""

import numpy as np

from meanfield.common.arrays import Array
from meanfield.common.estimates import DrawStatistic, Estimate, Means, log_moments, quantiles, summarise, summarise_each
from meanfield.quantities.registry import SHARES


def energy_estimates(
    values: dict[str, Array], adjusted: dict[str, Array] | None = None
) -> dict[str, Estimate | Means | DrawStatistic]:
    """Means and errors of the measured terms and of what follows from them draw by draw.

    ``adjusted`` holds terms by the same names, of the same mean (`controls.adjusted_terms`), or nothing.
    """
    profiles = {name: value for name, value in values.items() if value.ndim > 2}
    by_layer = {name: value for name, value in values.items() if name not in profiles}
    by_layer["update_energy"] = values["label_term"] + values["output_term"]
    if profiles:
        profiles["update_energy_by_site"] = profiles["label_term_by_site"] + profiles["output_term_by_site"]
    of_sites = {name: summarise_each(value) for name, value in profiles.items()}
    estimates = _layer_estimates(by_layer) | of_sites | _draw_statistics(by_layer["update_energy"])
    if adjusted:
        adjusted = adjusted | {"update_energy": adjusted["label_term"] + adjusted["output_term"]}
        estimates |= {f"adjusted_{name}": estimate for name, estimate in _layer_estimates(adjusted).items()}
    return estimates


def _layer_estimates(values: dict[str, Array]) -> dict[str, Estimate]:
    means = {name: values[name].mean(axis=1, keepdims=True) for name in ("update_energy", "label_term")}
    per_draw = {**values, "mean_update_energy": means["update_energy"]}
    estimates = {name: summarise(value) for name, value in per_draw.items()}
    estimates["learning_rate_scale"] = _inverse_root(estimates["mean_update_energy"])
    estimates["label_learning_rate_scale"] = _inverse_root(summarise(means["label_term"]))
    return estimates


def _draw_statistics(energy: Array) -> dict[str, DrawStatistic]:
    """How single draws of the update energy (N, L) scatter about their mean."""
    spread, skewness = log_moments(energy)
    with np.errstate(divide="ignore"):
        scales = energy.mean(axis=1) ** -0.5
    return {
        "update_energy_quantile": quantiles(energy, np.array(SHARES)),
        "learning_rate_scale_quantile": quantiles(scales, np.array(SHARES)),
        "update_energy_log_spread": spread,
        "update_energy_log_skewness": skewness,
    }


def _inverse_root(estimate: Estimate) -> Estimate:
    """S -> S^(-1/2), with its error to first order; infinite and without an error where no draw moves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = estimate.mean**-0.5
        slope = 0.5 * scale[0] / estimate.mean[0]
        return Estimate(scale, slope**2 * estimate.covariance, estimate.largest_share)
