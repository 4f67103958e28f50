"""The printed report on activations: drift by layer, scales and slopes by depth, verdicts."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.verification import COMMON_SWEEP, extrapolated
from meanfield.verification import activation_drift as claims
from sims.common.beside import heavy_tail_notes
from sims.common.report import answer, report
from sims.common.table import measured, number, signed, table

QUESTION = "Does eta* of smooth activations follow a mean field of their own, and not ReLU's law?"

WORDS = {
    "fan_in": "weights of variance sigma_W^2/fan_in with sigma_W^2 = 1/q; he: 2; energy: 1/E[sigma(G)^2].",
    "q": "E[sigma'(G)^2], G ~ N(0, 1).",
    "energy": "mean z^2; z^(1) has variance 1.",
    "gain": "sigma_W^2 mean sigma'(z)^2.",
}


def text(dataset: xr.Dataset) -> str:
    """The whole report."""
    notes = heavy_tail_notes(dataset, ("learning_rate_scale", claims.LABEL_SCALE))
    parts = [_heading(dataset), _drift_table(dataset), _scale_table(dataset), _slope_table(dataset), *notes]
    return report(QUESTION, _answer(dataset), parts, claims.findings(dataset), WORDS)


def _answer(dataset: xr.Dataset) -> str:
    (relu, _), (gelu, _) = (claims.drawn_slope(dataset, case) for case in ("relu", "gelu, he"))
    numbers = f"slopes {relu.exponent:.3f} +- {relu.stderr:.3f} (ReLU), {gelu.exponent:.3f} +- {gelu.stderr:.3f} (GELU)"
    return answer([claims.judge_scales(dataset)], numbers)


def _heading(dataset: xr.Dataset) -> str:
    widths = " and ".join(map(str, dataset["width"].values))
    run = "MLP, one input, outputs {outputs}; {draws} draws for each net, seed {seed}; learning rate 1"
    return f"{run.format_map(dataset.attrs)}; widths {widths}, scales extrapolated in 1/width"


def _drift_table(dataset: xr.Dataset) -> str:
    """Energy and gain at the last drawn layer of the widest nets, and far up in the mean field."""
    last, far = int(dataset["layer"][-1]), int(dataset["layers"][-1])
    rows = []
    for case in map(str, dataset["case"].values):
        at, variance = dataset.sel(case=case), float(dataset["weight_variance"].sel(case=case))
        cells = [case, f"{float(at['gain']):.4f}", f"{variance:.4f}", f"{variance * float(at['gain']):.4f}"]
        for name, unit in ((claims.ENERGIES[0], 1.0), (claims.ENERGIES[1], variance)):
            value, stderr = (unit * float(at[f"{name}{end}"].sel(layer=last)) for end in ("", "_stderr"))
            mean_field = unit * at[f"{name}_mean_field"]
            there = float(mean_field.sel(layers=last))
            corrected = there * (1 + float(at[f"{name}_correction"].sel(layer=last)))
            score = (value - corrected) / stderr if stderr > 1e-12 else 0.0
            cells += [measured(value, stderr), f"{there:.4f}", f"{corrected:.4f}", signed(score)]
            cells.append(number(float(mean_field.sel(layers=far))))
        rows.append(cells)
    each = ["mean field", "with 1/n", "s.e.", f"at {far}"]
    header = ["case", "q", "sigma_W^2", "gain at 1", [f"energy at {last}", *each], [f"gain at {last}", *each]]
    return table(header, rows, f"Drift over {last} layers, width {int(dataset['width'][-1])} (at 1: at layer 1)")


def _scale_table(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values
    rows = []
    for case in map(str, dataset["case"].values):
        found, cells = extrapolated(dataset, case, claims.LABEL_SCALE), [case]
        for place, depth in enumerate(depths):
            scale = float(np.exp(found.log_scale[place]))
            theory = float(dataset[f"{claims.LABEL_SCALE}_mean_field"].sel(case=case, layers=depth))
            score = (found.log_scale[place] - np.log(theory)) / found.stderr[place]
            cells += [measured(scale, scale * found.stderr[place]), number(theory), signed(score)]
        rows.append(cells)
    header = ["case", *([f"L = {depth}", "mean field", "s.e."] for depth in depths)]
    return table(header, rows, "eta* of the label term")


def _slope_table(dataset: xr.Dataset) -> str:
    depths = dataset["depth"].values
    rows = []
    for case in map(str, dataset["case"].values):
        (whole, _), (label, _) = (claims.drawn_slope(dataset, case, name) for name in _SCALES)
        theory = claims.theory_slope(dataset, case, depths)
        rows.append(
            [
                case,
                measured(whole.exponent, whole.stderr),
                measured(label.exponent, label.stderr),
                f"{theory:.3f}",
                f"{claims.theory_slope(dataset, case, COMMON_SWEEP):.3f}",
                number(_cnn_slope(dataset, case)),
                f"{_far_rate(dataset, case):+.4f}",
                f"{claims.rate_of_gain(claims.far_gain(dataset, case)):+.4f}",
            ]
        )
    sweep, far = f"{COMMON_SWEEP[0]} .. {COMMON_SWEEP[-1]}", int(dataset["layers"][-1])
    header = ["case", "eta*", "of B alone", "mean field", sweep, f"CNN {sweep}", f"d ln/dL at {far}", "by the gain"]
    title = f"Slopes of eta* in L over {depths[0]} .. {depths[-1]}; by the mean field over {sweep}, for a CNN too"
    return table(header, rows, title)


_SCALES = ("learning_rate_scale", claims.LABEL_SCALE)


def _cnn_slope(dataset: xr.Dataset, case: str) -> float:
    chosen = dataset["cnn_scale_mean_field"].sel(case=case, cnn_layers=list(COMMON_SWEEP)).values
    if np.isnan(chosen).any():
        return float("nan")
    return float(np.polyfit(np.log(COMMON_SWEEP), np.log(chosen), 1)[0])


def _far_rate(dataset: xr.Dataset, case: str) -> float:
    logs = np.log(dataset[f"{claims.LABEL_SCALE}_mean_field"].sel(case=case).values)
    return float(logs[-1] - logs[-2])
