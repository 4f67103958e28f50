"""Identities: the label average by layer, what means of layers violate, and the norm of LayerNorm's Jacobian.

Equations are those of Zhang et al. 2026.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures._command import command
from figures.style import FURTHER, LAW, MEAN_FIELD, MEASURED, log_values, styled

# Violations at or below rounding are drawn here.
ROUNDING = 1e-16


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Left: S by enumeration, A + B, and with B as printed. Middle: violations by property. Right: norms, sorted."""
    layer = dataset["layer"].values
    printed = dataset["split"] - dataset["label_term"] + dataset["kernel_term"]
    figure = Figure(figsize=(10.0, 3.2))
    labels, means, norms = figure.subplots(1, 3)
    labels.plot(layer, dataset["split"].values, color=MEAN_FIELD, label="A + B")
    labels.plot(layer, printed.values, "--", color=LAW, label="with B as eq. 19 prints it")
    labels.plot(layer, dataset["enumerated"].values, "o", color=MEASURED, label="S, all labels")
    labels.set(xlabel="layer l", xticks=layer)
    log_values(labels, "update energy")
    labels.legend(fontsize=7)
    for place, (kind, color) in enumerate(zip(dataset["property"].values, FURTHER, strict=False)):
        values = np.maximum(dataset["violation"].sel(property=kind).values, ROUNDING)
        means.plot(values, np.arange(values.size) + 0.15 * (place - 1.5), "o", color=color, label=str(kind))
    means.set_yticks(range(dataset.sizes["aggregator"]), [str(name) for name in dataset["aggregator"].values])
    log_values(means, "largest violation", along="x")
    means.legend(fontsize=7)
    norms.plot(np.sort(dataset["norm_ratio"].values), ".", color=MEASURED, label="one example")
    norms.axhline(2.0, ls="--", color=LAW, label="bound of eq. 39")
    norms.axhline(1.0, color=MEAN_FIELD, label="bound by eigenvalues")
    norms.set(xlabel="example, sorted", ylabel="$|J| \\, s / \\gamma_{\\max}$", ylim=(0.0, 2.1))
    norms.legend(fontsize=7)
    labels.set_title("average over all labels (eq. 18, 19)", fontsize=9)
    means.set_title("properties that seven means violate", fontsize=9)
    norms.set_title("Jacobian J of LayerNorm (eq. 39)", fontsize=9)
    return figure


if __name__ == "__main__":
    command("identities", draw)
