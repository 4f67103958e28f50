"""Energy of pre-activations by layer, and learning-rate scale by depth, for activations and weight variances."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._command import command
from figures.style import GREEN, MEASURED, PURPLE, SKY, key, layer_ticks, legend_below, log_values, points, styled
from meanfield.verification import COMMON_SWEEP, LABEL_SCALE, extrapolated

RULES = {"fan_in": SKY, "he": PURPLE, "energy": GREEN}
LABELS = {"fan_in": "1/q", "he": "2 (He)", "energy": "1/E[$\\sigma^2$]"}
TITLES = {"gelu": "GELU", "silu": "SiLU"}


@styled()
def draw(dataset: xr.Dataset) -> Figure:
    """Above, mean z^2 by layer; below, eta* of the label term over its first drawn value; a column per activation."""
    names = list(dict.fromkeys(str(case).split(", ")[0] for case in dataset["case"].values if case != "relu"))
    figure = Figure(figsize=(9.5, 5.2))
    panels = figure.subplots(2, len(names), squeeze=False)
    for (above, below), name in zip(panels.T, names, strict=True):
        _scales(below, dataset, "relu", MEASURED, "ReLU, 2 (He)")
        above.axhline(1.0, color=MEASURED, linewidth=1.0)
        for rule, color in RULES.items():
            _energies(above, dataset, f"{name}, {rule}", color)
            _scales(below, dataset, f"{name}, {rule}", color, LABELS[rule])
        above.set(title=TITLES.get(name, name), xlabel="layer l", ylim=(0.01, 4))
        below.set(xscale="log", xlabel="depth L", ylim=(0.005, 50))
        for axes in (above, below):
            log_values(axes)
        layer_ticks(below, COMMON_SWEEP[-1])
        below.set_xlim(left=0.9 * float(dataset["depth"][0]))
    panels[0, 0].set_ylabel("energy, mean z$^2$")
    panels[1, 0].set_ylabel(f"eta*(L) / eta*({int(dataset['depth'][0])}),\nlabel term")
    key(panels[1, 0], "mean field")
    key(panels[1, 0], "drawn", marker="o", ls="")
    legend_below(figure, panels[1, 0], title="weight variance $\\sigma_W^2$ times fan-in")
    return figure


def _energies(axes: Axes, dataset: xr.Dataset, case: str, color: str) -> None:
    at = dataset.sel(case=case)
    swept = at.sel(layers=slice(1, COMMON_SWEEP[-1]))
    axes.plot(swept["layers"].values, swept["pre_activation_energy_mean_field"].values, color=color)
    points(axes, at["layer"].values, at, "pre_activation_energy", color=color)


def _scales(axes: Axes, dataset: xr.Dataset, case: str, color: str, label: str) -> None:
    depths = dataset["depth"].values
    swept = dataset.sel(case=case, layers=slice(depths[0], COMMON_SWEEP[-1]))
    theory = swept[f"{LABEL_SCALE}_mean_field"].values
    axes.plot(swept["layers"].values, theory / theory[0], color=color, label=label)
    drawn = extrapolated(dataset, case, LABEL_SCALE)
    scale = np.exp(drawn.log_scale) / theory[0]
    axes.errorbar(depths, scale, scale * drawn.stderr, fmt="o", color=color)


if __name__ == "__main__":
    command("activation_drift", draw)
