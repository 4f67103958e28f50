"""What theory says beside the drawn nets of `sims.batch_size`."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from meanfield.nets import MLP, Batch, Sequential
from meanfield.theory import correlated_term, finite_width_allowance, label_covariance
from sims.batch_size.cases import Case
from sims.common.datasets import Axes, labels_in_mean_field, over

# A batch from which theory reads what is left as B grows.
ENDLESS = 10**6
# Depths between which theory takes slopes, batches at which it does, and a width at which it is all there is.
DEPTHS, DEPTH_BATCHES, WIDE = (150, 300), (1, 64, ENDLESS), 10**6


def predicted_means(case: Case, samples: int) -> dict[str, float]:
    """Means over layers that theory gives: label term, output term, both allowances, and labels all alike."""
    net, inputs, rho = case.at(samples), case.inputs(samples), case.batch.input_correlation
    limit = labels_in_mean_field(net, inputs=inputs, batch=case.batch)
    label = limit["label_term"].values
    copies = np.ones((samples, samples, 1)) if net.padding != "circular" or inputs is not None else np.ones((2, 2, 1))
    alike = correlated_term(net, inputs, rho, copies)
    granted = _granted(net, inputs, rho, label)
    if case.batch.labels == "teacher" and inputs is None:
        granted += _taught_excess(net, rho)
    return {
        "label_term_mean_field": float(label.mean()),
        "label_term_allowance": float(granted.mean()),
        "label_term_alike": float(alike.mean()),
        "output_term_mean_field": float(limit["output_term"].mean()) if "output_term" in limit else np.nan,
    }


def _granted(net: Sequential, inputs: Any, rho: float, label: Any) -> Any:
    """Deviation from the mean field granted to the label term, by layer.

    With several sites that of `finite_width_allowance`. With one, that of a single sample, and what squared kernels
    between samples gain at finite width: the correlation of two samples takes a random step of variance
    (1 - rho^2)^2 / C at every layer, the input's included, so that sums of correlations over l layers have second
    moment sum_{h, h' <= l} min(h, h') / C, over l^2 if they are to be relative to a sample's kernel with itself.
    """
    if net.sites > 1:
        return finite_width_allowance(net, inputs, rho) * label
    layers = np.arange(1, net.depth + 1)
    walked = (layers + 1) * (2 * layers + 1) / (6 * layers) * (1 - rho**2) ** 2 / net.channels_by_layer[-1]
    from_others = (net.inputs - 1) / net.inputs**2 * walked * _alone(net)
    return finite_width_allowance(replace(net, inputs=1)) * label + from_others  # type: ignore[type-var]


def _taught_excess(net: Sequential, rho: float) -> Any:
    """Bound on what labels and kernel share by the fluctuation of one Gram matrix, x_r . x_j / C_0 of variance 1 / C_0.

    Among the terms of the label term 2 (B - 1) are Sigma_rj K_rr K_rj, and K_rj rises by K_rr at most with Sigma_rj.
    """
    return 2 * (net.inputs - 1) / net.inputs**2 * (1 + rho) / net.channels_by_layer[0] * _alone(net)


def _alone(net: Sequential) -> Any:
    """Label term of one sample with plain labels, by layer."""
    return labels_in_mean_field(replace(net, inputs=1))["label_term"].values  # type: ignore[type-var]


def floors(cases: list[Case]) -> xr.Dataset:
    """Label and output term that are left as B grows, where samples are drawn; and f, the weight of another sample.

    f = G_d / G_s, the squared kernel between two samples over that of one with itself, from labels of mean 0.
    """
    return over({"case": [case.name for case in cases]}, [_floor(case) for case in cases])


def _floor(case: Case) -> dict[str, float]:
    if case.images is not None:
        return dict.fromkeys(("label_floor", "output_floor", "other_sample"), np.nan)
    plain = Batch(input_correlation=case.batch.input_correlation)

    def at(samples: int, batch: Batch) -> xr.Dataset:
        return labels_in_mean_field(case.at(samples), batch=batch)

    left, own = (at(ENDLESS, batch) for batch in (case.batch, plain))
    of_pair, alone = (at(samples, plain)["label_term"].mean() for samples in (2, 1))
    return {
        "label_floor": max(0.0, float((left["label_term"] - own["label_term"]).mean())),
        "output_floor": float(left["output_term"].mean()) if "output_term" in left else np.nan,
        "other_sample": 4 * float(of_pair / alone) - 1,
    }


def depth_slopes() -> xr.Dataset:
    """Slope of the label term's eta* in depth, by the mean of the labels and the batch size."""
    axes: Axes = {"label_mean": [0.0, 1.0], "theory_batch": list(DEPTH_BATCHES)}
    slopes = []
    for mean, samples in product(*axes.values()):
        terms = [_label_term(MLP(depth=depth, width=WIDE, inputs=int(samples)), mean) for depth in DEPTHS]
        slopes.append({"depth_slope": -0.5 * np.log(terms[1] / terms[0]) / np.log(DEPTHS[1] / DEPTHS[0])})
    return over(axes, slopes).assign_attrs(slope_depths=list(DEPTHS))


def _label_term(net: MLP, label_mean: float) -> float:
    """Mean over layers of the label term alone, independent inputs."""
    return float(correlated_term(net, None, 0.0, label_covariance(net, None, Batch(label_mean=label_mean))).mean())
